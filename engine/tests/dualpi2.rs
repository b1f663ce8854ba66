//! `DualPI2` in a link: two queues, their scheduler, and what unresponsive load meets (RFC 9332).

mod common;

use airloom_engine::settings::{Discipline, QueueSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Direction, DropReason};
use common::{Book, check_ledger, internet_sum, millisecond_link, offer_octets, run_dry};

/// 1000 octets and no overhead at 8 Mbit/s: a frame takes 1 ms.
const MS: u64 = 1_000_000;
const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;

fn queue(classic: f64) -> QueueSettings {
    let discipline = Discipline::DualPi2 {
        target_ns: 15 * MS,
        update_ns: 15 * MS,
        alpha: 0.15,
        beta: 3.0,
        coupling: 2.0,
        step_ns: 800_000,
        ramp_ns: 400_000,
        classic,
    };
    QueueSettings { packets: Some(10_000), discipline, ..QueueSettings::default() }
}

/// A UDP packet over IPv4 of 1000 octets with its frame header.
fn packet(number: u64, ecn: u8) -> Vec<u8> {
    let mut octets = vec![0; 1000];
    octets[12..24].copy_from_slice(&[8, 0, 0x45, ecn, 3, 0xda, 0, 0, 0, 0, 64, 17]);
    octets[26..36].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, ecn]);
    let sum = !internet_sum(&octets[14..34]);
    octets[24..26].copy_from_slice(&sum.to_be_bytes());
    octets[100..108].copy_from_slice(&number.to_be_bytes());
    octets
}

fn sent_as(octets: &[u8]) -> u8 {
    octets[35]
}

fn is_marked(octets: &[u8]) -> bool {
    assert_eq!(internet_sum(&octets[14..34]), 0xffff, "the header checksum follows the mark");
    octets[15] & 3 == CE
}

#[test]
fn low_latency_packets_pass_those_of_the_classic_queue() {
    let (mut engine, a, _, _) = millisecond_link(2, queue(0.0));
    let mut book = Book::default();
    for number in 0..10 {
        offer_octets(&mut engine, a, 0, &packet(number, if number % 2 == 0 { NOT_ECT } else { ECT_0 }));
    }
    offer_octets(&mut engine, a, 0, &packet(10, ECT_1));
    offer_octets(&mut engine, a, 0, &packet(11, CE));
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    let order: Vec<u8> = book.deliveries.iter().map(|d| sent_as(&d.octets)).collect();
    // The first one found the wire idle.
    assert_eq!(order[..3], [NOT_ECT, ECT_1, CE]);
    assert_eq!(order.len(), 12);
}

#[test]
fn the_classic_queue_gets_its_share_while_both_wait() {
    let (mut engine, a, _, _) = millisecond_link(2, queue(0.125));
    let mut book = Book::default();
    for number in 0..100 {
        offer_octets(&mut engine, a, 0, &packet(number, NOT_ECT));
        offer_octets(&mut engine, a, 0, &packet(number, CE));
    }
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    let order: Vec<u8> = book.deliveries.iter().map(|d| sent_as(&d.octets)).collect();
    let classic = order[1..81].iter().filter(|one| **one == NOT_ECT).count();
    assert!(classic.abs_diff(10) <= 1, "{classic} of 80");
}

#[test]
fn a_step_marks_what_has_waited_longer_than_the_ramp() {
    let (mut engine, a, b, link) = millisecond_link(2, queue(0.0625));
    let mut book = Book::default();
    for number in 0..10 {
        offer_octets(&mut engine, a, 0, &packet(number, ECT_1));
    }
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b).len(), 10);
    let marked: Vec<bool> = book.deliveries.iter().map(|d| is_marked(&d.octets)).collect();
    // One packet of 1538 octets takes 1.538 ms here, so that the ramp is from 1.538 to 1.938 ms: those that
    // wait for 2 ms and more are marked, except for the first, which takes the counter to 1 and not above.
    assert_eq!(marked, [false, false, false, true, true, true, true, true, true, true]);
    let account = engine.ledger().link(link, Direction::Forward);
    assert_eq!(account.marked.frames, 7);
}

/// Delays in ms in the second half of `seconds` of packets at `load` times the rate.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // small
fn delays_at(ecn: u8, load: f64, seconds: u64) -> (Vec<f64>, Book) {
    let (mut engine, a, b, _) = millisecond_link(2, queue(0.0625));
    let mut book = Book::default();
    let count = (seconds as f64 * 1_000.0 * load) as u64;
    let sent: Vec<u64> = (0..count).map(|number| (number as f64 / load * MS as f64) as u64).collect();
    for (number, &at) in sent.iter().enumerate() {
        offer_octets(&mut engine, a, at, &packet(number as u64, ecn));
        engine.advance(Instant::from_nanos(at), &mut book);
    }
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    let delays = book.deliveries.iter().filter(|d| d.port == b).map(|d| {
        let number = u64::from_be_bytes(d.octets[100..108].try_into().expect("eight"));
        let began = sent[usize::try_from(number).expect("small")];
        (began, (d.at - began) as f64 / MS as f64)
    });
    let late = delays.filter(|(began, _)| *began > seconds * 500 * MS).map(|(_, delay)| delay).collect();
    (late, book)
}

#[test]
#[allow(clippy::cast_precision_loss)] // small
fn the_classic_queue_holds_its_target_and_drops_the_excess() {
    let (delays, book) = delays_at(NOT_ECT, 1.25, 60);
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    // 15 ms of queue and 1 ms on the wire.
    assert!((mean - 16.0).abs() < 4.0, "{mean} ms");
    // A fifth is too much: 15,000 of 75,000.
    let dropped = book.dropped(DropReason::EarlyDrop);
    assert!(dropped.abs_diff(15_000) < 1_000, "{dropped}");
    assert_eq!(book.dropped(DropReason::QueueFull), 0);
}

#[test]
fn load_that_does_not_answer_marks_is_dropped_in_the_end() {
    // Packets with ECT(0) are marked on the way to overload only: a third is more than 1 / k^2.
    for (ecn, least) in [(ECT_0, 10), (ECT_1, 500)] {
        let (_, book) = delays_at(ecn, 1.5, 60);
        let marked = book.deliveries.iter().filter(|d| is_marked(&d.octets)).count();
        assert!(marked > least, "{marked} of ECN {ecn}");
        // A third is too much: 30,000 of 90,000.
        let dropped = book.dropped(DropReason::EarlyDrop);
        assert!(dropped.abs_diff(30_000) < 3_000, "{dropped} of ECN {ecn}");
    }
}
