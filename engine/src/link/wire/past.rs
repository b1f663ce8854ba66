//! Frames that came to a wire in the past.
//!
//! Segments that were handed over together come to the next wire together, after most of their
//! instants have passed. The wire then does what it would have done since, in the order of time.

use super::Wire;
use crate::engine::context::Context;
use crate::frame::Frame;
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::time::Instant;

impl Wire {
    /// Accepts a frame that came at `at`, which may have passed, as the wire would have done then;
    /// but not before the last change of its state. [`Wire::catch_up`] must follow.
    pub fn enter_at(&mut self, context: &mut Context, at: Instant, frame: Frame) {
        let now = context.now;
        // A first-in first-out queue sends the same frames whatever enters behind them.
        let known = if self.queue.is_fifo() { self.entered } else { self.changed };
        context.now = at.max(self.entered).max(known).min(now);
        if context.now > at {
            let account = &mut context.ledger.wires[self.number as usize];
            account.late += Tally::of(&frame);
            account.late_most = account.late_most.max(context.now.since(at));
        }
        self.replay(context);
        if self.pass(context, context.now, &frame) {
            context.now = now;
            return;
        }
        let flight = InFlight { frame, at: context.now, last: context.now };
        self.accept(context, flight);
        self.send_ahead(context);
        self.entered = context.now;
        context.now = now;
    }

    /// Does what the wire would have done until now since frames came in the past.
    pub fn catch_up(&mut self, context: &mut Context) {
        self.replay(context);
        self.send_ahead(context);
        self.await_arrival(context);
        self.wake(context);
        self.look_bare(context);
    }

    /// Sends the frames that the wire would have sent until now.
    fn replay(&mut self, context: &mut Context) {
        let now = context.now;
        while !self.queue.is_empty() && self.free <= now {
            context.now = self.free;
            self.changed = context.now;
            self.send_queued(context);
        }
        context.now = now;
    }
}
