//! Coalesced hand-over: segments that are handed over together keep their own times.

mod chain;
mod common;

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::settings::{Discipline, LinkSettings, Rate};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Direction, Egress, End, Engine, Gathers, PortId};
use chain::{Hop, Member, Middle, PLAIN, Send, chain, chain_on, offer};
use common::{Book, check_ledger, mac, offer_super_that_came, run_dry};
use proptest::prelude::*;

/// Most times the span for which segments gather on a wire without load that they gather on a busy
/// one, and there on a busy host.
const MOST_LOAD: (u64, u64) = (5, 10);

/// When the host is busy, step by step.
fn host_busy() -> impl Strategy<Value = Vec<bool>> {
    prop_oneof![Just(vec![false]), Just(vec![true]), prop::collection::vec(any::<bool>(), 2..50)]
}

fn middle() -> impl Strategy<Value = Middle> {
    // Seldom one that drops frames: most should reach the end.
    let member = || {
        prop_oneof![
            4 => Just(Member::Native(10)),
            4 => Just(Member::Native(20)),
            1 => Just(Member::Tagged),
            1 => Just(Member::Access),
        ]
    };
    prop_oneof![
        2 => Just(Middle::Nothing),
        1 => Just(Middle::Hub),
        1 => Just(Middle::Switch(None)),
        2 => (member(), member()).prop_map(|(near, far)| Middle::Switch(Some([near, far]))),
    ]
}

fn hop() -> impl Strategy<Value = Hop> {
    let rate = prop::sample::select(vec![10_000_000, 100_000_000, 333_333_333, 1_000_000_000]);
    let delay = prop::sample::select(vec![0, 1, 5_000, 200_000]);
    let loss = prop::sample::select(vec![0.0, 0.0, 0.05]);
    let jitter = prop::sample::select(vec![0, 0, 50_000]);
    (rate, delay, 2..60_u32, any::<bool>(), middle(), loss, jitter).prop_map(
        |(rate, delay, packets, ecn, middle, loss, jitter)| Hop {
            rate,
            delay,
            packets,
            ecn,
            middle,
            loss,
            jitter,
            ..PLAIN
        },
    )
}

fn managed() -> impl Strategy<Value = Discipline> {
    let (target_ns, interval_ns) = (500_000, 2_000_000);
    let red = Discipline::Red {
        min_octets: 5_000,
        max_octets: 40_000,
        probability: 0.1,
        weight: 0.02,
        packet_octets: 500,
        marks_above: false,
    };
    prop::sample::select(vec![
        red,
        Discipline::CoDel { target_ns, interval_ns },
        Discipline::FqCoDel { target_ns, interval_ns, quantum: 1514, flows: 64 },
    ])
}

