//! Links that get other ends, or none, while the engine runs.

use crate::egress::Egress;
use crate::element::{Direction, End, LinkId, PortId};
use crate::engine::changes::{Change, apply};
use crate::engine::context::Context;
use crate::engine::{Engine, Out, number};
use crate::error::Error;
use crate::link::wire::gather::Gathers;
use crate::settings::LinkSettings;

impl Engine {
    /// Moves the end of a link at which `end` begins from a switch to a port without a link. Frames on
    /// the way to that end reach the port.
    ///
    /// # Errors
    /// If the link is unknown, its end is not at a learning switch or hub, the port is unknown, or it has
    /// a link already.
    pub fn move_to_port(&mut self, link: LinkId, end: Direction, port: PortId) -> Result<(), Error> {
        self.check_link(link)?;
        self.check_end(End::Port(port))?;
        let away = 2 * link.0 + end as u32;
        let towards = away ^ 1;
        let at = match self.wires[towards as usize].end() {
            End::Switch(switch) if self.switches[switch.index()].seat.is_none() => switch,
            _ => return Err(Error::Unknown { kind: "learning switch at link", number: link.0 }),
        };
        self.shortcuts.forget(&mut self.switches, &mut self.ledger);
        self.switches[at.index()].leave(away);
        if let End::Switch(other) = self.wires[away as usize].end() {
            self.switches[other.index()].trunks.retain(|&wire| wire != towards);
        }
        let new = &mut self.ports[port.index()];
        new.out = Some(Out::Wire(away));
        let (waits_for_last, gathers) = (!new.transit, new.gathers);
        let now = self.calendar.now();
        self.wires[towards as usize].lead_to(now, End::Port(port), waits_for_last, gathers);
        self.wires[away as usize].begin(true);
        self.join_trees_anew();
        Ok(())
    }

    /// Finds out which switches links join, after one has left a switch.
    fn join_trees_anew(&mut self) {
        self.trees = (0..number(self.switches.len())).collect();
        for link in (0..self.wires.len() / 2).filter(|link| !self.disconnected.contains(&number(*link))) {
            if let [End::Switch(a), End::Switch(b)] =
                [2 * link, 2 * link + 1].map(|wire| self.wires[wire].end())
            {
                let (a, b) = (self.root(a.0), self.root(b.0));
                self.trees[b as usize] = a;
            }
        }
    }

    /// Takes a link out: it goes down, which drops the frames in it, and its ends are free for other
    /// links. Its name and its account stay for [`Engine::reconnect`].
    ///
    /// # Errors
    /// If the link is unknown or taken out already, or an end is at a switch with shortest paths.
    pub fn disconnect(&mut self, link: LinkId, egress: &mut dyn Egress) -> Result<(), Error> {
        self.check_link(link)?;
        let wires = [2 * link.0, 2 * link.0 + 1];
        let is_seated = |wire: &u32| match self.wires[*wire as usize].end() {
            End::Switch(switch) => self.switches[switch.index()].seat.is_some(),
            End::Port(_) => false,
        };
        if self.disconnected.contains(&link.0) || wires.iter().any(is_seated) {
            return Err(Error::Unknown { kind: "link outside of areas", number: link.0 });
        }
        self.change_now(&Change::Down(link), egress);
        for away in wires {
            match self.wires[(away ^ 1) as usize].end() {
                End::Port(port) => self.ports[port.index()].out = None,
                End::Switch(switch) => self.switches[switch.index()].leave(away),
            }
        }
        self.disconnected.insert(link.0);
        self.join_trees_anew();
        Ok(())
    }

    /// Connects two ends by a link that was taken out, which goes on with its account; otherwise as
    /// [`Engine::connect`].
    ///
    /// # Errors
    /// As [`Engine::connect`], and if the link was not taken out.
    pub fn reconnect(
        &mut self,
        link: LinkId,
        name: &str,
        (a, b): (End, End),
        (forward, backward): (&LinkSettings, &LinkSettings),
        egress: &mut dyn Egress,
    ) -> Result<(), Error> {
        if !self.is_disconnected(link) {
            return Err(Error::DuplicateName { kind: "link", name: name.into() });
        }
        let inner = self.check_connection(name, a, b, (forward, backward))?;
        self.disconnected.remove(&link.0);
        self.join_ends(a, b, 2 * link.0);
        let now = self.calendar.now();
        for (wire, from, to) in [(2 * link.0, a, b), (2 * link.0 + 1, b, a)] {
            let (waits_for_last, gathers) = self.hand_over_at(to);
            self.wires[wire as usize].lead_to(now, to, waits_for_last, gathers);
            self.wires[wire as usize].begin(matches!(from, End::Port(_)));
            match from {
                End::Port(port) => self.ports[port.index()].out = Some(Out::Wire(wire)),
                End::Switch(switch) => self.switches[switch.index()].join(wire, to, inner),
            }
        }
        for (direction, settings) in [(Direction::Forward, forward), (Direction::Backward, backward)] {
            self.change_now(&Change::Link(link, direction, Box::new(settings.clone())), egress);
        }
        self.change_now(&Change::Up(link), egress);
        Ok(())
    }

    /// True if a link was taken out.
    #[must_use]
    pub fn is_disconnected(&self, link: LinkId) -> bool {
        self.disconnected.contains(&link.0)
    }

    /// Tells whether the node of a port forwards frames from now on ([`Engine::add_port`]).
    ///
    /// # Panics
    /// If the port belongs to another engine.
    pub fn set_transit(&mut self, port: PortId, transit: bool) {
        self.ports[port.index()].transit = transit;
        if let Some(Out::Wire(wire)) = self.ports[port.index()].out {
            let (waits_for_last, gathers) = self.hand_over_at(End::Port(port));
            let now = self.calendar.now();
            self.wires[(wire ^ 1) as usize].lead_to(now, End::Port(port), waits_for_last, gathers);
        }
    }

    /// How a wire hands over the frames that reach its end: whether it waits for the last segment of a
    /// super-frame, and what it gathers.
    pub(super) fn hand_over_at(&self, end: End) -> (bool, Gathers) {
        match end {
            End::Port(port) => (!self.ports[port.index()].transit, self.ports[port.index()].gathers),
            End::Switch(_) => (false, Gathers::default()),
        }
    }

    /// Applies a change at the present instant.
    pub(super) fn change_now(&mut self, change: &Change, egress: &mut dyn Egress) {
        self.shortcuts.forget(&mut self.switches, &mut self.ledger);
        let mut context = Context {
            now: self.calendar.now(),
            calendar: &mut self.calendar,
            pool: &mut self.pool,
            ledger: &mut self.ledger,
            work: &mut self.work,
            arrivals: &mut self.arrivals,
            egress,
            clock: None,
            gathering: self.gathering,
            ways_changed: false,
        };
        let elements = (&mut self.switches[..], &mut self.areas[..]);
        apply(&mut context, &mut self.wires, elements, &mut self.media, change);
    }
}
