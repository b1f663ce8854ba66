//! A medium without channel access: exact times, loss by distance, movement.

#![allow(clippy::cast_precision_loss)]

mod world;

use airloom_engine::DropReason;
use airloom_engine::medium::mobility::{ConstantVelocity, Position};
use airloom_engine::medium::propagation::Friis;
use airloom_engine::medium::{
    AccessSettings, MediumSettings, Membership, RadioChange, RadioId, RadioSettings, RateSettings, Roaming,
};
use airloom_engine::time::{Instant, Span};
use world::{HEADERS, World, at};

/// Octets of payload of a full Ethernet frame, 1514 octets.
const FULL: u32 = 1514 - HEADERS;
/// Metres that light travels in a microsecond.
const MICROSECOND: f64 = 299.792_458;

fn air(loss: &[(f64, f64)], overhead_octets: u32) -> World {
    let mut world = World::new(1, Box::new(Friis));
    let access = AccessSettings::None { loss: loss.to_vec(), overhead_octets };
    world.medium.set_access(&access).expect("in range");
    world.sinks.keep_arrivals = true;
    world
}

fn radio(bits_per_second: u64) -> RadioSettings {
    RadioSettings {
        rate: RateSettings::Unmodulated(bits_per_second),
        tail_drop: 100_000,
        ..Default::default()
    }
}

fn arrivals(world: &World, to: RadioId) -> Vec<u64> {
    let arrivals = world.sinks.arrivals.iter();
    arrivals.filter(|(radio, ..)| *radio == to).map(|(_, _, at)| at.nanos()).collect()
}

#[test]
fn frames_take_their_time_at_the_rate_and_that_of_light() {
    let mut world = air(&[(1000.0, 0.0)], 0);
    let (a, b) = (world.add(radio(11_000_000), 0.0, 0.0), world.add(radio(11_000_000), MICROSECOND, 0.0));
    (0..11_000).for_each(|_| world.offer(Instant::ZERO, a, Some(b), FULL));
    world.run(at(20.0));
    let arrived = arrivals(&world, b);
    // 1514 * 8 / 11e6 s is 1 101 090 + 10/11 ns, rounded up; eleven of them are whole nanoseconds.
    assert_eq!(arrived[..3], [1_102_091, 2_203_182, 3_304_273]);
    assert_eq!(arrived[10_999], 11_000 * 12_112_000 / 11 + 1000, "no rounding adds up");
    // After a pause it starts anew.
    world.offer(at(20.0), a, Some(b), FULL);
    world.run(at(21.0));
    assert_eq!(arrivals(&world, b)[11_000], 20_000_000_000 + 1_102_091);
}

#[test]
fn every_sender_has_its_own_rate_and_nothing_collides() {
    let mut world = air(&[(1000.0, 0.0)], 0);
    let middle = world.add(radio(22_000_000), 0.0, 0.0);
    let left = world.add(radio(11_000_000), -MICROSECOND / 10.0, 0.0);
    let right = world.add(radio(5_500_000), MICROSECOND / 10.0, 0.0);
    for _ in 0..110 {
        world.offer(Instant::ZERO, left, Some(middle), FULL);
        world.offer(Instant::ZERO, right, Some(middle), FULL);
        world.offer(Instant::ZERO, middle, Some(left), FULL);
    }
    world.run(at(10.0));
    assert_eq!(world.sinks.drops.len(), 0);
    let last = |from: RadioId| {
        let all = world.sinks.arrivals.iter().filter(|(_, frame, _)| frame.origin == from.number());
        all.map(|(_, _, at)| at.nanos()).next_back().expect("an arrival")
    };
    assert_eq!(last(left), 110 * 12_112_000 / 11 + 100);
    assert_eq!(last(right), 2 * 110 * 12_112_000 / 11 + 100);
    assert_eq!(last(middle), 110 * 12_112_000 / 22 + 100);
    let idle = world.medium.airtime(right, at(10.0));
    assert_eq!(idle.transmitting, Span::from_nanos(2 * 110 * 12_112_000 / 11));
    assert_eq!(idle.receiving, Span::ZERO);
}

