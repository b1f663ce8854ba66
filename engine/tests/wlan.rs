//! Radios that carry 802.11 frames of a stack: exchanges, statuses, contention, channels.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod stack;

use airloom_engine::medium::phy::{ACK_OCTETS, tables};
use airloom_engine::medium::wlan::{Attempt, TxRequest};
use airloom_engine::medium::{RadioChange, RadioSettings, RateSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, DropReason, PortId};
use stack::{CHANNEL, GROUP, Lab, ask, beacon, mac, qos_data, used, wlan};

const MS: u64 = 1_000_000;

#[test]
fn one_frame_is_sent_acknowledged_and_reported() {
    let mut lab = Lab::new(1);
    let (a, b) = (lab.stack(1, 0.0), lab.stack(2, 10.0));
    let octets = qos_data(mac(2), mac(1), 7, 1_530);
    lab.send(a, MS, &octets, ask(99, &[(7, 3), (0, 4)]));
    lab.run(10 * MS);
    // 1534 octets on the air take 248 us at 54 Mbit/s, ten metres 33 ns; a backoff of whole slots
    // may precede them, because the radio has just been tuned.
    let [received] = lab.book.at(b)[..] else { panic!("{:?}", lab.book.received) };
    assert_eq!(received.octets, octets);
    assert_eq!(received.status.rate, 7);
    assert_eq!(received.status.mhz, CHANNEL);
    // 16 dBm - 46.7 dB - 30 dB.
    assert_eq!(received.status.signal_dbm, -61);
    assert!(!received.status.retry);
    let began = received.at.nanos() - 248_033;
    assert_eq!(received.status.tsf_us, (began + 33) / 1_000);
    assert_eq!((began - MS) % 1_000, 0);
    let [(port, at, status)] = lab.book.statuses[..] else { panic!("{:?}", lab.book.statuses) };
    assert_eq!((port, status.cookie, status.acknowledged, status.ack_dbm), (a, 99, true, -61));
    assert_eq!(status.attempts, [used(7, 1), None, None, None]);
    assert_eq!(at.nanos(), received.at.nanos() + 16_000 + 28_000 + 33);
}

#[test]
fn the_retry_chain_is_followed_to_its_end() {
    let mut lab = Lab::new(2);
    let a = lab.stack(1, 0.0);
    lab.send(a, MS, &qos_data(mac(9), mac(1), 1, 500), ask(5, &[(7, 2), (4, 3), (0, 1)]));
    lab.engine.medium(lab.medium).expect("known").set_sniffing(true);
    lab.run(100 * MS);
    let [status] = lab.book.of(a)[..] else { panic!("{:?}", lab.book.statuses) };
    assert!(!status.acknowledged);
    assert_eq!(status.attempts, [used(7, 2), used(4, 3), used(0, 1), None]);
    assert_eq!(lab.book.drops.len(), 1);
    assert_eq!(lab.book.drops[0].1, DropReason::OutOfRange);
    // Rates in units of 500 kbit/s; only the first transmission has no Retry bit.
    let rates: Vec<u8> = lab.book.sniffs.iter().map(|octets| octets[17]).collect();
    assert_eq!(rates, [108, 108, 48, 48, 48, 12]);
    let retries = lab.book.sniffs.iter().map(|octets| octets[usize::from(octets[2]) + 1] & 8 != 0);
    assert_eq!(retries.collect::<Vec<_>>(), [false, true, true, true, true, true]);
}

