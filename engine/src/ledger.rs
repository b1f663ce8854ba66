//! The account of where every frame went.
//!
//! Frames are counted as the wire would see them: a super-frame counts as its segments. At any
//! moment, in frames and in octets, `offered + copies == delivered + dropped + host lost + in
//! flight`; the engine's tests recount what is in flight one by one. The octets of VLAN tags that
//! switches put in and take out are counted beside these.

use core::ops::{AddAssign, SubAssign};

use crate::drop_reason::{DropReason, HostLoss};
use crate::element::{Direction, LinkId, Place, PortId, SwitchId};
use crate::frame::Frame;
use crate::time::Span;

/// A number of frames and their octets, Ethernet header included, frame check sequence not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames; each segment of a super-frame is one.
    pub frames: u64,
    /// Octets of these frames.
    pub octets: u64,
}

impl Tally {
    /// What a frame, or a run of segments, counts.
    #[must_use]
    pub fn of(frame: &Frame) -> Self {
        Self { frames: u64::from(frame.count), octets: frame.octets() }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.octets += other.octets;
    }
}

impl SubAssign for Tally {
    fn sub_assign(&mut self, other: Self) {
        self.frames -= other.frames;
        self.octets -= other.octets;
    }
}

/// Drops by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([Tally; DropReason::ALL.len()]);

impl Drops {
    /// What was dropped for this reason.
    #[must_use]
    pub fn of(&self, why: DropReason) -> Tally {
        self.0[why as usize]
    }

    /// What was dropped for any reason.
    #[must_use]
    pub fn total(&self) -> Tally {
        sum(&self.0)
    }

    fn add(&mut self, why: DropReason, tally: Tally) {
        self.0[why as usize] += tally;
    }
}

/// Host losses by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLosses([Tally; HostLoss::ALL.len()]);

impl HostLosses {
    /// What was lost for this reason.
    #[must_use]
    pub fn of(&self, loss: HostLoss) -> Tally {
        self.0[loss as usize]
    }

    /// What was lost for any reason.
    #[must_use]
    pub fn total(&self) -> Tally {
        sum(&self.0)
    }

    fn add(&mut self, loss: HostLoss, tally: Tally) {
        self.0[loss as usize] += tally;
    }
}

fn sum(tallies: &[Tally]) -> Tally {
    tallies.iter().fold(Tally::default(), |mut sum, &tally| {
        sum += tally;
        sum
    })
}

/// The account of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// Entered the engine here.
    pub offered: Tally,
    /// Handed to the node.
    pub delivered: Tally,
    /// Dropped here before reaching a link.
    pub dropped: Drops,
    /// Lost by the host on delivery.
    pub host_lost: HostLosses,
}

/// The account of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireAccount {
    /// Came to this direction of the link.
    pub entered: Tally,
    /// Reached its far end, second arrivals included.
    pub left: Tally,
    /// Dropped in the queue or on the wire.
    pub dropped: Drops,
    /// Sent a second time by the duplication model.
    pub duplicated: Tally,
    /// Delivered with a flipped bit.
    pub corrupted: Tally,
    /// Skipped the propagation delay by the reordering model.
    pub reordered: Tally,
    /// Got the ECN mark Congestion Experienced from the queue.
    pub marked: Tally,
    /// Waiting in the queue now.
    pub queue: Tally,
    /// Most frames, and most octets, that ever waited.
    pub queue_highest: Tally,
    /// How long it paused because the host was late.
    pub paused: Span,
}

/// The account of one switch or hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchAccount {
    /// Came in.
    pub entered: Tally,
    /// Sent on more than one link: what was sent beyond what came in.
    pub copies: Tally,
    /// Dropped here.
    pub dropped: Drops,
}

/// The account of one engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Entered through any port.
    pub offered: Tally,
    /// Made inside: by flooding and by duplication.
    pub copies: Tally,
    /// Octets of VLAN tags that switches have put into frames.
    pub tags_put: u64,
    /// Octets of VLAN tags that switches have taken from frames.
    pub tags_taken: u64,
    /// Handed to nodes.
    pub delivered: Tally,
    /// Dropped by the emulated network.
    pub dropped: Drops,
    /// Lost by the host on delivery.
    pub host_lost: HostLosses,
    pub(crate) ports: Vec<PortAccount>,
    pub(crate) wires: Vec<WireAccount>,
    pub(crate) switches: Vec<SwitchAccount>,
}

impl Ledger {
    /// The account of a port.
    #[must_use]
    pub fn port(&self, port: PortId) -> &PortAccount {
        &self.ports[port.index()]
    }

    /// The account of one direction of a link.
    #[must_use]
    pub fn link(&self, link: LinkId, direction: Direction) -> &WireAccount {
        &self.wires[2 * link.index() + direction as usize]
    }

    /// The account of a switch or hub.
    #[must_use]
    pub fn switch(&self, switch: SwitchId) -> &SwitchAccount {
        &self.switches[switch.index()]
    }

    /// What is inside the engine: waiting at a port, in a queue or on a wire.
    #[must_use]
    pub fn in_flight(&self) -> Tally {
        let mut inside = self.offered;
        inside += self.copies;
        inside.octets += self.tags_put;
        inside.octets -= self.tags_taken;
        inside -= self.delivered;
        inside -= self.dropped.total();
        inside -= self.host_lost.total();
        inside
    }

    /// The account of the wire at this place.
    pub(crate) fn wire(&mut self, place: Place) -> &mut WireAccount {
        let Place::Link(link, direction) = place else { unreachable!("wires are on links") };
        &mut self.wires[2 * link.index() + direction as usize]
    }

    /// Frames of `before` octets have become frames of `after` octets by their tags.
    pub(crate) fn retag(&mut self, before: u64, after: u64) {
        self.tags_put += after.saturating_sub(before);
        self.tags_taken += before.saturating_sub(after);
    }

    pub(crate) fn drop(&mut self, place: Place, why: DropReason, tally: Tally) {
        self.dropped.add(why, tally);
        match place {
            Place::Port(port) => self.ports[port.index()].dropped.add(why, tally),
            Place::Link(link, direction) => {
                self.wires[2 * link.index() + direction as usize].dropped.add(why, tally);
            }
            Place::Switch(switch) => self.switches[switch.index()].dropped.add(why, tally),
        }
    }

    pub(crate) fn lose(&mut self, port: PortId, loss: HostLoss, tally: Tally) {
        self.host_lost.add(loss, tally);
        self.ports[port.index()].host_lost.add(loss, tally);
    }
}
