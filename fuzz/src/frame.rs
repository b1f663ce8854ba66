//! An untrusted port: any octets with any offload description.
//!
//! The frame crosses a link that reads flows, marks, splits and corrupts.
//!
//! Input: 13 octets of description, the rest is the frame.

use airloom_engine::frame::segment::{self, HEADER_MAX};
use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::settings::{Discipline, LinkSettings, QueueSettings, Rate};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Egress, End, Engine, PortId};

/// Writes each delivered frame in all ways in which a port can.
struct Writer {
    out: Vec<u8>,
}

impl Egress for Writer {
    fn deliver(&mut self, _port: PortId, _at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        let mut head = [0; HEADER_MAX];
        for segment in frame.first..frame.first + frame.count {
            let length = segment::complete(frame, pool, segment, &mut self.out);
            assert_eq!(length, frame.segment_octets(segment) as usize);
            let rest = frame.first + frame.count - segment;
            let piece = segment::header(frame, pool, segment, rest, &mut head);
            assert!(piece.header <= HEADER_MAX && piece.payload.end <= frame.length as usize);
        }
        Delivery::Taken
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[kind, how, h0, h1, s0, s1, c0, c1, o0, o1, l0, l1, l2], octets)) = data.split_first_chunk()
    else {
        return;
    };
    let queue = QueueSettings {
        packets: Some(u32::from(how) * 16),
        ecn: how & 1 == 1,
        discipline: Discipline::FqCoDel { target_ns: 1, interval_ns: 1, quantum: 300, flows: 8 },
        ..QueueSettings::default()
    };
    let settings = LinkSettings {
        rate: if how & 2 == 0 { Rate::BitsPerSecond(1_000_000_000) } else { Rate::Unlimited },
        corrupt: if how & 4 == 0 { 0.0 } else { 0.3 },
        duplicate: if how & 8 == 0 { 0.0 } else { 0.3 },
        mtu: if how & 16 == 0 { 9216 } else { 576 },
        queue,
        ..LinkSettings::default()
    };
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
    let protocol = [Protocol::Tcp4, Protocol::Tcp6, Protocol::Udp][usize::from(kind) % 3];
    let cut =
        Segmentation { protocol, header: u16::from_be_bytes([h0, h1]), size: u16::from_be_bytes([s0, s1]) };
    let checksum = Checksum { start: u16::from_be_bytes([c0, c1]), offset: u16::from_be_bytes([o0, o1]) };
    // A port cannot deliver more than a buffer, but it can claim to.
    let held = octets.len().min(65_550);
    let said =
        if how & 32 == 0 { u32::try_from(held).expect("small") } else { u32::from_be_bytes([0, l0, l1, l2]) };
    let buffer = engine.pool().take(held);
    engine.pool().octets_mut(buffer)[..held].copy_from_slice(&octets[..held]);
    let frame =
        Frame::new(buffer, said, (how & 64 == 0).then_some(cut), (how & 128 == 0).then_some(checksum));
    engine.offer(a, Instant::ZERO, frame);
    let mut writer = Writer { out: vec![0; 70_000] };
    engine.advance(Instant::NEVER, &mut writer);
    assert_eq!(engine.ledger().in_flight(), engine.recount());
    assert_eq!(engine.recount().frames, 0);
    assert_eq!(engine.pool().in_use(), 0);
}
