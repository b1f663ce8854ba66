//! Waiting for an instant more exactly than a sleep can, at a bounded cost.
//!
//! A sleeping thread wakes late by whatever the machine takes to notice the timer and to run the
//! thread: some ten microseconds, more in a virtual machine. So the loop sleeps until a little
//! before the instant and looks around, without sleeping, for the rest. How long before is
//! learned from how late its wakes were; how much of a processor may go that way is limited, so
//! that nodes do not starve: what is left over of the limit is saved for bursts, up to
//! [`SAVED`].

use airloom_engine::time::{Instant, Span};

/// Of the time that passes, one part in this many may be spent awake without work.
const SHARE: u64 = 8;
/// Most that is saved for bursts.
const SAVED: Span = Span::from_millis(5);
/// Longest advance: a machine that wakes later than this needs help of another kind.
const ADVANCE: Span = Span::from_micros(120);
/// Of this many wakes, one may be later than the advance.
const EXCEPT_ONE_IN: u64 = 8;
/// Step of the learning in nanoseconds.
const STEP: u64 = 400;

/// What was learned of wakes, and what may still be spent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    advance: Span,
    saved: Span,
    counted: Instant,
}

impl Patience {
    /// Begins with nothing learned and all saved.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { advance: Span::from_micros(40), saved: SAVED, counted: now }
    }

    /// How long before the instant it waits for the loop should wake.
    pub fn advance(&mut self, now: Instant) -> Span {
        let passed = now.since(self.counted).nanos() / SHARE;
        self.counted = now;
        self.saved = (self.saved + Span::from_nanos(passed)).min(SAVED);
        self.advance.min(self.saved)
    }

    /// Learns from a wake by the timer: how late it was.
    pub fn woke(&mut self, late: Span) {
        // A quantile by stochastic approximation: up a lot when exceeded, down a little when not.
        self.advance = if late > self.advance {
            (self.advance + Span::from_nanos(STEP * (EXCEPT_ONE_IN - 1))).min(ADVANCE)
        } else {
            self.advance.saturating_sub(Span::from_nanos(STEP))
        };
    }

    /// Accounts for time spent awake without work.
    pub fn spend(&mut self, spent: Span) {
        self.saved = self.saved.saturating_sub(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_how_late_the_machine_wakes() {
        let mut patience = Patience::new(Instant::ZERO);
        for round in 0..10_000u64 {
            // Evenly spread between 20 and 60 us: seven of eight are below 55 us.
            patience.woke(Span::from_micros(20 + round * 17 % 41));
        }
        let learned = patience.advance(Instant::from_nanos(1_000_000_000)).nanos();
        assert!((50_000..60_000).contains(&learned), "{learned}");
    }

    #[test]
    fn it_spends_no_more_than_its_share() {
        let mut patience = Patience::new(Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut spent = Span::ZERO;
        for _ in 0..1_000_000 {
            patience.woke(Span::from_millis(1));
            let advance = patience.advance(now);
            patience.spend(advance);
            spent += advance;
            now += advance + Span::from_micros(10);
        }
        assert!(spent.nanos() <= now.since(Instant::ZERO).nanos() / SHARE + SAVED.nanos());
    }
}
