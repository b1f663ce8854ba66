//! The transmit queue of a wire: limits, and the discipline that manages it.
//!
//! Super-frames count as their single frames, and each of those is judged separately: a run is
//! split only where its frames are treated differently.

mod cake;
mod classes;
mod codel;
mod departures;
mod dualpi2;
mod flows;
mod judged;
mod limits;
mod pie;
mod red;

use core::ops::{AddAssign, SubAssign};
use std::collections::VecDeque;

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
use cake::{Cake, CakeSettings};
use classes::Classes;
use codel::{Backlog, CoDel, Law};
use departures::Departures;
use dualpi2::{DualPi2, DualPi2Settings};
use flows::Flows;
use judged::{admit, put_by_pie, put_by_red};
use limits::Limits;
use pie::{Pie, PieSettings};
use red::{Red, RedSettings};

/// The queue of one wire.
pub(crate) struct Queue {
    limits: Limits,
    /// Above these a first-in first-out queue marks.
    marks: Limits,
    totals: Totals,
    charge: Charge,
    ecn: bool,
    /// Octets of the largest frame seen.
    largest: u64,
    dice: Stream,
    kind: Kind,
    departures: Departures,
}

/// Decision of queue management on an arriving frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Mark it if possible, otherwise drop it.
    Signal,
    Drop,
}

enum Kind {
    Tail(VecDeque<InFlight>),
    Red(Box<Red>, VecDeque<InFlight>),
    CoDel(Law, CoDel, Backlog),
    Flows(Box<Flows>),
    Pie(Box<Pie>, VecDeque<InFlight>),
    Classes(Box<Classes>),
    DualPi2(Box<DualPi2>),
    Cake(Box<Cake>),
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
        flight.cut(count, self.context.pool)
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
        let limits = Limits::new(settings, serializer);
        Self {
            limits,
            marks: limits.marks(&settings.discipline, serializer),
            totals: Totals::default(),
            charge,
            ecn: marks(settings),
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
        } else {
            match &mut self.kind {
                Kind::Red(red, _) => red.follow(serializer),
                Kind::Pie(pie, _) => pie.follow(serializer),
                Kind::DualPi2(dual) => dual.follow(serializer),
                Kind::Cake(cake) => cake.follow(serializer),
                _ => {}
            }
        }
        (self.limits, self.charge, self.ecn) = (Limits::new(new, serializer), charge, marks(new));
        self.marks = self.limits.marks(&new.discipline, serializer);
        let unlimited = Limits { frames: u64::MAX, octets: u64::MAX, charged: u64::MAX };
        for flight in waiting {
            let (mut queue_context, kind) = (queue_context!(self, context, place), &mut self.kind);
            match kind {
                Kind::Flows(flows) => flows.put(&mut queue_context, &unlimited, flight, 0),
                Kind::Classes(classes) => classes.put(&mut queue_context, &unlimited, flight, 0),
                Kind::DualPi2(dual) => dual.put(&mut queue_context, &unlimited, flight, 0),
                Kind::Cake(cake) => cake.put(&mut queue_context, &unlimited, flight, 0),
                Kind::CoDel(_, _, backlog) => {
                    queue_context.came(&flight.frame);
                    backlog.put(flight);
                }
                Kind::Tail(waiting) | Kind::Red(_, waiting) | Kind::Pie(_, waiting) => {
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
            Kind::Tail(waiting) | Kind::Red(_, waiting) | Kind::Pie(_, waiting) => {
                waiting.iter().for_each(|m| visit(&m.frame));
            }
            Kind::Classes(classes) => classes.iter().for_each(|m| visit(&m.frame)),
            Kind::DualPi2(dual) => dual.iter().for_each(|m| visit(&m.frame)),
            Kind::Cake(cake) => cake.iter().for_each(|m| visit(&m.frame)),
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
                    self.marks.free(queue_context.totals, &flight.frame, queue_context.charge).max(exempt)
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
            Kind::Classes(classes) => classes.put(&mut queue_context, &self.limits, flight, exempt),
            Kind::DualPi2(dual) => dual.put(&mut queue_context, &self.limits, flight, exempt),
            Kind::Cake(cake) => cake.put(&mut queue_context, &self.limits, flight, exempt),
            Kind::Red(red, waiting) => {
                put_by_red(&mut queue_context, red, &mut self.dice, &self.limits, waiting, flight, exempt);
            }
            Kind::Pie(pie, waiting) => {
                put_by_pie(&mut queue_context, pie, &mut self.dice, &self.limits, waiting, flight, exempt);
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
            Kind::Pie(pie, waiting) => {
                pie.update(queue_context.context.now, queue_context.totals.charged);
                let flight = pop(waiting, queue_context.context.pool, whole)?;
                queue_context.went(&flight.frame);
                Some(flight)
            }
            Kind::Classes(classes) => classes.take(&mut queue_context, whole),
            Kind::DualPi2(dual) => dual.take(&mut queue_context),
            Kind::Cake(cake) => cake.take(&mut queue_context),
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
            Kind::Tail(waiting) | Kind::Red(_, waiting) | Kind::Pie(_, waiting) => {
                let flight = waiting.pop_front()?;
                queue_context.went(&flight.frame);
                Some(flight)
            }
            Kind::CoDel(_, _, backlog) => backlog.pop(&mut queue_context, true),
            Kind::Flows(flows) => flows.take_any(&mut queue_context),
            Kind::Classes(classes) => classes.take_any(&mut queue_context),
            Kind::DualPi2(dual) => dual.take_any(&mut queue_context),
            Kind::Cake(cake) => cake.take_any(&mut queue_context),
        }
    }
}

impl Kind {
    fn new(discipline: &Discipline, serializer: &Serializer, salt: u64) -> Self {
        match *discipline {
            Discipline::Pie { target_ns, update_ns, burst_ns, alpha, beta } => {
                let settings = PieSettings { target_ns, update_ns, burst_ns, alpha, beta };
                Self::Pie(Box::new(Pie::new(&settings, serializer)), VecDeque::new())
            }
            Discipline::DualPi2 {
                target_ns,
                update_ns,
                alpha,
                beta,
                coupling,
                step_ns,
                ramp_ns,
                classic,
            } => {
                let settings = DualPi2Settings {
                    target_ns,
                    update_ns,
                    alpha,
                    beta,
                    coupling,
                    step_ns,
                    ramp_ns,
                    classic,
                };
                Self::DualPi2(Box::new(DualPi2::new(settings, serializer)))
            }
            Discipline::Cake { target_ns, interval_ns, isolation, tins } => {
                let settings = CakeSettings { target_ns, interval_ns, isolation, tins };
                Self::Cake(Box::new(Cake::new(settings, serializer, salt)))
            }
            Discipline::Priority { ref classes } => Self::Classes(Box::new(Classes::new(classes, false))),
            Discipline::Drr { ref classes } => Self::Classes(Box::new(Classes::new(classes, true))),
            Discipline::DropTail | Discipline::Step { .. } => Self::Tail(VecDeque::new()),
            Discipline::Red { min_octets, max_octets, probability, weight, packet_octets, marks_above } => {
                let settings =
                    RedSettings { min_octets, max_octets, probability, weight, packet_octets, marks_above };
                Self::Red(Box::new(Red::new(&settings, serializer)), VecDeque::new())
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

/// True if the queue marks packets: with ECN, and always with a step, `DualPI2` or CAKE.
fn marks(settings: &QueueSettings) -> bool {
    settings.ecn
        || matches!(
            settings.discipline,
            Discipline::Step { .. } | Discipline::DualPi2 { .. } | Discipline::Cake { .. }
        )
}
