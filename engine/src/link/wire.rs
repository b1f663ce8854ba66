//! One direction of a link: queue, serialization, then propagation.
//!
//! A frame waits in the queue until the wire is free, occupies the wire for the time that its
//! octets and the overhead take at the rate, and reaches the far end after the propagation delay:
//! store and forward, without a token bucket that would allow bursts. The end of a transmission is
//! known at its start, so an idle wire costs one event of the calendar for each frame, a busy one
//! two. A wire that sends in advance saves the second one: see `ahead`.
//!
//! # What a change does
//!
//! A change applies to transmissions that begin after it: frames in flight keep their arrival time,
//! and the frame being sent keeps its rate. Queued frames are sent by the new settings. If the
//! delay becomes shorter, later frames still do not overtake earlier ones, unless `jitter_reorders`
//! allows it.
//!
//! A link that goes down loses all frames that are queued, being sent or in flight, like a cut
//! cable; while it is down, arriving frames are dropped too. All of them count as `link-down`.

mod accept;
mod ahead;
pub(crate) mod gather;
mod launch;
mod pace;
mod past;

use crate::calendar::Class;
use crate::deadline::Deadline;
use crate::drop_reason::DropReason;
use crate::element::{Direction, End, LinkId, Place, PortId};
use crate::engine::context::{Context, Event, HandOver, source};
use crate::frame::{ETHERNET_HEADER, Frame};
use crate::ledger::Tally;
use crate::link::bucket::Bucket;
use crate::link::charge::Charge;
use crate::link::impairments::Impairments;
use crate::link::in_flight::{InFlight, InFlightQueue};
use crate::link::load::Load;
use crate::link::pacing::Pacing;
use crate::link::queue::Queue;
use crate::link::receiver::Receiver;
use crate::link::serializer::Serializer;
use crate::link::wire::gather::Gathers;
use crate::random::Stream;
use crate::settings::{Carrier, Jitter, Late, LinkSettings, Segments};
use crate::time::{Instant, Span};

/// Context of a wire in its engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WirePlace<'a> {
    pub number: u32,
    /// Name of the link.
    pub name: &'a str,
    /// Seed of the run; the wire's random stream derives from it and the name.
    pub seed: u64,
    /// True if the wire leads away from a port.
    pub begins: bool,
    pub to: End,
    /// True if the far end takes a carried super-frame when its last segment has arrived, rather
    /// than its first.
    pub waits_for_last: bool,
    /// What the far end may receive together.
    pub gathers: Gathers,
}

/// Time from the end of a frame's transmission to its arrival at the far end.
fn delay(settings: &LinkSettings) -> Span {
    Span::from_nanos(settings.delay_ns.saturating_add(settings.receiver.latency_ns))
}

/// The policer of a link, with a full bucket.
fn policer(settings: &LinkSettings) -> Option<Bucket> {
    settings.policer.as_ref().map(|policer| Bucket::new(policer.bits_per_second, policer.burst_octets))
}

/// One direction of a link.
pub(crate) struct Wire {
    number: u32,
    place: Place,
    begins: bool,
    to: End,
    waits_for_last: bool,
    gathers: Gathers,
    up: bool,
    /// True if frames pass at once and unchanged: see [`Wire::is_bare`].
    bare: bool,
    settings: Box<LinkSettings>,
    serializer: Serializer,
    charge: Charge,
    delay: Span,
    /// Copy of a setting that every frame needs.
    mtu: u32,
    carried: bool,
    queue: Queue,
    policer: Option<Bucket>,
    impairments: Impairments,
    receiver: Receiver,
    /// Pause of the sender after a frame.
    gap: Span,
    /// When the wire becomes free.
    free: Instant,
    /// Time for which transmissions until `free` have occupied the wire.
    occupied: Span,
    /// End of a pause that began while there was nothing to send.
    shut: Instant,
    deadline: Deadline,
    in_flight: InFlightQueue,
    /// Time for which segments are gathered at the far end while there is no load.
    coalesce: Span,
    load: Load,
    /// True if frames may be sent in advance: see [`Wire::looks_ahead`].
    ahead: bool,
    /// When a queued frame was last sent other than in advance.
    began: Instant,
    /// When the state of the wire last changed.
    changed: Instant,
    /// When it last changed other than by sending from the queue.
    entered: Instant,
    /// When the last frame in order arrives: no later frame may arrive earlier.
    newest: Instant,
    /// Segments of the current run that are to be sent again.
    again: Vec<Frame>,
    pacing: Pacing,
}

