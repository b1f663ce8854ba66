//! Several virtual MACs on one physical radio: airtime on one channel, turns on several, power save.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::phy::{ACK_OCTETS, tables};
use airloom_engine::medium::{
    CardCounts, CardSettings, Membership, RadioChange, RadioId, RadioSettings, Roaming, SettingsError,
};
use airloom_engine::random::Stream;
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

const MS: u64 = 1_000_000;

fn on(channel: u16, megabits: f64) -> RadioSettings {
    RadioSettings { channel, ..at_rate(megabits) }
}

fn counts_of(world: &World) -> CardCounts {
    world.medium.cards().next().expect("a card").2
}

fn card(dwell_ms: u64, switch_ns: u64) -> CardSettings {
    CardSettings { dwell_ns: dwell_ms * MS, switch_ns, ..CardSettings::default() }
}

/// Time of a successful exchange of 802.11a without backoff: DIFS, data, SIFS, ACK.
fn exchange(rate: u64) -> Span {
    let phy = &tables::A;
    let index = phy.rate_index(rate).expect("a rate");
    let ack = phy.rates[usize::from(phy.response(index, phy.mandatory()))].airtime(ACK_OCTETS);
    phy.difs() + phy.rates[usize::from(index)].airtime(1534) + phy.sifs + ack
}

/// Goodput in Mbit/s of each flow over some seconds, all saturated from the start.
fn goodputs(world: &mut World, flows: &[(RadioId, RadioId)], seconds: f64) -> Vec<f64> {
    for &(from, to) in flows {
        world.saturate(world.medium.now(), from, to, PAYLOAD);
    }
    let start = world.medium.now() + Span::from_millis(500);
    world.run(start);
    world.start_counting(start);
    let span = Span::from_nanos((seconds * 1e9) as u64);
    world.run(start + span);
    flows.iter().map(|&(from, to)| world.goodput(from, to, span)).collect()
}

/// Share of exchanges of each of some virtual MACs on one channel, and the mean number of idle
/// slots before an exchange: backoffs and internal collisions alone, without a medium.
fn internal_contention(count: usize) -> (Vec<f64>, f64) {
    let mut random = Stream::named(7, "contention");
    let mut windows = vec![15u64; count];
    let mut slots: Vec<u64> = (0..count).map(|_| random.below(16)).collect();
    let (mut last, mut wins, mut idle) = (vec![0u64; count], vec![0u64; count], 0u64);
    let rounds = 400_000;
    for round in 1..=rounds {
        let least = *slots.iter().min().expect("some");
        idle += least;
        let tied: Vec<usize> = (0..count).filter(|&vmac| slots[vmac] == least).collect();
        let winner = *tied.iter().min_by_key(|&&vmac| last[vmac]).expect("one");
        for slots in &mut slots {
            *slots -= least;
        }
        for vmac in tied {
            windows[vmac] = if vmac == winner { 15 } else { (windows[vmac] * 2 + 1).min(1023) };
            slots[vmac] = random.below(windows[vmac] + 1);
        }
        (last[winner], wins[winner]) = (round, wins[winner] + 1);
    }
    (wins.iter().map(|&wins| wins as f64 / rounds as f64).collect(), idle as f64 / rounds as f64)
}

#[test]
fn one_channel_is_shared_without_collisions_on_the_air() {
    for count in [2usize, 4] {
        let mut world = World::new(3, reference_loss());
        let sink = world.add(on(36, 24.0), 5.0, 0.0);
        let vmacs: Vec<RadioId> = (0..count).map(|_| world.add(on(36, 24.0), 0.0, 0.0)).collect();
        world.medium.add_card("laptop", card(40, MS), &vmacs).expect("a card");
        let flows: Vec<_> = vmacs.iter().map(|&vmac| (vmac, sink)).collect();
        let found = goodputs(&mut world, &flows, 10.0);
        let (shares, idle) = internal_contention(count);
        let cycle = exchange(24_000_000).nanos() as f64 + idle * 9_000.0;
        let all = f64::from(PAYLOAD * 8) * 1e3 / cycle;
        let sum: f64 = found.iter().sum();
        assert!((sum / all - 1.0).abs() < 0.005, "{count}: {sum} against {all}");
        for (share, goodput) in shares.iter().zip(&found) {
            assert!((goodput / (share * all) - 1.0).abs() < 0.03, "{count}: {found:?} against {all}");
        }
        for &vmac in &vmacs {
            let counts = world.medium.counts(vmac);
            assert_eq!((counts.unanswered, counts.given_up), (0, 0));
        }
        let counts = counts_of(&world);
        assert_eq!((counts.switches, counts.visits), (0, 0));
        assert!(counts.collisions > 100, "{counts:?}");
    }
}

