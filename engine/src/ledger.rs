//! The ledger: counts the outcome of every frame.
//!
//! A super-frame counts as its segments, as seen on the wire. At any moment, in frames and in
//! octets, `offered + copies == delivered + dropped + host lost + in flight`; the engine's tests
//! count the frames in flight one by one to verify this. Octets of VLAN tags that switches add and
//! remove are counted separately.

use core::ops::{AddAssign, SubAssign};

use crate::drop_reason::{DropReason, HostLoss};
use crate::element::{Direction, LinkId, Place, PortId, SwitchId};
use crate::frame::Frame;
use crate::time::Span;

/// A number of frames and their octets, with the Ethernet header, without the frame check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames; each segment of a super-frame counts as one.
    pub frames: u64,
    /// Octets of these frames.
    pub octets: u64,
}

impl Tally {
    /// Tally of one frame, or of a run of segments.
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
    /// Frames dropped for this reason.
    #[must_use]
    pub fn of(&self, why: DropReason) -> Tally {
        self.0[why as usize]
    }

    /// Frames dropped for any reason.
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
    /// Frames lost for this reason.
    #[must_use]
    pub fn of(&self, loss: HostLoss) -> Tally {
        self.0[loss as usize]
    }

    /// Frames lost for any reason.
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

/// The counters of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortAccount {
    /// Frames that entered the engine here.
    pub offered: Tally,
    /// Frames delivered to the node.
    pub delivered: Tally,
    /// Frames dropped here before they reached a link.
    pub dropped: Drops,
    /// Frames that the host lost on delivery.
    pub host_lost: HostLosses,
}

/// The counters of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireAccount {
    /// Frames that entered this direction of the link.
    pub entered: Tally,
    /// Frames that reached the far end, duplicates included.
    pub left: Tally,
    /// Frames dropped in the queue or on the wire.
    pub dropped: Drops,
    /// Frames sent a second time by the duplication model.
    pub duplicated: Tally,
    /// Frames delivered with a flipped bit.
    pub corrupted: Tally,
    /// Frames that skipped the propagation delay (reordering model).
    pub reordered: Tally,
    /// Frames whose jitter would have let them overtake others, and arrived later so that they do not.
    pub held: Tally,
    /// Sum of the times by which they were later.
    pub held_for: Span,
    /// Frames that the queue marked with ECN Congestion Experienced.
    pub marked: Tally,
    /// Frames in the queue now.
    pub queue: Tally,
    /// Largest number of frames, and of octets, ever queued.
    pub queue_highest: Tally,
    /// Time for which frames occupied the wire until now, with their overhead and the sender's gap: the
    /// utilization is its growth over time. Zero without a rate.
    pub busy: Span,
    /// Total time the wire paused because the host was late.
    pub paused: Span,
    /// Segments that entered later than they came: the wire had changed its state meanwhile (see
    /// [`crate::Engine::offer_run`]).
    pub late: Tally,
    /// The longest time by which one of them was late.
    pub late_most: Span,
}

/// The counters of one switch or hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchAccount {
    /// Frames that came in.
    pub entered: Tally,
    /// Copies made by sending on several links: frames sent minus frames received.
    pub copies: Tally,
    /// Frames dropped here.
    pub dropped: Drops,
}

/// The counters of one engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Frames that entered at any port.
    pub offered: Tally,
    /// Copies made inside, by flooding and by duplication.
    pub copies: Tally,
    /// Octets of VLAN tags added by switches, and by which frames grew in the translation between
    /// Ethernet and 802.11.
    pub tags_put: u64,
    /// Octets of VLAN tags removed by switches, and by which frames shrank in that translation.
    pub tags_taken: u64,
    /// Frames delivered to nodes.
    pub delivered: Tally,
    /// Frames dropped by the emulated network.
    pub dropped: Drops,
    /// Frames that the host lost on delivery.
    pub host_lost: HostLosses,
    pub(crate) ports: Vec<PortAccount>,
    pub(crate) wires: Vec<WireAccount>,
    pub(crate) switches: Vec<SwitchAccount>,
}

impl Ledger {
    /// The counters of a port.
    #[must_use]
    pub fn port(&self, port: PortId) -> &PortAccount {
        &self.ports[port.index()]
    }

    /// The counters of one direction of a link.
    #[must_use]
    pub fn link(&self, link: LinkId, direction: Direction) -> &WireAccount {
        &self.wires[2 * link.index() + direction as usize]
    }

    /// The counters of a switch or hub.
    #[must_use]
    pub fn switch(&self, switch: SwitchId) -> &SwitchAccount {
        &self.switches[switch.index()]
    }

    /// Frames inside the engine: at a port, in a queue or on a wire.
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

    /// The counters of the wire at this place.
    pub(crate) fn wire(&mut self, place: Place) -> &mut WireAccount {
        let Place::Link(link, direction) = place else { unreachable!("wires are on links") };
        &mut self.wires[2 * link.index() + direction as usize]
    }

    /// Records that VLAN tagging, or translation, changed frames of `before` octets to `after` octets.
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
