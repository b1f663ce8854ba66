//! Cards whose virtual MACs belong to stacks: announcements to access points, and scans.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

mod stack;

use airloom_engine::frame::Frame;
use airloom_engine::medium::mobility::Position;
use airloom_engine::medium::wlan::TxRequest;
use airloom_engine::medium::{
    CardCounts, CardSettings, Membership, RadioChange, RadioId, RadioSettings, Roaming,
};
use airloom_engine::random::Stream;
use airloom_engine::time::Instant;
use airloom_engine::{Change, MediumId, PortId};
use stack::{GROUP, Lab, Received, ask, beacon, mac, qos_data, wlan};

const MS: u64 = 1_000_000;
const OTHER: u16 = 5220;
const THIRD: u16 = 5240;

/// Turns of 40 ms; nothing is answered from results of earlier scans.
const TURNS: CardSettings = CardSettings {
    virtual_macs: 4,
    dwell_ns: 40 * MS,
    switch_ns: MS,
    power_save: true,
    scan_age_ns: 0,
    merge_scans: true,
};

fn on(mhz: u16, cookie: u64) -> TxRequest {
    TxRequest { mhz, ..ask(cookie, &[(4, 3)]) }
}

/// QoS data from a station to its access point.
fn to_network(network: [u8; 6], from: [u8; 6], sequence: u16) -> Vec<u8> {
    let mut octets = qos_data(network, from, sequence, 300);
    octets[1] = 0x01;
    octets
}

fn probe(from: [u8; 6]) -> Vec<u8> {
    let mut octets = vec![0x40, 0, 0, 0];
    octets.extend(GROUP);
    octets.extend(from);
    octets.extend(GROUP);
    octets.extend([0; 4]);
    octets
}

/// Two stations on one card, 40 ms on each channel and 1 ms for a switch; two access points and a
/// third radio on a channel of its own. All of stacks.
fn lab() -> (Lab, [PortId; 2], [PortId; 3]) {
    lab_with(TURNS)
}

fn lab_with(settings: CardSettings) -> (Lab, [PortId; 2], [PortId; 3]) {
    let mut lab = Lab::new(23);
    let mut stations = Vec::new();
    let mut radios = Vec::new();
    for node in [1u8, 2] {
        let (port, radio) = lab.add(node, 0.0, wlan());
        lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack");
        stations.push(port);
        radios.push(radio);
    }
    let medium: MediumId = lab.medium;
    lab.engine.add_card(medium, "laptop", settings, &radios).expect("a card");
    let others = [11u8, 12, 13].map(|node| lab.stack(node, 5.0));
    // Each access point is tuned to the channel on which it sends.
    for (port, node, mhz) in [(others[0], 11, 5180), (others[1], 12, OTHER), (others[2], 13, THIRD)] {
        lab.send(port, 0, &beacon(mac(node), 0), on(mhz, 0));
    }
    lab.run(5 * MS);
    lab.send(stations[0], 5 * MS, &to_network(mac(11), mac(1), 1), on(5180, 1));
    lab.send(stations[1], 5 * MS, &to_network(mac(12), mac(2), 1), on(OTHER, 2));
    lab.run(100 * MS);
    (lab, [stations[0], stations[1]], others)
}

#[test]
fn the_card_announces_what_it_leaves_and_where_it_returns() {
    let (mut lab, _, others) = lab();
    lab.book.received.clear();
    lab.run(1_000 * MS);
    for (port, station, network) in [(others[0], 1, 11), (others[1], 2, 12)] {
        let nulls: Vec<_> =
            lab.book.at(port).into_iter().filter(|received| received.octets[0] == 0x48).collect();
        // A turn takes 82 ms: two null frames in each.
        assert!((20..=23).contains(&nulls.len()), "{}", nulls.len());
        for pair in nulls.windows(2) {
            let [first, second] = [pair[0].octets[1], pair[1].octets[1]];
            assert_eq!(
                (first | second, first & second),
                (0x11, 0x01),
                "to the network, dozing every other time"
            );
            // Present for 40 ms, away for 42 ms; both frames contend for the channel.
            let apart = pair[1].at.since(pair[0].at).nanos() / MS;
            let expected = if first == 0x01 { 39..=41 } else { 41..=43 };
            assert!(expected.contains(&apart), "{apart} ms");
        }
        for null in nulls {
            assert_eq!(null.octets.len(), 24);
            assert_eq!(null.octets[4..10], mac(network));
            assert_eq!(null.octets[10..16], mac(station));
            assert_eq!(null.octets[16..22], mac(network));
        }
    }
    let asked: Vec<u64> = lab.book.statuses.iter().map(|(.., status)| status.cookie).collect();
    assert_eq!(asked.len(), 5, "no status for frames that no stack sent: {asked:?}");
}

