//! Engine state that an element can access while it handles an event.

use std::collections::VecDeque;

use crate::calendar::{Calendar, Class};
use crate::drop_reason::DropReason;
use crate::egress::{Clock, Delivery, Egress};
use crate::element::{End, Place, PortId};
use crate::frame::{Frame, Pool};
use crate::ledger::{Ledger, Tally};
use crate::link::in_flight::InFlight;
use crate::link::load::Gathering;
use crate::time::Instant;

/// An event of the calendar. Kept small, because the calendar moves it in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Frames offered at a port are due to enter.
    Enter(u32),
    /// Frames in flight on a wire are due at its far end.
    Arrive(u32),
    /// A wire has finished a transmission, and more frames are waiting.
    Release(u32),
    /// An event of a radio medium is due.
    Medium(u32),
    /// A scheduled change is due.
    Change(u32),
    /// An area learns that the link of an inner wire is up, or down if the wire is odd.
    Converge(u32),
}

/// Sources of events, which order events of one instant: ports first, then wires, then media.
pub(crate) mod source {
    pub const CHANGE: u32 = 0;
    pub const PORT: u32 = 0;
    pub const WIRE: u32 = 1 << 30;
    pub const MEDIUM: u32 = 1 << 31;
}

/// A frame that has reached one end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOver {
    pub end: End,
    /// The wire that carried it.
    pub wire: u32,
    pub flight: InFlight,
    /// When the frame was due; earlier than now if the host is late.
    pub due: Instant,
    /// Where the arrival times of its segments begin in [`Context::arrivals`], if they came one
    /// after the other.
    pub gathered: Option<usize>,
}

/// The parts of the engine that all elements share, borrowed while one event is handled.
pub(crate) struct Context<'a> {
    pub now: Instant,
    pub calendar: &'a mut Calendar<Event>,
    pub pool: &'a mut Pool,
    pub ledger: &'a mut Ledger,
    /// Frames that reached the end of a link at this instant and await processing.
    pub work: &'a mut VecDeque<HandOver>,
    /// Arrival times of segments that are handed over together.
    pub arrivals: &'a mut Vec<Instant>,
    pub egress: &'a mut dyn Egress,
    /// The clock that drives the engine; `None` if the engine is stepped.
    pub clock: Option<&'a dyn Clock>,
    /// How segments are gathered on busy wires.
    pub gathering: Gathering,
    /// Set by an element that changed a state that shortcuts through switches depend on.
    pub ways_changed: bool,
}

impl Context<'_> {
    /// Delivers a frame to a port's node; `gathered` as in [`HandOver`].
    pub fn deliver(&mut self, port: PortId, due: Instant, frame: Frame, gathered: Option<usize>) {
        let delivery = match gathered {
            None => self.egress.deliver(port, due, &frame, self.pool),
            Some(from) => {
                let arrivals = &self.arrivals[from..from + usize::from(frame.count)];
                self.egress.deliver_run(port, arrivals, &frame, self.pool)
            }
        };
        self.settle(port, frame, delivery);
    }

    /// Records the outcome of a delivery, and releases the frame.
    pub fn settle(&mut self, port: PortId, frame: Frame, delivery: Delivery) {
        let (taken, loss) = match delivery {
            Delivery::Taken => (frame.count, None),
            Delivery::Partly(taken, loss) => (taken.min(frame.count), Some(loss)),
            Delivery::Lost(loss) => (0, Some(loss)),
            Delivery::NotUp => return self.drop(Place::Port(port), frame, DropReason::NotUp),
        };
        if taken > 0 {
            let tally = Tally::of(&frame.part(frame.first, taken));
            self.ledger.delivered += tally;
            self.ledger.ports[port.index()].delivered += tally;
        }
        if let (Some(loss), true) = (loss, taken < frame.count) {
            let lost = frame.part(frame.first + taken, frame.count - taken);
            self.ledger.lose(port, loss, Tally::of(&lost));
        }
        self.pool.release(frame.buffer);
    }

    /// Drops a frame for a reason.
    pub fn drop(&mut self, place: Place, frame: Frame, why: DropReason) {
        self.drop_at(place, self.now, frame, why);
    }

    /// Drops a frame that came at `at`, which may have passed.
    pub fn drop_at(&mut self, place: Place, at: Instant, frame: Frame, why: DropReason) {
        self.ledger.drop(place, why, Tally::of(&frame));
        self.egress.dropped(place, at, &frame, why, self.pool);
        self.pool.release(frame.buffer);
    }

    /// Counts a copy of a frame; the copy shares its buffer.
    pub fn copy(&mut self, frame: &Frame) {
        self.ledger.copies += Tally::of(frame);
        self.pool.share(frame.buffer);
    }

    /// Adds an event of a wire to the calendar.
    pub fn at(&mut self, at: Instant, class: Class, source: u32, event: Event) {
        // What a wire catches up with may have been due already.
        self.calendar.push(at.max(self.calendar.now()), class, source, event);
    }

    /// Adds an event of a wire that has no effect outside before a later event.
    pub fn quietly_at(&mut self, at: Instant, class: Class, source: u32, event: Event) {
        self.calendar.push_quiet(at.max(self.calendar.now()), class, source, event);
    }
}
