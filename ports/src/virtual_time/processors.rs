//! Modelled processors: the work of guests takes time there, and one guest waits for another's.
//!
//! A guest acts at an instant, when a timer or a frame wakes it. A processor gets a guest ready
//! for that first: it switches to the guest, takes its interrupt, and works on the
//! frames that were delivered to it since. Then the guest acts, and the processor works on what the guest has
//! sent and on what arrived meanwhile. For that long no guest of the processor acts. A guest that goes on at once
//! (it reads a clock, say) keeps the processor until it has sent something, and goes on without an interrupt:
//!
//! ```text
//! work before = context switch (if another guest was last) + interrupt + n frame + 8 octets / copy rate
//! work after  = n frame + 8 octets / copy rate
//! ```
//!
//! with n frames of so many octets that have passed the guest's ports and are not paid for yet. Each of the
//! two is rounded up to a nanosecond. A guest is not interrupted: which one is next is decided when work is
//! done.

use std::num::NonZeroU64;

use serde::Serialize;

use super::Calendar;
use super::client::Standing;
use crate::world::edge::Passed;

/// What work costs; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// An instant at which a guest acts: an interrupt of a device or a timer, and what that wakes.
    pub interrupt: u64,
    /// A frame that a guest sends or receives; each segment of a super-frame is one.
    pub frame: u64,
    /// Bits a second at which it handles the octets of frames; None: they cost nothing.
    pub copy_rate: Option<NonZeroU64>,
    /// Another guest than before acts.
    pub context_switch: u64,
}

impl Prices {
    fn of(&self, passed: Passed) -> u64 {
        let octets = self.copy_rate.map_or(0, |rate| {
            let bits = u128::from(passed.octets) * 8 * 1_000_000_000;
            u64::try_from(bits.div_ceil(u128::from(rate.get()))).unwrap_or(u64::MAX)
        });
        self.frame.saturating_mul(passed.frames).saturating_add(octets)
    }
}

/// Which of the guests that wish to act is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The one that was last, until it has worked for a quantum without a pause, then the next in the list.
    RoundRobin,
    /// The one that has worked least for its weight, once the one that was last is a quantum ahead of it.
    Fair,
    /// The first in the list.
    Priority,
}

/// A processor of some guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// Numbers of the guests.
    pub guests: Vec<usize>,
    /// What work costs.
    pub prices: Prices,
    /// Which guest is next.
    pub scheduler: Scheduler,
    /// Length of a quantum in nanoseconds.
    pub quantum: u64,
    /// A weight of each guest, for the fair scheduler.
    pub weights: Vec<NonZeroU64>,
}

/// What a guest has worked on its processor since time zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worked {
    /// The processor.
    pub processor: String,
    /// The guest.
    pub guest: String,
    /// Time for which the processor worked for it, in nanoseconds.
    pub nanoseconds: u64,
    /// Instants at which it has acted.
    pub interrupts: u64,
    /// How often the processor switched to it from another guest.
    pub context_switches: u64,
    /// Frames that it has sent or received.
    pub frames: u64,
}

/// What a processor has done for one guest.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Frames that are paid for.
    paid: Passed,
    nanoseconds: u64,
    interrupts: u64,
    context_switches: u64,
    frames: u64,
    /// Its work divided by its weight, as the fair scheduler compares it, in its units.
    weighted: u64,
    /// Whether it goes on with what it did when it acted last.
    goes_on: bool,
    /// Whether it wished to act when it was last decided who does.
    waits: bool,
}

/// Nanoseconds for which a guest that acts may wait and still be at the same action: it reads clocks, or a call
/// of its program fails, which take some time in its kernel.
const GOES_ON: u64 = 2_000;
/// Units of the fair scheduler in a nanosecond, so that dividing by a weight loses next to nothing: as many as
/// the largest weight and more, and a multiple of the small ones.
const UNIT: u64 = 10_080;

/// A processor at work.
pub(super) struct Working {
    settings: Processor,
    accounts: Vec<Account>,
    /// The guest that it has got ready, by its place, and when that acts.
    serves: Option<(usize, u64)>,
    /// The guest that it served last.
    last: Option<usize>,
    /// For how long it has worked for that one without another between.
    in_a_row: u64,
    /// When it is done with its work.
    free: u64,
}

