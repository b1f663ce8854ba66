//! Queue disciplines compared with the control laws in their papers.

mod common;

use airloom_engine::settings::{Class, Discipline, LinkSettings, Policer, QueueSettings, Rate};
use airloom_engine::time::Instant;
use airloom_engine::{Direction, DropReason, End, Engine, LinkId, PortId};
use common::{Book, check_ledger, internet_sum, millisecond_link, offer_octets, offer_super, run_dry};

/// 1000 octets and no overhead at 8 Mbit/s: a frame takes 1 ms.
const MS: u64 = 1_000_000;

fn link(queue: QueueSettings) -> (Engine, PortId, PortId, LinkId) {
    millisecond_link(2, queue)
}

fn managed(discipline: Discipline, ecn: bool) -> QueueSettings {
    QueueSettings { packets: Some(10_000), discipline, ecn, ..QueueSettings::default() }
}

/// A UDP packet over IPv4 of 1000 octets with its frame header.
fn packet(number: u64, flow: u8, ecn: u8) -> Vec<u8> {
    let mut octets = vec![0; 1000];
    octets[12..24].copy_from_slice(&[8, 0, 0x45, ecn, 3, 0xda, 0, 0, 0, 0, 64, 17]);
    octets[26..36].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, flow]);
    let sum = !internet_sum(&octets[14..34]);
    octets[24..26].copy_from_slice(&sum.to_be_bytes());
    octets[100..108].copy_from_slice(&number.to_be_bytes());
    octets
}

fn number(octets: &[u8]) -> u64 {
    u64::from_be_bytes(octets[100..108].try_into().expect("eight"))
}

fn is_marked(octets: &[u8]) -> bool {
    assert_eq!(internet_sum(&octets[14..34]), 0xffff, "the header checksum follows the mark");
    octets[15] & 3 == 3
}

#[test]
fn limits_count_packets_octets_or_time() {
    let limit = |queue: QueueSettings| {
        let (mut engine, a, b, link) = link(queue);
        let mut book = Book::default();
        for number in 0..100 {
            offer_octets(&mut engine, a, 0, &packet(number, 0, 0));
        }
        run_dry(&mut engine, &mut book);
        let highest = engine.ledger().link(link, Direction::Forward).queue_highest;
        assert_eq!(highest.octets, highest.frames * 1000);
        assert_eq!(book.dropped(DropReason::QueueFull) + book.times(b).len() as u64, 100);
        highest.frames
    };
    let base = QueueSettings::default();
    assert_eq!(limit(QueueSettings { packets: Some(7), ..base.clone() }), 7);
    assert_eq!(limit(QueueSettings { packets: Some(0), ..base.clone() }), 0);
    assert_eq!(limit(QueueSettings { octets: Some(4_999), ..base.clone() }), 4);
    assert_eq!(limit(QueueSettings { time_ns: Some(12 * MS), ..base.clone() }), 12);
    assert_eq!(limit(QueueSettings { packets: None, ..base }), 99);
}

#[test]
fn a_crowded_tail_queue_marks() {
    let (mut engine, a, b, link) =
        link(QueueSettings { packets: Some(10), ecn: true, ..QueueSettings::default() });
    let mut book = Book::default();
    for number in 0..12 {
        offer_octets(&mut engine, a, 0, &packet(number, 0, if number == 9 { 0 } else { 1 }));
    }
    run_dry(&mut engine, &mut book);
    let marked: Vec<u64> =
        book.deliveries.iter().filter(|d| is_marked(&d.octets)).map(|d| number(&d.octets)).collect();
    // One is sent at once, five fill half; number 9 cannot be marked, number 11 does not fit.
    assert_eq!(marked, [6, 7, 8, 10]);
    assert_eq!(book.times(b).len(), 11);
    assert_eq!(engine.ledger().link(link, Direction::Forward).marked.frames, 4);
}

