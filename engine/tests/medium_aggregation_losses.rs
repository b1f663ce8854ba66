//! Losses within A-MPDUs: hidden nodes, retries of each MPDU, order of delivery, receivers that leave; and
//! the balance of frames under random events.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod aggregates;
mod world;

use std::collections::BTreeSet;

use aggregates::{AROUND, POWER, Seen, airtimes, cell, joined, octets_of, seen, settings};
use airloom_engine::DropReason;
use airloom_engine::medium::mobility::{Path, Position};
use airloom_engine::medium::propagation::Matrix;
use airloom_engine::medium::{Membership, RadioChange, RadioId, RadioSettings, Roaming};
use airloom_engine::random::Stream;
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, reference_loss};

/// Offered + copies = delivered + dropped + inside, now.
fn balance(world: &World) {
    let mut inside = 0;
    world.medium.visit(&mut |_| inside += 1);
    let dropped: u64 = world.sinks.drops.values().sum();
    let ended = world.sinks.delivered + dropped + inside;
    assert_eq!(world.offered + world.sinks.copies, ended, "{:?}, {inside} inside", world.sinks.drops);
}

/// Turns all radios off: every frame has come to its end, and no buffer is left.
fn settle(world: &mut World, radios: &[RadioId]) {
    for radio in radios {
        world.medium.change(*radio, &RadioChange::On(false), &mut world.sinks);
    }
    world.run(world.medium.now() + Span::from_millis(100));
    world.medium.visit(&mut |frame| panic!("left inside: {frame:?}"));
    balance(world);
    let arrived = core::mem::take(&mut world.sinks.arrivals);
    arrived.into_iter().for_each(|(_, frame, _)| world.sinks.pool.release(frame.buffer));
    assert_eq!(world.sinks.pool.in_use(), 0);
}

/// Times of the arrivals at a radio from another one, and when these frames entered.
fn arrivals(world: &World, from: RadioId, to: RadioId) -> Vec<(Instant, Instant)> {
    let all = world.sinks.arrivals.iter();
    let ours = all.filter(|(radio, frame, _)| *radio == to && frame.origin == from.number());
    ours.map(|(_, frame, at)| (*at, frame.entered)).collect()
}

fn number_of(world: &World, why: DropReason) -> u64 {
    world.sinks.drops.get(&why).copied().unwrap_or(0)
}

/// A sender, its receiver, and one that only the receiver hears, which sends a short broadcast at this
/// time after the sender's A-MPDU begins, in microseconds; without a time not at all.
fn hidden(short_retries: u8, after: Option<i64>) -> (World, Vec<RadioId>, Vec<Seen>) {
    let mut loss = Matrix::silent(3);
    for (from, to) in [(0, 1), (1, 0), (2, 1)] {
        loss.set(from, to, POWER + 40.0);
    }
    let mut world = World::new(1, Box::new(loss));
    let wanted = RadioSettings { short_retries, ..settings(7, 16) };
    let radios: Vec<_> = (0..3).map(|_| world.add(wanted.clone(), 0.0, 0.0)).collect();
    world.medium.set_sniffing(true);
    world.sinks.keep_arrivals = true;
    for frame in 0..17 {
        let entered = Instant::from_nanos(at(0.1).nanos() + frame);
        world.offer(entered, radios[0], Some(radios[1]), PAYLOAD);
    }
    if let Some(after) = after {
        let start = joined(&hidden(short_retries, None).2)[0][0].at;
        let when = Instant::from_nanos(start.checked_add_signed(after).expect("positive") * 1_000);
        world.run(when);
        world.offer(when, radios[2], None, 100);
    }
    world.run(at(1.0));
    let seen = seen(&world);
    (world, radios, seen)
}