fn send() -> impl Strategy<Value = Send> {
    let gap = prop_oneof![0..5_000_u64, 0..400_000_u64];
    let vlan = prop::sample::select(vec![None, None, Some(10), Some(20)]);
    (gap, any::<bool>(), 1..60_000_usize, 500..1_449_u16, vlan, any::<bool>())
        .prop_map(|(gap, back, payload, size, vlan, udp)| Send { gap, back, payload, size, vlan, udp })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn each_segment_keeps_its_time_over_a_chain(
        hops in prop::collection::vec(hop(), 1..6),
        sends in prop::collection::vec(send(), 1..30),
        coalesce in 1_000..500_000_u64,
        host_busy in host_busy(),
    ) {
        let alone = chain(&hops, &sends, 0);
        let gathered = chain_on(&host_busy, &hops, &sends, coalesce);
        prop_assert_eq!(&alone.drops, &gathered.drops);
        prop_assert_eq!(&alone.received, &gathered.received);
        prop_assert_eq!(&alone.ledger, &gathered.ledger);
        prop_assert!(alone.together <= 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(50) })]

    #[test]
    fn a_managed_queue_changes_times_only_by_what_is_counted(
        hops in prop::collection::vec((hop(), managed()), 1..4),
        sends in prop::collection::vec(send(), 1..20),
        coalesce in 1_000..500_000_u64,
        host_busy in host_busy(),
    ) {
        let hops: Vec<Hop> = hops.into_iter().map(|(hop, discipline)| Hop { discipline, ..hop }).collect();
        let alone = chain(&hops, &sends, 0);
        let gathered = chain_on(&host_busy, &hops, &sends, coalesce);
        let most = if host_busy.contains(&true) { MOST_LOAD.1 } else { MOST_LOAD.0 };
        prop_assert_eq!(alone.late, (0, 0));
        prop_assert!(gathered.late.1 <= most * coalesce, "{} ns late", gathered.late.1);
        if gathered.late.0 == 0 {
            prop_assert_eq!(&alone.drops, &gathered.drops);
            prop_assert_eq!(&alone.received, &gathered.received);
        }
    }

    #[test]
    fn a_busy_chain_gathers_for_longer_and_keeps_all_times(
        hops in prop::collection::vec(prop::sample::select(vec![Middle::Nothing, Middle::Hub]), 2..6),
        cross in prop::collection::vec(send(), 1..10),
        coalesce in 20_000..300_000_u64,
        host_busy in host_busy(),
    ) {
        let hops: Vec<Hop> = hops.into_iter().map(|middle| Hop { middle, packets: 2_000, ..PLAIN }).collect();
        let bulk = Send { gap: 300_000, back: false, payload: 60_000, size: 1_448, vlan: None, udp: false };
        let sends: Vec<Send> = std::iter::repeat_n(bulk, 30).chain(cross).collect();
        let alone = chain(&hops, &sends, 0);
        let gathered = chain_on(&host_busy, &hops, &sends, coalesce);
        prop_assert_eq!(&alone.received, &gathered.received);
        prop_assert_eq!(&alone.ledger, &gathered.ledger);
        // A segment of 1502 octets and 24 of overhead takes 12208 ns.
        let plain = coalesce / 12_208 + 1;
        prop_assert!(u64::from(gathered.together) > plain.min(40), "{} together", gathered.together);
    }
}

#[test]
fn segments_at_a_gigabit_are_handed_over_together() {
    let hops = vec![PLAIN; 16];
    let sends = [Send { gap: 0, back: false, payload: 60_000, size: 1_448, vlan: None, udp: false }];
    let outcome = chain(&hops, &sends, 100_000);
    assert_eq!(outcome.together, 9, "100 us are eight intervals of 12 us");
    let alone = chain(&hops, &sends, 0);
    assert_eq!(outcome.received, alone.received);
}

#[test]
fn a_busy_host_hands_over_more_segments_at_once() {
    let hops = vec![Hop { rate: 100_000_000, ..PLAIN }; 4];
    // 12 segments on each wire for 1.46 ms of 4.5: a third of its rate.
    let bulk = Send { gap: 4_500_000, back: false, payload: 12 * 1_448, size: 1_448, vlan: None, udp: false };
    let sends = vec![bulk; 30];
    let [calm, busy] = [false, true].map(|busy| chain_on(&[busy], &hops, &sends, 200_000));
    assert_eq!(calm.together, 2, "200 us hold a second segment of 122 us");
    assert_eq!(busy.together, 12, "2 ms hold all");
    assert_eq!(busy.received, calm.received);
    assert_eq!(busy.ledger, calm.ledger);
}

#[test]
fn datagrams_are_handed_over_together() {
    let sends = [Send { gap: 0, back: false, payload: 60_000, size: 1_448, vlan: None, udp: true }];
    let (outcome, alone) = (chain(&[PLAIN; 4], &sends, 100_000), chain(&[PLAIN; 4], &sends, 0));
    assert_eq!((outcome.together, alone.together), (9, 1), "100 us are eight intervals of 12 us");
    assert_eq!(outcome.received, alone.received);
    assert_eq!(outcome.received.len(), 42);
}