impl Working {
    fn new(settings: Processor) -> Self {
        let accounts = vec![Account::default(); settings.guests.len()];
        Self { settings, accounts, serves: None, last: None, in_a_row: 0, free: 0 }
    }

    /// The first time from `at` on at which a guest may act, or at which it is decided who does.
    fn permitted(&self, place: usize, at: u64) -> u64 {
        match self.serves {
            Some((served, acts)) if served == place => at.max(acts),
            Some((_, acts)) => at.max(acts.saturating_add(1)),
            None => at.max(self.free),
        }
    }

    /// The next of the guests that wish to act.
    fn next(&mut self, ready: &[usize]) -> Option<usize> {
        let first = ready.first().copied()?;
        let last = self.last.filter(|last| ready.contains(last));
        Some(match self.settings.scheduler {
            Scheduler::Priority => first,
            Scheduler::RoundRobin => match last {
                Some(last) if self.in_a_row < self.settings.quantum => last,
                _ => {
                    let after = self.last.map_or(0, |last| last + 1);
                    ready.iter().copied().find(|&place| place >= after).unwrap_or(first)
                }
            },
            Scheduler::Fair => self.fairly(ready, last).unwrap_or(first),
        })
    }

    /// The one that has worked least for its weight, or the last one until it is a quantum ahead.
    fn fairly(&mut self, ready: &[usize], last: Option<usize>) -> Option<usize> {
        let quantum = self.settings.quantum.saturating_mul(UNIT);
        // Who has slept gets no more than a quantum in advance.
        let least = self.last.map_or(0, |last| self.accounts[last].weighted.saturating_sub(quantum));
        for (place, account) in self.accounts.iter_mut().enumerate() {
            let is_ready = ready.contains(&place);
            if is_ready && !account.waits {
                account.weighted = account.weighted.max(least);
            }
            account.waits = is_ready;
        }
        let weighted = |place: usize| self.accounts[place].weighted;
        let least = ready.iter().copied().min_by_key(|&place| (weighted(place), place))?;
        let goes_on = |&last: &usize| weighted(last) < weighted(least).saturating_add(quantum);
        Some(last.filter(goes_on).unwrap_or(least))
    }

    /// Gets a guest ready at a time, whose ports so much has passed.
    fn begin(&mut self, place: usize, at: u64, passed: Passed) {
        let switches = self.last.is_some_and(|last| last != place);
        if switches {
            self.in_a_row = 0;
        }
        self.last = Some(place);
        let account = &mut self.accounts[place];
        let goes_on = core::mem::take(&mut account.goes_on);
        let interrupt = if goes_on { 0 } else { self.settings.prices.interrupt };
        account.interrupts += u64::from(!goes_on);
        account.context_switches += u64::from(switches);
        let prices = self.settings.prices;
        let switch = if switches { prices.context_switch } else { 0 };
        let work = switch.saturating_add(interrupt).saturating_add(self.pay(place, passed));
        self.book(place, work);
        self.serves = Some((place, at.saturating_add(work)));
    }

    /// Works on what a guest has sent when it acted, at a time. `goes_on`: when it wishes to go on with that.
    fn end(&mut self, place: usize, at: u64, passed: Passed, goes_on: Option<u64>) {
        let Some((served, acts)) = self.serves.filter(|&(served, _)| served == place) else { return };
        let work = self.pay(place, passed);
        if let (Some(request), 0) = (goes_on, work) {
            self.serves = Some((served, request.max(acts)));
            return;
        }
        self.book(place, work);
        self.accounts[place].goes_on = goes_on.is_some();
        (self.serves, self.free) = (None, at.saturating_add(work));
    }

    /// The price of what is not paid for yet, which it is now.
    fn pay(&mut self, place: usize, passed: Passed) -> u64 {
        let account = &mut self.accounts[place];
        let due = passed.since(account.paid);
        account.paid = passed;
        account.frames += due.frames;
        self.settings.prices.of(due)
    }