#[test]
fn a_probe_request_is_a_visit_and_the_other_station_goes_on() {
    let (mut lab, stations, others) = lab();
    let visits = |lab: &mut Lab| {
        let medium = lab.engine.medium(lab.medium).expect("known");
        medium.cards().next().expect("a card").2.visits
    };
    let before = visits(&mut lab);
    lab.book.received.clear();
    lab.book.statuses.clear();
    // The first station scans a third channel while the second one sends every 5 ms.
    lab.send(stations[0], 200 * MS, &probe(mac(1)), on(THIRD, 50));
    for number in 0..60u16 {
        let at = (200 + 5 * u64::from(number)) * MS;
        lab.send(stations[1], at, &to_network(mac(12), mac(2), 10 + number), on(OTHER, 100));
    }
    lab.run(800 * MS);
    assert_eq!(visits(&mut lab), before + 1);
    let heard = lab.book.at(others[2]);
    let probes: Vec<_> = heard.iter().filter(|received| received.octets[0] == 0x40).collect();
    assert_eq!(probes.len(), 1);
    // Served next, not in turn: at most the end of a turn after a visit.
    assert!(probes[0].at.nanos() < 225 * MS, "{:?}", probes[0].at);
    let acknowledged = lab.book.of(stations[1]).iter().filter(|status| status.acknowledged).count();
    assert_eq!(acknowledged, 60, "buffered, not lost");
    // The first station is on its own channel again without having sent anything there.
    lab.send(stations[0], 800 * MS, &to_network(mac(11), mac(1), 2), on(5180, 51));
    lab.run(900 * MS);
    assert!(lab.book.of(stations[0]).iter().any(|status| status.cookie == 51 && status.acknowledged));
}

#[test]
fn two_scans_at_once_both_hear_their_answers() {
    for later in [1, 5, 12, 19] {
        let mut lab = Lab::new(29);
        let stations = [1u8, 2].map(|node| lab.add(node, 0.0, wlan()));
        for ((port, _), node) in stations.into_iter().zip([1, 2]) {
            lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack");
        }
        let radios = stations.map(|(_, radio)| radio);
        lab.engine.add_card(lab.medium, "laptop", TURNS, &radios).expect("a card");
        let others = [11u8, 12].map(|node| lab.stack(node, 5.0));
        // Each access point answers a millisecond after the probe; each stack listens for 30 ms.
        for (round, start) in [(0u16, 100u64), (1, 300)] {
            let asked = [start, start + later];
            let scans = [(stations[0].0, others[0], 5180), (stations[1].0, others[1], OTHER)];
            for ((place, (port, _, mhz)), at) in scans.into_iter().enumerate().zip(asked) {
                lab.send(port, at * MS, &probe(mac(1 + place as u8)), on(mhz, u64::from(round)));
            }
            let mut answered = [None; 2];
            for now in start..start + 60 {
                lab.run(now * MS);
                for (place, (_, other, mhz)) in scans.into_iter().enumerate() {
                    let from = mac(1 + place as u8);
                    let its = |got: &Received| got.octets[0] == 0x40 && got.octets[10..16] == from;
                    if answered[place].is_none() && lab.book.at(other).into_iter().any(its) {
                        let node = place as u8;
                        let mut answer = qos_data(mac(1 + node), mac(11 + node), round, 60);
                        answer[0] = 0x50;
                        lab.send(other, now * MS + MS, &answer, on(mhz, 9));
                        answered[place] = Some(now);
                    }
                }
            }
            for (place, (port, ..)) in scans.into_iter().enumerate() {
                let got = lab.book.at(port);
                let got: Vec<_> = got.iter().filter(|got| got.octets[0] == 0x50).map(|got| got.at).collect();
                let [at] = got[..] else { panic!("{place}, {later} ms later: {got:?} for {answered:?}") };
                assert!(at.nanos() <= (asked[place] + 30) * MS, "{place}: {at}, asked at {asked:?} ms");
            }
            lab.book.received.clear();
        }
    }
}

