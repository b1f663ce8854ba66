//! Access points and stations: association, relaying, roaming.

#![allow(clippy::cast_precision_loss)]

mod world;

use airloom_engine::DropReason;
use airloom_engine::medium::mobility::{Path, Position};
use airloom_engine::medium::{Membership, RadioChange, RadioId, RadioSettings, Roaming, Sighting};
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

fn access_point(channel: u16) -> RadioSettings {
    let membership = Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 102_400_000 };
    RadioSettings { channel, membership, ..at_rate(12.0) }
}

fn station(active: bool) -> RadioSettings {
    let roaming = Roaming {
        ssid: "lab".into(),
        channels: vec![36, 40, 44],
        active,
        dwell_ns: if active { 20_000_000 } else { 120_000_000 },
        ..Roaming::default()
    };
    RadioSettings { membership: Membership::Station(roaming), ..at_rate(12.0) }
}

/// When the station has joined, at a resolution of one millisecond.
fn joins(world: &mut World, station: RadioId, until: f64) -> Option<f64> {
    let mut now = world.medium.now();
    while now < at(until) {
        if world.medium.access_point(station).is_some() {
            return Some(now.nanos() as f64 * 1e-9);
        }
        now += Span::from_millis(1);
        world.run(now);
    }
    None
}

#[test]
fn scanning_takes_its_time_on_each_channel() {
    for (active, least, most) in [(false, 0.360, 0.370), (true, 0.060, 0.070)] {
        let mut world = World::new(1, reference_loss());
        let ap = world.add(access_point(44), 0.0, 0.0);
        let other = Membership::AccessPoint { ssid: "elsewhere".into(), beacon_ns: 102_400_000 };
        world.add(RadioSettings { channel: 36, membership: other, ..at_rate(12.0) }, 1.0, 0.0);
        let sta = world.add(station(active), 5.0, 0.0);
        world.offer(at(0.0), sta, Some(ap), PAYLOAD);
        assert_eq!(world.sinks.drops.get(&DropReason::NotAssociated), Some(&1));
        let joined = joins(&mut world, sta, 2.0).expect("joined");
        assert!((least..most).contains(&joined), "active {active}: {joined} s");
        assert_eq!(world.medium.access_point(sta), Some(ap));
    }
}

#[test]
fn stations_talk_through_their_access_point() {
    let mut world = World::new(1, reference_loss());
    let ap = world.add(access_point(40), 0.0, 0.0);
    let stations: Vec<_> = (0..3u8).map(|n| world.add(station(true), 5.0, f64::from(n))).collect();
    world.run(at(1.0));
    assert!(stations.iter().all(|&s| world.medium.access_point(s) == Some(ap)));
    let between = |world: &World, a: RadioId, b: RadioId| {
        world.sinks.tallies.get(&(a.number(), b.number())).map_or(0, |tally| tally.frames)
    };
    for round in 0..100u64 {
        let now = at(1.0) + Span::from_millis(10 * round);
        world.run(now);
        world.offer(now, stations[0], Some(stations[1]), PAYLOAD);
        world.offer(now, stations[2], Some(ap), PAYLOAD);
        world.offer(now, ap, Some(stations[2]), PAYLOAD);
        world.offer(now, stations[1], None, 100);
    }
    world.run(at(3.0));
    assert_eq!(between(&world, stations[0], stations[1]), 100, "relayed");
    assert_eq!(between(&world, stations[2], ap), 100);
    assert_eq!(between(&world, ap, stations[2]), 100);
    // A station's broadcast reaches the access point directly and all other stations by its relay.
    assert_eq!(between(&world, stations[1], ap), 100);
    let relayed = between(&world, stations[1], stations[0]);
    assert!((90..=100).contains(&relayed), "not acknowledged, so some collide: {relayed}");
    assert_eq!(between(&world, stations[1], stations[1]), 0);
    let sum = world.sinks.delivered + world.sinks.drops.values().sum::<u64>();
    assert_eq!(world.offered + world.sinks.copies, sum, "one fate for each");
    assert_eq!(world.sinks.pool.in_use(), 0);
    // Beacons every 102.4 ms.
    let beacons = world.medium.counts(ap).sent - world.medium.counts(ap).expected;
    assert!((29..=30).contains(&(beacons - 100)), "{beacons}");
}

