//! Aggregation of 802.11n: throughput in closed form, beside a simulator of slots, with errors; captures.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
#![allow(clippy::disallowed_methods)] // closed forms to compare with

mod aggregates;
mod slots;
mod world;

use aggregates::{AROUND, BLOCK_ACK, aggregate, all_hear, cell, layer, settings};
use airloom_engine::medium::error::{Decoder, Standard};
use airloom_engine::medium::{RadioId, RadioSettings};
use airloom_engine::time::Span;
use slots::{Access, Cell, Exchange, Lane};
use world::{PAYLOAD, World, at, at_rate};

/// Mbit/s that arrive from saturated senders at the first radio.
fn saturated(world: &mut World, radios: &[RadioId], payload: u32, seconds: f64) -> f64 {
    for &from in &radios[1..] {
        (0..15).for_each(|_| world.saturate(at(0.0), from, radios[0], payload));
    }
    world.run(at(0.2));
    world.start_counting(at(0.2));
    world.run(at(0.2 + seconds));
    let over = Span::from_nanos((seconds * 1e9) as u64);
    radios[1..].iter().map(|&from| world.goodput(from, radios[0], over)).sum()
}

/// Mbit/s of one saturated flow: AIFS of best effort, the mean backoff of 7.5 slots, the A-MPDU, SIFS,
/// the block ack.
fn closed_form(mcs: u8, frames: u32, payload: u32) -> f64 {
    let phy = layer();
    let (frames, _, data, answer) = aggregate(mcs, frames, payload);
    let cycle = phy.sifs + phy.slot * 3 + data + phy.sifs + answer;
    let backoff = phy.slot.nanos() as f64 * f64::from(phy.cw_min) / 2.0;
    f64::from(frames * payload * 8) * 1e3 / (cycle.nanos() as f64 + backoff)
}

#[test]
fn one_flow_is_the_closed_form() {
    for (mcs, payload) in
        [(0, PAYLOAD), (7, PAYLOAD), (15, PAYLOAD), (31, PAYLOAD), (0, 20), (15, 601), (31, 600)]
    {
        for frames in [1, 2, 8, 16, 32, 64] {
            let (mut world, radios) = cell(&settings(mcs, frames), 2, -40.0, 1);
            let found = saturated(&mut world, &radios, payload, 3.0);
            let expected = closed_form(mcs, u32::from(frames), payload);
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.01, "MCS {mcs}, {frames} of {payload}: {found:.3} for {expected:.3}");
            assert!(world.sinks.drops.is_empty(), "{:?}", world.sinks.drops);
        }
    }
}

#[test]
fn the_closed_form_in_numbers() {
    // MCS 7: 32 of 1536 octets are 49 280 octets in 36 + 1517 * 4 us, too long; 29 are 44 660 octets.
    // 44 660 * 8 + 22 bits are 1375 symbols of 260 bits: 5536 us; 28 are 43 120 octets, 1327 symbols.
    let (frames, octets, data, answer) = aggregate(7, 32, PAYLOAD);
    assert_eq!((frames, octets, data), (28, 43_120, Span::from_micros(36 + 1327 * 4)));
    // 32 octets at 24 Mbit/s: 278 bits, 3 symbols.
    assert_eq!(answer, Span::from_micros(20 + 3 * 4));
    let expected = 28.0 * 1470.0 * 8.0 / (43.0 + 67.5 + 5344.0 + 16.0 + 32.0);
    assert!((closed_form(7, 32, PAYLOAD) - expected).abs() < 1e-9);
    assert!((expected - 59.85).abs() < 0.01, "{expected}");
}

/// How a station of best effort contends, and what it sends at this rate, for the simulator of slots; and the
/// frames of an A-MPDU.
fn station(mcs: u8, frames: u8) -> (Lane, u32) {
    let phy = layer();
    let (joined, _, data, answer) = aggregate(mcs, u32::from(frames), PAYLOAD);
    let access = Access { aifsn: 3, cw_min: 15, cw_max: 1023, at_boundaries: true };
    let exchange = Exchange {
        first: data.nanos(),
        timeout: phy.sifs.nanos() + phy.slot.nanos() + 20_000,
        rest: phy.sifs.nanos() + answer.nanos(),
        further: 0,
        frames: 1,
    };
    (Lane::new(access, exchange), joined)
}

/// Mbit/s of each station in the simulator of slots.
fn simulated(stations: &[(u8, u8)]) -> Vec<f64> {
    let phy = layer();
    let (slot, sifs, detect) = (phy.slot.nanos(), phy.sifs.nanos(), phy.detect.nanos());
    let rules = Cell { slot, sifs, detect, extension: None, limit: 7, internal_counts: true };
    let lanes: Vec<_> = stations.iter().map(|&(mcs, frames)| station(mcs, frames)).collect();
    let mut contending: Vec<_> = lanes.iter().map(|(lane, _)| vec![lane.clone()]).collect();
    slots::run(&rules, &mut contending, None, 40_000_000_000, 1);
    let megabits = |(lanes, (_, joined)): (&Vec<Lane>, &(Lane, u32))| {
        lanes[0].delivered as f64 * f64::from(joined * PAYLOAD * 8) / 40.0 * 1e-6
    };
    contending.iter().zip(&lanes).map(megabits).collect()
}

