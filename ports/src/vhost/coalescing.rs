//! Coalescing of the notifications to a guest: one for several returned buffers, as an interrupt of
//! a network card for several frames (`rx-frames`, `rx-usecs` and `adaptive-rx` of `ethtool -C`).
//!
//! Buffers are held, that is returned without a notification, until so many are or until the first
//! of them has waited for the time. A hold never begins if the guest could run out of buffers: half
//! of a queue is announced at once.
//!
//! The adaptive policy estimates the gap g between two buffers: of the observed gap x it takes
//! g + (min(x, 4 T) - g) / 8, where T is the time, and holds while 2 g <= T. Unit: ns; g is in 0..4 T.

use airloom_engine::time::{Instant, Span};

/// When the guest is notified of the buffers that were returned to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coalescing {
    /// At the end of the turn of the engine in which they were returned.
    #[default]
    Off,
    /// Once so many are returned, or the first of them has waited for the time.
    Held {
        /// Number of buffers.
        frames: u16,
        /// Longest wait.
        time: Span,
    },
    /// Likewise, but only while the estimated gap between buffers is at most half of the time, so
    /// that at least two more are to be expected in it.
    Adaptive {
        /// Number of buffers.
        frames: u16,
        /// Longest wait.
        time: Span,
    },
}

/// A weight of 1/8 for each new value of the gap, as for the round-trip time of TCP (RFC 6298).
const WEIGHT: u64 = 8;
/// So many equal values replace an estimate for all practical purposes.
const MANY: u16 = 64;
/// The gap counts as so many times the longest wait at most, so that a pause is forgotten soon.
const GAP_MOST: u64 = 4;

/// The buffers of one queue that are held, and the estimate of their rate.
#[derive(Debug)]
pub struct Hold {
    policy: Coalescing,
    /// When the first of the buffers was returned.
    since: Option<Instant>,
    /// Number of buffers at the last decision.
    seen: u16,
    /// When buffers were last returned.
    last: Instant,
    /// Estimated gap between two buffers, in ns.
    gap: u64,
}

impl Hold {
    /// Nothing is held yet.
    #[must_use]
    pub fn new(policy: Coalescing) -> Self {
        let gap = match policy {
            Coalescing::Adaptive { time, .. } => GAP_MOST * time.nanos(),
            _ => 0,
        };
        Self { policy, since: None, seen: 0, last: Instant::ZERO, gap }
    }

    /// Forgets the buffers, because their queue has stopped.
    pub fn clear(&mut self) {
        (self.since, self.seen) = (None, 0);
    }

    /// Decides about `returned` buffers, more than none, in a queue of `size` entries. Returns for how
    /// long the first of them has waited if the guest is to be notified now.
    pub fn decide(&mut self, returned: u16, size: u16, now: Instant) -> Option<Span> {
        let since = *self.since.get_or_insert(now);
        let added = returned.wrapping_sub(self.seen);
        self.seen = returned;
        let waited = now.since(since);
        let is_due = match self.policy {
            Coalescing::Off => true,
            Coalescing::Held { frames, time } => returned >= frames || waited >= time,
            Coalescing::Adaptive { frames, time } => {
                self.estimate(added, now, GAP_MOST * time.nanos());
                returned >= frames || waited >= time || 2 * self.gap > time.nanos()
            }
        };
        if !is_due && returned < size / 2 {
            return None;
        }
        self.clear();
        Some(waited)
    }

    /// When the guest is to be notified at the latest; None if nothing is held.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.policy {
            Coalescing::Off => None,
            Coalescing::Held { time, .. } | Coalescing::Adaptive { time, .. } => Some(self.since? + time),
        }
    }

    /// Takes `added` buffers, returned since the last ones, into the estimate of the gap.
    fn estimate(&mut self, added: u16, now: Instant, most: u64) {
        if added == 0 {
            return;
        }
        let gap = (now.since(self.last).nanos() / u64::from(added)).min(most);
        self.last = now;
        for _ in 0..added.min(MANY) {
            if gap > self.gap {
                self.gap += (gap - self.gap) / WEIGHT;
            } else {
                self.gap -= (self.gap - gap) / WEIGHT;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Span = Span::from_micros(100);

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn without_coalescing_every_turn_notifies() {
        let mut hold = Hold::new(Coalescing::Off);
        for turn in 1..5 {
            assert_eq!(hold.decide(turn, 256, at(u64::from(turn))), Some(Span::ZERO));
            assert_eq!(hold.deadline(), None);
        }
    }

    #[test]
    fn the_count_or_the_time_ends_a_hold_whichever_is_first() {
        let mut hold = Hold::new(Coalescing::Held { frames: 4, time: TIME });
        for (returned, micros) in [(1, 10), (2, 20), (3, 30)] {
            assert_eq!(hold.decide(returned, 256, at(micros)), None);
            assert_eq!(hold.deadline(), Some(at(110)), "counted from the first buffer");
        }
        assert_eq!(hold.decide(4, 256, at(40)), Some(Span::from_micros(30)));
        assert_eq!(hold.deadline(), None);
        assert_eq!(hold.decide(1, 256, at(200)), None);
        assert_eq!(hold.decide(1, 256, at(300) - Span::from_nanos(1)), None);
        assert_eq!(hold.decide(1, 256, at(300)), Some(TIME), "to the nanosecond");
    }

    #[test]
    fn half_of_the_queue_is_announced_at_once() {
        let mut hold = Hold::new(Coalescing::Held { frames: u16::MAX, time: TIME });
        assert_eq!(hold.decide(7, 16, at(0)), None);
        assert_eq!(hold.decide(8, 16, at(1)), Some(Span::from_micros(1)));
    }

    #[test]
    fn adaptive_coalescing_waits_at_a_high_rate_only() {
        let mut hold = Hold::new(Coalescing::Adaptive { frames: 1000, time: TIME });
        // A request every millisecond: no wait.
        for turn in 1..100 {
            assert_eq!(hold.decide(1, 256, at(1000 * turn)), Some(Span::ZERO));
        }
        // One buffer every 10 us. The gap decays from 400 us by 7/8 of its distance from 10 us:
        // (7/8)^n * 390 + 10 <= 50 after n = 18 buffers, of which the 18th is the first to wait.
        let mut waited = Vec::new();
        let (mut returned, mut micros) = (0, 99_000);
        for _ in 0..200 {
            micros += 10;
            returned += 1;
            if let Some(wait) = hold.decide(returned, 256, at(micros)) {
                waited.push(wait);
                returned = 0;
            }
        }
        assert_eq!(waited.iter().take_while(|wait| **wait == Span::ZERO).count(), 17);
        // Then 11 buffers each: the first, and those of the 100 us after it.
        assert_eq!(waited[17..], vec![TIME; 16]);
        // The rate falls to one buffer each millisecond: what was held is late, the next is at once.
        assert_eq!(hold.decide(returned + 1, 256, at(micros + 1000)), Some(Span::from_micros(1060)));
        assert_eq!(hold.decide(1, 256, at(micros + 2000)), Some(Span::ZERO));
    }
}