#[test]
fn a_moving_station_changes_its_access_point() {
    let mut world = World::new(1, reference_loss());
    let (west, east) = (world.add(access_point(36), 0.0, 0.0), world.add(access_point(44), 80.0, 0.0));
    let sta = world.add(station(true), 0.0, 0.0);
    let way = vec![
        (at(1.0), Position::new(2.0, 0.0, 0.0)),
        (at(21.0), Position::new(78.0, 0.0, 0.0)),
        (at(25.0), Position::new(78.0, 0.0, 0.0)),
    ];
    world.medium.set_mobility(sta, Box::new(Path::new(way).expect("a path"))).expect("a place");
    let (mut now, mut last, mut changes) = (Instant::ZERO, None, Vec::new());
    while now < at(25.0) {
        now += Span::from_millis(10);
        world.run(now);
        if let Some(ap) = world.medium.access_point(sta) {
            if last != Some(ap) {
                changes.push((ap, now.nanos() as f64 * 1e-9));
            }
            last = Some(ap);
            world.offer(now, sta, Some(ap), 500);
        }
    }
    let names: Vec<_> = changes.iter().map(|change| change.0).collect();
    assert_eq!(names, [west, east], "{changes:?}");
    // West falls below -75 dBm at 30 m; east is 6 dB better from 49 m on, at 13.4 s.
    assert!((13.3..15.5).contains(&changes[1].1), "{changes:?}");
    let sent = world.offered;
    let got: u64 =
        [west, east].map(|ap| world.sinks.tallies[&(sta.number(), ap.number())].frames).iter().sum();
    assert!(got as f64 > 0.97 * sent as f64, "{got} of {sent}, {:?}", world.sinks.drops);
}

#[test]
fn a_station_without_beacons_looks_again() {
    let mut world = World::new(1, reference_loss());
    let ap = world.add(access_point(36), 0.0, 0.0);
    let sta = world.add(station(true), 5.0, 0.0);
    world.run(at(2.0));
    assert_eq!(world.medium.access_point(sta), Some(ap));
    let change = |world: &mut World, on| {
        world.medium.change(ap, &RadioChange::On(on), &mut world.sinks);
    };
    change(&mut world, false);
    world.run(at(5.0));
    assert_eq!(world.medium.access_point(sta), None);
    change(&mut world, true);
    assert!(joins(&mut world, sta, 6.0).is_some());
}

/// Makes a radio scan now; returns the sightings and the duration in seconds.
fn look_around(world: &mut World, radio: RadioId, channels: &[u16], active: bool) -> (Vec<Sighting>, f64) {
    let dwell_ns = if active { 30_000_000 } else { 120_000_000 };
    let scan = RadioChange::Scan { channels: channels.to_vec(), active, dwell_ns };
    let (start, times) = (world.medium.now(), world.medium.scanned(radio).times);
    world.medium.change(radio, &scan, &mut world.sinks);
    while world.medium.scanned(radio).times == times {
        world.run(world.medium.now() + Span::from_millis(1));
    }
    let seconds = world.medium.now().since(start).nanos() as f64 * 1e-9;
    (world.medium.scanned(radio).found.clone(), seconds)
}

fn cell(channel: u16, ssid: &str) -> RadioSettings {
    let membership = Membership::AdHoc { ssid: ssid.to_owned(), beacon_ns: 102_400_000 };
    RadioSettings { channel, membership, ..at_rate(12.0) }
}

#[test]
fn a_node_looks_around_and_its_data_waits() {
    for active in [false, true] {
        let mut world = World::new(1, reference_loss());
        let ap = world.add(access_point(44), 0.0, 0.0);
        let other = Membership::AccessPoint { ssid: "elsewhere".into(), beacon_ns: 102_400_000 };
        let other = world.add(RadioSettings { channel: 149, membership: other, ..at_rate(12.0) }, 10.0, 0.0);
        let far = Membership::AccessPoint { ssid: "far".into(), beacon_ns: 102_400_000 };
        world.add(RadioSettings { membership: far, ..at_rate(12.0) }, 900.0, 0.0);
        let sta = world.add(station(true), 5.0, 0.0);
        let (lonely, friend) = (world.add(cell(36, ""), 5.0, 5.0), world.add(cell(36, ""), 5.0, 6.0));
        world.run(at(1.0));
        for radio in [sta, lonely] {
            let (to, before) = (if radio == sta { ap } else { friend }, world.medium.channel(radio));
            let mut got = 0;
            let mut delivered = |world: &World| {
                let count = |t: &world::Tally| t.frames;
                let now = world.sinks.tallies.get(&(radio.number(), to.number())).map_or(0, count);
                now - core::mem::replace(&mut got, now)
            };
            let scan = RadioChange::Scan { channels: vec![40, 149], active: false, dwell_ns: 120_000_000 };
            world.medium.change(radio, &scan, &mut world.sinks);
            world.run(world.medium.now() + Span::from_millis(10));
            world.offer(world.medium.now(), radio, Some(to), PAYLOAD);
            world.run(world.medium.now() + Span::from_millis(220));
            assert_eq!(delivered(&world), 0, "data wait while it is away");
            world.run(world.medium.now() + Span::from_millis(20));
            assert_eq!((delivered(&world), world.medium.channel(radio)), (1, before));

            let (found, took) = look_around(&mut world, radio, &[], active);
            let names: Vec<_> = found.iter().map(|s| (s.radio, s.ssid.as_str(), s.channel.number)).collect();
            assert_eq!(names, [(ap, "lab", 44), (other, "elsewhere", 149)]);
            let strongest = world.medium.power_at(ap, radio);
            assert!((found[0].signal_dbm - strongest).abs() < 0.01 && found[0].access_point);
            let least = 28.0 * if active { 0.030 } else { 0.120 };
            assert!((least..least + 0.005).contains(&took), "28 channels take {took} s");
            assert_eq!(world.medium.channel(radio), before);
            world.run(world.medium.now() + Span::from_millis(500));
            assert_eq!(world.medium.access_point(sta), Some(ap), "it still has its access point");
        }
    }
}

