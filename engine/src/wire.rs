//! One direction of a link: queue, serialization, then propagation.
//!
//! A frame that comes to a wire waits in its queue until the wire is free, occupies the wire for
//! the time that its octets and the overhead take at the rate, and reaches the far end after the
//! propagation delay: store and forward, with no bucket of credit that a burst could spend. The
//! time at which the last bit leaves is known when the first does, so an idle wire costs one
//! event of the calendar for each frame, a busy one two.
//!
//! # What a change does
//!
//! A change takes effect for what begins to be sent after it: what is on its way keeps the time
//! it was given, and the frame being sent keeps its rate. What waits in the queue is sent by the
//! new settings. If the delay becomes shorter, later frames still do not overtake earlier ones,
//! unless `jitter_reorders` allows it.
//!
//! A link that goes down loses what waits, what is being sent and what is on its way, as a cut
//! cable does; while it is down, whatever comes is dropped too. All of it counts as `link-down`.

use crate::alarm::Alarm;
use crate::calendar::Class;
use crate::context::{Arrived, Context, Event, source};
use crate::element::{Direction, End, LinkId, Place};
use crate::fate::Why;
use crate::flights::{Flights, Moving};
use crate::frame::Frame;
use crate::ledger::Tally;
use crate::pace::Pace;
use crate::queue::Queue;
use crate::settings::{LinkSettings, Segments};
use crate::time::{Instant, Span};

/// What a frame costs on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    overhead: u64,
    shortest: u64,
}

impl Charge {
    /// Octets charged for a frame, or for all frames of a run.
    pub fn of(self, frame: &Frame) -> u64 {
        frame.sizes().sum(|octets| u64::from(octets).max(self.shortest) + self.overhead)
    }
}

/// One direction of a link.
pub(crate) struct Wire {
    number: u32,
    place: Place,
    to: End,
    /// Whether the far end wants a carried super-frame when its last segment is there, rather
    /// than its first.
    waits_for_last: bool,
    up: bool,
    pace: Pace,
    charge: Charge,
    delay: Span,
    largest: u32,
    carried: bool,
    queue: Queue,
    /// When the wire is free.
    free: Instant,
    alarm: Alarm,
    flights: Flights,
    /// When the last frame in order arrives: none after it may arrive earlier.
    newest: Instant,
}

impl Wire {
    pub fn new(number: u32, to: End, waits_for_last: bool, settings: &LinkSettings, now: Instant) -> Self {
        let direction = if number % 2 == 0 { Direction::Forward } else { Direction::Backward };
        let pace = Pace::new(&settings.rate, now, now);
        Self {
            number,
            place: Place::Link(LinkId(number / 2), direction),
            to,
            waits_for_last,
            up: true,
            queue: Queue::new(&settings.queue, &pace),
            pace,
            charge: Charge { overhead: settings.overhead.into(), shortest: settings.shortest.into() },
            delay: Span::from_nanos(settings.delay_ns),
            largest: settings.mtu,
            carried: settings.segments == Segments::Carried,
            free: Instant::ZERO,
            alarm: Alarm::default(),
            flights: Flights::default(),
            newest: Instant::ZERO,
        }
    }

