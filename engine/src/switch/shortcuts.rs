//! Shortcuts: known ways through rows of switches.
//!
//! A frame that crosses many switches finds little of them, of their tables, wires and accounts, in the
//! processor's caches. Where a frame to one known address would pass two switches or more, and between them
//! only bare wires ([`Wire::leads_on`]), the engine keeps the way, and the next frame from the same wire with the
//! same addresses goes straight to the last wire of it, as with the flow cache of a software switch.
//!
//! Nothing that can be seen differs. Such a frame crosses the row alone and in no time, so nobody can come
//! between. What it would have left behind is owed: its count in the account of each switch and wire, and
//! its time in the entry of each table that knows its source. A debt is settled before anybody looks: before a frame
//! passes one of these switches in the ordinary way, before the ledger is read, before a change.
//!
//! A shortcut rests on entries of tables and on bare wires. Whatever changes one of those makes all
//! shortcuts void: a change of the scenario, an address that moves, a wire that begins or ceases to be bare.
//! Entries that become newer change nothing. Those that nobody renews age, and only then can they be purged: each
//! shortcut is looked over when the first of its entries would have aged since the last time.

use crate::element::{End, SwitchId};
use crate::frame::Pool;
use crate::ledger::{Ledger, Tally};
use crate::link::in_flight::InFlight;
use crate::link::wire::Wire;
use crate::switch::{GROUP, Switch, address};
use crate::time::Instant;

/// Pairs of addresses that are remembered, at most.
const SLOTS: usize = 2048;
/// Slots in which a pair may be: the one of two that was used longer ago makes room.
const WAYS: usize = 2;
/// Switches of one shortcut, at most; from there on the way is the ordinary one.
const LONGEST: usize = 1024;

/// Frames that take the same way while nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    /// The wire on which they come to the first switch.
    wire: u32,
    source: u64,
    destination: u64,
}

impl Flow {
    /// The first slot of its set.
    fn set(&self) -> usize {
        let sum = self
            .source
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(self.destination.wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
            .wrapping_add(u64::from(self.wire).wrapping_mul(0x1656_67b1_9e37_79f9));
        #[allow(clippy::cast_possible_truncation)] // 32 bits
        let high = (sum >> 32) as usize;
        high % (SLOTS / WAYS) * WAYS
    }
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has been seen; a second frame makes it worth a look.
    Seen,
    /// There is nothing to cut short.
    Short,
    /// Until the instant frames of no more octets than these leave on the wire `exit`.
    Known { until: Instant, largest: u32, exit: u32 },
}

/// A switch of a way, and the wire that leads on from it.
#[derive(Clone, Copy, Debug)]
struct Hop {
    switch: SwitchId,
    wire: u32,
}

#[derive(Debug)]
struct Slot {
    flow: Flow,
    /// What it says is void in another.
    generation: u64,
    state: State,
    hops: Vec<Hop>,
    /// What has passed since accounts were last settled.
    owed: Tally,
    /// When the last frame passed, or else when the flow was first seen.
    last: Instant,
}

/// All shortcuts of an engine.
pub(crate) struct Shortcuts {
    /// Sets of [`WAYS`]; none before the first frame that may need one.
    slots: Vec<Slot>,
    /// Slots that owe something.
    owing: Vec<usize>,
    generation: u64,
    /// Something on which shortcuts rest has changed.
    shaken: bool,
}

impl Default for Shortcuts {
    fn default() -> Self {
        // Switches and slots start with a generation that never was.
        Self { slots: Vec::new(), owing: Vec::new(), generation: 1, shaken: false }
    }
}

impl Shortcuts {
    /// Takes note if something on which a shortcut may rest has changed; whatever was owed to it has
    /// been settled before.
    pub fn shake_if(&mut self, changed: &mut bool) {
        self.shaken |= core::mem::take(changed);
    }

    /// Something on which a shortcut may rest is about to change.
    pub fn forget(&mut self, switches: &mut [Switch], ledger: &mut Ledger) {
        self.settle(switches, ledger);
        self.generation += 1;
        self.shaken = false;
    }

    /// Whether a shortcut crosses this switch.
    pub fn cross(&self, switch: &Switch) -> bool {
        switch.crossed == self.generation
    }

    /// Enters into accounts and tables what is owed.
    pub fn settle(&mut self, switches: &mut [Switch], ledger: &mut Ledger) {
        while let Some(number) = self.owing.pop() {
            let slot = &mut self.slots[number];
            let owed = core::mem::take(&mut slot.owed);
            let mut wire = slot.flow.wire;
            for hop in &slot.hops {
                if wire != slot.flow.wire {
                    let account = &mut ledger.wires[wire as usize];
                    account.entered += owed;
                    account.left += owed;
                }
                ledger.switches[hop.switch.index()].entered += owed;
                switches[hop.switch.index()].renew(slot.last, slot.flow.source, wire ^ 1);
                wire = hop.wire;
            }
        }
    }

