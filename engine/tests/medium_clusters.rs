//! Clusters: joint processing of radios that are all in range of each other changes no results.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::mobility::Position;
use airloom_engine::medium::propagation::Disk;
use airloom_engine::medium::{
    Airtime, Membership, Police, Policed, RadioChange, RadioCounts, RadioId, RadioSettings, RateSettings,
    Roaming,
};
use airloom_engine::random::Stream;
use airloom_engine::time::Instant;
use world::{PAYLOAD, World, at, at_rate, reference_loss};

/// All observable results of a run: arrivals in order, and the counters of every radio at
/// intervals.
#[derive(Debug, PartialEq)]
struct Seen {
    arrivals: Vec<(u32, u32, Instant)>,
    accounts: Vec<(RadioCounts, Airtime)>,
    drops: Vec<(String, u64)>,
}

/// Parameters of a scene.
struct Scene {
    name: &'static str,
    settings: RadioSettings,
    stations: u32,
    /// Transmit powers in dBm and rates in Mbit/s of the stations, in turn; those of `settings` if
    /// empty.
    powers: &'static [f64],
    rates: &'static [f64],
    /// Radius of the circle of stations round the first radio, m.
    radius: f64,
    /// Frames per second that each station offers; saturated if `None`.
    load: Option<f64>,
    /// Shares of them sent to all, and to another station than the first.
    broadcast: f64,
    across: f64,
    seconds: f64,
}

/// Runs a scene; setting a frame error rate, even of 0, disables joint processing.
fn play(scene: &Scene, seed: u64, together: bool) -> (Seen, f64) {
    let mut world = World::new(seed, reference_loss());
    let mut random = Stream::named(seed, "scene");
    let sink = world.add(scene.settings.clone(), 0.0, 0.0);
    let mut stations: Vec<RadioId> = Vec::new();
    for station in 0..scene.stations {
        let angle = f64::from(station) / f64::from(scene.stations) * core::f64::consts::TAU;
        let place = (scene.radius * libm::cos(angle), scene.radius * libm::sin(angle));
        let mut settings = scene.settings.clone();
        let in_turn = |values: &[f64]| values.iter().copied().cycle().nth(station as usize);
        settings.power_dbm = in_turn(scene.powers).unwrap_or(settings.power_dbm);
        settings.rate = in_turn(scene.rates).map_or(settings.rate, |rate| at_rate(rate).rate);
        stations.push(world.add(settings, place.0, place.1));
    }
    if !together {
        world.medium.set_frame_error(sink, sink, 0.0);
    }
    world.sinks.keep_arrivals = true;
    let mut accounts = Vec::new();
    let rounds = (scene.seconds * 50.0) as u32;
    if scene.load.is_none() {
        stations.iter().for_each(|&station| world.saturate(at(0.0), station, sink, PAYLOAD));
    }
    let mut now = 0.0;
    for round in 1..=rounds {
        let end = f64::from(round) * 0.02;
        if let Some(load) = scene.load {
            while now < end {
                world.run(at(now));
                let from = stations[random.below(u64::from(scene.stations)) as usize];
                let other = stations[random.below(u64::from(scene.stations)) as usize];
                let to = if random.chance(scene.broadcast) {
                    None
                } else if random.chance(scene.across) && other != from {
                    Some(other)
                } else {
                    Some(sink)
                };
                world.offer(world.medium.now(), from, to, 20 + random.below(1400) as u32);
                now += random.exponential() / (load * f64::from(scene.stations));
            }
        }
        world.run(at(end));
        if round % 10 == 0 {
            let watched = stations[(round / 10 % scene.stations) as usize];
            let time = world.medium.airtime(watched, at(end));
            accounts.push((world.medium.counts(watched), time));
        }
    }
    for &radio in &stations {
        accounts.push((world.medium.counts(radio), world.medium.airtime(radio, at(scene.seconds))));
    }
    let frames: u64 = stations.iter().chain([&sink]).map(|&radio| world.medium.counts(radio).sent).sum();
    let individual = world.medium.individual_receptions() as f64 / frames as f64;
    let arrivals = world.sinks.arrivals.iter();
    let seen = Seen {
        arrivals: arrivals.map(|(radio, frame, now)| (radio.number(), frame.origin, *now)).collect(),
        accounts,
        drops: world.sinks.drops.iter().map(|(why, count)| (format!("{why:?}"), *count)).collect(),
    };
    (seen, individual)
}