    fn book(&mut self, place: usize, work: u64) {
        let account = &mut self.accounts[place];
        account.nanoseconds = account.nanoseconds.saturating_add(work);
        account.weighted =
            account.weighted.saturating_add(work.saturating_mul(UNIT) / self.settings.weights[place]);
        self.in_a_row = self.in_a_row.saturating_add(work);
    }
}

impl Calendar {
    /// Has guests work on a processor, from time zero on. Each has a weight, one processor at most, and takes
    /// no turns besides.
    pub fn add_processor(&mut self, processor: Processor) {
        let number = self.processors.len();
        for (place, &guest) in processor.guests.iter().enumerate() {
            self.guests[guest].processor = Some((number, place));
        }
        self.processors.push(Working::new(processor));
    }

    /// What guests have worked on their processors since time zero.
    #[must_use]
    pub fn worked(&self) -> Vec<Worked> {
        let of = |working: &Working, place: usize| {
            let account = working.accounts[place];
            Worked {
                processor: working.settings.name.clone(),
                guest: self.guests[working.settings.guests[place]].client.name.clone(),
                nanoseconds: account.nanoseconds,
                interrupts: account.interrupts,
                context_switches: account.context_switches,
                frames: account.frames,
            }
        };
        let all =
            self.processors.iter().flat_map(|one| (0..one.accounts.len()).map(move |place| (one, place)));
        all.map(|(working, place)| of(working, place)).collect()
    }

    /// Number of the processor on which a guest works now, and its place there; None before time zero.
    fn processor_of(&self, index: usize) -> Option<(usize, usize)> {
        self.guests[index].processor.filter(|_| self.zero.is_some())
    }

    /// True if a guest works on a processor now.
    pub(super) fn has_processor(&self, index: usize) -> bool {
        self.processor_of(index).is_some()
    }

    /// The first time from `at` on at which the processor of a guest permits it to act; None without one.
    pub(super) fn processor_permits(&self, index: usize, at: u64) -> Option<u64> {
        let (number, place) = self.processor_of(index)?;
        Some(self.processors[number].permitted(place, at))
    }

    /// Has the processor of a guest that may act begin its work, for the guest that is next. Returns false
    /// if the guest acts without more work.
    pub(super) fn begin_work(&mut self, index: usize, at: u64) -> bool {
        let Some((number, _)) = self.processor_of(index) else { return false };
        if self.processors[number].serves.is_some() {
            return false;
        }
        self.set_now(at);
        let wishes = |&guest: &usize| {
            let client = &self.guests[guest].client;
            client.standing == Standing::Waiting && client.request.is_some_and(|request| request <= at)
        };
        let guests = &self.processors[number].settings.guests;
        let ready: Vec<usize> = (0..guests.len()).filter(|&place| wishes(&guests[place])).collect();
        let Some(place) = self.processors[number].next(&ready) else { return false };
        let passed = self.passed(self.processors[number].settings.guests[place]);
        self.processors[number].begin(place, at, passed);
        true
    }

    /// Has the processor of a guest that waits work on what that has sent, unless the guest goes on at once.
    pub(super) fn end_work(&mut self, index: usize) {
        let Some((number, place)) = self.processor_of(index) else { return };
        let client = &self.guests[index].client;
        let wish = client.request.filter(|_| client.standing == Standing::Waiting);
        let goes_on = wish.filter(|&request| request <= self.now.saturating_add(GOES_ON));
        let (passed, now) = (self.passed(index), self.now);
        self.processors[number].end(place, now, passed, goes_on);
    }