#[test]
fn a_lossy_path_needs_the_transmissions_that_the_statuses_report() {
    let mut lab = Lab::new(3);
    let ((a, from), (b, to)) = (lab.add(1, 0.0, wlan()), lab.add(2, 10.0, wlan()));
    for (port, node) in [(a, 1), (b, 2)] {
        lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack");
    }
    lab.engine.medium(lab.medium).expect("known").set_frame_error(from, to, 0.5);
    for number in 0..400u16 {
        let request = ask(u64::from(number), &[(7, 1), (4, 2)]);
        lab.send(a, u64::from(number) * 5 * MS, &qos_data(mac(2), mac(1), number, 300), request);
    }
    lab.run(3_000 * MS);
    let statuses = lab.book.of(a);
    assert_eq!(statuses.len(), 400);
    let tries = |status: &airloom_engine::medium::wlan::TxStatus| -> u64 {
        status.attempts.iter().flatten().map(|step| u64::from(step.tries)).sum()
    };
    let sent: u64 = statuses.iter().map(tries).sum();
    let counts = lab.engine.medium(lab.medium).expect("known").counts(from);
    assert_eq!(counts.sent, sent);
    assert_eq!(counts.unanswered, sent - statuses.iter().filter(|status| status.acknowledged).count() as u64);
    let acknowledged = statuses.iter().filter(|status| status.acknowledged).count();
    assert_eq!(lab.book.at(b).len(), acknowledged, "acknowledgments are never lost here");
    assert_eq!(lab.book.drops.len(), 400 - acknowledged);
    // Three transmissions fail with probability 1/8: 50 of 400, standard deviation 6.6.
    assert!((20..=80).contains(&lab.book.drops.len()), "{}", lab.book.drops.len());
    assert!(lab.book.received.iter().any(|received| received.status.retry));
    for received in &lab.book.received {
        assert_eq!(received.status.retry, received.status.rate == 4);
    }
}

#[test]
fn a_lost_acknowledgment_repeats_the_frame_and_the_duplicate_stays_below() {
    let mut lab = Lab::new(4);
    let ((a, from), (b, to)) = (lab.add(1, 0.0, wlan()), lab.add(2, 10.0, wlan()));
    for (port, node) in [(a, 1), (b, 2)] {
        lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack");
    }
    // No acknowledgment of b reaches a.
    lab.engine.medium(lab.medium).expect("known").set_frame_error(to, from, 1.0);
    lab.send(a, MS, &qos_data(mac(2), mac(1), 1, 300), ask(1, &[(4, 4)]));
    lab.run(100 * MS);
    assert_eq!(lab.book.at(b).len(), 1);
    let [status] = lab.book.of(a)[..] else { panic!("{:?}", lab.book.statuses) };
    assert_eq!((status.acknowledged, status.attempts[0]), (false, used(4, 4)));
    assert_eq!(lab.engine.medium(lab.medium).expect("known").counts(to).duplicates, 3);
    assert!(lab.book.drops.is_empty(), "it was delivered");
}

#[test]
fn only_own_addresses_are_acknowledged() {
    let mut lab = Lab::new(5);
    let (a, b) = (lab.stack(1, 0.0), lab.stack(2, 10.0));
    let c = lab.stack(3, 5.0);
    assert!(lab.engine.set_wlan_addresses(b, &[mac(2), mac(22)]).expect("a stack"));
    assert!(!lab.engine.set_wlan_addresses(c, &[mac(3), mac(22)]).expect("a stack"), "b keeps it");
    lab.send(b, 0, &beacon(mac(2), 0), ask(0, &[]));
    lab.send(c, 0, &beacon(mac(3), 0), ask(0, &[]));
    for (number, to) in [2u8, 22, 23, 3].into_iter().enumerate() {
        let at = (number as u64 + 1) * 50 * MS;
        lab.send(a, at, &qos_data(mac(to), mac(1), number as u16, 100), ask(u64::from(to), &[(0, 2)]));
    }
    lab.run(900 * MS);
    let acknowledged: Vec<bool> = lab.book.of(a).iter().map(|status| status.acknowledged).collect();
    assert_eq!(acknowledged, [true, true, false, true]);
    let data = |port| lab.book.at(port).iter().filter(|received| received.octets[0] == 0x88).count();
    assert_eq!([data(b), data(c)], [2, 1]);
    // The interface goes: its frames are not acknowledged any more.
    lab.engine.set_wlan_addresses(b, &[mac(2)]).expect("a stack");
    lab.send(a, 1_000 * MS, &qos_data(mac(22), mac(1), 9, 100), ask(9, &[(0, 2)]));
    lab.run(1_100 * MS);
    assert!(!lab.book.of(a)[4].acknowledged);
    let other = lab.add(9, 0.0, RadioSettings::default()).0;
    assert!(lab.engine.set_wlan_addresses(other, &[]).is_err(), "an Ethernet radio");
}