    /// The link that this wire belongs to is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// What waits and what is on its way.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.queue.iter().chain(self.flights.iter()).map(|moving| &moving.frame)
    }

    /// Takes new settings.
    pub fn change(&mut self, context: &mut Context, settings: &LinkSettings) {
        self.pace = Pace::new(&settings.rate, context.now, self.free.max(context.now));
        self.queue.change(&settings.queue, &self.pace);
        self.charge = Charge { overhead: settings.overhead.into(), shortest: settings.shortest.into() };
        self.delay = Span::from_nanos(settings.delay_ns);
        self.largest = settings.mtu;
        self.carried = settings.segments == Segments::Carried;
    }

    /// Cuts or mends the wire.
    pub fn set_up(&mut self, context: &mut Context, up: bool) {
        self.up = up;
        if up {
            return;
        }
        while let Some(moving) = self.flights.pop(Instant::NEVER) {
            context.drop(self.place, moving.frame, Why::LinkDown);
        }
        while let Some(moving) = self.queue.take_any() {
            context.drop(self.place, moving.frame, Why::LinkDown);
        }
        self.note_queue(context);
        self.free = context.now;
        self.newest = context.now;
    }

    /// A frame has come to this wire.
    pub fn enter(&mut self, context: &mut Context, moving: Moving) {
        context.ledger.wires[self.number as usize].entered += Tally::of(&moving.frame);
        if !self.up {
            context.drop(self.place, moving.frame, Why::LinkDown);
            return;
        }
        if context.now < self.free || !self.queue.is_empty() {
            self.queue.put(context, self.place, moving, self.charge);
        } else if self.carried || moving.frame.count == 1 || self.pace.is_unlimited() {
            self.transmit(context, moving, false);
            return;
        } else {
            let (first, rest) = moving.split_first(context.pool);
            self.transmit(context, first, false);
            self.queue.put(context, self.place, rest, self.charge);
        }
        self.wake(context);
    }

    /// The wire may be free for what waits.
    pub fn release(&mut self, context: &mut Context) {
        self.alarm.rung(context.now);
        let mut behind = context.now == self.free;
        while context.now >= self.free {
            let whole = self.carried || self.pace.is_unlimited();
            let Some(moving) = self.queue.take(context, whole) else { break };
            self.transmit(context, moving, behind);
            behind = true;
        }
        self.wake(context);
    }

    /// Frames are due at the far end.
    pub fn arrive(&mut self, context: &mut Context) {
        self.flights.rung(context.now);
        while let Some(moving) = self.flights.pop(context.now) {
            self.hand_over(context, moving);
        }
        self.ring(context);
    }

    /// Puts a frame, or a run that stays together, on the wire.
    fn transmit(&mut self, context: &mut Context, moving: Moving, behind: bool) {
        let now = context.now;
        let all = self.charge.of(&moving.frame);
        let count = moving.frame.count;
        let one = if count == 1 { all } else { self.charge.of(&moving.frame.part(moving.frame.first, 1)) };
        let mut first = self.pace.send(now, behind, one);
        let mut last = if count == 1 { first } else { self.pace.send(first, true, all - one) };
        self.free = last;
        if moving.last > now {
            // Carried here as a run whose later segments are still coming: the wire is charged
            // for them now, but none leaves before it has come.
            let each = first.since(now);
            first = first.max(moving.at + each);
            last = last.max(moving.last + each);
        }
        self.launch(context, moving.frame, first, last);
    }

    /// Lets a run propagate whose first and last segments have left at these instants.
    fn launch(&mut self, context: &mut Context, frame: Frame, first: Instant, last: Instant) {
        let at = (first + self.delay).max(self.newest);
        self.newest = at;
        let last = (last + self.delay).max(at);
        let due = if self.waits_for_last { last } else { at };
        let moving = Moving { frame, at, last };
        if due == context.now && self.flights.next().is_none_or(|next| next > due) {
            self.hand_over(context, moving);
        } else if let Some(at) = self.flights.push(due, moving) {
            context.at(at, Class::Arrival, source::WIRE + self.number, Event::Arrive(self.number));
        }
    }

    fn hand_over(&mut self, context: &mut Context, moving: Moving) {
        context.ledger.wires[self.number as usize].left += Tally::of(&moving.frame);
        context.work.push_back(Arrived { end: self.to, wire: self.number, moving });
    }

    fn wake(&mut self, context: &mut Context) {
        if !self.queue.is_empty() && self.alarm.set(self.free) {
            let source = source::WIRE + self.number;
            context.at(self.free, Class::Release, source, Event::Release(self.number));
        }
        self.note_queue(context);
    }

    fn ring(&mut self, context: &mut Context) {
        if let Some(at) = self.flights.ring() {
            context.at(at, Class::Arrival, source::WIRE + self.number, Event::Arrive(self.number));
        }
    }

    fn note_queue(&self, context: &mut Context) {
        let account = &mut context.ledger.wires[self.number as usize];
        let queue = self.queue.tally();
        account.queue = queue;
        account.queue_highest.frames = account.queue_highest.frames.max(queue.frames);
        account.queue_highest.octets = account.queue_highest.octets.max(queue.octets);
    }
}