fn scenes() -> Vec<Scene> {
    let plain = || Scene {
        name: "saturated",
        settings: at_rate(54.0),
        stations: 20,
        powers: &[],
        rates: &[],
        radius: 5.0,
        load: None,
        broadcast: 0.0,
        across: 0.0,
        seconds: 2.0,
    };
    let b = RadioSettings { phy: "802.11b".into(), channel: 1, ..at_rate(11.0) };
    vec![
        plain(),
        Scene { name: "in one place", radius: 0.0, ..plain() },
        Scene {
            name: "802.11n at 40 MHz",
            settings: RadioSettings {
                phy: "802.11n".into(),
                width_mhz: 40,
                rate: RateSettings::Mcs(15),
                ..at_rate(6.0)
            },
            radius: 10.0,
            broadcast: 0.1,
            ..plain()
        },
        Scene {
            name: "broken frames",
            radius: 0.1,
            settings: RadioSettings { preamble_db: None, ..at_rate(24.0) },
            ..plain()
        },
        Scene { name: "slow and captured", settings: at_rate(6.0), seconds: 4.0, ..plain() },
        Scene { name: "quiet signals", radius: 20.0, settings: at_rate(24.0), ..plain() },
        Scene { name: "weak signals", radius: 24.0, settings: at_rate(54.0), ..plain() },
        Scene {
            name: "weak and captured",
            powers: &[6.0, 20.0, 12.0],
            rates: &[6.0, 24.0],
            radius: 10.0,
            seconds: 3.0,
            ..plain()
        },
        Scene {
            name: "weak, loaded",
            settings: RadioSettings { power_dbm: 5.0, ..at_rate(12.0) },
            radius: 10.0,
            load: Some(30.0),
            across: 0.5,
            ..plain()
        },
        Scene { name: "weak 802.11b", radius: 22.0, settings: b.clone(), ..plain() },
        Scene {
            name: "requests",
            settings: RadioSettings { rts_octets: Some(500), ..at_rate(54.0) },
            ..plain()
        },
        Scene {
            name: "fragments",
            settings: RadioSettings { fragment_octets: Some(400), ..at_rate(54.0) },
            ..plain()
        },
        Scene { name: "many in a collision", stations: 80, seconds: 0.5, ..plain() },
        Scene {
            name: "different powers",
            powers: &[0.0, 30.0, 15.0, 24.0, 8.0],
            rates: &[6.0, 54.0, 24.0],
            seconds: 3.0,
            ..plain()
        },
        Scene {
            name: "long propagation delays",
            settings: RadioSettings { power_dbm: 54.0, ..at_rate(54.0) },
            powers: &[48.0, 60.0, 54.0],
            rates: &[24.0, 54.0],
            radius: 100.0,
            seconds: 3.0,
            ..plain()
        },
        Scene {
            name: "captured reservations",
            powers: &[0.0, 30.0, 15.0],
            rates: &[6.0, 54.0],
            load: Some(100.0),
            across: 0.5,
            ..plain()
        },
        Scene {
            name: "captured requests",
            settings: RadioSettings { rts_octets: Some(500), ..at_rate(54.0) },
            powers: &[0.0, 30.0, 15.0, 24.0],
            load: Some(60.0),
            across: 0.5,
            ..plain()
        },
        Scene { name: "802.11b", settings: b, seconds: 4.0, ..plain() },
        Scene { name: "loaded", load: Some(40.0), across: 0.3, ..plain() },
        Scene { name: "lightly loaded", load: Some(5.0), across: 0.5, seconds: 6.0, ..plain() },
        Scene { name: "with broadcast", load: Some(30.0), broadcast: 0.1, across: 0.3, ..plain() },
        Scene {
            name: "requests under load",
            settings: RadioSettings { rts_octets: Some(300), ..at_rate(24.0) },
            load: Some(30.0),
            across: 0.3,
            ..plain()
        },
        Scene {
            name: "minstrel",
            settings: RadioSettings { rate: RateSettings::Minstrel, ..at_rate(54.0) },
            radius: 15.0,
            load: Some(30.0),
            ..plain()
        },
    ]
}

