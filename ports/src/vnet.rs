//! The virtio-net header before each frame of a TAP (virtio 1.2, section 5.1.6).
//!
//! It contains the position of an incomplete transport checksum and the segmentation of a
//! super-frame. A node's header is decoded, not trusted: the engine checks every
//! description against its frame.

use airloom_engine::frame::{Checksum, Protocol, Segmentation};

/// Octets of the header, with the `num_buffers` field.
pub const OCTETS: usize = 12;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// The congestion-window-reduced flag among the TCP flags.
const CWR: u8 = 0x80;

/// Decoded header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// Segmentation, if the frame is a super-frame.
    pub segmentation: Option<Segmentation>,
    /// The incomplete checksum, if any.
    pub checksum: Option<Checksum>,
}

impl Meaning {
    /// A description that fits no frame, for headers that cannot be described: the engine drops
    /// such a frame as malformed and counts it.
    pub const INVALID: Self = Self {
        segmentation: Some(Segmentation { protocol: Protocol::Udp, header: 0, size: 0 }),
        checksum: None,
    };
}

/// Decodes the header `vnet` of the frame `octets`.
#[must_use]
pub fn read(vnet: &[u8; OCTETS], octets: &[u8]) -> Meaning {
    let field = |at: usize| u16::from_ne_bytes([vnet[at], vnet[at + 1]]);
    let open = vnet[0] & NEEDS_CSUM != 0;
    let checksum = open.then(|| Checksum { start: field(6), offset: field(8) });
    let protocol = match vnet[1] & !GSO_ECN {
        GSO_NONE => return Meaning { segmentation: None, checksum },
        GSO_TCPV4 => Protocol::Tcp4,
        GSO_TCPV6 => Protocol::Tcp6,
        GSO_UDP_L4 => Protocol::Udp,
        _ => return Meaning::INVALID,
    };
    // The length of the headers is computed from the frame; the field in this header may be a hint.
    let header = checksum.and_then(|checksum| headers(protocol, octets, checksum));
    match header {
        Some(header) => {
            let segmentation = Some(Segmentation { protocol, header, size: field(4) });
            Meaning { segmentation, checksum }
        }
        None => Meaning::INVALID,
    }
}

/// Length in octets of all headers of a super-frame.
fn headers(protocol: Protocol, octets: &[u8], checksum: Checksum) -> Option<u16> {
    let length = match protocol {
        Protocol::Udp => 8,
        Protocol::Tcp4 | Protocol::Tcp6 => u16::from(*octets.get(usize::from(checksum.start) + 12)? >> 4) * 4,
    };
    checksum.start.checked_add(length)
}

/// Shifts the offsets in an undecoded header by `octets`, for octets that were inserted into its
/// frame.
pub fn shift(vnet: &mut [u8; OCTETS], octets: usize) {
    if vnet[0] & NEEDS_CSUM != 0 {
        let start = u16::from_ne_bytes([vnet[6], vnet[7]]);
        let start = usize::from(start).saturating_add(octets);
        let start = u16::try_from(start).unwrap_or(u16::MAX);
        vnet[6..8].copy_from_slice(&start.to_ne_bytes());
    }
}

/// Encodes the header for a piece of a frame that begins with the headers `head`: of a super-frame
/// if the piece is segmented further, of an ordinary frame if not.
#[must_use]
pub fn write(segmentation: Option<Segmentation>, checksum: Option<Checksum>, head: &[u8]) -> [u8; OCTETS] {
    let mut vnet = [0; OCTETS];
    let mut put = |at: usize, value: u16| vnet[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    let Some(checksum) = checksum else { return vnet };
    put(6, checksum.start);
    put(8, checksum.offset);
    if let Some(cut) = segmentation {
        put(2, cut.header);
        put(4, cut.size);
        let flags = head.get(usize::from(checksum.start) + 13).copied().unwrap_or(0);
        let ecn = if flags & CWR == 0 { 0 } else { GSO_ECN };
        vnet[1] = match cut.protocol {
            Protocol::Tcp4 => GSO_TCPV4 | ecn,
            Protocol::Tcp6 => GSO_TCPV6 | ecn,
            Protocol::Udp => GSO_UDP_L4,
        };
    }
    vnet[0] = NEEDS_CSUM;
    vnet
}
