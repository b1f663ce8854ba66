//! Reasons for non-delivery: dropped by the emulated network, or lost by the host.

/// Reason why the emulated network dropped a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The transmit queue of the link was full.
    QueueFull,
    /// Queue management dropped it before the queue was full.
    EarlyDrop,
    /// The loss model of the link, or of the radio medium without channel access, dropped it.
    RandomLoss,
    /// The link was down, or went down while the frame was queued or in flight.
    LinkDown,
    /// Larger than the link's MTU.
    TooBig,
    /// Not a valid frame, or its offload description does not fit its octets.
    Malformed,
    /// Filtered by a switch: the destination is on the ingress side, the address is link-local
    /// (reserved), or the shortest path tree that the frame followed has changed.
    Filtered,
    /// No link leads to the destination.
    Nowhere,
    /// A radio broadcast that no radio received because of interference.
    Collision,
    /// A radio broadcast that was below the required SINR at every radio in range.
    Noise,
    /// No radio that a radio frame was addressed to was in range.
    OutOfRange,
    /// A radio got no acknowledgment after the last permitted transmission.
    RetryLimit,
    /// A radio's driver had no transmit buffer, or its queue was full.
    RadioQueueFull,
    /// The radio was off, or its slice did not have it.
    RadioOff,
    /// The radio had no access point, or the station was not associated with the access point.
    NotAssociated,
    /// The node behind the port was not up yet: its guest's driver was not ready.
    NotUp,
    /// The switch port is not a member of the frame's VLAN.
    WrongVlan,
    /// A radio's transmission would have violated the grant of its slice.
    OutsideGrant,
    /// A node's 802.11 stack sent on a frequency at which its radio has no channel.
    OutsideBand,
    /// A policer dropped it: the flow was above the rate and its burst.
    Policed,
}

impl DropReason {
    /// All reasons, in order of declaration.
    pub const ALL: [Self; 20] = [
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
        Self::OutsideGrant,
        Self::OutsideBand,
        Self::Policed,
    ];

    /// Name of the reason in ledgers, captures and results.
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
            Self::OutsideGrant => "outside-grant",
            Self::OutsideBand => "outside-band",
            Self::Policed => "policed",
        }
    }
}

/// Reason why the host, not the emulated network, lost a frame at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostLoss {
    /// The receive ring or socket buffer was full.
    RingFull,
    /// The guest's driver had no buffer ready: the guest did not get enough CPU time.
    GuestRingFull,
    /// The node or its interface is down or no longer exists.
    NodeGone,
    /// The packet exceeds the MTU of the tunnel's underlay.
    TooBig,
    /// The host refused it for another reason.
    Refused,
}

impl HostLoss {
    /// All reasons, in order of declaration.
    pub const ALL: [Self; 5] =
        [Self::RingFull, Self::GuestRingFull, Self::NodeGone, Self::TooBig, Self::Refused];

    /// Name of the reason in ledgers and results.
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