    /// Whether a shortcut may begin at this switch: from a hub, or where no wire leads on, there is nothing to cut short.
    pub fn may_begin(&self, switch: &mut Switch, wires: &[Wire]) -> bool {
        if switch.trunks.is_empty() {
            return false;
        }
        if switch.begins.0 != self.generation {
            let leads_on = |&wire: &u32| wires[wire as usize].leads_on().is_some();
            switch.begins = (self.generation, switch.is_plain() && switch.trunks.iter().any(leads_on));
        }
        // What was found before something changed says nothing.
        switch.begins.1 || self.shaken
    }

    /// The wire on which this frame leaves the row of switches that it comes to on `wire`, if that is known
    /// and all between is done with. Nothing else may be on its way at this instant.
    pub fn take(
        &mut self,
        now: Instant,
        (wires, switches): (&[Wire], &mut [Switch]),
        (pool, ledger): (&Pool, &mut Ledger),
        (wire, flight): (u32, &InFlight),
    ) -> Option<u32> {
        let octets = pool.octets(flight.frame.buffer);
        let flow = Flow { wire, destination: address(&octets[..6]), source: address(&octets[6..12]) };
        if (flow.destination | flow.source) & GROUP != 0 {
            return None;
        }
        if core::mem::take(&mut self.shaken) {
            self.forget(switches, ledger);
        }
        let Some(number) = self.find(&flow) else {
            self.note(flow, now, switches, ledger);
            return None;
        };
        let mut state = self.slots[number].state;
        let known = matches!(state, State::Known { until, .. } if now <= until);
        if !known && state != State::Short {
            self.settle(switches, ledger);
            state = self.look(now, number, wires, switches);
        }
        let State::Known { largest, exit, .. } = state else { return None };
        if flight.last > now || flight.frame.sizes().largest() > largest {
            return None;
        }
        let slot = &mut self.slots[number];
        if slot.owed.frames == 0 {
            self.owing.push(number);
        }
        slot.owed += Tally::of(&flight.frame);
        slot.last = now;
        Some(exit)
    }

    fn find(&self, flow: &Flow) -> Option<usize> {
        let set = flow.set();
        let slots = self.slots.get(set..set + WAYS)?;
        let found = slots.iter().position(|slot| slot.flow == *flow && slot.generation == self.generation);
        found.map(|way| set + way)
    }

    /// Remembers that a flow was seen.
    fn note(&mut self, flow: Flow, now: Instant, switches: &mut [Switch], ledger: &mut Ledger) {
        if self.slots.is_empty() {
            self.slots.extend((0..SLOTS).map(|_| Slot {
                flow,
                generation: 0,
                state: State::Seen,
                hops: Vec::new(),
                owed: Tally::default(),
                last: Instant::ZERO,
            }));
            self.owing.reserve(SLOTS);
        }
        let age = |slot: &Slot| (slot.generation == self.generation, slot.last);
        let set = flow.set();
        let number = (set..set + WAYS).min_by_key(|&number| age(&self.slots[number])).unwrap_or(set);
        if self.slots[number].owed.frames > 0 {
            self.settle(switches, ledger);
        }
        let slot = &mut self.slots[number];
        (slot.flow, slot.generation, slot.state, slot.last) = (flow, self.generation, State::Seen, now);
    }

    /// Finds out which way frames of a flow take now. Nothing is owed.
    fn look(&mut self, now: Instant, number: usize, wires: &[Wire], switches: &mut [Switch]) -> State {
        let slot = &mut self.slots[number];
        let Flow { wire: mut at, source, destination } = slot.flow;
        let (mut until, mut largest, mut fits) = (Instant::NEVER, u32::MAX, u32::MAX);
        slot.hops.clear();
        let mut to = wires[at as usize].end();
        let ends = loop {
            let End::Switch(switch) = to else { break true };
            let Some((wire, good)) = switches[switch.index()].knows(now, source, destination, at ^ 1) else {
                break false;
            };
            // Only now the wire before is one between two switches of the way.
            largest = fits;
            until = until.min(good);
            slot.hops.push(Hop { switch, wire });
            let Some(mtu) = wires[wire as usize].leads_on().filter(|_| slot.hops.len() < LONGEST) else {
                break true;
            };
            fits = largest.min(mtu);
            (at, to) = (wire, wires[wire as usize].end());
        };
        slot.state = match slot.hops[..] {
            [_, .., Hop { wire: exit, .. }] => State::Known { until, largest, exit },
            // Where tables know too little they may soon know more.
            _ if ends => State::Short,
            _ => State::Seen,
        };
        if let State::Known { .. } = slot.state {
            for hop in &slot.hops {
                switches[hop.switch.index()].crossed = self.generation;
            }
        }
        slot.state
    }
}
