//! Proportional integral controller enhanced (RFC 8033).
//!
//! Every `update` the drop probability changes by `alpha * (delay - target) + beta * (delay - old)`, with
//! delays in seconds, scaled down while it is small (section 4.2): below 1e-6 by 2048, 1e-5 by 512, 1e-4
//! by 128, 1e-3 by 32, 1e-2 by 8, 1e-1 by 2. From 0.1 on it grows by at most 0.02 (section 5.5), and it
//! decays by 2 % while the queue is empty. An arriving packet is then dropped with that probability, with
//! the accumulated probability of section 5.4 between 0.85 and 8.5 so that drops do not cluster. Nothing
//! is dropped during the burst allowance, while the delay was below half the target and the probability
//! is below 0.2, or with at most two packets of 1500 octets in the queue (section 4.1).
//!
//! The delay is the time that the wire needs for the queue: its rate is known, so no rate is estimated
//! (section 4.2 allows both). With ECN, packets are marked while the probability is at most 0.1 (5.1).

use super::Verdict;
use crate::link::serializer::Serializer;
use crate::math::float;
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Settings, as in [`crate::settings::Discipline::Pie`].
#[derive(Clone, Copy, Debug)]
pub(super) struct PieSettings {
    pub target_ns: u64,
    pub update_ns: u64,
    pub burst_ns: u64,
    pub alpha: f64,
    pub beta: f64,
}

/// Octets in the queue up to which nothing is dropped: two packets of `MEAN_PKTSIZE`.
const FEW_OCTETS: u64 = 2 * 1500;
/// `PIE_MARK_THRESHOLD` of section 5.1: above, packets are dropped even with ECN.
const MARKS_UP_TO: f64 = 0.1;
/// Bounds of the accumulated probability (section 5.4).
const ACCUMULATED: (f64, f64) = (0.85, 8.5);
/// Updates that are made up between two packets, which are 25 min of them in the RFC.
const MOST: u32 = 100_000;
/// Largest step of a probability of at least 0.1 (section 5.5).
const STEP: f64 = 0.02;

/// Parameters and state.
pub(super) struct Pie {
    settings: PieSettings,
    /// Seconds per octet on the wire; 0 without a rate.
    octet: f64,
    probability: f64,
    accumulated: f64,
    /// Delay in seconds at the last update.
    old: f64,
    burst: Span,
    next: Option<Instant>,
}

impl Pie {
    pub fn new(settings: &PieSettings, serializer: &Serializer) -> Self {
        let mut pie = Self {
            settings: *settings,
            octet: 0.0,
            probability: 0.0,
            accumulated: 0.0,
            old: 0.0,
            burst: Span::from_nanos(settings.burst_ns),
            next: None,
        };
        pie.follow(serializer);
        pie
    }

    /// Follows a change of the link's rate.
    pub fn follow(&mut self, serializer: &Serializer) {
        self.octet = serializer.mean().map_or(0.0, |rate| 8.0 / float(rate.max(1)));
    }

    /// Makes the updates that were due until `now`, since when `charged` octets wait.
    pub fn update(&mut self, now: Instant, charged: u64) {
        let period = Span::from_nanos(self.settings.update_ns);
        let delay = float(charged) * self.octet;
        let mut next = self.next.unwrap_or(now + period);
        for _ in 0..MOST {
            let rests =
                self.probability == 0.0 && delay == 0.0 && self.burst.nanos() >= self.settings.burst_ns;
            // Nothing changes until a packet comes.
            if next > now || rests {
                break;
            }
            self.calculate(delay, period);
            next += period;
        }
        if next <= now {
            next += period * (now.since(next).nanos() / period.nanos() + 1);
        }
        self.next = Some(next);
    }

    fn calculate(&mut self, delay: f64, period: Span) {
        let PieSettings { target_ns, alpha, beta, burst_ns, .. } = self.settings;
        let target = float(target_ns) / 1e9;
        let scale = match self.probability {
            p if p < 1e-6 => 2048.0,
            p if p < 1e-5 => 512.0,
            p if p < 1e-4 => 128.0,
            p if p < 1e-3 => 32.0,
            p if p < 1e-2 => 8.0,
            p if p < 1e-1 => 2.0,
            _ => 1.0,
        };
        let mut step = (alpha * (delay - target) + beta * (delay - self.old)) / scale;
        if self.probability >= 0.1 {
            step = step.min(STEP);
        }
        self.probability += step;
        if delay == 0.0 && self.old == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst = self.burst.saturating_sub(period);
        if self.probability == 0.0 && delay < target / 2.0 && self.old < target / 2.0 {
            self.burst = Span::from_nanos(burst_ns);
        }
        self.old = delay;
    }

