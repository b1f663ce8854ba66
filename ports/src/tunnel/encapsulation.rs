//! How a tunnel's frames are wrapped: pure functions on octets.

use core::ops::Range;

use serde::{Deserialize, Serialize};

use super::gre::{self, Gre};
use super::{Refusal, vxlan};

/// Octets of an Ethernet header, the least that a frame has.
const ETHERNET: usize = 14;

/// What stands between the underlay's IP header (or UDP header) and a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Encapsulation {
    /// Ethernet over GRE.
    Gretap(Gre),
    /// VXLAN.
    Vxlan {
        /// Number of the network.
        vni: u32,
    },
}

/// A frame that came, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwrapped {
    /// Its sequence number, if it bears one.
    pub sequence: Option<u32>,
    /// Where in the packet it is.
    pub frame: Range<usize>,
}

impl Encapsulation {
    /// Writes what goes before `frame` and says how many octets that is.
    pub fn wrap(&self, sequence: u32, frame: &[u8], out: &mut [u8; gre::MOST]) -> usize {
        match self {
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
    /// Why there is none for this tunnel.
    pub fn unwrap(&self, packet: &[u8]) -> Result<Unwrapped, Refusal> {
        let found = match self {
            Self::Gretap(gre) => {
                let opened = gre.read(packet)?;
                if opened.protocol != gre::ETHERNET {
                    return Err(Refusal::Protocol);
                }
                Unwrapped { sequence: opened.sequence, frame: opened.payload }
            }
            Self::Vxlan { vni } => Unwrapped { sequence: None, frame: vxlan::read(*vni, packet)? },
        };
        if found.frame.len() < ETHERNET { Err(Refusal::Malformed) } else { Ok(found) }
    }

    /// Whether what comes behind a packet with a higher sequence number is refused.
    #[must_use]
    pub fn is_sequenced(&self) -> bool {
        matches!(self, Self::Gretap(Gre { sequence: true, .. }))
    }
}

/// The octets behind an IPv4 header, which a raw socket hands over with the packet.
///
/// # Errors
/// [`Refusal::Malformed`] if there is no whole header.
pub fn behind_ipv4(packet: &[u8]) -> Result<Range<usize>, Refusal> {
    let first = *packet.first().ok_or(Refusal::Malformed)?;
    let octets = usize::from(first & 0xf) * 4;
    let whole = first >> 4 == 4 && octets >= 20 && octets <= packet.len();
    if whole { Ok(octets..packet.len()) } else { Err(Refusal::Malformed) }
}

/// Most octets of the headers before a frame in what a raw socket hands over.
pub const HEAD_MOST: usize = 60 + gre::MOST;
