//! The header of an IEEE 802.11 frame (802.11-2020 9.2.4 and 9.3).

/// The fields that a radio acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Frame control field, low octet first: version, type, subtype; flags.
    pub control: [u8; 2],
    /// Receiver address (address 1).
    pub receiver: [u8; 6],
    /// Transmitter address (address 2).
    pub transmitter: [u8; 6],
    /// Addresses 3 and 4; zeroes if the frame lacks them.
    pub others: [[u8; 6]; 2],
    /// Sequence control field: sequence number times 16, and fragment number; 0 in control frames.
    pub sequence: u16,
    /// Traffic identifier of QoS data.
    pub traffic: Option<u8>,
    /// Octets before the frame body.
    pub length: usize,
}

/// Type of a frame: management, control, data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Management.
    Management,
    /// Control.
    Control,
    /// Data.
    Data,
}

/// Flags of the second octet of the frame control field.
pub mod flag {
    /// To the distribution system.
    pub const TO_DS: u8 = 0x01;
    /// From the distribution system.
    pub const FROM_DS: u8 = 0x02;
    /// More fragments follow.
    pub const MORE: u8 = 0x04;
    /// Repetition.
    pub const RETRY: u8 = 0x08;
    /// The station dozes after this frame (power management).
    pub const POWER: u8 = 0x10;
    /// The body is encrypted.
    pub const PROTECTED: u8 = 0x40;
    /// An HT control field follows (QoS data and management).
    pub const ORDER: u8 = 0x80;
}

impl Header {
    /// Reads the header at the start of a frame without frame check sequence. `None` if the frame
    /// ends within its header, has another protocol version or the reserved type, or is a control
    /// frame without transmitter address: radios send those by themselves.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let control = [*octets.first()?, *octets.get(1)?];
        let address = |at: usize| octets.get(at..at + 6).and_then(|a| <[u8; 6]>::try_from(a).ok());
        let (receiver, transmitter) = (address(4)?, address(10)?);
        let mut header = Self {
            control,
            receiver,
            transmitter,
            others: [[0; 6]; 2],
            sequence: 0,
            traffic: None,
            length: 16,
        };
        if control[0] & 3 != 0 {
            return None;
        }
        match header.kind()? {
            Type::Control => return Some(header),
            Type::Management => header.length = 24,
            Type::Data => {
                header.length = 24;
                if control[1] & 3 == flag::TO_DS | flag::FROM_DS {
                    header.others[1] = address(24)?;
                    header.length = 30;
                }
                if control[0] & 0x80 != 0 {
                    header.traffic = Some(octets.get(header.length)? & 15);
                    header.length += 2;
                }
            }
        }
        header.others[0] = address(16)?;
        header.sequence = u16::from_le_bytes([*octets.get(22)?, *octets.get(23)?]);
        let extended = header.traffic.is_some() || header.kind() == Some(Type::Management);
        if extended && control[1] & flag::ORDER != 0 {
            header.length += 4;
        }
        (octets.len() >= header.length).then_some(header)
    }

    /// Type of the frame; `None` for the reserved one.
    #[must_use]
    pub fn kind(&self) -> Option<Type> {
        match self.control[0] >> 2 & 3 {
            0 => Some(Type::Management),
            1 => Some(Type::Control),
            2 => Some(Type::Data),
            _ => None,
        }
    }

    /// What a data frame to an access point says about its sender: it dozes from now on, or not.
    #[must_use]
    pub fn says_dozing(&self) -> Option<bool> {
        let to_network = self.control[1] & (flag::TO_DS | flag::FROM_DS) == flag::TO_DS;
        (self.kind() == Some(Type::Data) && to_network).then_some(self.control[1] & flag::POWER != 0)
    }

    /// Subtype of the frame, 0 to 15.
    #[must_use]
    pub fn subtype(&self) -> u8 {
        self.control[0] >> 4
    }

    /// Access category: 0 voice, 1 video, 2 best effort, 3 background (802.11-2020 table 10-1).
    /// Management and control frames are sent as voice (10.2.3.2), data without QoS as best effort.
    #[must_use]
    pub fn category(&self) -> usize {
        match (self.kind(), self.traffic) {
            (Some(Type::Data), Some(1 | 2)) => 3,
            (Some(Type::Data), Some(4 | 5)) => 1,
            (Some(Type::Data), Some(6 | 7)) | (Some(Type::Management | Type::Control) | None, _) => 0,
            (Some(Type::Data), _) => 2,
        }
    }
}
