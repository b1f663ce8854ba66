//! Radio media as elements of the engine.

use super::{Change, Engine, Out, number};
use crate::calendar::Class;
use crate::deadline::Deadline;
use crate::drop_reason::DropReason;
use crate::egress::{Delivery, Egress};
use crate::element::{End, MediumId, Place, PortId};
use crate::engine::context::{Context, Event, source};
use crate::error::Error;
use crate::frame::{Frame, segment};
use crate::ledger::Tally;
use crate::medium::capture::Sniffed;
use crate::medium::mobility::Mobility;
use crate::medium::wlan::{Listening, RxStatus, TxRequest, TxStatus};
use crate::medium::{
    CardSettings, Medium, Membership, NoiseSettings, Outside, RadioChange, RadioId, RadioSettings,
};
use crate::time::Instant;
use std::collections::VecDeque;

/// A medium, and the ports its radios belong to.
pub(crate) struct AttachedMedium {
    number: u32,
    pub(crate) medium: Medium,
    ports: Vec<PortId>,
    deadline: Deadline,
}

/// View of the engine that a medium gets.
struct EngineSide<'a, 'b> {
    context: &'a mut Context<'b>,
    medium: MediumId,
    ports: &'a [PortId],
}

impl Outside for EngineSide<'_, '_> {
    fn octets(&self, frame: &Frame) -> &[u8] {
        self.context.pool.octets(frame.buffer)
    }

    fn complete(&self, frame: &Frame, out: &mut Vec<u8>) {
        out.resize(frame.segment_octets(frame.first) as usize, 0);
        segment::complete(frame, self.context.pool, frame.first, out);
    }

    fn make(&mut self, octets: &[u8]) -> Frame {
        let buffer = self.context.pool.take(octets.len());
        self.context.pool.octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
        let length = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        Frame { count: 1, ..Frame::new(buffer, length, None, None) }
    }

    fn origin(&self, radio: RadioId) -> u32 {
        self.ports[radio.number() as usize].0
    }

    fn resized(&mut self, before: &Frame, after: &Frame) {
        self.context.ledger.retag(before.octets(), after.octets());
    }

    fn consumed(&mut self, radio: RadioId, _at: Instant, frame: Frame) {
        self.context.settle(self.ports[radio.number() as usize], frame, Delivery::Taken);
    }

    fn share(&mut self, frame: &Frame) {
        self.context.pool.share(frame.buffer);
    }

    fn release(&mut self, frame: Frame) {
        self.context.pool.release(frame.buffer);
    }

    fn deliver(&mut self, radio: RadioId, _at: Instant, frame: Frame) {
        let now = self.context.now;
        self.context.deliver(self.ports[radio.number() as usize], now, frame, None);
    }

    /// The frame counts as one that the station has offered.
    fn announce(&mut self, station: RadioId, access_point: RadioId, at: Instant, frame: Frame) {
        let (port, now) = (self.ports[station.number() as usize], self.context.now);
        let frame = Frame { origin: port.0, entered: now, ..frame };
        let tally = Tally::of(&frame);
        self.context.ledger.offered += tally;
        self.context.ledger.ports[port.index()].offered += tally;
        self.deliver(access_point, at, frame);
    }

    fn deliver_wlan(&mut self, radio: RadioId, _at: Instant, frame: Frame, status: &RxStatus) {
        let port = self.ports[radio.number() as usize];
        let Context { now, egress, pool, .. } = &mut *self.context;
        let delivery = egress.receive_wlan(port, *now, &frame, pool, status);
        self.context.settle(port, frame, delivery);
    }

    fn transmitted(&mut self, radio: RadioId, at: Instant, status: &TxStatus) {
        self.context.egress.transmitted(self.ports[radio.number() as usize], at, status);
    }

    fn dropped(&mut self, radio: RadioId, _at: Instant, frame: Frame, why: DropReason) {
        self.context.drop(Place::Port(self.ports[radio.number() as usize]), frame, why);
    }

    fn sniffed(&mut self, sniffed: &Sniffed) {
        self.context.egress.sniffed(self.medium, sniffed, self.context.pool);
    }

    fn copied(&mut self, frame: &Frame, copies: u32) {
        for _ in 0..copies {
            self.context.ledger.copies += Tally::of(frame);
        }
    }
}