#[test]
fn group_frames_reach_all_once_and_frames_without_acknowledgment_go_once() {
    let mut lab = Lab::new(6);
    let ports: Vec<PortId> = (1..=4).map(|node| lab.stack(node, f64::from(node))).collect();
    lab.send(ports[0], MS, &beacon(mac(1), 0), ask(1, &[(0, 1)]));
    lab.send(ports[1], 2 * MS, &beacon(mac(2), 0), ask(4, &[(0, 1)]));
    let silent = TxRequest { no_ack: true, ..ask(2, &[(3, 5)]) };
    lab.send(ports[0], 20 * MS, &qos_data(mac(2), mac(1), 1, 200), silent);
    lab.send(ports[0], 40 * MS, &qos_data(mac(9), mac(1), 2, 200), TxRequest { cookie: 3, ..silent });
    lab.run(100 * MS);
    let beacons = |port| lab.book.at(port).iter().filter(|received| received.octets[0] == 0x80).count();
    assert_eq!([0, 1, 2, 3].map(|at| beacons(ports[at])), [1, 1, 2, 2]);
    let statuses = lab.book.of(ports[0]);
    let one = |rate| [used(rate, 1), None, None, None];
    assert_eq!(statuses.iter().map(|status| status.attempts).collect::<Vec<_>>(), [one(0), one(3), one(3)]);
    assert!(statuses.iter().all(|status| !status.acknowledged));
    let data = |port| lab.book.at(port).iter().filter(|received| received.octets[0] == 0x88).count();
    assert_eq!([0, 1, 2].map(|at| data(ports[at])), [0, 1, 0]);
    assert_eq!(lab.book.drops.len(), 1, "nobody has the last address");
}

/// Fills the queues of flows of QoS data: 1470 octets of UDP payload, 1536 octets on the air with
/// the QoS control field.
/// A step of seven transmissions at this rate.
fn plain(rate: u8) -> Attempt {
    Attempt { rate, tries: 7, rts: false }
}

fn saturate(lab: &mut Lab, flows: &[(PortId, [u8; 6], [u8; 6])], step: Attempt, frames: u16) {
    lab.book.quiet = true;
    for &(port, from, to) in flows {
        for number in 0..frames {
            let octets = qos_data(to, from, number, 1_532);
            lab.send(
                port,
                0,
                &octets,
                TxRequest { attempts: [Some(step), None, None, None], ..ask(u64::from(number), &[]) },
            );
        }
    }
}

#[test]
fn saturated_qos_data_has_the_throughput_of_the_closed_form() {
    for (index, rate) in (0u8..).zip(tables::A.rates) {
        let mut lab = Lab::new(7);
        let (a, b) = (lab.stack(1, 0.0), lab.stack(2, 5.0));
        saturate(&mut lab, &[(a, mac(1), mac(2))], plain(index), 13_000);
        lab.run(1_000 * MS);
        let before = lab.book.counts[&b.index()];
        lab.run(5_000 * MS);
        let found = (lab.book.counts[&b.index()] - before) as f64 / 4.0;
        let phy = &tables::A;
        // Best effort: AIFS of three slots, mean backoff of 7.5 slots, data, SIFS, ACK. The longest
        // run of backoffs, at 54 Mbit/s, deviates by 0.1 % (standard deviation 4.61 slots each).
        let ack = phy.rates[usize::from(phy.response(index, phy.mandatory()))].airtime(ACK_OCTETS);
        let cycle = phy.sifs + phy.slot * 3 + rate.airtime(1_536) + phy.sifs + ack;
        let expected = 1e9 / (cycle.nanos() as f64 + 7.5 * phy.slot.nanos() as f64 + 2.0 * 17.0);
        assert!((found / expected - 1.0).abs() < 0.005, "{rate:?}: {found:.1} against {expected:.1}");
    }
}

