//! Frames in flight, in order of arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::deadline::Deadline;
use crate::frame::{Frame, Pool, Protocol};
use crate::time::{Instant, Span};

/// Maximum number of segments that are handed over together.
pub const MOST_TOGETHER: u16 = 64;

/// A frame, or a run of segments, whose first segment arrives at `at` and whose last one at `last`.
/// The two differ only for super-frames that are carried together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub frame: Frame,
    pub at: Instant,
    pub last: Instant,
}

impl InFlight {
    /// Splits a run into its first `count` segments and the rest, which must not be empty; both
    /// share the buffer.
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

struct Entry {
    due: Instant,
    flight: InFlight,
}

/// An entry that is due before one that departed earlier.
struct Reordered {
    number: u64,
    entry: Entry,
}

impl Reordered {
    fn key(&self) -> (Instant, u64) {
        (self.entry.due, self.number)
    }
}
impl PartialEq for Reordered {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Reordered {}
impl PartialOrd for Reordered {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Reordered {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The frames in flight on one element, by time of arrival and then by order of departure.
///
/// Nearly all frames arrive in the order of departure: those are in a plain queue. A frame that
/// overtakes others is kept separately. The calendar holds one event for an element, however many
/// frames are in flight on it.
#[derive(Default)]
pub(crate) struct InFlightQueue {
    in_order: VecDeque<Entry>,
    reordered: BinaryHeap<Reverse<Reordered>>,
    number: u64,
    deadline: Deadline,
    /// No event is requested before this instant.
    held: Instant,
}

impl InFlightQueue {
    /// Adds a frame due at `due`. Returns the instant for which the caller must push an event, if
    /// any.
    pub fn push(&mut self, due: Instant, flight: InFlight) -> Option<Instant> {
        let entry = Entry { due, flight };
        if self.in_order.back().is_none_or(|back| back.due <= due) {
            self.in_order.push_back(entry);
        } else {
            self.reordered.push(Reverse(Reordered { number: self.number, entry }));
            self.number += 1;
        }
        self.arm()
    }

    /// Records that the calendar's event for `now` was delivered.
    pub fn expired(&mut self, now: Instant) {
        self.deadline.expired(now);
    }

    /// The instant for which the caller must push an event, unless the calendar already holds it.
    pub fn arm(&mut self) -> Option<Instant> {
        let next = self.next()?.max(self.held);
        self.deadline.arm(next).then_some(next)
    }

    /// True if the calendar holds an event at or after `at`, before which no frame arrives.
    pub fn is_quiet_until(&self, at: Instant) -> bool {
        self.deadline.armed().is_some_and(|armed| armed >= at)
    }

    /// Holds back the earliest frame until `until`, although it is due.
    pub fn hold(&mut self, until: Instant) {
        self.held = until;
    }

    /// When the earliest frame is due.
    pub fn next(&self) -> Option<Instant> {
        let in_order = self.in_order.front().map(|entry| entry.due);
        match self.reordered.peek() {
            None => in_order,
            Some(Reverse(other)) => Some(in_order.map_or(other.entry.due, |due| due.min(other.entry.due))),
        }
    }

    /// The earliest frame and when it is due.
    pub fn first(&self) -> Option<(Instant, Frame)> {
        let due = self.next()?;
        let in_order = self.in_order.front().filter(|entry| entry.due == due);
        let entry = in_order.or_else(|| self.reordered.peek().map(|Reverse(other)| &other.entry))?;
        Some((due, entry.flight.frame))
    }

    /// The earliest frame, together with the consecutive segments of the same super-frame that
    /// arrive after it within `span`; and when the last of them is due.
    pub fn run(&self, span: Span) -> Option<(Instant, Frame)> {
        let (due, frame) = self.first()?;
        // Receivers of datagrams may look at the times between them.
        let tcp = frame.segmentation.is_some_and(|cut| cut.protocol != Protocol::Udp);
        if span == Span::ZERO || !tcp || !self.reordered.is_empty() {
            return Some((due, frame));
        }
        let mut run = (due, frame);
        for entry in self.in_order.iter().skip(1) {
            let (last, next) = (&mut run.1, &entry.flight.frame);
            if !next.follows(last) || entry.due > due + span || last.count + next.count > MOST_TOGETHER {
                break;
            }
            last.count += next.count;
            run.0 = entry.due;
        }
        Some(run)
    }

    /// Removes the earliest frame if it is due at or before `until`.
    pub fn pop(&mut self, until: Instant) -> Option<InFlight> {
        let next = self.next()?;
        if next > until {
            return None;
        }
        if self.in_order.front().is_some_and(|entry| entry.due == next) {
            self.in_order.pop_front().map(|entry| entry.flight)
        } else {
            self.reordered.pop().map(|Reverse(other)| other.entry.flight)
        }
    }

    /// All frames in flight, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        let reordered = self.reordered.iter().map(|Reverse(other)| &other.entry.flight);
        self.in_order.iter().map(|entry| &entry.flight).chain(reordered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Pool;

    #[test]
    fn arrival_is_by_time_then_by_departure_with_one_event() {
        let mut pool = Pool::default();
        let mut in_flight = InFlightQueue::default();
        let mut events = Vec::new();
        for (number, due) in [10, 30, 20, 20, 30, 5].into_iter().enumerate() {
            let length = u32::try_from(number).expect("small");
            let frame = Frame::new(pool.take(64), length, None, None);
            let at = Instant::from_nanos(due);
            events.extend(in_flight.push(at, InFlight { frame, at, last: at }));
        }
        assert_eq!(events, [10, 5].map(Instant::from_nanos));
        assert_eq!(in_flight.iter().count(), 6);
        let mut order = Vec::new();
        while let Some(flight) = in_flight.pop(Instant::NEVER) {
            order.push(flight.frame.length);
        }
        assert_eq!(order, [5, 0, 2, 3, 1, 4]);
    }
}
