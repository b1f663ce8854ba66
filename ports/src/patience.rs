//! When to sleep and when to stay awake.
//!
//! Sleeping has a price: processor time to go to sleep and to be woken, and a wake that comes late
//! by whatever the machine takes to notice. In a virtual machine both are some tens of
//! microseconds, more than the whole handling of a frame. So:
//!
//! * What is due sooner than a sleep costs is waited for awake.
//! * For what is due later the loop wakes early, by as much as its wakes were late before, and is
//!   awake for the rest.
//!
//! For some parts of time asleep, one may go that way, so that it ends when the loop has much
//! to do; what is not used is saved for bursts, up to [`SAVED`]. The limit matters: a loop that goes before all others and never sleeps
//! takes a processor from the nodes, until the kernel stops it for 50 ms to let them run. And it
//! never stays awake only because frames might come: who would send them may be waiting for this
//! very processor.
//!
//! Where links slip, a late wake is lost rate. There one part awake is allowed for two asleep, and
//! fewer wakes may be late.

use airloom_engine::time::Span;

/// Parts of time asleep for one part that may be spent awake to be on time; and of that many wakes,
/// one may be later than the advance.
const USUAL: (u64, u64) = (5, 8);
/// The same where a late wake is lost rate.
const PUNCTUAL: (u64, u64) = (2, 30);
/// Most that is saved for bursts.
const SAVED: Span = Span::from_millis(5);
/// Longest advance: a machine that wakes later than this needs help of another kind.
const ADVANCE: Span = Span::from_micros(120);
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
    punctual: bool,
}

impl Patience {
    /// Begins with nothing learned and all saved, on a machine where a sleep costs `cost`.
    #[must_use]
    pub fn new(cost: Span) -> Self {
        Self {
            cost: cost.clamp(COST.0, COST.1),
            advance: Span::from_micros(40),
            saved: SAVED,
            punctual: false,
        }
    }

    /// Says whether late wakes cost rate.
    pub fn mind(&mut self, punctual: bool) {
        self.punctual = punctual;
    }

    fn allowed(&self) -> (u64, u64) {
        if self.punctual { PUNCTUAL } else { USUAL }
    }

    /// Learns what a sleep cost of late.
    pub fn learn(&mut self, cost: Span) {
        let mean = (self.cost.nanos() * 3 + cost.nanos()) / 4;
        self.cost = Span::from_nanos(mean).clamp(COST.0, COST.1);
    }

    /// How long before the instant it waits for the loop should wake, and from how long before it
    /// should not go to sleep at all.
    #[must_use]
    pub fn before(&self) -> (Span, Span) {
        (self.advance.min(self.saved), (self.advance + self.cost).min(self.saved))
    }

    /// Learns from a wake by the timer: how late it was.
    pub fn woke(&mut self, late: Span) {
        // A quantile by stochastic approximation: up a lot when exceeded, down a little when not.
        self.advance = if late > self.advance {
            (self.advance + Span::from_nanos(STEP * (self.allowed().1 - 1))).min(ADVANCE)
        } else {
            self.advance.saturating_sub(Span::from_nanos(STEP))
        };
    }

    /// Accounts for time asleep.
    pub fn slept(&mut self, length: Span) {
        self.saved = (self.saved + Span::from_nanos(length.nanos() / self.allowed().0)).min(SAVED);
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
        let mut patience = Patience::new(Span::from_micros(5));
        for round in 0..10_000u64 {
            // Evenly spread between 20 and 60 us: seven of eight are below 55 us.
            patience.woke(Span::from_micros(20 + round * 17 % 41));
        }
        let (learned, awake) = patience.before();
        assert_eq!(awake, learned + Span::from_micros(5));
        let learned = learned.nanos();
        assert!((50_000..60_000).contains(&learned), "{learned}");
    }

    #[test]
    fn it_spends_no_more_than_its_share() {
        let mut patience = Patience::new(Span::from_micros(5));
        let (mut slept, mut spent) = (Span::ZERO, Span::ZERO);
        for _ in 0..1_000_000 {
            patience.woke(Span::from_millis(1));
            let (_, awake) = patience.before();
            patience.spend(awake);
            spent += awake;
            patience.slept(Span::from_micros(10));
            slept += Span::from_micros(10);
        }
        assert!(spent.nanos() <= slept.nanos() / USUAL.0 + SAVED.nanos());
    }
}
