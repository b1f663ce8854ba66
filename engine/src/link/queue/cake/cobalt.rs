//! COBALT, the active queue management of a CAKE flow: `CoDel` beside BLUE.
//!
//! `CoDel` as in RFC 8289, except that its `count` survives the end of dropping: while the delay is
//! good, `count` falls by one each time the next drop would have been due, so that the rate of drops
//! that held the queue last is where the next episode begins. A packet is above the target only if it
//! has also waited longer than four full frames take, and two of each busy flow.
//!
//! BLUE (Feng, Shin, Kandlur, Saha 2002) acts on flows that do not answer: an overflow of the queue
//! raises the probability of a drop by 1/256, an empty queue lowers it by 1/4096, at most once a target.
//! Its drops ignore ECN.

use crate::link::queue::Verdict;
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Octets of a full frame.
const FULL_FRAME: u64 = 1514;
/// BLUE's steps, in units of 2^-32.
const UP: u32 = 1 << 24;
const DOWN: u32 = 1 << 20;

/// Target and interval for a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    target: Span,
    interval: Span,
    /// Time of a full frame.
    frame: Span,
}

impl Parameters {
    /// At low rates the target is at least 1.5 full frames, and the interval grows with it.
    pub fn new(target_ns: u64, interval_ns: u64, rate: Option<u64>) -> Self {
        let frame = rate.map_or(0, |rate| FULL_FRAME * 8_000_000_000 / rate.max(1));
        let target = target_ns.max(frame + frame / 2);
        let interval = (interval_ns + (target - target_ns)).max(2 * target);
        let [target, interval, frame] = [target, interval, frame].map(Span::from_nanos);
        Self { target, interval, frame }
    }

    /// When the next drop is due after one at `at`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn next(self, at: Instant, count: u32) -> Instant {
        // An interval is below 2^53 ns; the square root is exactly rounded on every machine.
        at + Span::from_nanos((self.interval.nanos() as f64 / f64::from(count.max(1)).sqrt()) as u64)
    }
}

/// The state of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Cobalt {
    dropping: bool,
    count: u32,
    drop_next: Instant,
    /// BLUE's probability of a drop, in units of 2^-32.
    blue: u32,
    /// When that last changed.
    blue_at: Instant,
}

impl Cobalt {
    /// Judges a packet that leaves the queue after it has `waited`; `busy` flows are in the tin.
    pub fn judge(
        &mut self,
        now: Instant,
        waited: Span,
        parameters: &Parameters,
        busy: u64,
        dice: &mut Stream,
    ) -> Verdict {
        let Parameters { target, interval, frame } = *parameters;
        let above = waited > target && waited > frame * busy.saturating_mul(2).max(4);
        let due = self.is_due(now);
        if above && !self.dropping {
            self.drop_next = parameters.next(now, self.count);
        }
        self.dropping = above;
        if above {
            self.count = self.count.max(1);
        }
        let mut verdict = Verdict::Pass;
        if above && due {
            verdict = Verdict::Signal;
            self.count = self.count.saturating_add(1);
            self.drop_next = parameters.next(self.drop_next, self.count);
        } else if !above {
            while self.is_due(now) {
                self.recover(parameters);
            }
        }
        if self.blue > 0 && dice.bits() >> 32 < u64::from(self.blue) {
            verdict = Verdict::Drop;
        }
        if self.count == 0 {
            self.drop_next = now + interval;
        } else if verdict == Verdict::Pass && now > self.drop_next {
            self.drop_next = now;
        }
        verdict
    }

    /// The queue has overflowed, and this flow has paid.
    pub fn overflowed(&mut self, now: Instant, parameters: &Parameters) {
        if now.since(self.blue_at) > parameters.target {
            self.blue = self.blue.saturating_add(UP);
            self.blue_at = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The flow has no packet.
    pub fn emptied(&mut self, now: Instant, parameters: &Parameters) {
        if self.blue > 0 && now.since(self.blue_at) > parameters.target {
            self.blue = self.blue.saturating_sub(DOWN);
            self.blue_at = now;
        }
        self.dropping = false;
        if self.is_due(now) {
            self.recover(parameters);
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    fn recover(&mut self, parameters: &Parameters) {
        self.count -= 1;
        self.drop_next = parameters.next(self.drop_next, self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn judged(cobalt: &mut Cobalt, ms: u64, waited: u64) -> Verdict {
        let parameters = Parameters::new(5 * MS, 100 * MS, None);
        let mut dice = Stream::named(1, "test");
        cobalt.judge(Instant::from_nanos(ms * MS), Span::from_nanos(waited * MS), &parameters, 1, &mut dice)
    }

    #[test]
    fn drops_begin_after_an_interval_and_come_by_the_square_root() {
        let mut cobalt = Cobalt::default();
        let drops: Vec<u64> = (0..400).filter(|&ms| judged(&mut cobalt, ms, 10) == Verdict::Signal).collect();
        // 100, then 100/sqrt(2), 100/sqrt(3), ... later.
        assert_eq!(drops, [100, 171, 229, 279, 324, 364]);
    }

    #[test]
    fn the_count_falls_while_the_delay_is_good() {
        let mut cobalt = Cobalt::default();
        for ms in 0..400 {
            judged(&mut cobalt, ms, 10);
        }
        let high = cobalt.count;
        assert_eq!(high, 7);
        judged(&mut cobalt, 450, 1);
        assert!((1..high).contains(&cobalt.count), "{}", cobalt.count);
        judged(&mut cobalt, 5_000, 1);
        assert_eq!(cobalt.count, 0);
    }

    #[test]
    fn blue_rises_on_overflow_and_falls_when_the_flow_is_empty() {
        let parameters = Parameters::new(5 * MS, 100 * MS, None);
        let mut cobalt = Cobalt::default();
        for ms in [10, 11, 20, 30] {
            cobalt.overflowed(Instant::from_nanos(ms * MS), &parameters);
        }
        assert_eq!(cobalt.blue, 3 * UP);
        cobalt.emptied(Instant::from_nanos(40 * MS), &parameters);
        cobalt.emptied(Instant::from_nanos(41 * MS), &parameters);
        assert_eq!(cobalt.blue, 3 * UP - DOWN);
        let mut dice = Stream::named(1, "test");
        let mut drop = |ms: u64| {
            cobalt.judge(Instant::from_nanos(ms * MS), Span::ZERO, &parameters, 1, &mut dice) == Verdict::Drop
        };
        let dropped = (100..100_100).filter(|&ms| drop(ms)).count();
        // 3/256 of 100,000 are 1172, with a standard deviation of 34.
        assert!(dropped.abs_diff(1172) < 4 * 34, "{dropped}");
    }

    #[test]
    fn the_target_is_longer_than_a_frame_at_low_rates() {
        // A full frame takes 12.112 ms at 1 Mbit/s.
        let slow = Parameters::new(5 * MS, 100 * MS, Some(1_000_000));
        assert_eq!((slow.target.nanos(), slow.interval.nanos()), (18_168_000, 113_168_000));
        let fast = Parameters::new(5 * MS, 100 * MS, Some(100_000_000));
        assert_eq!((fast.target.nanos(), fast.interval.nanos()), (5 * MS, 100 * MS));
    }
}