/// Which MPDUs of the first A-MPDU a disturbance certainly hits, and which it may hit.
fn hit(parts: &[Seen], from: f64, until: f64) -> (BTreeSet<u16>, BTreeSet<u16>) {
    let octets = octets_of(parts);
    let (preamble, whole) = (36.0, airtimes(7, octets).0.nanos() as f64 * 1e-3);
    let instant = |octet: u32| {
        parts[0].at as f64 + preamble + (whole - preamble) * f64::from(octet) / f64::from(octets)
    };
    let (mut sure, mut perhaps, mut end) = (BTreeSet::new(), BTreeSet::new(), 0_u32);
    for part in parts {
        let start = end.next_multiple_of(4);
        end = start + 4 + part.octets;
        let common = instant(end).min(until) - instant(start).max(from);
        // A symbol takes 4 us.
        if common > 4.0 {
            sure.insert(part.sequence);
        } else if common > 0.0 {
            perhaps.insert(part.sequence);
        }
    }
    (sure, perhaps)
}

#[test]
fn a_hidden_node_strikes_the_mpdus_that_it_overlaps() {
    for after in [60, 500, 1_111, 2_000, 2_950] {
        let (world, radios, seen) = hidden(7, Some(after));
        let first = &joined(&seen)[0];
        assert_eq!(first.len(), 16);
        let other =
            seen.iter().find(|one| one.kind == 0x88 && one.octets == 100 + AROUND).expect("the broadcast");
        // 166 octets at 6 Mbit/s: 1350 bits, 57 symbols, and 20 us.
        let (sure, perhaps) = hit(first, other.at as f64, other.at as f64 + 20.0 + 57.0 * 4.0);
        let again: BTreeSet<u16> = seen.iter().filter(|one| one.retry).map(|one| one.sequence).collect();
        assert!(!sure.is_empty() && sure.len() < 4, "{sure:?}");
        assert!(again.is_superset(&sure), "{after}: {again:?}, hit {sure:?}");
        assert!(
            again.is_subset(&sure.union(&perhaps).copied().collect()),
            "{after}: {again:?}, hit {sure:?}"
        );
        // What precedes the first missing one arrives at once, and the rest, in order, after its retry.
        let end =
            Instant::from_nanos(first[0].at * 1_000) + airtimes(7, octets_of(first)).0 + Span::from_micros(1);
        let all = arrivals(&world, radios[0], radios[1]);
        let early = all.iter().filter(|(at, _)| *at <= end).count();
        assert_eq!((early, all.len()), (usize::from(*again.first().expect("one")), 17));
        assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].1), "in order");
        assert_eq!(number_of(&world, DropReason::RetryLimit), 0);
    }
}

#[test]
fn a_header_that_is_hit_loses_all() {
    for after in [-100, 10] {
        let (world, radios, seen) = hidden(7, Some(after));
        let again: BTreeSet<u16> = joined(&seen)[1].iter().map(|one| one.sequence).collect();
        assert_eq!(again, (1..17).collect());
        assert!(joined(&seen)[1].iter().all(|one| one.retry));
        assert_eq!(arrivals(&world, radios[0], radios[1]).len(), 17);
        balance(&world);
    }
}

#[test]
fn nothing_waits_for_an_mpdu_that_was_given_up() {
    // With one try nothing is sent again: the answer ends the wait for what is missing.
    let (mut world, radios, seen) = hidden(1, Some(500));
    let lost = number_of(&world, DropReason::RetryLimit);
    assert!((1..4).contains(&lost), "{lost}");
    assert!(seen.iter().all(|one| !one.retry));
    let all = arrivals(&world, radios[0], radios[1]);
    assert_eq!(all.len() as u64 + lost, 17);
    assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].1), "in order");
    let answer = seen.iter().find(|one| one.kind == 0x94).expect("an answer");
    let end = Instant::from_nanos(answer.at * 1_000) + airtimes(7, 0).1 + Span::from_micros(1);
    let last = all.last().expect("some").0;
    assert!(last <= end && last > Instant::from_nanos(answer.at * 1_000), "{last:?}");
    settle(&mut world, &radios);
}

