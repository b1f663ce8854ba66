//! Access points and stations: joining, relaying, roaming.

#![allow(clippy::cast_precision_loss)]

mod world;

use airloom_engine::Why;
use airloom_engine::medium::mobility::{Path, Position};
use airloom_engine::medium::{Membership, RadioId, RadioSettings, Roaming};
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

/// When the station has joined, looking every millisecond.
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
        assert_eq!(world.ground.drops.get(&Why::NotAssociated), Some(&1));
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
        world.ground.tallies.get(&(a.number(), b.number())).map_or(0, |tally| tally.frames)
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
    // A station's broadcast reaches the access point at once and everybody else by its relay.
    assert_eq!(between(&world, stations[1], ap), 100);
    let relayed = between(&world, stations[1], stations[0]);
    assert!((90..=100).contains(&relayed), "not acknowledged, so some collide: {relayed}");
    assert_eq!(between(&world, stations[1], stations[1]), 0);
    let sum = world.ground.delivered + world.ground.drops.values().sum::<u64>();
    assert_eq!(world.offered + world.ground.copies, sum, "one fate for each");
    assert_eq!(world.ground.pool.in_use(), 0);
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
        [west, east].map(|ap| world.ground.tallies[&(sta.number(), ap.number())].frames).iter().sum();
    assert!(got as f64 > 0.97 * sent as f64, "{got} of {sent}, {:?}", world.ground.drops);
}

#[test]
fn a_station_without_beacons_looks_again() {
    let mut world = World::new(1, reference_loss());
    let ap = world.add(access_point(36), 0.0, 0.0);
    let sta = world.add(station(true), 5.0, 0.0);
    world.run(at(2.0));
    assert_eq!(world.medium.access_point(sta), Some(ap));
    let change = |world: &mut World, on| {
        world.medium.change(ap, &airloom_engine::medium::RadioChange::On(on), &mut world.ground);
    };
    change(&mut world, false);
    world.run(at(5.0));
    assert_eq!(world.medium.access_point(sta), None);
    change(&mut world, true);
    assert!(joins(&mut world, sta, 6.0).is_some());
}
