//! Reasons for which a tunnel refuses a received packet.

/// Why a received packet contains no frame for the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Not a packet of this encapsulation, or without a frame.
    Malformed,
    /// Its checksum is wrong.
    Checksum,
    /// Key or network identifier of another tunnel, or another peer.
    Foreign,
    /// A payload type that this tunnel does not carry.
    Protocol,
    /// Received after a packet with a higher sequence number.
    OutOfOrder,
    /// The frame is longer than the engine's maximum.
    TooBig,
}

impl Refusal {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Malformed, Self::Checksum, Self::Foreign, Self::Protocol, Self::OutOfOrder, Self::TooBig];

    /// The word used in ledgers and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Checksum => "checksum",
            Self::Foreign => "foreign",
            Self::Protocol => "protocol",
            Self::OutOfOrder => "out-of-order",
            Self::TooBig => "too-big",
        }
    }
}
