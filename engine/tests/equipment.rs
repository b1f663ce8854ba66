//! Exact times added by equipment at the ends of a wire, measured through the engine.

mod common;

use airloom_engine::settings::{Jitter, LinkSettings, Rate, Receiver, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{End, Engine};
use common::Book;

/// 1250 octets on the wire, 100 us at this rate.
const RATE: Rate = Rate::BitsPerSecond(100_000_000);
const OCTETS: u32 = 1226;

/// Arrival times in microseconds at h2 behind a switch, for frames offered at these microseconds.
fn arrivals(first: &LinkSettings, second: &LinkSettings, offered: &[u64]) -> Vec<u64> {
    let mut engine = Engine::new(1);
    let a = engine.add_port("h1", false).expect("new");
    let b = engine.add_port("h2", false).expect("new");
    let kind = SwitchSettings::Switch { ageing_ns: 1 << 40, addresses: 8 };
    let switch = engine.add_switch("s1", &kind).expect("new");
    let back = LinkSettings::default();
    engine.connect("h1-s1", End::Port(a), End::Switch(switch), first, &back).expect("fits");
    engine.connect("s1-h2", End::Switch(switch), End::Port(b), second, &back).expect("fits");
    for micros in offered {
        common::offer(&mut engine, a, micros * 1000, common::mac(2), common::mac(1), OCTETS);
    }
    let mut book = Book::default();
    engine.advance(Instant::NEVER, &mut book);
    common::check_ledger(&mut engine);
    book.times(b).into_iter().map(|at| at / 1000).collect()
}

fn wire() -> LinkSettings {
    LinkSettings { rate: RATE, ..LinkSettings::default() }
}

#[test]
fn a_switch_stores_waits_and_forwards() {
    let receiver = Receiver { latency_ns: 7_000, ..Receiver::default() };
    let to_switch = LinkSettings { receiver, ..wire() };
    assert_eq!(
        arrivals(&to_switch, &wire(), &[0, 0, 500]),
        [207, 307, 707],
        "a pipeline: latency costs no rate"
    );
}

#[test]
fn an_adapter_that_rests_after_each_frame_sends_so_much_slower() {
    let rests = LinkSettings { gap_ns: 4_000, ..wire() };
    assert_eq!(arrivals(&rests, &wire(), &[0, 0, 0, 1000]), [200, 304, 408, 1200]);
}

#[test]
fn interrupts_bring_together_what_came_between_them() {
    let receiver = Receiver { moderation_ns: 250_000, ..Receiver::default() };
    let to_host = LinkSettings { receiver, ..wire() };
    assert_eq!(arrivals(&wire(), &to_host, &[0, 0, 0, 0, 2000]), [200, 450, 450, 700, 2200]);
}

#[test]
fn a_clock_of_a_millisecond_shows_nothing_between_its_ticks() {
    let receiver = Receiver { tick_ns: 1_000_000, ..Receiver::default() };
    let to_host = LinkSettings { receiver, ..wire() };
    assert_eq!(arrivals(&wire(), &to_host, &[0, 0, 800, 900]), [1000, 1000, 1000, 2000]);
}

#[test]
fn service_is_added_in_order_and_by_the_dice_of_the_receiver() {
    let service = Jitter::Uniform { spread_ns: 50_000 };
    let receiver = Receiver { service, ..Receiver::default() };
    let to_host = LinkSettings { receiver, ..wire() };
    let offered: Vec<u64> = (0..1000).map(|n| n * 1000).collect();
    let seen = arrivals(&wire(), &to_host, &offered);
    let extra: Vec<u64> = seen.iter().zip(&offered).map(|(at, sent)| at - sent - 200).collect();
    assert!(extra.iter().all(|extra| *extra <= 50), "nothing is early: draws below zero are zero");
    let none = extra.iter().filter(|extra| **extra == 0).count();
    assert!((450..=550).contains(&none), "{none} of 1000 had a draw below zero, or below 1 us");
    assert!(seen.is_sorted());
}