impl AttachedMedium {
    /// Accepts a frame from the port that `radio` belongs to; with a request if it is an 802.11
    /// frame.
    pub(crate) fn offer(
        &mut self,
        context: &mut Context,
        radio: RadioId,
        frame: Frame,
        request: Option<TxRequest>,
    ) {
        let now = context.now;
        let side = &mut EngineSide { context, medium: MediumId(self.number), ports: &self.ports };
        match request {
            Some(request) => self.medium.offer_wlan(radio, now, frame, request, side),
            None => self.medium.offer(radio, now, frame, side),
        }
        self.arm_deadline(context);
    }

    /// Handles the events that are due.
    pub(crate) fn wake(&mut self, context: &mut Context) {
        self.deadline.expired(context.now);
        self.medium.advance(
            context.now,
            &mut EngineSide { context, medium: MediumId(self.number), ports: &self.ports },
        );
        self.arm_deadline(context);
    }

    /// Applies a change of the scenario; the change was checked when it was scheduled.
    pub(crate) fn change(&mut self, context: &mut Context, radio: RadioId, change: &RadioChange) {
        self.medium.pass(context.now);
        self.medium.change(
            radio,
            change,
            &mut EngineSide { context, medium: MediumId(self.number), ports: &self.ports },
        );
        self.arm_deadline(context);
    }

    /// Takes a radio out; that it can be was checked before.
    pub(crate) fn remove_radio(&mut self, context: &mut Context, radio: RadioId) {
        self.medium.pass(context.now);
        let side = &mut EngineSide { context, medium: MediumId(self.number), ports: &self.ports };
        let _ = self.medium.remove_radio(radio, side);
        self.arm_deadline(context);
    }

    fn arm_deadline(&mut self, context: &mut Context) {
        let Some(at) = self.medium.next_at() else { return };
        if self.deadline.arm(at) {
            let event = Event::Medium(self.number);
            context.at(at, Class::Release, source::MEDIUM + self.number, event);
        }
    }
}

impl Engine {
    /// Adds a radio medium. Its random streams derive from the engine's seed only if the medium was
    /// created with [`Engine::seed`].
    ///
    /// # Errors
    /// If the name is already in use.
    pub fn add_medium(&mut self, name: &str, medium: Medium) -> Result<MediumId, Error> {
        self.take_name("medium", name)?;
        let id = MediumId(number(self.media.len()));
        let mut air =
            AttachedMedium { number: id.0, medium, ports: Vec::new(), deadline: Deadline::default() };
        air.medium.pass(self.calendar.now());
        self.media.push(air);
        Ok(id)
    }

    /// Attaches a radio to a port: frames offered at the port are transmitted on the air.
    ///
    /// # Errors
    /// If the port or the medium is unknown, the port already has a link or a radio, or a setting
    /// is invalid.
    pub fn add_radio(
        &mut self,
        medium: MediumId,
        port: PortId,
        settings: RadioSettings,
        mobility: Box<dyn Mobility>,
    ) -> Result<RadioId, Error> {
        self.check_end(End::Port(port))?;
        let name = self.ports[port.index()].name.clone();
        let wlan = settings.membership == Membership::Wlan;
        let now = self.calendar.now();
        let air = self.air(medium)?;
        air.medium.pass(now);
        let radio = air.medium.add_radio(&name, settings, mobility)?;
        air.ports.push(port);
        self.ports[port.index()].out = Some(Out::Radio(medium.0, radio));
        self.ports[port.index()].requests = wlan.then(VecDeque::new);
        self.arm(medium);
        Ok(radio)
    }

    /// Takes a radio out: it is off for good, which drops its frames, and its port is free.
    ///
    /// # Errors
    /// If the medium or the radio is unknown, or the radio cannot be removed ([`Medium::remove_radio`]).
    pub fn remove_radio(
        &mut self,
        medium: MediumId,
        radio: RadioId,
        egress: &mut dyn Egress,
    ) -> Result<(), Error> {
        self.check_radio(medium, radio)?.check_removal(radio)?;
        self.change_now(&Change::RadioGone(medium, radio), egress);
        let port = self.air(medium)?.ports[radio.number() as usize];
        let port = &mut self.ports[port.index()];
        (port.out, port.requests) = (None, None);
        Ok(())
    }

