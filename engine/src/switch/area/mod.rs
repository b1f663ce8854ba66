//! Shortest path bridging with several equal paths (IEEE 802.1aq and 802.1Qbp; both are part of
//! IEEE 802.1Q since 2014, clauses 27, 28 and 44; RFC 6329 describes the computation).
//!
//! The switches of an area are joined by *inner* links; all other links are *edges*.
//!
//! * **Addresses** are learned at the edge where they enter, and the whole area knows them at once.
//!   In the standard an edge switch learns them from the frames that it decapsulates.
//! * **Unicast frames to a known address** take a shortest path, in hops, to the switch of that
//!   address. Each switch selects one of its next hops by the flow hash, which the ingress switch
//!   computes once (the F-TAG of 802.1Qbp has 16 bits for it, clause 44), mixed with a number of
//!   its own: with the same function in each switch, all flows that one switch has sent the same
//!   way would stay together at the next one.
//! * **All other frames** take the shortest path tree of the ingress switch, without the branches
//!   that lead to no edge. Of equal paths the tree has the one with the lowest path identifier: of
//!   the identifiers of their switches in ascending order, the list that is lower at the first
//!   difference (802.1aq, ECT algorithm 00-80-C2-01). The identifier of a switch is its position
//!   in the order in which switches were added.
//!
//! Frames are not encapsulated: the switch that the backbone header names, the flow hash and the
//! epoch are in a [`Label`], so frames have the same length in the area as outside.
//!
//! # Convergence
//!
//! All switches of an area compute new paths at one instant, `convergence` after an inner link has
//! gone down or come up; until then they use the old ones. A unicast frame on its way continues on
//! the new paths, which bring it nearer with each hop. Each computation begins a new *epoch* of the
//! trees: a frame on a tree of an older one is dropped, because the new tree could lead it to a switch twice;
//! in the standard the agreement protocol blocks it.

mod paths;

use core::num::NonZeroU16;
use std::collections::BTreeMap;

use crate::element::SwitchId;
use crate::frame::packet;
use crate::random::Stream;
use crate::settings::SwitchSettings;
use crate::switch::area::paths::Paths;
use crate::switch::{GROUP, Way, address, is_reserved};
use crate::time::{Instant, Span};

/// Largest number of switches in an area: a [`Label`] has 15 bits for one.
pub(crate) const MOST_MEMBERS: usize = (1 << 15) - 1;

/// What switches of an area know of a frame between them. It has 4 octets with a niche, because
/// every frame has room for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Twice the number of a switch, plus 1; plus 1 again for a frame on a tree.
    switch: NonZeroU16,
    /// Flow hash of a unicast frame, epoch of a frame on a tree.
    value: u16,
}

impl Label {
    /// Of a unicast frame to the switch `egress`.
    fn unicast(egress: u16, hash: u16) -> Self {
        Self { switch: NonZeroU16::MIN.saturating_add(2 * egress), value: hash }
    }

    /// Of a frame on the tree of the switch `ingress`.
    fn on_tree(ingress: u16, epoch: u16) -> Self {
        Self { switch: NonZeroU16::MIN.saturating_add(2 * ingress + 1), value: epoch }
    }

    fn is_tree(self) -> bool {
        self.switch.get() % 2 == 0
    }

    /// The egress switch of a unicast frame, the ingress switch of a frame on a tree.
    fn member(self) -> u16 {
        (self.switch.get() - 1) / 2
    }
}

/// The place of a switch in its area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub area: u32,
    pub member: u16,
}

/// A link to another switch of the area.
#[derive(Clone, Copy, Debug)]
struct Inner {
    /// The wire that leads to it.
    wire: u32,
    to: u16,
    /// True if the paths use it.
    up: bool,
}

/// A switch of the area.
struct Member {
    id: SwitchId,
    /// Random number of this switch for the selection of next hops.
    salt: u64,
    /// True if it has links that are not inner.
    edge: bool,
    ageing: Span,
    limit: u32,
    /// Number of addresses learned at its edges.
    known: u32,
    /// No entry of its own is older than the ageing time before this instant.
    next_purge: Instant,
    links: Vec<Inner>,
    /// Paths to this switch; `None` until the first frame needs them.
    paths: Option<Box<Paths>>,
}