impl Wire {
    pub fn new(place: WirePlace, settings: &LinkSettings, now: Instant) -> Self {
        let WirePlace { number, name, seed, begins, to, waits_for_last, gathers } = place;
        let direction = if number % 2 == 0 { Direction::Forward } else { Direction::Backward };
        let stream = |use_: &str| Stream::named(seed, &format!("link {name} {} {use_}", direction.name()));
        let serializer = Serializer::new(&settings.rate, now, now);
        let charge = Charge::new(settings);
        let mut wire = Self {
            number,
            place: Place::Link(LinkId(number / 2), direction),
            begins,
            to,
            waits_for_last,
            gathers,
            up: true,
            bare: false,
            queue: Queue::new(&settings.queue, &serializer, charge, stream("queue")),
            policer: policer(settings),
            impairments: Impairments::new(stream("wire"), settings),
            receiver: Receiver::new(stream("receiver"), &settings.receiver),
            gap: Span::from_nanos(settings.gap_ns),
            serializer,
            charge,
            delay: delay(settings),
            mtu: settings.mtu,
            carried: settings.segments == Segments::Carried,
            settings: Box::new(settings.clone()),
            free: now,
            occupied: Span::ZERO,
            shut: now,
            deadline: Deadline::default(),
            in_flight: InFlightQueue::default(),
            coalesce: Span::ZERO,
            load: Load::default(),
            ahead: false,
            began: Instant::ZERO,
            changed: now,
            entered: now,
            newest: now,
            again: Vec::new(),
            pacing: Pacing::new(settings.late),
        };
        wire.coalesce = wire.gathers_for();
        wire.ahead = wire.looks_ahead();
        wire.bare = wire.is_bare(now);
        wire
    }

    /// Least time from the entry of a frame to its arrival at the far end.
    pub fn lookahead(&self) -> Span {
        if matches!(self.settings.jitter, Jitter::None) { self.delay } else { Span::ZERO }
    }

    /// True if the link is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The port at the far end, if the carrier of its interface follows the link.
    pub fn carrier_port(&self) -> Option<PortId> {
        match (self.to, self.settings.carrier) {
            (End::Port(port), Carrier::Follow) => Some(port),
            _ => None,
        }
    }

    /// The element at the far end.
    pub fn end(&self) -> End {
        self.to
    }

    /// True if a shortcut may start at this wire.
    pub fn may_begin(&self) -> bool {
        self.begins || !self.bare
    }

    /// If this wire is transparent and ends at a switch, the largest frame it passes, in octets.
    pub fn switch_mtu(&self) -> Option<u32> {
        (self.bare && matches!(self.to, End::Switch(_))).then_some(self.largest_frame())
    }

    /// Octets of the largest frame without a VLAN tag that the MTU lets pass.
    fn largest_frame(&self) -> u32 {
        self.mtu + ETHERNET_HEADER
    }

    /// True if the wire delivers frames to a node and does not recover lateness.
    pub fn slips(&self) -> bool {
        self.settings.late == Late::Slip && matches!(self.to, End::Port(_))
    }

    /// Calls `visit` for all frames queued and in flight.
    pub fn visit(&self, visit: &mut dyn FnMut(&Frame)) {
        self.queue.visit(visit);
        self.in_flight.iter().for_each(|flight| visit(&flight.frame));
    }

    /// The frames in the queue at `now`.
    pub fn queued(&self, now: Instant) -> Tally {
        self.queue.tally_at(now)
    }

    /// Time until `now` for which frames occupied the wire, with their overhead and the gap behind them.
    ///
    /// Transmissions that were begun in advance follow each other without a gap until the wire is free.
    /// After a pause of a wire whose host was late it lags behind by the pause until the wire is free.
    pub fn busy(&self, now: Instant) -> Span {
        self.occupied.saturating_sub(self.free.since(now))
    }

    /// Lets the wire lead to another end, which gets the frames in flight too.
    pub fn lead_to(&mut self, now: Instant, to: End, waits_for_last: bool, gathers: Gathers) {
        (self.to, self.waits_for_last) = (to, waits_for_last);
        self.let_gather(gathers);
        self.bare = self.is_bare(now);
    }

    /// Lets the wire lead away from a port, or from a switch.
    pub fn begin(&mut self, at_port: bool) {
        self.begins = at_port;
    }

