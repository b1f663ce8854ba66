//! Why a frame was not delivered: dropped by the emulated network, or lost by the host.

/// Why the emulated network dropped a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
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

impl DropReason {
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
