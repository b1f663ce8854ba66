//! The transmit queue of a wire: limits, and the discipline that manages it.
//!
//! Super-frames count as their single frames, and each of those is judged separately: a run is
//! split only where its frames are treated differently.

mod codel;
mod departures;
mod flows;
mod red;

use core::ops::{AddAssign, SubAssign};
use std::collections::VecDeque;

use crate::drop_reason::DropReason;
use crate::element::Place;
use crate::engine::context::Context;
use crate::frame::packet::{self, Ecn};
use crate::frame::segment;
use crate::frame::{Frame, Pool};
use crate::ledger::Tally;
use crate::link::charge::Charge;
use crate::link::in_flight::InFlight;
use crate::link::serializer::Serializer;
use crate::random::Stream;
use crate::settings::{Discipline, QueueSettings};
use codel::{Backlog, CoDel, Law};
use departures::Departures;
use flows::Flows;
use red::{Red, Verdict};

/// The queue of one wire.
pub(crate) struct Queue {
    limits: Limits,
    totals: Totals,
    charge: Charge,
    ecn: bool,
    /// Octets of the largest frame seen.
    largest: u64,
    dice: Stream,
    kind: Kind,
    departures: Departures,
}

enum Kind {
    Tail(VecDeque<InFlight>),
    Red(Box<Red>, VecDeque<InFlight>),
    CoDel(Law, CoDel, Backlog),
    Flows(Box<Flows>),
}

/// Totals of the queued frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub tally: Tally,
    /// Octets that the wire will be charged for them.
    pub charged: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.tally += other.tally;
        self.charged += other.charged;
    }
}

impl SubAssign for Totals {
    fn sub_assign(&mut self, other: Self) {
        self.tally -= other.tally;
        self.charged -= other.charged;
    }
}

/// Limits of the queue. The largest number means no limit.
#[derive(Clone, Copy, Debug)]
struct Limits {
    frames: u64,
    octets: u64,
    charged: u64,
}

impl Limits {
    fn new(settings: &QueueSettings, serializer: &Serializer) -> Self {
        let charged = settings.time_ns.zip(serializer.mean()).map(|(time, rate)| {
            let octets = u128::from(time) * u128::from(rate) / 8_000_000_000;
            u64::try_from(octets).unwrap_or(u64::MAX)
        });
        Self {
            frames: settings.packets.map_or(u64::MAX, u64::from),
            octets: settings.octets.unwrap_or(u64::MAX),
            charged: charged.unwrap_or(u64::MAX),
        }
    }

    /// The limits above which drop-tail marks.
    fn half(self) -> Self {
        Self { frames: self.frames / 2, octets: self.octets / 2, charged: self.charged / 2 }
    }

    fn exceeded(&self, totals: &Totals) -> bool {
        let Totals { tally, charged } = totals;
        tally.frames > self.frames || tally.octets > self.octets || *charged > self.charged
    }

    /// Number of frames of a run that fit into the queue.
    fn free(&self, totals: &Totals, frame: &Frame, charge: Charge) -> u16 {
        let sizes = frame.sizes();
        let fit = |free: u64, cost: &dyn Fn(u32) -> u64| {
            let fulls = u64::from(sizes.fulls);
            let fit = free.checked_div(cost(sizes.full)).unwrap_or(fulls).min(fulls);
            let tail = sizes.tail > 0 && fit == fulls;
            fit + u64::from(tail && free - fit * cost(sizes.full) >= cost(sizes.tail))
        };
        let mut free = self.frames.saturating_sub(totals.tally.frames);
        if self.octets < u64::MAX {
            free = free.min(fit(self.octets.saturating_sub(totals.tally.octets), &u64::from));
        }
        if self.charged < u64::MAX {
            let one = |octets| charge.of_frame(octets);
            free = free.min(fit(self.charged.saturating_sub(totals.charged), &one));
        }
        u16::try_from(free).unwrap_or(u16::MAX).min(frame.count)
    }
}

/// Environment of a discipline, beside its own state.
struct QueueContext<'a, 'b> {
    context: &'a mut Context<'b>,
    place: Place,
    totals: &'a mut Totals,
    charge: Charge,
    ecn: bool,
}

impl QueueContext<'_, '_> {
    fn came(&mut self, frame: &Frame) {
        *self.totals += self.charge.totals(frame);
    }

