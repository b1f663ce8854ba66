//! Captures of a node's frames: any octets with any description of their transmission.
//!
//! Input: 16 octets of description, the rest is the node's frame.

use airloom_engine::medium::capture::{self, Direction, Sniffed};
use airloom_engine::medium::phy::{Channel, Ht, tables};
use airloom_engine::medium::{Kind, RadioId};
use airloom_engine::time::{Instant, Span};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[kind, how, way, t0, t1, t2, c0, c1, r, b0, b1, o0, o1, s0, s1, name], ethernet)) =
        data.split_first_chunk()
    else {
        return;
    };
    let kinds = [
        Kind::Data,
        Kind::Ack,
        Kind::BlockAck,
        Kind::Rts,
        Kind::Cts,
        Kind::Beacon,
        Kind::ProbeRequest,
        Kind::ProbeResponse,
        Kind::AssociationRequest,
        Kind::AssociationResponse,
        Kind::Authentication,
        Kind::Deauthentication,
        Kind::Wlan,
    ];
    let number = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    let ssid = "a network with a long name to cut".split_at(usize::from(name % 33)).0;
    let sniffed = Sniffed {
        radio: (how & 32 == 0).then(|| RadioId::new(0)),
        sender: RadioId::new(0),
        at: Instant::from_nanos(u64::from_be_bytes([t0, t1, t2, t0, t1, t2, t0, t1])),
        channel: Channel { number: number(c0, c1), mhz: number(c1, c0) },
        bits_per_second: u32::from(r) * 1_000_000,
        ofdm: how & 1 == 0,
        ht: (how & 64 == 0).then_some(Ht { mcs: r, wide: t0 & 1 == 0, short: t1 & 1 == 0 }),
        signal_dbm: (how & 2 == 0).then(|| f64::from(number(t0, t1)) - 300.0),
        noise_dbm: (how & 4 == 0).then_some(f64::NEG_INFINITY),
        broken: how & 8 == 0,
        kind: kinds[usize::from(kind) % kinds.len()],
        qos: how & 16 == 0,
        body: (u32::from(number(b0, b1)), u32::from(number(o0, o1))),
        duration: Span::from_nanos(u64::from_be_bytes([t2, t1, t0, c0, c1, r, b0, b1])),
        sequence: (number(s0, s1), name),
        more: how & 32 == 0,
        retry: how & 64 == 0,
        direction: [Direction::Direct, Direction::ToAccessPoint, Direction::FromAccessPoint]
            [usize::from(way) % 3],
        addresses: [[t0; 6], [t1; 6], [t2; 6]],
        ssid,
        beacon: Span::from_nanos(u64::from_be_bytes([b0, b1, o0, o1, s0, s1, c0, c1])),
        rates: (tables::ALL[usize::from(way) % tables::ALL.len()], u32::from(number(b0, b1))),
        frame: None,
        subframe: (how & 128 == 0).then(|| (u32::from(number(t1, t0)), how & 1 == 0)),
        block: (name & 15, number(s0, s1), u64::from_be_bytes([t0, t1, t2, b0, b1, o0, o1, r])),
    };
    let mut out = vec![0xaa; usize::from(name)];
    let start = out.len();
    capture::write(&sniffed, ethernet, &mut out);
    assert!(out[..start].iter().all(|&octet| octet == 0xaa), "what stood there before stays");
    let out = &out[start..];
    let head = usize::from(u16::from_le_bytes([out[2], out[3]]));
    let signals = 22 + usize::from(how & 2 == 0) + usize::from(how & 4 == 0);
    let fields = if sniffed.is_own() { signals.next_multiple_of(2) + 2 } else { signals };
    let fields = fields + if sniffed.ht.is_some() { 3 } else { 0 };
    let fields = if sniffed.subframe.is_some() { fields.next_multiple_of(4) + 8 } else { fields };
    assert_eq!((out[0], head), (0, fields), "version and length of the radiotap header");
    if sniffed.kind == Kind::Wlan {
        return assert_eq!(out.len(), head + ethernet.len() + 4, "the octets of the stack");
    }
    // The shortest frame is an acknowledgment: control, duration, receiver, check sequence.
    assert!(out.len() >= head + 2 + 2 + 6 + 4);
    if sniffed.kind == Kind::Data {
        let header = 24 + if sniffed.qos { 2 } else { 0 };
        assert_eq!(out.len(), head + header + usize::from(number(b0, b1)) + 4);
    }
}