    /// Applies new settings.
    pub fn change(&mut self, context: &mut Context, settings: &LinkSettings) {
        self.take_back(context, context.now);
        if settings.rate != self.settings.rate {
            self.serializer = Serializer::new(&settings.rate, context.now, self.free.max(context.now));
        }
        self.charge = Charge::new(settings);
        let old = &self.settings.queue;
        self.queue.change(context, self.place, old, &settings.queue, &self.serializer, self.charge);
        if settings.policer != self.settings.policer {
            self.policer = policer(settings);
        }
        self.impairments.change(settings);
        self.receiver.change(&settings.receiver);
        self.pacing.change(settings.late);
        self.gap = Span::from_nanos(settings.gap_ns);
        self.delay = delay(settings);
        self.mtu = settings.mtu;
        self.carried = settings.segments == Segments::Carried;
        *self.settings = settings.clone();
        self.coalesce = self.gathers_for();
        self.ahead = self.looks_ahead();
        self.entered = context.now;
        self.send_ahead(context);
        self.await_arrival(context);
        self.wake(context);
        self.look_bare(context);
    }

    /// Sets the link up or down.
    pub fn set_up(&mut self, context: &mut Context, up: bool) {
        self.up = up;
        self.entered = context.now;
        self.look_bare(context);
        if up {
            return;
        }
        self.take_back(context, context.now);
        self.in_flight.hold(Instant::ZERO);
        while let Some(flight) = self.in_flight.pop(Instant::NEVER) {
            context.drop(self.place, flight.frame, DropReason::LinkDown);
        }
        while let Some(flight) = self.queue.take_any(context, self.place) {
            context.drop(self.place, flight.frame, DropReason::LinkDown);
        }
        self.free = context.now;
        self.newest = context.now;
        self.receiver.lose();
    }

    /// Accepts a frame from the near end.
    pub fn enter(&mut self, context: &mut Context, flight: InFlight) {
        if flight.at < context.now && flight.last <= context.now {
            self.enter_at(context, flight.at, flight.frame);
            return self.catch_up(context);
        }
        if flight.last <= context.now && self.pass(context, context.now, &flight.frame) {
            return self.await_arrival(context);
        }
        self.entered = context.now;
        let waits = self.accept(context, flight);
        if waits {
            self.send_ahead(context);
        }
        if !self.bare {
            self.await_arrival(context);
        }
        if waits {
            self.wake(context);
        }
    }

    /// Sends queued frames if the wire is free.
    pub fn release(&mut self, context: &mut Context) {
        self.deadline.expired(context.now);
        self.changed = context.now;
        self.send_queued(context);
        self.send_ahead(context);
        self.await_arrival(context);
        self.wake(context);
        self.look_bare(context);
    }

    fn send_queued(&mut self, context: &mut Context) {
        let mut behind = context.now == self.free;
        while context.now >= self.free {
            let Some(flight) = self.queue.take(context, self.place, self.sends_whole()) else { break };
            self.began = context.now;
            self.transmit(context, flight, behind);
            behind = true;
        }
    }

    /// Delivers the frames that are due at the far end.
    pub fn arrive(&mut self, context: &mut Context) {
        self.in_flight.expired(context.now);
        while self.in_flight.next().is_some_and(|due| due <= context.now) {
            let Some((due, frame)) = self.in_flight.run(|frame| self.gather_span(frame)) else { break };
            if self.gather(due, &frame) > context.now {
                break;
            }
            if let Some(open) = self.held_until(context, due, &frame) {
                self.in_flight.hold(open);
                break;
            }
            self.hand_over_run(context, due, frame);
        }
        self.await_arrival(context);
        self.look_bare(context);
    }

    /// Requests an event for the next arrival.
    fn await_arrival(&mut self, context: &mut Context) {
        if self.coalesce > Span::ZERO
            && self.in_flight.is_free(context.now)
            && let Some((due, frame)) = self.in_flight.run(|frame| self.gather_span(frame))
        {
            self.gather(due, &frame);
        }
        if let Some(at) = self.in_flight.arm() {
            context.at(at, Class::Arrival, source::WIRE + self.number, Event::Arrive(self.number));
        }
    }

    /// True if only the MTU is set, and no frame is queued or in flight. Frames that cross many
    /// switches at once miss the CPU caches for most of them, so such a wire answers from few
    /// fields.
    fn is_bare(&self, now: Instant) -> bool {
        self.up
            && self.serializer.is_unlimited()
            && self.delay == Span::ZERO
            && self.gap == Span::ZERO
            && !self.impairments.any
            && !self.receiver.any()
            && self.policer.is_none()
            && self.queue.is_empty()
            && self.in_flight.next().is_none()
            && self.free.max(self.shut).max(self.newest) <= now
    }