#[test]
fn stations_beside_a_simulator_of_slots() {
    for (mcs, frames, n) in [(0, 64, 5), (7, 8, 2), (7, 32, 10), (15, 16, 5), (31, 32, 20), (31, 2, 10)] {
        let (mut world, radios) = cell(&settings(mcs, frames), n + 1, -40.0, 1);
        let found = saturated(&mut world, &radios, PAYLOAD, 20.0);
        let expected: f64 = simulated(&vec![(mcs, frames); n]).iter().sum();
        let error = found / expected - 1.0;
        assert!(error.abs() < 0.02, "MCS {mcs}, {frames}, {n} stations: {found:.2} for {expected:.2}");
    }
}

#[test]
fn stations_with_different_rates_and_sizes_share_accesses() {
    for stations in [[(7, 64), (0, 64)], [(31, 64), (7, 4)], [(15, 1), (15, 32)]] {
        let mut world = World::new(1, Box::new(all_hear(3, -40.0)));
        let sink = world.add(settings(7, 64), 0.0, 0.0);
        let radios = stations.map(|(mcs, frames)| world.add(settings(mcs, frames), 0.0, 0.0));
        saturated(&mut world, &[sink, radios[0], radios[1]], PAYLOAD, 40.0);
        let expected = simulated(&stations);
        for (radio, expected) in radios.iter().zip(expected) {
            let found = world.goodput(*radio, sink, Span::from_millis(40_000));
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.02, "{stations:?}: {found:.2} for {expected:.2}");
        }
    }
}

#[test]
fn errors_strike_each_mpdu() {
    let (mcs, frames) = (7, 16);
    let phy = layer();
    let decoder = Decoder::new(&Standard, phy);
    let index = phy.scheme(mcs).expect("a rate");
    // Thermal noise of 20 MHz at 290 K, and a noise figure of 7 dB.
    let noise = 10.0 * (1.380_649e-23_f64 * 290.0 * 20e6 * 1e3).log10() + 7.0;
    let bits = f64::from((4 + AROUND + PAYLOAD) * 8);
    let lost = |dbm: f64| 1.0 - decoder.payload(index, 10f64.powf((dbm - noise) / 10.0), bits).exp();
    let (mut low, mut high) = (-80.0, -60.0);
    while high - low > 1e-6 {
        let middle = f64::midpoint(low, high);
        if lost(middle) > 0.2 { low = middle } else { high = middle }
    }
    let (mut world, radios) = cell(&settings(mcs, frames), 2, high, 1);
    let found = saturated(&mut world, &radios, PAYLOAD, 20.0);
    let counts = world.medium.counts(radios[1]);
    let failed = counts.unanswered as f64 / counts.expected as f64;
    assert!((failed - 0.2).abs() < 0.004, "{failed}");
    let expected = 0.8 * closed_form(mcs, u32::from(frames), PAYLOAD);
    let error = found / expected - 1.0;
    assert!(error.abs() < 0.02, "{found:.2} for {expected:.2}");
}

#[test]
fn a_capture_has_each_mpdu_and_the_block_ack() {
    let (mut world, radios) = cell(&settings(7, 4), 2, -40.0, 1);
    world.medium.set_sniffing(true);
    (0..5).for_each(|_| world.offer(at(0.1), radios[0], Some(radios[1]), PAYLOAD));
    world.run(at(0.2));
    let seen: Vec<&[u8]> = world
        .sinks
        .sniffs
        .iter()
        .filter(|(radio, _)| *radio == Some(radios[1]))
        .map(|(_, octets)| &octets[..])
        .filter(|octets| octets[usize::from(octets[2])] == 0x88)
        .collect();
    assert_eq!(seen.len(), 5);
    let present = |octets: &[u8]| u32::from_le_bytes(octets[4..8].try_into().expect("four"));
    // The first finds an idle channel; the others have queued up.
    assert_eq!(present(seen[0]) >> 20 & 1, 0);
    let status = |octets: &[u8]| octets[usize::from(octets[2]) - 8..usize::from(octets[2])].to_vec();
    assert!(seen[1..].iter().all(|octets| present(octets) >> 20 & 1 == 1 && octets[2] % 4 == 0));
    assert!(seen[1..].iter().all(|octets| status(octets)[..4] == status(seen[1])[..4]));
    assert_eq!(seen[1..].iter().map(|octets| status(octets)[4]).collect::<Vec<_>>(), [4, 4, 4, 12]);
    let answer = world
        .sinks
        .sniffs
        .iter()
        .find(|(radio, octets)| *radio == Some(radios[0]) && octets[usize::from(octets[2])] == 0x94)
        .map(|(_, octets)| &octets[usize::from(octets[2])..])
        .expect("a block ack");
    assert_eq!(answer.len(), BLOCK_ACK as usize);
    // Compressed; the second frame is number 1; four have arrived.
    assert_eq!(answer[16..28], [4, 0, 0x10, 0, 0x0f, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn what_contradicts_is_refused_by_name() {
    let good = settings(7, 16);
    good.validate("r").expect("valid");
    for (settings, told) in [
        (RadioSettings { aggregation: Some(0), ..good.clone() }, "1 to 64 frames"),
        (RadioSettings { aggregation: Some(65), ..good.clone() }, "1 to 64 frames"),
        (RadioSettings { qos: false, ..good.clone() }, "use qos: true"),
        (RadioSettings { fragment_octets: Some(500), ..good.clone() }, "16 frames and fragments"),
        (RadioSettings { as_ns3: true, ..good }, "16 frames as ns-3"),
        (RadioSettings { qos: true, aggregation: Some(16), ..at_rate(6.0) }, "use phy: 802.11n"),
    ] {
        let error = settings.validate("r").expect_err("refused").to_string();
        assert!(error.contains("aggregation") && error.contains(told), "{error}");
    }
}