/// A beacon or a probe response with an SSID; `network` is its sender.
fn announcement(control: u8, to: [u8; 6], network: [u8; 6], ssid: &[u8]) -> Vec<u8> {
    let mut octets = vec![control, 0, 0, 0];
    for address in [to, network, network] {
        octets.extend(address);
    }
    octets.extend([0; 10]);
    octets.extend([100, 0, 1, 0, 0, u8::try_from(ssid.len()).expect("short")]);
    octets.extend(ssid);
    octets
}

/// A probe request that names a network.
fn probe_for(from: [u8; 6], ssid: &[u8]) -> Vec<u8> {
    let mut octets = probe(from);
    octets.truncate(24);
    octets.extend([0, u8::try_from(ssid.len()).expect("short")]);
    octets.extend(ssid);
    octets
}

fn counts(lab: &mut Lab) -> CardCounts {
    let medium = lab.engine.medium(lab.medium).expect("known");
    medium.cards().next().expect("a card").2
}

/// Sends the answer of the third radio a millisecond after the first probe request from now on, and
/// runs until `until` ms; the number of probe requests on the air.
fn answered(lab: &mut Lab, radio: PortId, from: u64, until: u64) -> usize {
    lab.book.received.clear();
    let mut answers = 0;
    for now in from..until {
        lab.run(now * MS);
        let probes: Vec<[u8; 6]> = lab
            .book
            .at(radio)
            .iter()
            .filter(|got| got.octets[0] == 0x40)
            .map(|got| got.octets[10..16].try_into().expect("six octets"))
            .collect();
        for &to in &probes[answers..] {
            lab.send(radio, now * MS + MS, &announcement(0x50, to, mac(13), b"third"), on(THIRD, 9));
        }
        answers = probes.len();
    }
    answers
}

/// What arrived at a port as an answer: times in ms, receiver addresses, and TSF in ms.
fn answers_at(lab: &Lab, port: PortId) -> Vec<(u64, [u8; 6], u64)> {
    let answers = lab.book.at(port).into_iter().filter(|got| got.octets[0] == 0x50);
    answers
        .map(|got| {
            let to = got.octets[4..10].try_into().expect("six octets");
            (got.at.nanos() / MS, to, got.status.tsf_us / 1_000)
        })
        .collect()
}

#[test]
fn a_scan_at_the_same_time_is_made_once() {
    for merge_scans in [true, false] {
        let (mut lab, stations, others) = lab_with(CardSettings { scan_age_ns: 0, merge_scans, ..TURNS });
        lab.send(stations[0], 200 * MS, &probe(mac(1)), on(THIRD, 50));
        lab.send(stations[1], 205 * MS, &probe(mac(2)), on(THIRD, 51));
        let sent = answered(&mut lab, others[2], 200, 320);
        assert_eq!(sent, if merge_scans { 1 } else { 2 });
        for (port, node) in [(stations[0], 1), (stations[1], 2)] {
            let got = answers_at(&lab, port);
            assert_eq!(got.len(), 1, "{got:?}");
            assert_eq!(got[0].1, mac(node), "with the address of the virtual MAC");
        }
        let done = lab.book.statuses.iter().filter(|(.., status)| [50, 51].contains(&status.cookie));
        assert_eq!(done.count(), 2, "a status for each request");
        let counts = counts(&mut lab);
        assert_eq!((counts.scans_asked, counts.scans_merged), (2, u64::from(merge_scans)));
        assert_eq!((counts.scans_cached, counts.scan_results), (0, u64::from(merge_scans)));
        assert!(counts.scan_oldest_ns < 20 * MS, "those of the scan at hand: {counts:?}");
    }
}

