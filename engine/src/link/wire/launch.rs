//! Transmission on a wire with random impairments, drawn for each frame.

use super::Wire;
use crate::drop_reason::DropReason;
use crate::engine::context::Context;
use crate::frame::Frame;
use crate::frame::segment;
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::time::{Instant, Span};

impl Wire {
    /// Propagates the frames of a run, each with its drawn impairments; the first has left at
    /// `first`, the last at `last`. Consecutive frames with the same impairments stay together.
    pub(super) fn launch_impaired(
        &mut self,
        context: &mut Context,
        frame: Frame,
        first: Instant,
        last: Instant,
    ) {
        let gap = last.since(first).nanos() / u64::from(frame.count - 1).max(1);
        // A run that is carried together has one delay.
        let together = self.carried.then(|| self.impairments.variation());
        let mut run: Option<InFlight> = None;
        for index in 0..frame.count {
            let segment = frame.part(frame.first + index, 1);
            let left = first + Span::from_nanos(gap * u64::from(index));
            let fate = self.impairments.fate();
            if fate.lost {
                context.pool.share(frame.buffer);
                context.drop(self.place, segment, DropReason::RandomLoss);
                self.flush(context, &mut run);
                continue;
            }
            if fate.twice {
                context.copy(&segment);
                self.again.push(segment);
            }
            let at = if fate.early { left } else { self.vary_counted(context, &segment, left, together) };
            if let Some(run) = &mut run {
                if fate.is_plain() && (self.carried || run.at == at) {
                    run.frame.count += 1;
                    run.last = at;
                    continue;
                }
            }
            self.flush(context, &mut run);
            let flight = InFlight { frame: segment, at, last: at };
            if fate.early {
                context.ledger.wires[self.number as usize].reordered += Tally::of(&segment);
            }
            if fate.corrupt {
                context.pool.share(frame.buffer);
                self.fly_corrupted(context, flight);
            } else if fate.early {
                context.pool.share(frame.buffer);
                self.fly(context, flight);
            } else {
                run = Some(flight);
            }
        }
        self.flush(context, &mut run);
        self.send_again(context, last);
        context.pool.release(frame.buffer);
    }

    /// Sends duplicates, each in its own time on the wire.
    fn send_again(&mut self, context: &mut Context, last: Instant) {
        let mut again = core::mem::take(&mut self.again);
        for frame in again.drain(..) {
            let tally = Tally::of(&frame);
            context.ledger.wires[self.number as usize].duplicated += tally;
            let begin = self.free.max(context.now);
            let left = self.serializer.send(begin, true, self.charge.of(&frame));
            self.free = left + self.gap;
            self.occupied += self.free.since(begin);
            self.serializer.pause(self.gap);
            let at = self.vary(left.max(last), None);
            let flight = InFlight { frame, at, last: at };
            if self.impairments.corrupts() {
                self.fly_corrupted(context, flight);
            } else {
                self.fly(context, flight);
            }
        }
        self.again = again;
    }

    /// As [`Wire::vary`]; counts a frame that arrives later than drawn, so as not to overtake another.
    fn vary_counted(
        &mut self,
        context: &mut Context,
        segment: &Frame,
        left: Instant,
        variation: Option<i64>,
    ) -> Instant {
        let variation = variation.unwrap_or_else(|| self.impairments.variation());
        let at = self.vary(left, Some(variation));
        let drawn = left + Span::from_nanos(self.delay.nanos().saturating_add_signed(variation));
        if at > drawn {
            let account = &mut context.ledger.wires[self.number as usize];
            account.held += Tally::of(segment);
            account.held_for += at.since(drawn);
        }
        at
    }

    /// Arrival time of a frame that has left at `left`; `variation` is drawn if it is `None`.
    fn vary(&mut self, left: Instant, variation: Option<i64>) -> Instant {
        let variation = variation.unwrap_or_else(|| self.impairments.variation());
        let delay = self.delay.nanos().saturating_add_signed(variation);
        self.order(left + Span::from_nanos(delay))
    }

    /// Sends the frames that have stayed together so far.
    fn flush(&mut self, context: &mut Context, run: &mut Option<InFlight>) {
        if let Some(flight) = run.take() {
            context.pool.share(flight.frame.buffer);
            self.fly(context, flight);
        }
    }

    /// Flips one bit of a frame whose checksum is completed first, and sends it.
    fn fly_corrupted(&mut self, context: &mut Context, flight: InFlight) {
        let mut frame = segment::detach(&flight.frame, context.pool);
        let octets = &mut context.pool.octets_mut(frame.buffer)[..frame.length as usize];
        if let Some(checksum) = frame.checksum.take() {
            segment::complete_checksum(octets, checksum);
        }
        let (octet, mask) = self.impairments.bit(frame.length);
        octets[octet] ^= mask;
        context.ledger.wires[self.number as usize].corrupted += Tally::of(&frame);
        self.fly(context, InFlight { frame, ..flight });
    }
}
