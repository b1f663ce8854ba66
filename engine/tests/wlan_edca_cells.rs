//! EDCA of stations with an 802.11 stack, saturated, with parameters of their access point, against a
//! simulator of the standard's slots.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod slots;
mod stack;
mod world;

use airloom_engine::DropReason;
use airloom_engine::frame::Frame;
use airloom_engine::medium::phy::{ACK_OCTETS, Phy, RTS_OCTETS, tables};
use airloom_engine::medium::propagation::Matrix;
use airloom_engine::medium::wlan::{Attempt, TxRequest, TxStatus};
use airloom_engine::medium::{Membership, Outside, RadioId, RadioSettings};
use airloom_engine::time::Instant;
use slots::{Access, Cell, Exchange, Lane, Nanos};
use stack::{mac, qos_data};
use world::{World, at, at_rate};

/// Octets of a frame without check sequence: 1470 of UDP in QoS data.
const OCTETS: usize = 1470 + 20 + 8 + 8 + 26;
/// Transmissions of a frame.
const TRIES: u8 = 7;

/// Parameters of a category: AIFSN, exponents of the windows, limit of the opportunity in 32 us.
type Parameters = (u8, u8, u8, u16);

/// Those of voice, video, best effort and background.
type Set = [Parameters; 4];

/// The default of 802.11-2012, of 802.11-2020, and others.
const WMM: Set = [(2, 2, 3, 47), (2, 3, 4, 94), (3, 4, 10, 0), (7, 4, 10, 0)];
const STANDARD: Set = [(2, 2, 3, 65), (2, 3, 4, 128), (3, 4, 10, 79), (7, 4, 10, 79)];
const SINGLE: Set = [(2, 2, 3, 0), (2, 3, 4, 0), (3, 4, 10, 0), (7, 4, 10, 0)];
const WIDE: Set = [(2, 5, 7, 0), (3, 5, 7, 0), (4, 6, 9, 0), (6, 6, 9, 0)];
const BY_SPACE: Set = [(2, 4, 6, 0), (4, 4, 6, 0), (6, 4, 6, 0), (9, 4, 6, 0)];
const BY_TIME: Set = [(2, 4, 10, 64), (2, 4, 10, 32), (2, 4, 10, 16), (2, 4, 10, 0)];

/// A point: layer, rate, stations for each category or with all of them, categories, parameters.
#[derive(Clone, Copy, Debug)]
struct Point {
    phy: &'static Phy,
    megabits: f64,
    each: bool,
    lanes: &'static [usize],
    n: usize,
    set: Set,
    rts: bool,
    dbm: f64,
}

/// A management frame that accepts an association, with these parameters.
fn acceptance(to: u8, set: &Set) -> Vec<u8> {
    let mut octets = vec![0x10, 0, 0, 0];
    octets.extend([mac(to), mac(0), mac(0)].concat());
    octets.extend([0, 0, 1, 0, 0, 0, 1, 0xc0]);
    octets.extend([221, 24, 0x00, 0x50, 0xf2, 2, 1, 1, 1, 0]);
    // Records in the order best effort, background, video, voice.
    for (identifier, (aifsn, low, high, limit)) in (0u8..).zip([set[2], set[3], set[1], set[0]]) {
        octets.extend([identifier << 5 | aifsn, high << 4 | low]);
        octets.extend(limit.to_le_bytes());
    }
    octets
}

/// Sources with their frames, and what became of them.
struct Flows {
    /// The frame of each source, and those of the access point.
    frames: Vec<Vec<u8>>,
    waiting: Vec<u32>,
    acknowledged: Vec<u64>,
    counting: bool,
}

impl Outside for Flows {
    fn octets(&self, frame: &Frame) -> &[u8] {
        &self.frames[frame.origin as usize]
    }
    fn make(&mut self, _octets: &[u8]) -> Frame {
        unreachable!("nothing is translated")
    }
    fn share(&mut self, _frame: &Frame) {}
    fn release(&mut self, _frame: Frame) {}
    fn deliver(&mut self, _radio: RadioId, _at: Instant, _frame: Frame) {}
    fn transmitted(&mut self, _radio: RadioId, _at: Instant, status: &TxStatus) {
        let source = status.cookie as usize;
        self.waiting[source] -= 1;
        self.acknowledged[source] += u64::from(self.counting && status.acknowledged);
    }
    fn dropped(&mut self, _radio: RadioId, _at: Instant, _frame: Frame, why: DropReason) {
        assert_eq!(why, DropReason::RetryLimit);
    }
    fn copied(&mut self, _frame: &Frame, _copies: u32) {}
}

impl Point {
    /// Stations with their lanes.
    fn stations(&self) -> Vec<Vec<usize>> {
        let all = || vec![self.lanes.to_vec()];
        let own = || self.lanes.iter().map(|&lane| vec![lane]).collect();
        (0..self.n).flat_map(|_| if self.each { all() } else { own() }).collect()
    }