    fn look_bare(&mut self, context: &mut Context) {
        self.set_bare(context, self.is_bare(context.now));
    }

    fn set_bare(&mut self, context: &mut Context, bare: bool) {
        if bare != self.bare && matches!(self.to, End::Switch(_)) {
            context.ways_changed = true;
        }
        self.bare = bare;
    }

    /// True if super-frames stay together on this wire.
    fn sends_whole(&self) -> bool {
        self.carried || self.serializer.is_unlimited()
    }

    /// Transmits a frame, or a run that stays together. With `behind` it follows the previous one
    /// without a gap.
    fn transmit(&mut self, context: &mut Context, flight: InFlight, behind: bool) {
        let now = context.now;
        let frame = flight.frame;
        let (mut first, mut last) = self.occupy(now, behind, &frame);
        self.load.sent(now.since(self.free), last.since(now), self.coalesce, context.gathering);
        self.free = last + self.gap;
        self.occupied += self.free.since(now);
        self.serializer.pause(self.gap);
        if flight.last > now {
            // A run that was carried here and whose later segments are still arriving: the wire is
            // charged for them now, but none leaves before it has arrived.
            let each = first.since(now);
            first = first.max(flight.at + each);
            last = last.max(flight.last + each);
        }
        if self.impairments.any {
            self.launch_impaired(context, frame, first, last);
        } else {
            let at = self.order(first + self.delay);
            self.fly(context, InFlight { frame, at, last: last + self.delay });
        }
    }

    /// When the first and the last frame of a run have left that begins to leave at `now`.
    fn occupy(&mut self, now: Instant, behind: bool, frame: &Frame) -> (Instant, Instant) {
        if self.serializer.is_unlimited() {
            return (now, now);
        }
        let all = self.charge.of(frame);
        if frame.count == 1 {
            let left = self.serializer.send(now, behind, all);
            return (left, left);
        }
        let one = self.charge.of_frame(frame.segment_octets(frame.first));
        let first = self.serializer.send(now, behind, one);
        (first, self.serializer.send(first, true, all - one))
    }

    /// Arrival time, delayed so that it is not before that of earlier frames.
    fn order(&mut self, at: Instant) -> Instant {
        if self.impairments.overtakes {
            return at;
        }
        self.newest = self.newest.max(at);
        self.newest
    }

    /// Puts a frame or run in flight.
    fn fly(&mut self, context: &mut Context, flight: InFlight) {
        let last = flight.last.max(flight.at);
        let flight = InFlight { last, ..flight };
        let due = self.receiver.sees(if self.waits_for_last { last } else { flight.at });
        let first = due == context.now && self.in_flight.next().is_none_or(|next| next > due);
        if first && self.held_until(context, due, &flight.frame).is_none() {
            self.hand_over(context, flight, due, None);
        } else {
            self.set_bare(context, false);
            if !self.is_gathered(&flight.frame) || !self.in_flight.extend(due, &flight, context.pool) {
                self.in_flight.add(due, flight);
            }
        }
    }

    fn hand_over(&mut self, context: &mut Context, flight: InFlight, due: Instant, gathered: Option<usize>) {
        if let Some(wall) = self.wall(context)
            && let Some(length) = self.length(&flight.frame)
        {
            let begins = match (self.pacing.rest(wall, due, length), context.clock) {
                (Some(open), Some(clock)) => {
                    clock.wait(open);
                    open
                }
                _ => wall,
            };
            let pause = self.pacing.passed(begins, due, length, !self.keeps_times(&flight.frame));
            self.pause(context, pause);
        }
        context.ledger.wires[self.number as usize].left += Tally::of(&flight.frame);
        context.work.push_back(HandOver { end: self.to, wire: self.number, flight, due, gathered });
    }

    fn wake(&mut self, context: &mut Context) {
        if !self.queue.is_empty() && self.deadline.arm(self.free) {
            let source = source::WIRE + self.number;
            // Frames that leave then arrive after those in flight.
            let in_order = !self.impairments.any && !self.impairments.overtakes;
            if in_order && self.in_flight.is_quiet_until(self.free) {
                context.quietly_at(self.free, Class::Release, source, Event::Release(self.number));
            } else {
                context.at(self.free, Class::Release, source, Event::Release(self.number));
            }
        }
    }
}