#[test]
fn marks_of_single_segments_leave_the_others_alone() {
    let (mut engine, a, b, _) =
        link(QueueSettings { packets: Some(6), ecn: true, ..QueueSettings::default() });
    let mut book = Book::default();
    offer_super(&mut engine, a, 0, 5_000, 1_000);
    run_dry(&mut engine, &mut book);
    let marks: Vec<bool> = book.deliveries.iter().map(|d| is_marked(&d.octets)).collect();
    assert_eq!(marks, [false, false, false, false, true]);
    assert_eq!(book.times(b).len(), 5);
}

/// Loads the link with one frame each `gap` ns for `seconds`. Returns the frames that left, the
/// delay of each, and the times of drops.
fn load(queue: QueueSettings, gap: u64, seconds: u64, ecn: u8) -> (Book, Vec<u64>) {
    let (mut engine, a, _, _) = link(queue);
    let mut book = Book::default();
    let mut at = 0;
    let mut sent = 0;
    while at < seconds * 1_000 * MS {
        offer_octets(&mut engine, a, at, &packet(sent, 0, ecn));
        engine.advance(Instant::from_nanos(at), &mut book);
        sent += 1;
        at += gap;
    }
    let now = engine.now();
    engine.advance(now, &mut book);
    let delays = book.deliveries.iter().map(|d| d.at - number(&d.octets) * gap).collect();
    run_dry(&mut engine, &mut book);
    (book, delays)
}

const CODEL: Discipline = Discipline::CoDel { target_ns: 5 * MS, interval_ns: 100 * MS };

#[test]
fn codel_waits_an_interval_and_then_drops_by_the_square_root() {
    let (book, _) = load(managed(CODEL, false), MS * 4 / 5, 3, 0);
    // An overload of a quarter: the n-th frame waits n/5 ms, so the target of 5 ms is reached by
    // the frame that leaves about 30 ms after the start, and the first drop is an interval later.
    let drops: Vec<u64> = book.drops.iter().filter(|d| d.at < 3_000 * MS).map(|d| d.at).collect();
    assert!(book.drops.iter().all(|d| d.why == DropReason::EarlyDrop));
    assert!((125 * MS..140 * MS).contains(&drops[0]), "first drop at {}", drops[0]);
    // Each further drop is due interval / sqrt(count) after the previous due time, and happens when
    // the next frame leaves, at most 1 ms later.
    let mut due = drops[0] as f64;
    for (index, &drop) in drops.iter().enumerate().skip(1) {
        due += 100.0 * MS as f64 / (index as f64).sqrt();
        let late = drop as f64 - due;
        assert!((-1.0..=1.0 * MS as f64 + 1.0).contains(&late), "drop {index} at {drop}, due {due}");
    }
    assert!(drops.len() > 100);
}

#[test]
fn codel_leaves_a_good_queue_alone() {
    // A burst of 20 frames every 40 ms causes delay for half of the time but never for an interval.
    let (mut engine, a, b, _) = link(managed(CODEL, false));
    let mut book = Book::default();
    for burst in 0..50 {
        for frame in 0..20 {
            offer_octets(&mut engine, a, burst * 40 * MS, &packet(frame, 0, 0));
        }
    }
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b).len(), 1000);
}

#[test]
fn codel_marks_instead_of_dropping() {
    let (book, _) = load(managed(CODEL, true), MS * 4 / 5, 3, 2);
    assert!(book.drops.is_empty());
    let marks: Vec<u64> = book.deliveries.iter().filter(|d| is_marked(&d.octets)).map(|d| d.at).collect();
    // At the times at which it would drop; a marked frame arrives 1 ms after the decision.
    assert!((125 * MS..141 * MS).contains(&marks[0]), "first mark at {}", marks[0]);
    let gaps: Vec<u64> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] >= 99 * MS && gaps[0] <= 101 * MS);
    assert!(gaps[3] >= 49 * MS && gaps[3] <= 51 * MS);
}

