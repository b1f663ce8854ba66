//! Frames that enter a wire: they are sent, queued or dropped.

use super::Wire;
use crate::drop_reason::DropReason;
use crate::engine::context::{Context, HandOver};
use crate::frame::{ETHERNET_HEADER, segment};
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;

impl Wire {
    /// Accepts a frame; true if frames may wait in the queue.
    pub(super) fn accept(&mut self, context: &mut Context, mut flight: InFlight) -> bool {
        let tally = Tally::of(&flight.frame);
        let account = &mut context.ledger.wires[self.number as usize];
        account.entered += tally;
        if self.bare && flight.last <= context.now && flight.frame.sizes().largest() <= self.largest_frame() {
            account.left += tally;
            let (end, wire, due) = (self.to, self.number, context.now);
            let flight = InFlight { at: due, last: due, ..flight };
            context.work.push_back(HandOver { end, wire, flight, due, gathered: None });
            return false;
        }
        if !self.up {
            context.drop(self.place, flight.frame, DropReason::LinkDown);
            return false;
        }
        if !self.limit(context, &mut flight) {
            return false;
        }
        let left = self.queue.as_of(context.now);
        let waits = self.police(context, flight);
        if waits {
            let account = &mut context.ledger.wires[self.number as usize];
            let (queue, highest) = (self.queue.tally(), account.queue_highest);
            account.queue_highest.frames = highest.frames.max(queue.frames);
            account.queue_highest.octets = highest.octets.max(queue.octets);
        }
        self.queue.as_it_is(left);
        waits
    }

    /// Drops the frames of a run that the policer does not let pass, and sends or queues the others.
    fn police(&mut self, context: &mut Context, flight: InFlight) -> bool {
        let Some(mut policer) = self.policer.take() else { return self.send_or_queue(context, flight) };
        let mut waits = false;
        let mut rest = Some(flight);
        while let Some(flight) = rest.take() {
            let frame = flight.frame;
            let mut pass = 0;
            while pass < frame.count
                && policer.conforms(context.now, frame.segment_octets(frame.first + pass).into())
            {
                pass += 1;
            }
            let (head, after) = flight.cut(pass, context.pool);
            if let Some(head) = head {
                waits |= self.send_or_queue(context, head);
            }
            // The first of these does not conform.
            if let Some(after) = after {
                let (refused, behind) = after.cut(1, context.pool);
                if let Some(refused) = refused {
                    context.drop(self.place, refused.frame, DropReason::Policed);
                }
                rest = behind;
            }
        }
        self.policer = Some(policer);
        waits
    }

    /// Sends a frame if the wire is free, or else queues it; true if frames may wait in the queue.
    fn send_or_queue(&mut self, context: &mut Context, flight: InFlight) -> bool {
        let whole = self.sends_whole();
        self.delay_by_pause(context);
        if context.now < self.free || !self.queue.is_empty() {
            self.queue.put(context, self.place, flight, 0);
        } else if !self.queue.is_fifo() && !self.serializer.is_unlimited() {
            let exempt = if whole { flight.frame.count } else { 1 };
            self.queue.put(context, self.place, flight, exempt);
            if let Some(flight) = self.queue.take(context, self.place, whole) {
                self.transmit(context, flight, false);
            }
        } else if whole || flight.frame.count == 1 {
            self.transmit(context, flight, false);
            return false;
        } else {
            let (first, rest) = flight.split(1, context.pool);
            self.transmit(context, first, false);
            self.queue.put(context, self.place, rest, 0);
        }
        true
    }

    /// Drops frames larger than the MTU; false if no frame is left. In a run only the last frame
    /// may be small enough.
    fn limit(&self, context: &mut Context, flight: &mut InFlight) -> bool {
        let frame = flight.frame;
        let sizes = frame.sizes();
        let fits = |octets: u32| {
            // For most frames this needs no look at their octets.
            octets <= self.largest_frame() || {
                let start = segment::network(context.pool.octets(frame.buffer))
                    .map_or(ETHERNET_HEADER as usize, |(at, _)| at);
                octets as usize <= self.mtu as usize + start
            }
        };
        if fits(sizes.largest()) {
            return true;
        }
        if sizes.fulls == 0 || sizes.tail == 0 || !fits(sizes.tail) {
            context.drop(self.place, frame, DropReason::TooBig);
            return false;
        }
        let (large, tail) = flight.split(frame.count - 1, context.pool);
        context.drop(self.place, large.frame, DropReason::TooBig);
        *flight = tail;
        true
    }
}