#[test]
fn recent_results_answer_a_scan_with_their_age() {
    let settings = CardSettings { scan_age_ns: 1_000 * MS, ..TURNS };
    let (mut lab, stations, others) = lab_with(settings);
    lab.send(stations[0], 200 * MS, &probe(mac(1)), on(THIRD, 50));
    assert_eq!(answered(&mut lab, others[2], 200, 320), 1);
    let first = answers_at(&lab, stations[0])[0];
    let visits = counts(&mut lab).visits;
    // Within the limit: at once, and nothing on the air.
    lab.send(stations[1], 700 * MS, &probe(mac(2)), on(THIRD, 51));
    assert_eq!(answered(&mut lab, others[2], 700, 760), 0);
    let known = counts(&mut lab);
    assert_eq!(answers_at(&lab, stations[1]), [(700, mac(2), first.2)], "with the time of its reception");
    assert_eq!((known.visits, known.scans_cached, known.scan_results), (visits, 1, 1));
    let age = known.scan_age_ns / MS;
    assert!((699 - first.0..=700 - first.0).contains(&age), "{age} ms, received at {} ms", first.0);
    // A name that was not heard, and one that was.
    lab.send(stations[1], 800 * MS, &probe_for(mac(2), b"hidden"), on(THIRD, 52));
    assert_eq!(answered(&mut lab, others[2], 800, 900), 1);
    lab.send(stations[0], 900 * MS, &probe_for(mac(1), b"third"), on(THIRD, 53));
    assert_eq!(answered(&mut lab, others[2], 900, 960), 0);
    assert_eq!(counts(&mut lab).scans_cached, 2);
    // Beyond the limit, the card goes there again.
    lab.send(stations[1], 2_000 * MS, &probe(mac(2)), on(THIRD, 54));
    assert_eq!(answered(&mut lab, others[2], 2_000, 2_100), 1);
    assert_eq!(counts(&mut lab).scans_cached, 2);
    assert!(counts(&mut lab).visits > visits);
}

#[test]
fn the_radio_sleeps_while_all_its_virtual_macs_do() {
    let (mut lab, stations, _) = lab_with(TURNS);
    // Both on one channel, so that the card makes no announcements of its own.
    lab.send(stations[1], 100 * MS, &to_network(mac(11), mac(2), 2), on(5180, 3));
    let null = |node: u8, dozes: bool, sequence| {
        let mut octets = to_network(mac(11), mac(node), sequence);
        octets[0] = 0x48;
        octets[1] |= if dozes { 0x10 } else { 0 };
        octets
    };
    lab.run(300 * MS);
    lab.send(stations[0], 300 * MS, &null(1, true, 20), on(5180, 60));
    lab.send(stations[1], 400 * MS, &null(2, true, 21), on(5180, 61));
    lab.send(stations[0], 900 * MS, &null(1, false, 22), on(5180, 62));
    lab.run(1_000 * MS);
    let asleep = counts(&mut lab).asleep_ns;
    assert!((498 * MS..=502 * MS).contains(&asleep), "{asleep}");
    let medium = lab.engine.medium(lab.medium).expect("known");
    let dozed = [0, 1].map(|radio| medium.dozed(RadioId::new(radio)).nanos() / MS);
    assert!((598..=602).contains(&dozed[0]) && (598..=602).contains(&dozed[1]), "{dozed:?}");
    // Nobody acknowledges this one: the access point does not know.
    let mut lost = null(1, true, 23);
    lost[4..10].copy_from_slice(&mac(99));
    lab.send(stations[0], 1_000 * MS, &lost, on(5180, 63));
    lab.run(1_500 * MS);
    assert_eq!(counts(&mut lab).asleep_ns, asleep);
}

#[test]
fn a_frame_for_a_virtual_mac_reaches_no_other_one() {
    let (mut lab, stations, others) = lab();
    // Both on the first channel now: no turns any more.
    lab.send(stations[1], 100 * MS, &to_network(mac(11), mac(2), 2), on(5180, 3));
    lab.run(300 * MS);
    lab.book.received.clear();
    lab.send(others[0], 300 * MS, &qos_data(mac(1), mac(11), 7, 200), on(5180, 60));
    lab.send(others[0], 310 * MS, &qos_data(mac(2), mac(11), 8, 200), on(5180, 61));
    lab.send(others[0], 320 * MS, &beacon(mac(11), 9), on(5180, 62));
    lab.run(400 * MS);
    let got = |port| lab.book.at(port).iter().map(|received| received.octets[0]).collect::<Vec<_>>();
    assert_eq!(got(stations[0]), [0x88, 0x80]);
    assert_eq!(got(stations[1]), [0x88, 0x80]);
    assert!(
        lab.book.of(others[0]).iter().filter(|status| status.cookie >= 60).take(2).all(|s| s.acknowledged)
    );
    // One virtual MAC does not hear the other.
    lab.book.received.clear();
    lab.send(stations[0], 400 * MS, &qos_data(mac(2), mac(1), 9, 200), on(5180, 70));
    lab.run(450 * MS);
    assert!(lab.book.at(stations[1]).is_empty());
}

