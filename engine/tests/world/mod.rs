//! A medium with sources and sinks, for tests and benchmarks.

#![allow(dead_code)] // each test uses its part

use std::collections::BTreeMap;

use airloom_engine::DropReason;
use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::capture::{self, Sniffed};
use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::propagation::{LogDistance, PathLoss};
use airloom_engine::medium::{Medium, Outside, RadioId, RadioSettings, RateSettings};
use airloom_engine::time::{Instant, Span};

/// UDP payload that makes a frame of 1534 octets on the air.
pub const PAYLOAD: u32 = 1470;
/// Ethernet, IPv4 and UDP headers.
pub const HEADERS: u32 = 14 + 20 + 8;

/// Frames that arrived at one radio from another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub frames: u64,
    pub octets: u64,
    pub delay: u64,
    pub longest: u64,
    pub jitter: u64,
    last_delay: Option<u64>,
}

/// Buffers and sinks.
#[derive(Default)]
pub struct Sinks {
    pub pool: Pool,
    pub counting_from: Instant,
    pub tallies: BTreeMap<(u32, u32), Tally>,
    pub drops: BTreeMap<DropReason, u64>,
    pub copies: u64,
    pub finished: Vec<RadioId>,
    pub arrivals: Vec<(RadioId, Frame, Instant)>,
    pub keep_arrivals: bool,
    pub delivered: u64,
    /// Frames with their radiotap header: the capturing radio, if any, and the octets.
    pub sniffs: Vec<(Option<RadioId>, Vec<u8>)>,
}

impl Outside for Sinks {
    fn octets(&self, frame: &Frame) -> &[u8] {
        self.pool.octets(frame.buffer)
    }
    fn make(&mut self, octets: &[u8]) -> Frame {
        let buffer = self.pool.take(octets.len());
        self.pool.octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
        Frame::new(buffer, u32::try_from(octets.len()).expect("short"), None, None)
    }
    fn share(&mut self, frame: &Frame) {
        self.pool.share(frame.buffer);
    }
    fn release(&mut self, frame: Frame) {
        self.pool.release(frame.buffer);
    }
    fn deliver(&mut self, radio: RadioId, at: Instant, frame: Frame) {
        self.delivered += 1;
        if frame.entered >= self.counting_from || at >= self.counting_from {
            let tally = self.tallies.entry((frame.origin, radio.number())).or_default();
            tally.frames += 1;
            tally.octets += u64::from(frame.segment_octets(frame.first) - HEADERS);
            let delay = at.since(frame.entered).nanos();
            tally.delay += delay;
            tally.longest = tally.longest.max(delay);
            if let Some(last) = tally.last_delay.replace(delay) {
                tally.jitter += delay.abs_diff(last);
            }
        }
        if self.keep_arrivals {
            self.arrivals.push((radio, frame, at));
        } else {
            self.pool.release(frame.buffer);
        }
    }
    fn dropped(&mut self, _radio: RadioId, _at: Instant, frame: Frame, why: DropReason) {
        *self.drops.entry(why).or_default() += 1;
        self.pool.release(frame.buffer);
    }
    fn copied(&mut self, _frame: &Frame, copies: u32) {
        self.copies += u64::from(copies);
    }
    fn sniffed(&mut self, sniffed: &Sniffed) {
        let ethernet = sniffed.frame.map_or(&[][..], |frame| {
            &self.pool.octets(frame.buffer)[..frame.segment_octets(frame.first) as usize]
        });
        let mut octets = Vec::new();
        capture::write(sniffed, ethernet, &mut octets);
        self.sniffs.push((sniffed.radio, octets));
    }
    fn finished(&mut self, radio: RadioId, _at: Instant) {
        self.finished.push(radio);
    }
}

/// A saturated flow.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub from: RadioId,
    pub to: Option<RadioId>,
    pub payload: u32,
}

/// A medium, its traffic sources and its environment.
pub struct World {
    pub medium: Medium,
    pub sinks: Sinks,
    pub sources: Vec<Source>,
    pub offered: u64,
    macs: Vec<[u8; 6]>,
}

/// The loss of the reference runs: exponent 3, 46.6777 dB at 1 m.
pub fn reference_loss() -> Box<dyn PathLoss> {
    Box::new(LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.6777) })
}

