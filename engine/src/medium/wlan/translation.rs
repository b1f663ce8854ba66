//! Translation of 802.11 data into Ethernet frames (RFC 1042, IEEE 802.1H). The opposite way is in
//! [`crate::medium::capture`], which writes the 802.11 frames of Ethernet radios.

use crate::medium::wlan::header::{Header, Type, flag};

/// LLC and SNAP header of RFC 1042, and of the bridge tunnel of 802.1H.
const SNAP: [[u8; 6]; 2] = [[0xaa, 0xaa, 3, 0, 0, 0], [0xaa, 0xaa, 3, 0, 0, 0xf8]];
/// Protocols that stay encapsulated under RFC 1042: AARP and IPX (802.1H selective translation).
const TUNNELLED: [[u8; 2]; 2] = [[0x80, 0xf3], [0x81, 0x37]];
/// Subtype bit of data frames without a body.
const NO_DATA: u8 = 4;
/// Bit of the QoS control field: the body holds several frames (A-MSDU).
const AGGREGATE: u8 = 0x80;

/// What the body of a data frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None: the frame only signals power management, or keeps a connection alive.
    Nothing,
    /// A frame for the destination.
    Frame,
    /// Encrypted, fragmented or aggregated: only an 802.11 stack can read it.
    Unreadable,
}

/// Kind of the body of a data frame.
#[must_use]
pub fn body(header: &Header, octets: &[u8]) -> Body {
    let aggregate = header.traffic.is_some()
        && octets.get(header.length - 2).is_some_and(|control| control & AGGREGATE != 0);
    if header.subtype() & NO_DATA != 0 {
        Body::Nothing
    } else if header.control[1] & (flag::PROTECTED | flag::MORE) != 0
        || header.sequence & 15 != 0
        || aggregate
    {
        Body::Unreadable
    } else {
        Body::Frame
    }
}

/// Destination, source and BSSID (802.11-2020 table 9-30). `None` for the four addresses of a
/// wireless distribution system.
#[must_use]
pub fn addresses(header: &Header) -> Option<[[u8; 6]; 3]> {
    let [third, _] = header.others;
    match header.control[1] & (flag::TO_DS | flag::FROM_DS) {
        0 => Some([header.receiver, header.transmitter, third]),
        flag::TO_DS => Some([third, header.transmitter, header.receiver]),
        flag::FROM_DS => Some([header.receiver, third, header.transmitter]),
        _ => None,
    }
}

/// Appends the Ethernet frame that a data frame carries; false if the frame carries none.
pub fn to_ethernet(octets: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(header) = Header::parse(octets) else { return false };
    let (Some(Type::Data), Some([destination, source, _])) = (header.kind(), addresses(&header)) else {
        return false;
    };
    let payload = &octets[header.length..];
    if body(&header, octets) != Body::Frame || payload.is_empty() {
        return false;
    }
    out.extend_from_slice(&destination);
    out.extend_from_slice(&source);
    let typed = payload.split_at_checked(6).filter(|(llc, rest)| {
        let tunnelled = rest.get(..2).is_some_and(|kind| TUNNELLED.iter().any(|known| known == kind));
        rest.len() >= 2 && (*llc == SNAP[1] || *llc == SNAP[0] && !tunnelled)
    });
    match typed {
        Some((_, rest)) => out.extend_from_slice(rest),
        None => {
            // An 802.3 frame with a length field: at most 1500 octets have one.
            let length = u16::try_from(payload.len()).unwrap_or(u16::MAX).min(1_500);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(payload);
        }
    }
    true
}