#[test]
fn red_holds_the_mean_queue_between_its_thresholds() {
    // With an overload of a quarter one frame in five must be dropped, which RED reaches with p /
    // (1 - count * p) uniform on 1..1/p: 2 p = 0.2 at a mean queue of 10,000 + 20,000 * p / 0.2.
    let red = Discipline::Red {
        min_octets: 10_000,
        max_octets: 30_000,
        probability: 0.2,
        weight: 0.002,
        packet_octets: 500,
        marks_above: false,
    };
    let (book, delays) = load(managed(red, false), MS * 4 / 5, 60, 0);
    assert!(book.drops.iter().all(|d| d.why == DropReason::EarlyDrop));
    let late = &delays[delays.len() / 2..];
    let mean = late.iter().sum::<u64>() / late.len() as u64;
    // Queued behind about 20 frames, plus 1 ms for the frame itself.
    assert!((17 * MS..25 * MS).contains(&mean), "mean delay {mean}");
}

const FLOWS: Discipline =
    Discipline::FqCoDel { target_ns: 5 * MS, interval_ns: 100 * MS, quantum: 1514, flows: 1024 };

#[test]
fn flow_queues_share_the_wire_and_let_the_sparse_go_first() {
    // Flow 1 offers twice the rate, flow 2 the rate, flow 3 sends a frame every 50 ms.
    let (mut engine, a, _, _) = link(managed(FLOWS, false));
    let mut book = Book::default();
    let (mut sent, end) = (0, 4_000);
    for half in 0..2 * end {
        let at = half * MS / 2;
        offer_octets(&mut engine, a, at, &packet(at, 1, 0));
        sent += 1;
        if half % 2 == 0 {
            offer_octets(&mut engine, a, at, &packet(at, 2, 0));
        }
        if half % 100 == 0 {
            offer_octets(&mut engine, a, at, &packet(at, 3, 0));
        }
        engine.advance(Instant::from_nanos(at), &mut book);
    }
    let of = |flow: u8| book.deliveries.iter().filter(|d| d.octets[35] == flow).collect::<Vec<_>>();
    let (greedy, modest, sparse) = (of(1), of(2), of(3));
    let share = greedy.len() as f64 / modest.len() as f64;
    assert!((0.97..1.03).contains(&share), "{} and {} of {sent}", greedy.len(), modest.len());
    assert_eq!(sparse.len(), 80);
    // The sparse flow waits only for the frame on the wire, except at the start, when all flows are
    // new.
    let delays: Vec<u64> = sparse.iter().map(|d| d.at - number(&d.octets)).collect();
    assert!(delays[1..].iter().all(|&delay| delay <= 2 * MS), "{delays:?}");
    run_dry(&mut engine, &mut book);
}

