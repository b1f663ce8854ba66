//! Behaviour of the queue disciplines under load, as a table that is compared exactly.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times below 2^53 ns

mod common;

use std::fmt::Write;

use airloom_engine::settings::{Discipline, QueueSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Direction, DropReason};
use common::{Book, compare, internet_sum, offer_octets, run_dry};

/// An ECN-capable UDP packet over IPv4 of 1,000 octets in all.
fn packet(flow: u8) -> Vec<u8> {
    let mut octets = vec![0; 1000];
    octets[12..24].copy_from_slice(&[8, 0, 0x45, 1, 3, 0xda, 0, 0, 0, 0, 64, 17]);
    octets[26..36].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, flow]);
    let sum = !internet_sum(&octets[14..34]);
    octets[24..26].copy_from_slice(&sum.to_be_bytes());
    octets
}

/// Loads a link of 8 Mbit/s (1 ms a frame) with four Poisson flows for 20 s.
fn row(discipline: &Discipline, ecn: bool, load: u32) -> String {
    let queue =
        QueueSettings { packets: Some(100), discipline: discipline.clone(), ecn, ..QueueSettings::default() };
    let (mut engine, a, _, link) = common::millisecond_link(11, queue);
    let mut dice = airloom_engine::random::Stream::named(11, "load");
    let mut book = Book::default();
    let mut at = 0.0;
    let mut number = 0_u64;
    let mut entered = Vec::new();
    while at < 20e9 {
        let mut octets = packet((number % 4) as u8);
        octets[100..108].copy_from_slice(&number.to_be_bytes());
        entered.push(at as u64);
        offer_octets(&mut engine, a, at as u64, &octets);
        engine.advance(Instant::from_nanos(at as u64), &mut book);
        at += dice.exponential() * 1e6 * 100.0 / f64::from(load);
        number += 1;
    }
    run_dry(&mut engine, &mut book);
    let delays = book.deliveries.iter().map(|delivery| {
        let number = u64::from_be_bytes(delivery.octets[100..108].try_into().expect("eight"));
        delivery.at - entered[usize::try_from(number).expect("small")]
    });
    let mut delays: Vec<u64> = delays.collect();
    delays.sort_unstable();
    let at = |share: usize| delays[(delays.len() - 1) * share / 100] / 1_000;
    let account = engine.ledger().link(link, Direction::Forward);
    format!(
        "{load:>5} {:>7} {:>7} {:>6} {:>6} {:>7} {:>8} {:>8} {:>6}",
        account.entered.frames,
        account.left.frames,
        account.dropped.of(DropReason::QueueFull).frames,
        account.dropped.of(DropReason::EarlyDrop).frames,
        account.marked.frames,
        at(50),
        at(99),
        account.queue_highest.frames,
    )
}

#[test]
fn disciplines_under_load() {
    let times = (5_000_000, 100_000_000);
    let disciplines = [
        ("drop-tail", Discipline::DropTail),
        (
            "red",
            Discipline::Red {
                min_octets: 10_000,
                max_octets: 50_000,
                probability: 0.1,
                weight: 0.002,
                packet_octets: 500,
                marks_above: false,
            },
        ),
        ("codel", Discipline::CoDel { target_ns: times.0, interval_ns: times.1 }),
        (
            "fq-codel",
            Discipline::FqCoDel { target_ns: times.0, interval_ns: times.1, quantum: 1514, flows: 1024 },
        ),
    ];
    let mut text = String::from(
        "Four Poisson flows of 1000-octet frames for 20 s into a link of 8 Mbit/s, queue of 100 frames.\n\
         load in per cent, frames, delay in us.\n\n",
    );
    for (name, discipline) in &disciplines {
        for ecn in [false, true] {
            let marks = if ecn { " with marks" } else { "" };
            writeln!(text, "{name}{marks}").expect("memory");
            writeln!(text, " load entered    left   full  early  marked  delay50  delay99  queue")
                .expect("memory");
            for load in [50, 90, 100, 110, 150, 300] {
                writeln!(text, "{}", row(discipline, ecn, load)).expect("memory");
            }
            text.push('\n');
        }
    }
    compare("disciplines.txt", &text);
}
