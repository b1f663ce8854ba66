//! Shared code of the engine's tests: an egress that records everything, and frames to send.
#![allow(dead_code)] // each test uses its own part of it

use core::ops::Range;
use std::path::Path;

use airloom_engine::frame::segment;
use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::settings::{LinkSettings, QueueSettings, Rate};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, DropReason, Egress, End, Engine, HostLoss, LinkId, Place, PortId};

/// One frame as delivered to a port; each segment of a super-frame is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub port: PortId,
    pub at: u64,
    pub octets: Vec<u8>,
    /// Number of segments delivered together with it.
    pub together: u16,
}

/// One drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub place: Place,
    pub at: u64,
    pub frames: u16,
    pub why: DropReason,
}

/// Records all output of an engine.
#[derive(Default)]
pub struct Book {
    pub deliveries: Vec<Arrival>,
    pub drops: Vec<Dropped>,
    /// Carrier changes of interfaces, in order.
    pub carriers: Vec<(PortId, bool)>,
    /// If set, the host loses every n-th delivery.
    pub lose_every: Option<usize>,
    pub calls: usize,
}

impl Egress for Book {
    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        self.calls += 1;
        if self.lose_every.is_some_and(|n| self.calls % n == 0) {
            return Delivery::Lost(HostLoss::RingFull);
        }
        for segment in frame.first..frame.first + frame.count {
            let mut octets = vec![0; frame.segment_octets(segment) as usize];
            assert_eq!(segment::complete(frame, pool, segment, &mut octets), octets.len());
            self.deliveries.push(Arrival { port, at: at.nanos(), octets, together: frame.count });
        }
        Delivery::Taken
    }

    fn carrier(&mut self, port: PortId, up: bool) {
        self.carriers.push((port, up));
    }

    fn dropped(&mut self, place: Place, at: Instant, frame: &Frame, why: DropReason, _pool: &Pool) {
        self.drops.push(Dropped { place, at: at.nanos(), frames: frame.count, why });
    }
}

impl Book {
    /// Instants at which a port received frames.
    pub fn times(&self, port: PortId) -> Vec<u64> {
        self.deliveries.iter().filter(|delivery| delivery.port == port).map(|delivery| delivery.at).collect()
    }

    /// Frames dropped for this reason.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.drops.iter().filter(|drop| drop.why == why).map(|drop| u64::from(drop.frames)).sum()
    }
}

/// An address for the node with this number.
pub fn mac(node: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, node]
}

/// Offers a frame of so many octets with these addresses, filled with zeros.
pub fn offer(engine: &mut Engine, port: PortId, at: u64, to: [u8; 6], from: [u8; 6], octets: u32) {
    let mut content = vec![0; octets as usize];
    content[..6].copy_from_slice(&to);
    content[6..12].copy_from_slice(&from);
    offer_octets(engine, port, at, &content);
}

/// Offers these octets.
pub fn offer_octets(engine: &mut Engine, port: PortId, at: u64, octets: &[u8]) {
    let buffer = engine.pool().take(octets.len());
    engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
    let length = u32::try_from(octets.len()).expect("a frame");
    engine.offer(port, Instant::from_nanos(at), Frame::new(buffer, length, None, None));
}

/// Ones' complement sum of big-endian words, implemented independently of the engine.
pub fn internet_sum(octets: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in octets.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).expect("folded")
}