#[test]
fn tagged_segments_are_handed_over_together_behind_a_trunk() {
    let trunk = Middle::Switch(Some([Member::Tagged, Member::Native(20)]));
    let hops = vec![Hop { middle: trunk, ..PLAIN }; 4];
    let sends = [Send { gap: 0, back: false, payload: 60_000, size: 1_448, vlan: Some(10), udp: false }];
    let (outcome, alone) = (chain(&hops, &sends, 100_000), chain(&hops, &sends, 0));
    assert!(outcome.together >= 8, "{} together", outcome.together);
    assert_eq!(outcome.received, alone.received);
    assert_eq!(outcome.received.len(), 42);
    let tag = |octets: &[u8]| octets[12..16] == [0x81, 0x00, 0, 10];
    assert!(outcome.received.iter().all(|(_, _, octets)| tag(octets)));
}

#[test]
fn a_segment_that_is_known_after_its_arrival_keeps_its_time() {
    // The queue of the second link drops the segments around it, so it is handed over alone.
    let hop = |rate, packets| Hop { rate, packets, ..PLAIN };
    let hops = [hop(1_000_000_000, 39), hop(333_333_333, 2), hop(10_000_000, 2)];
    let sends = [Send { gap: 0, back: false, payload: 16_639, size: 500, vlan: None, udp: false }];
    let (alone, gathered) = (chain(&hops, &sends, 0), chain(&hops, &sends, 41_616));
    assert!(gathered.together > 1);
    assert_eq!(gathered.drops, alone.drops);
    assert_eq!(gathered.received, alone.received);
}

#[test]
fn what_entered_meanwhile_goes_first_and_the_error_is_counted() {
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", true).expect("new");
    let b = engine.add_port("b", true).expect("new");
    let settings = LinkSettings { rate: Rate::BitsPerSecond(1_000_000_000), ..LinkSettings::default() };
    let link = engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("fits");
    let mut book = Book::default();
    common::offer(&mut engine, a, 50_000, mac(2), mac(1), 1_000);
    engine.advance(Instant::from_nanos(50_000), &mut book);
    // The segments came at 40 and 70 us.
    offer_super_that_came(&mut engine, a, 10_000..70_000, 2_000, 1_000);
    engine.advance(Instant::from_nanos(70_000), &mut book);
    run_dry(&mut engine, &mut book);
    // 1000 and 24 octets take 8192 ns, 1054 and 24 take 8624.
    assert_eq!(book.times(b), [58_192, 58_192 + 8_624, 70_000 + 8_624]);
    let account = engine.ledger().link(link, Direction::Forward);
    assert_eq!((account.late.frames, account.late_most.nanos()), (1, 10_000));
    check_ledger(&mut engine);
}

/// Two nodes, and when the engine hands over what reaches them.
#[derive(Default)]
struct Handed {
    now: u64,
    /// When each frame was due and when it was handed over, and its number of segments.
    frames: Vec<(u64, u64, u16)>,
}

impl Egress for Handed {
    fn deliver(&mut self, _: PortId, at: Instant, frame: &Frame, _: &Pool) -> Delivery {
        self.frames.push((at.nanos(), self.now, frame.count));
        Delivery::Taken
    }
}

#[test]
fn a_port_that_takes_no_datagrams_together_gets_each_when_it_arrives() {
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    engine.let_gather(b, Gathers { tcp: true, udp: false });
    let settings = LinkSettings { rate: Rate::BitsPerSecond(1_000_000_000), ..LinkSettings::default() };
    engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("fits");
    let sent = Send { gap: 0, back: false, payload: 10_000, size: 1_000, vlan: None, udp: true };
    offer(&mut engine, 0, &sent.onward(a, 0));
    let mut nodes = Handed::default();
    while let Some(next) = engine.next_at() {
        nodes.now = next.nanos();
        engine.advance(next, &mut nodes);
    }
    // 1042 octets and 24 of overhead take 8528 ns.
    let expected: Vec<_> = (1..=10).map(|number| (number * 8_528, number * 8_528, 1)).collect();
    assert_eq!(nodes.frames, expected);
}
