//! Saturated cells against a simulator of the standard's slots: numbers of stations, layers, rates,
//! lengths, requests to send, fragments, powers, places.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod cells;
mod slots;
mod world;

use airloom_engine::medium::error::{ErrorModel, Nist};
use airloom_engine::medium::phy::channel::Band;
use airloom_engine::medium::phy::{ACK_OCTETS, Coding, Modulation, Phy, RTS_OCTETS, ht, tables};
use airloom_engine::medium::{RadioSettings, RateSettings};
use cells::{Found, alike, places, scattered};
use slots::{Access, Cell, Exchange, Lane, Nanos, Powers};
use world::{PAYLOAD, at_rate};

/// Octets on the air around a payload: IP and UDP, LLC and SNAP, MAC header and check sequence.
const AROUND: u32 = 20 + 8 + 8 + 24 + 4;
const FRAGMENT_HEADER: u32 = 24 + 4;

/// A saturated cell.
#[derive(Clone, Copy, Debug)]
struct Point {
    phy: &'static Phy,
    megabits: f64,
    n: usize,
    payload: u32,
    rts: bool,
    fragment: Option<u32>,
    /// All receivers follow a preamble in a collision, and wait for EIFS.
    follow: bool,
    /// The rate, with 802.11n.
    mcs: Option<u8>,
}

impl Point {
    fn new(phy: &'static Phy, megabits: f64, n: usize) -> Self {
        Self { phy, megabits, n, payload: PAYLOAD, rts: false, fragment: None, follow: false, mcs: None }
    }

    fn scheme(mcs: u8, wide: bool, short: bool, n: usize) -> Self {
        Self { mcs: Some(mcs), ..Self::new(ht::layer(Band::Five, wide, short), 0.0, n) }
    }

    /// Index of its rate.
    fn index(&self) -> u8 {
        let index = match self.mcs {
            Some(mcs) => self.phy.scheme(mcs),
            None => self.phy.rate_index((self.megabits * 1e6) as u64),
        };
        index.expect("a rate")
    }

    fn settings(&self) -> RadioSettings {
        let plain = at_rate(self.megabits);
        let ht = self.phy.rates[usize::from(self.index())].ht;
        RadioSettings {
            phy: self.phy.name.to_owned(),
            channel: if self.phy.bands.contains(&Band::Five) { 36 } else { 1 },
            width_mhz: if self.phy.is_wide() { 40 } else { 20 },
            guard_interval_ns: if ht.is_some_and(|ht| ht.short) { 400 } else { 800 },
            rate: self.mcs.map_or(plain.rate.clone(), RateSettings::Mcs),
            rts_octets: self.rts.then_some(0),
            fragment_octets: self.fragment,
            preamble_db: if self.follow { None } else { Some(4.0) },
            // The noise of a perfect receiver: -75 dBm are enough for 54 Mbit/s.
            noise_figure_db: 0.0,
            ..plain
        }
    }

    /// Airtime at the rate of the data, and at that of responses to it.
    fn airtimes(&self) -> [impl Fn(u32) -> Nanos; 2] {
        let index = self.index();
        let response = self.phy.response(index, self.phy.mandatory());
        [index, response].map(|index| {
            let rate = &self.phy.rates[usize::from(index)];
            |octets| rate.airtime(octets).nanos()
        })
    }

    /// Octets of the bodies of the fragments.
    fn bodies(&self) -> Vec<u32> {
        let whole = self.payload + AROUND;
        let body = whole - FRAGMENT_HEADER;
        let Some(limit) = self.fragment.filter(|&limit| limit < whole) else { return vec![body] };
        let most = limit - FRAGMENT_HEADER;
        (0..body.div_ceil(most)).map(|piece| most.min(body - piece * most)).collect()
    }

    fn exchange(&self) -> Exchange {
        let [data, control] = self.airtimes();
        let (sifs, ack) = (self.phy.sifs.nanos(), control(ACK_OCTETS));
        let mut frames: Vec<Nanos> = self.bodies().iter().map(|body| data(body + FRAGMENT_HEADER)).collect();
        // Each is followed by its response.
        if self.rts {
            frames.insert(0, control(RTS_OCTETS));
        }
        let whole: Nanos = frames.iter().map(|frame| frame + sifs + ack + sifs).sum();
        let index = self.index();
        let response = self.phy.response(index, self.phy.mandatory());
        let delay = self.phy.rates[usize::from(response)].start_delay().nanos();
        let timeout = sifs + self.phy.slot.nanos() + delay;
        Exchange { first: frames[0], timeout, rest: whole - sifs - frames[0], further: 0, frames: 1 }
    }