#[test]
fn any_sequence_of_changes_keeps_the_sum_of_the_ledger() {
    for seed in 0..12u64 {
        let mut random = Stream::named(seed, "changes");
        let mut lab = Lab::new(seed);
        let cell = |ssid: &str, channel| RadioSettings {
            channel,
            membership: Membership::AccessPoint { ssid: ssid.into(), beacon_ns: 102_400_000 },
            ..RadioSettings::default()
        };
        let station = |ssid: &str| {
            let channels = vec![36, 44];
            let roaming = Roaming { ssid: ssid.into(), channels, active: true, ..Roaming::default() };
            RadioSettings { membership: Membership::Station(roaming), ..RadioSettings::default() }
        };
        let aps = [lab.add(1, 5.0, cell("a", 36)), lab.add(2, -5.0, cell("b", 44))];
        let stations =
            [lab.add(3, 0.0, station("a")), lab.add(4, 0.0, station("b")), lab.add(5, 0.0, wlan())];
        let radios = stations.map(|(_, radio)| radio);
        lab.engine.set_wlan_addresses(stations[2].0, &[mac(5)]).expect("a stack");
        let settings = CardSettings { dwell_ns: 7 * MS, switch_ns: 300_000, ..CardSettings::default() };
        lab.engine.add_card(lab.medium, "laptop", settings, &radios).expect("a card");
        let all = [aps[0], aps[1], stations[0], stations[1]];
        let mut now = 0;
        for number in 0..600u16 {
            now += random.below(8 * MS);
            let (port, _) = all[random.below(4) as usize];
            let to = mac(1 + random.below(5) as u8);
            let mut octets = [to, mac(9)].concat();
            octets.extend([0x08, 0x00]);
            octets.resize(60 + random.below(1_400) as usize, 0);
            let pool = lab.engine.pool();
            let buffer = pool.take(octets.len());
            pool.octets_mut(buffer)[..octets.len()].copy_from_slice(&octets);
            let frame = Frame::new(buffer, octets.len() as u32, None, None);
            lab.engine.offer(port, Instant::from_nanos(now), frame);
            let mhz = [5180, OTHER, THIRD][random.below(3) as usize];
            let octets = match random.below(3) {
                0 => probe(mac(5)),
                1 => to_network(mac(1), mac(5), number),
                _ => beacon(mac(5), number),
            };
            lab.send(stations[2].0, now, &octets, on(mhz, u64::from(number)));
            let change = match random.below(12) {
                0 => RadioChange::On(false),
                1..=3 => RadioChange::On(true),
                4 => RadioChange::Channel([36, 44, 48][random.below(3) as usize]),
                5 => RadioChange::Scan { channels: vec![36, 40], active: true, dwell_ns: 10 * MS },
                6 => RadioChange::Position(Position::new(random.below(90) as f64, 0.0, 0.0)),
                _ => continue,
            };
            let (_, radio) =
                [aps[0], aps[1], stations[0], stations[1], stations[2]][random.below(5) as usize];
            if let Ok(()) = lab.engine.medium(lab.medium).expect("known").check(radio, &change) {
                let change = Change::Radio(lab.medium, radio, Box::new(change));
                lab.engine.schedule(Instant::from_nanos(now), change).expect("known");
            }
            lab.run(now);
        }
        lab.run(now + 3_000 * MS);
        let ledger = lab.engine.ledger();
        assert!(ledger.in_flight().frames < 200, "{ledger:?}");
        assert!(lab.book.statuses.len() > 300, "{}", lab.book.statuses.len());
    }
}
