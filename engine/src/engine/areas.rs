//! Areas of switches with shortest paths: who belongs to one, and changes of links between them.

use crate::calendar::Class;
use crate::element::{End, LinkId, SwitchId};
use crate::engine::Engine;
use crate::engine::context::{Context, Event, source};
use crate::engine::number;
use crate::error::Error;
use crate::link::wire::Wire;
use crate::settings::SwitchSettings;
use crate::switch::Switch;
use crate::switch::area::{Area, MOST_MEMBERS, Seat};

/// The error of VLANs of a link inside an area.
pub(super) fn carries_all() -> Error {
    Error::Range {
        code: "link.vlan",
        field: "vlan",
        value: "a setting of a link between switches of an area".into(),
        allowed: "such a link carries all VLANs",
    }
}

impl Engine {
    /// Makes an area of a new switch if it uses shortest paths.
    pub(super) fn seat(&mut self, id: SwitchId, settings: &SwitchSettings, name: &str) {
        if let Some(area) = Area::of(id, settings, self.seed, name) {
            self.switches[id.index()].seat = Some(Seat { area: number(self.areas.len()), member: 0 });
            self.areas.push(area);
        }
    }

    /// The seats of two ends, if both are switches with shortest paths.
    fn seats(&self, a: End, b: End) -> Option<(Seat, Seat)> {
        seats(&self.switches, a, b)
    }

    pub(super) fn is_one_area(&self, a: SwitchId, b: SwitchId) -> bool {
        a != b && self.seats(End::Switch(a), End::Switch(b)).is_some_and(|(a, b)| a.area == b.area)
    }

    /// True if a link between the two ends is inner.
    ///
    /// # Errors
    /// If the areas that it joins have different settings, or too many switches.
    pub(super) fn check_inner(&self, a: End, b: End) -> Result<bool, Error> {
        let Some((a, b)) = self.seats(a, b) else { return Ok(false) };
        if a.area == b.area {
            return Ok(true);
        }
        let (one, other) = (&self.areas[a.area as usize], &self.areas[b.area as usize]);
        if one.convergence() != other.convergence() {
            let value = format!("{} and {} ns", one.convergence().nanos(), other.convergence().nanos());
            let allowed = "all switches of an area have the same";
            return Err(Error::Range {
                code: "switch.convergence",
                field: "switch.convergence_ns",
                value,
                allowed,
            });
        }
        let switches = one.len() + other.len();
        if switches > MOST_MEMBERS {
            let (code, field) = ("switch.forwarding", "switch");
            let allowed = "an area has at most 32767 switches";
            return Err(Error::Range { code, field, value: switches.to_string(), allowed });
        }
        Ok(true)
    }

    /// Tells the areas of a new link; `wire` leads from `a` to `b`.
    pub(super) fn join_areas(&mut self, a: End, b: End, wire: u32) {
        let Some((one, other)) = self.seats(a, b) else {
            for end in [a, b] {
                if let Some(seat) = self.seat_of(end) {
                    self.areas[seat.area as usize].add_edge(seat.member);
                }
            }
            return;
        };
        if one.area != other.area {
            let (low, high) = (one.area.min(other.area), one.area.max(other.area));
            let (front, back) = self.areas.split_at_mut(high as usize);
            let area = &mut front[low as usize];
            area.absorb(&mut back[0]);
            for (member, id) in (0..).zip(area.switches()) {
                self.switches[id.index()].seat = Some(Seat { area: low, member });
            }
        }
        if let Some((one, other)) = self.seats(a, b) {
            self.areas[one.area as usize].link(one.member, other.member, wire);
            self.spread_awareness(one);
        }
    }

    /// Makes the area of a switch VLAN-aware, all its switches and inner links.
    pub(super) fn make_aware(&mut self, switch: SwitchId) {
        let Some(seat) = self.switches[switch.index()].seat else { return };
        let area = &mut self.areas[seat.area as usize];
        if !core::mem::replace(&mut area.aware, true) {
            self.spread_awareness(seat);
        }
    }

    /// If an area is VLAN-aware, lets all its inner links carry all VLANs.
    fn spread_awareness(&mut self, seat: Seat) {
        let area = &self.areas[seat.area as usize];
        if area.aware {
            for (member, id) in (0..).zip(area.switches()) {
                self.switches[id.index()].carry_all_vlans(area.inner(member));
            }
        }
    }

    /// Checks new settings of a switch during a run.
    ///
    /// # Errors
    /// If they change the kind of forwarding to or from shortest paths, or the convergence.
    pub(super) fn check_change(&self, switch: SwitchId, settings: &SwitchSettings) -> Result<(), Error> {
        let area = self.switches[switch.index()].seat.map(|seat| &self.areas[seat.area as usize]);
        let convergence = match settings {
            SwitchSettings::ShortestPath { convergence_ns, .. } => Some(*convergence_ns),
            _ => None,
        };
        if area.map(|area| area.convergence().nanos()) == convergence {
            return Ok(());
        }
        let value = format!("{settings:?}");
        let allowed = "shortest paths and their convergence are set before the run";
        Err(Error::Range { code: "switch.forwarding", field: "switch", value, allowed })
    }

    fn seat_of(&self, end: End) -> Option<Seat> {
        seat_of(&self.switches, end)
    }
}

fn seat_of(switches: &[Switch], end: End) -> Option<Seat> {
    match end {
        End::Switch(switch) => switches[switch.index()].seat,
        End::Port(_) => None,
    }
}

fn seats(switches: &[Switch], a: End, b: End) -> Option<(Seat, Seat)> {
    Some((seat_of(switches, a)?, seat_of(switches, b)?))
}

/// Lets the area of an inner link converge after the link has gone up or down.
pub(super) fn await_convergence(
    context: &mut Context,
    wires: &[Wire],
    switches: &[Switch],
    areas: &[Area],
    link: LinkId,
    up: bool,
) {
    let [to, from] = [2 * link.0, 2 * link.0 + 1].map(|wire| wires[wire as usize].end());
    if let Some((seat, _)) = seats(switches, from, to) {
        let at = context.now + areas[seat.area as usize].convergence();
        context.at(at, Class::Change, source::CHANGE, Event::Converge(2 * link.0 + u32::from(!up)));
    }
}

/// Computes new paths after a change of the link of this wire: up, or down if the wire is odd.
pub(super) fn converge(wires: &[Wire], switches: &[Switch], areas: &mut [Area], wire: u32) {
    let (forward, up) = (wire & !1, wire % 2 == 0);
    let [to, from] = [forward, forward + 1].map(|wire| wires[wire as usize].end());
    if let Some((a, b)) = seats(switches, from, to) {
        areas[a.area as usize].converge(a.member, b.member, forward, up);
    }
}
