//! The departures from a first-in first-out queue that may be later than the frames that come: they
//! tell how full it is then.

use std::collections::VecDeque;

use super::{Kind, Queue, Totals};
use crate::frame::{Frame, Pool};
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::time::Instant;

/// The departures from a queue that are later than the last frame that entered. Frames may enter
/// after a departure but before its instant: they came in the past, or the departure is known in
/// advance.
#[derive(Default)]
pub(super) struct Departures {
    later: VecDeque<(Instant, Totals)>,
    /// Totals of `later`.
    sum: Totals,
    /// When the last frame entered.
    entered: Instant,
}

impl Departures {
    /// Records a departure; the instants do not decrease.
    pub fn add(&mut self, at: Instant, left: Totals) {
        if at > self.entered {
            self.later.push_back((at, left));
            self.sum += left;
        }
    }

    /// Totals of what leaves after `at`, when a frame enters; the instants do not decrease.
    pub fn enter(&mut self, at: Instant) -> Totals {
        self.entered = at;
        while let Some(&(left_at, left)) = self.later.front()
            && left_at <= at
        {
            self.later.pop_front();
            self.sum -= left;
        }
        self.sum
    }

    /// Totals of what leaves after `at`.
    pub fn after(&self, at: Instant) -> Totals {
        let mut sum = Totals::default();
        for (_, left) in self.later.iter().rev().take_while(|(left_at, _)| *left_at > at) {
            sum += *left;
        }
        sum
    }

    /// Forgets the last departure if it is at or after `from`; returns when it was to be.
    pub fn revoke(&mut self, from: Instant) -> Option<Instant> {
        let (at, left) = self.later.back().copied().filter(|(at, _)| *at >= from)?;
        self.later.pop_back();
        self.sum -= left;
        Some(at)
    }
}

impl Queue {
    /// Makes the queue as full as it is at `at`, when a frame comes, which is not before the last
    /// one; returns what [`Queue::as_it_is`] needs to undo it.
    pub fn as_of(&mut self, at: Instant) -> Totals {
        let left = self.departures.enter(at);
        self.totals += left;
        left
    }

    /// Ends what [`Queue::as_of`] has begun.
    pub fn as_it_is(&mut self, left: Totals) {
        self.totals -= left;
    }

    /// The frames in the queue at `at`, with those whose departure is known in advance.
    pub fn tally_at(&self, at: Instant) -> Tally {
        let mut tally = self.totals.tally;
        tally += self.departures.after(at).tally;
        tally
    }

    /// Forgets the last departure if it is at or after `from`; returns when it was to be.
    /// [`Queue::put_back`] must follow with the frame.
    pub fn revoke(&mut self, from: Instant) -> Option<Instant> {
        self.departures.revoke(from)
    }

    /// Puts a frame that has not departed at the front of a first-in first-out queue.
    pub fn put_back(&mut self, flight: InFlight, pool: &mut Pool) {
        let Kind::Tail(waiting) = &mut self.kind else { return };
        self.totals += self.charge.totals(&flight.frame);
        match waiting.front_mut() {
            Some(front) if front.frame.follows(&flight.frame) && front.at == front.last => {
                front.frame.first = flight.frame.first;
                front.frame.count += flight.frame.count;
                pool.release(flight.frame.buffer);
            }
            _ => waiting.push_front(flight),
        }
    }

    /// Lets a frame through a first-in first-out queue in which no frame is waiting: it comes at
    /// `at`, not before the last one, and leaves at `begin`. Returns the frames in the queue behind
    /// it; `None` if that needs a closer look.
    pub fn pass(&mut self, at: Instant, begin: Instant, frame: &Frame) -> Option<Tally> {
        if self.ecn || !self.is_fifo() || !self.is_empty() {
            return None;
        }
        let mut totals = self.departures.enter(at);
        if begin > at {
            let one = self.charge.totals(frame);
            totals += one;
            if self.limits.exceeded(&totals) {
                return None;
            }
            self.largest = self.largest.max(one.tally.octets);
            self.departures.add(begin, one);
        }
        Some(totals.tally)
    }

    /// Dequeues the first segment of a run of a first-in first-out queue, which leaves at `at` in
    /// the buffer of those before it; returns the octets charged for it.
    pub fn send_segment(&mut self, at: Instant, pool: &mut Pool) -> Option<u64> {
        let Kind::Tail(waiting) = &mut self.kind else { return None };
        let frame = &mut waiting.front_mut()?.frame;
        let left = self.charge.totals(&frame.part(frame.first, 1));
        if frame.count == 1 {
            pool.release(frame.buffer);
            waiting.pop_front();
        } else {
            frame.first += 1;
            frame.count -= 1;
        }
        self.totals -= left;
        self.departures.add(at, left);
        Some(left.charged)
    }
}