#[test]
fn other_stations_contend_with_each_virtual_mac() {
    // Three saturated stations, two of them on one card. These two never collide with each other, so
    // they get somewhat more than the third one, and as much as each other.
    let mut world = World::new(5, reference_loss());
    let sink = world.add(on(36, 12.0), 5.0, 0.0);
    let radios: Vec<RadioId> = (0..3).map(|_| world.add(on(36, 12.0), 0.0, 0.0)).collect();
    world.medium.add_card("laptop", card(40, MS), &radios[..2]).expect("a card");
    let flows: Vec<_> = radios.iter().map(|&radio| (radio, sink)).collect();
    let found = goodputs(&mut world, &flows, 20.0);
    assert!((found[0] / found[1] - 1.0).abs() < 0.05, "{found:?}");
    assert!((0.75..1.0).contains(&(found[2] / found[0])), "{found:?}");
    // Each collision on the air is one between the card and the other station.
    let mut unanswered = |radio: RadioId| world.medium.counts(radio).unanswered;
    let lost = [radios[0], radios[1], radios[2]].map(&mut unanswered);
    assert!(lost[2] > 100 && lost[0] + lost[1] == lost[2], "{lost:?}");
}

#[test]
fn each_channel_gets_its_share_of_the_time() {
    for (channels, dwell, switch) in [
        (&[36u16, 44][..], 40, MS),
        (&[36, 44], 50, 10 * MS),
        (&[36, 44], 20, 0),
        (&[36, 40, 48], 100, 5 * MS),
    ] {
        let mut world = World::new(11, reference_loss());
        let add = |world: &mut World, x: f64| -> Vec<RadioId> {
            channels.iter().map(|&channel| world.add(on(channel, 24.0), x, 0.0)).collect()
        };
        let (sinks, vmacs) = (add(&mut world, 5.0), add(&mut world, 0.0));
        world.medium.add_card("laptop", card(dwell, switch), &vmacs).expect("a card");
        let flows: Vec<_> = vmacs.iter().copied().zip(sinks).collect();
        let found = goodputs(&mut world, &flows, 30.0);
        // A single saturated flow: 7.5 slots of backoff on average.
        let alone = f64::from(PAYLOAD * 8) * 1e3 / (exchange(24_000_000).nanos() as f64 + 67_500.0);
        let turn = (dwell * MS) as f64;
        let share = turn / ((turn + switch as f64) * channels.len() as f64);
        for goodput in &found {
            let error = goodput / (alone * share) - 1.0;
            assert!(error.abs() < 0.01, "{channels:?} {dwell} ms, {switch} ns: {found:?}, {error}");
        }
        let counts = counts_of(&world);
        assert!(vmacs.iter().all(|&vmac| world.medium.counts(vmac).unanswered == 0));
        assert_eq!(counts.switching_ns, counts.switches * switch);
        let turns = 30.5e9 / (turn + switch as f64);
        assert!((counts.switches as f64 / turns - 1.0).abs() < 0.03, "{counts:?} against {turns}");
    }
}

