//! Why a tunnel did not let in what came.

/// Why something that came through a tunnel is no frame of the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// It is no packet of this encapsulation, or holds no frame.
    Malformed,
    /// Its checksum is wrong.
    Checksum,
    /// It bears the key or network identifier of another tunnel, or comes from another peer.
    Foreign,
    /// It holds what this tunnel does not carry.
    Protocol,
    /// It came after a packet with a higher sequence number.
    OutOfOrder,
    /// The frame in it is longer than any that the engine takes.
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
