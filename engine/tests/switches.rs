//! Switches and hubs: receivers of each frame, and the ledger.

mod common;

use airloom_engine::settings::{LinkSettings, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, DropReason, End, Engine, Error, LinkId, PortId, SwitchId};
use common::{Book, check_ledger, mac, offer, offer_super, run_dry};

const SECOND: u64 = 1_000_000_000;

fn learning(addresses: u32) -> SwitchSettings {
    SwitchSettings::Switch { ageing_ns: 300 * SECOND, addresses }
}

/// A switch or hub with so many ports.
fn star(kind: &SwitchSettings, ports: u8) -> (Engine, Vec<PortId>, Vec<LinkId>, SwitchId) {
    let mut engine = Engine::new(1);
    let switch = engine.add_switch("s", kind).expect("new");
    let plain = LinkSettings::default();
    let mut links = Vec::new();
    let ports: Vec<_> = (0..ports)
        .map(|number| {
            let name = number.to_string();
            let port = engine.add_port(&name, false).expect("new");
            links.push(
                engine.connect(&name, End::Port(port), End::Switch(switch), &plain, &plain).expect("valid"),
            );
            port
        })
        .collect();
    (engine, ports, links, switch)
}

/// Offers one frame and returns the ports that received it.
fn send(engine: &mut Engine, ports: &[PortId], from: u8, to: [u8; 6], at: u64) -> Vec<usize> {
    let mut book = Book::default();
    offer(engine, ports[usize::from(from)], at, to, mac(from), 100);
    engine.advance(Instant::from_nanos(at), &mut book);
    check_ledger(engine);
    book.deliveries.iter().map(|delivery| delivery.port.index()).collect()
}

#[test]
fn a_switch_learns_and_then_sends_to_one() {
    let (mut engine, ports, _, switch) = star(&learning(100), 4);
    assert_eq!(send(&mut engine, &ports, 0, mac(1), 1), [1, 2, 3], "unknown: flooded");
    assert_eq!(send(&mut engine, &ports, 1, mac(0), 2), [0], "learnt from the first frame");
    assert_eq!(send(&mut engine, &ports, 0, mac(1), 3), [1]);
    assert_eq!(send(&mut engine, &ports, 2, [0xff; 6], 4), [0, 1, 3], "broadcast");
    assert_eq!(send(&mut engine, &ports, 2, [1, 0, 0x5e, 0, 0, 1], 5), [0, 1, 3], "multicast");
    assert_eq!(
        send(&mut engine, &ports, 2, [1, 0x80, 0xc2, 0, 0, 0xe], 6),
        [0_usize; 0],
        "for the link only"
    );
    assert_eq!(engine.ledger().copies.frames, 2 + 2 + 2);
    assert_eq!(engine.ledger().switch(switch).copies.frames, 6);
    assert_eq!(engine.ledger().switch(switch).dropped.of(DropReason::Filtered).frames, 1);
}

#[test]
fn a_switch_follows_who_moves_and_filters_what_goes_back() {
    let (mut engine, ports, _, _) = star(&learning(100), 3);
    send(&mut engine, &ports, 0, mac(9), 1);
    let mut book = Book::default();
    // The address of node 0 is now seen at port 1, and a frame to it comes from there.
    offer(&mut engine, ports[1], 2, mac(9), mac(0), 100);
    engine.advance(Instant::from_nanos(2), &mut book);
    assert_eq!(send(&mut engine, &ports, 2, mac(0), 3), [1]);
    offer(&mut engine, ports[1], 4, mac(0), mac(5), 100);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.dropped(DropReason::Filtered), 1);
}

#[test]
fn addresses_age_and_a_full_table_learns_nobody_until_they_do() {
    let kind = SwitchSettings::Switch { ageing_ns: 10 * SECOND, addresses: 2 };
    let (mut engine, ports, _, _) = star(&kind, 4);
    send(&mut engine, &ports, 0, mac(9), 0);
    send(&mut engine, &ports, 1, mac(9), SECOND);
    send(&mut engine, &ports, 2, mac(9), 2 * SECOND);
    assert_eq!(send(&mut engine, &ports, 3, mac(0), 3 * SECOND), [0]);
    assert_eq!(send(&mut engine, &ports, 3, mac(2), 3 * SECOND), [0, 1, 2], "no room for the third");
    assert_eq!(send(&mut engine, &ports, 3, mac(0), 10 * SECOND), [0], "ten seconds old");
    assert_eq!(send(&mut engine, &ports, 3, mac(0), 10 * SECOND + 1), [0, 1, 2], "older");
    // Its entry was replaced by port 3, which has sent since.
    assert_eq!(send(&mut engine, &ports, 0, mac(3), 11 * SECOND), [3]);
}

#[test]
fn group_addresses_are_never_learnt() {
    let (mut engine, ports, _, _) = star(&learning(100), 3);
    let mut book = Book::default();
    offer(&mut engine, ports[0], 0, mac(1), [3, 0, 0, 0, 0, 1], 100);
    engine.advance(Instant::from_nanos(0), &mut book);
    assert_eq!(send(&mut engine, &ports, 1, [3, 0, 0, 0, 0, 1], 1), [0, 2]);
}