    /// What has passed the ports of a guest.
    fn passed(&self, index: usize) -> Passed {
        let ports = self.guests[index].ports.iter().map(|&number| self.world.edge.ports[number].passed);
        ports.fold(Passed::default(), Passed::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NonZeroU64 = NonZeroU64::MIN;

    fn working(scheduler: Scheduler, quantum: u64, weights: &[u64]) -> Working {
        let copy_rate = NonZeroU64::new(8_000_000_000);
        let prices = Prices { interrupt: 5, frame: 10, copy_rate, context_switch: 3 };
        let guests = (0..weights.len()).collect();
        let weights = weights.iter().map(|&weight| NonZeroU64::new(weight).unwrap_or(ONE)).collect();
        Working::new(Processor { name: "p".into(), guests, prices, scheduler, quantum, weights })
    }

    fn passed(frames: u64, octets: u64) -> Passed {
        Passed { frames, octets }
    }

    /// The order in which two guests that always wish to act are served, each time for one frame sent.
    fn order(mut working: Working, count: usize) -> Vec<usize> {
        let (mut at, mut sent) = (0, vec![0; working.accounts.len()]);
        let all: Vec<usize> = (0..sent.len()).collect();
        let mut found = Vec::new();
        for _ in 0..count {
            let place = working.next(&all).expect("some are ready");
            working.begin(place, at, passed(sent[place], 0));
            let acts = working.serves.expect("it serves").1;
            sent[place] += 1;
            working.end(place, acts, passed(sent[place], 0), None);
            at = working.free;
            found.push(place);
        }
        found
    }

    #[test]
    fn work_before_and_after_an_interrupt_is_the_sum_of_its_prices() {
        let mut one = working(Scheduler::RoundRobin, 100, &[1, 1]);
        // Two frames of 50 octets in all, at one octet a nanosecond, and the interrupt.
        one.begin(0, 1000, passed(2, 50));
        assert_eq!(one.serves, Some((0, 1000 + 20 + 50 + 5)));
        assert_eq!((one.permitted(0, 1000), one.permitted(1, 1000)), (1075, 1076));
        one.end(0, 1075, passed(3, 150), None);
        assert_eq!((one.serves, one.free), (None, 1075 + 10 + 100));
        assert_eq!(one.permitted(1, 1100), 1185);
        // The other guest costs a context switch.
        one.begin(1, 1185, passed(0, 0));
        assert_eq!(one.serves, Some((1, 1185 + 5 + 3)));
        let account = one.accounts[0];
        assert_eq!((account.nanoseconds, account.interrupts, account.frames), (185, 1, 3));
        assert_eq!([0, 1].map(|place: usize| one.accounts[place].context_switches), [0, 1]);
    }

    #[test]
    fn who_goes_on_keeps_the_processor_until_it_sends_and_takes_no_other_interrupt() {
        let mut one = working(Scheduler::Priority, 100, &[1, 1]);
        one.begin(0, 100, passed(0, 0));
        one.end(0, 105, passed(0, 0), Some(361));
        assert_eq!((one.serves, one.permitted(1, 200)), (Some((0, 361)), 362));
        one.end(0, 361, passed(1, 0), Some(617));
        assert_eq!((one.serves, one.free), (None, 371));
        one.begin(0, 617, passed(1, 0));
        assert_eq!((one.serves, one.accounts[0].interrupts), (Some((0, 617)), 1));
    }

    #[test]
    fn octets_are_rounded_up_once_for_each_work() {
        let prices = Prices { copy_rate: NonZeroU64::new(3_000_000_000), ..Prices::default() };
        assert_eq!((prices.of(passed(1, 1)), prices.of(passed(3, 3))), (3, 8));
        assert_eq!(Prices::default().of(passed(9, 9)), 0);
    }

    #[test]
    fn a_round_robin_serves_one_guest_for_a_quantum() {
        // Each interrupt with its frame costs 15 ns, and a context switch 3.
        assert_eq!(order(working(Scheduler::RoundRobin, 30, &[1, 1]), 8), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(order(working(Scheduler::RoundRobin, 1, &[1, 1, 1]), 6), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_fair_scheduler_divides_by_weight_and_a_priority_serves_the_first() {
        let served = order(working(Scheduler::Fair, 300, &[3, 1]), 4000);
        let first = served.iter().filter(|&&place| place == 0).count();
        assert!((2900..=3100).contains(&first), "{first} of 4000");
        assert_eq!(order(working(Scheduler::Priority, 20, &[1, 1]), 5), [0; 5]);
    }

    #[test]
    fn who_has_waited_for_long_is_a_quantum_ahead_at_most() {
        let mut one = working(Scheduler::Fair, 40, &[1, 1]);
        one.last = Some(0);
        one.accounts[0].weighted = 10_000 * UNIT;
        assert_eq!(one.next(&[0, 1]), Some(1));
        assert_eq!(one.accounts[1].weighted, 9_960 * UNIT);
    }
}
