//! Guests that take turns on a processor: each acts only in its own slots of the calendar.
//!
//! Slot k begins at B + phase + k quantum, where B is the begin of a span in which turns are taken, and
//! belongs to guest k modulo their number, also for k below zero (as in `airloom.planning.turns`). What is
//! due for a guest outside of its slots takes place at the begin of the next one.

use super::Calendar;

/// The slots of guests that take turns. Times in nanoseconds of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Numbers of the guests, in the order of their slots.
    pub guests: Vec<usize>,
    /// Length of a slot; not zero.
    pub quantum: u64,
    /// Delay of the first guest's slot against the begin of each span.
    pub phase: u64,
    /// From when to when turns are taken, in order; None: from then on. Outside of them all guests act.
    pub spans: Vec<(u64, Option<u64>)>,
}

impl Turns {
    /// The first time from `at` on at which the guest at a place of the list may act.
    fn first(&self, place: usize, mut at: u64) -> u64 {
        while let Some((begin, end)) = self.span(at) {
            let guests = i128::try_from(self.guests.len()).unwrap_or(i128::MAX);
            let slot = self.slot(begin, at);
            let place = i128::try_from(place).unwrap_or(i128::MAX);
            let waits = (place - slot).rem_euclid(guests);
            if waits == 0 {
                return at;
            }
            let next = self.slot_at(begin, slot + waits);
            match end {
                Some(end) if end <= next => at = end,
                _ => return next,
            }
        }
        at
    }

    /// The first time after `at` at which it may be another guest's turn.
    fn change(&self, at: u64) -> u64 {
        let edges = self.spans.iter().flat_map(|&(begin, end)| [Some(begin), end]).flatten();
        let edge = edges.filter(|&edge| edge > at).min().unwrap_or(u64::MAX);
        self.span(at).map_or(edge, |(begin, _)| edge.min(self.slot_at(begin, self.slot(begin, at) + 1)))
    }

    fn span(&self, at: u64) -> Option<(u64, Option<u64>)> {
        self.spans.iter().copied().find(|&(begin, end)| begin <= at && end.is_none_or(|end| at < end))
    }

    /// The number of the slot at a time.
    fn slot(&self, begin: u64, at: u64) -> i128 {
        let since = i128::from(at) - i128::from(begin) - i128::from(self.phase);
        since.div_euclid(i128::from(self.quantum.max(1)))
    }

    /// When a slot begins; never, if that is beyond the last time.
    fn slot_at(&self, begin: u64, slot: i128) -> u64 {
        let at = i128::from(begin) + i128::from(self.phase) + slot * i128::from(self.quantum.max(1));
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }
}

impl Calendar {
    /// Has guests take turns. Each guest takes turns once.
    pub fn take_turns(&mut self, turns: Turns) {
        self.turns.push(turns);
    }

    /// The first time from `at` on, in nanoseconds of the calendar, at which a guest may act; never while
    /// it is paused.
    pub(super) fn permitted(&self, index: usize, at: u64) -> u64 {
        if self.guests[index].paused {
            return u64::MAX;
        }
        if let Some(permitted) = self.processor_permits(index, at) {
            return permitted;
        }
        self.turns_of(index, at)
            .map_or(at, |(turns, place, zero)| turns.first(place, at - zero).saturating_add(zero))
    }

    /// When the turn of a guest that acts at a time may end. On a processor it acts at one instant.
    pub(super) fn turn_ends(&self, index: usize, at: u64) -> u64 {
        if self.has_processor(index) {
            return at;
        }
        self.turns_of(index, at)
            .map_or(u64::MAX, |(turns, _, zero)| turns.change(at - zero).saturating_add(zero))
    }

    /// The turns that a guest takes, its place in them, and time zero; None before that.
    fn turns_of(&self, index: usize, at: u64) -> Option<(&Turns, usize, u64)> {
        let zero = self.zero.filter(|&zero| zero <= at)?;
        self.turns.iter().find_map(|turns| {
            let place = turns.guests.iter().position(|&guest| guest == index)?;
            Some((turns, place, zero))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(guests: usize, quantum: u64, phase: u64, spans: &[(u64, Option<u64>)]) -> Turns {
        Turns { guests: (0..guests).collect(), quantum, phase, spans: spans.to_vec() }
    }

    #[test]
    fn a_guest_acts_in_its_slots_and_waits_for_the_next() {
        let both = turns(2, 10, 0, &[(0, None)]);
        assert_eq!([0, 9, 10, 19, 20].map(|at| both.first(0, at)), [0, 9, 20, 20, 20]);
        assert_eq!([0, 9, 10, 19, 20].map(|at| both.first(1, at)), [10, 10, 10, 19, 30]);
        assert_eq!([0, 9, 10].map(|at| both.change(at)), [10, 10, 20]);
        let three = turns(3, 10, 0, &[(0, None)]);
        assert_eq!([0, 10, 20, 30].map(|at| three.first(1, at)), [10, 10, 40, 40]);
    }

    #[test]
    fn before_the_phase_it_is_the_last_ones_turn() {
        let late = turns(2, 10, 4, &[(100, None)]);
        assert_eq!([99, 100, 103, 104].map(|at| late.first(0, at)), [99, 104, 104, 104]);
        assert_eq!([99, 100, 103, 104].map(|at| late.first(1, at)), [99, 100, 103, 114]);
        assert_eq!([99, 100, 104].map(|at| late.change(at)), [100, 104, 114]);
    }

    #[test]
    fn outside_of_the_spans_all_act() {
        let spans = turns(2, 10, 0, &[(20, Some(35)), (50, None)]);
        assert_eq!([0, 20, 30, 35, 49, 50].map(|at| spans.first(1, at)), [0, 30, 30, 35, 49, 60]);
        assert_eq!(spans.first(0, 32), 35, "its next slot would begin after the end of turns");
        assert_eq!([0, 20, 30, 35, 50].map(|at| spans.change(at)), [20, 30, 35, 50, 60]);
        let joined = turns(2, 10, 0, &[(0, Some(15)), (15, None)]);
        assert_eq!(joined.first(1, 0), 10);
        assert_eq!(joined.first(0, 12), 15, "the second span begins with the first guest's slot");
        assert_eq!(turns(2, 10, 0, &[]).change(5), u64::MAX);
    }

    #[test]
    fn the_far_future_does_not_overflow() {
        let both = turns(2, u64::MAX / 2, 0, &[(0, None)]);
        assert_eq!(both.first(0, u64::MAX - 1), u64::MAX - 1);
        assert_eq!(both.first(1, u64::MAX - 1), u64::MAX);
        assert_eq!(both.change(u64::MAX - 1), u64::MAX);
    }
}
