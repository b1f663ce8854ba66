//! Airtime by weights: shares of slices with different rates and numbers of stations.

#![allow(clippy::cast_precision_loss)]

mod world;

use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::{NoiseSettings, Police, Policed, RadioChange, RadioId, RadioSettings};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at, at_rate, reference_loss};

/// A slice: weight, Mbit/s of its radios, and its pairs of a saturated sender and a receiver.
type Slice = (Option<u16>, f64, usize);

fn grant(slice: &str, airtime_weight: Option<u16>) -> Policed {
    Policed {
        slice: slice.to_owned(),
        channels: vec![36, 44],
        power_dbm: None,
        ssids: Vec::new(),
        airtime_weight,
        assigned: true,
        police: Police::Watch,
    }
}

/// Adds the pairs of a slice a metre apart, and saturates them from `from` seconds on.
fn add(world: &mut World, name: &str, slice: Slice, more: &RadioSettings, place: f64) -> Vec<RadioId> {
    let (weight, megabits, pairs) = slice;
    let settings = RadioSettings { rate: at_rate(megabits).rate, ..more.clone() };
    let mut radios = Vec::new();
    for pair in 0..pairs {
        let x = place + pair as f64 / 10.0;
        let ends = [0.0, 1.0].map(|y| world.add(settings.clone(), x, y));
        for radio in ends {
            world.medium.police(radio, &grant(name, weight)).expect("a grant");
        }
        radios.extend(ends);
    }
    radios
}

fn saturate(world: &mut World, seconds: f64, radios: &[RadioId]) {
    for pair in radios.chunks(2) {
        world.saturate(at(seconds), pair[0], pair[1], PAYLOAD);
    }
}

/// Time that the radios have transmitted so far, in seconds.
fn airtime(world: &World, radios: &[RadioId]) -> f64 {
    let uses = radios.iter().flat_map(|&radio| world.medium.uses(radio));
    uses.map(|used| used.sent.nanos() as f64 / 1e9).sum()
}

/// Seconds of airtime of each slice, all in range of each other, over so many seconds.
fn airtimes(slices: &[Slice], more: &RadioSettings, seconds: f64) -> Vec<f64> {
    let mut world = World::new(1, reference_loss());
    let mut place = 0.0;
    let radios: Vec<_> = slices
        .iter()
        .enumerate()
        .map(|(number, &slice)| {
            place += 1.0;
            add(&mut world, &format!("s{number}"), slice, more, place)
        })
        .collect();
    for radios in &radios {
        saturate(&mut world, 0.0, radios);
    }
    world.run(at(seconds));
    radios.iter().map(|radios| airtime(&world, radios)).collect()
}

/// Largest relative difference between the shares found and those of the weights.
fn largest_error(found: &[f64], weights: &[f64]) -> f64 {
    let (sum, all): (f64, f64) = (found.iter().sum(), weights.iter().sum());
    let errors = found.iter().zip(weights).map(|(found, weight)| (found / sum * all / weight - 1.0).abs());
    errors.fold(0.0, f64::max)
}

fn jain(found: &[f64]) -> f64 {
    let sum: f64 = found.iter().sum();
    sum * sum / (found.len() as f64 * found.iter().map(|one| one * one).sum::<f64>())
}

#[test]
fn without_weights_the_slow_slice_takes_most_of_the_airtime() {
    // The anomaly that the weights end: equal numbers of frames, not equal airtimes.
    let found = airtimes(&[(None, 6.0, 1), (None, 54.0, 1)], &at_rate(6.0), 10.0);
    assert!(found[0] / found[1] > 5.0, "{found:?}");
}

#[test]
fn equal_weights_give_a_slow_and_a_fast_slice_equal_airtime() {
    let found = airtimes(&[(Some(1), 6.0, 1), (Some(1), 54.0, 1)], &at_rate(6.0), 10.0);
    assert!(largest_error(&found, &[1.0, 1.0]) < 0.01, "{found:?}");
    assert!(jain(&found) > 0.9999, "{found:?}");
}

#[test]
fn numbers_of_stations_do_not_count() {
    let found = airtimes(&[(Some(1), 54.0, 1), (Some(1), 54.0, 6), (Some(1), 6.0, 3)], &at_rate(6.0), 10.0);
    assert!(largest_error(&found, &[1.0; 3]) < 0.02, "{found:?}");
}

#[test]
fn airtime_follows_the_weights() {
    for weights in [[1, 2], [1, 10], [300, 100]] {
        let slices = [(Some(weights[0]), 6.0, 2), (Some(weights[1]), 54.0, 1)];
        let found = airtimes(&slices, &at_rate(6.0), 10.0);
        let wanted = weights.map(f64::from);
        assert!(largest_error(&found, &wanted) < 0.02, "{found:?} of {weights:?}");
    }
}

#[test]
fn eight_equal_slices_are_fair() {
    let rates = [6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0];
    let slices: Vec<Slice> = rates.iter().map(|&rate| (Some(5), rate, 1)).collect();
    let found = airtimes(&slices, &at_rate(6.0), 10.0);
    assert!(jain(&found) > 0.999, "{found:?}");
}

#[test]
fn requests_fragments_and_bursts_count_like_data() {
    for more in [
        RadioSettings { rts_octets: Some(0), ..at_rate(6.0) },
        RadioSettings { fragment_octets: Some(400), ..at_rate(6.0) },
        RadioSettings { qos: true, ..at_rate(6.0) },
    ] {
        let found = airtimes(&[(Some(2), 54.0, 1), (Some(1), 6.0, 2)], &more, 10.0);
        assert!(largest_error(&found, &[2.0, 1.0]) < 0.02, "{found:?}: {more:?}");
    }
}