    /// Frames delivered in each category by the engine.
    fn found(&self, seconds: f64, seed: u64) -> [u64; 4] {
        let stations = self.stations();
        let settings = RadioSettings {
            membership: Membership::Wlan,
            phy: self.phy.name.to_owned(),
            channel: if core::ptr::eq(self.phy, &raw const tables::A) { 36 } else { 1 },
            noise_figure_db: 0.0,
            ..at_rate(self.megabits)
        };
        let mut matrix = Matrix::silent(stations.len() + 1);
        for (from, to) in (0..=stations.len()).flat_map(|from| (0..=stations.len()).map(move |to| (from, to)))
        {
            matrix.set(from, to, settings.power_dbm - self.dbm);
        }
        let mut world = World::new(seed, Box::new(matrix));
        let radios: Vec<RadioId> =
            (0..=stations.len()).map(|_| world.add(settings.clone(), 0.0, 0.0)).collect();
        for (number, &radio) in (0u8..).zip(&radios) {
            assert!(world.medium.set_wlan_addresses(radio, &[mac(number)]));
        }
        let mhz = world.medium.channel(radios[0]).mhz;
        let rate = self.phy.rate_index((self.megabits * 1e6) as u64).expect("a rate");
        let attempts = [Some(Attempt { rate, tries: TRIES, rts: self.rts }), None, None, None];
        let mut sources: Vec<(RadioId, usize)> = Vec::new();
        let mut frames = Vec::new();
        for (number, (lanes, &radio)) in (1u8..).zip(stations.iter().zip(&radios[1..])) {
            for &lane in lanes {
                sources.push((radio, lane));
                let mut octets = qos_data(mac(0), mac(number), 0, OCTETS);
                octets[24] = [6, 5, 0, 1][lane];
                frames.push(octets);
            }
        }
        let first = frames.len();
        frames.extend((0u8..).zip(&stations).map(|(number, _)| acceptance(number + 1, &self.set)));
        let mut flows = Flows {
            waiting: vec![0; frames.len()],
            acknowledged: vec![0; frames.len()],
            frames,
            counting: false,
        };
        let buffer = world.sinks.pool.take(OCTETS);
        let offer = |world: &mut World, flows: &mut Flows, from: RadioId, source: usize| {
            flows.waiting[source] += 1;
            let mut frame = Frame::new(buffer, flows.frames[source].len() as u32, None, None);
            let now = world.medium.now();
            (frame.origin, frame.entered) = (source as u32, now);
            let request = TxRequest { mhz, attempts, no_ack: false, cookie: source as u64 };
            world.medium.offer_wlan(from, now, frame, request, flows);
        };
        for acceptance in first..flows.frames.len() {
            offer(&mut world, &mut flows, radios[0], acceptance);
        }
        flows.counting = true;
        while world.medium.step(at(0.2), &mut flows) {}
        assert!(flows.acknowledged[first..].iter().all(|&answered| answered == 1));
        assert_eq!(flows.waiting[first..].iter().sum::<u32>(), 0, "all are associated");
        loop {
            let now = world.medium.now();
            flows.counting = now >= at(0.5);
            for (number, &(from, _)) in sources.iter().enumerate() {
                // More than one opportunity has room for.
                while flows.waiting[number] < 40 {
                    offer(&mut world, &mut flows, from, number);
                }
            }
            if !world.medium.step(at(0.5 + seconds), &mut flows) {
                break;
            }
        }
        let mut delivered = [0; 4];
        for (&(_, lane), &frames) in sources.iter().zip(&flows.acknowledged) {
            delivered[lane] += frames;
        }
        delivered
    }

    /// The exchange of a lane.
    fn exchange(&self, lane: usize) -> Exchange {
        let index = self.phy.rate_index((self.megabits * 1e6) as u64).expect("a rate");
        let response = &self.phy.rates[usize::from(self.phy.response(index, self.phy.mandatory()))];
        let sifs = self.phy.sifs.nanos();
        let data = self.phy.rates[usize::from(index)].airtime(OCTETS as u32 + 4).nanos();
        let (ack, request) = (response.airtime(ACK_OCTETS).nanos(), response.airtime(RTS_OCTETS).nanos());
        let whole = data + sifs + ack;
        let limit = 32_000 * Nanos::from(self.set[lane].3);
        let (first, rest) = if self.rts { (request, sifs + ack + sifs + whole) } else { (data, sifs + ack) };
        let further = sifs + if self.rts { request + sifs + ack + sifs + whole } else { whole };
        let frames = 1 + limit.saturating_sub(first + rest) / further;
        let timeout = sifs + self.phy.slot.nanos() + response.start_delay().nanos();
        Exchange { first, timeout, rest, further, frames }
    }

