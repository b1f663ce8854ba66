//! Links: when frames arrive and what becomes of the others, to the nanosecond.

mod common;

use airloom_engine::settings::{LinkSettings, QueueSettings, Rate, Segments, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction, End, Engine, LinkId, PortId, Why};
use common::{Book, mac, offer, offer_super, run_dry};

fn rated(rate: u64, delay_ns: u64) -> LinkSettings {
    LinkSettings { rate: Rate::BitsPerSecond(rate), delay_ns, ..LinkSettings::default() }
}

fn pair(settings: &LinkSettings) -> (Engine, PortId, PortId, LinkId) {
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new name");
    let b = engine.add_port("b", false).expect("new name");
    let link = engine.connect("a-b", End::Port(a), End::Port(b), settings, settings).expect("valid");
    (engine, a, b, link)
}

#[test]
fn a_frame_takes_serialization_and_propagation() {
    // 1000 + 24 octets at 10 Mbit/s take 819.2 us; the second follows without a gap.
    let (mut engine, a, b, _) = pair(&rated(10_000_000, 1_000_000));
    let mut book = Book::default();
    offer(&mut engine, a, 0, mac(2), mac(1), 1000);
    offer(&mut engine, a, 0, mac(2), mac(1), 1000);
    offer(&mut engine, b, 500, mac(1), mac(2), 20);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [1_819_200, 2_638_400]);
    // A short frame is charged as 60 + 24 octets.
    assert_eq!(book.times(a), [500 + 67_200 + 1_000_000]);
}

#[test]
fn a_busy_wire_does_not_drift() {
    // 84 octets at 7 bit/us take 96,000 ns exactly; at 11 Mbit/s 61,090.909..., never rounded
    // up more than once.
    let (mut engine, a, b, _) = pair(&rated(11_000_000, 0));
    let mut book = Book::default();
    for _ in 0..1000 {
        offer(&mut engine, a, 0, mac(2), mac(1), 60);
    }
    run_dry(&mut engine, &mut book);
    let exact = |n: u64| (n * 84 * 8 * 1_000).div_ceil(11);
    let wanted: Vec<u64> = (1..=1000).map(exact).collect();
    assert_eq!(book.times(b), wanted);
}

#[test]
fn segments_are_timed_one_by_one_and_pipeline_over_switches() {
    let mut engine = Engine::new(1);
    let (a, b) = (engine.add_port("a", false).expect("new"), engine.add_port("b", false).expect("new"));
    let settings = rated(100_000_000, 10_000);
    let mut from = End::Port(a);
    for hop in 0..3 {
        let name = format!("s{hop}");
        let switch = End::Switch(engine.add_switch(&name, &SwitchSettings::Hub).expect("new"));
        engine.connect(&name, from, switch, &settings, &settings).expect("valid");
        from = switch;
    }
    engine.connect("last", from, End::Port(b), &settings, &settings).expect("valid");
    let mut book = Book::default();
    offer_super(&mut engine, a, 0, 5_000, 1_000);
    run_dry(&mut engine, &mut book);
    // 1054 + 24 octets: 86.24 us a segment; four wires, then one segment each.
    let first = 4 * (86_240 + 10_000);
    let wanted: Vec<u64> = (0..5).map(|n| first + n * 86_240).collect();
    assert_eq!(book.times(b), wanted);
}

#[test]
fn carried_super_frames_reach_routers_early_and_ends_late() {
    for (transit, wanted) in [(true, 86_240), (false, 5 * 86_240)] {
        let mut engine = Engine::new(1);
        let (a, b) = (engine.add_port("a", false).expect("new"), engine.add_port("b", transit).expect("new"));
        let settings = LinkSettings { segments: Segments::Carried, ..rated(100_000_000, 0) };
        engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
        let mut book = Book::default();
        offer_super(&mut engine, a, 0, 5_000, 1_000);
        run_dry(&mut engine, &mut book);
        assert_eq!(book.times(b), [wanted; 5]);
        assert!(book.deliveries.iter().all(|delivery| delivery.together == 5));
    }
}

#[test]
fn a_full_queue_drops_the_tail_of_a_run() {
    let queue = QueueSettings { packets: Some(2), ..QueueSettings::default() };
    let (mut engine, a, b, _) = pair(&LinkSettings { queue, ..rated(1_000_000, 0) });
    let mut book = Book::default();
    offer_super(&mut engine, a, 0, 10_000, 1_000);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b).len(), 3);
    assert_eq!(book.dropped(Why::QueueFull), 7);
}

#[test]
fn a_cut_loses_what_is_on_the_wire_and_what_waits() {
    let (mut engine, a, b, link) = pair(&rated(1_000_000, 50_000_000));
    let mut book = Book::default();
    for _ in 0..10 {
        offer(&mut engine, a, 0, mac(2), mac(1), 1000);
    }
    offer(&mut engine, a, 70_000_000, mac(2), mac(1), 1000);
    offer(&mut engine, a, 80_000_000, mac(2), mac(1), 1000);
    engine.schedule(Instant::from_nanos(59_000_000), Change::Down(link)).expect("known");
    engine.schedule(Instant::from_nanos(80_000_000), Change::Up(link)).expect("known");
    run_dry(&mut engine, &mut book);
    // 8.192 ms each: one has arrived at 58.192 ms; the frame of 80 ms finds the link up.
    assert_eq!(book.times(b), [58_192_000, 138_192_000]);
    assert_eq!(book.dropped(Why::LinkDown), 10);
    assert_eq!(engine.ledger().link(link, Direction::Forward).left.frames, 2);
}
