//! Links: arrival times and drops, to the nanosecond.

mod common;

use airloom_engine::settings::{
    Carrier, Counts, LinkSettings, QueueSettings, Rate, Segments, SwitchSettings,
};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction, DropReason, End, Engine, LinkId, PortId};
use common::{Book, mac, offer, offer_octets, offer_super, run_dry};

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

/// From a over a link of 10 Mbit/s that keeps super-frames together to a hub, and over `last` to b.
fn behind_carried(last: &LinkSettings) -> (Engine, PortId, PortId) {
    let mut engine = Engine::new(1);
    let (a, b) = (engine.add_port("a", false).expect("new"), engine.add_port("b", false).expect("new"));
    let hub = End::Switch(engine.add_switch("hub", &SwitchSettings::Hub).expect("new"));
    let slow = LinkSettings { segments: Segments::Carried, overhead: 0, ..rated(10_000_000, 0) };
    engine.connect("a", End::Port(a), hub, &slow, &slow).expect("valid");
    engine.connect("b", hub, End::Port(b), last, last).expect("valid");
    (engine, a, b)
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
    // 84 octets at 7 bit/us take 96,000 ns exactly; at 11 Mbit/s 61,090.909..., never rounded up
    // more than once.
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
    // 1054 + 24 octets: 86.24 us per segment; four wires, then one segment each.
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
    assert_eq!(book.dropped(DropReason::QueueFull), 7);
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
    // 8.192 ms each: one has arrived at 58.192 ms; at 80 ms the link is up.
    assert_eq!(book.times(b), [58_192_000, 138_192_000]);
    assert_eq!(book.dropped(DropReason::LinkDown), 10);
    assert_eq!(engine.ledger().link(link, Direction::Forward).left.frames, 2);
}

#[test]
fn a_trace_lets_frames_leave_at_its_opportunities() {
    // 1500 octets at 1, 2, 2 and 5 ms of every 10 ms.
    let opportunities_ns = [1, 2, 2, 5].map(|ms| ms * 1_000_000).to_vec();
    let rate = Rate::Trace { opportunities_ns, period_ns: 10_000_000, octets: 1_500 };
    let (mut engine, a, b, _) = pair(&LinkSettings { rate, overhead: 0, ..LinkSettings::default() });
    let mut book = Book::default();
    for _ in 0..7 {
        offer(&mut engine, a, 0, mac(2), mac(1), 1_000);
    }
    // The unused octets of an opportunity are lost; this frame arrives just in time for the next
    // one.
    offer(&mut engine, a, 25_000_000, mac(2), mac(1), 1_000);
    offer(&mut engine, a, 25_000_001, mac(2), mac(1), 1_600);
    run_dry(&mut engine, &mut book);
    // The octets of the four opportunities end at 1500, 3000, 4500 and 6000.
    let wanted = [1, 2, 2, 2, 5, 5, 11, 25, 32].map(|ms| ms * 1_000_000);
    assert_eq!(book.times(b)[..7], wanted[..7]);
    // The last frame begins at 31 ms and ends with the first of 32 ms.
    assert_eq!(book.times(b)[7..], wanted[7..]);
}

