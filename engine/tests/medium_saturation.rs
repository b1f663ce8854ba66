//! Throughput and collisions of saturated stations, compared with closed form and Monte Carlo.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::phy::{ACK_OCTETS, tables};
use airloom_engine::medium::{RadioSettings, RateSettings};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at, at_rate, number, reference_loss, rows};

/// Mbit/s of one saturated flow.
fn single(settings: &RadioSettings, payload: u32, seconds: f64) -> f64 {
    let mut world = World::new(1, reference_loss());
    let (a, b) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings.clone(), 5.0, 0.0));
    world.saturate(at(0.0), a, b, payload);
    world.run(at(0.1));
    world.start_counting(at(0.1));
    world.run(at(0.1 + seconds));
    assert!(world.sinks.drops.is_empty(), "{:?}", world.sinks.drops);
    world.goodput(a, b, Span::from_nanos((seconds * 1e9) as u64))
}

#[test]
fn one_flow_is_the_closed_form() {
    for row in rows(include_str!("reference/single_flow.csv")) {
        let (rate, payload) = (number(&row, "rate_mbps"), number(&row, "payload_bytes"));
        let expected = number(&row, "analytic_goodput_mbps");
        let found = single(&at_rate(rate), payload as u32, 10.0);
        let error = found / expected - 1.0;
        assert!(error.abs() < 0.005, "{rate} Mbit/s, {payload} octets: {found:.3} against {expected}");
    }
}

#[test]
fn one_flow_of_802_11b_and_g_is_the_closed_form() {
    for phy in [&tables::B_LONG, &tables::B_SHORT, &tables::G, &tables::BG] {
        for (index, rate) in (0u8..).zip(phy.rates) {
            let ack = phy.rates[usize::from(phy.response(index, phy.mandatory()))].airtime(ACK_OCTETS);
            let slots = phy.slot * u64::from(phy.cw_min);
            let cycle = phy.difs() + rate.airtime(1534) + phy.sifs + ack;
            let cycle = cycle.nanos() as f64 + slots.nanos() as f64 / 2.0;
            let expected = f64::from(PAYLOAD * 8) * 1e3 / cycle;
            let settings = RadioSettings {
                phy: phy.name.to_owned(),
                channel: 1,
                rate: RateSettings::Constant(u64::from(rate.bits_per_second)),
                ..RadioSettings::default()
            };
            let found = single(&settings, PAYLOAD, 20.0);
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.01, "{} {rate:?}: {found:.3} against {expected:.3}", phy.name);
        }
    }
}

/// Mbit/s and collision probability of `n` saturated stations.
fn saturated(settings: &RadioSettings, n: u32, seconds: f64, seed: u64) -> (f64, f64) {
    let mut world = World::new(seed, reference_loss());
    let sink = world.add(settings.clone(), 0.0, 0.0);
    let stations: Vec<_> = (0..n).map(|_| world.add(settings.clone(), 0.1, 0.0)).collect();
    for &station in &stations {
        world.saturate(at(0.0), station, sink, PAYLOAD);
    }
    world.run(at(0.5));
    world.start_counting(at(0.5));
    let counts = |world: &mut World| {
        stations
            .iter()
            .map(|&s| world.medium.counts(s))
            .fold((0, 0), |(sent, lost), counts| (sent + counts.expected, lost + counts.unanswered))
    };
    let before = counts(&mut world);
    world.run(at(0.5 + seconds));
    let after = counts(&mut world);
    let span = Span::from_nanos((seconds * 1e9) as u64);
    let goodput = stations.iter().map(|&s| world.goodput(s, sink, span)).sum();
    (goodput, (after.1 - before.1) as f64 / (after.0 - before.0) as f64)
}

fn compare(settings: impl Fn(f64) -> RadioSettings, goodput_column: &str, p_column: &str) {
    let mut report = String::new();
    let mut worst: (f64, f64) = (0.0, 0.0);
    for row in rows(include_str!("reference/saturated_stations.csv")) {
        let (rate, n) = (number(&row, "rate_mbps"), number(&row, "n"));
        let (found, p) = saturated(&settings(rate), n as u32, if rate < 10.0 { 30.0 } else { 10.0 }, 1);
        let (expected, expected_p) = (number(&row, goodput_column), number(&row, p_column));
        let (error, p_error) = (found / expected - 1.0, p - expected_p);
        report += &format!(
            "{rate:>3} n={n:<3} {found:7.3} against {expected:7.3} ({:+.2} %), p {p:.4} against {expected_p:.4}\n",
            error * 100.0
        );
        worst = (worst.0.max(error.abs()), worst.1.max(p_error.abs()));
    }
    println!("{report}");
    assert!(worst.0 < 0.015 && worst.1 < 0.01, "{worst:?}\n{report}");
}

#[test]
fn saturated_stations_that_hear_no_frame_in_a_collision() {
    compare(at_rate, "mc_difs_cwcycle7_goodput", "mc_difs_cwcycle7_p");
}

#[test]
fn saturated_stations_that_hear_a_broken_frame_in_a_collision() {
    let settings = |rate| RadioSettings { preamble_db: None, ..at_rate(rate) };
    compare(settings, "mc_eifs_cwcycle7_goodput", "mc_eifs_cwcycle7_p");
}

#[test]
fn saturated_stations_with_the_manners_of_the_reference() {
    let settings = |rate| RadioSettings { as_ns3: true, ..at_rate(rate) };
    compare(settings, "ns3_goodput_mbps", "ns3_p_coll");
}