#[test]
fn a_stack_and_an_ethernet_radio_share_the_channel_fairly() {
    let mut lab = Lab::new(8);
    let (a, b) = (lab.stack(1, 0.0), lab.stack(2, 5.0));
    let settings = RadioSettings {
        qos: true,
        rate: RateSettings::Constant(54_000_000),
        transmit_buffers: 10_000,
        tail_drop: 10_000,
        ..RadioSettings::default()
    };
    let (c, _) = lab.add(3, 0.0, settings.clone());
    let (d, _) = lab.add(4, 5.0, settings);
    saturate(&mut lab, &[(a, mac(1), mac(2))], plain(7), 6_000);
    for _ in 0..6_000 {
        let mut octets = vec![0; 1_512];
        octets[..6].copy_from_slice(&mac(4));
        octets[6..12].copy_from_slice(&mac(3));
        octets[12..14].copy_from_slice(&[0x08, 0x00]);
        let buffer = lab.engine.pool().take(octets.len());
        lab.engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(&octets);
        let frame = airloom_engine::frame::Frame::new(buffer, 1_512, None, None);
        lab.engine.offer(c, Instant::ZERO, frame);
    }
    lab.run(2_000 * MS);
    let [one, other] = [b, d].map(|port| lab.book.counts[&port.index()] as f64);
    assert!((one / other - 1.0).abs() < 0.05, "{one} against {other}");
    assert!(one + other > 4_500.0, "{one} and {other}");
}

#[test]
fn hidden_stations_collide_and_requests_to_send_help() {
    let delivered = |rts: bool| {
        let mut lab = Lab::new(9);
        let hearing = |settings| RadioSettings { receive_dbm: -75.0, ..settings };
        let ports: Vec<PortId> = [(1u8, 0.0), (2, 22.0), (3, 44.0)]
            .into_iter()
            .map(|(node, x)| {
                let (port, _) = lab.add(node, x, hearing(wlan()));
                lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack");
                port
            })
            .collect();
        let step = Attempt { rate: 0, tries: 7, rts };
        saturate(&mut lab, &[(ports[0], mac(1), mac(2)), (ports[2], mac(3), mac(2))], step, 3_000);
        lab.send(ports[1], 0, &beacon(mac(2), 0), ask(0, &[]));
        lab.run(4_000 * MS);
        lab.book.counts[&ports[1].index()]
    };
    let (plain, announced) = (delivered(false), delivered(true));
    assert!(announced as f64 > 1.3 * plain as f64, "{plain} without, {announced} with");
}

#[test]
fn a_radio_follows_the_channel_of_its_requests_and_hears_the_others() {
    let mut lab = Lab::new(10);
    let (a, b, c) = (lab.stack(1, 0.0), lab.stack(2, 5.0), lab.stack(3, 5.0));
    let on = |mhz, cookie| TxRequest { mhz, ..ask(cookie, &[(0, 2)]) };
    lab.send(b, 0, &beacon(mac(2), 0), on(5180, 0));
    lab.send(c, 0, &beacon(mac(3), 0), on(5240, 0));
    // A silent radio hears both.
    lab.run(10 * MS);
    let heard = |lab: &Lab| lab.book.at(a).iter().map(|got| got.status.mhz).collect::<Vec<_>>();
    let mut both = heard(&lab);
    both.sort_unstable();
    assert_eq!(both, [5180, 5240]);
    // Each answers on its own channel alone.
    for (at, to, mhz) in [(20, 2, 5180), (30, 3, 5180), (40, 3, 5240), (50, 2, 5240), (60, 2, 5180)] {
        lab.send(a, at * MS, &qos_data(mac(to), mac(1), at as u16, 100), on(mhz, at));
    }
    lab.run(100 * MS);
    let answers: Vec<bool> = lab.book.of(a).iter().map(|status| status.acknowledged).collect();
    assert_eq!(answers, [true, false, true, false, true]);
    // A band that the radio does not have, and a frequency that is none.
    lab.send(a, 110 * MS, &beacon(mac(1), 0), on(2412, 1));
    lab.send(a, 111 * MS, &beacon(mac(1), 0), on(5183, 2));
    lab.run(120 * MS);
    assert_eq!(lab.book.of(a).len(), 7);
    assert_eq!(lab.book.of(a)[5].attempts, [None; 4]);
    let count = |why| lab.book.drops.iter().filter(|(_, found)| *found == why).count();
    // What is not acknowledged was handed over all the same: the stack may have listened there.
    assert_eq!([DropReason::OutOfRange, DropReason::OutsideBand].map(count), [0, 2]);
}

