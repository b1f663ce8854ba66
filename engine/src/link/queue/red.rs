//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993).
//!
//! On each arrival the mean queue moves towards the present one, `mean += weight * (octets -
//! mean)`; after an idle time `mean *= (1 - weight)^m`, with `m` the number of typical packets (of
//! 500 octets in the paper) that could have been sent. Below `min` all packets pass; from `max` on
//! all are dropped or, as Linux does with `ecn` and without `harddrop` (tc-red(8)), marked;
//! between, with `p = probability * (mean - min) / (max - min)` and `count` packets passed since
//! the last drop, one is dropped with `p / (1 - count * p)`, so that the distances between drops
//! are uniform on `1..1/p`. The probability does not depend on the packet's size (RFC 7141).

use super::Verdict;
use crate::link::serializer::Serializer;
use crate::math::{self, float};
use crate::random::Stream;
use crate::time::Instant;

/// Settings, as in [`crate::settings::Discipline::Red`].
#[derive(Clone, Copy, Debug)]
pub(super) struct RedSettings {
    pub min_octets: u64,
    pub max_octets: u64,
    pub probability: f64,
    pub weight: f64,
    pub packet_octets: u64,
    pub marks_above: bool,
}

/// Parameters and state.
pub(super) struct Red {
    min: f64,
    max: f64,
    probability: f64,
    weight: f64,
    packet: f64,
    /// Verdict from `max` on.
    above: Verdict,
    /// Transmission time of a typical packet, in nanoseconds.
    typical: f64,
    mean: f64,
    count: f64,
    idle_since: Instant,
}

impl Red {
    pub fn new(settings: &RedSettings, serializer: &Serializer) -> Self {
        let mut red = Self {
            min: float(settings.min_octets),
            max: float(settings.max_octets),
            probability: settings.probability,
            weight: settings.weight,
            packet: float(settings.packet_octets),
            above: if settings.marks_above { Verdict::Signal } else { Verdict::Drop },
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
        self.typical = serializer.mean().map_or(1.0, |rate| self.packet * 8e9 / float(rate.max(1)));
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
            return self.above;
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
        made(&RedSettings { weight, ..PAPER })
    }

    const PAPER: RedSettings = RedSettings {
        min_octets: 10_000,
        max_octets: 20_000,
        probability: 0.1,
        weight: 0.002,
        packet_octets: 500,
        marks_above: false,
    };

    fn made(settings: &RedSettings) -> (Red, Stream) {
        let serializer = Serializer::new(&Rate::BitsPerSecond(8_000_000), Instant::ZERO, Instant::ZERO);
        (Red::new(settings, &serializer), Stream::named(1, "red"))
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

    #[test]
    fn a_weight_of_one_half_follows_at_once_and_all_above_are_signalled() {
        // As tc-red(8) sets it for `min 30000 max 35000 avpkt 1500 burst 20 ecn`.
        let settings = RedSettings {
            min_octets: 30_000,
            max_octets: 35_000,
            probability: 1.0,
            weight: 0.5,
            packet_octets: 1_500,
            marks_above: true,
        };
        let (mut red, mut dice) = made(&settings);
        let mut passed = 0;
        // From an empty mean: 40,000 (1 - 2^-n) is above 35,000 from the third packet on, and below
        // 30,000 before, except for the second at exactly 30,000, where p is 0.
        while red.judge(Instant::ZERO, 40_000, &mut dice) == Verdict::Pass {
            passed += 1;
        }
        assert_eq!(passed, 2);
        assert!((0..1000).all(|_| red.judge(Instant::ZERO, 40_000, &mut dice) == Verdict::Signal));
        // 3 ms are two packets of 1500 octets: the mean falls to a quarter.
        let before = red.mean;
        red.idle(Instant::ZERO);
        red.judge(Instant::from_nanos(3_000_000), 0, &mut dice);
        assert!((red.mean - before / 4.0).abs() < 1e-6);
    }
}