#[test]
fn the_fattest_flow_pays_when_flow_queues_are_full() {
    let queue = QueueSettings { packets: Some(100), discipline: FLOWS, ..QueueSettings::default() };
    let (mut engine, a, _, _) = link(queue);
    let mut book = Book::default();
    for index in 0..90 {
        offer_octets(&mut engine, a, 0, &packet(index, 1, 0));
    }
    for index in 0..20 {
        offer_octets(&mut engine, a, 0, &packet(index, 2, 0));
    }
    run_dry(&mut engine, &mut book);
    let of =
        |flow: u8| book.deliveries.iter().filter(move |d| d.octets[35] == flow).map(|d| number(&d.octets));
    assert_eq!(of(2).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    // 89 frames are queued behind the one on the wire when the twelfth of the others exceeds the
    // limit: half are dropped, from the head.
    assert_eq!(book.dropped(DropReason::QueueFull), 45);
    assert_eq!(of(1).collect::<Vec<_>>(), [0].into_iter().chain(46..90).collect::<Vec<_>>());
}

#[test]
fn a_step_marks_by_the_present_length_and_drops_nothing_below_the_limit() {
    for threshold in [
        Discipline::Step { packets: Some(5), octets: None, time_ns: None },
        Discipline::Step { packets: None, octets: Some(5_999), time_ns: None },
        Discipline::Step { packets: None, octets: None, time_ns: Some(5 * MS) },
    ] {
        let (mut engine, a, b, _) = link(managed(threshold.clone(), false));
        let mut book = Book::default();
        for number in 0..12 {
            offer_octets(&mut engine, a, 0, &packet(number, 0, if number == 9 { 0 } else { 1 }));
        }
        // At 8 ms three are left in the queue.
        offer_octets(&mut engine, a, 8 * MS, &packet(12, 0, 1));
        run_dry(&mut engine, &mut book);
        let marked: Vec<u64> =
            book.deliveries.iter().filter(|d| is_marked(&d.octets)).map(|d| number(&d.octets)).collect();
        assert_eq!(marked, [6, 7, 8, 10, 11], "{threshold:?}");
        assert_eq!(book.times(b).len(), 13);
    }
}

/// Delays in ms in the second half of `seconds` of packets at `load` times the rate, and their number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // small
fn delays_at(discipline: Discipline, ecn: bool, load: f64, seconds: u64) -> (Vec<f64>, Book) {
    let (mut engine, a, b, _) = link(managed(discipline, ecn));
    let mut book = Book::default();
    let mut sent = Vec::new();
    let mut at = 0.0;
    while at < (seconds * 1_000) as f64 {
        sent.push((at * MS as f64) as u64);
        at += 1.0 / load;
    }
    for (number, &at) in sent.iter().enumerate() {
        offer_octets(&mut engine, a, at, &packet(number as u64, 0, u8::from(ecn)));
        engine.advance(Instant::from_nanos(at), &mut book);
    }
    run_dry(&mut engine, &mut book);
    let delays = book.deliveries.iter().filter(|d| d.port == b).map(|d| {
        let began = sent[usize::try_from(number(&d.octets)).expect("small")];
        (began, (d.at - began) as f64 / MS as f64)
    });
    let late = delays.filter(|(began, _)| *began > seconds * 500 * MS).map(|(_, delay)| delay).collect();
    (late, book)
}

const PIE: Discipline =
    Discipline::Pie { target_ns: 15 * MS, update_ns: 15 * MS, burst_ns: 150 * MS, alpha: 0.125, beta: 1.25 };

#[test]
#[allow(clippy::cast_precision_loss)] // small
fn pie_holds_the_delay_at_its_target_and_drops_the_excess() {
    let (delays, book) = delays_at(PIE, false, 1.25, 120);
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    // 15 ms of queue and 1 ms on the wire.
    assert!((mean - 16.0).abs() < 4.0, "{mean} ms");
    // A fifth is too much: 30,000 of 150,000 in 120 s.
    let dropped = book.dropped(DropReason::EarlyDrop);
    assert!(dropped.abs_diff(30_000) < 1_500, "{dropped}");
    assert_eq!(book.dropped(DropReason::QueueFull), 0);
}

#[test]
fn pie_marks_up_to_a_tenth_and_drops_above() {
    let (_, book) = delays_at(PIE, true, 1.05, 60);
    let marked = book.deliveries.iter().filter(|d| is_marked(&d.octets)).count();
    assert!(marked > 500, "{marked}");
    // Flows that do not answer marks: the probability passes a tenth, and drops begin.
    assert!(book.dropped(DropReason::EarlyDrop) > 500);
}

#[test]
fn pie_lets_a_short_burst_pass() {
    let (mut engine, a, b, _) = link(managed(PIE, false));
    let mut book = Book::default();
    for number in 0..100 {
        offer_octets(&mut engine, a, 0, &packet(number, 0, 0));
    }
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b).len(), 100);
}

fn class(dscp: &[u8], quantum: u32, packets: Option<u32>) -> Class {
    Class { dscp: dscp.to_vec(), quantum, packets }
}

/// Sends of each of three classes (DSCP 46, 10, 0) as many packets at once; returns the classes in the
/// order of their arrival.
fn order_of(discipline: Discipline, each: u64) -> Vec<u8> {
    let (mut engine, a, _, _) = link(managed(discipline, false));
    let mut book = Book::default();
    for number in 0..each {
        for dscp in [0u8, 10, 46] {
            offer_octets(&mut engine, a, 0, &packet(number, dscp, dscp << 2));
        }
    }
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    book.deliveries.iter().map(|d| d.octets[15] >> 2).collect()
}