/// Settings of the reference runs at a fixed rate, with queues for every frame that a test offers
/// at once.
pub fn at_rate(megabits: f64) -> RadioSettings {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rate = (megabits * 1e6).round() as u64;
    RadioSettings {
        rate: RateSettings::Constant(rate),
        long_retries: 7,
        transmit_buffers: 1000,
        tail_drop: 1000,
        ..RadioSettings::default()
    }
}

impl World {
    pub fn new(seed: u64, loss: Box<dyn PathLoss>) -> Self {
        Self {
            medium: Medium::new(seed, "air", loss),
            sinks: Sinks::default(),
            sources: Vec::new(),
            offered: 0,
            macs: Vec::new(),
        }
    }

    pub fn add(&mut self, mut settings: RadioSettings, x: f64, y: f64) -> RadioId {
        let number = u16::try_from(self.macs.len()).expect("few radios");
        let [high, low] = number.to_be_bytes();
        settings.mac = [2, 0, 0, 0, high, low];
        self.macs.push(settings.mac);
        let place = Box::new(Static(Position::new(x, y, 0.0)));
        self.medium.add_radio(&format!("r{number}"), settings, place).expect("a radio")
    }

    pub fn mac(&self, radio: RadioId) -> [u8; 6] {
        self.macs[radio.number() as usize]
    }

    pub fn frame(&mut self, now: Instant, from: RadioId, to: Option<RadioId>, payload: u32) -> Frame {
        let length = HEADERS + payload;
        let buffer = self.sinks.pool.take(length as usize);
        let octets = self.sinks.pool.octets_mut(buffer);
        octets[..6].copy_from_slice(&to.map_or([0xff; 6], |to| self.macs[to.number() as usize]));
        octets[6..12].copy_from_slice(&self.macs[from.number() as usize]);
        octets[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
        Frame {
            buffer,
            length,
            first: 0,
            count: 1,
            segmentation: None,
            checksum: None,
            origin: from.number(),
            entered: now,
            label: None,
        }
    }

    pub fn offer(&mut self, now: Instant, from: RadioId, to: Option<RadioId>, payload: u32) {
        self.offered += 1;
        let frame = self.frame(now, from, to, payload);
        self.medium.offer(from, now, frame, &mut self.sinks);
    }

    /// Offers a frame with a DSCP.
    pub fn offer_marked(&mut self, now: Instant, from: RadioId, to: RadioId, payload: u32, dscp: u8) {
        self.offered += 1;
        let frame = self.frame(now, from, Some(to), payload);
        self.sinks.pool.octets_mut(frame.buffer)[15] = dscp << 2;
        self.medium.offer(from, now, frame, &mut self.sinks);
    }

    /// Adds a source that keeps ten frames queued.
    pub fn saturate(&mut self, now: Instant, from: RadioId, to: RadioId, payload: u32) {
        self.sources.push(Source { from, to: Some(to), payload });
        (0..10).for_each(|_| self.offer(now, from, Some(to), payload));
    }

    /// Runs until `until`; sources refill as soon as a frame is finished.
    pub fn run(&mut self, until: Instant) {
        loop {
            if !self.medium.step(until, &mut self.sinks) {
                break;
            }
            while let Some(radio) = self.sinks.finished.pop() {
                let now = self.medium.now();
                let Some(source) = self.sources.iter().find(|source| source.from == radio).copied() else {
                    continue;
                };
                self.offer(now, source.from, source.to, source.payload);
            }
        }
        self.medium.advance(until, &mut self.sinks);
    }

    /// Starts counting.
    pub fn start_counting(&mut self, at: Instant) {
        self.sinks.counting_from = at;
        self.sinks.tallies.clear();
    }

    /// Mbit/s of payload that arrived at `to` from `from`.
    pub fn goodput(&self, from: RadioId, to: RadioId, over: Span) -> f64 {
        let tally = self.sinks.tallies.get(&(from.number(), to.number())).copied().unwrap_or_default();
        #[allow(clippy::cast_precision_loss)]
        let megabits = tally.octets as f64 * 8.0 / (over.nanos() as f64 * 1e-3);
        megabits
    }
}

/// Seconds of the run.
pub fn at(seconds: f64) -> Instant {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Instant::from_nanos((seconds * 1e9).round() as u64)
}

/// Rows of a reference file as maps from column to text.
pub fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    lines
        .map(|line| head.iter().zip(line.split(',')).map(|(k, v)| ((*k).to_owned(), v.to_owned())).collect())
        .collect()
}

/// A number of a row.
pub fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {:?}", row[column]))
}
