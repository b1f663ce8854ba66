//! Plain IP over GRE: a point-to-point link of layer 3, with an Ethernet interface at its near end.
//!
//! The far side has no Ethernet address. The tunnel answers every address request of the node, by
//! ARP (RFC 826) or neighbour discovery (RFC 4861), with its own address.

use airloom_engine::frame::segment::checksum;

use super::Refusal;

/// Octets of an Ethernet header.
pub const ETHERNET: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
/// The tunnel's own address: locally administered, and the only other one on its link.
const OWN: [u8; 6] = [0x02, 0x02, 0, 0, 0, 1];

/// Classification of a frame of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A packet for the far side, with its type.
    Packet(u16),
    /// An address request; the reply to it.
    Question(Vec<u8>),
    /// A frame that IP over GRE does not carry.
    Other,
}

/// Classifies a frame that the node sent.
#[must_use]
pub fn look(frame: &[u8]) -> Sent {
    let Some(kind) = frame.get(12..14) else { return Sent::Other };
    match u16::from_be_bytes([kind[0], kind[1]]) {
        IPV4 => Sent::Packet(IPV4),
        IPV6 => solicited(frame).map_or(Sent::Packet(IPV6), Sent::Question),
        ARP => asked(frame).map_or(Sent::Other, Sent::Question),
        _ => Sent::Other,
    }
}

/// The Ethernet header for a packet of this type to the node `to`.
///
/// # Errors
/// [`Refusal::Protocol`] if it is not IP.
pub fn header(protocol: u16, to: [u8; 6]) -> Result<[u8; ETHERNET], Refusal> {
    if protocol != IPV4 && protocol != IPV6 {
        return Err(Refusal::Protocol);
    }
    let mut out = [0; ETHERNET];
    out[..6].copy_from_slice(&to);
    out[6..12].copy_from_slice(&OWN);
    out[12..].copy_from_slice(&protocol.to_be_bytes());
    Ok(out)
}

/// The reply to an ARP request; None for a probe of the node's own address (RFC 5227).
fn asked(frame: &[u8]) -> Option<Vec<u8>> {
    let body: &[u8; 28] = frame.get(ETHERNET..)?.first_chunk()?;
    let request = body[..8] == [0, 1, 8, 0, 6, 4, 0, 1];
    let (from, sender, target) = (&body[8..14], &body[14..18], &body[24..28]);
    if !request || sender == [0; 4] || sender == target {
        return None;
    }
    let mut answer = [from, &OWN, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &OWN, target, from, sender].concat();
    answer.resize(60, 0);
    Some(answer)
}

/// The advertisement in reply to a neighbour solicitation; None for duplicate address detection.
fn solicited(frame: &[u8]) -> Option<Vec<u8>> {
    let packet: &[u8; 64] = frame.get(ETHERNET..)?.first_chunk()?;
    let (source, target) = (&packet[8..24], &packet[48..64]);
    if packet[0] >> 4 != 6 || packet[6] != 58 || packet[40] != 135 || source == [0; 16] || source == target {
        return None;
    }
    // Flags: solicited and override; the option contains the link-layer address.
    let mut body = [&[136, 0, 0, 0, 0x60, 0, 0, 0], target, &[2, 1], &OWN[..]].concat();
    let length = [0, 0, 0, 32, 0, 0, 0, 58];
    let sum = checksum([&[target, source, &length].concat(), &body]);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let ip = [&[0x60, 0, 0, 0, 0, 32, 58, 255], target, source].concat();
    Some([&frame[6..12], &OWN, &[0x86, 0xdd], &ip, &body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: [u8; 6] = [2, 1, 10, 0, 0, 1];

    fn arp(sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
        [&[0xff; 6][..], &NODE, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &NODE, &sender, &[0; 6], &target].concat()
    }

    #[test]
    fn the_tunnel_answers_for_every_address_but_the_nodes_own() {
        let Sent::Question(answer) = look(&arp([10, 0, 0, 1], [10, 0, 0, 2])) else { panic!("a question") };
        assert_eq!(answer.len(), 60);
        assert_eq!(answer[..14], [&NODE[..], &OWN, &[8, 6]].concat());
        assert_eq!(answer[20..42], [&[0, 2], &OWN[..], &[10, 0, 0, 2], &NODE, &[10, 0, 0, 1]].concat());
        assert_eq!(look(&arp([0; 4], [10, 0, 0, 2])), Sent::Other, "a probe");
        assert_eq!(look(&arp([10, 0, 0, 1], [10, 0, 0, 1])), Sent::Other, "an announcement");
    }

    #[test]
    fn a_solicitation_gets_an_advertisement_with_a_right_checksum() {
        let mut frame = [&[0x33, 0x33, 0xff, 0, 0, 2], &NODE[..], &[0x86, 0xdd]].concat();
        frame.extend([0x60, 0, 0, 0, 0, 24, 58, 255]);
        let (one, two) = (
            [[0xfd; 1].as_slice(), &[0; 14], &[1]].concat(),
            [[0xfd; 1].as_slice(), &[0; 14], &[2]].concat(),
        );
        frame.extend([&one[..], &[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 2]].concat());
        frame.extend([&[135, 0, 0, 0, 0, 0, 0, 0], &two[..]].concat());
        let Sent::Question(answer) = look(&frame) else { panic!("a question") };
        assert_eq!(answer[..12], [NODE, OWN].concat());
        let pseudo = [&answer[22..54], &[0, 0, 0, 32, 0, 0, 0, 58]].concat();
        assert_eq!(checksum([&pseudo, &answer[54..]]), 0);
        frame[22..38].fill(0);
        assert_eq!(look(&frame), Sent::Packet(IPV6), "who looks for a duplicate gets no answer");
    }
}
