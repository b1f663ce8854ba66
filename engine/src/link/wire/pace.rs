//! Pacing of a wire whose host is late: see [`crate::link::pacing`].

use super::Wire;
use crate::egress::Clock;
use crate::element::End;
use crate::engine::context::Context;
use crate::frame::Frame;
use crate::link::pacing::Length;
use crate::time::{Instant, Span};

impl Wire {
    /// Until when a frame that is due must wait because the host was late with earlier frames.
    pub(super) fn held_until(&self, context: &Context, due: Instant, frame: &Frame) -> Option<Instant> {
        if self.keeps_times(frame) {
            return None;
        }
        self.pacing.hold(self.wall(context)?, due, self.length(frame)?)
    }

    /// Time of a frame, or a run, on the wire, and the part of it that is gap.
    pub(super) fn length(&self, frame: &Frame) -> Option<Length> {
        let all = self.serializer.length(self.charge.of(frame))?;
        let spare = self.serializer.length(self.charge.spare() * u64::from(frame.count))?;
        Some(Length { all, spare })
    }

    /// Records that the node has received the last frame.
    pub fn handed_over(&mut self, context: &Context) {
        if let Some(wall) = self.wall(context) {
            self.pacing.done(wall);
        }
    }

    /// The wall-clock time, if the wire is paced: it has a rate and ends at a node.
    pub(super) fn wall(&self, context: &Context) -> Option<Instant> {
        let minds = matches!(self.to, End::Port(_)) && self.serializer.length(0).is_some();
        let wall = if minds { context.clock.map(Clock::now) } else { None };
        wall.map(|wall| wall.max(context.now))
    }

    /// Delays queued frames, or frames that arrive during the pause. A wire with nothing to send
    /// loses nothing.
    pub(super) fn pause(&mut self, context: &mut Context, pause: Span) {
        if pause == Span::ZERO {
            return;
        }
        self.take_back_later(context);
        let sent = self.in_flight.last().unwrap_or(Instant::ZERO);
        self.pacing.paused(pause, sent.max(self.free + self.delay));
        if self.free <= context.now && self.queue.is_empty() {
            self.shut = context.now + pause;
            return;
        }
        self.free = self.free.max(context.now) + pause;
        self.serializer.pause(pause);
        context.ledger.wires[self.number as usize].paused += pause;
        self.send_ahead(context);
        self.wake(context);
    }

    /// Delays a frame that arrives during a pause until its end.
    pub(super) fn delay_by_pause(&mut self, context: &mut Context) {
        if self.shut > context.now && self.free <= context.now && self.queue.is_empty() {
            self.serializer.pause(self.shut.since(self.free));
            self.free = self.shut;
            context.ledger.wires[self.number as usize].paused += self.shut.since(context.now);
        }
    }
}
