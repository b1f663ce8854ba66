//! Time slots: shares of saturated senders, the end of windows, and frames that do not fit.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::{RadioId, RadioSettings, SlotSettings};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at, at_rate, reference_loss};

const MS: u64 = 1_000_000;
const GUARD: u64 = 100_000;
/// Mbit/s of one saturated sender at 36 Mbit/s.
const ALONE: f64 = 23.081;
/// Length of an exchange: 364 us of data, SIFS of 16 us, 28 us of acknowledgment.
const EXCHANGE: u64 = 408_000;
/// Mean time from one exchange to the next: DIFS of 34 us and 7.5 slots of 9 us in addition.
const CYCLE: u64 = EXCHANGE + 34_000 + 67_500;

fn slots(frame: u16, length_ns: u64, own: &[u16]) -> Option<SlotSettings> {
    Some(SlotSettings { frame, length_ns, guard_ns: GUARD, own: own.to_vec(), hold: true })
}

/// Saturated pairs on one channel, all in range of each other: one for each set of slots.
fn pairs(
    world: &mut World,
    tables: &[Option<SlotSettings>],
    more: &RadioSettings,
) -> Vec<(RadioId, RadioId)> {
    let mut x = 0.0;
    let mut place = || {
        x += 0.5;
        x
    };
    let pairs: Vec<_> = tables
        .iter()
        .map(|slots| {
            let settings = RadioSettings { slots: slots.clone(), ..more.clone() };
            (world.add(settings.clone(), place(), 0.0), world.add(settings, place(), 0.0))
        })
        .collect();
    for &(from, to) in &pairs {
        world.saturate(at(0.0), from, to, PAYLOAD);
    }
    pairs
}

/// Mbit/s of each pair over so many seconds.
fn flows(tables: &[Option<SlotSettings>], seconds: f64) -> Vec<f64> {
    let mut world = World::new(1, reference_loss());
    let pairs = pairs(&mut world, tables, &at_rate(36.0));
    world.start_counting(at(0.0));
    world.run(at(seconds));
    pairs
        .iter()
        .map(|&(from, to)| world.goodput(from, to, Span::from_nanos((seconds * 1e9) as u64)))
        .collect()
}

/// Mbit/s of a sender with one window of this length in a frame of that length. The rest of a window
/// in which no exchange fits is half a cycle long on average, less the space before an exchange
/// that does not count as a part of it.
fn expected(window: u64, frame: u64) -> f64 {
    let cycles = (window - GUARD) as f64 / CYCLE as f64;
    ALONE * (cycles - EXCHANGE as f64 / CYCLE as f64 + 0.5) * CYCLE as f64 / frame as f64
}

#[test]
fn equal_slices_have_equal_shares() {
    let tables: Vec<_> = (0..4).map(|own| slots(4, 10 * MS, &[own])).collect();
    let found = flows(&tables, 20.0);
    let sum: f64 = found.iter().sum();
    let jain = sum * sum / (4.0 * found.iter().map(|flow| flow * flow).sum::<f64>());
    assert!(jain > 0.999, "{found:?}");
    for flow in found {
        let wanted = expected(10 * MS, 40 * MS);
        assert!((flow / wanted - 1.0).abs() < 0.02, "{flow} of {wanted}");
    }
}

#[test]
fn shares_are_those_of_the_slot_table() {
    // Adjacent slots are one window, with one guard: 1, 2 and 5 of 8 slots.
    let found = flows(
        &[slots(8, 100 * MS, &[0]), slots(8, 100 * MS, &[1, 2]), slots(8, 100 * MS, &[3, 4, 5, 6, 7])],
        80.0,
    );
    let sum: f64 = found.iter().sum();
    for (flow, share) in found.iter().zip([1.0, 2.0, 5.0]) {
        assert!((flow / sum - share / 8.0).abs() < 0.01 * share / 8.0, "{found:?}");
    }
}

