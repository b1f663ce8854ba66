//! Segments that gather at the far end of a wire, to be handed over together.
//!
//! Only plain wires with a constant rate gather: what the others do to each frame may concern the
//! times between frames.

use super::Wire;
use crate::engine::context::Context;
use crate::frame::{Checksum, Frame, Protocol};
use crate::link::in_flight::{InFlight, MOST_TOGETHER};
use crate::settings::Late;
use crate::time::{Instant, Span};

/// Segments of which super-frames may be handed over together to a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gathers {
    /// Of TCP super-frames.
    pub tcp: bool,
    /// Datagrams of UDP super-frames.
    pub udp: bool,
}

impl Gathers {
    /// True if segments of `frame` may be handed over together.
    pub(crate) fn takes(self, frame: &Frame) -> bool {
        frame.segmentation.is_some_and(|cut| match cut.protocol {
            Protocol::Tcp4 | Protocol::Tcp6 => self.tcp,
            Protocol::Udp => self.udp,
        })
    }
}

impl Wire {
    /// Sets the segments that may be handed over together from now on.
    pub fn let_gather(&mut self, gathers: Gathers) {
        self.gathers = gathers;
        self.coalesce = self.gathers_for();
    }

    /// Time for which the settings let segments be gathered at the far end.
    pub(super) fn gathers_for(&self) -> Span {
        let plain = !self.impairments.any && !self.receiver.any() && self.gap == Span::ZERO;
        let paced = self.serializer.length(0).is_some() && self.settings.late != Late::Slip;
        let gathers = self.gathers != Gathers::default() && plain && paced && !self.carried;
        Span::from_nanos(if gathers { self.settings.coalesce_ns } else { 0 })
    }

    /// True of segments that may be handed over together at the far end.
    pub(super) fn is_gathered(&self, frame: &Frame) -> bool {
        self.coalesce > Span::ZERO && self.gathers.takes(frame)
    }

    /// True of frames that keep their times however late they are handed over: segments that may be
    /// handed over together, a single TCP segment where others may, and at a node that forwards, TCP and
    /// UDP of which it sends on what it got.
    pub(super) fn keeps_times(&self, frame: &Frame) -> bool {
        let alone = frame.checksum.is_some_and(|checksum| {
            !self.waits_for_last || (self.gathers.tcp && checksum.offset == Checksum::TCP)
        });
        self.coalesce > Span::ZERO && (alone || self.gathers.takes(frame))
    }

    /// Time for which segments are gathered with `frame` at the far end now.
    pub(super) fn gather_span(&self, frame: &Frame) -> Span {
        if self.is_gathered(frame) { self.load.span(self.coalesce) } else { Span::ZERO }
    }

    /// Holds the earliest frame back while segments that follow it are on the wire or at the front
    /// of the queue. The segments in flight are `frame`, the last of which is due at `due`. Returns
    /// until when they are held back.
    pub(super) fn gather(&mut self, due: Instant, frame: &Frame) -> Instant {
        let mut until = due;
        if let (Some(InFlight { frame: next, .. }), Some(first)) = (self.queue.front(), self.in_flight.next())
            && self.gathers.takes(frame)
            && next.follows(frame)
            && let Some(each) = self.serializer.length(self.charge.of_frame(next.segment_octets(next.first)))
        {
            let room = u64::from(MOST_TOGETHER.saturating_sub(frame.count));
            // Times on the wire are rounded up.
            let most = (first + self.load.span(self.coalesce)).since(due).nanos() / (each.nanos() + 1);
            let alike = u64::from(next.sizes().fulls.max(1));
            until = due + Span::from_nanos(each.nanos() * most.min(alike).min(room));
        }
        if self.coalesce > Span::ZERO {
            self.in_flight.hold(until);
        }
        until
    }

    /// Hands over the earliest frame, with the segments that follow it up to `due`.
    pub(super) fn hand_over_run(&mut self, context: &mut Context, due: Instant, frame: Frame) {
        let gathered = context.arrivals.len();
        let Some(flight) = self.in_flight.take(frame.count, context.arrivals, context.pool) else { return };
        let timed = context.arrivals.len() > gathered;
        // A frame that is handed over late tells its time, unless times are not to be kept.
        let coalesce = self.settings.coalesce_ns;
        let overdue = || self.wall(context).is_some_and(|wall| wall.since(due).nanos() > coalesce);
        let late = frame.count == 1 && coalesce > 0 && (due < context.now || overdue());
        if late && !timed {
            context.arrivals.push(due);
        }
        let tells = late || (timed && frame.count > 1);
        self.hand_over(context, flight, due, tells.then_some(gathered));
    }
}
