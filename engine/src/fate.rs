//! What becomes of a frame: delivered, dropped for a named reason, or lost by the host.

use crate::element::{MediumId, Place, PortId};
use crate::frame::{Frame, Pool};
use crate::medium::capture::Sniffed;
use crate::time::Instant;

/// Why the emulated network dropped a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The queue in front of the wire had no room.
    QueueFull,
    /// Queue management dropped it before the queue was full.
    EarlyDrop,
    /// The link's loss model took it.
    RandomLoss,
    /// The link was down, or went down while the frame waited or was on its way.
    LinkDown,
    /// Larger than the link's MTU.
    TooBig,
    /// Not a frame, or its offload description does not fit its octets.
    Malformed,
    /// A switch does not forward it: its destination is on the side it came from, or its
    /// address is reserved for the link itself.
    Filtered,
    /// There is no link that it could go out on.
    Nowhere,
    /// A radio broadcast that nobody took because something else was on the air.
    Collision,
    /// A radio broadcast that was too weak, or too noisy, for everybody in reach.
    Noise,
    /// Nobody whom a radio's frame was for could hear it at all.
    OutOfRange,
    /// A radio got no acknowledgment after the last permitted transmission.
    RetryLimit,
    /// A radio's driver had no buffer, or its queue was too long.
    RadioQueueFull,
    /// The radio was switched off.
    RadioOff,
    /// The radio had no access point, or the access point no such station.
    NotAssociated,
    /// The node behind the port had not come up yet: its guest's driver was not there.
    NotUp,
    /// A switch's port does not belong to the frame's VLAN.
    WrongVlan,
}

impl Why {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 17] = [
        Self::QueueFull,
        Self::EarlyDrop,
        Self::RandomLoss,
        Self::LinkDown,
        Self::TooBig,
        Self::Malformed,
        Self::Filtered,
        Self::Nowhere,
        Self::Collision,
        Self::Noise,
        Self::OutOfRange,
        Self::RetryLimit,
        Self::RadioQueueFull,
        Self::RadioOff,
        Self::NotAssociated,
        Self::NotUp,
        Self::WrongVlan,
    ];

    /// The word used in ledgers, captures and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::EarlyDrop => "early-drop",
            Self::RandomLoss => "random-loss",
            Self::LinkDown => "link-down",
            Self::TooBig => "too-big",
            Self::Malformed => "malformed",
            Self::Filtered => "filtered",
            Self::Nowhere => "nowhere",
            Self::Collision => "collision",
            Self::Noise => "noise",
            Self::OutOfRange => "out-of-range",
            Self::RetryLimit => "retry-limit",
            Self::RadioQueueFull => "radio-queue-full",
            Self::RadioOff => "radio-off",
            Self::NotAssociated => "not-associated",
            Self::NotUp => "not-up",
            Self::WrongVlan => "wrong-vlan",
        }
    }
}

/// Why the host, not the emulated network, lost a frame at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostLoss {
    /// The receiving ring or socket had no room.
    RingFull,
    /// The driver of a guest had no buffer ready: the guest did not get the processor in time.
    GuestRingFull,
    /// The node or its interface is down or gone.
    NodeGone,
    /// A tunnel's underlay does not carry so long a packet.
    TooBig,
    /// The host refused it for another reason.
    Refused,
}

impl HostLoss {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 5] =
        [Self::RingFull, Self::GuestRingFull, Self::NodeGone, Self::TooBig, Self::Refused];

    /// The word used in ledgers and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RingFull => "ring-full",
            Self::GuestRingFull => "guest-ring-full",
            Self::NodeGone => "node-gone",
            Self::TooBig => "too-big",
            Self::Refused => "refused",
        }
    }
}

/// What a port did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// The node has it.
    Taken,
    /// Of a run of segments the node has so many, and the host lost the rest.
    Partly(u16, HostLoss),
    /// The host lost it.
    Lost(HostLoss),
    /// The node has not come up yet: to the emulated network it is not there.
    NotUp,
}

/// Where frames leave the engine. The engine gives its buffer back after each call.
pub trait Outlet {
    /// A frame, or a run of segments of one, has reached its port at `at`.
    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Handed;

    /// A frame has entered at a port, as the engine took it; the call comes before any other
    /// about this frame.
    fn entered(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) {
        let _ = (port, at, frame, pool);
    }

    /// What the wall clock shows, if one drives the engine: engine time that really has passed.
    fn wall(&self) -> Option<Instant> {
        None
    }

    /// The emulated network dropped a frame, or a run of segments of one.
    fn dropped(&mut self, place: Place, at: Instant, frame: &Frame, why: Why, pool: &Pool) {
        let _ = (place, at, frame, why, pool);
    }

    /// A frame was on the air of a medium, or reached one of its radios; only while the medium is
    /// told to say so (see [`crate::medium::Medium::set_sniffing`]).
    fn sniffed(&mut self, medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        let _ = (medium, sniffed, pool);
    }
}
