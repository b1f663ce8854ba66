//! CAKE in a link: hosts, tins, sparse flows, marks, and drops beside those of `CoDel`.
#![allow(clippy::cast_precision_loss)] // counts are small

mod common;

use airloom_engine::settings::{CakeIsolation, CakeTins, Discipline, QueueSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Direction, DropReason};
use common::{Book, check_ledger, internet_sum, millisecond_link, offer_octets, run_dry};

/// 1000 octets and no overhead at 8 Mbit/s: a frame takes 1 ms.
const MS: u64 = 1_000_000;

fn queue(isolation: CakeIsolation, tins: CakeTins, packets: u32) -> QueueSettings {
    let discipline = Discipline::Cake { target_ns: 5 * MS, interval_ns: 100 * MS, isolation, tins };
    QueueSettings { packets: Some(packets), discipline, ..QueueSettings::default() }
}

/// Source, destination, port, and traffic class of a flow.
type Flow = (u8, u8, u8, u8);

/// A UDP packet over IPv4 of 1000 octets with its frame header, offered at `at`.
fn packet(at: u64, (source, destination, port, class): Flow) -> Vec<u8> {
    let mut octets = vec![0; 1000];
    octets[12..24].copy_from_slice(&[8, 0, 0x45, class, 3, 0xda, 0, 0, 0, 0, 64, 17]);
    octets[26..36].copy_from_slice(&[10, 0, 0, source, 10, 0, 1, destination, 0, port]);
    let sum = !internet_sum(&octets[14..34]);
    octets[24..26].copy_from_slice(&sum.to_be_bytes());
    octets[100..108].copy_from_slice(&at.to_be_bytes());
    octets
}

fn delay(at: u64, octets: &[u8]) -> u64 {
    at - u64::from_be_bytes(octets[100..108].try_into().expect("eight"))
}

/// Offers a frame of each flow once in its `gap` for `length` ns; returns what happened until then.
fn load(queue: QueueSettings, flows: &[(Flow, u64)], length: u64) -> Book {
    let (mut engine, a, _, _) = millisecond_link(2, queue);
    let mut book = Book::default();
    let mut offers: Vec<(u64, Flow)> = flows
        .iter()
        .flat_map(|&(flow, gap)| (0..length / gap).map(move |number| (number * gap, flow)))
        .collect();
    offers.sort_by_key(|&(at, _)| at);
    for (at, flow) in offers {
        engine.advance(Instant::from_nanos(at), &mut book);
        offer_octets(&mut engine, a, at, &packet(at, flow));
    }
    engine.advance(Instant::from_nanos(length), &mut book);
    check_ledger(&mut engine);
    let mut rest = Book::default();
    run_dry(&mut engine, &mut rest);
    check_ledger(&mut engine);
    book
}

/// The share of the deliveries with an octet of this value at this place.
fn share(book: &Book, place: usize, value: u8) -> f64 {
    let those = book.deliveries.iter().filter(|delivery| delivery.octets[place] == value).count();
    those as f64 / book.deliveries.len() as f64
}

#[test]
fn hosts_share_alike_and_then_their_flows() {
    let one: Vec<(Flow, u64)> = (1..=8).map(|port| ((1, port, port, 0), MS)).collect();
    let other: Vec<(Flow, u64)> = (1..=8).map(|port| ((port, 1, port, 0), MS)).collect();
    let with = |flows: &[(Flow, u64)]| [flows, &[((9, 9, 9, 0), MS)]].concat();
    // The ninth flow is alone at its hosts. Eight have one source, or one destination.
    for (isolation, of_one_source, of_one_destination) in [
        (CakeIsolation::Flows, 1.0 / 9.0, 1.0 / 9.0),
        (CakeIsolation::DualSrchost, 0.5, 1.0 / 9.0),
        (CakeIsolation::DualDsthost, 1.0 / 9.0, 0.5),
        (CakeIsolation::TripleIsolate, 0.5, 0.5),
    ] {
        for (flows, wanted) in [(&one, of_one_source), (&other, of_one_destination)] {
            let book = load(queue(isolation, CakeTins::Besteffort, 300), &with(flows), 3_000 * MS);
            let ninth = share(&book, 35, 9);
            assert!((ninth - wanted).abs() < 0.01, "{isolation:?}: {ninth} instead of {wanted}");
            for port in 1..=8 {
                let found = share(&book, 35, port);
                assert!((found - (1.0 - ninth) / 8.0).abs() < 0.01, "{isolation:?}: {found} of {port}");
            }
        }
    }
}

const BEST_EFFORT: u8 = 0;
const BULK: u8 = 8 << 2;
const VIDEO: u8 = 34 << 2;
const VOICE: u8 = 46 << 2;

