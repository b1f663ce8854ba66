//! Frames that are under way and the order in which they arrive.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::alarm::Alarm;
use crate::frame::{Frame, Pool};
use crate::time::{Instant, Span};

/// A frame, or a run of segments, that is there at `at` with its first segment and at `last`
/// with its last one. The two differ only for super-frames that are carried together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving {
    pub frame: Frame,
    pub at: Instant,
    pub last: Instant,
}

impl Moving {
    /// The first `count` segments, and the rest, of a run of more than that; they share the
    /// buffer.
    pub fn split(self, count: u16, pool: &mut Pool) -> (Self, Self) {
        pool.share(self.frame.buffer);
        let Self { frame, at, last } = self;
        let gap = if last > at { last.since(at).nanos() / u64::from(frame.count - 1) } else { 0 };
        let after = |segments: u16| at + Span::from_nanos(gap * u64::from(segments));
        let head = frame.part(frame.first, count);
        let rest = frame.part(frame.first + count, frame.count - count);
        (Self { frame: head, at, last: after(count - 1) }, Self { frame: rest, at: after(count), last })
    }
}

struct Flight {
    due: Instant,
    moving: Moving,
}

struct Stray {
    number: u64,
    flight: Flight,
}

impl Stray {
    fn key(&self) -> (Instant, u64) {
        (self.flight.due, self.number)
    }
}
impl PartialEq for Stray {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Stray {}
impl PartialOrd for Stray {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Stray {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// What is under way on one element, by time of arrival and then by order of departure.
///
/// Almost always the next to depart is the last to arrive: those form the train, a plain queue.
/// Who overtakes is a stray. So the calendar holds one event for an element, however many frames
/// are on it.
#[derive(Default)]
pub(crate) struct Flights {
    train: VecDeque<Flight>,
    strays: BinaryHeap<Reverse<Stray>>,
    number: u64,
    alarm: Alarm,
    /// Nothing rings before this.
    held: Instant,
}

impl Flights {
    /// Adds one that is due at `due`. Returns when to ring if the calendar does not know yet.
    pub fn push(&mut self, due: Instant, moving: Moving) -> Option<Instant> {
        let flight = Flight { due, moving };
        if self.train.back().is_none_or(|back| back.due <= due) {
            self.train.push_back(flight);
        } else {
            self.strays.push(Reverse(Stray { number: self.number, flight }));
            self.number += 1;
        }
        self.ring()
    }

    /// Says that the calendar's event for `now` has come.
    pub fn rung(&mut self, now: Instant) {
        self.alarm.rung(now);
    }

    /// When to ring for the earliest, if the calendar does not know yet.
    pub fn ring(&mut self) -> Option<Instant> {
        let next = self.next()?.max(self.held);
        self.alarm.set(next).then_some(next)
    }

    /// Lets the earliest wait until `until` although it is due.
    pub fn hold(&mut self, until: Instant) {
        self.held = until;
    }

    /// When the earliest is due.
    pub fn next(&self) -> Option<Instant> {
        let train = self.train.front().map(|flight| flight.due);
        match self.strays.peek() {
            None => train,
            Some(Reverse(stray)) => Some(train.map_or(stray.flight.due, |due| due.min(stray.flight.due))),
        }
    }

    /// The earliest and when it is due.
    pub fn first(&self) -> Option<(Instant, Frame)> {
        let due = self.next()?;
        let train = self.train.front().filter(|flight| flight.due == due);
        let flight = train.or_else(|| self.strays.peek().map(|Reverse(stray)| &stray.flight))?;
        Some((due, flight.moving.frame))
    }

    /// The earliest, if it is due at `until` or before.
    pub fn pop(&mut self, until: Instant) -> Option<Moving> {
        let next = self.next()?;
        if next > until {
            return None;
        }
        if self.train.front().is_some_and(|flight| flight.due == next) {
            self.train.pop_front().map(|flight| flight.moving)
        } else {
            self.strays.pop().map(|Reverse(stray)| stray.flight.moving)
        }
    }

    /// All of them, in no promised order.
    pub fn iter(&self) -> impl Iterator<Item = &Moving> {
        let strays = self.strays.iter().map(|Reverse(stray)| &stray.flight.moving);
        self.train.iter().map(|flight| &flight.moving).chain(strays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Pool;

    #[test]
    fn arrival_is_by_time_then_by_departure_with_one_alarm() {
        let mut pool = Pool::default();
        let mut flights = Flights::default();
        let mut rings = Vec::new();
        for (number, due) in [10, 30, 20, 20, 30, 5].into_iter().enumerate() {
            let length = u32::try_from(number).expect("small");
            let frame = Frame::new(pool.take(64), length, None, None);
            let at = Instant::from_nanos(due);
            rings.extend(flights.push(at, Moving { frame, at, last: at }));
        }
        assert_eq!(rings, [10, 5].map(Instant::from_nanos));
        assert_eq!(flights.iter().count(), 6);
        let mut order = Vec::new();
        while let Some(moving) = flights.pop(Instant::NEVER) {
            order.push(moving.frame.length);
        }
        assert_eq!(order, [5, 0, 2, 3, 1, 4]);
    }
}
