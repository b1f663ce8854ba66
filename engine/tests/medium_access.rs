//! Edge cases of medium access and reception: inter-frame spaces, NAV, preambles, range of rates.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::propagation::Matrix;
use airloom_engine::medium::{RadioId, RadioSettings, RateSettings};
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

const POWER: f64 = 16.0;

/// Pairs of radios that receive each other at the given power in dBm and without delay.
fn heard(seed: u64, settings: &[RadioSettings], pairs: &[(usize, usize, f64)]) -> (World, Vec<RadioId>) {
    let mut matrix = Matrix::silent(settings.len());
    for &(a, b, dbm) in pairs {
        matrix.set(a, b, POWER - dbm);
        matrix.set(b, a, POWER - dbm);
    }
    let mut world = World::new(seed, Box::new(matrix));
    let radios = settings.iter().map(|each| world.add(each.clone(), 0.0, 0.0)).collect();
    (world, radios)
}

fn later(start: Instant, micros: u64) -> Instant {
    start + Span::from_micros(micros)
}

/// A frame of 1534 octets at 6 Mbit/s after RTS/CTS: RTS, CTS and frame in us.
const REQUEST: u64 = 52;
const CLEARANCE: u64 = 44;
const SIFS: u64 = 16;
const DATA: u64 = 2072;
/// From the start of the RTS to the end of the frame.
const ANNOUNCED: u64 = REQUEST + SIFS + CLEARANCE + SIFS + DATA;
/// 100 octets of UDP payload are 164 on the air.
const SHORT: u64 = 20 + 4 * 56;

/// Whole slots between `from` and the start of the only frame from the third radio to the fourth.
fn slots_after(world: &World, from: Instant) -> u64 {
    let arrivals: Vec<_> = world.sinks.arrivals.iter().filter(|seen| seen.0.number() == 3).collect();
    let [(_, _, arrival)] = arrivals[..] else { panic!("{arrivals:?}") };
    let begun = arrival.nanos() - Span::from_micros(SHORT).nanos();
    let waited = begun.checked_sub(from.nanos()).expect("it waits for the space");
    assert_eq!(waited % 9_000, 0, "{waited} ns are no whole number of slots");
    waited / 9_000
}

#[test]
fn the_extended_space_runs_while_the_channel_is_reserved() {
    // The third radio receives the RTS and so the reservation, then a corrupted frame, and neither
    // CTS nor acknowledgment. The reservation ends 60 us after the frame.
    let announcing = RadioSettings { rts_octets: Some(0), ..at_rate(6.0) };
    let settings = [announcing, at_rate(6.0), at_rate(6.0), at_rate(6.0)];
    let pairs = [(0, 1, -50.0), (0, 2, -50.0), (2, 3, -50.0)];
    let mut drawn = Vec::new();
    for seed in 0..20 {
        let (mut world, radios) = heard(seed, &settings, &pairs);
        world.sinks.keep_arrivals = true;
        let start = at(1.0);
        world.offer(start, radios[0], Some(radios[1]), PAYLOAD);
        world.run(later(start, REQUEST + SIFS));
        world.medium.set_frame_error(radios[0], radios[2], 1.0);
        world.run(later(start, 1_000));
        world.offer(later(start, 1_000), radios[2], Some(radios[3]), 100);
        world.run(at(2.0));
        // 94 us from the idle channel: SIFS, an acknowledgment at 6 Mbit/s, DIFS.
        drawn.push(slots_after(&world, later(start, ANNOUNCED + 94)));
    }
    assert!(drawn.iter().all(|&slots| slots <= 15) && drawn.contains(&0), "{drawn:?}");
}

