//! Conversion between the size of a frame and the size of its payload.
//!
//! The *payload* is passed to the UDP socket; with RTP it begins with the 12 octets of
//! the RTP header. A *frame* is an untagged Ethernet frame from the destination address
//! to the frame check sequence:
//!
//! `frame = 14 (Ethernet header) + 20 (IPv4) or 40 (IPv6) + 8 (UDP) + payload + 4 (FCS)`
//!
//! (IEEE 802.3 clause 3; RFC 791 and RFC 8200 without options; RFC 768.) On the *wire* it
//! also takes 8 octets of preamble with start delimiter and 12 octets of gap. Ethernet
//! pads a frame below 64 octets to 64; such payloads are allowed and the padding is
//! counted. Sizes are in octets.

/// Version of the Internet Protocol, which determines the size of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Header of 20 octets (RFC 791).
    V4,
    /// Header of 40 octets (RFC 8200).
    V6,
}

impl Family {
    /// Octets of a frame that are not payload.
    #[must_use]
    pub const fn headers(self) -> u64 {
        ETHERNET + FCS + UDP + self.header()
    }

    const fn header(self) -> u64 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// Largest UDP payload: the 16-bit length fields hold header and payload, IPv4's its own header
    /// too.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self {
            Self::V4 => 65_535 - 20 - UDP,
            Self::V6 => 65_535 - UDP,
        }
    }
}

/// The octets that a rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// The payload passed to the socket.
    #[default]
    Payload,
    /// The Ethernet frame with its FCS, padded to 64 octets.
    Frame,
    /// The frame with preamble and inter-frame gap: the occupancy of a link of that rate.
    Wire,
}

impl Counted {
    /// Octets that a rate counts for one packet with this payload.
    #[must_use]
    pub fn octets(self, payload: u64, family: Family) -> u64 {
        let frame = (payload + family.headers()).max(SHORTEST);
        match self {
            Self::Payload => payload,
            Self::Frame => frame,
            Self::Wire => frame + PREAMBLE + GAP,
        }
    }
}

/// Returns the payload of a frame of this size; the error is the smallest possible frame.
pub fn payload(frame: u64, family: Family, least: u64) -> Result<u64, u64> {
    frame.checked_sub(family.headers()).filter(|payload| *payload >= least).ok_or(least + family.headers())
}

const ETHERNET: u64 = 14;
const FCS: u64 = 4;
const UDP: u64 = 8;
const PREAMBLE: u64 = 8;
const GAP: u64 = 12;
const SHORTEST: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes() {
        // An Ethernet frame of 1518 octets carries an IP packet of 1500, so 1472 octets over UDP
        // and IPv4.
        assert_eq!(payload(1518, Family::V4, 18), Ok(1472));
        assert_eq!(payload(1518, Family::V6, 18), Ok(1452));
        assert_eq!(payload(64, Family::V4, 18), Ok(18));
        assert_eq!(payload(64, Family::V6, 18), Err(84));
        // 1518 octets take 1538 octet times on the wire: 812.74 frames a second at 10 Mbit/s (RFC
        // 2544).
        assert_eq!(Counted::Wire.octets(1472, Family::V4), 1538);
        assert_eq!(Counted::Frame.octets(1, Family::V4), 64);
        assert_eq!(Counted::Payload.octets(1, Family::V4), 1);
        assert_eq!(Family::V4.most(), 65_507);
        assert_eq!(Family::V6.most(), 65_527);
    }
}
