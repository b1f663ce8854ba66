//! Learning switch and hub.
//!
//! A switch (IEEE 802.1D, 2004, clauses 7.7 to 7.9) learns behind which link an address lives
//! from the frames that it sends, forwards to that link alone, and floods what it does not know
//! and what is sent to a group. It takes no time: rates, delays and queues belong to links.

use std::collections::BTreeMap;

use crate::element::SwitchId;
use crate::settings::SwitchSettings;
use crate::time::{Instant, Span};

/// Where to send a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Out on this wire alone.
    To(u32),
    /// Out on every wire but that on which it came.
    Everywhere,
    /// Nowhere: the destination is where it came from, or on the link only.
    Filtered,
}

/// A switch or hub.
pub(crate) struct Switch {
    pub id: SwitchId,
    /// Wires that lead away from it.
    pub out: Vec<u32>,
    table: Option<Table>,
}

/// What a switch knows about addresses.
struct Table {
    ageing: Span,
    limit: usize,
    known: BTreeMap<u64, Known>,
    /// No entry is older than the ageing time before this instant.
    next_purge: Instant,
}

#[derive(Clone, Copy)]
struct Known {
    wire: u32,
    seen: Instant,
}

const GROUP: u64 = 0x0100_0000_0000;
/// 01-80-C2-00-00-00 to 0F: for the link only, never forwarded (IEEE 802.1D, table 7-10).
const RESERVED: u64 = 0x0180_c200_0000;

impl Switch {
    pub fn new(id: SwitchId, settings: &SwitchSettings) -> Self {
        Self { id, out: Vec::new(), table: Table::new(settings) }
    }

    /// Takes new settings; a switch that stays one keeps what it knows.
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

    /// Forgets who lives behind a wire that leads away from here.
    pub fn forget(&mut self, wire: u32) {
        if let Some(table) = &mut self.table {
            table.known.retain(|_, known| known.wire != wire);
        }
    }

    /// Where to send a frame with these first octets that came from where `back` leads.
    pub fn route(&mut self, now: Instant, octets: &[u8], back: u32) -> Way {
        let Some(table) = &mut self.table else { return Way::Everywhere };
        let destination = address(&octets[..6]);
        table.learn(now, address(&octets[6..12]), back);
        if destination & GROUP != 0 {
            return if destination & !0xf == RESERVED { Way::Filtered } else { Way::Everywhere };
        }
        match table.known.get(&destination) {
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
}

fn address(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |address, &octet| address << 8 | u64::from(octet))
}

impl Table {
    fn new(settings: &SwitchSettings) -> Option<Self> {
        match settings {
            SwitchSettings::Hub => None,
            SwitchSettings::Switch { ageing_ns, addresses } => Some(Self {
                ageing: Span::from_nanos(*ageing_ns),
                limit: *addresses as usize,
                known: BTreeMap::new(),
                next_purge: Instant::ZERO,
            }),
        }
    }

    /// Remembers where `source` lives. A group address never is one; a full table learns nobody
    /// new until somebody has aged.
    fn learn(&mut self, now: Instant, source: u64, wire: u32) {
        if source & GROUP != 0 {
            return;
        }
        if let Some(known) = self.known.get_mut(&source) {
            *known = Known { wire, seen: now };
            return;
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
    }
}
