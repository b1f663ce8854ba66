//! Where frames enter: offered at a port, and admitted when they are due.

use crate::calendar::Class;
use crate::drop_reason::DropReason;
use crate::element::{Place, PortId};
use crate::engine::context::{Context, Event, source};
use crate::engine::media::AttachedMedium;
use crate::engine::{Engine, Out, Port};
use crate::frame::{Frame, segment};
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::link::wire::Wire;
use crate::medium::wlan::{TxRequest, TxStatus};
use crate::time::{Instant, Span};
use std::collections::VecDeque;

impl Engine {
    /// Offers a frame at a port at `now`, or at once if `now` has passed. The next
    /// [`Engine::advance`] that reaches that instant admits the frame and counts it in the ledger.
    /// The buffer then belongs to the engine. A frame whose offload description does not fit its
    /// octets is dropped as malformed.
    ///
    /// # Panics
    /// If the port belongs to another engine.
    pub fn offer(&mut self, port: PortId, now: Instant, frame: Frame) {
        let at = now.max(self.calendar.now());
        if self.ports[port.index()].requests.is_some() {
            return self.transmit(port, at, frame, TxRequest::default());
        }
        if let Some(ring) = self.ports[port.index()].offered.push(at, InFlight { frame, at, last: at }) {
            self.calendar.push(ring, Class::Arrival, source::PORT + port.0, Event::Enter(port.0));
        }
    }

    /// Time after the entry of a frame at a port until it may have any effect at another port, at
    /// least: the propagation delay of a link without jitter, 0 ns if there is no such bound. It holds
    /// until a setting changes.
    ///
    /// # Panics
    /// If the port belongs to another engine.
    #[must_use]
    pub fn lookahead(&self, port: PortId) -> Span {
        match self.ports[port.index()].out {
            Some(Out::Wire(wire)) => self.wires[wire as usize].lookahead(),
            _ => Span::ZERO,
        }
    }

    /// Offers an 802.11 frame at the port of a radio that carries such frames
    /// ([`crate::medium::wlan`]), as [`Engine::offer`] does for others. Frames enter in the order of
    /// these calls.
    ///
    /// # Panics
    /// If the port belongs to another engine.
    pub fn transmit(&mut self, port: PortId, now: Instant, frame: Frame, request: TxRequest) {
        let entrance = &mut self.ports[port.index()];
        let Some(requests) = &mut entrance.requests else { return self.offer(port, now, frame) };
        let at = now.max(self.calendar.now()).max(entrance.last_run);
        entrance.last_run = at;
        requests.push_back(request);
        if let Some(ring) = entrance.offered.push(at, InFlight { frame, at, last: at }) {
            self.calendar.push(ring, Class::Arrival, source::PORT + port.0, Event::Enter(port.0));
        }
    }

    /// Offers a super-frame whose segments came at `arrivals`, in order and not after `now`. Each
    /// one enters the port's link as it would have done at that instant, unless the link has
    /// changed its state since; then as of that change.
    ///
    /// # Panics
    /// If the port belongs to another engine.
    pub fn offer_run(&mut self, port: PortId, now: Instant, arrivals: &[Instant], frame: Frame) {
        let at = now.max(self.calendar.now());
        let [Some(&first), Some(&last)] = [arrivals.first(), arrivals.last()] else {
            return self.offer(port, now, frame);
        };
        let entrance = &mut self.ports[port.index()];
        let in_order = entrance.requests.is_none()
            && arrivals.is_sorted()
            && first < at
            && last <= at
            && at >= entrance.last_run;
        if !in_order || u32::try_from(arrivals.len()) != Ok(frame.segments()) {
            return self.offer(port, now, frame);
        }
        entrance.last_run = at;
        entrance.arrivals.extend(arrivals);
        if let Some(ring) = entrance.offered.push(at, InFlight { frame, at: first, last }) {
            self.calendar.push(ring, Class::Arrival, source::PORT + port.0, Event::Enter(port.0));
        }
    }
}

/// Admits the frames offered at a port that are due.
pub(super) fn enter(
    context: &mut Context,
    ports: &mut [Port],
    wires: &mut [Wire],
    media: &mut [AttachedMedium],
    number: u32,
) {
    let port = &mut ports[number as usize];
    port.offered.expired(context.now);
    let place = Place::Port(PortId(number));
    while let Some(flight) = port.offered.pop(context.now) {
        let timed = flight.at < context.now;
        let request = port.requests.as_mut().and_then(VecDeque::pop_front);
        let admitted = match request {
            Some(_) => segment::admit_wlan(&flight.frame, context.pool),
            None => segment::admit(&flight.frame, context.pool),
        };
        // An invalid frame still counts as one frame.
        let frame = admitted.unwrap_or(Frame { first: 0, count: 1, segmentation: None, ..flight.frame });
        let frame = Frame { origin: number, entered: context.now, ..frame };
        let tally = Tally::of(&frame);
        context.ledger.offered += tally;
        context.ledger.ports[number as usize].offered += tally;
        if timed
            && admitted.is_some()
            && let Some(Out::Wire(wire)) = port.out
        {
            let wire = &mut wires[wire as usize];
            (1..frame.count).for_each(|_| context.pool.share(frame.buffer));
            for segment in 0..frame.count {
                let at = port.arrivals.pop_front().unwrap_or(context.now);
                let frame = Frame { entered: at, ..frame.part(segment, 1) };
                context.egress.entered(PortId(number), at, &frame, context.pool);
                wire.enter_at(context, at, frame);
            }
            wire.catch_up(context);
            continue;
        }
        if timed {
            port.arrivals.drain(..flight.frame.segments() as usize);
        }
        context.egress.entered(PortId(number), context.now, &frame, context.pool);
        match port.out {
            _ if admitted.is_none() => {
                context.drop(place, frame, DropReason::Malformed);
                if let Some(TxRequest { cookie, .. }) = request {
                    let status = TxStatus { cookie, ..TxStatus::default() };
                    context.egress.transmitted(PortId(number), context.now, &status);
                }
            }
            None => context.drop(place, frame, DropReason::Nowhere),
            Some(Out::Wire(wire)) => wires[wire as usize].enter(context, InFlight { frame, ..flight }),
            Some(Out::Radio(medium, radio)) => media[medium as usize].offer(context, radio, frame, request),
        }
    }
    if let Some(at) = port.offered.arm() {
        context.at(at, Class::Arrival, source::PORT + number, Event::Enter(number));
    }
}
