//! When to sleep and when to spin.
//!
//! Sleeping has a price: processor time to go to sleep and to be woken, and a wake that comes late
//! by whatever the machine takes to notice. In a virtual machine both are some tens of
//! microseconds, more than the whole handling of a frame. So:
//!
//! * The loop spins for an instant that is nearer than what a sleep costs.
//! * For a later instant it wakes early, by as much as its wakes were late before, and spins for
//!   the rest.
//!
//! Spinning has a budget: one microsecond for every five slept. Unused budget accumulates, up to
//! [`MAX_SAVED`]. The limit matters: a real-time loop that never sleeps takes a processor from the
//! nodes, until the kernel throttles it for 50 ms. And the loop never spins only because frames might
//! come: their sender may be waiting for this very processor.
//!
//! Where links slip, a late wake is lost rate. There the budget is one microsecond for two slept, and
//! fewer wakes may be late; and as long as the machine has an idle processor, three for two, so that
//! hardly any is. With its work and the price of its sleeps the loop then stays below the share of a
//! second at which it has to leave the real-time class.

use airloom_engine::time::Span;

/// What may be spent to be on time.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// So much time may be spent spinning...
    awake: u64,
    /// ...for so much asleep.
    asleep: u64,
    /// Of that many wakes, one may be later than the advance.
    wakes: u64,
}

const USUAL: Allowance = Allowance { awake: 1, asleep: 5, wakes: 8 };
/// Where a late wake is lost rate.
const PUNCTUAL: Allowance = Allowance { awake: 1, asleep: 2, wakes: 30 };
/// The same with a processor to spare.
const LAVISH: Allowance = Allowance { awake: 3, asleep: 2, wakes: 100 };
/// Most budget that accumulates for bursts.
const MAX_SAVED: Span = Span::from_millis(5);
/// Longest advance: a machine that wakes later than this needs help of another kind.
const ADVANCE: Span = Span::from_micros(120);
/// By how much the advance grows when a wake was later than that.
const STEP: Span = Span::from_nanos(2_800);
/// Bounds of what a sleep may be taken to cost, whatever was measured at the start.
const COST: (Span, Span) = (Span::from_micros(1), Span::from_micros(20));

/// What was learned, and what may still be spent.
#[derive(Clone, Copy, Debug)]
pub struct SpinPolicy {
    cost: Span,
    advance: Span,
    saved: Span,
    allowance: Allowance,
}

impl SpinPolicy {
    /// Begins with nothing learned and all saved, on a machine where a sleep costs `cost`.
    #[must_use]
    pub fn new(cost: Span) -> Self {
        Self {
            cost: cost.clamp(COST.0, COST.1),
            advance: Span::from_micros(40),
            saved: MAX_SAVED,
            allowance: USUAL,
        }
    }

    /// Says whether late wakes cost rate, and whether the machine has a processor to spare.
    pub fn mind(&mut self, punctual: bool, spare: bool) {
        self.allowance = match (punctual, spare) {
            (false, _) => USUAL,
            (true, false) => PUNCTUAL,
            (true, true) => LAVISH,
        };
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
            (self.advance + STEP).min(ADVANCE)
        } else {
            self.advance.saturating_sub(Span::from_nanos(STEP.nanos() / (self.allowance.wakes - 1)))
        };
    }

    /// Accounts for time asleep.
    pub fn slept(&mut self, length: Span) {
        let Allowance { awake, asleep, .. } = self.allowance;
        self.saved = (self.saved + Span::from_nanos(length.nanos() * awake / asleep)).min(MAX_SAVED);
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
        let mut spin_policy = SpinPolicy::new(Span::from_micros(5));
        for round in 0..10_000u64 {
            // Evenly spread between 20 and 60 us: seven of eight are below 55 us.
            spin_policy.woke(Span::from_micros(20 + round * 17 % 41));
        }
        let (learned, awake) = spin_policy.before();
        assert_eq!(awake, learned + Span::from_micros(5));
        let learned = learned.nanos();
        assert!((50_000..60_000).contains(&learned), "{learned}");
    }

    #[test]
    fn where_links_slip_fewer_wakes_are_late() {
        let learned = |punctual, spare| {
            let mut spin_policy = SpinPolicy::new(Span::from_micros(5));
            spin_policy.mind(punctual, spare);
            (0..100_000u64).for_each(|round| spin_policy.woke(Span::from_micros(20 + round * 17 % 41)));
            spin_policy.before().0
        };
        assert!(learned(false, true) < learned(true, false));
        assert!(learned(true, false) < learned(true, true));
    }

    #[test]
    fn it_spends_no_more_than_its_share() {
        let mut spin_policy = SpinPolicy::new(Span::from_micros(5));
        let (mut slept, mut spent) = (Span::ZERO, Span::ZERO);
        for _ in 0..1_000_000 {
            spin_policy.woke(Span::from_millis(1));
            let (_, awake) = spin_policy.before();
            spin_policy.spend(awake);
            spent += awake;
            spin_policy.slept(Span::from_micros(10));
            slept += Span::from_micros(10);
        }
        assert!(spent.nanos() <= slept.nanos() * USUAL.awake / USUAL.asleep + MAX_SAVED.nanos());
    }
}