    /// Frames of a second delivered in each category by the slots, in many runs of so many seconds: mean and
    /// standard deviation. Successes of a lane with a wide window come in groups.
    fn expected(&self, seconds: f64) -> [(f64, f64); 4] {
        const RUNS: u32 = 24;
        let lanes: Vec<Lane> = (0..4)
            .map(|lane| {
                let (aifsn, low, high, _) = self.set[lane];
                let (cw_min, cw_max) = ((1 << low) - 1, (1 << high) - 1);
                let access = Access { aifsn: aifsn.into(), cw_min, cw_max, at_boundaries: true };
                Lane::new(access, self.exchange(lane))
            })
            .collect();
        let names = self.stations();
        let phy = self.phy;
        let cell = Cell {
            slot: phy.slot.nanos(),
            sifs: phy.sifs.nanos(),
            detect: phy.detect.nanos(),
            extension: None,
            limit: TRIES.into(),
            // The retry chain counts transmissions.
            internal_counts: false,
        };
        let mut sums = [(0.0, 0.0); 4];
        for run in 0..RUNS {
            let mut stations: Vec<Vec<Lane>> =
                names.iter().map(|own| own.iter().map(|&lane| lanes[lane].clone()).collect()).collect();
            slots::run(&cell, &mut stations, None, (seconds * 1e9) as Nanos, u64::from(run) + 1);
            let mut delivered = [0.0; 4];
            for (&lane, state) in names.iter().flatten().zip(stations.iter().flatten()) {
                delivered[lane] += state.delivered as f64 / seconds;
            }
            for (sum, delivered) in sums.iter_mut().zip(delivered) {
                *sum = (sum.0 + delivered, sum.1 + delivered * delivered);
            }
        }
        sums.map(|(sum, squares)| {
            let mean = sum / f64::from(RUNS);
            (mean, ((squares - sum * mean) / f64::from(RUNS - 1)).max(0.0).sqrt())
        })
    }
}

/// Frames a second in 1 Mbit/s.
const MEGABIT: f64 = 1e6 / (1470.0 * 8.0);

/// Compares the shares above 0.3 Mbit/s; less is too few frames.
fn compare(points: &[Point]) {
    const SECONDS: f64 = 8.0;
    const SEEDS: u32 = 3;
    let (mut report, mut wrong) = (String::new(), 0);
    for point in points {
        let mut found = [0; 4];
        for seed in 1..=SEEDS {
            let delivered = point.found(SECONDS, seed.into());
            found.iter_mut().zip(delivered).for_each(|(sum, frames)| *sum += frames);
        }
        report += &format!(
            "{} {} each {} {:?} n={} {:?} rts {} {} dBm:",
            point.phy.name, point.megabits, point.each, point.lanes, point.n, point.set, point.rts, point.dbm
        );
        let scale = |frames: f64| frames / MEGABIT;
        for (found, (expected, deviation)) in found.into_iter().zip(point.expected(SECONDS)) {
            let found = scale(found as f64 / SECONDS / f64::from(SEEDS));
            let (expected, deviation) = (scale(expected), scale(deviation) / f64::from(SEEDS).sqrt());
            if expected > 0.3 {
                let fails = (found - expected).abs() > 0.02 * expected + 3.5 * deviation;
                wrong += u32::from(fails);
                let mark = if fails { " WRONG" } else { "" };
                report += &format!(" {found:.3} / {expected:.3} +- {deviation:.3}{mark}");
            }
        }
        report += "\n";
    }
    println!("{report}");
    assert_eq!(wrong, 0, "{report}");
}

const BASE: Point = Point {
    phy: &tables::A,
    megabits: 54.0,
    each: true,
    lanes: &[0, 1, 2, 3],
    n: 4,
    set: SINGLE,
    rts: false,
    dbm: -40.0,
};

#[test]
fn parameters_that_an_access_point_chooses() {
    let mut points = Vec::new();
    for set in [WIDE, BY_SPACE, BY_TIME, WMM, STANDARD] {
        points.extend([(true, 3), (false, 4)].map(|(each, n)| Point { set, each, n, ..BASE }));
    }
    for lanes in [&[0, 2][..], &[1, 2], &[2, 3], &[1, 3]] {
        points.push(Point { set: WMM, lanes, n: 3, ..BASE });
        points.push(Point { lanes, n: 3, each: false, ..BASE });
    }
    compare(&points);
}

#[test]
fn layers_powers_and_requests_to_send() {
    let mut points = Vec::new();
    for (phy, megabits) in
        [(&tables::A, 6.0), (&tables::G, 54.0), (&tables::B_LONG, 11.0), (&tables::BG, 11.0)]
    {
        for (each, set, rts) in [(true, SINGLE, false), (false, WIDE, true), (false, BY_TIME, true)] {
            points.push(Point { phy, megabits, each, set, rts, ..BASE });
        }
    }
    points.extend([-66.0, -70.0, -75.0].map(|dbm| Point { dbm, each: false, set: WIDE, n: 6, ..BASE }));
    compare(&points);
}