#[test]
fn joint_processing_equals_individual_processing() {
    let mut individual = String::new();
    for scene in scenes() {
        for seed in 1..4 {
            let ((together, few), (apart, many)) = (play(&scene, seed, true), play(&scene, seed, false));
            assert!(apart.arrivals.len() > 400, "{}: {}", scene.name, apart.arrivals.len());
            let differs = together.arrivals.iter().zip(&apart.arrivals).position(|(one, other)| one != other);
            assert_eq!(differs, None, "{} {seed}: arrivals differ from the {differs:?}-th on", scene.name);
            for (number, (one, other)) in together.accounts.iter().zip(&apart.accounts).enumerate() {
                assert_eq!(one, other, "{} {seed}: account {number}", scene.name);
            }
            assert_eq!(together, apart, "{} {seed}", scene.name);
            individual += &format!("{} {seed}: {few:.1} of {many:.1} for each frame\n", scene.name);
        }
    }
    println!("{individual}");
}

/// An access point and its stations, which are changed at random at intervals.
fn changing(seed: u64, together: bool) -> (Seen, f64) {
    let mut world = World::new(seed, reference_loss());
    let mut random = Stream::named(seed, "changes");
    let point = Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 50_000_000 };
    let roaming =
        Roaming { ssid: "lab".into(), channels: vec![36, 40], dwell_ns: 60_000_000, ..Roaming::default() };
    let sink = world.add(RadioSettings { membership: point, ..at_rate(54.0) }, 0.0, 0.0);
    let station = RadioSettings { membership: Membership::Station(roaming), ..at_rate(54.0) };
    let stations: Vec<_> =
        (0..12).map(|n| world.add(station.clone(), 3.0 * f64::from(n % 4), 2.0 * f64::from(n / 4))).collect();
    if !together {
        world.medium.set_frame_error(sink, sink, 0.0);
    }
    world.sinks.keep_arrivals = true;
    let (mut now, mut accounts) = (0.5, Vec::new());
    while now < 8.0 {
        now += random.exponential() * 1e-3;
        world.run(at(now));
        let node = stations[random.below(12) as usize];
        let to = stations[random.below(12) as usize];
        world.offer(
            at(now),
            node,
            (!random.chance(0.02) && to != node).then_some(to),
            20 + random.below(1400) as u32,
        );
        if random.chance(0.99) {
            continue;
        }
        let change = match random.below(10) {
            0 => RadioChange::Power(10.0 + 6.0 * random.unit()),
            1 => RadioChange::Position(Position::new(12.0 * random.unit(), 0.0, 0.0)),
            2 => RadioChange::Scan { channels: vec![36, 40], active: true, dwell_ns: 5_000_000 },
            3 => RadioChange::On(false),
            4 => RadioChange::RtsOctets(random.chance(0.5).then_some(400)),
            5 => RadioChange::Rate(RateSettings::Minstrel),
            6 => RadioChange::Grant(Box::new(Policed {
                slice: "one".to_owned(),
                channels: vec![36],
                power_dbm: None,
                ssids: Vec::new(),
                airtime_weight: None,
                assigned: random.chance(0.7),
                police: Police::Watch,
            })),
            _ => RadioChange::On(true),
        };
        world.medium.change(node, &change, &mut world.sinks);
        accounts.push((world.medium.counts(to), world.medium.airtime(to, at(now))));
    }
    let frames: u64 = stations.iter().chain([&sink]).map(|&radio| world.medium.counts(radio).sent).sum();
    let arrivals = world.sinks.arrivals.iter();
    let seen = Seen {
        arrivals: arrivals.map(|(radio, frame, now)| (radio.number(), frame.origin, *now)).collect(),
        accounts,
        drops: world.sinks.drops.iter().map(|(why, count)| (format!("{why:?}"), *count)).collect(),
    };
    (seen, world.medium.individual_receptions() as f64 / frames as f64)
}

#[test]
fn changes_of_radios_have_the_same_effect_with_joint_processing() {
    for seed in 1..6 {
        let ((together, few), (apart, many)) = (changing(seed, true), changing(seed, false));
        assert!(apart.arrivals.len() > 2000, "{}", apart.arrivals.len());
        assert_eq!(together, apart, "seed {seed}");
        assert!(few < 0.8 * many, "{few:.1} of {many:.1} for each frame");
    }
}

