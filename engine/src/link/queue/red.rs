//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993).
//!
//! On each arrival the mean queue moves towards the present one, `mean += weight * (octets -
//! mean)`; after an idle time `mean *= (1 - weight)^m`, with `m` the number of packets of 500
//! octets that could have been sent. Below `min` all packets pass; from `max` on all are dropped;
//! between, with `p = probability * (mean - min) / (max - min)` and `count` packets passed since
//! the last drop, one is dropped with `p / (1 - count * p)`, so that the distances between drops
//! are uniform on `1..1/p`. The probability does not depend on the packet's size (RFC 7141).

use crate::link::serializer::Serializer;
use crate::math;
use crate::random::Stream;
use crate::time::Instant;

/// Octets of the typical packet, by which idle time is measured.
const TYPICAL: u64 = 500;

/// Parameters and state.
pub(super) struct Red {
    min: f64,
    max: f64,
    probability: f64,
    weight: f64,
    /// Transmission time of a typical packet, in nanoseconds.
    typical: f64,
    mean: f64,
    count: f64,
    idle_since: Instant,
}

/// Decision on an arriving frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// Mark it if possible, otherwise drop it.
    Signal,
    Drop,
}

#[allow(clippy::cast_precision_loss)] // octets and nanoseconds of a queue are below 2^53
fn float(value: u64) -> f64 {
    value as f64
}

impl Red {
    pub fn new(
        min_octets: u64,
        max_octets: u64,
        probability: f64,
        weight: f64,
        serializer: &Serializer,
    ) -> Self {
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
        red.follow(serializer);
        red
    }

    /// Follows a change of the link's rate.
    pub fn follow(&mut self, serializer: &Serializer) {
        self.typical = serializer.mean().map_or(1.0, |rate| float(TYPICAL * 8) * 1e9 / float(rate.max(1)));
    }

    /// Records that the queue has just become empty.
    pub fn idle(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// Judges a frame that arrives while `waiting` octets are queued.
    pub fn judge(&mut self, now: Instant, waiting: u64, dice: &mut Stream) -> Verdict {
        if waiting > 0 {
            self.mean += self.weight * (float(waiting) - self.mean);
        } else {
            let idle = float(now.since(self.idle_since).nanos());
            self.mean *= math::pow(1.0 - self.weight, idle / self.typical);
        }
        if self.mean < self.min {
            self.count = -1.0;
            return Verdict::Pass;
        }
        if self.mean >= self.max {
            self.count = -1.0;
            return Verdict::Drop;
        }
        self.count += 1.0;
        let p = self.probability * (self.mean - self.min) / (self.max - self.min);
        let left = 1.0 - self.count * p;
        if left <= 0.0 || dice.chance(p / left) {
            self.count = -1.0;
            return Verdict::Signal;
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Rate;

    /// 8 Mbit/s: a typical packet takes 0.5 ms.
    fn red(weight: f64) -> (Red, Stream) {
        let serializer = Serializer::new(&Rate::BitsPerSecond(8_000_000), Instant::ZERO, Instant::ZERO);
        (Red::new(10_000, 20_000, 0.1, weight, &serializer), Stream::named(1, "red"))
    }

    #[test]
    fn distances_between_drops_are_uniform() {
        // Halfway between the thresholds p = 0.05, so the distances are uniform on 1..20.
        let (mut red, mut dice) = red(1.0);
        red.judge(Instant::ZERO, 15_000, &mut dice);
        let mut counts = [0_u32; 21];
        let mut distance = 0;
        let mut first = true;
        for _ in 0..200_000 {
            distance += 1;
            if red.judge(Instant::ZERO, 15_000, &mut dice) == Verdict::Signal {
                counts[distance] += u32::from(!first);
                (distance, first) = (0, false);
            }
        }
        let total: u32 = counts.iter().sum();
        assert_eq!(counts[0], 0);
        for &count in &counts[1..] {
            // About 950 in each, with a standard deviation of 30.
            assert!((f64::from(count) - f64::from(total) / 20.0).abs() < 150.0, "{counts:?}");
        }
    }

    #[test]
    fn below_all_pass_and_above_all_are_dropped() {
        let (mut red, mut dice) = red(1.0);
        assert!((0..1000).all(|_| red.judge(Instant::ZERO, 9_999, &mut dice) == Verdict::Pass));
        assert!((0..1000).all(|_| red.judge(Instant::ZERO, 20_000, &mut dice) == Verdict::Drop));
    }

    #[test]
    fn the_mean_follows_slowly_and_forgets_when_idle() {
        let (mut red, mut dice) = red(0.002);
        for _ in 0..500 {
            red.judge(Instant::ZERO, 16_000, &mut dice);
        }
        let wanted = 16_000.0 * (1.0 - 0.998_f64.powi(500));
        assert!((red.mean - wanted).abs() < 1e-6);
        red.idle(Instant::from_nanos(1_000_000));
        // 100 ms are 200 typical packets.
        red.judge(Instant::from_nanos(101_000_000), 0, &mut dice);
        assert!((red.mean - wanted * 0.998_f64.powi(200)).abs() < 1e-6);
    }
}