#[test]
fn a_hub_repeats_everything() {
    let (mut engine, ports, _, _) = star(&SwitchSettings::Hub, 3);
    send(&mut engine, &ports, 0, mac(1), 1);
    assert_eq!(send(&mut engine, &ports, 1, mac(0), 2), [0, 2]);
    assert_eq!(send(&mut engine, &ports, 1, [1, 0x80, 0xc2, 0, 0, 0], 3), [0, 2]);
}

#[test]
fn a_link_that_goes_down_is_forgotten_and_not_flooded() {
    let (mut engine, ports, links, switch) = star(&learning(100), 3);
    send(&mut engine, &ports, 0, mac(9), 1);
    engine.schedule(Instant::from_nanos(2), Change::Down(links[0])).expect("known");
    assert_eq!(send(&mut engine, &ports, 1, mac(0), 3), [2]);
    engine.schedule(Instant::from_nanos(4), Change::Down(links[2])).expect("known");
    assert_eq!(send(&mut engine, &ports, 1, mac(0), 5), [0_usize; 0]);
    assert_eq!(engine.ledger().switch(switch).dropped.of(DropReason::Nowhere).frames, 1);
    engine.schedule(Instant::from_nanos(6), Change::Up(links[0])).expect("known");
    assert_eq!(send(&mut engine, &ports, 1, mac(0), 7), [0]);
}

#[test]
fn flooding_shares_one_buffer_and_super_frames_stay_whole() {
    let (mut engine, ports, _, _) = star(&learning(100), 5);
    let mut book = Book::default();
    offer_super(&mut engine, ports[0], 0, 50_000, 1_000);
    assert_eq!(engine.pool().in_use(), 1);
    run_dry(&mut engine, &mut book);
    assert_eq!(engine.ledger().offered.frames, 50);
    assert_eq!(engine.ledger().copies.frames, 150);
    assert_eq!(engine.ledger().delivered.frames, 200);
    assert!(book.deliveries.iter().all(|delivery| delivery.together == 50));
}

#[test]
fn a_switch_that_becomes_a_hub_forgets() {
    let (mut engine, ports, _, switch) = star(&learning(100), 3);
    send(&mut engine, &ports, 0, mac(9), 1);
    let change = |settings| Change::Switch(switch, settings);
    engine.schedule(Instant::from_nanos(2), change(learning(50))).expect("valid");
    assert_eq!(send(&mut engine, &ports, 1, mac(0), 3), [0]);
    engine.schedule(Instant::from_nanos(4), change(SwitchSettings::Hub)).expect("valid");
    assert_eq!(send(&mut engine, &ports, 1, mac(0), 5), [0, 2]);
}

#[test]
fn what_cannot_be_built_is_refused_and_changes_nothing() {
    let mut engine = Engine::new(1);
    let plain = LinkSettings::default();
    let port = engine.add_port("p", false).expect("new");
    let switches: Vec<_> =
        (0..3).map(|n| End::Switch(engine.add_switch(&n.to_string(), &learning(1)).expect("new"))).collect();
    let mut connect = |name: &str, a, b| engine.connect(name, a, b, &plain, &plain);
    connect("0-1", switches[0], switches[1]).expect("valid");
    connect("1-2", switches[1], switches[2]).expect("valid");
    let code = |result: Result<LinkId, Error>| result.expect_err("refused").code();
    assert_eq!(code(connect("2-0", switches[2], switches[0])), "engine.loop");
    assert_eq!(code(connect("0-0", switches[0], switches[0])), "engine.loop");
    assert_eq!(code(connect("0-1", End::Port(port), switches[1])), "engine.name.duplicate");
    assert_eq!(code(connect("p-p", End::Port(port), End::Port(port))), "engine.port.taken");
    connect("p-0", End::Port(port), switches[0]).expect("nothing was changed before");
    assert_eq!(code(connect("p-1", End::Port(port), switches[1])), "engine.port.taken");
    assert_eq!(engine.add_port("p", true).expect_err("refused").code(), "engine.name.duplicate");
    let mut other = Engine::new(1);
    let stranger = other.add_port("x", false).expect("new");
    let foreign = other.connect("y", End::Port(stranger), switches[2], &plain, &plain);
    assert_eq!(code(foreign), "engine.unknown");
    let foreign = engine.schedule(Instant::ZERO, Change::Down(other_link()));
    assert_eq!(foreign.expect_err("refused").code(), "engine.unknown");
}

/// A link whose number does not exist in a small engine.
fn other_link() -> LinkId {
    let (mut engine, ports, _, _) = star(&SwitchSettings::Hub, 9);
    drop(ports);
    let plain = LinkSettings::default();
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    engine.connect("a-b", End::Port(a), End::Port(b), &plain, &plain).expect("valid")
}
