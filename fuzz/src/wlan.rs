//! 802.11 frames of a guest's stack: any octets, in a cell with Ethernet radios.
//!
//! Input: two octets of the request, then the frame.

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::propagation::LogDistance;
use airloom_engine::medium::wlan::header::{Header, Type};
use airloom_engine::medium::wlan::management::Management;
use airloom_engine::medium::wlan::translation;
use airloom_engine::medium::wlan::{Attempt, TxRequest, TxStatus};
use airloom_engine::medium::{Medium, Membership, RadioSettings, Roaming};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Egress, Engine, PortId};

/// Counts what leaves.
#[derive(Default)]
struct Sink {
    statuses: usize,
}

impl Egress for Sink {
    fn deliver(&mut self, _: PortId, _: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        assert!(pool.octets(frame.buffer).len() >= frame.length as usize);
        Delivery::Taken
    }
    fn transmitted(&mut self, _: PortId, _: Instant, _: &TxStatus) {
        self.statuses += 1;
    }
}

/// The parsers alone.
fn parse(octets: &[u8]) {
    let Some(header) = Header::parse(octets) else { return };
    assert!(header.length <= octets.len());
    assert!(header.category() < 4);
    if header.kind() == Some(Type::Management) {
        let body = &octets[header.length..];
        if let Some(Management::Beacon(said) | Management::ProbeResponse(said)) =
            Management::parse(header.subtype(), body)
        {
            assert!(said.ssid.len() <= 32);
        }
    }
    let mut ethernet = Vec::new();
    if translation::to_ethernet(octets, &mut ethernet) {
        assert_eq!(header.kind(), Some(Type::Data));
        assert!((14..=octets.len() + 14).contains(&ethernet.len()));
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&[how, rate], octets)) = data.split_first_chunk() else { return };
    parse(octets);
    let mut engine = Engine::new(1);
    let loss = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.7) };
    let medium = Medium::new(engine.seed(), "air", Box::new(loss));
    let medium = engine.add_medium("air", medium).expect("new");
    let ssid = || "cell".to_owned();
    let memberships = [
        Membership::AccessPoint { ssid: ssid(), beacon_ns: 20_000_000 },
        Membership::Station(Roaming { ssid: ssid(), dwell_ns: 20_000_000, ..Roaming::default() }),
        Membership::AdHoc { ssid: ssid(), beacon_ns: 20_000_000 },
        Membership::Wlan,
        Membership::Wlan,
    ];
    let mut ports = Vec::new();
    for (node, membership) in (1u8..).zip(memberships) {
        let port = engine.add_port(&format!("n{node}"), false).expect("new");
        let mac = [2, 0, 0, 0, 0, node];
        let stack = membership == Membership::Wlan;
        let settings = RadioSettings { mac, membership, ..RadioSettings::default() };
        let place = Box::new(Static(Position::new(f64::from(node), 0.0, 0.0)));
        engine.add_radio(medium, port, settings, place).expect("valid");
        if stack {
            engine.set_wlan_addresses(port, &[mac]).expect("a stack");
        }
        ports.push(port);
    }
    let mut sink = Sink::default();
    let attempt = Some(Attempt { rate: rate & 15, tries: how >> 6, rts: rate & 16 != 0 });
    let request = TxRequest {
        mhz: [5180, 5200, 2412, 0][usize::from(how & 3)],
        attempts: [attempt, None, attempt, None],
        no_ack: how & 4 != 0,
        cookie: 7,
    };
    for number in 0..3u64 {
        let buffer = engine.pool().take(octets.len());
        engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
        let length = u32::try_from(octets.len()).expect("short");
        let frame = Frame::new(buffer, length, None, None);
        engine.transmit(ports[3], Instant::from_nanos(number * 3_000_000), frame, request);
    }
    for step in 0..30 {
        engine.advance(Instant::from_nanos(step * 1_000_000), &mut sink);
        let counted = engine.recount();
        assert_eq!(engine.ledger().in_flight(), counted);
    }
    // The longest chain takes a while: 6 transmissions at 6 Mbit/s, contention included.
    engine.advance(Instant::from_nanos(300_000_000), &mut sink);
    assert_eq!(sink.statuses, 3, "one status each");
}