    /// Judges a frame that arrives while `octets` wait.
    pub fn judge(&mut self, octets: u64, dice: &mut Stream) -> Verdict {
        let target = float(self.settings.target_ns) / 1e9;
        let calm = self.old < target / 2.0 && self.probability < 0.2;
        if self.burst > Span::ZERO || calm || octets <= FEW_OCTETS {
            return Verdict::Pass;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        let (low, high) = ACCUMULATED;
        let dropped = self.accumulated >= low && (self.accumulated >= high || dice.chance(self.probability));
        if !dropped {
            return Verdict::Pass;
        }
        self.accumulated = 0.0;
        if self.probability <= MARKS_UP_TO { Verdict::Signal } else { Verdict::Drop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Rate;

    const RFC: PieSettings = PieSettings {
        target_ns: 15_000_000,
        update_ns: 15_000_000,
        burst_ns: 150_000_000,
        alpha: 0.125,
        beta: 1.25,
    };

    /// 8 Mbit/s: an octet takes 1 us.
    fn pie() -> Pie {
        let serializer = Serializer::new(&Rate::BitsPerSecond(8_000_000), Instant::ZERO, Instant::ZERO);
        Pie::new(&RFC, &serializer)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_probability_follows_the_formula_of_section_4_2() {
        let mut pie = pie();
        pie.update(at(0), 0);
        // A standing queue of 50,000 octets, 50 ms.
        let (mut p, mut old) = (0.0_f64, 0.0_f64);
        for round in 1..=200 {
            pie.update(at(15 * round), 50_000);
            let scale = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)]
                .iter()
                .find(|(below, _)| p < *below)
                .map_or(1.0, |(_, scale)| *scale);
            let step = (0.125 * (0.05 - 0.015) + 1.25 * (0.05 - old)) / scale;
            p = (p + if p >= 0.1 { step.min(0.02) } else { step }).clamp(0.0, 1.0);
            old = 0.05;
            assert!((pie.probability - p).abs() < 1e-12, "{round}: {} for {p}", pie.probability);
        }
        assert!(p > 0.3, "{p}");
    }

    #[test]
    fn updates_that_were_missed_are_made_up_and_an_empty_queue_forgets() {
        let (mut often, mut once) = (pie(), pie());
        for pie in [&mut often, &mut once] {
            pie.update(at(0), 0);
            (1..=100).for_each(|round| pie.update(at(15 * round), 40_000));
        }
        (101..=150).for_each(|round| often.update(at(15 * round), 0));
        once.update(at(15 * 150), 0);
        assert!((often.probability - once.probability).abs() < 1e-15);
        once.update(at(3_600_000), 0);
        assert_eq!(once.probability.to_bits(), 0.0_f64.to_bits());
        assert_eq!(once.burst, Span::from_nanos(RFC.burst_ns), "allowed anew");
    }

    #[test]
    fn a_burst_passes_and_then_drops_have_the_probability() {
        let (mut pie, mut dice) = (pie(), Stream::named(1, "pie"));
        pie.update(at(0), 0);
        (1..10).for_each(|round| pie.update(at(15 * round), 50_000));
        assert!((0..100).all(|_| pie.judge(50_000, &mut dice) == Verdict::Pass), "150 ms are not over");
        pie.update(at(150), 50_000);
        (pie.probability, pie.accumulated) = (0.05, 0.0);
        let signals = (0..100_000).filter(|_| pie.judge(50_000, &mut dice) == Verdict::Signal).count();
        // At least 17 packets apart (0.85 / 0.05), then geometric with a mean of 20: 36 in all.
        #[allow(clippy::cast_precision_loss)] // small
        let mean = 100_000.0 / signals as f64;
        assert!((mean - 36.0).abs() < 1.0, "{mean}");
        assert_eq!(pie.judge(3_000, &mut dice), Verdict::Pass, "two packets");
        pie.probability = 0.5;
        let drops = (0..1000).filter(|_| pie.judge(50_000, &mut dice) == Verdict::Drop).count();
        assert!(drops > 200, "above 0.1 packets are dropped, not marked: {drops}");
    }
}