    fn went(&mut self, frame: &Frame) {
        *self.totals -= self.charge.totals(frame);
    }

    /// Marks a frame or a run if ECN is enabled and its flow is ECN-capable; otherwise returns it
    /// unchanged.
    fn mark(&mut self, flight: InFlight) -> Result<InFlight, InFlight> {
        let frame = flight.frame;
        let octets = &self.context.pool.octets(frame.buffer)[..frame.length as usize];
        let state = if self.ecn { packet::ecn(octets) } else { Ecn::Incapable };
        let frame = match state {
            Ecn::Incapable => return Err(flight),
            Ecn::Marked => frame,
            Ecn::Capable => {
                let pool = &mut *self.context.pool;
                let alone = frame.is_whole() && pool.users(frame.buffer) == 1;
                let frame = if alone { frame } else { segment::detach(&frame, pool) };
                packet::mark(&mut pool.octets_mut(frame.buffer)[..frame.length as usize]);
                frame
            }
        };
        self.context.ledger.wire(self.place).marked += Tally::of(&frame);
        Ok(InFlight { frame, ..flight })
    }

    /// Splits a run after its first `count` frames; either part may be empty.
    fn split(&mut self, flight: InFlight, count: u16) -> (Option<InFlight>, Option<InFlight>) {
        let frame = flight.frame;
        if count == 0 {
            return (None, Some(flight));
        }
        if count >= frame.count {
            return (Some(flight), None);
        }
        let (head, rest) = flight.split(count, self.context.pool);
        (Some(head), Some(rest))
    }
}

/// Removes the first frame of a queue; with `whole`, the run that it belongs to.
fn pop(waiting: &mut VecDeque<InFlight>, pool: &mut Pool, whole: bool) -> Option<InFlight> {
    let next = waiting.front_mut().filter(|next| !whole && next.frame.count > 1);
    let Some(next) = next else { return waiting.pop_front() };
    let (first, rest) = next.split(1, pool);
    *next = rest;
    Some(first)
}

/// Borrows the fields of a queue that a queue_context needs, without its discipline.
macro_rules! queue_context {
    ($queue:ident, $context:ident, $place:ident) => {
        QueueContext {
            context: $context,
            place: $place,
            totals: &mut $queue.totals,
            charge: $queue.charge,
            ecn: $queue.ecn,
        }
    };
}

impl Queue {
    /// Creates a queue with its own random stream.
    pub fn new(settings: &QueueSettings, serializer: &Serializer, charge: Charge, mut dice: Stream) -> Self {
        let kind = Kind::new(&settings.discipline, serializer, dice.bits());
        Self {
            limits: Limits::new(settings, serializer),
            totals: Totals::default(),
            charge,
            ecn: settings.ecn,
            largest: 0,
            dice,
            kind,
            departures: Departures::default(),
        }
    }

