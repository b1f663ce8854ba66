//! The data path allocates no memory per frame once its buffers exist.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::propagation::LogDistance;
use airloom_engine::medium::wlan::{Attempt, TxRequest};
use airloom_engine::medium::{Medium, Membership, RadioSettings, RateSettings};
use airloom_engine::settings::{
    Discipline, Jitter, LinkSettings, Loss, QueueSettings, Rate, Segments, SwitchSettings,
};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Egress, End, Engine, PortId};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with an allocation counter per thread.
struct Counting;

// SAFETY: every call is forwarded unchanged to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Sink;

impl Egress for Sink {
    fn deliver(&mut self, _port: PortId, _at: Instant, _frame: &Frame, _pool: &Pool) -> Delivery {
        Delivery::Taken
    }
}

/// Offers 50 rounds of single frames and super-frames, always at the same intervals.
fn rounds(engine: &mut Engine, ports: [PortId; 2], from: u64) {
    let mut head = [0; 54];
    head[12..24].copy_from_slice(&[8, 0, 0x45, 1, 0, 0, 0, 0, 0x40, 0, 64, 6]);
    head[46] = 0x50;
    for round in from..from + 50 {
        for (number, port) in ports.into_iter().enumerate() {
            let octet = u8::try_from(number).expect("small");
            (head[5], head[11]) = (1 - octet, octet);
            for _ in 0..20 {
                let length = 5_000;
                let buffer = engine.pool().take(length);
                engine.pool().octets_mut(buffer)[..54].copy_from_slice(&head);
                let cut = Segmentation { protocol: Protocol::Tcp4, header: 54, size: 1_448 };
                let checksum = Some(Checksum { start: 34, offset: 16 });
                let at = Instant::from_nanos(round * 10_000_000);
                engine.offer(port, at, Frame::new(buffer, 5_000, Some(cut), checksum));
            }
        }
        engine.advance(Instant::from_nanos(round * 10_000_000 + 5_000_000), &mut Sink);
    }
}

#[test]
fn frames_cost_no_allocation() {
    let times = (200_000, 2_000_000);
    let disciplines = [
        Discipline::DropTail,
        Discipline::Red {
            min_octets: 5_000,
            max_octets: 60_000,
            probability: 0.1,
            weight: 0.1,
            packet_octets: 500,
            marks_above: false,
        },
        Discipline::CoDel { target_ns: times.0, interval_ns: times.1 },
        Discipline::FqCoDel { target_ns: times.0, interval_ns: times.1, quantum: 1514, flows: 8 },
    ];
    for discipline in disciplines {
        for segments in [Segments::Timed, Segments::Carried] {
            let mut engine = Engine::new(1);
            let settings = LinkSettings {
                rate: Rate::BitsPerSecond(100_000_000),
                delay_ns: 300_000,
                jitter: Jitter::Normal { sigma_ns: 50_000 },
                jitter_reorders: true,
                loss: Loss::Bernoulli { probability: 0.02 },
                duplicate: 0.02,
                corrupt: 0.02,
                reorder: 0.02,
                queue: QueueSettings {
                    discipline: discipline.clone(),
                    ecn: true,
                    ..QueueSettings::default()
                },
                segments,
                ..LinkSettings::default()
            };
            let ports = ["a", "b"].map(|name| engine.add_port(name, false).expect("new"));
            let kind = SwitchSettings::ShortestPath { ageing_ns: 1 << 60, addresses: 16, convergence_ns: 0 };
            let switches = ["s", "t"].map(|name| End::Switch(engine.add_switch(name, &kind).expect("new")));
            for ((name, port), switch) in ["a", "b"].iter().zip(ports).zip(switches) {
                engine.connect(name, End::Port(port), switch, &settings, &settings).expect("valid");
            }
            for name in ["c", "d"] {
                engine.connect(name, switches[0], switches[1], &settings, &settings).expect("equal paths");
            }
            // Buffers, queues and the calendar grow to the size that this traffic needs.
            rounds(&mut engine, ports, 0);
            rounds(&mut engine, ports, 50);
            let before = ALLOCATIONS.with(Cell::get);
            rounds(&mut engine, ports, 100);
            let made = ALLOCATIONS.with(Cell::get) - before;
            // 4,000 frames and more on three links each; a queue may still reach a new maximum.
            assert!(made <= 8, "{made} allocations with {discipline:?}, {segments:?}");
        }
    }
}

#[test]
fn a_row_of_switches_allocates_nothing_per_frame() {
    let mut engine = Engine::new(1);
    let bare = LinkSettings::default();
    let ports = ["a", "b"].map(|name| engine.add_port(name, false).expect("new"));
    let mut from = End::Port(ports[0]);
    // All entries in the switches' tables age repeatedly.
    let kind = SwitchSettings::Switch { ageing_ns: 35_000, addresses: 16 };
    for number in 0..8 {
        let to = match number {
            7 => End::Port(ports[1]),
            _ => End::Switch(engine.add_switch(&number.to_string(), &kind).expect("new")),
        };
        engine.connect(&number.to_string(), from, to, &bare, &bare).expect("valid");
        from = to;
    }
    let talk = |engine: &mut Engine, frames: std::ops::Range<u64>| {
        for frame in frames {
            let (from, to) = if frame % 2 == 0 { (0, 1) } else { (1, 0) };
            let buffer = engine.pool().take(60);
            let octets = engine.pool().octets_mut(buffer);
            octets[..12].fill(2);
            (octets[5], octets[11]) = (to, from);
            let at = Instant::from_nanos(frame * 1_000);
            engine.offer(ports[usize::from(from)], at, Frame::new(buffer, 60, None, None));
            engine.advance(at, &mut Sink);
        }
    };
    talk(&mut engine, 0..1_000);
    let before = ALLOCATIONS.with(Cell::get);
    talk(&mut engine, 1_000..5_000);
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
}

