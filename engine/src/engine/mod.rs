//! The engine: elements, their calendar, and the path of a frame through them.

pub(crate) mod context;
mod entrance;
mod media;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::calendar::{Calendar, Class};
use crate::egress::{Clock, Egress};
use crate::element::{Direction, End, LinkId, MediumId, PortId, SwitchId};
use crate::engine::context::{Context, Event, HandOver, source};
use crate::engine::media::AttachedMedium;
use crate::error::Error;
use crate::frame::Pool;
use crate::ledger::{Ledger, PortAccount, SwitchAccount, Tally, WireAccount};
use crate::link::in_flight::{InFlight, InFlightQueue};
use crate::link::wire::gather::Gathers;
use crate::link::wire::{Wire, WirePlace};
use crate::medium::wlan::TxRequest;
use crate::medium::{RadioChange, RadioId};
use crate::settings::{LinkSettings, SwitchSettings, VlanSettings};
use crate::switch::Switch;
use crate::switch::forward;
use crate::switch::shortcuts::Shortcuts;
use crate::time::Instant;

/// A change that the scenario makes at run time.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// New settings for one direction of a link.
    Link(LinkId, Direction, Box<LinkSettings>),
    /// The link comes up, both directions.
    Up(LinkId),
    /// The link goes down, both directions.
    Down(LinkId),
    /// New settings for a switch or hub.
    Switch(SwitchId, SwitchSettings),
    /// A change of a radio.
    Radio(MediumId, RadioId, Box<RadioChange>),
}

/// The element attached to a port.
#[derive(Clone, Copy)]
pub(crate) enum Out {
    /// A wire.
    Wire(u32),
    /// A radio of a medium.
    Radio(u32, RadioId),
}

pub(crate) struct Port {
    pub(crate) name: String,
    transit: bool,
    gathers: Gathers,
    pub(crate) out: Option<Out>,
    /// Frames offered at the port that have not entered yet.
    offered: InFlightQueue,
    /// Arrival times of the segments of those that were offered with them.
    arrivals: VecDeque<Instant>,
    /// When the last frame with arrival times, or with a request, was offered.
    last_run: Instant,
    /// Requests for the frames offered at the port of a radio that carries 802.11 frames.
    requests: Option<VecDeque<TxRequest>>,
}