/// Where an address was last seen.
#[derive(Clone, Copy)]
struct Host {
    member: u16,
    wire: u32,
    seen: Instant,
}

/// The switches that inner links join.
pub(crate) struct Area {
    members: Vec<Member>,
    /// Addresses by VLAN and address.
    hosts: BTreeMap<u64, Host>,
    convergence: Span,
    epoch: u16,
    /// True if the switches are VLAN-aware.
    pub aware: bool,
    queue: Vec<u16>,
}

/// The frame that a switch of an area forwards.
pub(crate) struct Passing<'a> {
    pub now: Instant,
    pub octets: &'a [u8],
    /// The wire towards its source.
    pub back: u32,
    /// The VLAN part of a key.
    pub vlan: u64,
}

impl Area {
    /// The area of one switch alone; `None` if the switch uses no shortest paths.
    pub fn of(id: SwitchId, settings: &SwitchSettings, seed: u64, name: &str) -> Option<Self> {
        let &SwitchSettings::ShortestPath { ageing_ns, addresses, convergence_ns } = settings else {
            return None;
        };
        let member = Member {
            id,
            salt: Stream::named(seed, &format!("switch {name} paths")).bits(),
            edge: false,
            ageing: Span::from_nanos(ageing_ns),
            limit: addresses,
            known: 0,
            next_purge: Instant::ZERO,
            links: Vec::new(),
            paths: None,
        };
        Some(Self {
            members: vec![member],
            hosts: BTreeMap::new(),
            convergence: Span::from_nanos(convergence_ns),
            epoch: 0,
            aware: false,
            queue: Vec::new(),
        })
    }

    /// Number of switches.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The switches, in the order of their numbers in the area.
    pub fn switches(&self) -> impl Iterator<Item = SwitchId> {
        self.members.iter().map(|member| member.id)
    }

    /// Inner wires of a switch.
    pub fn inner(&self, member: u16) -> impl Iterator<Item = u32> {
        self.members[usize::from(member)].links.iter().map(|inner| inner.wire)
    }

    /// Time from a change of an inner link to new paths.
    pub fn convergence(&self) -> Span {
        self.convergence
    }

    /// Takes over all switches of `other`, which had no link to this area; they follow its own.
    pub fn absorb(&mut self, other: &mut Self) {
        #[allow(clippy::cast_possible_truncation)] // at most MOST_MEMBERS
        let shift = self.members.len() as u16;
        self.aware |= other.aware;
        self.epoch = self.epoch.max(other.epoch);
        for mut member in other.members.drain(..) {
            member.links.iter_mut().for_each(|inner| inner.to += shift);
            member.paths = None;
            self.members.push(member);
        }
        let hosts = core::mem::take(&mut other.hosts);
        self.hosts.extend(hosts.into_iter().map(|(key, host)| {
            let member = host.member + shift;
            (key, Host { member, ..host })
        }));
        self.begin_epoch();
    }

    /// Adds a link between two switches of the area; `wire` leads from `a` to `b`.
    pub fn link(&mut self, a: u16, b: u16, wire: u32) {
        for (from, to, wire) in [(a, b, wire), (b, a, wire ^ 1)] {
            self.members[usize::from(from)].links.push(Inner { wire, to, up: true });
        }
        self.begin_epoch();
    }

    /// Adds an edge to a switch.
    pub fn add_edge(&mut self, member: u16) {
        let member = &mut self.members[usize::from(member)];
        if !member.edge {
            member.edge = true;
            self.begin_epoch();
        }
    }

    /// Computes new paths if the inner link of the wire from `a` to `b` was not up, or down, before.
    pub fn converge(&mut self, a: u16, b: u16, wire: u32, up: bool) {
        let mut changed = false;
        for (member, wire) in [(a, wire), (b, wire ^ 1)] {
            for inner in &mut self.members[usize::from(member)].links {
                if inner.wire == wire {
                    changed |= core::mem::replace(&mut inner.up, up) != up;
                }
            }
        }
        if changed {
            self.begin_epoch();
        }
    }