    /// Makes radios virtual MACs of one card: they share one physical radio.
    ///
    /// # Errors
    /// If the medium or a radio is unknown, or the card is refused ([`Medium::add_card`]).
    pub fn add_card(
        &mut self,
        medium: MediumId,
        name: &str,
        settings: CardSettings,
        radios: &[RadioId],
    ) -> Result<(), Error> {
        radios.iter().try_for_each(|&radio| self.check_radio(medium, radio).map(|_| ()))?;
        self.medium(medium)?.add_card(name, settings, radios)?;
        self.arm(medium);
        Ok(())
    }

    /// Sets the addresses that the interfaces of a node use on the radio at `port`, which carries
    /// 802.11 frames: it acknowledges frames to them. An address that another radio of the medium
    /// uses stays with that radio; the result is false then.
    ///
    /// # Errors
    /// If the port has no radio that carries 802.11 frames.
    pub fn set_wlan_addresses(&mut self, port: PortId, addresses: &[[u8; 6]]) -> Result<bool, Error> {
        let (medium, radio) = self.wlan_radio(port)?;
        Ok(self.medium(medium)?.set_wlan_addresses(radio, addresses))
    }

    /// Sets where the stack of a node listens with the radio at `port`, which carries 802.11 frames, as
    /// the stack's driver says.
    ///
    /// # Errors
    /// If the port has no radio that carries 802.11 frames.
    pub fn set_wlan_listening(&mut self, port: PortId, listening: Listening) -> Result<(), Error> {
        let (medium, radio) = self.wlan_radio(port)?;
        self.medium(medium)?.set_wlan_listening(radio, listening);
        self.arm(medium);
        Ok(())
    }

    fn wlan_radio(&self, port: PortId) -> Result<(MediumId, RadioId), Error> {
        let unknown = Error::Unknown { kind: "radio for 802.11 frames at port", number: port.0 };
        let found = self.ports.get(port.index()).filter(|port| port.requests.is_some());
        match found.and_then(|port| port.out) {
            Some(Out::Radio(medium, radio)) => Ok((MediumId(medium), radio)),
            _ => Err(unknown),
        }
    }

    /// Adds a source of noise to a medium.
    ///
    /// # Errors
    /// If the medium is unknown or a setting is invalid.
    pub fn add_noise(
        &mut self,
        medium: MediumId,
        settings: NoiseSettings,
        mobility: Box<dyn Mobility>,
    ) -> Result<(), Error> {
        self.medium(medium)?.add_noise(settings, mobility)?;
        self.arm(medium);
        Ok(())
    }

    /// Arms the medium's timer: beacons and noise need events before any frame is offered.
    fn arm(&mut self, medium: MediumId) {
        let Some(air) = self.media.get_mut(medium.index()) else { return };
        let Some(at) = air.medium.next_at() else { return };
        if air.deadline.arm(at) {
            let event = Event::Medium(medium.0);
            self.calendar.push(at, Class::Release, source::MEDIUM + medium.0, event);
        }
    }

    /// Returns a medium at the present instant, to read its counters or to change its settings.
    ///
    /// # Errors
    /// If the medium is unknown.
    pub fn medium(&mut self, medium: MediumId) -> Result<&mut Medium, Error> {
        let now = self.calendar.now();
        let air = self.air(medium)?;
        air.medium.pass(now);
        Ok(&mut air.medium)
    }

    fn air(&mut self, medium: MediumId) -> Result<&mut AttachedMedium, Error> {
        self.media.get_mut(medium.index()).ok_or(Error::Unknown { kind: "medium", number: medium.0 })
    }

    /// Returns the medium of a radio, if both exist.
    pub(crate) fn check_radio(&self, medium: MediumId, radio: RadioId) -> Result<&Medium, Error> {
        let unknown = |kind, number| Error::Unknown { kind, number };
        let air = self.media.get(medium.index()).ok_or_else(|| unknown("medium", medium.0))?;
        let known = (radio.number() as usize) < air.ports.len();
        if known { Ok(&air.medium) } else { Err(unknown("radio", radio.number())) }
    }
}
