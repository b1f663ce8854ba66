//! Frames in flight, in order of arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::deadline::Deadline;
use crate::frame::{Frame, Pool};
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

    /// Splits after the first `count` frames; either part may be empty.
    pub fn cut(self, count: u16, pool: &mut Pool) -> (Option<Self>, Option<Self>) {
        match count {
            0 => (None, Some(self)),
            count if count >= self.frame.count => (Some(self), None),
            count => {
                let (head, rest) = self.split(count, pool);
                (Some(head), Some(rest))
            }
        }
    }
}

/// A frame; or consecutive segments of a super-frame that arrive one after the other, each at its
/// own time.
struct Entry {
    /// When it arrives, or its first segment.
    due: Instant,
    flight: InFlight,
    /// True if the arrival time of each segment is in [`InFlightQueue::times`].
    timed: bool,
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
    /// Arrival times of the segments of the timed entries in `in_order`, one after the other.
    times: VecDeque<Instant>,
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
        self.add(due, flight);
        self.arm()
    }

    /// Adds a frame due at `due`; [`InFlightQueue::arm`] must follow.
    pub fn add(&mut self, due: Instant, flight: InFlight) {
        let entry = Entry { due, flight, timed: false };
        if self.in_order.back().is_none_or(|back| back.due <= due) {
            self.in_order.push_back(entry);
        } else {
            self.reordered.push(Reverse(Reordered { number: self.number, entry }));
            self.number += 1;
        }
    }

    /// Adds one segment due at `due` to the entry of the segments before it; false if that is not
    /// the last entry. The entry takes over the segment's share of the buffer.
    pub fn extend(&mut self, due: Instant, flight: &InFlight, pool: &mut Pool) -> bool {
        let single = flight.frame.count == 1 && self.takes(&flight.frame);
        if !single || self.last().is_none_or(|last| last > due) {
            return false;
        }
        self.append(due);
        pool.release(flight.frame.buffer);
        true
    }

    /// True if the segments of `frame` may follow those of the last entry, one after the other.
    pub fn takes(&self, frame: &Frame) -> bool {
        self.in_order.back().is_some_and(|back| {
            (back.timed || back.flight.frame.count == 1) && frame.follows(&back.flight.frame)
        })
    }

    /// Adds the next segment to the last entry, due at `due`, which is not before those in flight;
    /// [`InFlightQueue::takes`] holds.
    pub fn append(&mut self, due: Instant) {
        let Some(back) = self.in_order.back_mut() else { return };
        if !back.timed {
            back.timed = true;
            self.times.push_back(back.due);
        }
        self.times.push_back(due);
        back.flight.frame.count += 1;
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

    /// True if frames are not held back after `now`, and the calendar holds no event for them.
    pub fn is_free(&self, now: Instant) -> bool {
        self.deadline.armed().is_none() && self.held <= now
    }

    /// True if the calendar holds an event at or after `at`, before which no frame arrives; or if
    /// the last frame in order arrives then.
    pub fn is_quiet_until(&self, at: Instant) -> bool {
        self.deadline.armed().is_some_and(|armed| armed >= at) || self.last().is_some_and(|last| last >= at)
    }

    /// When the last frame in order is due.
    pub fn last(&self) -> Option<Instant> {
        let back = self.in_order.back()?;
        if back.timed { self.times.back().copied() } else { Some(back.due) }
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

    /// The earliest frame, or the segments that arrive one after the other within a `span` of the
    /// first; and when the last of them is due.
    pub fn run(&self, span: impl FnOnce(&Frame) -> Span) -> Option<(Instant, Frame)> {
        let due = self.next()?;
        let Some(entry) = self.in_order.front().filter(|entry| entry.due == due) else {
            return self.reordered.peek().map(|Reverse(other)| (due, other.entry.flight.frame));
        };
        let frame = entry.flight.frame;
        if !entry.timed {
            return Some((due, frame));
        }
        let span = span(&frame);
        let many = frame.count.min(if span > Span::ZERO { MOST_TOGETHER } else { 1 });
        let within = self.times.iter().take(usize::from(many)).take_while(|at| **at <= due + span);
        let (count, last) = within.fold((0, due), |(count, _), &at| (count + 1, at));
        Some((last, frame.part(frame.first, count)))
    }

    /// Removes the earliest frame if it is due at or before `until`.
    pub fn pop(&mut self, until: Instant) -> Option<InFlight> {
        let next = self.next()?;
        if next > until {
            return None;
        }
        if self.in_order.front().is_none_or(|entry| entry.due > next) {
            return self.reordered.pop().map(|Reverse(other)| other.entry.flight);
        }
        let Entry { flight, timed, .. } = self.in_order.pop_front()?;
        if timed {
            self.times.drain(..usize::from(flight.frame.count));
        }
        Some(flight)
    }

    /// Removes the first `count` segments of the earliest frame. If they arrived one after the
    /// other, their times are appended to `arrivals`.
    pub fn take(&mut self, count: u16, arrivals: &mut Vec<Instant>, pool: &mut Pool) -> Option<InFlight> {
        let due = self.next()?;
        let Some(entry) = self.in_order.front_mut().filter(|entry| entry.due == due && entry.timed) else {
            return self.pop(due);
        };
        arrivals.extend(self.times.drain(..usize::from(count)));
        if count == entry.flight.frame.count {
            return self.in_order.pop_front().map(|entry| entry.flight);
        }
        let (head, rest) = entry.flight.split(count, pool);
        entry.due = self.times.front().copied().unwrap_or(due);
        entry.flight = InFlight { at: entry.due, last: entry.due, ..rest };
        Some(head)
    }

    /// Takes back the last frame in order, or the last segment of its run.
    pub fn take_back(&mut self, pool: &mut Pool) -> Option<Frame> {
        let back = self.in_order.back_mut()?;
        if back.timed {
            self.times.pop_back();
        }
        let frame = &mut back.flight.frame;
        if frame.count == 1 {
            return self.in_order.pop_back().map(|entry| entry.flight.frame);
        }
        pool.share(frame.buffer);
        frame.count -= 1;
        Some(Frame { first: frame.first + frame.count, count: 1, ..*frame })
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