#[test]
fn flows_on_two_channels_do_not_share_and_collisions_are_those_of_one_channel() {
    let mut lab = Lab::new(11);
    let mut ports: Vec<PortId> = (1..=4).map(|node| lab.stack(node, f64::from(node))).collect();
    ports.push(lab.add(5, 5.0, RadioSettings { monitor: true, ..wlan() }).0);
    lab.book.quiet = true;
    for (from, to, mhz) in [(0, 2u8, 5180), (2, 4, 5240)] {
        for number in 0..3_000 {
            let octets = qos_data(mac(to), mac(from + 1), number, 1_532);
            lab.send(ports[usize::from(from)], 0, &octets, TxRequest { mhz, ..ask(0, &[(7, 7)]) });
        }
    }
    for (node, mhz) in [(2u8, 5180), (4, 5240)] {
        let request = TxRequest { mhz, ..ask(0, &[]) };
        lab.send(ports[usize::from(node) - 1], 0, &beacon(mac(node), 0), request);
    }
    lab.run(1_000 * MS);
    let count = |at: usize| lab.book.counts[&ports[at].index()];
    // A flow alone has 1 s / 402.5 us = 2484 frames.
    for at in [1, 3] {
        assert!((2_460..2_510).contains(&count(at)), "{}", count(at));
    }
    // The monitor hears every frame of both and its acknowledgment, although they overlap in time.
    assert!(count(4).abs_diff(2 * (count(1) + count(3))) <= 8, "{} {} {}", count(1), count(3), count(4));
}

#[test]
fn the_ledger_holds_with_stacks_that_come_and_go() {
    let mut lab = Lab::new(12);
    let mut nodes = Vec::new();
    for node in 1..=6u8 {
        let settings = RadioSettings { monitor: node == 6, ..wlan() };
        let (port, radio) = lab.add(node, 10.0 * f64::from(node), settings);
        lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack");
        nodes.push((port, radio));
    }
    let (ethernet, _) = lab.add(7, 15.0, RadioSettings::default());
    let mut sent = 0;
    for round in 0..150u64 {
        for (number, &(port, _)) in (1u8..).zip(&nodes) {
            let to = if round % 5 == 0 { GROUP } else { mac(number % 8 + 1) };
            let mhz = if round % 50 < 40 { 5180 } else { 5240 };
            let request = TxRequest { mhz, ..ask(round, &[(5, 2), (1, 2)]) };
            lab.send(port, round * 2 * MS, &qos_data(to, mac(number), round as u16, 700), request);
            sent += 1;
        }
    }
    let medium = lab.medium;
    let turn = |radio, on| Change::Radio(medium, radio, Box::new(RadioChange::On(on)));
    for (at, on) in [(80, false), (120, true)] {
        let change = turn(nodes[2].1, on);
        lab.engine.schedule(Instant::from_nanos(at * MS), change).expect("valid");
    }
    // Frames that are none.
    lab.send(nodes[0].0, 5 * MS, &[0x88; 10], ask(1, &[]));
    lab.send(nodes[0].0, 5 * MS, &[0xd4; 30], ask(1, &[]));
    lab.send(nodes[0].0, 5 * MS, &qos_data(mac(2), mac(1), 0, 4_000), ask(1, &[]));
    for step in 0..4_000u64 {
        lab.run(step * 100_003);
    }
    lab.run(5_000 * MS);
    assert_eq!(lab.book.statuses.len(), sent + 3, "one status each");
    assert_eq!(lab.engine.recount().frames, 0);
    for why in [DropReason::Malformed, DropReason::TooBig, DropReason::RadioOff, DropReason::OutOfRange] {
        assert!(lab.book.drops.iter().any(|(_, found)| *found == why), "{why:?}");
    }
    assert!(lab.engine.ledger().copies.frames > 100);
    assert!(!lab.book.counts.contains_key(&ethernet.index()));
}