#[test]
fn overhead_and_a_change_of_the_rate_count_from_the_next_frame() {
    let mut world = air(&[(1000.0, 0.0)], 36);
    let (a, b) = (world.add(radio(10_000_000), 0.0, 0.0), world.add(radio(10_000_000), 0.0, 0.0));
    (0..2).for_each(|_| world.offer(Instant::ZERO, a, Some(b), FULL));
    world.run(at(0.001));
    let change = RadioChange::Rate(RateSettings::Unmodulated(1_000_000));
    world.medium.change(a, &change, &mut world.sinks);
    world.run(at(1.0));
    assert_eq!(arrivals(&world, b), [1_240_000, 1_240_000 + 12_400_000]);
}

/// Share of frames lost between two radios, and the standard deviation of a binomial share.
fn lost(metres: f64, of_pair: f64, expected: f64) -> (f64, f64) {
    const FRAMES: u32 = 20_000;
    let mut world = air(&[(100.0, 0.1), (200.0, 0.5), (300.0, 0.9)], 0);
    let (a, b) = (world.add(radio(11_000_000), 0.0, 0.0), world.add(radio(11_000_000), metres, 0.0));
    world.medium.set_frame_error(a, b, of_pair);
    (0..FRAMES).for_each(|_| world.offer(Instant::ZERO, a, Some(b), 100));
    world.run(at(30.0));
    let dropped = world.sinks.drops.get(&DropReason::RandomLoss).copied().unwrap_or(0);
    assert_eq!(world.sinks.arrivals.len() as u64 + dropped, u64::from(FRAMES));
    let counts = world.medium.counts(b);
    assert_eq!((counts.broken, counts.received), (dropped, u64::from(FRAMES) - dropped));
    let sigma = (expected * (1.0 - expected) / f64::from(FRAMES)).sqrt();
    (dropped as f64 / f64::from(FRAMES), sigma)
}

#[test]
fn loss_is_binomial_with_the_probability_of_the_distance() {
    for (metres, of_pair, expected) in [
        (10.0, 0.0, 0.1),
        (100.0, 0.0, 0.1),
        (150.0, 0.0, 0.3),
        (200.0, 0.0, 0.5),
        (275.0, 0.0, 0.8),
        (300.0, 0.0, 0.9),
        (150.0, 0.5, 1.0 - 0.7 * 0.5),
    ] {
        let (found, sigma) = lost(metres, of_pair, expected);
        assert!((found - expected).abs() < 4.0 * sigma, "{metres} m: {found}, not {expected}");
    }
}

#[test]
fn loss_follows_a_node_that_moves() {
    let mut world = air(&[(150.0, 0.0), (250.0, 1.0)], 0);
    let (a, b) = (world.add(radio(11_000_000), 0.0, 0.0), world.add(radio(11_000_000), 100.0, 0.0));
    let away =
        ConstantVelocity { start: Position::new(100.0, 0.0, 0.0), velocity: Position::new(10.0, 0.0, 0.0) };
    world.medium.set_mobility(b, Box::new(away)).expect("a position");
    // In 20 s from 100 m to 300 m: 0 up to 5 s, rising to 1 at 15 s.
    for frame in 0..20_000_u32 {
        let now = at(f64::from(frame) * 1e-3);
        world.run(now);
        world.offer(now, a, Some(b), 100);
    }
    world.run(at(30.0));
    let mut by_second = [0_u32; 20];
    for (_, frame, _) in &world.sinks.arrivals {
        by_second[usize::try_from(frame.entered.nanos() / 1_000_000_000).expect("small")] += 1;
    }
    assert!(by_second[..5].iter().all(|&arrived| arrived == 1000), "{by_second:?}");
    assert!(by_second[15..].iter().all(|&arrived| arrived == 0), "{by_second:?}");
    for (second, &arrived) in by_second.iter().enumerate().take(15).skip(5) {
        let expected = 1.0 - (second as f64 - 4.5) / 10.0;
        let sigma = (expected * (1.0 - expected) * 1000.0).sqrt();
        assert!((f64::from(arrived) - 1000.0 * expected).abs() < 4.0 * sigma + 1.0, "{by_second:?}");
    }
    assert_eq!(world.sinks.drops[&DropReason::OutOfRange], 5000);
}

