//! Virtual extensible LAN: the header of RFC 7348 between UDP and an Ethernet frame.

use core::ops::Range;

use super::Refusal;

/// UDP port of VXLAN (RFC 7348, section 8).
pub const PORT: u16 = 4789;
/// Octets of the header.
pub const OCTETS: usize = 8;
/// Network identifiers are below this.
pub const NETWORKS: u32 = 1 << 24;

/// Flag: the network identifier is valid.
const VALID: u8 = 0x08;

/// The header of network `vni`.
#[must_use]
pub fn header(vni: u32) -> [u8; OCTETS] {
    let [_, a, b, c] = vni.to_be_bytes();
    [VALID, 0, 0, 0, a, b, c, 0]
}

/// The range of the frame in a datagram of network `vni`. Reserved bits are
/// ignored, as RFC 7348 requires.
///
/// # Errors
/// [`Refusal::Malformed`], or [`Refusal::Foreign`] for another network.
pub fn read(vni: u32, datagram: &[u8]) -> Result<Range<usize>, Refusal> {
    let head = datagram.first_chunk::<OCTETS>().ok_or(Refusal::Malformed)?;
    if head[0] & VALID == 0 {
        return Err(Refusal::Malformed);
    }
    if u32::from_be_bytes([0, head[4], head[5], head[6]]) != vni {
        return Err(Refusal::Foreign);
    }
    Ok(OCTETS..datagram.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_the_standard() {
        assert_eq!(header(0x12_3456), [8, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
        assert_eq!(read(0x12_3456, &[8, 0, 0, 0, 0x12, 0x34, 0x56, 0, 1]), Ok(8..9));
        assert_eq!(read(0x12_3456, &[0xff, 1, 2, 3, 0x12, 0x34, 0x56, 9]), Ok(8..8));
    }

    #[test]
    fn what_is_not_for_this_network_is_refused() {
        assert_eq!(read(1, &[8, 0, 0, 0, 0, 0, 1]), Err(Refusal::Malformed));
        assert_eq!(read(1, &[0, 0, 0, 0, 0, 0, 1, 0]), Err(Refusal::Malformed));
        assert_eq!(read(1, &[8, 0, 0, 0, 0, 0, 2, 0]), Err(Refusal::Foreign));
    }
}