#[test]
fn twice_as_many_listeners_need_hardly_more_individual_receptions() {
    // The same total number of frames for any number of stations.
    let of = |stations: u32| {
        let settings = at_rate(54.0);
        let load = Some(800.0 / f64::from(stations));
        let name = "a cell that grows";
        let scene = Scene {
            name,
            settings,
            stations,
            powers: &[],
            rates: &[],
            radius: 5.0,
            load,
            broadcast: 0.0,
            across: 0.5,
            seconds: 3.0,
        };
        play(&scene, 1, true).1
    };
    let (few, many) = (of(40), of(80));
    assert!(many < 1.2 * few && many < 12.0, "{few:.2} and {many:.2} for each frame");
}

/// A cell of saturated stations, and a strong sender far away that does not hear them.
fn reached(together: bool) -> (Vec<(u32, u32, Instant)>, Vec<RadioCounts>) {
    let mut world = World::new(1, reference_loss());
    let faint = RadioSettings { power_dbm: 10.0, ..at_rate(24.0) };
    let sink = world.add(faint.clone(), 0.0, 0.0);
    let stations: Vec<_> = (0..10).map(|n| world.add(faint.clone(), 0.5 * f64::from(n), 1.0)).collect();
    let strong = world.add(RadioSettings { power_dbm: 45.0, ..at_rate(6.0) }, 600.0, 0.0);
    if !together {
        world.medium.set_frame_error(sink, sink, 0.0);
    }
    assert!(world.medium.power_at(sink, strong) < -117.0 && world.medium.power_at(strong, sink) > -90.0);
    world.sinks.keep_arrivals = true;
    stations.iter().for_each(|&station| world.saturate(at(0.0), station, sink, PAYLOAD));
    for round in 1..200u32 {
        let now = at(f64::from(round) * 0.017);
        world.run(now);
        world.offer(now, strong, None, 1000);
    }
    world.run(at(4.0));
    let arrivals = world.sinks.arrivals.iter();
    let arrivals = arrivals.map(|(radio, frame, now)| (radio.number(), frame.origin, *now)).collect();
    (arrivals, stations.iter().map(|&station| world.medium.counts(station)).collect())
}

#[test]
fn a_sender_that_does_not_hear_a_cell_is_heard_by_it() {
    let (together, apart) = (reached(true), reached(false));
    assert!(apart.0.len() > 2000, "{}", apart.0.len());
    assert_eq!(together, apart);
}

/// Two senders that do not hear each other, and their receiver in between.
fn hidden(seed: u64, together: bool) -> (Vec<(u32, u32, Instant)>, Vec<RadioCounts>) {
    let mut world = World::new(seed, Box::new(Disk { range_m: 150.0, loss_db: 0.0 }));
    let mut random = Stream::named(seed, "hidden");
    let radios = [0.0, 100.0, 200.0].map(|x| world.add(at_rate(6.0), x, 0.0));
    if !together {
        world.medium.set_frame_error(radios[1], radios[1], 0.0);
    }
    world.sinks.keep_arrivals = true;
    let mut now = 0.0;
    while now < 4.0 {
        now += random.exponential() * 2.6e-3;
        world.run(at(now));
        let sender = radios[if random.chance(0.5) { 0 } else { 2 }];
        world.offer(at(now), sender, (!random.chance(0.01)).then_some(radios[1]), 1498);
    }
    world.run(at(60.0));
    assert!(radios.iter().all(|&radio| world.medium.queued(radio) == 0), "a sender stands still");
    let arrivals = world.sinks.arrivals.iter();
    let arrivals = arrivals.map(|(radio, frame, now)| (radio.number(), frame.origin, *now)).collect();
    (arrivals, radios.iter().map(|&radio| world.medium.counts(radio)).collect())
}

#[test]
fn senders_that_do_not_hear_each_other_share_a_receiver() {
    for seed in 0..20 {
        let (together, apart) = (hidden(seed, true), hidden(seed, false));
        assert!(apart.0.len() > 300, "{}", apart.0.len());
        assert_eq!(together.1, apart.1, "{seed}");
        assert_eq!(together.0, apart.0, "{seed}");
    }
}