    /// Voids all paths. They are computed when the next frame needs them.
    fn begin_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        for member in &mut self.members {
            if let Some(paths) = &mut member.paths {
                paths.valid = false;
            }
        }
    }

    /// Applies new settings of a switch.
    pub fn change(&mut self, member: u16, settings: &SwitchSettings) {
        if let &SwitchSettings::ShortestPath { ageing_ns, addresses, .. } = settings {
            let own = &mut self.members[usize::from(member)];
            (own.ageing, own.limit) = (Span::from_nanos(ageing_ns), addresses);
            own.next_purge = Instant::ZERO;
            let mut left = addresses;
            self.retain(|host| {
                let kept = host.member != member || left > 0;
                left -= u32::from(kept && host.member == member);
                kept
            });
        }
    }

    /// Removes the addresses learned on the link of a wire.
    pub fn forget(&mut self, wire: u32) {
        self.retain(|host| host.wire != wire);
    }

    fn retain(&mut self, mut keeps: impl FnMut(&Host) -> bool) {
        let members = &mut self.members;
        self.hosts.retain(|_, host| {
            let kept = keeps(host);
            members[usize::from(host.member)].known -= u32::from(!kept);
            kept
        });
    }

    /// Learns the source address of a frame that entered the area. Group addresses are ignored; a
    /// switch with a full table learns no new address until one of its entries has aged.
    fn learn(&mut self, at: u16, passing: &Passing) {
        let source = address(&passing.octets[6..12]);
        if source & GROUP != 0 {
            return;
        }
        let (now, key) = (passing.now, passing.vlan | source);
        let host = Host { member: at, wire: passing.back, seen: now };
        if let Some(known) = self.hosts.get_mut(&key) {
            if known.member == at {
                *known = host;
                return;
            }
            self.members[usize::from(known.member)].known -= 1;
            self.hosts.remove(&key);
        }
        let own = &self.members[usize::from(at)];
        if own.known >= own.limit && now >= own.next_purge {
            let ageing = own.ageing;
            let mut oldest = now;
            self.retain(|host| {
                let kept = host.member != at || now.since(host.seen) <= ageing;
                if kept && host.member == at {
                    oldest = oldest.min(host.seen);
                }
                kept
            });
            self.members[usize::from(at)].next_purge = oldest + ageing;
        }
        let own = &mut self.members[usize::from(at)];
        if own.known < own.limit {
            own.known += 1;
            self.hosts.insert(key, host);
        }
    }

    /// Forwarding decision of the switch `at`. `label` is what the frame carries: `None` if it
    /// enters the area here. Sets it for the next switch.
    pub fn way(&mut self, at: u16, passing: &Passing, label: &mut Option<Label>) -> Way {
        match *label {
            None => self.enter(at, passing, label),
            Some(carried) if !carried.is_tree() => self.onward(at, passing, label, carried),
            Some(carried) if carried.value == self.epoch => self.tree(carried.member()),
            Some(_) => Way::Filtered,
        }
    }

    /// Forwarding decision for a frame that enters the area.
    fn enter(&mut self, at: u16, passing: &Passing, label: &mut Option<Label>) -> Way {
        self.learn(at, passing);
        let destination = address(&passing.octets[..6]);
        if is_reserved(destination) {
            return Way::Filtered;
        }
        let known = if destination & GROUP == 0 { self.find(passing) } else { None };
        let Some(host) = known else {
            *label = Some(Label::on_tree(at, self.epoch));
            return self.tree(at);
        };
        if host.member == at {
            return if host.wire == passing.back { Way::Filtered } else { Way::To(host.wire) };
        }
        #[allow(clippy::cast_possible_truncation)] // the high half
        let hash = (packet::flow(passing.octets, self.members[usize::from(at)].salt) >> 16) as u16;
        self.onward(at, passing, label, Label::unicast(host.member, hash))
    }

    /// The next hop of a unicast frame.
    fn onward(&mut self, at: u16, passing: &Passing, label: &mut Option<Label>, mut carried: Label) -> Way {
        if carried.member() == at {
            *label = None;
            match self.find(passing) {
                Some(host) if host.member == at => return Way::To(host.wire),
                // The address has moved while the frame was on its way.
                Some(host) => carried = Label::unicast(host.member, carried.value),
                None => return Way::Everywhere,
            }
        }
        *label = Some(carried);
        let (salt, to) = (self.members[usize::from(at)].salt, carried.member());
        match self.paths(to).next_hops(at) {
            [] => Way::Nowhere,
            [wire] => Way::To(*wire),
            wires => Way::To(wires[select(carried.value, salt, wires.len())]),
        }
    }

    /// The destination of a frame, unless it is unknown or has aged.
    fn find(&self, passing: &Passing) -> Option<Host> {
        let host = *self.hosts.get(&(passing.vlan | address(&passing.octets[..6])))?;
        let ageing = self.members[usize::from(host.member)].ageing;
        (passing.now.since(host.seen) <= ageing).then_some(host)
    }

    /// Onward on the tree of the switch `root`.
    fn tree(&mut self, root: u16) -> Way {
        self.paths(root);
        Way::Tree(root)
    }

    /// Wires on which the switch `at` repeats a frame on the tree of `root`.
    pub fn branches(&self, root: u16, at: u16) -> &[u32] {
        self.members[usize::from(root)].paths.as_ref().map_or(&[], |paths| paths.branches(at))
    }

    /// The paths to the switch `to`.
    fn paths(&mut self, to: u16) -> &Paths {
        let mut paths = self.members[usize::from(to)].paths.take().unwrap_or_default();
        if !paths.valid {
            paths.compute(to, &self.members, &mut self.queue);
        }
        self.members[usize::from(to)].paths.insert(paths)
    }
}