/// The octets of a TCP super-frame over IPv4 as a node's kernel sends it: total length and
/// pseudo-header sum are those of the whole super-frame.
pub fn tcp4(payload: usize, sequence: u32, flags: u8) -> Vec<u8> {
    let mut octets = vec![0; 14 + 20 + 20 + payload];
    octets[..6].copy_from_slice(&mac(2));
    octets[6..12].copy_from_slice(&mac(1));
    octets[12..14].copy_from_slice(&[0x08, 0x00]);
    let total = u16::try_from(40 + payload).expect("fits");
    octets[14] = 0x45;
    octets[15] = 0x02; // ECT(0)
    octets[16..18].copy_from_slice(&total.to_be_bytes());
    octets[18..20].copy_from_slice(&[0x12, 0x34]);
    octets[20] = 0x40;
    octets[22] = 64;
    octets[23] = 6;
    octets[26..30].copy_from_slice(&[10, 0, 0, 1]);
    octets[30..34].copy_from_slice(&[10, 0, 0, 2]);
    let sum = !internet_sum(&octets[14..34]);
    octets[24..26].copy_from_slice(&sum.to_be_bytes());
    octets[34..38].copy_from_slice(&[0x13, 0x88, 0x13, 0x89]);
    octets[38..42].copy_from_slice(&sequence.to_be_bytes());
    octets[46] = 0x50;
    octets[47] = flags;
    let mut pseudo = octets[26..34].to_vec();
    pseudo.extend([0, 6]);
    pseudo.extend((total - 20).to_be_bytes());
    octets[50..52].copy_from_slice(&internet_sum(&pseudo).to_be_bytes());
    for (index, octet) in octets[54..].iter_mut().enumerate() {
        *octet = u8::try_from(index % 251).expect("small");
    }
    octets
}

/// Offers a TCP super-frame over IPv4 with so many octets of payload in segments of `size`.
pub fn offer_super(engine: &mut Engine, port: PortId, at: u64, payload: usize, size: u16) {
    let frame = super_frame(engine, payload, size);
    engine.offer(port, Instant::from_nanos(at), frame);
}

/// The same, at the end of the time in which its segments came at equal intervals.
pub fn offer_super_that_came(
    engine: &mut Engine,
    port: PortId,
    during: Range<u64>,
    payload: usize,
    size: u16,
) {
    let frame = super_frame(engine, payload, size);
    let count = u64::from(frame.segments());
    let length = during.end - during.start;
    let came = |segment: u64| Instant::from_nanos(during.start + length * (segment + 1) / count);
    let arrivals: Vec<Instant> = (0..count).map(came).collect();
    engine.offer_run(port, Instant::from_nanos(during.end), &arrivals, frame);
}

/// A TCP super-frame over IPv4 in a buffer of the engine.
pub fn super_frame(engine: &mut Engine, payload: usize, size: u16) -> Frame {
    let octets = tcp4(payload, 1_000, 0x18);
    let buffer = engine.pool().take(octets.len());
    engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(&octets);
    let length = u32::try_from(octets.len()).expect("a frame");
    let cut = Segmentation { protocol: Protocol::Tcp4, header: 54, size };
    Frame::new(buffer, length, Some(cut), Some(Checksum { start: 34, offset: 16 }))
}

/// Checks the ledger's invariant against a recount.
pub fn check_ledger(engine: &mut Engine) {
    assert_eq!(engine.ledger().in_flight(), engine.recount());
}

/// Runs until all frames in flight have reached their end, and checks that none is left.
pub fn run_dry(engine: &mut Engine, book: &mut Book) {
    engine.advance(Instant::NEVER, book);
    check_ledger(engine);
    assert_eq!(engine.recount().frames, 0);
    assert_eq!(engine.pool().in_use(), 0);
}

/// Compares a table of results with the committed one. After an intended change of results, rewrite
/// the tables with `AIRLOOM_WRITE_TABLES=1 cargo test -p airloom-engine` and show the difference.
pub fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(name);
    if std::env::var_os("AIRLOOM_WRITE_TABLES").is_some() {
        std::fs::write(&path, text).expect("a writable source tree");
    }
    let wanted = std::fs::read_to_string(&path).expect("a committed table");
    assert_eq!(text, wanted, "{} differs", path.display());
}

/// Two ports joined by 8 Mbit/s without overhead, so that a frame of 1000 octets takes 1 ms.
pub fn millisecond_link(seed: u64, queue: QueueSettings) -> (Engine, PortId, PortId, LinkId) {
    let settings = LinkSettings {
        rate: Rate::BitsPerSecond(8_000_000),
        overhead: 0,
        shortest: 0,
        queue,
        ..LinkSettings::default()
    };
    let mut engine = Engine::new(seed);
    let a = engine.add_port("a", false).expect("new name");
    let b = engine.add_port("b", false).expect("new name");
    let link = engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
    (engine, a, b, link)
}