#[test]
fn a_radio_that_is_off_finds_nothing_and_comes_home() {
    let mut world = World::new(1, reference_loss());
    world.add(access_point(40), 0.0, 0.0);
    let radio = world.add(cell(36, ""), 5.0, 5.0);
    let scan = RadioChange::Scan { channels: vec![40, 44, 48], active: true, dwell_ns: 50_000_000 };
    world.medium.change(radio, &scan, &mut world.sinks);
    world.run(at(0.07));
    assert_eq!(world.medium.channel(radio).number, 44);
    world.medium.change(radio, &RadioChange::On(false), &mut world.sinks);
    let scanned = world.medium.scanned(radio).clone();
    assert_eq!((scanned.times, scanned.found.len()), (1, 1), "what it had found by then");
    assert_eq!(world.medium.channel(radio).number, 36);
    world.medium.change(radio, &scan, &mut world.sinks);
    assert_eq!((world.medium.scanned(radio).times, world.medium.scanned(radio).found.len()), (2, 0));
    for bad in [
        RadioChange::Scan { channels: vec![7], active: true, dwell_ns: 50_000_000 },
        RadioChange::Scan { channels: vec![], active: true, dwell_ns: 0 },
    ] {
        assert!(world.medium.check(radio, &bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_station_without_its_network_looks_around_for_its_node_too() {
    let mut world = World::new(1, reference_loss());
    let membership = Membership::AccessPoint { ssid: "elsewhere".into(), beacon_ns: 102_400_000 };
    let ap = world.add(RadioSettings { channel: 60, membership, ..at_rate(12.0) }, 0.0, 0.0);
    let sta = world.add(station(false), 5.0, 0.0);
    world.run(at(0.5));
    let (found, _) = look_around(&mut world, sta, &[60], true);
    assert_eq!(found.len(), 1);
    world.medium.change(sta, &RadioChange::Ssid("elsewhere".into()), &mut world.sinks);
    world.medium.change(ap, &RadioChange::Channel(44), &mut world.sinks);
    assert!(joins(&mut world, sta, 3.0).is_some());
}

#[test]
fn independent_cells_are_told_apart_by_their_names() {
    let mut world = World::new(1, reference_loss());
    let one: Vec<_> = (0..4u8).map(|n| world.add(cell(36, "one"), f64::from(n), 0.0)).collect();
    let two: Vec<_> = (0..2u8).map(|n| world.add(cell(36, "two"), f64::from(n), 5.0)).collect();
    let heard = |world: &mut World, from: RadioId| {
        world.run(world.medium.now() + Span::from_millis(50));
        let before = world.sinks.tallies.clone();
        world.offer(world.medium.now(), from, None, 100);
        world.run(world.medium.now() + Span::from_millis(50));
        let count = |t: Option<&world::Tally>| t.map_or(0, |t| t.frames);
        let now = &world.sinks.tallies;
        now.keys().filter(|k| count(now.get(k)) > count(before.get(k))).map(|k| k.1).collect::<Vec<_>>()
    };
    assert_eq!(heard(&mut world, one[0]), [1, 2, 3]);
    assert_eq!(heard(&mut world, two[0]), [5]);
    // One beacon every 102.4 ms for each cell, sent by any member.
    world.run(at(20.48));
    let sent: u64 = one.iter().map(|&radio| world.medium.counts(radio).sent).sum();
    assert!((195..=215).contains(&sent), "{sent}");
    assert!(one.iter().all(|&radio| world.medium.counts(radio).sent > 20), "they take turns");
    // A scanning radio receives a response from both, once each.
    let guest = world.add(cell(44, ""), 0.0, 9.0);
    let (found, _) = look_around(&mut world, guest, &[36], true);
    let mut names: Vec<_> = found.iter().map(|s| (s.ssid.as_str(), s.access_point)).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, [("one", false), ("two", false)]);
    // It joins one of them, and leaves it again.
    for (name, expected) in [("two", &[4, 5][..]), ("one", &[0, 1, 2, 3]), ("", &[])] {
        world.medium.change(guest, &RadioChange::Ssid(name.into()), &mut world.sinks);
        world.medium.change(guest, &RadioChange::Channel(36), &mut world.sinks);
        assert_eq!(heard(&mut world, guest), expected, "in {name:?}");
    }
    let wrong = RadioChange::Ssid("x".repeat(33));
    assert!(world.medium.check(guest, &wrong).is_err());
}