    fn cell(&self) -> Cell {
        let phy = self.phy;
        let extension = self.follow.then(|| phy.eifs().saturating_sub(phy.difs()).nanos());
        let (slot, sifs, detect) = (phy.slot.nanos(), phy.sifs.nanos(), phy.detect.nanos());
        Cell { slot, sifs, detect, extension, limit: 7, internal_counts: true }
    }

    fn lanes(&self) -> Vec<Vec<Lane>> {
        let (cw_min, cw_max) = (u32::from(self.phy.cw_min), u32::from(self.phy.cw_max));
        let access = Access { aifsn: 2, cw_min, cw_max, at_boundaries: false };
        vec![vec![Lane::new(access, self.exchange())]; self.n]
    }

    /// What the slots say.
    fn expected(&self, powers: Option<&Powers>, seconds: f64, seed: u64) -> Found {
        let mut stations = self.lanes();
        slots::run(&self.cell(), &mut stations, powers, (seconds * 1e9) as Nanos, seed);
        let share =
            |lanes: &Vec<Lane>| lanes[0].delivered as f64 * f64::from(self.payload * 8) / seconds * 1e-6;
        let shares: Vec<f64> = stations.iter().map(share).collect();
        let sum = |value: fn(&Lane) -> u64| stations.iter().flatten().map(value).sum::<u64>() as f64;
        // A frame in fragments is as many attempts, unless a request to send counts.
        let attempts = if self.rts { 1 } else { self.bodies().len() };
        let (delivered, failed) = (sum(|lane| lane.delivered), sum(|lane| lane.failed));
        Found::of(&shares, failed / (failed + delivered * attempts as f64))
    }
}

/// Compares points, each at one of the powers in turn; the report, and how many differ by more than `share` in the
/// throughput or by 0.012 in the failures.
fn compare(points: &[Point], powers: &[f64], share: f64, seconds: f64) -> (String, u32) {
    let (mut report, mut wrong) = (String::new(), 0);
    for (point, dbm) in points.iter().zip(powers.iter().copied().cycle()) {
        // As many exchanges at each rate and length.
        let seconds = seconds * (point.exchange().rest + point.exchange().first) as f64 / 300e3;
        let found = alike(&point.settings(), point.n, dbm, point.payload, seconds);
        let expected = point.expected(None, 6.0 * seconds, 1);
        let error = found.megabits / expected.megabits - 1.0;
        let fails = error.abs() > share || (found.failed - expected.failed).abs() > 0.012;
        wrong += u32::from(fails);
        report += &format!(
            "{} {:>4} Mbit/s {:?} n={:<2} {:>4} octets rts {} fragment {:?} follow {} {dbm} dBm: {:.3} against {:.3} ({:+.2} %), p {:.4} against {:.4}{}\n",
            point.phy.name,
            point.megabits,
            point.mcs,
            point.n,
            point.payload,
            point.rts,
            point.fragment,
            point.follow,
            found.megabits,
            expected.megabits,
            100.0 * error,
            found.failed,
            expected.failed,
            if fails { " WRONG" } else { "" }
        );
    }
    println!("{report}");
    (report, wrong)
}

const POWERS: [f64; 4] = [-35.0, -66.0, -70.0, -75.0];

#[test]
fn numbers_of_stations_of_each_layer() {
    let mut points = Vec::new();
    for (phy, rates) in [
        (&tables::A, &[6.0, 24.0, 54.0][..]),
        (&tables::G, &[12.0, 54.0]),
        (&tables::B_LONG, &[1.0, 2.0, 5.5, 11.0]),
        (&tables::B_SHORT, &[11.0]),
        (&tables::BG, &[11.0, 36.0]),
    ] {
        for &rate in rates {
            points.extend([2, 4, 8, 15, 30, 50].map(|n| Point::new(phy, rate, n)));
        }
    }
    let (report, wrong) = compare(&points, &POWERS, 0.02, 4.0);
    assert_eq!(wrong, 0, "{report}");
}