/// Index of the next hop for a flow, of `count`: uniform, and independent in switches with
/// different salts (the last step of `SplitMix64`).
fn select(hash: u16, salt: u64, count: usize) -> usize {
    let z = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt;
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    #[allow(clippy::cast_possible_truncation)] // below `count`
    let index = (((z >> 32) * count as u64) >> 32) as usize;
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_all_switches_and_both_kinds_apart() {
        assert_eq!(size_of::<Option<Label>>(), 4);
        let most = u16::try_from(MOST_MEMBERS - 1).expect("15 bits");
        for member in [0, 1, 2, most - 1, most] {
            let (unicast, tree) = (Label::unicast(member, 7), Label::on_tree(member, 7));
            assert_eq!((unicast.member(), tree.member()), (member, member));
            assert_eq!((unicast.is_tree(), tree.is_tree()), (false, true));
        }
    }

    #[test]
    fn next_hops_are_uniform_and_independent_from_switch_to_switch() {
        // Chi-square with 3 degrees of freedom stays below 16.3 in 999 of 1000 cases.
        let chi = |counts: &[u32; 4], all: u32| {
            let mean = f64::from(all) / 4.0;
            counts.iter().map(|&count| (f64::from(count) - mean).powi(2) / mean).sum::<f64>()
        };
        let salts: Vec<u64> =
            (0..8).map(|number| Stream::named(1, &format!("switch {number} paths")).bits()).collect();
        for &salt in &salts {
            let mut counts = [0; 4];
            (0..=u16::MAX).for_each(|hash| counts[select(hash, salt, 4)] += 1);
            assert!(chi(&counts, 1 << 16) < 16.3, "{counts:?}");
        }
        for pair in salts.windows(2) {
            let mut counts = [0; 4];
            let same = (0..=u16::MAX).filter(|&hash| select(hash, pair[0], 4) == 0);
            same.for_each(|hash| counts[select(hash, pair[1], 4)] += 1);
            let all = counts.iter().sum();
            assert!(chi(&counts, all) < 16.3, "flows of one next hop go on together: {counts:?}");
        }
    }
}
