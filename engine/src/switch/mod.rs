//! Learning switch and hub.
//!
//! A switch (IEEE 802.1D, 2004, clauses 7.7 to 7.9) learns the link of an address from source
//! addresses, forwards unicast frames to that link only, and floods frames to unknown and group
//! addresses. It takes no time: rates, delays and queues belong to links. A VLAN-aware switch does
//! this separately for each VLAN. Switches with shortest paths form an [`area`].

pub(crate) mod area;
pub(crate) mod forward;
pub(crate) mod shortcuts;
mod vlan;

use std::collections::BTreeMap;

use crate::element::{End, SwitchId};
use crate::frame::{Frame, Pool};
use crate::settings::{SwitchSettings, VlanSettings};
use crate::switch::area::Seat;
use crate::switch::vlan::{Class, Member};
use crate::time::{Instant, Span};

/// Forwarding decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Out on this wire only.
    To(u32),
    /// Out on every wire except the ingress; in an area, on every edge.
    Everywhere,
    /// Out on every edge except the ingress, and on the branches of the tree of this member of the
    /// area.
    Tree(u16),
    /// Dropped: the destination is on the ingress side, or is link-local, or the tree has changed.
    Filtered,
    /// Dropped: no path leads to the destination.
    Nowhere,
}

/// A switch or hub.
pub(crate) struct Switch {
    pub id: SwitchId,
    /// Wires that lead away from the switch.
    pub out: Vec<u32>,
    /// Those of them that do not lead to another switch of its area.
    pub edges: Vec<u32>,
    /// Place in an area, if it uses shortest paths.
    pub seat: Option<Seat>,
    /// Those of them that lead to another switch.
    pub trunks: Vec<u32>,
    /// Generation of the last shortcut that crosses the switch.
    pub crossed: u64,
    /// Whether a shortcut may begin here, and the generation in which that was computed.
    pub begins: (u64, bool),
    table: Option<Table>,
    /// VLAN membership by outgoing wire, for the configured ports; empty in a switch that is not
    /// VLAN-aware and treats tags as payload.
    members: BTreeMap<u32, Member>,
    /// VLAN membership of ports that are not configured.
    other: Member,
}

/// Address table of a switch.
struct Table {
    ageing: Span,
    limit: usize,
    /// Entries by VLAN and address.
    known: BTreeMap<u64, Known>,
    /// No entry is older than the ageing time before this instant.
    next_purge: Instant,
}

#[derive(Clone, Copy)]
struct Known {
    wire: u32,
    seen: Instant,
}

/// Group bit of an address.
pub(crate) const GROUP: u64 = 0x0100_0000_0000;
/// 01-80-C2-00-00-00 to 0F: link-local, never forwarded (IEEE 802.1D, table 7-10).
const RESERVED: u64 = 0x0180_c200_0000;

impl Switch {
    pub fn new(id: SwitchId, settings: &SwitchSettings) -> Self {
        let table = Table::new(settings);
        let (members, other) = (BTreeMap::new(), Member::default());
        let (out, edges, trunks) = (Vec::new(), Vec::new(), Vec::new());
        Self { id, out, edges, seat: None, trunks, crossed: 0, begins: (0, false), table, members, other }
    }

    /// Attaches a wire that leads away from the switch; an `inner` one leads to a switch of its
    /// area.
    pub fn join(&mut self, wire: u32, to: End, inner: bool) {
        self.out.push(wire);
        if !inner {
            self.edges.push(wire);
        }
        if let End::Switch(_) = to {
            self.trunks.push(wire);
        }
    }

    /// Detaches a wire that leads away from the switch.
    pub fn leave(&mut self, wire: u32) {
        for wires in [&mut self.out, &mut self.edges, &mut self.trunks] {
            wires.retain(|&other| other != wire);
        }
        self.members.remove(&wire);
        self.forget(wire);
    }

    /// Sets the VLANs of the port at which `wire` begins.
    pub fn set_vlan(&mut self, wire: u32, settings: &VlanSettings) {
        self.members.insert(wire, Member::new(settings));
        self.forget(wire);
    }

    /// Makes the switch VLAN-aware; its inner wires carry all VLANs, tagged.
    pub fn carry_all_vlans(&mut self, inner: impl Iterator<Item = u32>) {
        self.members.extend(inner.map(|wire| (wire, Member::every())));
    }

    fn member(&self, wire: u32) -> &Member {
        self.members.get(&wire).unwrap_or(&self.other)
    }

    /// Classifies a frame that came from the link of wire `back`; `Some(None)` if the switch is not
    /// VLAN-aware, `None` if the port does not accept the frame.
    #[allow(clippy::option_option)]
    pub fn classify(&self, octets: &[u8], back: u32) -> Option<Option<Class>> {
        if self.members.is_empty() {
            return Some(None);
        }
        vlan::classify(self.member(back), octets).map(Some)
    }

    /// True if a frame of this class may leave on `wire`.
    pub fn leaves(&self, wire: u32, class: Option<Class>) -> bool {
        class.is_none_or(|class| vlan::leaves(self.member(wire), class))
    }

