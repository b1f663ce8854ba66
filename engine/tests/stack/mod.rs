//! Radios that carry 802.11 frames inside an engine, for tests: frames to send, records of the rest.
#![allow(dead_code)] // each test uses its own part of it

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::capture::{self, Sniffed};
use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::propagation::LogDistance;
use airloom_engine::medium::wlan::{Attempt, RxStatus, TxRequest, TxStatus};
use airloom_engine::medium::{Medium, Membership, RadioId, RadioSettings, RateSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, DropReason, Egress, Engine, MediumId, Place, PortId};

pub const CHANNEL: u16 = 5180;
pub const GROUP: [u8; 6] = [0xff; 6];

/// An address for the node with this number.
pub fn mac(node: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, node]
}

/// A frame that reached a stack.
#[derive(Clone, Debug)]
pub struct Received {
    pub port: PortId,
    pub at: Instant,
    pub octets: Vec<u8>,
    pub status: RxStatus,
}

/// Records all output of an engine.
#[derive(Default)]
pub struct Book {
    pub received: Vec<Received>,
    /// Octets delivered at Ethernet ports.
    pub ethernet: Vec<(PortId, Vec<u8>)>,
    pub statuses: Vec<(PortId, Instant, TxStatus)>,
    pub drops: Vec<(Place, DropReason)>,
    /// Captures of the channel as a whole, with radiotap header.
    pub sniffs: Vec<Vec<u8>>,
    /// Counts deliveries only.
    pub quiet: bool,
    pub counts: std::collections::BTreeMap<usize, u64>,
}

impl Egress for Book {
    fn deliver(&mut self, port: PortId, _at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        *self.counts.entry(port.index()).or_default() += 1;
        if !self.quiet {
            let octets = &pool.octets(frame.buffer)[..frame.segment_octets(frame.first) as usize];
            self.ethernet.push((port, octets.to_vec()));
        }
        Delivery::Taken
    }

    fn receive_wlan(
        &mut self,
        port: PortId,
        at: Instant,
        frame: &Frame,
        pool: &Pool,
        status: &RxStatus,
    ) -> Delivery {
        *self.counts.entry(port.index()).or_default() += 1;
        if !self.quiet {
            let octets = pool.octets(frame.buffer)[..frame.length as usize].to_vec();
            self.received.push(Received { port, at, octets, status: *status });
        }
        Delivery::Taken
    }

    fn transmitted(&mut self, port: PortId, at: Instant, status: &TxStatus) {
        self.statuses.push((port, at, *status));
    }

    fn dropped(&mut self, place: Place, _at: Instant, _frame: &Frame, why: DropReason, _pool: &Pool) {
        self.drops.push((place, why));
    }

    fn sniffed(&mut self, _medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        if sniffed.radio.is_none() {
            let whole = |frame: Frame| &pool.octets(frame.buffer)[..frame.length as usize];
            let mut octets = Vec::new();
            capture::write(sniffed, sniffed.frame.map_or(&[], whole), &mut octets);
            self.sniffs.push(octets);
        }
    }
}

impl Book {
    /// Frames that one port's stack received.
    pub fn at(&self, port: PortId) -> Vec<&Received> {
        self.received.iter().filter(|received| received.port == port).collect()
    }

    /// Statuses of one port.
    pub fn of(&self, port: PortId) -> Vec<TxStatus> {
        self.statuses.iter().filter(|(at, ..)| *at == port).map(|(.., status)| *status).collect()
    }
}

/// An engine with one medium.
pub struct Lab {
    pub engine: Engine,
    pub medium: MediumId,
    pub book: Book,
}

impl Lab {
    pub fn new(seed: u64) -> Self {
        let mut engine = Engine::new(seed);
        let loss = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.7) };
        let medium = Medium::new(engine.seed(), "air", Box::new(loss));
        let medium = engine.add_medium("air", medium).expect("new");
        Self { engine, medium, book: Book::default() }
    }

    pub fn add(&mut self, node: u8, x: f64, settings: RadioSettings) -> (PortId, RadioId) {
        let port = self.engine.add_port(&format!("n{node}"), false).expect("new");
        let place = Box::new(Static(Position::new(x, 0.0, 0.0)));
        let settings = RadioSettings { mac: mac(node), ..settings };
        (port, self.engine.add_radio(self.medium, port, settings, place).expect("valid"))
    }

    /// A radio of a stack with one interface.
    pub fn stack(&mut self, node: u8, x: f64) -> PortId {
        let (port, _) = self.add(node, x, wlan());
        assert!(self.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack"));
        port
    }

    pub fn send(&mut self, port: PortId, at: u64, octets: &[u8], request: TxRequest) {
        let pool = self.engine.pool();
        let buffer = pool.take(octets.len());
        pool.octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
        let frame = Frame::new(buffer, u32::try_from(octets.len()).expect("short"), None, None);
        self.engine.transmit(port, Instant::from_nanos(at), frame, request);
    }

    /// Runs to the end of `until` and checks the sum of the ledger.
    pub fn run(&mut self, until: u64) {
        self.engine.advance(Instant::from_nanos(until), &mut self.book);
        self.check();
    }

    /// The frames inside the engine are those that the other columns of the ledger leave.
    pub fn check(&mut self) {
        let counted = self.engine.recount();
        assert_eq!(self.engine.ledger().in_flight(), counted);
    }
}

/// Settings of a radio for a stack.
pub fn wlan() -> RadioSettings {
    RadioSettings {
        membership: Membership::Wlan,
        rate: RateSettings::Constant(54_000_000),
        transmit_buffers: 20_000,
        tail_drop: 20_000,
        ..RadioSettings::default()
    }
}

/// A request on the usual channel.
pub fn ask(cookie: u64, chain: &[(u8, u8)]) -> TxRequest {
    let mut attempts = [None; 4];
    for (slot, &(rate, tries)) in attempts.iter_mut().zip(chain) {
        *slot = Some(Attempt { rate, tries, rts: false });
    }
    TxRequest { mhz: CHANNEL, attempts, no_ack: false, cookie }
}

/// QoS data of best effort between two stations without access point, with this many octets in all.
pub fn qos_data(to: [u8; 6], from: [u8; 6], sequence: u16, length: usize) -> Vec<u8> {
    let mut octets = vec![0x88, 0, 0, 0];
    octets.extend(to);
    octets.extend(from);
    octets.extend(mac(0xee));
    octets.extend((sequence << 4).to_le_bytes());
    octets.extend([0, 0]);
    octets.resize(length, 0x5a);
    octets
}

/// A beacon without elements.
pub fn beacon(from: [u8; 6], sequence: u16) -> Vec<u8> {
    let mut octets = vec![0x80, 0, 0, 0];
    octets.extend(GROUP);
    octets.extend(from);
    octets.extend(from);
    octets.extend((sequence << 4).to_le_bytes());
    octets.extend([0; 12]);
    octets
}

/// A step as used.
pub fn used(rate: u8, tries: u8) -> Option<Attempt> {
    Some(Attempt { rate, tries, rts: false })
}
