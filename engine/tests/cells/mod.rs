//! Cells of saturated stations that send to one sink, for tests.

#![allow(dead_code)] // each test uses its part
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

use airloom_engine::medium::propagation::Matrix;
use airloom_engine::medium::{RadioId, RadioSettings};
use airloom_engine::random::Stream;
use airloom_engine::time::Span;

use crate::world::{World, at, reference_loss};

/// What a cell carries.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub megabits: f64,
    /// Share of first frames of exchanges, data or requests to send, without an answer.
    pub failed: f64,
    pub jain: f64,
}

impl Found {
    /// The sum, the failures, and Jain's index of these shares.
    pub fn of(shares: &[f64], failed: f64) -> Self {
        let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        Self { megabits: sum, failed, jain: sum * sum / (shares.len() as f64 * squares) }
    }

    /// The mean of several.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |value: fn(&Self) -> f64| all.iter().map(value).sum::<f64>() / all.len() as f64;
        Self { megabits: mean(|r| r.megabits), failed: mean(|r| r.failed), jain: mean(|r| r.jain) }
    }
}

/// Saturated stations and their sink.
pub fn run(mut world: World, sink: RadioId, stations: &[RadioId], payload: u32, seconds: f64) -> Found {
    for &station in stations {
        world.saturate(at(0.0), station, sink, payload);
    }
    world.run(at(0.5));
    world.start_counting(at(0.5));
    world.run(at(0.5 + seconds));
    let span = Span::from_nanos((seconds * 1e9) as u64);
    let shares: Vec<f64> = stations.iter().map(|&station| world.goodput(station, sink, span)).collect();
    let counts = stations.iter().map(|&station| world.medium.counts(station));
    let (sent, lost) = counts.fold((0, 0), |(sent, lost), one| {
        if one.requests > 0 {
            (sent + one.requests, lost + one.requests_unanswered)
        } else {
            (sent + one.expected, lost + one.unanswered)
        }
    });
    Found::of(&shares, lost as f64 / sent as f64)
}

/// `n` stations and a sink, all of which hear each other with this power in dBm.
pub fn alike(settings: &RadioSettings, n: usize, dbm: f64, payload: u32, seconds: f64) -> Found {
    let mut matrix = Matrix::silent(n + 1);
    for (from, to) in (0..=n).flat_map(|from| (0..=n).map(move |to| (from, to))) {
        matrix.set(from, to, settings.power_dbm - dbm);
    }
    let mut world = World::new(1, Box::new(matrix));
    let radios: Vec<_> = (0..=n).map(|_| world.add(settings.clone(), 0.0, 0.0)).collect();
    run(world, radios[0], &radios[1..], payload, seconds)
}

/// Places of `n` stations at random in a square around their sink.
pub fn places(n: u32, side: f64, seed: u64) -> Vec<(f64, f64)> {
    let mut dice = Stream::named(seed, "places");
    let mut place = || side * (dice.unit() - 0.5);
    (0..n).map(|_| (place(), place())).collect()
}

/// Stations at these places, with their sink in the middle.
pub fn scattered(
    settings: &RadioSettings,
    places: &[(f64, f64)],
    payload: u32,
    seed: u64,
    seconds: f64,
) -> Found {
    let mut world = World::new(seed, reference_loss());
    let sink = world.add(settings.clone(), 0.0, 0.0);
    let stations: Vec<_> = places.iter().map(|&(x, y)| world.add(settings.clone(), x, y)).collect();
    run(world, sink, &stations, payload, seconds)
}
