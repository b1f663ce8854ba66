//! Radio media inside an engine: ports, ledger, scheduled changes.

mod common;

use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::propagation::LogDistance;
use airloom_engine::medium::{
    AccessSettings, LossSettings, Medium, MediumSettings, RadioChange, RadioId, RadioSettings, RateSettings,
};
use airloom_engine::settings::LinkSettings;
use airloom_engine::time::Instant;
use airloom_engine::{Change, DropReason, End, Engine, Error, MediumId, PortId};
use common::{Book, check_ledger, mac, offer, offer_super, run_dry};

const SECOND: u64 = 1_000_000_000;

fn settings(node: u8) -> RadioSettings {
    RadioSettings {
        mac: mac(node),
        rate: RateSettings::Constant(54_000_000),
        transmit_buffers: 50,
        ..RadioSettings::default()
    }
}

/// Radios in a row, ten metres apart.
fn row(radios: u8) -> (Engine, MediumId, Vec<PortId>, Vec<RadioId>) {
    let mut engine = Engine::new(1);
    let loss = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.7) };
    let medium = Medium::new(engine.seed(), "air", Box::new(loss));
    let medium = engine.add_medium("air", medium).expect("new");
    let (mut ports, mut ids) = (Vec::new(), Vec::new());
    for node in 0..radios {
        let port = engine.add_port(&format!("n{node}"), false).expect("new");
        let place = Box::new(Static(Position::new(10.0 * f64::from(node), 0.0, 0.0)));
        ids.push(engine.add_radio(medium, port, settings(node), place).expect("valid"));
        ports.push(port);
    }
    (engine, medium, ports, ids)
}

#[test]
fn one_frame_takes_its_airtime() {
    let (mut engine, _, ports, _) = row(2);
    let mut book = Book::default();
    // 1512 octets are 1534 on the air: 248 us at 54 Mbit/s, and 33 ns for ten metres.
    offer(&mut engine, ports[0], SECOND, mac(1), mac(0), 1512);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(ports[1]), [SECOND + 248_033]);
    assert_eq!(engine.now().nanos(), SECOND + 248_033 + 16_000 + 28_000);
}

#[test]
fn a_super_frame_goes_as_the_frames_it_stands_for() {
    let (mut engine, _, ports, _) = row(2);
    let mut book = Book::default();
    let octets = common::tcp4(10_000, 1000, 0x18);
    assert_eq!(octets[..6], mac(2), "addressed to the third radio");
    let (mut wide, _, wide_ports, _) = row(3);
    offer_super(&mut wide, wide_ports[0], 0, 10_000, 1448);
    run_dry(&mut wide, &mut book);
    assert_eq!(book.deliveries.len(), 7);
    assert!(book.deliveries.iter().all(|d| d.together == 1 && d.port == wide_ports[2]));
    let times = book.times(wide_ports[2]);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] > 250_000), "{times:?}");
    // No radio has the address: seven transmissions each, then given up.
    offer_super(&mut engine, ports[0], 0, 3_000, 1448);
    let mut book = Book::default();
    run_dry(&mut engine, &mut book);
    assert_eq!(book.dropped(DropReason::OutOfRange), 3);
}

#[test]
fn the_ledger_holds_at_every_moment() {
    let (mut engine, medium, ports, ids) = row(6);
    let mut book = Book { lose_every: Some(17), ..Book::default() };
    for round in 0..400u64 {
        for node in 0..6u8 {
            let to = if round % 5 == 0 { [0xff; 6] } else { mac((node + 1) % 7) };
            offer(&mut engine, ports[usize::from(node)], round * 700_000, to, mac(node), 800);
        }
    }
    let change = |change| Change::Radio(medium, ids[2], Box::new(change));
    engine.schedule(Instant::from_nanos(80_000_000), change(RadioChange::On(false))).expect("valid");
    engine.schedule(Instant::from_nanos(120_000_000), change(RadioChange::On(true))).expect("valid");
    engine.schedule(Instant::from_nanos(150_000_000), change(RadioChange::Channel(40))).expect("valid");
    for step in 0..3_000u64 {
        engine.advance(Instant::from_nanos(step * 100_003), &mut book);
        check_ledger(&mut engine);
    }
    run_dry(&mut engine, &mut book);
    for why in [DropReason::RadioQueueFull, DropReason::RadioOff, DropReason::OutOfRange] {
        assert!(book.dropped(why) > 0, "{why:?}");
        assert_eq!(engine.ledger().dropped.of(why).frames, book.dropped(why));
    }
    assert!(engine.ledger().copies.frames > 100);
}

#[test]
fn a_channel_changes_at_its_instant() {
    let (mut engine, medium, ports, ids) = row(2);
    let mut book = Book::default();
    let to_40 = |radio| Change::Radio(medium, radio, Box::new(RadioChange::Channel(40)));
    engine.schedule(Instant::from_nanos(SECOND), to_40(ids[1])).expect("valid");
    engine.schedule(Instant::from_nanos(2 * SECOND), to_40(ids[0])).expect("valid");
    for (number, at) in [SECOND / 2, 3 * SECOND / 2, 5 * SECOND / 2].into_iter().enumerate() {
        offer(&mut engine, ports[0], at, mac(1), mac(0), 500);
        engine.advance(Instant::from_nanos(at + SECOND / 4), &mut book);
        assert_eq!(book.deliveries.len(), [1, 1, 2][number]);
    }
    assert_eq!(book.dropped(DropReason::OutOfRange), 1);
    let power = Change::Radio(medium, ids[0], Box::new(RadioChange::Power(90.0)));
    let refused = engine.schedule(Instant::from_nanos(3 * SECOND), power).expect_err("refused");
    assert_eq!(refused.code(), "radio.range");
    let channel = Change::Radio(medium, ids[0], Box::new(RadioChange::Channel(37)));
    let refused = engine.schedule(Instant::from_nanos(3 * SECOND), channel).expect_err("refused");
    assert_eq!(refused.code(), "radio.channel");
}

