//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993).
//!
//! On each arrival the mean queue moves towards the present one, `mean += weight * (octets -
//! mean)`; over an idle time as if small packets had met an empty queue, `mean *= (1 -
//! weight)^m` with `m` the number of packets of 500 octets that could have been sent. Below
//! `min` all pass; from `max` on all are dropped; between, with `p = probability * (mean - min) /
//! (max - min)` and `count` packets since the last drop, one is dropped with `p / (1 - count *
//! p)`, so that the distances between drops are uniform on `1..1/p`. The probability does not
//! depend on the packet's size (RFC 7141).

use crate::pace::Pace;
use crate::random::Stream;
use crate::time::Instant;

/// Octets of the packet by which idle time is counted.
const TYPICAL: u64 = 500;

/// Parameters and state.
pub(super) struct Red {
    min: f64,
    max: f64,
    probability: f64,
    weight: f64,
    /// Time that a typical packet takes, in nanoseconds.
    typical: f64,
    mean: f64,
    count: f64,
    idle_since: Instant,
}

/// What is to become of an arriving frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// To be marked if that is possible, or else dropped.
    Signal,
    Drop,
}

#[allow(clippy::cast_precision_loss)] // octets and nanoseconds of a queue are below 2^53
fn float(value: u64) -> f64 {
    value as f64
}

impl Red {
    pub fn new(min_octets: u64, max_octets: u64, probability: f64, weight: f64, pace: &Pace) -> Self {
        let mut red = Self {
            min: float(min_octets),
            max: float(max_octets),
            probability,
            weight,
            typical: 0.0,
            mean: 0.0,
            count: -1.0,
            idle_since: Instant::ZERO,
        };
        red.follow(pace);
        red
    }

    /// Reckons with this pace.
    pub fn follow(&mut self, pace: &Pace) {
        self.typical = pace.mean().map_or(1.0, |rate| float(TYPICAL * 8) * 1e9 / float(rate.max(1)));
    }

    /// Says that the queue has just run empty.
    pub fn idle(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// Judges a frame that finds so many octets waiting.
    pub fn judge(&mut self, now: Instant, waiting: u64, dice: &mut Stream) -> Verdict {
        if waiting > 0 {
            self.mean += self.weight * (float(waiting) - self.mean);
        } else {
            let idle = float(now.since(self.idle_since).nanos());
            self.mean *= libm::pow(1.0 - self.weight, idle / self.typical);
        }
        if self.mean < self.min {
            self.count = -1.0;
            return Verdict::Pass;
        }
        if self.mean >= self.max {
            self.count = 0.0;
            return Verdict::Drop;
        }
        self.count += 1.0;
        let p = self.probability * (self.mean - self.min) / (self.max - self.min);
        let left = 1.0 - self.count * p;
        if left <= 0.0 || dice.chance(p / left) {
            self.count = 0.0;
            return Verdict::Signal;
        }
        Verdict::Pass
    }
}