#[test]
fn retries_count() {
    // The first pair of each slice loses half of its frames.
    let mut world = World::new(1, reference_loss());
    let slices = [(Some(1), 54.0, 1), (Some(1), 54.0, 1)];
    let radios = [("one", slices[0], 1.0), ("two", slices[1], 2.0)]
        .map(|(name, slice, place)| add(&mut world, name, slice, &at_rate(6.0), place));
    world.medium.set_frame_error(radios[0][0], radios[0][1], 0.5);
    radios.iter().for_each(|radios| saturate(&mut world, 0.0, radios));
    world.start_counting(at(0.0));
    world.run(at(10.0));
    let found = radios.each_ref().map(|radios| airtime(&world, radios));
    assert!(largest_error(&found, &[1.0, 1.0]) < 0.01, "{found:?}");
    let goodput = |pair: &[RadioId]| world.goodput(pair[0], pair[1], Span::from_secs(10));
    assert!(goodput(&radios[0]) < 0.6 * goodput(&radios[1]));
}

#[test]
fn an_idle_slice_leaves_its_share_to_the_others_and_gets_no_credit() {
    let both = |second: f64| {
        let mut world = World::new(1, reference_loss());
        let one = add(&mut world, "one", (Some(1), 54.0, 1), &at_rate(6.0), 1.0);
        let two = add(&mut world, "two", (Some(9), 54.0, 1), &at_rate(6.0), 2.0);
        saturate(&mut world, 0.0, &one);
        world.run(at(second));
        let alone = airtime(&world, &one);
        saturate(&mut world, second, &two);
        world.run(at(second + 5.0));
        (alone, [airtime(&world, &one) - alone, airtime(&world, &two)])
    };
    let (alone, then) = both(5.0);
    let without = airtimes(&[(None, 54.0, 1)], &at_rate(6.0), 5.0)[0];
    assert!((alone / without - 1.0).abs() < 0.001, "{alone} s of {without} s");
    // The long time without the other is not held against the first slice.
    assert!(largest_error(&then, &[1.0, 9.0]) < 0.03, "{then:?}");
}

#[test]
fn hidden_terminals_get_their_shares() {
    // The senders do not hear each other, their receivers hear both.
    let mut world = World::new(1, reference_loss());
    let settings = |megabits| RadioSettings { rts_octets: Some(0), ..at_rate(megabits) };
    let mut pair = |name, weight, megabits, x: f64| {
        let ends = [x, x.signum()].map(|x| world.add(settings(megabits), x, 0.0));
        for radio in ends {
            world.medium.police(radio, &grant(name, Some(weight))).expect("a grant");
        }
        ends
    };
    let (one, two) = (pair("one", 1, 6.0, -28.0), pair("two", 2, 12.0, 28.0));
    let heard = world.medium.power_at(one[0], two[0]);
    assert!(heard < -82.0, "{heard} dBm");
    saturate(&mut world, 0.0, &one);
    saturate(&mut world, 0.0, &two);
    world.run(at(20.0));
    let found = [airtime(&world, &one), airtime(&world, &two)];
    assert!(largest_error(&found, &[1.0, 2.0]) < 0.03, "{found:?}");
}

#[test]
fn a_slice_that_cannot_transmit_does_not_stop_the_others() {
    let mut world = World::new(1, reference_loss());
    let one = add(&mut world, "one", (Some(1), 6.0, 1), &at_rate(6.0), 0.0);
    let two = add(&mut world, "two", (Some(1), 54.0, 1), &at_rate(6.0), 400.0);
    // Noise at the first slice keeps its channel busy for ever.
    let noise = NoiseSettings {
        power_dbm: 10.0,
        band_hz: [5.17e9, 5.19e9],
        from_ns: 0,
        until_ns: None,
        burst_ns: None,
    };
    world.medium.add_noise(noise, Box::new(Static(Position::new(0.0, 2.0, 0.0)))).expect("valid");
    saturate(&mut world, 0.0, &one);
    saturate(&mut world, 0.0, &two);
    world.run(at(10.0));
    let without = airtimes(&[(None, 54.0, 1)], &at_rate(6.0), 10.0)[0];
    let found = [airtime(&world, &one), airtime(&world, &two)];
    assert!(found[0] < 1e-9 && found[1] > 0.94 * without, "{found:?} of {without}");
}

#[test]
fn a_slice_that_leaves_the_channel_or_is_turned_off_stops_nobody() {
    for leaves in [RadioChange::Channel(44), RadioChange::On(false)] {
        let mut world = World::new(1, reference_loss());
        let one = add(&mut world, "one", (Some(9), 6.0, 1), &at_rate(6.0), 1.0);
        let two = add(&mut world, "two", (Some(1), 54.0, 1), &at_rate(6.0), 2.0);
        saturate(&mut world, 0.0, &one);
        saturate(&mut world, 0.0, &two);
        world.run(at(2.0));
        let before = airtime(&world, &two);
        for &radio in &one {
            world.medium.change(radio, &leaves, &mut world.sinks);
        }
        world.sources.retain(|source| source.from != one[0]);
        world.run(at(4.0));
        let alone = airtimes(&[(None, 54.0, 1)], &at_rate(6.0), 2.0)[0];
        let found = airtime(&world, &two) - before;
        assert!((found / alone - 1.0).abs() < 0.01, "{found} s of {alone} s after {leaves:?}");
    }
}

#[test]
fn a_weight_out_of_range_is_refused() {
    let mut world = World::new(1, reference_loss());
    let radio = world.add(at_rate(6.0), 0.0, 0.0);
    for weight in [0, 1001] {
        let error = world.medium.police(radio, &grant("one", Some(weight))).expect_err("1 to 1000");
        assert!(error.to_string().contains("airtime_weight"), "{error}");
    }
}