    /// Applies new settings. Queued frames stay in order, even if they exceed the new limits; a
    /// discipline whose own settings change is reset.
    pub fn change(
        &mut self,
        context: &mut Context,
        place: Place,
        old: &QueueSettings,
        new: &QueueSettings,
        serializer: &Serializer,
        charge: Charge,
    ) {
        let mut waiting = VecDeque::new();
        while let Some(flight) = self.take_any(context, place) {
            waiting.push_back(flight);
        }
        if old.discipline != new.discipline {
            self.kind = Kind::new(&new.discipline, serializer, self.dice.bits());
        } else if let Kind::Red(red, _) = &mut self.kind {
            red.follow(serializer);
        }
        (self.limits, self.charge, self.ecn) = (Limits::new(new, serializer), charge, new.ecn);
        let unlimited = Limits { frames: u64::MAX, octets: u64::MAX, charged: u64::MAX };
        for flight in waiting {
            let (mut queue_context, kind) = (queue_context!(self, context, place), &mut self.kind);
            match kind {
                Kind::Flows(flows) => flows.put(&mut queue_context, &unlimited, flight, 0),
                Kind::CoDel(_, _, backlog) => {
                    queue_context.came(&flight.frame);
                    backlog.put(flight);
                }
                Kind::Tail(waiting) | Kind::Red(_, waiting) => {
                    queue_context.came(&flight.frame);
                    waiting.push_back(flight);
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.totals.tally.frames == 0
    }

    /// True if it sends the frames in the order in which they came, whatever comes behind them.
    /// Frames that need not wait may then bypass it, and it can tell how full it was since a frame
    /// last came.
    pub fn is_fifo(&self) -> bool {
        matches!(self.kind, Kind::Tail(_))
    }

    /// The frame that is sent next, if no later frame can be sent before it.
    pub fn front(&self) -> Option<&InFlight> {
        match &self.kind {
            Kind::Tail(waiting) => waiting.front(),
            _ => None,
        }
    }

    pub fn tally(&self) -> Tally {
        self.totals.tally
    }

    /// Calls `visit` for all queued frames.
    pub fn visit(&self, visit: &mut dyn FnMut(&Frame)) {
        match &self.kind {
            Kind::Tail(waiting) | Kind::Red(_, waiting) => waiting.iter().for_each(|m| visit(&m.frame)),
            Kind::CoDel(_, _, backlog) => backlog.waiting.iter().for_each(|m| visit(&m.frame)),
            Kind::Flows(flows) => flows.iter().for_each(|m| visit(&m.frame)),
        }
    }

    /// Enqueues a run. The first `exempt` frames do not wait, so no limit applies to them.
    pub fn put(&mut self, context: &mut Context, place: Place, flight: InFlight, exempt: u16) {
        let sizes = flight.frame.sizes();
        let largest = if sizes.fulls > 0 { sizes.full } else { sizes.tail };
        self.largest = self.largest.max(u64::from(largest));
        if flight.frame.count == 1 && !self.ecn && self.put_segment(&flight, context.pool) {
            return;
        }
        let mut queue_context = queue_context!(self, context, place);
        match &mut self.kind {
            Kind::Tail(waiting) => {
                let Some(flight) = admit(&mut queue_context, &self.limits, flight, exempt) else { return };
                let calm = if queue_context.ecn {
                    self.limits
                        .half()
                        .free(queue_context.totals, &flight.frame, queue_context.charge)
                        .max(exempt)
                } else {
                    u16::MAX
                };
                let (calm, crowded) = queue_context.split(flight, calm);
                let crowded =
                    crowded.map(|flight| queue_context.mark(flight).unwrap_or_else(|flight| flight));
                for flight in [calm, crowded].into_iter().flatten() {
                    queue_context.came(&flight.frame);
                    waiting.push_back(flight);
                }
            }
            Kind::CoDel(_, _, backlog) => {
                if let Some(flight) = admit(&mut queue_context, &self.limits, flight, exempt) {
                    queue_context.came(&flight.frame);
                    backlog.put(flight);
                }
            }
            Kind::Flows(flows) => flows.put(&mut queue_context, &self.limits, flight, exempt),
            Kind::Red(red, waiting) => {
                put_by_red(&mut queue_context, red, &mut self.dice, &self.limits, waiting, flight, exempt);
            }
        }
    }

    /// Enqueues a frame if it fits into a drop-tail queue, where a segment joins those before it.
    fn put_segment(&mut self, flight: &InFlight, pool: &mut Pool) -> bool {
        let Kind::Tail(waiting) = &mut self.kind else { return false };
        let mut totals = self.totals;
        totals += self.charge.totals(&flight.frame);
        if self.limits.exceeded(&totals) {
            return false;
        }
        self.totals = totals;
        match waiting.back_mut() {
            // All have arrived: the times of those that have not differ.
            Some(back)
                if flight.frame.follows(&back.frame) && back.at == back.last && flight.at == flight.last =>
            {
                back.frame.count += 1;
                pool.release(flight.frame.buffer);
            }
            _ => waiting.push_back(*flight),
        }
        true
    }

    /// Dequeues the next frame for the wire; with `whole`, the run that it belongs to.
    pub fn take(&mut self, context: &mut Context, place: Place, whole: bool) -> Option<InFlight> {
        let mut queue_context = queue_context!(self, context, place);
        match &mut self.kind {
            Kind::Tail(waiting) => {
                let flight = pop(waiting, queue_context.context.pool, whole)?;
                let left = queue_context.charge.totals(&flight.frame);
                *queue_context.totals -= left;
                self.departures.add(context.now, left);
                Some(flight)
            }
            Kind::Red(red, waiting) => {
                let flight = pop(waiting, queue_context.context.pool, whole)?;
                queue_context.went(&flight.frame);
                if waiting.is_empty() {
                    red.idle(queue_context.context.now);
                }
                Some(flight)
            }
            Kind::CoDel(law, codel, backlog) => {
                codel.take(&mut queue_context, *law, backlog, self.largest, whole)
            }
            Kind::Flows(flows) => flows.take(&mut queue_context, self.largest, whole),
        }
    }

    /// Dequeues any frame, without queue management.
    pub fn take_any(&mut self, context: &mut Context, place: Place) -> Option<InFlight> {
        let mut queue_context = queue_context!(self, context, place);
        match &mut self.kind {
            Kind::Tail(waiting) | Kind::Red(_, waiting) => {
                let flight = waiting.pop_front()?;
                queue_context.went(&flight.frame);
                Some(flight)
            }
            Kind::CoDel(_, _, backlog) => backlog.pop(&mut queue_context, true),
            Kind::Flows(flows) => flows.take_any(&mut queue_context),
        }
    }
}

impl Kind {
    fn new(discipline: &Discipline, serializer: &Serializer, salt: u64) -> Self {
        match *discipline {
            Discipline::DropTail => Self::Tail(VecDeque::new()),
            Discipline::Red { min_octets, max_octets, probability, weight } => {
                let red = Red::new(min_octets, max_octets, probability, weight, serializer);
                Self::Red(Box::new(red), VecDeque::new())
            }
            Discipline::CoDel { target_ns, interval_ns } => {
                Self::CoDel(Law::new(target_ns, interval_ns), CoDel::default(), Backlog::default())
            }
            Discipline::FqCoDel { target_ns, interval_ns, quantum, flows } => {
                let law = Law::new(target_ns, interval_ns);
                Self::Flows(Box::new(Flows::new(law, quantum, flows, salt)))
            }
        }
    }
}

/// Enqueues as much of a run as fits, and drops the rest.
fn admit(
    queue_context: &mut QueueContext,
    limits: &Limits,
    flight: InFlight,
    exempt: u16,
) -> Option<InFlight> {
    let fit = limits.free(queue_context.totals, &flight.frame, queue_context.charge).max(exempt);
    let (fits, rest) = queue_context.split(flight, fit);
    if let Some(flight) = rest {
        queue_context.context.drop(queue_context.place, flight.frame, DropReason::QueueFull);
    }
    fits
}

/// Enqueues a run, judged frame by frame; consecutive accepted frames stay together.
fn put_by_red(
    queue_context: &mut QueueContext,
    red: &mut Red,
    dice: &mut Stream,
    limits: &Limits,
    waiting: &mut VecDeque<InFlight>,
    flight: InFlight,
    exempt: u16,
) {
    let mut rest = Some(flight);
    let mut exempt = exempt;
    let mut passed = 0;
    while let Some(flight) = rest.take() {
        // Number of frames accepted before the first that is not.
        let mut octets = queue_context.totals.tally.octets;
        let mut verdict = Verdict::Pass;
        while verdict == Verdict::Pass && passed < flight.frame.count {
            verdict = red.judge(queue_context.context.now, octets, dice);
            octets += u64::from(flight.frame.segment_octets(flight.frame.first + passed));
            passed += u16::from(verdict == Verdict::Pass);
        }
        let (run, after) = queue_context.split(flight, passed);
        if let Some(run) = run {
            if let Some(run) = admit(queue_context, limits, run, exempt) {
                queue_context.came(&run.frame);
                waiting.push_back(run);
            }
            exempt = exempt.saturating_sub(passed);
            passed = 0;
        }
        let Some(after) = after else { return };
        let (one, after) = queue_context.split(after, 1);
        rest = after;
        let Some(one) = one else { return };
        let marked = if verdict == Verdict::Signal { queue_context.mark(one) } else { Err(one) };
        match marked {
            Err(one) => queue_context.context.drop(queue_context.place, one.frame, DropReason::EarlyDrop),
            Ok(one) => {
                if let Some(one) = admit(queue_context, limits, one, exempt) {
                    queue_context.came(&one.frame);
                    waiting.push_back(one);
                }
                exempt = exempt.saturating_sub(1);
            }
        }
    }
}