#[test]
fn each_mpdu_has_its_own_retries() {
    let wanted = RadioSettings { short_retries: 3, ..settings(7, 32) };
    let (mut world, radios) = cell(&wanted, 2, -40.0, 5);
    world.medium.set_sniffing(true);
    world.medium.set_frame_error(radios[0], radios[1], 0.5);
    let frames = 3_000_u64;
    for number in 0..frames {
        let now = at(1e-3 * number as f64);
        world.run(now);
        world.offer(now, radios[0], Some(radios[1]), 100);
    }
    world.run(at(10.0));
    let mut tries = vec![0; frames as usize];
    for one in seen(&world).iter().filter(|one| one.kind == 0x88) {
        assert_eq!(one.retry, tries[usize::from(one.sequence)] > 0);
        tries[usize::from(one.sequence)] += 1;
    }
    assert!(tries.iter().all(|tries| (1..=3).contains(tries)));
    // One of eight is lost three times; 4 standard deviations.
    let lost = number_of(&world, DropReason::RetryLimit) as f64;
    let (mean, deviation) = (frames as f64 / 8.0, libm::sqrt(frames as f64 * 7.0 / 64.0));
    assert!((lost - mean).abs() < 4.0 * deviation, "{lost} of {frames}");
    assert_eq!(world.sinks.delivered + lost as u64, frames);
    assert_eq!(world.medium.counts(radios[0]).given_up, lost as u64);
}

#[test]
fn nothing_arrives_twice_or_out_of_order() {
    for seed in 0..40_u64 {
        let (there, back) = ((seed % 8) as f64 * 0.1, (seed % 5) as f64 * 0.15);
        let frames = [2, 3, 16, 64][(seed % 4) as usize];
        let plain = RadioSettings { short_retries: if seed % 3 == 0 { 2 } else { 7 }, ..settings(7, frames) };
        let asks = RadioSettings { rts_octets: (seed % 2 == 0).then_some(2000), ..plain };
        let (mut world, radios) = cell(&asks, 3, -40.0, seed);
        world.sinks.keep_arrivals = true;
        for (from, to, rate) in [(0, 1, there), (1, 0, back), (0, 2, back), (2, 0, there)] {
            world.medium.set_frame_error(radios[from], radios[to], rate);
        }
        // Two receivers in turn, bursts that queue up, and frames alone.
        for number in 0..600_u64 {
            let instant =
                at(1e-5 * number as f64 + if number > 500 { 1e-2 * (number - 400) as f64 } else { 0.0 });
            world.run(instant);
            let to = if number % 3 == 0 { 2 } else { 1 };
            world.offer(instant, radios[0], Some(radios[to]), 100);
            if number % 50 == 0 {
                world.offer(instant, radios[1], Some(radios[0]), 100);
            }
        }
        world.run(at(60.0));
        let arrived = core::mem::take(&mut world.sinks.arrivals);
        for radio in &radios {
            let times: Vec<_> =
                arrived.iter().filter(|(to, ..)| to == radio).map(|(_, frame, _)| frame.entered).collect();
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}");
        }
        let dropped: u64 = world.sinks.drops.values().sum();
        assert_eq!(arrived.len() as u64 + dropped, world.offered, "seed {seed}: {:?}", world.sinks.drops);
        assert!(arrived.len() > 100, "seed {seed}");
        world.medium.visit(&mut |frame| panic!("left inside: {frame:?}"));
        arrived.into_iter().for_each(|(_, frame, _)| world.sinks.pool.release(frame.buffer));
        assert_eq!(world.sinks.pool.in_use(), 0, "seed {seed}");
    }
}

