//! Encapsulation of a tunnel's frames: pure functions on octets.

use core::ops::Range;

use serde::{Deserialize, Serialize};

use super::gre::{self, Gre};
use super::plain::ETHERNET;
use super::{Refusal, vxlan};

/// The header between the underlay's IP header (or UDP header) and a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Encapsulation {
    /// IP over GRE.
    Gre {
        /// Its header.
        header: Gre,
        /// Ethernet address of the node at the near end.
        node: [u8; 6],
    },
    /// Ethernet over GRE.
    Gretap(Gre),
    /// VXLAN.
    Vxlan {
        /// Network identifier (VNI).
        vni: u32,
    },
}

/// A received frame or packet, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwrapped {
    /// Its sequence number, if present.
    pub sequence: Option<u32>,
    /// Its type, as an `EtherType`, if it is a packet that needs an Ethernet header.
    pub bare: Option<u16>,
    /// Its range in the packet.
    pub frame: Range<usize>,
}

impl Encapsulation {
    /// Octets at the beginning of a frame that are not sent.
    #[must_use]
    pub fn strips(&self) -> usize {
        if matches!(self, Self::Gre { .. }) { ETHERNET } else { 0 }
    }

    /// The GRE header, if there is one.
    #[must_use]
    pub fn gre(&self) -> Option<&Gre> {
        match self {
            Self::Gre { header, .. } | Self::Gretap(header) => Some(header),
            Self::Vxlan { .. } => None,
        }
    }

    /// Writes the header of `frame`, or of the packet of this type, and returns its length in
    /// octets.
    pub fn wrap(&self, kind: u16, sequence: u32, frame: &[u8], out: &mut [u8; gre::MOST]) -> usize {
        match self {
            Self::Gre { header, .. } => header.write(kind, sequence, frame, out),
            Self::Gretap(gre) => gre.write(gre::ETHERNET, sequence, frame, out),
            Self::Vxlan { vni } => {
                out[..vxlan::OCTETS].copy_from_slice(&vxlan::header(*vni));
                vxlan::OCTETS
            }
        }
    }

    /// Finds the frame in a packet.
    ///
    /// # Errors
    /// The reason if there is none for this tunnel.
    pub fn unwrap(&self, packet: &[u8]) -> Result<Unwrapped, Refusal> {
        let found = match self {
            Self::Gre { header, .. } => {
                let opened = header.read(packet)?;
                let bare = Some(opened.protocol);
                return Ok(Unwrapped { sequence: opened.sequence, bare, frame: opened.payload });
            }
            Self::Gretap(gre) => {
                let opened = gre.read(packet)?;
                if opened.protocol != gre::ETHERNET {
                    return Err(Refusal::Protocol);
                }
                Unwrapped { sequence: opened.sequence, bare: None, frame: opened.payload }
            }
            Self::Vxlan { vni } => {
                Unwrapped { sequence: None, bare: None, frame: vxlan::read(*vni, packet)? }
            }
        };
        if found.frame.len() < ETHERNET { Err(Refusal::Malformed) } else { Ok(found) }
    }

    /// True if a packet is refused after one with a higher sequence number.
    #[must_use]
    pub fn is_sequenced(&self) -> bool {
        self.gre().is_some_and(|gre| gre.sequence)
    }
}

/// The range of the octets after an IPv4 header, which a raw socket includes in the packet.
///
/// # Errors
/// [`Refusal::Malformed`] if the header is incomplete.
pub fn behind_ipv4(packet: &[u8]) -> Result<Range<usize>, Refusal> {
    let first = *packet.first().ok_or(Refusal::Malformed)?;
    let octets = usize::from(first & 0xf) * 4;
    let whole = first >> 4 == 4 && octets >= 20 && octets <= packet.len();
    if whole { Ok(octets..packet.len()) } else { Err(Refusal::Malformed) }
}

/// Maximum length in octets of the headers before a frame on a raw socket.
pub const HEAD_MOST: usize = 60 + gre::MOST;
