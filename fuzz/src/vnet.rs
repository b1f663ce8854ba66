//! An untrusted virtio-net header: any header before any frame.
//!
//! The frame crosses a link that splits, and is written as a port would write it.
//!
//! Input: one octet of options, 12 of header, the rest is the frame.

use airloom_engine::frame::segment::{self, HEADER_MAX};
use airloom_engine::frame::{Frame, Pool};
use airloom_engine::settings::{LinkSettings, Loss, Rate};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Egress, End, Engine, PortId};
use airloom_ports::vnet::{self, OCTETS};

/// Writes headers and reads them back.
struct Mirror;

impl Egress for Mirror {
    fn deliver(&mut self, _port: PortId, _at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        let mut head = [0; HEADER_MAX];
        let piece = segment::header(frame, pool, frame.first, frame.count, &mut head);
        let payload = &pool.octets(frame.buffer)[piece.payload.clone()];
        let whole = [&head[..piece.header], payload].concat();
        let header = vnet::write(piece.segmentation, piece.checksum, &whole);
        let meaning = vnet::read(&header, &whole);
        assert_eq!(meaning.checksum, piece.checksum);
        assert_eq!(meaning.segmentation, piece.segmentation);
        Delivery::Taken
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    let Some((header, octets)) = rest.split_first_chunk::<OCTETS>() else { return };
    let settings = LinkSettings {
        rate: if how & 1 == 0 { Rate::Unlimited } else { Rate::BitsPerSecond(1_000_000_000) },
        loss: if how & 2 == 0 { Loss::None } else { Loss::Bernoulli { probability: 0.3 } },
        corrupt: if how & 4 == 0 { 0.0 } else { 0.3 },
        ..LinkSettings::default()
    };
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
    let octets = &octets[..octets.len().min(65_550)];
    let meaning = vnet::read(header, octets);
    let buffer = engine.pool().take(octets.len());
    engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
    let length = u32::try_from(octets.len()).expect("small");
    engine.offer(a, Instant::ZERO, Frame::new(buffer, length, meaning.segmentation, meaning.checksum));
    engine.advance(Instant::NEVER, &mut Mirror);
    assert_eq!(engine.ledger().in_flight().frames, 0);
    assert_eq!(engine.pool().in_use(), 0);
}