/// An emulated network under one clock.
///
/// The caller offers frames at ports, advances time with [`Engine::advance`], and receives frames
/// at the [`Egress`]. The same calls produce the same results, bit by bit.
pub struct Engine {
    seed: u64,
    pub(crate) calendar: Calendar<Event>,
    pool: Pool,
    ledger: Ledger,
    shortcuts: Shortcuts,
    pub(crate) ports: Vec<Port>,
    wires: Vec<Wire>,
    switches: Vec<Switch>,
    pub(crate) media: Vec<AttachedMedium>,
    /// Union-find forest of the joined switches: each entry points towards the root of its tree.
    trees: Vec<u32>,
    names: BTreeSet<(&'static str, String)>,
    changes: BTreeMap<u32, Change>,
    next_change: u32,
    work: VecDeque<HandOver>,
    arrivals: Vec<Instant>,
}

impl Engine {
    /// Creates an engine without elements. All its random numbers derive from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            calendar: Calendar::default(),
            pool: Pool::default(),
            ledger: Ledger::default(),
            shortcuts: Shortcuts::default(),
            ports: Vec::new(),
            wires: Vec::new(),
            switches: Vec::new(),
            media: Vec::new(),
            trees: Vec::new(),
            names: BTreeSet::new(),
            changes: BTreeMap::new(),
            next_change: 0,
            work: VecDeque::with_capacity(64),
            arrivals: Vec::with_capacity(64),
        }
    }

    /// Adds a port. A `transit` port belongs to a node that forwards frames (a router), an end port
    /// to a node that does not; the difference matters only to links that carry super-frames
    /// together (see [`crate::settings::Segments`]).
    ///
    /// # Errors
    /// If the name is already in use.
    pub fn add_port(&mut self, name: &str, transit: bool) -> Result<PortId, Error> {
        self.take_name("port", name)?;
        let id = PortId(number(self.ports.len()));
        self.ports.push(Port {
            name: name.into(),
            transit,
            gathers: Gathers::default(),
            out: None,
            offered: InFlightQueue::default(),
            arrivals: VecDeque::new(),
            last_run: Instant::ZERO,
            requests: None,
        });
        self.ledger.ports.push(PortAccount::default());
        Ok(id)
    }

    /// Lets segments that reach a port be handed over together ([`LinkSettings::coalesce_ns`]).
    /// Applies to links that are connected later.
    ///
    /// # Panics
    /// If the port belongs to another engine.
    pub fn let_gather(&mut self, port: PortId, gathers: Gathers) {
        self.ports[port.index()].gathers = gathers;
    }

    /// Adds a switch or hub.
    ///
    /// # Errors
    /// If the name is already in use, or a setting is out of its range.
    pub fn add_switch(&mut self, name: &str, settings: &SwitchSettings) -> Result<SwitchId, Error> {
        settings.check()?;
        self.take_name("switch", name)?;
        let id = SwitchId(number(self.switches.len()));
        self.switches.push(Switch::new(id, settings));
        self.trees.push(id.0);
        self.ledger.switches.push(SwitchAccount::default());
        Ok(id)
    }

    /// Connects two ends by a link; `forward` applies from `a` to `b`, `backward` from `b` to `a`.
    ///
    /// # Errors
    /// If the name is already in use, a setting is out of its range, an end is unknown, a port
    /// already has a link, or the link would close a loop of switches.
    pub fn connect(
        &mut self,
        name: &str,
        a: End,
        b: End,
        forward: &LinkSettings,
        backward: &LinkSettings,
    ) -> Result<LinkId, Error> {
        forward.check()?;
        backward.check()?;
        self.check_end(a)?;
        self.check_end(b)?;
        if let (End::Port(port), true) = (a, a == b) {
            return Err(Error::PortTaken { port: self.ports[port.index()].name.clone() });
        }
        if let (End::Switch(a), End::Switch(b)) = (a, b) {
            if self.root(a.0) == self.root(b.0) {
                return Err(Error::Loop { link: name.into() });
            }
        }
        self.take_name("link", name)?;
        if let (End::Switch(a), End::Switch(b)) = (a, b) {
            let (a, b) = (self.root(a.0), self.root(b.0));
            self.trees[b as usize] = a;
        }
        self.shortcuts.forget(&mut self.switches, &mut self.ledger);
        let id = LinkId(number(self.wires.len() / 2));
        for (from, to, settings) in [(a, b, forward), (b, a, backward)] {
            let wire = number(self.wires.len());
            let waits_for_last = matches!(to, End::Port(port) if !self.ports[port.index()].transit);
            let gathers = match to {
                End::Port(port) => self.ports[port.index()].gathers,
                End::Switch(_) => Gathers::default(),
            };
            let begins = matches!(from, End::Port(_));
            let place =
                WirePlace { number: wire, name, seed: self.seed, begins, to, waits_for_last, gathers };
            self.wires.push(Wire::new(place, settings, self.calendar.now()));
            self.ledger.wires.push(WireAccount::default());
            match from {
                End::Port(port) => self.ports[port.index()].out = Some(Out::Wire(wire)),
                End::Switch(switch) => self.switches[switch.index()].join(wire, to),
            }
        }
        Ok(id)
    }

    /// Sets the VLANs that a link carries at the switch where `direction` begins. The first such
    /// port makes the switch VLAN-aware: its other ports are access ports of VLAN 1.
    ///
    /// # Errors
    /// If the link is unknown, does not begin at a switch in this direction, or a number is out of
    /// its range.
    pub fn set_vlan(
        &mut self,
        link: LinkId,
        direction: Direction,
        settings: &VlanSettings,
    ) -> Result<(), Error> {
        self.check_link(link)?;
        settings.check()?;
        self.shortcuts.forget(&mut self.switches, &mut self.ledger);
        let wire = 2 * link.0 + direction as u32;
        let switch = self.switches.iter_mut().find(|switch| switch.out.contains(&wire));
        let switch = switch.ok_or(Error::Unknown { kind: "switch at link", number: link.0 })?;
        switch.set_vlan(wire, settings);
        Ok(())
    }

    /// Schedules a change at `at`, before all other events of that instant. If `at` has passed, the
    /// next [`Engine::advance`] applies it at once.
    ///
    /// # Errors
    /// If an element is unknown or a setting is out of its range.
    pub fn schedule(&mut self, at: Instant, change: Change) -> Result<(), Error> {
        match &change {
            Change::Link(link, _, settings) => {
                self.check_link(*link)?;
                settings.check()?;
            }
            Change::Up(link) | Change::Down(link) => self.check_link(*link)?,
            Change::Switch(switch, settings) => {
                self.check_end(End::Switch(*switch))?;
                settings.check()?;
            }
            Change::Radio(medium, radio, change) => {
                self.check_radio(*medium, *radio)?.check(*radio, change)?;
            }
        }
        let index = self.next_change;
        self.next_change = self.next_change.wrapping_add(1);
        self.changes.insert(index, change);
        let at = at.max(self.calendar.now());
        self.calendar.push(at, Class::Change, source::CHANGE, Event::Change(index));
        Ok(())
    }

    /// The buffer pool of all frames.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The ledger up to the present instant.
    #[must_use]
    pub fn ledger(&mut self) -> &Ledger {
        self.shortcuts.settle(&mut self.switches, &mut self.ledger);
        for (wire, account) in self.wires.iter().zip(&mut self.ledger.wires) {
            account.queue = wire.queued(self.calendar.now());
        }
        &self.ledger
    }

    /// The seed of the engine.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// True if a wire loses the time by which its host is late ([`crate::settings::Late::Slip`]):
    /// low lateness then matters.
    #[must_use]
    pub fn slips(&self) -> bool {
        self.wires.iter().any(Wire::slips)
    }

    /// Time of the next event; [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.calendar.next_at()
    }

    /// When frames may next leave the engine, or a medium or a change is due, if no frame is
    /// offered before: until then the caller may sleep. [`Engine::advance`] catches up with the
    /// events before it.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.calendar.wake_at()
    }

    /// The present instant of the engine.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.calendar.now()
    }

    /// Advances time to `until`, that instant included. With [`Instant::NEVER`] it runs until no
    /// event is pending; time then stays at the last event.
    pub fn advance(&mut self, until: Instant, egress: &mut dyn Egress) {
        self.run(until, None, egress);
    }

    /// Like [`Engine::advance`], but driven by a wall clock, so that events may be late. A wire
    /// with a constant rate then recovers lateness at little more than its rate, and pauses for the
    /// rest ([`WireAccount::paused`]).
    pub fn advance_on(&mut self, clock: &dyn Clock, until: Instant, egress: &mut dyn Egress) {
        self.run(until, Some(clock), egress);
    }

    fn run(&mut self, until: Instant, clock: Option<&dyn Clock>, egress: &mut dyn Egress) {
        while let Some((key, event)) = self.calendar.pop(until) {
            let mut context = Context {
                now: key.at,
                calendar: &mut self.calendar,
                pool: &mut self.pool,
                ledger: &mut self.ledger,
                work: &mut self.work,
                arrivals: &mut self.arrivals,
                egress: &mut *egress,
                clock,
                ways_changed: false,
            };
            let (wires, switches) = (&mut self.wires, &mut self.switches);
            match event {
                Event::Arrive(wire) => wires[wire as usize].arrive(&mut context),
                Event::Release(wire) => wires[wire as usize].release(&mut context),
                Event::Enter(port) => {
                    entrance::enter(&mut context, &mut self.ports, wires, &mut self.media, port)
                }
                Event::Medium(medium) => self.media[medium as usize].wake(&mut context),
                Event::Change(index) => {
                    if let Some(change) = self.changes.remove(&index) {
                        if !matches!(change, Change::Radio(..)) {
                            self.shortcuts.forget(switches, context.ledger);
                        }
                        apply(&mut context, wires, switches, &mut self.media, &change);
                    }
                }
            }
            while let Some(hand_over) = context.work.pop_front() {
                self.shortcuts.invalidate_if(&mut context.ways_changed);
                carry_on(&mut context, &mut self.shortcuts, wires, switches, hand_over);
            }
            context.arrivals.clear();
            self.shortcuts.invalidate_if(&mut context.ways_changed);
        }
        if until < Instant::NEVER {
            self.calendar.pass(until);
        }
    }

    /// Counts the frames inside the engine, in queues and on wires. The result equals
    /// [`Ledger::in_flight`], which is derived from the other columns.
    #[must_use]
    pub fn recount(&self) -> Tally {
        let mut sum = Tally::default();
        for wire in &self.wires {
            wire.visit(&mut |frame| sum += Tally::of(frame));
        }
        for air in &self.media {
            air.medium.visit(&mut |frame| sum += Tally::of(frame));
        }
        sum
    }

    pub(crate) fn take_name(&mut self, kind: &'static str, name: &str) -> Result<(), Error> {
        if self.names.insert((kind, name.into())) {
            Ok(())
        } else {
            Err(Error::DuplicateName { kind, name: name.into() })
        }
    }

    pub(crate) fn check_end(&self, end: End) -> Result<(), Error> {
        match end {
            End::Port(port) => match self.ports.get(port.index()) {
                None => Err(Error::Unknown { kind: "port", number: port.0 }),
                Some(port) if port.out.is_some() => Err(Error::PortTaken { port: port.name.clone() }),
                Some(_) => Ok(()),
            },
            End::Switch(switch) if switch.index() < self.switches.len() => Ok(()),
            End::Switch(switch) => Err(Error::Unknown { kind: "switch", number: switch.0 }),
        }
    }

    fn check_link(&self, link: LinkId) -> Result<(), Error> {
        if 2 * link.index() < self.wires.len() {
            Ok(())
        } else {
            Err(Error::Unknown { kind: "link", number: link.0 })
        }
    }

    fn root(&self, switch: u32) -> u32 {
        let mut at = switch;
        while self.trees[at as usize] != at {
            at = self.trees[at as usize];
        }
        at
    }
}