#[test]
fn stations_of_802_11n_without_aggregation() {
    let mut points = Vec::new();
    for (mcs, wide, short) in [(0, false, false), (7, false, true), (15, true, false), (31, true, true)] {
        for n in [2, 8, 20] {
            let plain = Point::scheme(mcs, wide, short, n);
            points.extend([
                plain,
                Point { follow: true, ..plain },
                Point { rts: true, payload: 700, ..plain },
            ]);
        }
    }
    let (report, wrong) = compare(&points, &[-35.0, -50.0], 0.02, 4.0);
    assert_eq!(wrong, 0, "{report}");
}

#[test]
fn stations_that_all_wait_for_eifs() {
    let layers = [(&tables::A, 54.0), (&tables::G, 54.0), (&tables::B_LONG, 11.0), (&tables::BG, 11.0)];
    let points: Vec<Point> = layers
        .into_iter()
        .flat_map(|(phy, rate)| [2, 5, 20, 50].map(|n| Point { follow: true, ..Point::new(phy, rate, n) }))
        .collect();
    let (report, wrong) = compare(&points, &POWERS, 0.02, 4.0);
    assert_eq!(wrong, 0, "{report}");
}

#[test]
fn requests_to_send_fragments_and_lengths() {
    let mut points = Vec::new();
    for (phy, rate) in [(&tables::A, 54.0), (&tables::A, 6.0), (&tables::G, 24.0), (&tables::B_LONG, 11.0)] {
        for n in [2, 10, 40] {
            let plain = Point::new(phy, rate, n);
            points.extend([100, 700, 2000].map(|payload| Point { payload, ..plain }));
            points.extend([300, 1470].map(|payload| Point { rts: true, payload, ..plain }));
            points.extend([256, 600, 1000].map(|limit| Point { fragment: Some(limit), ..plain }));
            points.push(Point { fragment: Some(600), rts: true, ..plain });
        }
    }
    let (report, wrong) = compare(&points, &POWERS, 0.02, 4.0);
    assert_eq!(wrong, 0, "{report}");
}

/// Probability that a frame of 1534 octets is received.
fn success(modulation: Modulation, ratio: f64) -> f64 {
    libm::exp(Nist.ln_bit(modulation, Coding::Half, ratio) * f64::from(1534 * 8 + 22))
}

/// The ratio of so many dB.
fn linear(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

#[test]
fn stations_at_random_places_that_all_hear_each_other() {
    let mut report = String::new();
    let mut worst: [f64; 3] = [0.0; 3];
    let rates = [(6.0, Modulation::Bpsk), (24.0, Modulation::Qam16)];
    for ((rate, modulation), n, side) in rates.into_iter().flat_map(|rate| {
        [(2, 25.0), (5, 10.0), (10, 25.0), (20, 5.0), (20, 25.0), (40, 25.0)].map(|(n, side)| (rate, n, side))
    }) {
        let point = Point::new(&tables::A, rate, n as usize);
        let [mut found, mut expected] = [Vec::new(), Vec::new()];
        for seed in 1..=4 {
            let places = places(n, side, seed);
            found.push(scattered(&point.settings(), &places, PAYLOAD, seed, 5.0));
            let [_, control] = point.airtimes();
            let power = |a: (f64, f64), b: (f64, f64)| {
                let distance = libm::hypot(a.0 - b.0, a.1 - b.1).max(1.0);
                linear(16.0 - 46.6777 - 30.0 * libm::log10(distance))
            };
            let row = |&listener: &(f64, f64)| places.iter().map(|&from| power(from, listener)).collect();
            let listeners = places.iter().chain(&[(0.0, 0.0)]);
            let powers = Powers {
                heard: listeners.map(row).collect(),
                // Thermal noise of 20 MHz.
                noise: linear(-100.97),
                preamble: linear(4.0),
                modulation,
                success,
                answer: tables::A.sifs.nanos() + control(ACK_OCTETS),
                extension: tables::A.eifs().saturating_sub(tables::A.difs()).nanos(),
            };
            expected.push(point.expected(Some(&powers), 25.0, seed));
        }
        let (found, expected) = (Found::mean(&found), Found::mean(&expected));
        let error = found.megabits / expected.megabits - 1.0;
        let errors = [error, found.failed - expected.failed, found.jain - expected.jain];
        worst.iter_mut().zip(errors).for_each(|(worst, error)| *worst = worst.max(error.abs()));
        report +=
            &format!("{rate} Mbit/s {n} in {side} m: {errors:.3?} {found:.3?} against {expected:.3?}\n");
    }
    println!("{report}");
    assert!(worst[0] < 0.02 && worst[1] < 0.015 && worst[2] < 0.05, "{worst:?}\n{report}");
}