#[test]
fn a_trace_counts_packets_as_mahimahi_does() {
    // 1504 octets each millisecond: a packet of 1500 and 4 of the tunnel's header.
    let opportunities_ns = (1..=10).map(|ms| ms * 1_000_000).collect::<Vec<_>>();
    let rate = Rate::Trace { opportunities_ns, period_ns: 10_000_000, octets: 1_504 };
    let counts = Counts::Packet;
    let (mut engine, a, b, _) = pair(&LinkSettings { rate, counts, overhead: 4, ..LinkSettings::default() });
    let mut book = Book::default();
    // Full packets: one for each opportunity.
    for _ in 0..3 {
        offer(&mut engine, a, 0, mac(2), mac(1), 1_514);
    }
    // Packets of 40 octets: 34 of 44 octets fit; the 35th leaves with the next opportunity.
    for _ in 0..35 {
        offer(&mut engine, a, 10_000_001, mac(2), mac(1), 54);
    }
    // A packet of 748 octets fills half of an opportunity, two of them all of it.
    for _ in 0..4 {
        offer(&mut engine, a, 20_000_001, mac(2), mac(1), 762);
    }
    run_dry(&mut engine, &mut book);
    let ms = |count: usize, at: u64| std::iter::repeat_n(at * 1_000_000, count);
    let wanted = [ms(1, 1), ms(1, 2), ms(1, 3), ms(34, 11), ms(1, 12), ms(2, 21), ms(2, 22)];
    assert_eq!(book.times(b), wanted.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn what_is_larger_than_the_mtu_is_dropped() {
    let (mut engine, a, b, _) = pair(&LinkSettings { mtu: 1_000, ..LinkSettings::default() });
    let mut book = Book::default();
    offer(&mut engine, a, 0, mac(2), mac(1), 1_014);
    offer(&mut engine, a, 1, mac(2), mac(1), 1_015);
    // A VLAN tag does not count.
    let mut tagged = vec![0; 1_018];
    tagged[12..14].copy_from_slice(&[0x81, 0x00]);
    offer_octets(&mut engine, a, 2, &tagged);
    // 2,500 octets in packets of 1,040, 1,040 and 540 octets: only the last is small enough.
    offer_super(&mut engine, a, 3, 2_500, 1_000);
    offer_super(&mut engine, a, 4, 2_500, 960);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [0, 2, 3, 4, 4, 4]);
    assert_eq!(book.dropped(DropReason::TooBig), 3);
}

#[test]
fn a_new_rate_holds_for_the_next_frame_and_what_waits() {
    let (mut engine, a, b, link) = pair(&rated(1_000_000, 0));
    let mut book = Book::default();
    for _ in 0..4 {
        offer(&mut engine, a, 0, mac(2), mac(1), 976);
    }
    let change = |rate| Change::Link(link, Direction::Forward, Box::new(rated(rate, 0)));
    // 8 ms a frame, then 4 ms, then 2 ms.
    engine.schedule(Instant::from_nanos(1_000_000), change(2_000_000)).expect("valid");
    engine.schedule(Instant::from_nanos(13_000_000), change(4_000_000)).expect("valid");
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [8, 12, 16, 18].map(|ms| ms * 1_000_000));
}

#[test]
fn a_link_without_a_limit_lets_the_queue_go_at_once() {
    let (mut engine, a, b, link) = pair(&rated(1_000_000, 0));
    let mut book = Book::default();
    for _ in 0..3 {
        offer(&mut engine, a, 0, mac(2), mac(1), 976);
    }
    offer_super(&mut engine, a, 0, 5_000, 1_000);
    let change = Change::Link(link, Direction::Forward, Box::default());
    engine.schedule(Instant::from_nanos(1_000_000), change).expect("valid");
    offer(&mut engine, a, 2_000_000, mac(2), mac(1), 976);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [8_000_000; 9]);
}

#[test]
fn a_change_comes_before_all_else_of_its_instant() {
    let (mut engine, a, b, link) = pair(&LinkSettings::default());
    let mut book = Book::default();
    offer(&mut engine, a, 5, mac(2), mac(1), 100);
    engine.schedule(Instant::from_nanos(5), Change::Down(link)).expect("known");
    engine.schedule(Instant::from_nanos(6), Change::Up(link)).expect("known");
    offer(&mut engine, a, 6, mac(2), mac(1), 100);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [6]);
    // A change scheduled in the past is made at once.
    engine.schedule(Instant::from_nanos(1), Change::Down(link)).expect("known");
    offer(&mut engine, a, 1, mac(2), mac(1), 100);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.dropped(DropReason::LinkDown), 2);
}

#[test]
fn what_is_not_a_frame_is_malformed_and_a_lone_port_leads_nowhere() {
    let (mut engine, a, _, _) = pair(&LinkSettings::default());
    let lone = engine.add_port("lone", false).expect("new");
    let mut book = Book::default();
    offer_octets(&mut engine, a, 0, &[0; 13]);
    offer_octets(&mut engine, lone, 0, &[0; 14]);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.dropped(DropReason::Malformed), 1);
    assert_eq!(book.dropped(DropReason::Nowhere), 1);
    assert_eq!(engine.ledger().port(a).dropped.of(DropReason::Malformed).octets, 13);
}

#[test]
fn a_carried_run_pipelines_over_switches_and_is_timed_again_behind_them() {
    // Behind it a timed link of 100 Mbit/s: no segment leaves before it has arrived.
    let fast = LinkSettings { overhead: 0, ..rated(100_000_000, 0) };
    let (mut engine, a, b) = behind_carried(&fast);
    let mut book = Book::default();
    // Segments of 1,000 octets: 800 us on the slow link, 80 us on the fast one.
    offer_super(&mut engine, a, 0, 5 * 946, 946);
    run_dry(&mut engine, &mut book);
    let wanted: Vec<u64> = (1..=5).map(|n| n * 800_000 + 80_000).collect();
    assert_eq!(book.times(b), wanted);
}