#[test]
fn no_transmission_is_outside_of_its_window() {
    let length = 5 * MS;
    let mut world = World::new(1, reference_loss());
    let tables = [slots(3, length, &[0]), slots(3, length, &[2])];
    let pairs = pairs(&mut world, &tables, &at_rate(36.0));
    world.sinks.keep_arrivals = true;
    world.run(at(5.0));
    let arrivals = std::mem::take(&mut world.sinks.arrivals);
    assert!(arrivals.len() > 3_000, "{}", arrivals.len());
    for (radio, frame, at) in arrivals {
        let own = if pairs[0].1 == radio { 0 } else { 2 };
        let offset = at.nanos() % (3 * length);
        let began = offset - 364_000;
        let ends = offset + 16_000 + 28_000;
        assert!(began >= own * length + 34_000, "{began} of {own}");
        // The propagation delays are some nanoseconds.
        assert!(ends <= (own + 1) * length - GUARD + 100, "{ends} of {own}");
        world.sinks.pool.release(frame.buffer);
    }
}

#[test]
fn a_frame_that_fits_into_no_window_waits_and_a_short_one_passes() {
    let mut world = World::new(1, reference_loss());
    let settings = RadioSettings { slots: slots(10, 300_000, &[4]), ..at_rate(36.0) };
    let (from, to) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings, 1.0, 0.0));
    world.start_counting(at(0.0));
    world.offer(at(0.0), from, Some(to), 100);
    world.offer(at(0.0), from, Some(to), PAYLOAD);
    world.run(at(1.0));
    assert_eq!(world.sinks.delivered, 1, "408 us do not fit into 200 us");
    let tally = world.sinks.tallies[&(from.number(), to.number())];
    // It waits for another frame if its backoff takes too much of a window.
    assert!((1_234_000..1_400_000).contains(&(tally.longest % 3_000_000)), "{} ns", tally.longest);
}

#[test]
fn fragments_requests_and_bursts_end_with_the_window() {
    let cases = [
        RadioSettings { fragment_octets: Some(400), ..at_rate(36.0) },
        RadioSettings { rts_octets: Some(0), ..at_rate(36.0) },
        RadioSettings { qos: true, ..at_rate(36.0) },
    ];
    for more in cases {
        let length = 4 * MS;
        let mut world = World::new(1, reference_loss());
        let tables = [slots(2, length, &[0]), slots(2, length, &[1])];
        let pairs = pairs(&mut world, &tables, &more);
        world.sinks.keep_arrivals = true;
        world.run(at(2.0));
        let arrivals = std::mem::take(&mut world.sinks.arrivals);
        assert!(arrivals.len() > 1_000, "{}: {more:?}", arrivals.len());
        for (radio, frame, at) in arrivals {
            let own = u64::from(pairs[0].1 != radio);
            let ends = at.nanos() % (2 * length) + 16_000 + 28_000;
            assert!(ends > own * length && ends <= (own + 1) * length - GUARD + 100, "{ends}: {more:?}");
            world.sinks.pool.release(frame.buffer);
        }
    }
}

#[test]
fn one_slice_with_slots_leaves_the_others_of_the_channel_alone() {
    // The one without slots contends in the window of the other, and is alone outside.
    let found = flows(&[slots(2, 10 * MS, &[0]), None], 20.0);
    assert!((found[0] / ALONE - 0.24).abs() < 0.02, "{found:?}");
    assert!((found[1] / ALONE - 0.75).abs() < 0.02, "{found:?}");
}

#[test]
fn a_slot_table_that_cannot_be_is_refused() {
    let mut world = World::new(1, reference_loss());
    let settings = RadioSettings { slots: slots(4, MS, &[4]), ..RadioSettings::default() };
    let place = airloom_engine::medium::mobility::Static(airloom_engine::medium::mobility::Position::new(
        0.0, 0.0, 0.0,
    ));
    let error = world.medium.add_radio("a", settings, Box::new(place)).expect_err("no slot 4");
    assert!(error.to_string().contains("slots.own"), "{error}");
}
