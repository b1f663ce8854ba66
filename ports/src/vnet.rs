//! The virtio-net header that stands before each frame of a TAP (virtio 1.2, section 5.1.6).
//!
//! It says which transport checksum is still open and how a super-frame is to be cut. What comes
//! from a node is not trusted: every offset is checked against the frame before the engine sees it.

use airloom_engine::frame::{Checksum, Frame, Protocol, Segmentation};

/// Octets of the header, with the `num_buffers` field.
pub const OCTETS: usize = 12;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The congestion-window-reduced flag among the TCP flags.
const CWR: u8 = 0x80;

/// What a header says about its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// How the frame is cut, if it is a super-frame.
    pub segmentation: Option<Segmentation>,
    /// Number of frames that it stands for.
    pub count: u16,
    /// The checksum left open, if any.
    pub checksum: Option<Checksum>,
}

/// Why a frame and its header are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Less than an Ethernet header.
    #[error("shorter than an Ethernet header")]
    Short,
    /// The checksum's place is not inside the frame.
    #[error("checksum outside the frame")]
    Checksum,
    /// A kind of segmentation that was not offered.
    #[error("unknown kind of segmentation")]
    Kind,
    /// Segmentation that does not agree with the frame's own headers.
    #[error("segmentation does not fit the headers")]
    Segmentation,
}

/// Reads the header `vnet` of the frame `octets`.
///
/// # Errors
/// [`Malformed`] if the header contradicts the frame.
pub fn read(vnet: &[u8; OCTETS], octets: &[u8]) -> Result<Meaning, Malformed> {
    if octets.len() < ETHERNET {
        return Err(Malformed::Short);
    }
    let field = |at: usize| u16::from_ne_bytes([vnet[at], vnet[at + 1]]);
    let checksum = if vnet[0] & NEEDS_CSUM == 0 {
        None
    } else {
        let checksum = Checksum { start: field(6), offset: field(8) };
        let place = usize::from(checksum.start) + usize::from(checksum.offset);
        if usize::from(checksum.start) < ETHERNET || place + 2 > octets.len() {
            return Err(Malformed::Checksum);
        }
        Some(checksum)
    };
    let protocol = match vnet[1] & !GSO_ECN {
        GSO_NONE => return Ok(Meaning { segmentation: None, count: 1, checksum }),
        GSO_TCPV4 => Protocol::Tcp4,
        GSO_TCPV6 => Protocol::Tcp6,
        GSO_UDP_L4 => Protocol::Udp,
        _ => return Err(Malformed::Kind),
    };
    let size = field(4);
    let header = headers(protocol, octets, checksum).ok_or(Malformed::Segmentation)?;
    let payload = octets.len().checked_sub(header).ok_or(Malformed::Segmentation)?;
    if size == 0 || payload == 0 {
        return Err(Malformed::Segmentation);
    }
    let count = u16::try_from(payload.div_ceil(usize::from(size))).map_err(|_| Malformed::Segmentation)?;
    let header = u16::try_from(header).map_err(|_| Malformed::Segmentation)?;
    // One segment is an ordinary frame: nobody need treat it as a super-frame.
    let segmentation = (count > 1).then_some(Segmentation { protocol, header, size });
    Ok(Meaning { segmentation, count, checksum })
}

/// Octets of all headers of a super-frame, by the frame itself and not by the sender's word.
fn headers(protocol: Protocol, octets: &[u8], checksum: Option<Checksum>) -> Option<usize> {
    // Segmentation rewrites every segment's checksum, so it must have been left open.
    let start = usize::from(checksum?.start);
    let ethertype = u16::from_be_bytes([octets[12], octets[13]]);
    let ip = octets.get(ETHERNET..)?;
    let transport = if protocol == Protocol::Udp { UDP } else { TCP };
    match (ethertype, protocol) {
        (ETHERTYPE_IPV4, Protocol::Tcp4 | Protocol::Udp) => {
            let length = usize::from(*ip.first()? & 0x0f) * 4;
            if *ip.first()? >> 4 != 4 || length < 20 || *ip.get(9)? != transport {
                return None;
            }
            (start == ETHERNET + length).then_some(())?;
        }
        // Extension headers may stand between; the transport starts where the checksum does.
        (ETHERTYPE_IPV6, Protocol::Tcp6 | Protocol::Udp) => {
            if *ip.first()? >> 4 != 6 || start < ETHERNET + 40 {
                return None;
            }
            if start == ETHERNET + 40 && *ip.get(6)? != transport {
                return None;
            }
        }
        _ => return None,
    }
    let length = if protocol == Protocol::Udp {
        8
    } else {
        let length = usize::from(*octets.get(start + 12)? >> 4) * 4;
        (length >= 20).then_some(length)?
    };
    Some(start + length)
}

/// The header for what `frame` stands for, whose first octets, transport header included, are in
/// `head`: a super-frame if it is several segments, an ordinary frame if it is one.
#[must_use]
pub fn write(frame: &Frame, head: &[u8]) -> [u8; OCTETS] {
    let mut vnet = [0; OCTETS];
    let mut put = |at: usize, value: u16| vnet[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    if let Some(checksum) = frame.checksum {
        put(6, checksum.start);
        put(8, checksum.offset);
        if let Some(cut) = frame.segmentation.filter(|_| frame.count > 1) {
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
    }
    vnet
}
