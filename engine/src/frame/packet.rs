//! Packet fields that queues read and write: ECN marks and the flow of a packet.

use core::ops::Range;

use crate::frame::segment::network;

/// ECN state of a packet (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ecn {
    /// Not an IP packet, or its transport is not ECN-capable (Not-ECT).
    Incapable,
    /// ECN-capable (ECT).
    Capable,
    /// Already marked (CE).
    Marked,
}

/// Reads the ECN state from the octets of a frame.
pub(crate) fn ecn(octets: &[u8]) -> Ecn {
    let bits = match header(octets) {
        Some((4, at)) => octets[at + 1] & 3,
        Some((_, at)) => octets[at + 1] >> 4 & 3,
        None => 0,
    };
    match bits {
        0 => Ecn::Incapable,
        3 => Ecn::Marked,
        _ => Ecn::Capable,
    }
}

/// True if a packet is identified for low latency: ECT(1) or CE (RFC 9331, section 5.1).
pub(crate) fn is_low_latency(octets: &[u8]) -> bool {
    match header(octets) {
        Some((4, at)) => octets[at + 1] & 1 == 1,
        Some((_, at)) => octets[at + 1] >> 4 & 1 == 1,
        None => false,
    }
}

/// Reads the DSCP (RFC 2474) from the octets of a frame; `None` if it is no IP packet.
pub(crate) fn dscp(octets: &[u8]) -> Option<u8> {
    match header(octets)? {
        (4, at) => Some(octets[at + 1] >> 2),
        (_, at) => Some((octets[at] & 0xf) << 2 | octets[at + 1] >> 6),
    }
}

/// Writes the mark Congestion Experienced into an IP packet and corrects the header checksum of
/// IPv4 (RFC 1624, equation 3).
pub(crate) fn mark(octets: &mut [u8]) {
    match header(octets) {
        Some((4, at)) => {
            let word = |octets: &[u8], at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
            let old = word(octets, at);
            octets[at + 1] |= 3;
            let new = word(octets, at);
            let checksum = word(octets, at + 10);
            let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !u16::try_from(sum).expect("folded twice");
            octets[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
        }
        Some((_, at)) => octets[at + 1] |= 3 << 4,
        None => {}
    }
}

/// Flow hash: equal for all packets of a flow (addresses, protocol and ports, as far as present).
/// `salt` makes it unpredictable to senders.
pub(crate) fn flow(octets: &[u8], salt: u64) -> u32 {
    let mut hash = salt;
    let mut mix = |range: Range<usize>| hash = mixed(hash, octets, range);
    match header(octets) {
        Some((4, at)) => {
            mix(at + 9..at + 10);
            mix(at + 12..at + 20);
            let fragment = (u16::from(octets[at + 6]) << 8 | u16::from(octets[at + 7])) & 0x3fff;
            if has_ports(octets[at + 9]) && fragment == 0 {
                let ports = at + usize::from(octets[at] & 0xf) * 4;
                mix(ports..ports + 4);
            }
        }
        Some((_, at)) => {
            mix(at + 6..at + 7);
            mix(at + 8..at + 40);
            if has_ports(octets[at + 6]) {
                mix(at + 40..at + 44);
            }
        }
        None => mix(0..14),
    }
    spread(hash)
}

/// Hashes of the source and of the destination: of IP, or the MAC addresses of other frames.
pub(crate) fn hosts(octets: &[u8], salt: u64) -> (u32, u32) {
    let (source, destination) = match header(octets) {
        Some((4, at)) => (at + 12..at + 16, at + 16..at + 20),
        Some((_, at)) => (at + 8..at + 24, at + 24..at + 40),
        None => (6..12, 0..6),
    };
    (spread(mixed(salt, octets, source)), spread(mixed(salt, octets, destination)))
}

/// Adds octets to a hash (FNV-1a).
fn mixed(hash: u64, octets: &[u8], range: Range<usize>) -> u64 {
    let octets = octets.get(range).unwrap_or(&[]);
    octets.iter().fold(hash, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The last step of SplitMix64: each input bit affects every bit of the result.
fn spread(hash: u64) -> u32 {
    let z = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    #[allow(clippy::cast_possible_truncation)] // the high half
    let high = (z >> 32) as u32;
    high
}

/// True if the header begins with two ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}

/// The IP version and the offset of its header, if the header is complete.
fn header(octets: &[u8]) -> Option<(u8, usize)> {
    let (at, kind) = network(octets)?;
    let version = *octets.get(at)? >> 4;
    let (wanted, length) = match kind {
        0x0800 => (4, 20),
        0x86dd => (6, 40),
        _ => return None,
    };
    (version == wanted && octets.len() >= at + length).then_some((version, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::segment::{add, fold};

    fn ipv4(tos: u8) -> Vec<u8> {
        let mut octets = vec![0; 60];
        octets[12..14].copy_from_slice(&[0x08, 0x00]);
        octets[14..24].copy_from_slice(&[0x45, tos, 0, 46, 0x12, 0x34, 0x40, 0, 64, 17]);
        octets[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = !fold(add(0, &octets[14..34]));
        octets[24..26].copy_from_slice(&sum.to_be_bytes());
        octets[34..38].copy_from_slice(&[0, 80, 0, 81]);
        octets
    }

    fn ipv6(class: u8) -> Vec<u8> {
        let mut octets = vec![0; 80];
        octets[12..14].copy_from_slice(&[0x86, 0xdd]);
        octets[14..16].copy_from_slice(&[0x60 | class >> 4, class << 4]);
        octets[20] = 6;
        octets
    }

    #[test]
    fn marks_are_read_and_written_with_a_right_checksum() {
        for tos in 0..=255 {
            for mut octets in [ipv4(tos), ipv6(tos)] {
                let wanted = [Ecn::Incapable, Ecn::Capable, Ecn::Capable, Ecn::Marked][usize::from(tos & 3)];
                assert_eq!(ecn(&octets), wanted);
                let before = octets.clone();
                mark(&mut octets);
                assert_eq!(ecn(&octets), Ecn::Marked);
                if octets[14] == 0x45 {
                    assert_eq!(octets[15], tos | 3);
                    assert_eq!(fold(add(0, &octets[14..34])), 0xffff, "type of service {tos}");
                    octets[24..26].copy_from_slice(&before[24..26]);
                    octets[15] = tos;
                } else {
                    assert_eq!(octets[15], (tos | 3) << 4);
                    octets[15] = tos << 4;
                }
                assert_eq!(octets, before, "nothing else changes");
            }
        }
    }

    #[test]
    fn flows_differ_by_ports_and_not_by_content() {
        let first = ipv4(0);
        let mut other_port = first.clone();
        other_port[37] = 82;
        let mut other_content = first.clone();
        other_content[50] = 1;
        assert_eq!(flow(&first, 1), flow(&other_content, 1));
        assert_ne!(flow(&first, 1), flow(&other_port, 1));
        assert_ne!(flow(&first, 1), flow(&first, 2));
        // Only the first fragment has ports, so no fragment's ports are read.
        let fragment = |mut octets: Vec<u8>| {
            octets[20] = 0x20;
            octets
        };
        assert_eq!(flow(&fragment(first), 1), flow(&fragment(other_port), 1));
    }

    #[test]
    fn what_is_cut_short_is_not_read() {
        for whole in [ipv4(1), ipv6(1)] {
            for length in 0..whole.len() {
                let mut cut = whole[..length].to_vec();
                let _ = (ecn(&cut), flow(&cut, 0));
                mark(&mut cut);
            }
        }
    }
}