#[test]
fn a_port_leads_to_one_thing() {
    let (mut engine, medium, ports, _) = row(2);
    let place = || Box::new(Static(Position::default()));
    let code = |refused: Error| refused.code();
    let again = engine.add_radio(medium, ports[0], settings(9), place()).expect_err("refused");
    assert_eq!(code(again), "engine.port.taken");
    let plain = LinkSettings::default();
    let link = engine.connect("l", End::Port(ports[0]), End::Port(ports[1]), &plain, &plain);
    assert_eq!(code(link.expect_err("refused")), "engine.port.taken");
    let port = engine.add_port("spare", false).expect("new");
    let twin = engine.add_radio(medium, port, settings(1), place()).expect_err("refused");
    assert_eq!(code(twin.clone()), "radio.address");
    assert!(twin.to_string().contains("\"n1\""), "{twin}");
    engine.add_radio(medium, port, settings(9), place()).expect("the port is still free");
}

#[test]
fn a_radio_that_is_taken_out_drops_its_frames_and_frees_its_port() {
    let (mut engine, medium, ports, ids) = row(3);
    let mut book = Book::default();
    for _ in 0..3 {
        offer(&mut engine, ports[0], SECOND, mac(1), mac(0), 500);
    }
    engine.advance(Instant::from_nanos(SECOND), &mut book);
    let later = Instant::from_nanos(3 * SECOND);
    let on = Change::Radio(medium, ids[0], Box::new(RadioChange::On(true)));
    engine.schedule(later, on.clone()).expect("valid");
    engine.remove_radio(medium, ids[0], &mut book).expect("it is there");
    assert_eq!(engine.remove_radio(medium, ids[0], &mut book).expect_err("gone").code(), "radio.range");
    assert_eq!(engine.schedule(later, on).expect_err("gone").code(), "radio.range");
    engine.advance(Instant::from_nanos(2 * SECOND), &mut book);
    check_ledger(&mut engine);
    assert_eq!(book.dropped(DropReason::RadioOff) + book.deliveries.len() as u64, 3);
    // The port and the address are free for another one.
    let place = Box::new(Static(Position::new(0.0, 5.0, 0.0)));
    engine.add_radio(medium, ports[0], settings(0), place).expect("free");
    let before = book.deliveries.len();
    offer(&mut engine, ports[0], 4 * SECOND, mac(1), mac(0), 500);
    offer(&mut engine, ports[1], 5 * SECOND, mac(0), mac(1), 500);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.deliveries.len(), before + 2);
    check_ledger(&mut engine);
}

#[test]
fn other_laws_hold_from_their_instant() {
    let (mut engine, medium, ports, _) = row(2);
    let mut book = Book::default();
    let far = MediumSettings {
        loss: LossSettings::Disk { range_m: 5.0, loss_db: 60.0 },
        ..MediumSettings::default()
    };
    for (number, at) in [SECOND, 2 * SECOND, 3 * SECOND].into_iter().enumerate() {
        match number {
            1 => engine.medium(medium).expect("known").set_laws(&far).expect("valid"),
            2 => {
                let near = MediumSettings { loss: LossSettings::FreeSpace, ..far.clone() };
                engine.medium(medium).expect("known").set_laws(&near).expect("valid");
            }
            _ => {}
        }
        offer(&mut engine, ports[0], at, mac(1), mac(0), 500);
        engine.advance(Instant::from_nanos(at + SECOND / 2), &mut book);
        assert_eq!(book.deliveries.len(), [1, 1, 2][number]);
    }
    let other =
        MediumSettings { access: AccessSettings::None { loss: vec![(0.0, 0.0)], overhead_octets: 0 }, ..far };
    let refused = engine.medium(medium).expect("known").set_laws(&other).expect_err("refused");
    assert!(refused.to_string().contains("access"), "{refused}");
}

#[test]
fn withdrawn_changes_do_not_happen() {
    let (mut engine, medium, _, ids) = row(2);
    let mut book = Book::default();
    let power = |dbm| Change::Radio(medium, ids[0], Box::new(RadioChange::Power(dbm)));
    engine.schedule(Instant::from_nanos(SECOND), power(3.0)).expect("valid");
    engine.schedule(Instant::from_nanos(3 * SECOND), power(5.0)).expect("valid");
    engine.advance(Instant::from_nanos(2 * SECOND), &mut book);
    assert_eq!(engine.withdraw_changes().nanos(), 2 * SECOND);
    engine.schedule(Instant::from_nanos(4 * SECOND), power(7.0)).expect("valid");
    for (at, dbm) in [(7 * SECOND / 2, 3.0), (5 * SECOND, 7.0)] {
        engine.advance(Instant::from_nanos(at), &mut book);
        let set = engine.medium(medium).expect("known").settings(ids[0]).power_dbm;
        assert!((set - dbm).abs() < 1e-9, "{set}");
    }
}