#[test]
fn a_faster_link_behind_a_carried_run_stays_free_for_others() {
    let mut engine = Engine::new(1);
    let ports = ["a", "b", "c"].map(|name| engine.add_port(name, false).expect("new"));
    let table = SwitchSettings::Switch { ageing_ns: 1 << 40, addresses: 8 };
    let switch = End::Switch(engine.add_switch("s", &table).expect("new"));
    for (port, rate) in ports.iter().zip([10_000_000, 100_000_000, 100_000_000]) {
        let settings = LinkSettings { segments: Segments::Carried, overhead: 0, ..rated(rate, 0) };
        engine.connect(&format!("{port:?}"), End::Port(*port), switch, &settings, &settings).expect("valid");
    }
    let mut book = Book::default();
    offer(&mut engine, ports[1], 0, mac(9), mac(2), 1_000);
    // 10 segments of 1,000 octets for port b: they reach the switch from 0.8 ms to 8 ms after 1 ms.
    offer_super(&mut engine, ports[0], 1_000_000, 10 * 946, 946);
    // One frame that reaches the switch at 3.08 ms.
    offer(&mut engine, ports[2], 3_000_000, mac(2), mac(3), 1_000);
    book.deliveries.clear();
    run_dry(&mut engine, &mut book);
    let times = book.times(ports[1]);
    assert_eq!(times[0], 3_000_000 + 160_000);
    assert_eq!(times[1..], [1_000_000 + 8_000_000 + 80_000; 10]);
}

#[test]
fn a_wire_of_which_nothing_is_said_takes_no_time_until_something_is() {
    let (mut engine, a, b, link) = pair(&LinkSettings::default());
    let mut book = Book::default();
    let slow = LinkSettings { delay_ns: 1_000, ..LinkSettings::default() };
    for (at, settings) in [(10, slow), (30, LinkSettings::default())] {
        let change = Change::Link(link, Direction::Forward, Box::new(settings));
        engine.schedule(Instant::from_nanos(at), change).expect("valid");
    }
    // The frame of 40 does not overtake that of 20, which is in flight.
    for at in [0, 20, 40, 2_000, 2_001] {
        offer(&mut engine, a, at, mac(2), mac(1), 100);
    }
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [0, 1_020, 1_020, 2_000, 2_001]);
    assert_eq!(engine.ledger().link(link, Direction::Forward).left.frames, 5);
}

#[test]
fn a_carried_run_crosses_a_wire_of_which_nothing_is_said_while_it_still_comes() {
    let (mut engine, a, b) = behind_carried(&LinkSettings::default());
    let mut book = Book::default();
    // Segments of 1,000 octets take 800 us each; an end node receives all with the last one.
    offer_super(&mut engine, a, 0, 5 * 946, 946);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [5 * 800_000; 5]);
}

#[test]
fn the_carrier_of_both_ports_follows_a_link_unless_it_is_kept() {
    let keep = LinkSettings { carrier: Carrier::Keep, ..LinkSettings::default() };
    let mut engine = Engine::new(1);
    let ports = ["a", "b", "c"].map(|name| engine.add_port(name, false).expect("new"));
    let switch = engine.add_switch("s", &SwitchSettings::Hub).expect("new");
    let ends = ports.map(End::Port);
    let plain = LinkSettings::default();
    // The receiver of the second direction is the port a, which keeps its carrier.
    let near = engine.connect("near", ends[0], ends[1], &plain, &keep).expect("both are there");
    let far = engine.connect("far", ends[2], End::Switch(switch), &plain, &plain).expect("both are there");
    let mut book = Book::default();
    for (at, change) in
        [(1, Change::Down(near)), (2, Change::Down(far)), (3, Change::Up(far)), (4, Change::Up(near))]
    {
        engine.schedule(Instant::from_nanos(at), change).expect("valid");
    }
    engine.advance(Instant::from_nanos(1), &mut book);
    assert_eq!(book.carriers, [(ports[1], false)]);
    engine.advance(Instant::from_nanos(9), &mut book);
    assert_eq!(book.carriers, [(ports[1], false), (ports[2], false), (ports[2], true), (ports[1], true)]);
}
