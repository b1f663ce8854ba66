//! Packets from a tunnel: GRE, with or without an IPv4 header, and VXLAN.
//!
//! Accepted frames must be inside the packet; written packets are read again.
//!
//! Input: one octet that selects the tunnel, four of a key, the rest is the packet.

use airloom_ports::tunnel::encapsulation::{Encapsulation, behind_ipv4};
use airloom_ports::tunnel::gre::{self, Gre};
use airloom_ports::tunnel::plain::{self, Sent};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    let Some((key, packet)) = rest.split_first_chunk::<4>() else { return };
    let key = u32::from_be_bytes(*key);
    let on = |bit: u8| how & bit != 0;
    let gre = Gre { key: on(1).then_some(key), checksum: on(2), sequence: on(4) };
    let encapsulation = match how & 24 {
        0 | 16 => Encapsulation::Gretap(gre),
        8 => Encapsulation::Vxlan { vni: key >> 8 },
        _ => Encapsulation::Gre { header: gre, node: [2, 0, 0, 0, 0, 1] },
    };
    // A frame from the node, at a tunnel that carries IP only.
    if let Sent::Question(answer) = plain::look(packet) {
        assert!(packet.len() >= 42 && answer.len() >= 60);
    }
    if let Ok(body) = behind_ipv4(packet) {
        assert!(body.start >= 20 && body.end == packet.len());
        let _ = encapsulation.unwrap(&packet[body]);
    }
    if let Ok(found) = encapsulation.unwrap(packet) {
        assert!(found.frame.len() >= 14 || found.bare.is_some());
        assert_eq!(found.frame.end, packet.len());
    }
    // The packet as a frame, encapsulated and decapsulated.
    let mut head = [0; gre::MOST];
    let octets = encapsulation.wrap(gre::ETHERNET, key, packet, &mut head);
    let wrapped = [&head[..octets], packet].concat();
    match encapsulation.unwrap(&wrapped) {
        Ok(found) => {
            assert_eq!(found.frame, octets..wrapped.len());
            assert_eq!(found.sequence, encapsulation.is_sequenced().then_some(key));
        }
        Err(_) => assert!(packet.len() < 14, "only what is no frame is refused"),
    }
}