    /// The frame as it leaves on `wire`; `None` if its headers leave no room for a tag.
    pub fn leaving(&self, wire: u32, class: Class, frame: &Frame, pool: &mut Pool) -> Option<Frame> {
        vlan::leaving(self.member(wire), class, frame, pool)
    }

    /// Applies new settings; a switch that remains a switch keeps its table.
    pub fn change(&mut self, settings: &SwitchSettings) {
        let known = self.table.take().map(|table| table.known);
        self.table = Table::new(settings);
        if let (Some(table), Some(known)) = (&mut self.table, known) {
            table.known = known;
            while table.known.len() > table.limit {
                table.known.pop_last();
            }
        }
    }

    /// Removes the addresses learned on the link of a wire.
    pub fn forget(&mut self, wire: u32) {
        if let Some(table) = &mut self.table {
            table.known.retain(|_, known| known.wire != wire);
        }
    }

    /// Learns the source address of a frame with these first octets that came from the link of wire
    /// `back`. Returns true if a known address has moved.
    pub fn learn(&mut self, now: Instant, octets: &[u8], back: u32, class: Option<Class>) -> bool {
        let Some(table) = &mut self.table else { return false };
        table.learn(now, vlan_key(class), address(&octets[6..12]), back)
    }

    /// Forwarding decision for a frame with these first octets that came from the link of wire
    /// `back`.
    pub fn route(&self, now: Instant, octets: &[u8], back: u32, class: Option<Class>) -> Way {
        let Some(table) = &self.table else { return Way::Everywhere };
        let destination = address(&octets[..6]);
        if destination & GROUP != 0 {
            return if is_reserved(destination) { Way::Filtered } else { Way::Everywhere };
        }
        match table.known.get(&(vlan_key(class) | destination)) {
            Some(known) if now.since(known.seen) <= table.ageing => {
                if known.wire == back {
                    Way::Filtered
                } else {
                    Way::To(known.wire)
                }
            }
            _ => Way::Everywhere,
        }
    }

    /// True if it is a learning switch that is not VLAN-aware.
    pub fn is_plain(&self) -> bool {
        self.table.is_some() && self.members.is_empty()
    }

    /// For frames from the link of wire `back` to `destination`: the outgoing wire, and until when
    /// none of the table entries has aged. `None` unless `source` is known to be on that link and
    /// the switch is not VLAN-aware.
    pub fn knows(&self, now: Instant, source: u64, destination: u64, back: u32) -> Option<(u32, Instant)> {
        let table = self.table.as_ref().filter(|_| self.is_plain())?;
        let (from, to) = (table.known.get(&source)?, table.known.get(&destination)?);
        let until = from.seen.min(to.seen) + table.ageing;
        (from.wire == back && to.wire != back && now <= until).then_some((to.wire, until))
    }

    /// Refreshes the entry of `source` on the link of wire `back`: its last frame passed at `last`.
    pub fn renew(&mut self, last: Instant, source: u64, back: u32) {
        let known = self.table.as_mut().and_then(|table| table.known.get_mut(&source));
        debug_assert!(known.as_ref().is_some_and(|known| known.wire == back), "a void shortcut was taken");
        if let Some(known) = known {
            known.seen = known.seen.max(last);
        }
    }
}

/// True if the address is never forwarded.
fn is_reserved(destination: u64) -> bool {
    destination & !0xf == RESERVED
}

/// The VLAN part of a table key.
pub(crate) fn vlan_key(class: Option<Class>) -> u64 {
    class.map_or(0, |class| u64::from(class.vlan) << 48)
}

/// The address in these octets, as a number.
pub(crate) fn address(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |address, &octet| address << 8 | u64::from(octet))
}

impl Table {
    fn new(settings: &SwitchSettings) -> Option<Self> {
        match settings {
            // Addresses of an area are in the area.
            SwitchSettings::Hub | SwitchSettings::ShortestPath { .. } => None,
            SwitchSettings::Switch { ageing_ns, addresses } => Some(Self {
                ageing: Span::from_nanos(*ageing_ns),
                limit: *addresses as usize,
                known: BTreeMap::new(),
                next_purge: Instant::ZERO,
            }),
        }
    }

    /// Learns the link of `source` in a VLAN. Group addresses are ignored; a full table learns no
    /// new address until an entry has aged. Returns true if an address has moved.
    fn learn(&mut self, now: Instant, vlan: u64, source: u64, wire: u32) -> bool {
        if source & GROUP != 0 {
            return false;
        }
        let source = vlan | source;
        if let Some(known) = self.known.get_mut(&source) {
            let moved = known.wire != wire;
            *known = Known { wire, seen: now };
            return moved;
        }
        if self.known.len() >= self.limit && now >= self.next_purge {
            let ageing = self.ageing;
            self.known.retain(|_, known| now.since(known.seen) <= ageing);
            let oldest = self.known.values().map(|known| known.seen).min().unwrap_or(now);
            self.next_purge = oldest + ageing;
        }
        if self.known.len() < self.limit {
            self.known.insert(source, Known { wire, seen: now });
        }
        false
    }
}
