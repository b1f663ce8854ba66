//! Words of the medium: radios, receivers and types of frames.

/// Identifier of a radio in its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RadioId(pub(crate) u32);

impl RadioId {
    /// The radio with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number, from 0 in the order in which radios were added.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    pub(in crate::medium) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Receiver of a frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One radio.
    Radio(RadioId),
    /// All radios (group address).
    Group,
    /// An address that no radio has; frames to it are sent and never acknowledged.
    Nobody,
}

/// Type of a frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data of a node.
    Data,
    /// A frame of a node's own 802.11 stack, of any type.
    Wlan,
    /// Acknowledgment.
    Ack,
    /// Compressed block acknowledgment of an A-MPDU.
    BlockAck,
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Beacon of an access point or an independent cell.
    Beacon,
    /// Probe request.
    ProbeRequest,
    /// Probe response.
    ProbeResponse,
    /// Association request.
    AssociationRequest,
    /// Association response.
    AssociationResponse,
    /// Authentication.
    Authentication,
    /// Deauthentication; for receivers also disassociation.
    Deauthentication,
    /// Null data: a station announces that it dozes.
    Doze,
    /// Null data: a station announces that it is awake.
    Wake,
}
