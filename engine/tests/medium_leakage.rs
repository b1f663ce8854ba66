//! Leakage between channels of the 5 GHz band: two flows on neighbouring nodes.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::propagation::Matrix;
use airloom_engine::medium::{LeakageSettings, RadioId, RadioSettings};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at, at_rate};

const POWER: f64 = 16.0;
/// Mbit/s of one saturated sender at 36 Mbit/s (`reference/`, and `medium_scenes.rs`).
const ALONE: f64 = 23.081;
/// The same of two senders that hear each other, together.
const SHARED: f64 = 22.947;

fn flow(world: &World, ends: (RadioId, RadioId)) -> f64 {
    world.goodput(ends.0, ends.1, Span::from_nanos(10_000_000_000))
}

/// Mbit/s of two flows with these channels. Sender and receiver of a flow hear each other at
/// -50 dBm, and every radio hears those of the other flow at `across` dBm before the filter.
fn two_flows(channels: [u16; 2], across: f64, leakage: Option<LeakageSettings>) -> [f64; 2] {
    let mut loss = Matrix::silent(4);
    for (a, b) in [(0, 1), (2, 3), (0, 2), (0, 3), (1, 2), (1, 3)] {
        let dbm = if a / 2 == b / 2 { -50.0 } else { across };
        loss.set(a, b, POWER - dbm);
        loss.set(b, a, POWER - dbm);
    }
    let mut world = World::new(1, Box::new(loss));
    if let Some(leakage) = leakage {
        world.medium.set_leakage(leakage.build().expect("in range"));
    }
    let mut on = |channel| world.add(RadioSettings { channel, ..at_rate(36.0) }, 0.0, 0.0);
    let ends = channels.map(|channel| (on(channel), on(channel)));
    for (from, to) in ends {
        world.saturate(at(0.0), from, to, PAYLOAD);
    }
    world.run(at(0.2));
    world.start_counting(at(0.2));
    world.run(at(10.2));
    ends.map(|ends| flow(&world, ends))
}

fn near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.01
}

#[test]
fn without_it_channels_are_orthogonal_at_any_power() {
    for flow in two_flows([36, 40], 0.0, None) {
        assert!(near(flow, ALONE), "{flow}");
    }
}

#[test]
fn what_leaks_above_the_energy_threshold_makes_the_channels_one() {
    // -38 - 23 = -61 dBm is above the -62 dBm at which the channel is busy, -40 - 23 is below. The
    // interference is weaker than the signal by 11 dB then: too strong for 36 Mbit/s.
    let leakage = Some(LeakageSettings::default());
    let [one, other] = two_flows([36, 40], -38.0, leakage);
    // Two senders that sense each other's energy take turns; they defer less exactly than after a
    // decoded frame, whose duration field they know.
    assert!(one + other < 1.05 * SHARED, "{one} + {other}");
    assert!(one + other > 0.5 * SHARED, "{one} + {other}");
    let collided: f64 = two_flows([36, 40], -40.0, leakage).iter().sum();
    assert!(collided < ALONE, "{collided}");
}

#[test]
fn the_further_channel_needs_16_db_more() {
    let leakage = Some(LeakageSettings::default());
    // -70 - 23 = -93 dBm is below the noise, as is -54 - 39.
    for (channels, across) in [([36, 40], -70.0), ([36, 44], -54.0), ([36, 64], -54.0)] {
        for flow in two_flows(channels, across, leakage) {
            assert!(near(flow, ALONE), "{channels:?}: {flow}");
        }
    }
    // The same power on the adjacent channel is 16 dB stronger there.
    let harmed: f64 = two_flows([36, 40], -45.0, leakage).iter().sum();
    let whole: f64 = two_flows([36, 44], -45.0, leakage).iter().sum();
    assert!(harmed < whole, "{harmed} and {whole}");
    assert!(near(whole, 2.0 * ALONE), "{whole}");
}

#[test]
fn antennas_of_one_place_have_a_loss_of_their_own() {
    let run = |isolation| {
        let mut world = World::new(1, world::reference_loss());
        world.medium.set_leakage(LeakageSettings::default().build().expect("in range"));
        world.medium.set_antenna_isolation(isolation);
        let mut on = |channel, x| world.add(RadioSettings { channel, ..at_rate(36.0) }, x, 0.0);
        // Both senders are one node with two radios; the receivers are 10 m away on either side.
        let ends = [(on(36, 0.0), on(36, 10.0)), (on(40, 0.0), on(40, -10.0))];
        for (from, to) in ends {
            world.saturate(at(0.0), from, to, PAYLOAD);
        }
        world.run(at(0.2));
        world.start_counting(at(0.2));
        world.run(at(10.2));
        ends.iter().map(|&ends| flow(&world, ends)).sum::<f64>()
    };
    // 16 - 50 - 23 = -57 dBm: each sender waits for the other. Its acknowledgment comes from 10 m and
    // is too weak to be sensed, so that a little time is used twice.
    let coupled = run(Some(50.0));
    assert!((SHARED..1.1 * SHARED).contains(&coupled), "{coupled}");
    // 16 - 120 - 23 dBm is nothing; acknowledgments arrive in spite of the other sender.
    let apart = run(Some(120.0));
    assert!(apart > 1.9 * ALONE, "{apart}");
}