#[test]
fn a_reservation_that_outlasts_the_extended_space_is_followed_by_the_plain_one() {
    // The third radio receives only the CTS and, while the channel is reserved, a corrupted frame
    // of a fifth radio. The frame after the CTS is lost, so that it is not acknowledged.
    let announcing = RadioSettings { rts_octets: Some(0), short_retries: 1, long_retries: 1, ..at_rate(6.0) };
    let settings = [announcing, at_rate(6.0), at_rate(6.0), at_rate(6.0), at_rate(6.0)];
    let pairs = [(0, 1, -50.0), (1, 2, -50.0), (2, 3, -50.0), (2, 4, -50.0)];
    let mut drawn = Vec::new();
    for seed in 0..20 {
        let (mut world, radios) = heard(seed, &settings, &pairs);
        world.sinks.keep_arrivals = true;
        world.medium.set_frame_error(radios[4], radios[2], 1.0);
        let start = at(1.0);
        world.offer(start, radios[0], Some(radios[1]), PAYLOAD);
        world.run(later(start, REQUEST + SIFS));
        world.medium.set_frame_error(radios[0], radios[1], 1.0);
        world.run(later(start, 500));
        world.offer(later(start, 500), radios[4], None, 100);
        world.run(later(start, 600));
        world.offer(later(start, 600), radios[2], Some(radios[3]), 100);
        world.run(at(2.0));
        let reserved = later(start, ANNOUNCED + SIFS + CLEARANCE);
        drawn.push(slots_after(&world, reserved + Span::from_micros(34)));
    }
    assert!(drawn.iter().all(|&slots| slots <= 15) && drawn.contains(&0), "{drawn:?}");
}

/// True if the stronger of two frames is received when it begins `micros` after the weaker one.
fn stronger_received(settings: &RadioSettings, stronger_db: f64, micros: u64) -> bool {
    let all = [settings.clone(), settings.clone(), settings.clone()];
    let (mut world, radios) = heard(1, &all, &[(0, 1, -60.0), (2, 1, -60.0 + stronger_db)]);
    world.offer(at(1.0), radios[0], Some(radios[1]), PAYLOAD);
    world.run(later(at(1.0), micros));
    world.offer(later(at(1.0), micros), radios[2], None, 100);
    world.run(at(2.0));
    world.sinks.tallies.contains_key(&(2, 1))
}

#[test]
fn preambles_compete_while_a_receiver_looks_for_a_signal() {
    // Six dB are enough for a preamble and too few for a later capture. The detection time of a
    // physical layer is 4 us or 15 us.
    let spread = |phy: &str| RadioSettings { phy: phy.into(), channel: 1, ..at_rate(1.0) };
    for (settings, found, missed) in [
        (at_rate(6.0), 3, 5),
        (RadioSettings { phy: "802.11g".into(), channel: 1, ..at_rate(6.0) }, 3, 5),
        (spread("802.11b"), 14, 16),
        (spread("802.11b-short"), 14, 16),
    ] {
        assert!(stronger_received(&settings, 6.0, found), "{}", settings.phy);
        assert!(!stronger_received(&settings, 6.0, missed), "{}", settings.phy);
    }
}

#[test]
fn a_frame_is_left_for_a_stronger_one_within_the_window_alone() {
    for (capture_ns, early, late) in [
        (None, true, true),
        (Some(16_000), true, false),
        (Some(600_000), true, true),
        (Some(0), false, false),
    ] {
        let settings = RadioSettings { capture_ns, ..at_rate(6.0) };
        assert_eq!(stronger_received(&settings, 20.0, 10), early, "{capture_ns:?}");
        assert_eq!(stronger_received(&settings, 20.0, 500), late, "{capture_ns:?}");
    }
}

#[test]
fn sampling_carries_at_the_edge_of_range_what_the_lowest_rate_does() {
    let carried = |distance: f64, rate: RateSettings, seed: u64| {
        let mut world = World::new(seed, reference_loss());
        let settings = RadioSettings { receive_dbm: -101.0, preamble_db: None, rate, ..at_rate(6.0) };
        let (a, b) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings, distance, 0.0));
        world.saturate(at(0.0), a, b, PAYLOAD);
        world.run(at(2.0));
        world.start_counting(at(2.0));
        world.run(at(22.0));
        world.goodput(a, b, Span::from_secs(20))
    };
    // At least half of the frames are lost, and only the lowest rate has any throughput.
    for distance in [98.0, 99.0, 100.0, 101.0] {
        let mean = |rate: &RateSettings| {
            [1, 2, 3].map(|seed| carried(distance, rate.clone(), seed)).iter().sum::<f64>() / 3.0
        };
        let [lowest, next] = [6, 9].map(|megabits| mean(&RateSettings::Constant(megabits * 1_000_000)));
        let found = mean(&RateSettings::Minstrel);
        println!("{distance} m: {found:.3} of {lowest:.3} Mbit/s, at 9 Mbit/s {next:.3}");
        assert!(lowest > 0.3 && next < 0.05 * lowest, "{distance} m: {lowest:.3} and {next:.3}");
        assert!(found >= 0.9 * lowest, "{distance} m: {found:.3} of {lowest:.3} Mbit/s");
    }
}
