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
//! * After work the loop stays awake for as long as a sleep costs if lately frames came that
//!   soon; by that it never costs more than twice what the best choice would have.

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
/// Trust in frames to come soon: it grows or shrinks by one, and from half of this on it counts.
const TRUST: u8 = 4;

/// What was learned, and what may still be spent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    cost: Span,
    advance: Span,
    saved: Span,
    counted: Instant,
    trust: u8,
}

impl Patience {
    /// Begins with nothing learned and all saved, on a machine where a sleep costs `cost`.
    #[must_use]
    pub fn new(now: Instant, cost: Span) -> Self {
        Self {
            cost: cost.clamp(COST.0, COST.1),
            advance: Span::from_micros(40),
            saved: SAVED,
            counted: now,
            trust: 0,
        }
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

    /// Whether to stay awake for as long as a sleep costs, because frames may come.
    #[must_use]
    pub fn hopes(&self) -> bool {
        self.trust >= TRUST / 2
    }

    /// Learns whether frames came about as soon as a sleep costs.
    pub fn came(&mut self, soon: bool) {
        self.trust = if soon { (self.trust + 1).min(TRUST - 1) } else { self.trust.saturating_sub(1) };
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

    #[test]
    fn it_hopes_while_frames_come_soon() {
        let mut patience = Patience::new(Instant::ZERO, Span::ZERO);
        assert_eq!(patience.cost(), COST.0);
        assert!(!patience.hopes());
        patience.came(true);
        patience.came(true);
        assert!(patience.hopes());
        patience.came(true);
        patience.came(false);
        assert!(patience.hopes(), "one disappointment is no pattern");
        patience.came(false);
        assert!(!patience.hopes());
    }
}
