//! Shortcuts: cached paths through chains of switches.
//!
//! A frame that crosses many switches misses the CPU caches for most of their tables, wires and
//! counters. Where the path to one known address crosses two switches or more with only transparent
//! wires ([`Wire::switch_mtu`]) between them, the engine caches it. The next frame from the same wire
//! with the same addresses goes straight to the last wire of the path, as with the flow cache of a
//! software switch.
//!
//! The observable behaviour does not change. Such a frame crosses the chain alone and in no time,
//! so no other frame can interfere. Updates that it skips are deferred: the counters of each switch
//! and wire, and the age of its source in each table. Deferred updates are applied before they can
//! be observed: before a frame takes the ordinary path through one of these switches, before the
//! ledger is read, before a change.
//!
//! A shortcut depends on table entries and on transparent wires. Any change of one of those
//! invalidates all shortcuts: a change of the scenario, an address that moves, a wire that becomes
//! transparent or ceases to be. Refreshed entries change nothing. Entries that are not refreshed
//! age, and only then can they be purged: each shortcut is re-evaluated when the first of its
//! entries would have aged since the last evaluation.

use crate::element::{End, SwitchId};
use crate::frame::Pool;
use crate::ledger::{Ledger, Tally};
use crate::link::in_flight::InFlight;
use crate::link::wire::Wire;
use crate::switch::{GROUP, Switch, address};
use crate::time::Instant;

/// Maximum number of cached address pairs.
const SLOTS: usize = 2048;
/// Associativity of the cache: of the slots that a pair may use, the least recently used is
/// replaced.
const WAYS: usize = 2;
/// Maximum number of switches in a shortcut; the rest of a longer path is the ordinary one.
const LONGEST: usize = 1024;

/// Frames that take the same path while nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    /// The wire on which they reach the first switch.
    wire: u32,
    source: u64,
    destination: u64,
}

impl Flow {
    /// The first slot of the set.
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

/// Cache state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Seen once; the path is evaluated at the second frame.
    Seen,
    /// No shortcut: the path is too short.
    Short,
    /// Until `until`, frames of at most `largest` octets leave on the wire `exit`.
    Known { until: Instant, largest: u32, exit: u32 },
}

/// A switch of a path, and the outgoing wire.
#[derive(Clone, Copy, Debug)]
struct Hop {
    switch: SwitchId,
    wire: u32,
}

#[derive(Debug)]
struct Slot {
    flow: Flow,
    /// The slot is void in any other generation.
    generation: u64,
    state: State,
    hops: Vec<Hop>,
    /// Frames not yet added to the counters.
    owed: Tally,
    /// When the last frame passed; before that, when the flow was first seen.
    last: Instant,
}

/// All shortcuts of an engine.
pub(crate) struct Shortcuts {
    /// Sets of [`WAYS`] slots; allocated by the first frame that may use one.
    slots: Vec<Slot>,
    /// Slots with deferred updates.
    owing: Vec<usize>,
    generation: u64,
    /// True if a state that shortcuts depend on has changed.
    shaken: bool,
}

impl Default for Shortcuts {
    fn default() -> Self {
        // Switches and slots start with a generation that is never current.
        Self { slots: Vec::new(), owing: Vec::new(), generation: 1, shaken: false }
    }
}

impl Shortcuts {
    /// Records that a state that shortcuts depend on has changed; deferred updates were applied
    /// before.
    pub fn invalidate_if(&mut self, changed: &mut bool) {
        self.shaken |= core::mem::take(changed);
    }

    /// Prepares for a change of a state that shortcuts depend on.
    pub fn forget(&mut self, switches: &mut [Switch], ledger: &mut Ledger) {
        self.settle(switches, ledger);
        self.generation += 1;
        self.shaken = false;
    }

    /// True if a shortcut crosses this switch.
    pub fn cross(&self, switch: &Switch) -> bool {
        switch.crossed == self.generation
    }

    /// Applies deferred updates to counters and tables.
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

    /// True if a shortcut may begin at this switch: not at a hub, nor where no wire leads on.
    pub fn may_begin(&self, switch: &mut Switch, wires: &[Wire]) -> bool {
        if switch.trunks.is_empty() {
            return false;
        }
        if switch.begins.0 != self.generation {
            let switch_mtu = |&wire: &u32| wires[wire as usize].switch_mtu().is_some();
            switch.begins = (self.generation, switch.is_plain() && switch.trunks.iter().any(switch_mtu));
        }
        // A result from before a change is void.
        switch.begins.1 || self.shaken
    }

    /// The wire on which this frame leaves the chain of switches that it enters on `wire`; `None`
    /// if that is not cached. Defers all updates on the way. No other frame may be in progress at
    /// this instant.
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

    /// Records that a flow was seen.
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

    /// Evaluates the present path of a flow. No updates may be deferred.
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
            // Only now is the previous wire known to connect two switches of the path.
            largest = fits;
            until = until.min(good);
            slot.hops.push(Hop { switch, wire });
            let Some(mtu) = wires[wire as usize].switch_mtu().filter(|_| slot.hops.len() < LONGEST) else {
                break true;
            };
            fits = largest.min(mtu);
            (at, to) = (wire, wires[wire as usize].end());
        };
        slot.state = match slot.hops[..] {
            [_, .., Hop { wire: exit, .. }] => State::Known { until, largest, exit },
            // If an address is unknown now, it may be learned soon.
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