#[test]
fn a_receiver_that_changes_its_channel_loses_what_is_on_the_air() {
    let (mut world, radios) = cell(&RadioSettings { short_retries: 4, ..settings(7, 32) }, 2, -40.0, 3);
    world.sinks.keep_arrivals = true;
    (0..8).for_each(|_| world.saturate(at(0.0), radios[0], radios[1], PAYLOAD));
    for step in 1..60_u64 {
        // Changes fall into all phases of an exchange of 5.5 ms.
        world.run(Instant::from_nanos(step * 7_130_000));
        let channel = if step % 10 >= 4 { 40 } else { 36 };
        world.medium.change(radios[1], &RadioChange::Channel(channel), &mut world.sinks);
        balance(&world);
    }
    world.medium.change(radios[1], &RadioChange::Channel(36), &mut world.sinks);
    let before = world.sinks.delivered;
    assert!(number_of(&world, DropReason::RetryLimit) + number_of(&world, DropReason::OutOfRange) > 0);
    world.run(at(1.0));
    assert!(world.sinks.delivered > before + 1_000, "it goes on");
    let all = arrivals(&world, radios[0], radios[1]);
    assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1), "in order");
    assert_eq!(world.sinks.copies, 0);
    world.sources.clear();
    settle(&mut world, &radios);
}

#[test]
fn a_receiver_that_walks_out_of_range_and_back() {
    let mut world = World::new(1, reference_loss());
    let wanted = RadioSettings { short_retries: 4, ..settings(7, 32) };
    let radios = [world.add(wanted.clone(), 0.0, 0.0), world.add(wanted, 5.0, 0.0)];
    let way = [(0.0, 5.0), (1.0, 5.0), (3.0, 400.0), (5.0, 5.0)];
    let way = way.map(|(time, x)| (at(time), Position::new(x, 0.0, 0.0)));
    world
        .medium
        .set_mobility(radios[1], Box::new(Path::new(way.to_vec()).expect("a path")))
        .expect("a place");
    (0..8).for_each(|_| world.saturate(at(0.0), radios[0], radios[1], PAYLOAD));
    let mut rates = Vec::new();
    for step in 1..=60_u64 {
        let before = world.sinks.delivered;
        world.run(Instant::from_nanos(step * 100_000_000));
        rates.push(world.sinks.delivered - before);
        balance(&world);
    }
    // 59.8 Mbit/s are 509 frames in 100 ms.
    assert!(rates[..10].iter().chain(&rates[50..]).all(|&rate| rate > 480), "{rates:?}");
    assert!(rates[25..35].iter().all(|&rate| rate == 0), "{rates:?}");
    assert!(number_of(&world, DropReason::OutOfRange) + number_of(&world, DropReason::RetryLimit) > 0);
    world.sources.clear();
    settle(&mut world, &radios);
}

#[test]
fn a_station_takes_its_frames_to_another_access_point() {
    for seed in 0..6 {
        let mut world = World::new(seed, reference_loss());
        let frames = settings(7, 32);
        let point = |channel| {
            let membership = Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 102_400_000 };
            RadioSettings { channel, membership, ..frames.clone() }
        };
        let points = [world.add(point(36), 0.0, 0.0), world.add(point(40), 80.0, 0.0)];
        let roaming =
            Roaming { ssid: "lab".into(), channels: vec![36, 40], leave_dbm: -60.0, ..Roaming::default() };
        let station = RadioSettings { membership: Membership::Station(roaming), ..frames };
        let station = world.add(station, 5.0, 0.0);
        let way = [(0.0, 5.0), (2.0, 5.0), (6.0, 75.0), (8.0, 75.0), (12.0, 5.0)];
        let way = way.map(|(time, x)| (at(time), Position::new(x, 0.0, 0.0)));
        world
            .medium
            .set_mobility(station, Box::new(Path::new(way.to_vec()).expect("a path")))
            .expect("a place");
        let mut homes = BTreeSet::new();
        for step in 100..1_500_u64 {
            let now = Instant::from_nanos(step * 10_000_000);
            world.run(now);
            let Some(home) = world.medium.access_point(station) else { continue };
            homes.insert(home);
            (0..20).for_each(|_| world.offer(now, station, Some(home), PAYLOAD));
            (0..20).for_each(|_| world.offer(now, home, Some(station), PAYLOAD));
            balance(&world);
        }
        assert_eq!(homes, points.into_iter().collect(), "it was at both");
        world.run(at(20.0));
        balance(&world);
        assert!(
            world.sinks.delivered > world.offered / 2,
            "{} of {}, {:?}",
            world.sinks.delivered,
            world.offered,
            world.sinks.drops
        );
        settle(&mut world, &[points[0], points[1], station]);
    }
}

