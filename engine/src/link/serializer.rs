//! Serialization: exact transmission times for constant and trace-driven rates.

use crate::link::bucket::Bucket;
use crate::settings::Rate;
use crate::time::{Instant, Span};

const NANOS: u64 = 1_000_000_000;

/// Transmission rate of one direction, and its progress.
#[derive(Clone, Debug)]
pub(crate) enum Serializer {
    Unlimited,
    Constant(Constant),
    Bucket(Box<Shaper>),
    Trace(Box<Trace>),
}

/// A token bucket, and the rate in bit/s at which its bursts leave, if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    bucket: Bucket,
    peak: Option<u64>,
}

/// A constant rate. The exact end of the last transmission is `floor + rest / rate` ns, so that
/// rounding to whole nanoseconds never accumulates: a busy wire is exact for ever, and no end is
/// reported too early.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    rate: u64,
    floor: u64,
    rest: u64,
}

/// A trace: at each opportunity so many octets may leave; unused octets are lost.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Ascending, within `0..=period`.
    opportunities: Vec<u64>,
    period: u64,
    octets: u64,
    /// The instant from which the trace counts.
    base: u64,
    /// The opportunity in use, counted over all periods.
    current: u64,
    /// Octets left of it.
    left: u64,
}

impl Serializer {
    /// Serializer for `rate` from `now` on, when a trace begins; the wire is free from `free` on.
    pub fn new(rate: &Rate, now: Instant, free: Instant) -> Self {
        match rate {
            Rate::Unlimited => Self::Unlimited,
            Rate::BitsPerSecond(rate) => {
                Self::Constant(Constant { rate: *rate, floor: free.nanos(), rest: 0 })
            }
            Rate::TokenBucket { bits_per_second, burst_octets, peak_bits_per_second } => {
                let bucket = Bucket::new(*bits_per_second, *burst_octets);
                Self::Bucket(Box::new(Shaper { bucket, peak: *peak_bits_per_second }))
            }
            Rate::Trace { opportunities_ns, period_ns, octets } => Self::Trace(Box::new(Trace {
                opportunities: opportunities_ns.clone(),
                period: *period_ns,
                octets: u64::from(*octets),
                base: now.nanos(),
                current: 0,
                left: u64::from(*octets),
            })),
        }
    }

    /// When the last of `octets` has left if they begin to leave at `now`. With `behind`, they
    /// follow the previous octets without a gap, and `now` is the rounded end of those.
    pub fn send(&mut self, now: Instant, behind: bool, octets: u64) -> Instant {
        match self {
            Self::Unlimited => now,
            Self::Constant(constant) => constant.send(now, behind, octets),
            Self::Bucket(shaper) => shaper.send(now, octets),
            Self::Trace(trace) => trace.send(now, octets),
        }
    }

    /// Takes back what was last sent behind other octets at a constant rate.
    pub fn take_back(&mut self, octets: u64) {
        if let Self::Constant(constant) = self {
            constant.take_back(octets);
        }
    }

    /// Delays a constant rate by `pause`.
    pub fn pause(&mut self, pause: Span) {
        if let Self::Constant(constant) = self {
            constant.floor = constant.floor.saturating_add(pause.nanos());
        }
    }

    /// Time of `octets` at a constant rate, rounded down; `None` at any other.
    pub fn length(&self, octets: u64) -> Option<Span> {
        match self {
            Self::Constant(constant) => Some(Span::from_nanos(octets * 8 * NANOS / constant.rate)),
            Self::Unlimited | Self::Bucket(_) | Self::Trace(_) => None,
        }
    }

    pub fn is_unlimited(&self) -> bool {
        matches!(self, Self::Unlimited)
    }

    /// Mean rate in bit/s; `None` if there is no limit.
    pub fn mean(&self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Constant(constant) => Some(constant.rate),
            Self::Bucket(shaper) => Some(shaper.bucket.rate()),
            Self::Trace(trace) => {
                let bits = u128::from(trace.octets) * 8 * trace.opportunities.len() as u128;
                u64::try_from(bits * u128::from(NANOS) / u128::from(trace.period)).ok()
            }
        }
    }
}

impl Shaper {
    fn send(&mut self, now: Instant, octets: u64) -> Instant {
        let begin = self.bucket.take(now, octets);
        let length = self.peak.map_or(0, |peak| (octets * 8 * NANOS).div_ceil(peak));
        begin + Span::from_nanos(length)
    }
}

impl Constant {
    fn send(&mut self, now: Instant, behind: bool, octets: u64) -> Instant {
        if !behind {
            self.floor = now.nanos();
            self.rest = 0;
        }
        // Below 2^64: a super-frame of 65,536 segments, each charged a few thousand octets at
        // most, is under 2^32 bits; and a rate is below 2^50.
        let work = self.rest + octets * 8 * NANOS;
        self.floor = self.floor.saturating_add(work / self.rate);
        self.rest = work % self.rate;
        Instant::from_nanos(self.floor.saturating_add(u64::from(self.rest > 0)))
    }

    fn take_back(&mut self, octets: u64) {
        let (rate, work) = (u128::from(self.rate), u128::from(octets * 8 * NANOS));
        let begin = (u128::from(self.floor) * rate + u128::from(self.rest)).saturating_sub(work);
        self.floor = u64::try_from(begin / rate).unwrap_or(u64::MAX);
        self.rest = u64::try_from(begin % rate).unwrap_or(0);
    }
}

impl Trace {
    /// Time of the opportunity with this number.
    fn time(&self, number: u64) -> u64 {
        let count = self.opportunities.len() as u64;
        let (round, index) = (number / count, number % count);
        #[allow(clippy::cast_possible_truncation)] // below the length of a vector
        let within = self.opportunities[index as usize];
        self.base.saturating_add(round.saturating_mul(self.period)).saturating_add(within)
    }

    /// The first opportunity at `now` or later.
    fn first_from(&self, now: u64) -> u64 {
        let since = now.saturating_sub(self.base);
        // At a multiple of the period, the last opportunity of the previous round may coincide.
        let round = (since / self.period).saturating_sub(u64::from(since % self.period == 0));
        let within = since - round * self.period;
        let index = self.opportunities.partition_point(|&at| at < within) as u64;
        round * self.opportunities.len() as u64 + index
    }

    fn send(&mut self, now: Instant, octets: u64) -> Instant {
        if self.time(self.current) < now.nanos() {
            self.current = self.first_from(now.nanos());
            self.left = self.octets;
        }
        let mut octets = octets;
        if self.left < octets {
            octets -= self.left;
            // Whole opportunities that are used up before the one in which the last octet leaves.
            let more = octets.div_ceil(self.octets);
            self.current += more;
            octets -= (more - 1) * self.octets;
            self.left = self.octets;
        }
        self.left -= octets;
        Instant::from_nanos(self.time(self.current))
    }
}
