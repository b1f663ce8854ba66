//! The engine: elements, their calendar, and the path of a frame through them.

mod areas;
mod changes;
pub(crate) mod context;
mod entrance;
mod media;
mod rewiring;

pub use changes::Change;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::calendar::Calendar;
use crate::egress::{Clock, Egress};
use crate::element::{Direction, End, LinkId, PortId, SwitchId};
use crate::engine::changes::apply;
use crate::engine::context::{Context, Event, HandOver};
use crate::engine::media::AttachedMedium;
use crate::error::Error;
use crate::frame::Pool;
use crate::ledger::{Ledger, PortAccount, SwitchAccount, Tally, WireAccount};
use crate::link::in_flight::{InFlight, InFlightQueue};
use crate::link::load::Gathering;
use crate::link::wire::gather::Gathers;
use crate::link::wire::{Wire, WirePlace};
use crate::medium::RadioId;
use crate::medium::wlan::TxRequest;
use crate::settings::{LinkSettings, SwitchSettings, VlanSettings};
use crate::switch::Switch;
use crate::switch::area::Area;
use crate::switch::forward;
use crate::switch::shortcuts::Shortcuts;
use crate::time::{Instant, Span};

/// Longest time, by the caller's clock, that [`Engine::advance_on`] spends on events before it returns.
/// An engine that never catches up with the clock then still obeys.
pub const TURN: Span = Span::from_millis(20);
/// Events between two looks at the clock for [`TURN`]: a look takes some 30 ns, an event 100 ns and more.
const LOOK: u32 = 64;

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
    /// Areas of switches with shortest paths; empty ones were absorbed by others.
    areas: Vec<Area>,
    pub(crate) media: Vec<AttachedMedium>,
    /// Union-find forest of the joined switches: each entry points towards the root of its tree.
    trees: Vec<u32>,
    names: BTreeSet<(&'static str, String)>,
    /// Changes to come, each with its time.
    changes: BTreeMap<u32, (Instant, Change)>,
    next_change: u32,
    /// Links that were taken out.
    disconnected: BTreeSet<u32>,
    work: VecDeque<HandOver>,
    arrivals: Vec<Instant>,
    gathering: Gathering,
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
            areas: Vec::new(),
            media: Vec::new(),
            trees: Vec::new(),
            names: BTreeSet::new(),
            changes: BTreeMap::new(),
            next_change: 0,
            disconnected: BTreeSet::new(),
            work: VecDeque::with_capacity(64),
            arrivals: Vec::with_capacity(64),
            gathering: Gathering::on(false),
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
    ///
    /// # Panics
    /// If the port belongs to another engine.
    pub fn let_gather(&mut self, port: PortId, gathers: Gathers) {
        self.ports[port.index()].gathers = gathers;
        // The wires of a link have neighbouring numbers.
        if let Some(Out::Wire(wire)) = self.ports[port.index()].out {
            self.wires[(wire ^ 1) as usize].let_gather(gathers);
        }
    }

    /// Tells whether the host that drives the engine is busy with it: on busy links segments are then
    /// handed over together for up to twice as long, because a hand-over costs the host about the
    /// same for one and for many. False at first.
    pub fn set_host_busy(&mut self, busy: bool) {
        self.gathering = Gathering::on(busy);
    }

    /// What [`Engine::set_host_busy`] told last.
    #[must_use]
    pub fn is_host_busy(&self) -> bool {
        self.gathering == Gathering::on(true)
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
        self.seat(id, settings, name);
        self.trees.push(id.0);
        self.ledger.switches.push(SwitchAccount::default());
        Ok(id)
    }

    /// Connects two ends by a link; `forward` applies from `a` to `b`, `backward` from `b` to `a`.
    ///
    /// # Errors
    /// If the name is already in use, a setting is out of its range, an end is unknown, a port
    /// already has a link, the link would close a loop of switches that are not of one area, or it
    /// would join areas with different settings.
    pub fn connect(
        &mut self,
        name: &str,
        a: End,
        b: End,
        forward: &LinkSettings,
        backward: &LinkSettings,
    ) -> Result<LinkId, Error> {
        let inner = self.check_connection(name, a, b, (forward, backward))?;
        self.take_name("link", name)?;
        self.join_ends(a, b, number(self.wires.len()));
        let id = LinkId(number(self.wires.len() / 2));
        for (from, to, settings) in [(a, b, forward), (b, a, backward)] {
            let wire = number(self.wires.len());
            let (waits_for_last, gathers) = self.hand_over_at(to);
            let begins = matches!(from, End::Port(_));
            let place =
                WirePlace { number: wire, name, seed: self.seed, begins, to, waits_for_last, gathers };
            self.wires.push(Wire::new(place, settings, self.calendar.now()));
            self.ledger.wires.push(WireAccount::default());
            match from {
                End::Port(port) => self.ports[port.index()].out = Some(Out::Wire(wire)),
                End::Switch(switch) => self.switches[switch.index()].join(wire, to, inner),
            }
        }
        Ok(id)
    }

    /// Checks a link before it is connected. Returns true if it joins two switches of an area.
    fn check_connection(
        &self,
        name: &str,
        a: End,
        b: End,
        (forward, backward): (&LinkSettings, &LinkSettings),
    ) -> Result<bool, Error> {
        forward.check()?;
        backward.check()?;
        self.check_end(a)?;
        self.check_end(b)?;
        if let (End::Port(port), true) = (a, a == b) {
            return Err(Error::PortTaken { port: self.ports[port.index()].name.clone() });
        }
        let inner = self.check_inner(a, b)?;
        if let (End::Switch(a), End::Switch(b)) = (a, b) {
            if self.root(a.0) == self.root(b.0) && !self.is_one_area(a, b) {
                return Err(Error::Loop { link: name.into() });
            }
        }
        Ok(inner)
    }

    /// Tells the switches at two ends that a link joins them; `wire` leads from `a` to `b`.
    fn join_ends(&mut self, a: End, b: End, wire: u32) {
        if let (End::Switch(a), End::Switch(b)) = (a, b) {
            let (a, b) = (self.root(a.0), self.root(b.0));
            self.trees[b as usize] = a;
        }
        self.join_areas(a, b, wire);
        self.shortcuts.forget(&mut self.switches, &mut self.ledger);
    }

    /// Sets the VLANs that a link carries at the switch where `direction` begins. The first such
    /// port makes the switch VLAN-aware, and with it all switches of its area: their other ports are
    /// access ports of VLAN 1. Links between switches of an area carry all VLANs.
    ///
    /// # Errors
    /// If the link is unknown, does not begin at a switch in this direction, joins two switches of
    /// an area, or a number is out of its range.
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
        if !switch.edges.contains(&wire) {
            return Err(areas::carries_all());
        }
        switch.set_vlan(wire, settings);
        let id = switch.id;
        self.areas.iter_mut().for_each(|area| area.forget(wire));
        self.make_aware(id);
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
            account.busy = wire.busy(self.calendar.now());
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
    /// with a constant rate then recovers lateness at little more than its rate, or at once of frames
    /// that keep their times, and pauses for the rest ([`WireAccount::paused`]).
    ///
    /// Returns false if events of this time are left because it took [`TURN`] without them: the
    /// caller then sees to others, and calls again. Time stands at the last event.
    pub fn advance_on(&mut self, clock: &dyn Clock, until: Instant, egress: &mut dyn Egress) -> bool {
        self.run(until, Some(clock), egress)
    }

    fn run(&mut self, until: Instant, clock: Option<&dyn Clock>, egress: &mut dyn Egress) -> bool {
        let mut events = 0u32;
        let mut begun = Instant::NEVER;
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
                gathering: self.gathering,
                ways_changed: false,
            };
            let (wires, switches, areas) = (&mut self.wires, &mut self.switches, &mut self.areas);
            match event {
                Event::Arrive(wire) => wires[wire as usize].arrive(&mut context),
                Event::Release(wire) => wires[wire as usize].release(&mut context),
                Event::Enter(port) => {
                    entrance::enter(&mut context, &mut self.ports, wires, &mut self.media, port)
                }
                Event::Medium(medium) => self.media[medium as usize].wake(&mut context),
                Event::Change(index) => {
                    if let Some((_, change)) = self.changes.remove(&index) {
                        if !matches!(change, Change::Radio(..)) {
                            self.shortcuts.forget(switches, context.ledger);
                        }
                        apply(&mut context, wires, (switches, areas), &mut self.media, &change);
                    }
                }
                Event::Converge(wire) => areas::converge(wires, switches, areas, wire),
            }
            while let Some(hand_over) = context.work.pop_front() {
                self.shortcuts.invalidate_if(&mut context.ways_changed);
                carry_on(&mut context, &mut self.shortcuts, wires, (switches, areas), hand_over);
            }
            context.arrivals.clear();
            self.shortcuts.invalidate_if(&mut context.ways_changed);
            events += 1;
            if let (Some(clock), 0) = (clock, events % LOOK) {
                let now = clock.now();
                begun = begun.min(now);
                if now.since(begun) >= TURN && self.calendar.next_at().is_some_and(|next| next <= until) {
                    return false;
                }
            }
        }
        if until < Instant::NEVER {
            self.calendar.pass(until);
        }
        true
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
    (switches, areas): (&mut [Switch], &mut [Area]),
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
            let switch = &mut switches[switch.index()];
            if forward::pass(context, wires, switch, areas, back, flight) && crossed {
                context.ways_changed = true;
            }
        }
    }
}

/// Number of an element or change.
pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).ok().filter(|&count| count < 1 << 30).expect("fewer than 2^30 elements")
}