/// A random event at one of these radios.
fn event(dice: &mut Stream, world: &mut World, radios: &[RadioId], cells: bool) {
    let radio = radios[(dice.unit() * radios.len() as f64) as usize];
    let change = match (dice.unit() * 8.0) as u32 {
        0 => RadioChange::On(false),
        1 if !cells => RadioChange::Channel(40),
        2 if !cells => RadioChange::Channel(36),
        3 => RadioChange::Power(dice.unit() * 30.0 - 10.0),
        4 => RadioChange::RtsOctets(Some((dice.unit() * 5_000.0) as u32)),
        5 => RadioChange::Position(Position::new(dice.unit() * 120.0, dice.unit() * 40.0, 0.0)),
        6 => RadioChange::Ssid(if dice.unit() < 0.7 { "lab" } else { "other" }.into()),
        _ => RadioChange::On(true),
    };
    world.medium.change(radio, &change, &mut world.sinks);
}

/// Random radios, frames and events; everything is accounted for at every instant.
fn any_scenario(seed: u64) {
    let mut dice = Stream::named(seed, "aggregation");
    let cells = seed % 2 == 1;
    let mut world = World::new(seed, reference_loss());
    let count = 3 + (dice.unit() * 4.0) as usize;
    let mut radios = Vec::new();
    for number in 0..count {
        let aggregation = (dice.unit() < 0.8).then(|| 1 + (dice.unit() * 63.0) as u8);
        let membership = match number {
            _ if !cells => RadioSettings::default().membership,
            0 | 1 => Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 102_400_000 },
            _ => {
                Membership::Station(Roaming { ssid: "lab".into(), channels: vec![36], ..Roaming::default() })
            }
        };
        let wanted = RadioSettings {
            aggregation,
            membership,
            short_retries: 1 + (dice.unit() * 7.0) as u8,
            long_retries: 1 + (dice.unit() * 4.0) as u8,
            rts_octets: (dice.unit() < 0.3).then_some(2_000),
            transmit_buffers: 100,
            tail_drop: 80,
            ..settings([0, 7, 15, 31][(dice.unit() * 4.0) as usize], 1)
        };
        radios.push(world.add(wanted, dice.unit() * 60.0, dice.unit() * 20.0));
    }
    for from in &radios {
        for to in radios.iter().filter(|to| *to != from) {
            if dice.unit() < 0.5 {
                world.medium.set_frame_error(*from, *to, dice.unit() * 0.7);
            }
        }
    }
    let mut now = if cells { 1.0 } else { 0.0 };
    world.run(at(now));
    for _ in 0..400 {
        now += dice.exponential() * 3e-3;
        world.run(at(now));
        if dice.unit() < 0.15 {
            event(&mut dice, &mut world, &radios, cells);
        }
        let from = radios[(dice.unit() * count as f64) as usize];
        let to = radios[(dice.unit() * count as f64) as usize];
        for _ in 0..(dice.exponential() * 8.0) as u32 {
            let payload = (dice.unit() * f64::from(PAYLOAD)) as u32;
            match dice.unit() {
                any if any < 0.05 => world.offer(at(now), from, None, payload),
                any if any < 0.3 => world.offer_marked(at(now), from, to, payload, 46),
                _ => world.offer(at(now), from, Some(to), payload),
            }
        }
        balance(&world);
    }
    world.run(at(now + 5.0));
    balance(&world);
    settle(&mut world, &radios);
}

#[test]
fn every_frame_has_one_fate_in_random_scenarios() {
    (0..60).for_each(any_scenario);
}