#[test]
fn captures_hold_the_real_octets() {
    let mut lab = Lab::new(13);
    let (a, _) = (lab.stack(1, 0.0), lab.stack(2, 10.0));
    lab.engine.medium(lab.medium).expect("known").set_sniffing(true);
    let octets = qos_data(mac(2), mac(1), 0x123, 600);
    lab.send(a, MS, &octets, ask(1, &[(4, 2)]));
    lab.run(10 * MS);
    let [data, ack] = &lab.book.sniffs[..] else { panic!("{} frames", lab.book.sniffs.len()) };
    let frame = |record: &[u8]| record[usize::from(record[2])..].to_vec();
    let data = frame(data);
    // All but the duration, and the frame check sequence at the end.
    assert_eq!(data[..2], octets[..2]);
    assert_eq!(data[4..600], octets[4..]);
    assert_eq!(data.len(), 604);
    // SIFS and an acknowledgment at 24 Mbit/s.
    assert_eq!(u16::from_le_bytes([data[2], data[3]]), 16 + 28);
    let ack = frame(ack);
    assert_eq!(ack[..10], [&[0xd4, 0, 0, 0][..], &mac(1)].concat());
}

/// A cell of Ethernet radios with joint processing, a stack in it, and a stack that changes channels.
fn mixed_cell(together: bool) -> (Vec<(usize, u64)>, Vec<u64>, u64) {
    let mut lab = Lab::new(14);
    let ethernet = || RadioSettings { rate: RateSettings::Constant(54_000_000), ..RadioSettings::default() };
    let plain: Vec<_> = (1..=8).map(|node| lab.add(node, f64::from(node), ethernet())).collect();
    let (stack, wanderer) = (lab.stack(9, 4.0), lab.stack(10, 5.0));
    if !together {
        let radio = plain[0].1;
        lab.engine.medium(lab.medium).expect("known").set_frame_error(radio, radio, 0.0);
    }
    for round in 0..1_500u64 {
        let at = round * MS / 2;
        let from = round % 8;
        let mut octets = vec![0; 900];
        octets[..6].copy_from_slice(&mac(if round % 9 == 0 { 9 } else { ((from + 1) % 8) as u8 + 1 }));
        octets[6..12].copy_from_slice(&mac(from as u8 + 1));
        octets[12] = 8;
        let buffer = lab.engine.pool().take(octets.len());
        lab.engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(&octets);
        let frame = airloom_engine::frame::Frame::new(buffer, 900, None, None);
        lab.engine.offer(plain[from as usize].0, Instant::from_nanos(at), frame);
        if round % 7 == 0 {
            let to = if round % 21 == 0 { GROUP } else { mac(round as u8 % 8 + 1) };
            lab.send(stack, at, &qos_data(to, mac(9), round as u16, 400), ask(round, &[(7, 4)]));
        }
        if round % 300 == 299 {
            let mhz = if round < 700 { 5240 } else { 5180 };
            let request = TxRequest { mhz, ..ask(round, &[]) };
            lab.send(wanderer, at, &beacon(mac(10), round as u16), request);
        }
    }
    lab.run(2_000 * MS);
    let medium = lab.engine.medium(lab.medium).expect("known");
    let mut results = Vec::new();
    for (_, radio) in &plain {
        let (counts, time) = (medium.counts(*radio), medium.airtime(*radio, Instant::from_nanos(2_000 * MS)));
        results.extend([counts.sent, counts.received, counts.broken, counts.unanswered]);
        results.extend([time.receiving, time.busy, time.collided, time.idle].map(|span| span.nanos()));
    }
    let individual = medium.individual_receptions();
    let received = lab.book.received.iter().map(|got| (got.port.index(), got.at.nanos()));
    let statuses = lab.book.statuses.iter().map(|(port, at, _)| (port.index(), at.nanos()));
    (received.chain(statuses).collect(), results, individual)
}

#[test]
fn joint_processing_of_ethernet_radios_changes_nothing_beside_stacks() {
    let (one, other) = (mixed_cell(true), mixed_cell(false));
    assert_eq!(one.0, other.0);
    assert_eq!(one.1, other.1);
    assert!(one.0.len() > 300, "{}", one.0.len());
    assert!(one.2 < other.2, "{} individual receptions, {} without it", one.2, other.2);
}