#[test]
fn frames_for_a_channel_that_is_not_served_are_missed() {
    let mut world = World::new(13, reference_loss());
    let (a, b) = (world.add(on(36, 24.0), 0.0, 0.0), world.add(on(44, 24.0), 0.0, 0.0));
    let far = world.add(on(36, 24.0), 5.0, 0.0);
    let settings = CardSettings { power_save: false, ..card(50, MS) };
    world.medium.add_card("laptop", settings, &[a, b]).expect("a card");
    // Channel 36 until 50 ms, from 102 ms to 152 ms, and so on.
    for (sent, arrives) in [(10, true), (60, false), (110, true), (160, false)] {
        world.run(Instant::from_nanos(sent * MS));
        let before = world.sinks.delivered;
        world.offer(Instant::from_nanos(sent * MS), far, Some(a), 100);
        world.run(Instant::from_nanos((sent + 30) * MS));
        assert_eq!(world.sinks.delivered - before, u64::from(arrives), "at {sent} ms");
    }
    // What the card itself has to send waits for its turn: b is served from 255 ms on.
    let peer = world.add(on(44, 24.0), 5.0, 0.0);
    world.run(Instant::from_nanos(215 * MS));
    world.offer(Instant::from_nanos(215 * MS), b, Some(peer), 100);
    world.run(Instant::from_nanos(254 * MS));
    assert_eq!(world.medium.queued(b), 1);
    world.run(Instant::from_nanos(258 * MS));
    assert_eq!(world.medium.queued(b), 0);
    assert_eq!(world.medium.counts(b).unanswered, 0);
}

fn cell(channel: u16, ssid: &str) -> (RadioSettings, RadioSettings) {
    let ap = Membership::AccessPoint { ssid: ssid.into(), beacon_ns: 102_400_000 };
    let roaming = Roaming {
        ssid: ssid.into(),
        channels: vec![36, 44],
        active: true,
        dwell_ns: 30_000_000,
        ..Roaming::default()
    };
    (
        RadioSettings { membership: ap, ..on(channel, 24.0) },
        RadioSettings { membership: Membership::Station(roaming), ..on(channel, 24.0) },
    )
}

/// Two access points on two channels and their stations, which share a card.
fn two_networks(seed: u64, settings: CardSettings) -> (World, [RadioId; 2], [RadioId; 2]) {
    let mut world = World::new(seed, reference_loss());
    let ((ap1, sta1), (ap2, sta2)) = (cell(36, "work"), cell(44, "home"));
    let aps = [world.add(ap1, 5.0, 0.0), world.add(ap2, -5.0, 0.0)];
    let stations = [world.add(sta1, 0.0, 0.0), world.add(sta2, 0.0, 0.0)];
    world.medium.add_card("laptop", settings, &stations).expect("a card");
    world.run(at(2.0));
    for (station, ap) in stations.iter().zip(aps) {
        assert_eq!(world.medium.access_point(*station), Some(ap));
    }
    (world, aps, stations)
}

#[test]
fn access_points_hold_frames_of_stations_that_are_away() {
    for (power_save, least, most) in [(true, 1.0, 1.0), (false, 0.3, 0.8)] {
        let (mut world, aps, stations) = two_networks(17, CardSettings { power_save, ..card(40, MS) });
        // An offer of 1 Mbit/s down each network.
        let before = world.sinks.delivered;
        let mut sent = 0;
        let mut now = at(2.0);
        while now < at(7.0) {
            for (ap, station) in aps.iter().zip(stations) {
                world.offer(now, *ap, Some(station), 1_250);
                sent += 1;
            }
            now += Span::from_millis(10);
            world.run(now);
        }
        world.run(at(8.0));
        let share = (world.sinks.delivered - before) as f64 / f64::from(sent);
        assert!((least..=most).contains(&share), "power save {power_save}: {share}, {:?}", world.sinks.drops);
        let mut held = 0;
        world.medium.visit(&mut |_| held += 1);
        assert_eq!(held, 0);
        assert!(stations.iter().all(|&station| world.medium.access_point(station).is_some()));
    }
}

