//! Frames that a wire sends in advance.
//!
//! When a frame waits in a first-in first-out queue before a constant rate, the begin and the end of
//! its transmission are known: nothing that comes later changes them, other than a change of the
//! link and a pause of the wire. The wire therefore sends what is queued in advance, for up to
//! [`AHEAD`], instead of waking up for each frame. The queue still counts such a frame until its
//! transmission begins. A change or a pause takes back the frames that have not begun.

use super::Wire;
use crate::engine::context::Context;
use crate::frame::Frame;
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::time::{Instant, Span};

/// How long before its transmission a frame may be sent. Longer saves little, and makes it more
/// costly to take frames back.
const AHEAD: Span = Span::from_millis(1);
const STEP: Span = Span::from_nanos(1);

impl Wire {
    /// True if frames may be sent in advance.
    pub(super) fn looks_ahead(&self) -> bool {
        let plain = !self.impairments.any && !self.impairments.overtakes && !self.receiver.any();
        // Each frame takes some time.
        let rated = self.serializer.length(self.charge.of_frame(0)).is_some_and(|least| least > Span::ZERO);
        self.queue.is_fifo() && plain && rated && self.gap == Span::ZERO && !self.carried
    }

    /// Accepts a frame that comes at `at`, not before the last one, and sends it in advance; false if
    /// that takes [`Wire::accept`]. The result is the same: this is the short way of most frames.
    pub(super) fn pass(&mut self, context: &mut Context, at: Instant, frame: &Frame) -> bool {
        let simple = self.ahead && self.up && self.policer.is_none() && frame.count == 1 && self.shut <= at;
        let begin = self.free.max(at);
        let octets = frame.segment_octets(frame.first);
        if !simple
            || begin >= at + AHEAD
            || octets > self.largest_frame()
            || self.in_flight.last().is_some_and(|last| last > self.newest)
        {
            return false;
        }
        let Some(queue) = self.queue.pass(at, begin, frame) else { return false };
        let account = &mut context.ledger.wires[self.number as usize];
        account.entered += Tally { frames: 1, octets: octets.into() };
        account.queue_highest.frames = account.queue_highest.frames.max(queue.frames);
        account.queue_highest.octets = account.queue_highest.octets.max(queue.octets);
        let rest = begin.since(self.free);
        let end = self.serializer.send(begin, begin > at, self.charge.of_frame(octets));
        self.load.sent(rest, end.since(begin), self.coalesce, context.gathering);
        self.free = end;
        self.occupied += end.since(begin);
        self.entered = at;
        let arrives = self.order(end + self.delay);
        let due = self.receiver.sees(arrives);
        if self.in_flight.takes(frame) {
            self.in_flight.append(due);
            context.pool.release(frame.buffer);
        } else {
            self.in_flight.add(due, InFlight { frame: *frame, at: arrives, last: arrives });
        }
        true
    }

    /// Sends queued frames in advance.
    pub(super) fn send_ahead(&mut self, context: &mut Context) {
        if !self.ahead || self.queue.is_empty() {
            return;
        }
        // Earlier settings may have let frames overtake each other.
        if self.in_flight.last().is_some_and(|last| last > self.newest) {
            return;
        }
        let now = context.now;
        let until = now + AHEAD;
        while self.free < until {
            // A run that is still arriving waits for its segments.
            if self.queue.front().is_none_or(|next| next.last > self.free) {
                break;
            }
            context.now = self.free;
            let Some(flight) = self.queue.take(context, self.place, false) else { break };
            self.transmit(context, flight, true);
            self.send_rest(context, until);
        }
        context.now = now;
    }

    /// Sends the segments that follow the last one in flight, as [`Wire::transmit`] would do.
    fn send_rest(&mut self, context: &mut Context, until: Instant) {
        while self.free < until
            && self.queue.front().is_some_and(|next| self.in_flight.takes(&next.frame))
            && let Some(charged) = self.queue.send_segment(self.free, context.pool)
        {
            let begin = self.free;
            self.free = self.serializer.send(begin, true, charged);
            self.occupied += self.free.since(begin);
            self.load.sent(Span::ZERO, self.free.since(begin), self.coalesce, context.gathering);
            let at = self.order(self.free + self.delay);
            self.in_flight.append(self.receiver.sees(at));
        }
    }

    /// Takes back the frames whose transmission was to begin at `from` or later.
    pub(super) fn take_back(&mut self, context: &mut Context, from: Instant) {
        // What was sent at its time is not taken back, not even at that instant.
        let from = from.max(self.began + STEP);
        let now = context.now;
        let mut some = false;
        while self.ahead
            && let Some(begin) = self.queue.revoke(from)
            && let Some(frame) = self.in_flight.take_back(context.pool)
        {
            some = true;
            self.serializer.take_back(self.charge.of(&frame));
            self.occupied = self.occupied.saturating_sub(self.free.since(begin));
            self.free = begin;
            self.queue.put_back(InFlight { frame, at: now, last: now }, context.pool);
        }
        if some {
            self.newest = self.in_flight.last().unwrap_or(now);
            self.in_flight.hold(Instant::ZERO);
        }
    }

    /// Takes back what was sent in advance and has not begun at `now`.
    pub(super) fn take_back_later(&mut self, context: &mut Context) {
        self.take_back(context, context.now + STEP);
    }
}
