//! When to sleep and when to stay awake.
//!
//! Sleeping has a price: processor time to go to sleep and to be woken, and a wake that comes late
//! by whatever the machine takes to notice. In a virtual machine both are some tens of
//! microseconds, more than the whole handling of a frame. So:
//!
//! * What is due sooner than a sleep costs is waited for awake: nothing is lost by that.
//! * For what is due later the loop wakes early, by as much as its wakes were late before, and is
//!   awake for the rest. Of the time that passes, one part in [`SHARE`] may go that way; what is
//!   not used is saved for bursts, up to [`SAVED`].
//!
//! It never stays awake only because frames might come: who would send them may be waiting for this
//! very processor.

use airloom_engine::time::{Instant, Span};

/// Of the time that passes, one part in this many may be spent awake to be on time.
const SHARE: u64 = 8;
/// Most that is saved for bursts.
const SAVED: Span = Span::from_millis(5);
/// Longest advance: a machine that wakes later than this needs help of another kind.
const ADVANCE: Span = Span::from_micros(120);
/// Of this many wakes, one may be later than the advance.
const EXCEPT_ONE_IN: u64 = 8;
/// Step of the learning in nanoseconds.
const STEP: u64 = 400;
/// Bounds of what a sleep may be taken to cost, whatever was measured at the start.
const COST: (Span, Span) = (Span::from_micros(1), Span::from_micros(20));

/// What was learned, and what may still be spent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    cost: Span,
    advance: Span,
    saved: Span,
    counted: Instant,
}

impl Patience {
    /// Begins with nothing learned and all saved, on a machine where a sleep costs `cost`.
    #[must_use]
    pub fn new(now: Instant, cost: Span) -> Self {
        Self { cost: cost.clamp(COST.0, COST.1), advance: Span::from_micros(40), saved: SAVED, counted: now }
    }

    /// What a sleep costs in processor time.
    #[must_use]
    pub fn cost(&self) -> Span {
        self.cost
    }

    /// Learns what a sleep cost of late.
    pub fn learn(&mut self, cost: Span) {
        let mean = (self.cost.nanos() * 3 + cost.nanos()) / 4;
        self.cost = Span::from_nanos(mean).clamp(COST.0, COST.1);
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

    /// Accounts for time spent awake to be on time.
    pub fn spend(&mut self, spent: Span) {
        self.saved = self.saved.saturating_sub(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_how_late_the_machine_wakes() {
        let mut patience = Patience::new(Instant::ZERO, Span::from_micros(5));
        for round in 0..10_000u64 {
            // Evenly spread between 20 and 60 us: seven of eight are below 55 us.
            patience.woke(Span::from_micros(20 + round * 17 % 41));
        }
        let learned = patience.advance(Instant::from_nanos(1_000_000_000)).nanos();
        assert!((50_000..60_000).contains(&learned), "{learned}");
    }

    #[test]
    fn it_spends_no_more_than_its_share() {
        let mut patience = Patience::new(Instant::ZERO, Span::from_micros(5));
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