#[test]
fn a_broadcast_reaches_whom_it_reaches_and_strangers_change_nothing() {
    let run = |strangers: u32| {
        let mut world = air(&[(100.0, 0.3)], 0);
        let a = world.add(radio(11_000_000), 0.0, 0.0);
        let near = [1.0, 2.0, 3.0].map(|x| world.add(radio(11_000_000), x, 0.0));
        (0..strangers).for_each(|n| {
            world.add(radio(11_000_000), 1000.0 + f64::from(n), 0.0);
        });
        (0..1000).for_each(|_| world.offer(Instant::ZERO, a, None, 100));
        world.run(at(10.0));
        let lost_by_all = world.sinks.drops.get(&DropReason::RandomLoss).copied().unwrap_or(0);
        // Each is taken by one at least, or dropped; every further one is a copy.
        assert_eq!(world.sinks.arrivals.len() as u64 + lost_by_all, 1000 + world.sinks.copies);
        near.map(|radio| arrivals(&world, radio))
    };
    let alone = run(0);
    assert!(alone.iter().all(|arrived| (640..760).contains(&arrived.len())));
    assert_ne!(alone[0], alone[1], "each receiver loses on its own");
    assert_eq!(run(5), alone);
}

#[test]
fn a_radio_that_is_off_neither_sends_nor_receives() {
    let mut world = air(&[(100.0, 0.0)], 0);
    let (a, b) = (world.add(radio(1_000_000), 0.0, 0.0), world.add(radio(1_000_000), 1.0, 0.0));
    (0..3).for_each(|_| world.offer(Instant::ZERO, a, Some(b), FULL));
    world.run(at(0.015));
    world.medium.change(a, &RadioChange::On(false), &mut world.sinks);
    world.run(at(1.0));
    world.offer(at(1.0), a, Some(b), FULL);
    world.offer(at(1.0), b, Some(a), FULL);
    world.run(at(2.0));
    assert_eq!(world.sinks.arrivals.len(), 1);
    assert_eq!(world.sinks.drops[&DropReason::RadioOff], 3);
    assert_eq!(world.sinks.drops[&DropReason::OutOfRange], 1);
    world.medium.change(a, &RadioChange::On(true), &mut world.sinks);
    world.offer(at(2.0), a, Some(b), FULL);
    world.run(at(3.0));
    assert_eq!(world.sinks.arrivals.len(), 2);
}

#[test]
fn a_full_queue_refuses() {
    let mut world = air(&[(100.0, 0.0)], 0);
    let a = world.add(RadioSettings { tail_drop: 10, ..radio(1_000_000) }, 0.0, 0.0);
    let b = world.add(radio(1_000_000), 1.0, 0.0);
    (0..25).for_each(|_| world.offer(Instant::ZERO, a, Some(b), FULL));
    world.run(at(1.0));
    assert_eq!(world.sinks.arrivals.len(), 10);
    assert_eq!(world.sinks.drops[&DropReason::RadioQueueFull], 15);
    assert_eq!(world.medium.counts(a).refused, 15);
}

#[test]
fn what_has_no_meaning_is_refused() {
    let build = |loss: &[(f64, f64)], overhead_octets| {
        let access = AccessSettings::None { loss: loss.to_vec(), overhead_octets };
        let built = MediumSettings { access, ..Default::default() }.build(1, "air");
        built.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(build(&[(100.0, 0.0)], 0), "");
    assert!(build(&[], 0).contains("an empty table"));
    assert!(build(&[(100.0, 0.0), (50.0, 1.0)], 0).contains("50 m after 100 m"));
    assert!(build(&[(100.0, 1.5)], 0).contains("access.none.loss rate = 1.5"));
    assert!(build(&[(100.0, 0.0)], 10_001).contains("overhead_octets"));
    let mut world = air(&[(100.0, 0.0)], 0);
    let place = || Box::new(airloom_engine::medium::mobility::Static(Position::default()));
    let told = |found: Result<RadioId, _>| match found {
        Ok(_) => String::new(),
        Err::<_, airloom_engine::medium::SettingsError>(error) => error.to_string(),
    };
    let constant = RadioSettings::default();
    assert!(told(world.medium.add_radio("a", constant, place())).contains("no channel access"));
    let station = Membership::Station(Roaming { ssid: "net".to_owned(), ..Roaming::default() });
    let station = RadioSettings { membership: station, ..radio(1_000_000) };
    assert!(told(world.medium.add_radio("a", station, place())).contains("membership"));
    assert!(told(world.medium.add_radio("a", radio(999), place())).contains("1 kbit/s"));
    let a = world.add(radio(1_000_000), 0.0, 0.0);
    assert!(world.medium.check(a, &RadioChange::Channel(40)).is_err());
    assert!(world.medium.check(a, &RadioChange::Power(10.0)).is_err());
    let mut world = World::new(1, Box::new(Friis));
    assert!(told(world.medium.add_radio("a", radio(1_000_000), place())).contains("has DCF"));
}