#[test]
fn strict_priority_serves_a_class_when_those_before_it_are_empty() {
    let classes = vec![class(&[46], 1514, None), class(&[10, 12], 1514, None), class(&[], 1514, None)];
    let order = order_of(Discipline::Priority { classes }, 10);
    // The first packet found the wire idle.
    assert_eq!(order[0], 0);
    assert_eq!(order[1..11], [46; 10]);
    assert_eq!(order[11..21], [10; 10]);
    assert_eq!(order[21..], [0; 9]);
}

#[test]
fn deficit_round_robin_shares_in_the_ratio_of_the_quanta() {
    let classes = vec![class(&[46], 4_000, None), class(&[10], 2_000, None), class(&[], 500, None)];
    let order = order_of(Discipline::Drr { classes }, 400);
    // Until the first class is empty: 8 : 4 : 1 of 1000 octets.
    let share = |dscp| order[..650].iter().filter(|one| **one == dscp).count();
    assert!(share(46).abs_diff(400) <= 4, "{}", share(46));
    assert!(share(10).abs_diff(200) <= 4, "{}", share(10));
    assert!(share(0).abs_diff(50) <= 2, "{}", share(0));
}

#[test]
fn a_class_has_its_own_limit() {
    let classes = vec![class(&[46], 1514, Some(3)), class(&[], 1514, None)];
    let order = order_of(Discipline::Priority { classes }, 10);
    assert_eq!(order.iter().filter(|one| **one == 46).count(), 3);
    assert_eq!(order.len(), 3 + 20, "all others are of the last class");
}

/// Arrival times in ms of packets of 1000 octets sent at once over a changed link.
#[allow(clippy::cast_precision_loss)] // small
fn times_over(change: impl FnOnce(&mut LinkSettings), packets: u64) -> (Vec<f64>, Book) {
    let mut settings = LinkSettings { overhead: 0, ..LinkSettings::default() };
    change(&mut settings);
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    engine.connect("ab", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
    let mut book = Book::default();
    for number in 0..packets {
        offer_octets(&mut engine, a, 0, &packet(number, 0, 0));
    }
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    (book.times(b).iter().map(|at| *at as f64 / MS as f64).collect(), book)
}

#[test]
fn a_token_bucket_sends_its_burst_at_the_peak_and_then_its_rate() {
    let bucket = |peak| Rate::TokenBucket {
        bits_per_second: 8_000_000,
        burst_octets: 4_000,
        peak_bits_per_second: peak,
    };
    let (times, _) = times_over(|settings| settings.rate = bucket(None), 8);
    assert_eq!(times, [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    // At 80 Mbit/s a packet takes 0.1 ms; meanwhile tokens for a tenth of a packet come.
    let (times, _) = times_over(|settings| settings.rate = bucket(Some(80_000_000)), 7);
    assert_eq!(times, [0.1, 0.2, 0.3, 0.4, 1.1, 2.1, 3.1]);
}

#[test]
fn a_policer_drops_what_is_beyond_its_burst_and_delays_nothing() {
    let policer = Policer { bits_per_second: 8_000_000, burst_octets: 4_500 };
    let (times, book) = times_over(|settings| settings.policer = Some(policer.clone()), 10);
    assert_eq!(times, [0.0; 4]);
    assert_eq!(book.dropped(DropReason::Policed), 6);
    let rated = |settings: &mut LinkSettings| {
        settings.policer = Some(policer);
        settings.rate = Rate::BitsPerSecond(8_000_000);
    };
    assert_eq!(times_over(rated, 10).0, [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_policer_judges_each_segment_of_a_super_frame() {
    let policer = Policer { bits_per_second: 8_000_000, burst_octets: 3 * 1_514 + 100 };
    let settings = LinkSettings { policer: Some(policer), ..LinkSettings::default() };
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    engine.connect("ab", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
    let mut book = Book::default();
    // Five segments of 1514 octets and one of 74: the last one fits again.
    offer_super(&mut engine, a, 0, 5 * 1_460 + 20, 1_460);
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    assert_eq!(book.times(b).len(), 4);
    assert_eq!(book.dropped(DropReason::Policed), 2);
}