/// Processes a frame that has reached the end of a link.
fn carry_on(
    context: &mut Context,
    shortcuts: &mut Shortcuts,
    wires: &mut [Wire],
    switches: &mut [Switch],
    hand_over: HandOver,
) {
    let HandOver { end, wire, flight, due, gathered } = hand_over;
    match end {
        End::Port(port) => {
            context.deliver(port, due, flight.frame, gathered);
            wires[wire as usize].handed_over(context);
        }
        End::Switch(switch) => {
            // A frame that came in the past goes on from then.
            let arrived = flight.last <= context.now;
            let flight = if arrived { InFlight { at: due, last: due, ..flight } } else { flight };
            // The two directions of a link have adjacent numbers.
            let back = wire ^ 1;
            // If several frames are due at one instant, each advances one hop in turn.
            let alone = context.work.is_empty();
            if alone
                && wires[wire as usize].may_begin()
                && shortcuts.may_begin(&mut switches[switch.index()], wires)
            {
                let frame = (wire, &flight);
                let books = (&*context.pool, &mut *context.ledger);
                if let Some(exit) = shortcuts.take(context.now, (wires, switches), books, frame) {
                    let flight = InFlight { at: due, last: due, ..flight };
                    wires[exit as usize].enter(context, flight);
                    return;
                }
            }
            let crossed = shortcuts.cross(&switches[switch.index()]);
            if crossed {
                shortcuts.settle(switches, context.ledger);
            }
            if forward::pass(context, wires, &mut switches[switch.index()], back, flight) && crossed {
                context.ways_changed = true;
            }
        }
    }
}

/// Applies a scheduled change.
fn apply(
    context: &mut Context,
    wires: &mut [Wire],
    switches: &mut [Switch],
    media: &mut [AttachedMedium],
    change: &Change,
) {
    match change {
        Change::Link(link, direction, settings) => {
            wires[2 * link.index() + *direction as usize].change(context, settings);
        }
        Change::Up(link) | Change::Down(link) => {
            let up = matches!(change, Change::Up(_));
            for wire in [2 * link.0, 2 * link.0 + 1] {
                wires[wire as usize].set_up(context, up);
                if let Some(port) = wires[wire as usize].carrier_port() {
                    context.egress.carrier(port, up);
                }
                if !up {
                    switches.iter_mut().for_each(|switch| switch.forget(wire));
                }
            }
        }
        Change::Switch(switch, settings) => switches[switch.index()].change(settings),
        Change::Radio(medium, radio, change) => media[medium.index()].change(context, *radio, change),
    }
}

/// Number of an element or change.
pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).ok().filter(|&count| count < 1 << 30).expect("fewer than 2^30 elements")
}
