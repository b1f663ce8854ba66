//! Rate control of 802.11n: what it finds at each distance, beside the best fixed scheme.

mod aggregates;
mod world;

use airloom_engine::medium::{RadioSettings, RateSettings};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at, reference_loss};

/// Mbit/s of a saturated flow over this distance in metres.
fn carried(distance: f64, rate: RateSettings, streams: u8, frames: u8) -> f64 {
    let streams = matches!(rate, RateSettings::Minstrel).then_some(streams);
    let mut world = World::new(1, reference_loss());
    let settings = RadioSettings {
        receive_dbm: -101.0,
        preamble_db: None,
        rate,
        streams,
        ..aggregates::settings(0, frames)
    };
    let (a, b) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings, distance, 0.0));
    (0..15).for_each(|_| world.saturate(at(0.0), a, b, PAYLOAD));
    world.run(at(3.0));
    world.start_counting(at(3.0));
    world.run(at(6.0));
    world.goodput(a, b, Span::from_millis(3000))
}

#[test]
fn rate_control_finds_what_the_distance_allows() {
    for (streams, frames) in [(1, 1), (2, 1), (1, 32), (2, 32), (4, 32)] {
        let mut before = f64::INFINITY;
        for distance in [3.0, 15.0, 30.0, 45.0, 60.0, 80.0] {
            let fixed = |mcs| carried(distance, RateSettings::Mcs(mcs), streams, frames);
            let ideal = (0..8 * streams).map(fixed).fold(0.0, f64::max);
            let found = carried(distance, RateSettings::Minstrel, streams, frames);
            let case = format!("{streams} streams, {frames} frames, {distance} m: {found:.2} of {ideal:.2}");
            assert!(ideal > 1.0, "{case}");
            // A mix of schemes cannot exceed the best one; 3 % for random variation on a slope.
            assert!((0.8 * ideal..1.03 * ideal).contains(&found), "{case}");
            assert!(found < 1.05 * before, "more than nearer: {case}");
            before = found;
        }
    }
}

#[test]
fn no_more_streams_are_used_than_set() {
    let ideal = carried(3.0, RateSettings::Mcs(7), 1, 32);
    for (streams, most) in [(1, 1.03), (2, 2.0)] {
        let found = carried(3.0, RateSettings::Minstrel, streams, 32) / ideal;
        assert!((most - 0.2..=most).contains(&found), "{streams}: {found:.2} of MCS 7");
    }
}
