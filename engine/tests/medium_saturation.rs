//! Throughput and collisions of saturated stations, compared with closed form and Monte Carlo.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::phy::{ACK_OCTETS, tables};
use airloom_engine::medium::propagation::Matrix;
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

/// Mbit/s and collision probability of `n` saturated stations that hear each other with this power in
/// dBm.
fn saturated(settings: &RadioSettings, n: u32, dbm: f64, seconds: f64, seed: u64) -> (f64, f64) {
    let count = n as usize + 1;
    let mut matrix = Matrix::silent(count);
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
        matrix.set(from, to, settings.power_dbm - dbm);
    }
    let mut world = World::new(seed, Box::new(matrix));
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

/// Powers in dBm at which all hear each other: from far above the energy detection threshold to below.
const POWERS: [f64; 4] = [-35.0, -66.0, -70.0, -75.0];

fn compare(settings: impl Fn(f64) -> RadioSettings, powers: &[f64], goodput_column: &str, p_column: &str) {
    let mut report = String::new();
    let mut worst: (f64, f64) = (0.0, 0.0);
    let rows = rows(include_str!("reference/saturated_stations.csv"));
    for (row, dbm) in rows.iter().flat_map(|row| powers.iter().map(move |&dbm| (row, dbm))) {
        let (rate, n) = (number(row, "rate_mbps"), number(row, "n"));
        // The noise of a perfect receiver: -75 dBm are enough for 54 Mbit/s.
        let settings = RadioSettings { noise_figure_db: 0.0, ..settings(rate) };
        let (found, p) = saturated(&settings, n as u32, dbm, if rate < 10.0 { 30.0 } else { 10.0 }, 1);
        let (expected, expected_p) = (number(row, goodput_column), number(row, p_column));
        let (error, p_error) = (found / expected - 1.0, p - expected_p);
        report += &format!(
            "{dbm:>3} dBm, {rate:>3} n={n:<3} {found:7.3} against {expected:7.3} ({:+.2} %), p {p:.4} against {expected_p:.4}\n",
            error * 100.0
        );
        worst = (worst.0.max(error.abs()), worst.1.max(p_error.abs()));
    }
    println!("{report}");
    assert!(worst.0 < 0.015 && worst.1 < 0.01, "{worst:?}\n{report}");
}

#[test]
fn saturated_stations_that_hear_no_frame_in_a_collision() {
    compare(at_rate, &POWERS, "mc_difs_cwcycle7_goodput", "mc_difs_cwcycle7_p");
}

#[test]
fn saturated_stations_that_hear_a_broken_frame_in_a_collision() {
    let settings = |rate| RadioSettings { preamble_db: None, ..at_rate(rate) };
    compare(settings, &POWERS, "mc_eifs_cwcycle7_goodput", "mc_eifs_cwcycle7_p");
}

#[test]
fn saturated_stations_with_the_manners_of_the_reference() {
    let settings = |rate| RadioSettings { as_ns3: true, ..at_rate(rate) };
    compare(settings, &POWERS[..1], "ns3_goodput_mbps", "ns3_p_coll");
}