fn shares_of_classes(tins: CakeTins, gaps: &[(u8, u64)]) -> Vec<f64> {
    let flows: Vec<(Flow, u64)> = gaps.iter().map(|&(class, gap)| ((1, 1, class, class), gap)).collect();
    let book = load(queue(CakeIsolation::TripleIsolate, tins, 300), &flows, 4_000 * MS);
    gaps.iter().map(|&(class, _)| share(&book, 15, class)).collect()
}

#[test]
fn tins_have_priority_up_to_their_thresholds() {
    let all = [(BEST_EFFORT, MS), (BULK, MS), (VIDEO, MS), (VOICE, MS)];
    for (tins, gaps, wanted) in [
        (CakeTins::Diffserv4, &all[..], &[0.1875, 0.0625, 0.5, 0.25][..]),
        (CakeTins::Diffserv3, &[all[0], all[1], all[3]][..], &[0.6875, 0.0625, 0.25][..]),
        (CakeTins::Besteffort, &all[..], &[0.25; 4][..]),
        // Beyond its threshold a tin has what the others leave.
        (CakeTins::Diffserv4, &[(BEST_EFFORT, 10 * MS), all[3]][..], &[0.1, 0.9][..]),
        (CakeTins::Diffserv4, &[all[1]][..], &[1.0][..]),
    ] {
        let found = shares_of_classes(tins, gaps);
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 0.01, "{tins:?}: {found} instead of {wanted}");
        }
    }
}

#[test]
fn a_sparse_flow_waits_for_the_frame_on_the_wire_only() {
    let flows = [((1, 1, 1, 0), MS / 2), ((1, 2, 2, 0), MS), ((2, 3, 3, 0), 50 * MS)];
    let settings = queue(CakeIsolation::TripleIsolate, CakeTins::Diffserv3, 1_000);
    let book = load(settings, &flows, 4_000 * MS);
    let sparse: Vec<u64> = book
        .deliveries
        .iter()
        .filter(|delivery| delivery.octets[35] == 3)
        .map(|delivery| delay(delivery.at, &delivery.octets))
        .collect();
    assert!(sparse.len() >= 79, "{}", sparse.len());
    // At the start all flows are new.
    assert!(sparse[1..].iter().all(|&delay| delay <= 2 * MS), "{sparse:?}");
}

#[test]
fn one_flow_loses_as_many_packets_as_with_codel() {
    let drops = |discipline: Discipline| {
        let settings = QueueSettings { packets: Some(10_000), discipline, ..QueueSettings::default() };
        let book = load(settings, &[((1, 1, 1, 0), MS * 4 / 5)], 5_000 * MS);
        assert_eq!(book.dropped(DropReason::QueueFull), 0);
        book.dropped(DropReason::EarlyDrop)
    };
    let codel = drops(Discipline::CoDel { target_ns: 5 * MS, interval_ns: 100 * MS });
    let cake = drops(queue(CakeIsolation::Flows, CakeTins::Besteffort, 10_000).discipline);
    assert!(codel > 100);
    assert!(cake.abs_diff(codel) <= codel / 20, "{cake} beside {codel}");
}

#[test]
fn packets_that_can_be_marked_are_not_dropped() {
    let (mut engine, a, _, link) =
        millisecond_link(2, queue(CakeIsolation::TripleIsolate, CakeTins::Diffserv3, 10_000));
    let mut book = Book::default();
    for number in 0..3_000 {
        let at = number * MS * 4 / 5;
        engine.advance(Instant::from_nanos(at), &mut book);
        offer_octets(&mut engine, a, at, &packet(at, (1, 1, 1, 2)));
    }
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    let marked = book.deliveries.iter().filter(|delivery| delivery.octets[15] & 3 == 3).count() as u64;
    assert!(marked > 30, "{marked}");
    assert_eq!(engine.ledger().link(link, Direction::Forward).marked.frames, marked);
    assert_eq!(book.deliveries.len(), 3_000);
}

#[test]
fn the_fattest_flow_pays_for_an_overflow() {
    let (mut engine, a, _, _) =
        millisecond_link(2, queue(CakeIsolation::TripleIsolate, CakeTins::Diffserv4, 100));
    let mut book = Book::default();
    for number in 0..90 {
        offer_octets(&mut engine, a, 0, &packet(0, (1, 1, number, BULK)));
        offer_octets(&mut engine, a, 0, &packet(0, (1, 1, 200, BEST_EFFORT)));
    }
    run_dry(&mut engine, &mut book);
    check_ledger(&mut engine);
    // One is on the wire, 79 of 180 do not fit; none of them is of the flows with one packet.
    assert_eq!(book.dropped(DropReason::QueueFull), 79);
    let kept = book.deliveries.iter().filter(|delivery| delivery.octets[35] != 200).count();
    assert_eq!(kept, 90);
}
