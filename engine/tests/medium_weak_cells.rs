//! Cells whose members hear each other below the energy detection threshold.

#![allow(clippy::cast_precision_loss)]

mod cells;
mod world;

use airloom_engine::medium::RadioSettings;
use cells::{Found, alike, places, scattered};
use world::{PAYLOAD, at_rate};

#[test]
fn a_cell_carries_the_same_at_any_power_above_the_sensitivity() {
    // 24 Mbit/s; a slot-exact simulator: what all sense as busy, and nobody waits for EIFS.
    for (n, megabits, failed) in [(5, 15.91, 0.258), (10, 14.83, 0.368), (20, 13.57, 0.473)] {
        for dbm in [-50.0, -66.0, -70.0, -75.0] {
            let found = alike(&at_rate(24.0), n, dbm, PAYLOAD, 10.0);
            assert!(
                (found.megabits / megabits - 1.0).abs() < 0.015 && (found.failed - failed).abs() < 0.01,
                "{n} stations at {dbm} dBm: {found:?} against {megabits}, {failed}"
            );
        }
    }
}

#[test]
fn a_cell_whose_receivers_follow_a_preamble_in_any_case_waits_for_eifs_at_any_power() {
    let settings = RadioSettings { preamble_db: None, ..at_rate(24.0) };
    for dbm in [-50.0, -66.0, -70.0, -75.0] {
        let found = alike(&settings, 20, dbm, PAYLOAD, 10.0);
        assert!(
            (found.megabits / 13.24 - 1.0).abs() < 0.015 && (found.failed - 0.474).abs() < 0.01,
            "{dbm} dBm: {found:?}"
        );
    }
}

#[test]
fn preambles_that_none_detects_alone_keep_no_channel_busy() {
    // Below the sensitivity nobody hears anybody: every frame that meets another one is lost.
    let found = alike(&RadioSettings { receive_dbm: -69.0, ..at_rate(24.0) }, 5, -70.0, PAYLOAD, 2.0);
    assert!(found.megabits < 0.01, "{found:?}");
}

#[test]
fn stations_at_random_places_share_as_with_a_low_energy_threshold() {
    // The same places with an energy threshold as low as the sensitivity, where nothing that can be
    // received goes unnoticed.
    for (n, side, megabits, failed, jain) in [(20, 30.0, 14.87, 0.420, 0.65), (40, 40.0, 14.05, 0.508, 0.46)]
    {
        let mean = |settings: &RadioSettings| {
            let one = |seed| scattered(settings, &places(n, side, seed), PAYLOAD, seed, 5.0);
            Found::mean(&(1..=4).map(one).collect::<Vec<_>>())
        };
        let found = mean(&at_rate(24.0));
        let low = mean(&RadioSettings { carrier_sense_dbm: Some(-82.0), ..at_rate(24.0) });
        println!("{n} in {side} m: {found:?}, {low:?}");
        assert!((found.megabits / low.megabits - 1.0).abs() < 0.02, "{found:?} {low:?}");
        assert!(
            (found.failed - low.failed).abs() < 0.02 && (found.jain - low.jain).abs() < 0.05,
            "{found:?} {low:?}"
        );
        // Other places than those of the reference.
        assert!((found.megabits / megabits - 1.0).abs() < 0.05, "{found:?}");
        assert!((found.failed - failed).abs() < 0.05 && (found.jain - jain).abs() < 0.15, "{found:?}");
    }
}