#[test]
fn frames_of_a_stack_and_their_translation_allocate_nothing() {
    let mut engine = Engine::new(1);
    let loss = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.7) };
    let medium = Medium::new(engine.seed(), "air", Box::new(loss));
    let medium = engine.add_medium("air", medium).expect("new");
    let mac = |node: u8| [2, 0, 0, 0, 0, node];
    let cell = Membership::AdHoc { ssid: String::new(), beacon_ns: 102_400_000 };
    let mut ports = Vec::new();
    for (node, membership) in (0u8..).zip([Membership::Wlan, Membership::Wlan, cell]) {
        let port = engine.add_port(&format!("n{node}"), false).expect("new");
        let place = Box::new(Static(Position::new(f64::from(node), 0.0, 0.0)));
        let stack = membership == Membership::Wlan;
        let settings = RadioSettings { mac: mac(node), membership, ..RadioSettings::default() };
        engine.add_radio(medium, port, settings, place).expect("valid");
        if stack {
            engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack");
        }
        ports.push(port);
    }
    // From stack to stack, from a stack to an Ethernet radio, and back.
    let talk = |engine: &mut Engine, frames: std::ops::Range<u64>| {
        for frame in frames {
            let at = Instant::from_nanos(frame * 3_000_000);
            let buffer = engine.pool().take(300);
            let octets = engine.pool().octets_mut(buffer);
            octets[..300].fill(0);
            let to = [1, 2, 0][(frame % 3) as usize];
            if frame % 3 == 2 {
                octets[..6].copy_from_slice(&mac(to));
                octets[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 8, 0]);
                engine.offer(ports[2], at, Frame::new(buffer, 300, None, None));
            } else {
                octets[0] = 0x08;
                octets[4..10].copy_from_slice(&mac(to));
                octets[10..16].copy_from_slice(&mac(0));
                octets[16] = 2;
                octets[24..32].copy_from_slice(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
                let attempts = [Some(Attempt { rate: 4, tries: 7, rts: false }), None, None, None];
                let request = TxRequest { mhz: 5180, attempts, ..TxRequest::default() };
                engine.transmit(ports[0], at, Frame::new(buffer, 300, None, None), request);
            }
            engine.advance(at, &mut Sink);
        }
    };
    talk(&mut engine, 0..300);
    let before = ALLOCATIONS.with(Cell::get);
    talk(&mut engine, 300..1_500);
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
    assert_eq!(engine.ledger().dropped.total().frames, 0);
}

#[test]
fn frames_of_aggregates_cost_no_allocation() {
    let mut engine = Engine::new(1);
    let loss = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.7) };
    let medium = Medium::new(engine.seed(), "air", Box::new(loss));
    let medium = engine.add_medium("air", medium).expect("new");
    let (mut ports, mut radios) = (Vec::new(), Vec::new());
    for node in 0..2_u8 {
        let port = engine.add_port(&format!("n{node}"), false).expect("new");
        // At 100 m some frames of an A-MPDU have errors, so that others wait for them.
        let place = Box::new(Static(Position::new(f64::from(node) * 100.0, 0.0, 0.0)));
        let settings = RadioSettings {
            mac: [2, 0, 0, 0, 0, node],
            phy: "802.11n".into(),
            rate: RateSettings::Mcs(3),
            qos: true,
            aggregation: Some(16),
            ..RadioSettings::default()
        };
        radios.push(engine.add_radio(medium, port, settings, place).expect("valid"));
        ports.push(port);
    }
    let talk = |engine: &mut Engine, rounds: std::ops::Range<u64>| {
        for round in rounds {
            let at = Instant::from_nanos(round * 10_000_000);
            for frame in 0..20_u8 {
                let from = frame % 2;
                let buffer = engine.pool().take(300);
                let octets = engine.pool().octets_mut(buffer);
                octets[..300].fill(0);
                octets[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1 - from, 2, 0, 0, 0, 0, from, 8, 0]);
                engine.offer(ports[usize::from(from)], at, Frame::new(buffer, 300, None, None));
            }
            engine.advance(at, &mut Sink);
        }
    };
    talk(&mut engine, 0..2_000);
    let before = ALLOCATIONS.with(Cell::get);
    talk(&mut engine, 2_000..6_000);
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
    let counts = engine.medium(medium).expect("known").counts(radios[0]);
    assert!(counts.unanswered > 100 && counts.sent > counts.unanswered, "{counts:?}");
}
