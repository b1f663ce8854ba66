//! Policy of sleeping and spinning.
//!
//! Sleeping has a cost: CPU time to go to sleep and to wake up, and a wake-up that is late by the
//! latency of the machine. In a virtual machine both are some tens of microseconds, more than the
//! whole processing of a frame. Therefore:
//!
//! * The loop spins for an instant that is closer than the cost of a sleep.
//! * For a later instant it wakes early, by the lateness of its previous wake-ups,
//!   and spins for the rest.
//!
//! Spinning has a budget: one microsecond for every five slept. Unused budget accumulates, up to
//! [`MAX_SAVED`]. The limit matters: a real-time loop that never sleeps takes a processor from the
//! nodes, until the kernel throttles it for 50 ms. The loop never spins only because frames might
//! arrive: their sender may be waiting for this very processor.
//!
//! For links with `Late::Slip`, a late wake-up reduces the rate. There the budget is one
//! microsecond for two slept, and fewer wake-ups may be late; while the machine has an idle
//! processor, it is three for two, so that hardly any is late. Together with its work and the
//! cost of its sleeps, the loop then stays below the share of a second at which it has to
//! leave the real-time class. When little of that budget is left, the loop spins for no more of a
//! wait than the rest of it earns: it wakes somewhat early for every instant, and not very early for
//! one and late for the next. A smaller budget would earn too little for that: all would be late.

use airloom_engine::time::Span;

/// Budget of spinning.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Units of time that may be spent spinning...
    awake: u64,
    /// ...for this many units asleep.
    asleep: u64,
    /// One of this many wake-ups may be later than the advance.
    wakes: u64,
}

const USUAL: Allowance = Allowance { awake: 1, asleep: 5, wakes: 8 };
/// Used if late wake-ups reduce the rate.
const PUNCTUAL: Allowance = Allowance { awake: 1, asleep: 2, wakes: 30 };
/// The same with an idle processor.
const LAVISH: Allowance = Allowance { awake: 3, asleep: 2, wakes: 100 };
/// Maximum budget that accumulates for bursts.
const MAX_SAVED: Span = Span::from_millis(5);
/// Budget below which a wait has to earn what it spends.
const LITTLE: Span = Span::from_millis(1);
/// Maximum advance: on a machine with a larger wake-up latency, spinning does not help.
const ADVANCE: Span = Span::from_micros(120);
/// Increase of the advance after a wake-up that was later than the advance.
const STEP: Span = Span::from_nanos(2_800);
/// Bounds of the assumed cost of a sleep, whatever was measured at the start.
const COST: (Span, Span) = (Span::from_micros(1), Span::from_micros(20));

/// Estimates and remaining budget.
#[derive(Clone, Copy, Debug)]
pub struct SpinPolicy {
    cost: Span,
    advance: Span,
    saved: Span,
    allowance: Allowance,
}

impl SpinPolicy {
    /// Starts without estimates and with the full budget, on a machine where a sleep costs `cost`.
    #[must_use]
    pub fn new(cost: Span) -> Self {
        Self {
            cost: cost.clamp(COST.0, COST.1),
            advance: Span::from_micros(40),
            saved: MAX_SAVED,
            allowance: USUAL,
        }
    }

    /// Sets whether late wake-ups reduce the rate, and whether the machine has an idle processor.
    pub fn set_allowance(&mut self, punctual: bool, spare: bool) {
        self.allowance = match (punctual, spare) {
            (false, _) => USUAL,
            (true, false) => PUNCTUAL,
            (true, true) => LAVISH,
        };
    }

    /// Records the measured cost of a sleep.
    pub fn learn(&mut self, cost: Span) {
        let mean = (self.cost.nanos() * 3 + cost.nanos()) / 4;
        self.cost = Span::from_nanos(mean).clamp(COST.0, COST.1);
    }

    /// How long before its instant, which is `wait` ahead, the loop should wake up, and the time
    /// before it below which it should not go to sleep at all.
    #[must_use]
    pub fn before(&self, wait: Span) -> (Span, Span) {
        let Allowance { awake, asleep, .. } = self.allowance;
        let earned = Span::from_nanos(wait.nanos() / (awake + asleep) * awake);
        let frugal = self.saved < LITTLE && awake > asleep;
        let advance = if frugal { self.advance.min(earned) } else { self.advance };
        (advance.min(self.saved), (advance + self.cost).min(self.saved))
    }

    /// Records the lateness of a wake-up by the timer.
    pub fn woke(&mut self, late: Span) {
        // A quantile by stochastic approximation: a large step up when exceeded, a
        // small step down when not.
        self.advance = if late > self.advance {
            (self.advance + STEP).min(ADVANCE)
        } else {
            self.advance.saturating_sub(Span::from_nanos(STEP.nanos() / (self.allowance.wakes - 1)))
        };
    }

    /// Adds to the budget for time asleep.
    pub fn slept(&mut self, length: Span) {
        let Allowance { awake, asleep, .. } = self.allowance;
        self.saved = (self.saved + Span::from_nanos(length.nanos() * awake / asleep)).min(MAX_SAVED);
    }

    /// Subtracts time spent spinning from the budget.
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
            // Uniform between 20 and 60 us: seven of eight are below 55 us.
            spin_policy.woke(Span::from_micros(20 + round * 17 % 41));
        }
        let (learned, awake) = spin_policy.before(Span::MAX);
        assert_eq!(awake, learned + Span::from_micros(5));
        let learned = learned.nanos();
        assert!((50_000..60_000).contains(&learned), "{learned}");
    }

    #[test]
    fn where_links_slip_fewer_wakes_are_late() {
        let learned = |punctual, spare| {
            let mut spin_policy = SpinPolicy::new(Span::from_micros(5));
            spin_policy.set_allowance(punctual, spare);
            (0..100_000u64).for_each(|round| spin_policy.woke(Span::from_micros(20 + round * 17 % 41)));
            spin_policy.before(Span::MAX).0
        };
        assert!(learned(false, true) < learned(true, false));
        assert!(learned(true, false) < learned(true, true));
    }

    #[test]
    fn with_little_left_every_wait_earns_what_it_spends() {
        let mut spin_policy = SpinPolicy::new(Span::from_micros(5));
        spin_policy.set_allowance(true, true);
        (0..1_000).for_each(|_| spin_policy.woke(Span::from_millis(1)));
        let wait = Span::from_micros(40);
        assert!(spin_policy.before(wait).0 > wait, "it spins throughout while it can afford it");
        spin_policy.spend(Span::from_micros(4_500));
        for round in 0..100_000 {
            let (advance, _) = spin_policy.before(wait);
            assert_eq!(advance, Span::from_micros(24), "three fifths, round {round}");
            spin_policy.spend(advance);
            spin_policy.slept(wait.saturating_sub(advance));
        }
    }

    #[test]
    fn it_spends_no_more_than_its_share() {
        let mut spin_policy = SpinPolicy::new(Span::from_micros(5));
        let (mut slept, mut spent) = (Span::ZERO, Span::ZERO);
        for _ in 0..1_000_000 {
            spin_policy.woke(Span::from_millis(1));
            let (_, awake) = spin_policy.before(Span::MAX);
            spin_policy.spend(awake);
            spent += awake;
            spin_policy.slept(Span::from_micros(10));
            slept += Span::from_micros(10);
        }
        assert!(spent.nanos() <= slept.nanos() * USUAL.awake / USUAL.asleep + MAX_SAVED.nanos());
    }
}