#[test]
fn a_scan_takes_every_second_turn_at_most() {
    let (mut world, aps, stations) = two_networks(19, card(40, MS));
    world.saturate(world.medium.now(), stations[1], aps[1], PAYLOAD);
    world.start_counting(world.medium.now());
    let counts = counts_of(&world);
    world.run(at(4.0));
    let quiet = world.goodput(stations[1], aps[1], Span::from_millis(2_000));
    assert_eq!(counts_of(&world).visits, counts.visits);
    let scan = RadioChange::Scan { channels: vec![48, 52, 56, 60, 64], active: true, dwell_ns: 100 * MS };
    world.start_counting(at(4.0));
    world.medium.change(stations[0], &scan, &mut world.sinks);
    let mut ended = world.medium.now();
    while world.medium.scanned(stations[0]).times == 0 {
        ended += Span::from_millis(1);
        assert!(ended < at(8.0), "the scan ends");
        world.run(ended);
    }
    let span = ended.since(at(4.0));
    let scanning = world.goodput(stations[1], aps[1], span);
    // Five channels of 100 ms each: at least 500 ms of listening, and as much for the other network.
    assert!((1_000..1_500).contains(&(span.nanos() / MS)), "{span}");
    assert!(scanning > 0.85 * quiet, "{scanning} against {quiet}");
    world.run(at(9.0));
    assert_eq!(world.medium.access_point(stations[0]), Some(aps[0]), "it has stayed in its network");
}

#[test]
fn a_scan_soon_after_another_one_is_answered_from_the_cache() {
    for (age_ms, answered) in [(2_000, true), (0, false)] {
        let settings = CardSettings { scan_age_ns: age_ms * MS, ..card(40, MS) };
        let (mut world, aps, stations) = two_networks(19, settings);
        let scan = RadioChange::Scan { channels: vec![36, 44, 48], active: true, dwell_ns: 30 * MS };
        let mut ages = Vec::new();
        for (round, &station) in stations.iter().enumerate() {
            let start = at(2.0) + Span::from_millis(1_000 * round as u64);
            world.run(start);
            world.medium.change(station, &scan, &mut world.sinks);
            world.run(start + Span::from_millis(900));
            let scanned = world.medium.scanned(station);
            assert_eq!(scanned.times, 1);
            let mut found: Vec<_> = scanned.found.iter().map(|one| one.radio).collect();
            found.sort();
            assert_eq!(found, aps, "all networks, round {round}");
            ages.push(scanned.found.iter().map(|one| one.age).max().expect("some"));
        }
        let counts = counts_of(&world);
        assert_eq!((counts.scans_asked, counts.scans_cached), (6, if answered { 3 } else { 0 }));
        // The first scan ends within half a second; a beacon may be younger than its answers.
        let oldest = ages[1].nanos() / MS;
        assert!(if answered { oldest <= 1_000 } else { oldest == 0 }, "{ages:?}");
        assert_eq!(ages[0], Span::ZERO);
        assert!(counts.scan_oldest_ns >= ages[1].nanos(), "a network may answer twice");
    }
}

#[test]
fn wrong_cards_are_refused() {
    let mut world = World::new(1, reference_loss());
    let radios: Vec<RadioId> = (0..5).map(|_| world.add(on(36, 24.0), 0.0, 0.0)).collect();
    let other = world.add(RadioSettings { phy: "802.11g".into(), channel: 1, ..at_rate(24.0) }, 0.0, 0.0);
    let mut refused = |settings: CardSettings, radios: &[RadioId]| match world
        .medium
        .add_card("laptop", settings, radios)
    {
        Err(SettingsError::Card { setting, .. }) => setting,
        found => panic!("{found:?}"),
    };
    assert_eq!(refused(CardSettings::default(), &radios), "number of radios");
    assert_eq!(refused(CardSettings::default(), &[]), "number of radios");
    assert_eq!(refused(CardSettings::default(), &[radios[0], radios[0]]), "radio");
    assert_eq!(refused(CardSettings::default(), &[radios[0], other]), "phy");
    assert_eq!(refused(CardSettings { virtual_macs: 0, ..card(40, 0) }, &radios[..1]), "virtual_macs");
    assert_eq!(refused(card(501, 0), &radios[..1]), "dwell_ns");
    assert_eq!(refused(card(40, 101 * MS), &radios[..1]), "switch_ns");
    let age = CardSettings { scan_age_ns: 60_001 * MS, ..CardSettings::default() };
    assert_eq!(refused(age, &radios[..1]), "scan_age_ns");
    world.medium.add_card("laptop", CardSettings::default(), &radios[..4]).expect("four virtual MACs");
    let again = world.medium.add_card("tablet", CardSettings::default(), &radios[3..]);
    assert!(matches!(again, Err(SettingsError::Card { setting: "radio", .. })), "{again:?}");
}
