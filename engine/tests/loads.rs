//! The state of links over time: queue, marks, drops and busy time; and links that change their end.

mod common;

use airloom_engine::settings::{Discipline, Jitter, LinkSettings, QueueSettings, Rate, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction, DropReason, End, Engine, Error};
use common::{Book, check_ledger, mac, millisecond_link, offer, run_dry};

const MS: u64 = 1_000_000;
const LEARNING: SwitchSettings = SwitchSettings::Switch { ageing_ns: 300_000 * MS, addresses: 100 };

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * MS)
}

#[test]
fn the_busy_time_is_that_of_the_transmissions_until_now() {
    let disciplines =
        [Discipline::DropTail, Discipline::CoDel { target_ns: 1_000 * MS, interval_ns: 1_000 * MS }];
    for discipline in disciplines {
        let queue = QueueSettings { discipline, ..QueueSettings::default() };
        let (mut engine, a, _, link) = millisecond_link(1, queue);
        let mut book = Book::default();
        // Ten frames of 1 ms at 5 ms, and one at 40 ms.
        for frame in 0..10 {
            offer(&mut engine, a, 5 * MS, mac(2), mac(frame), 1000);
        }
        offer(&mut engine, a, 40 * MS, mac(2), mac(1), 1000);
        let mut busy = |ms: u64| {
            engine.advance(at(ms), &mut book);
            let account = engine.ledger().link(link, Direction::Forward);
            (account.busy.nanos() / MS, account.queue.frames)
        };
        assert_eq!(busy(4), (0, 0));
        assert_eq!(busy(8), (3, 6), "the fourth begins");
        assert_eq!(busy(14), (9, 0));
        assert_eq!(busy(30), (10, 0));
        assert_eq!(busy(60), (11, 0));
    }
}

#[test]
fn a_change_of_the_rate_counts_what_is_sent_by_it() {
    let (mut engine, a, _, link) = millisecond_link(1, QueueSettings::default());
    let mut book = Book::default();
    for frame in 0..10 {
        offer(&mut engine, a, 0, mac(2), mac(frame), 1000);
    }
    engine.advance(at(4), &mut book);
    // Half the rate: one frame was begun at 4 ms, five are left and take 10 ms.
    let slow = LinkSettings { rate: Rate::BitsPerSecond(4_000_000), overhead: 0, ..LinkSettings::default() };
    engine.schedule(at(4), Change::Link(link, Direction::Forward, Box::new(slow))).expect("valid");
    engine.advance(at(100), &mut book);
    assert_eq!(engine.ledger().link(link, Direction::Forward).busy.nanos(), (5 + 10) * MS);
}

/// Ports 0 to 2 at a switch, port 3 alone.
fn star() -> (Engine, Vec<airloom_engine::PortId>, Vec<airloom_engine::LinkId>) {
    let mut engine = Engine::new(1);
    let switch = engine.add_switch("s", &LEARNING).expect("new");
    let slow = LinkSettings { delay_ns: 10 * MS, ..LinkSettings::default() };
    let ports: Vec<_> = (0..4).map(|n| engine.add_port(&n.to_string(), false).expect("new")).collect();
    let links = ports[..3].iter().enumerate();
    let links = links.map(|(n, port)| {
        engine.connect(&n.to_string(), End::Port(*port), End::Switch(switch), &slow, &slow).expect("valid")
    });
    let links = links.collect();
    (engine, ports, links)
}

#[test]
fn a_link_that_moves_to_a_port_keeps_its_frames_and_its_settings() {
    let (mut engine, ports, links) = star();
    let mut book = Book::default();
    offer(&mut engine, ports[0], 0, mac(1), mac(0), 100);
    engine.advance(at(5), &mut book);
    engine.move_to_port(links[0], Direction::Backward, ports[3]).expect("at a switch");
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(ports[3]), [10 * MS], "the frame under way reaches the port");
    assert!(book.times(ports[1]).is_empty());
    // Back on the same link, and the switch floods to its own ports only.
    let mut book = Book::default();
    offer(&mut engine, ports[3], 20 * MS, mac(0), mac(1), 100);
    offer(&mut engine, ports[1], 20 * MS, [0xff; 6], mac(1), 100);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(ports[0]), [30 * MS]);
    assert_eq!(book.times(ports[2]), [40 * MS]);
    check_ledger(&mut engine);
}

#[test]
fn a_link_moves_once_and_to_a_free_port_only() {
    let (mut engine, ports, links) = star();
    let taken = engine.move_to_port(links[0], Direction::Backward, ports[1]);
    assert!(matches!(taken, Err(Error::PortTaken { .. })), "{taken:?}");
    let no_switch = engine.move_to_port(links[0], Direction::Forward, ports[3]);
    assert!(matches!(no_switch, Err(Error::Unknown { .. })), "{no_switch:?}");
    engine.move_to_port(links[0], Direction::Backward, ports[3]).expect("at a switch");
    let again = engine.add_port("4", false).expect("new");
    assert!(engine.move_to_port(links[0], Direction::Backward, again).is_err());
}

#[test]
fn a_loop_is_none_any_more_where_a_link_has_left() {
    let mut engine = Engine::new(1);
    let switches: Vec<_> =
        (0..3).map(|n| engine.add_switch(&format!("s{n}"), &LEARNING).expect("new")).collect();
    let plain = LinkSettings::default();
    let join = |engine: &mut Engine, name: &str, a: usize, b: usize| {
        engine.connect(name, End::Switch(switches[a]), End::Switch(switches[b]), &plain, &plain)
    };
    let first = join(&mut engine, "01", 0, 1).expect("no loop");
    let second = join(&mut engine, "12", 1, 2).expect("no loop");
    assert!(matches!(join(&mut engine, "20", 2, 0), Err(Error::Loop { .. })));
    // The switch in the middle becomes a node.
    for (name, link, end) in [("a", first, Direction::Backward), ("b", second, Direction::Forward)] {
        let port = engine.add_port(name, true).expect("new");
        engine.move_to_port(link, end, port).expect("at a switch");
    }
    join(&mut engine, "20", 2, 0).expect("no loop");
    assert!(join(&mut engine, "02", 0, 2).is_err());
}

#[test]
fn a_link_that_is_taken_out_drops_its_frames_and_frees_its_ends() {
    let (mut engine, ports, links) = star();
    let mut book = Book::default();
    offer(&mut engine, ports[0], 0, mac(1), mac(0), 100);
    engine.advance(at(5), &mut book);
    engine.disconnect(links[0], &mut book).expect("connected");
    assert!(engine.is_disconnected(links[0]));
    assert!(engine.disconnect(links[0], &mut book).is_err(), "it is out already");
    offer(&mut engine, ports[1], 10 * MS, [0xff; 6], mac(1), 100);
    run_dry(&mut engine, &mut book);
    assert!(book.times(ports[0]).is_empty(), "the switch floods to it no more");
    assert_eq!(book.times(ports[2]), [30 * MS]);
    // Its port takes another link, and its name other ends.
    let quick = LinkSettings { delay_ns: MS, ..LinkSettings::default() };
    engine.connect("direct", End::Port(ports[0]), End::Port(ports[3]), &quick, &quick).expect("free");
    offer(&mut engine, ports[0], 40 * MS, mac(3), mac(0), 100);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(ports[3]), [41 * MS]);
    check_ledger(&mut engine);
}

#[test]
fn a_link_that_was_taken_out_is_connected_again_with_its_account() {
    let (mut engine, ports, links) = star();
    let mut book = Book::default();
    let quick = LinkSettings { delay_ns: MS, ..LinkSettings::default() };
    let ends = (End::Port(ports[0]), End::Port(ports[3]));
    let again =
        |engine: &mut Engine, book: &mut Book| engine.reconnect(links[0], "0", ends, (&quick, &quick), book);
    assert!(matches!(again(&mut engine, &mut book), Err(Error::DuplicateName { .. })), "it is not out");
    offer(&mut engine, ports[0], 0, mac(1), mac(0), 100);
    run_dry(&mut engine, &mut book);
    let entered = |engine: &mut Engine| engine.ledger().link(links[0], Direction::Forward).entered.frames;
    assert_eq!(entered(&mut engine), 1);
    engine.disconnect(links[0], &mut book).expect("connected");
    again(&mut engine, &mut book).expect("free");
    offer(&mut engine, ports[0], 50 * MS, mac(3), mac(0), 100);
    offer(&mut engine, ports[3], 60 * MS, mac(0), mac(3), 100);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(ports[3]), [51 * MS]);
    assert_eq!(book.times(ports[0]), [61 * MS]);
    assert_eq!(entered(&mut engine), 2);
    check_ledger(&mut engine);
}

#[test]
fn a_loop_is_none_any_more_where_a_link_was_taken_out() {
    let mut engine = Engine::new(1);
    let mut book = Book::default();
    let switches: Vec<_> =
        (0..3).map(|n| engine.add_switch(&format!("s{n}"), &LEARNING).expect("new")).collect();
    let plain = LinkSettings::default();
    let ends = |a: usize, b: usize| (End::Switch(switches[a]), End::Switch(switches[b]));
    let join = |engine: &mut Engine, name: &str, a: usize, b: usize| {
        engine.connect(name, ends(a, b).0, ends(a, b).1, &plain, &plain)
    };
    let first = join(&mut engine, "01", 0, 1).expect("no loop");
    join(&mut engine, "12", 1, 2).expect("no loop");
    engine.disconnect(first, &mut book).expect("connected");
    join(&mut engine, "20", 2, 0).expect("no loop");
    let closes = engine.reconnect(first, "01", ends(0, 1), (&plain, &plain), &mut book);
    assert!(matches!(closes, Err(Error::Loop { .. })), "{closes:?}");
}

#[test]
fn drops_and_marks_count_in_the_link() {
    let step = Discipline::Step { packets: Some(5), octets: None, time_ns: None };
    let queue = QueueSettings { packets: Some(8), discipline: step, ..QueueSettings::default() };
    let (mut engine, a, b, link) = millisecond_link(1, queue);
    let mut book = Book::default();
    for frame in 0..12 {
        offer(&mut engine, a, 0, mac(2), mac(frame), 1000);
    }
    run_dry(&mut engine, &mut book);
    let account = engine.ledger().link(link, Direction::Forward);
    assert_eq!(account.dropped.of(DropReason::QueueFull).frames, 3, "one on the wire, eight in the queue");
    assert_eq!(account.marked.frames, 0, "no IP packets");
    assert_eq!(book.times(b).len(), 9);
}

#[test]
fn frames_that_must_not_overtake_are_counted_with_what_it_adds_to_their_delay() {
    let jitter = Jitter::Uniform { spread_ns: 5 * MS };
    let delays = |gap: u64, reorders: bool| {
        let settings = LinkSettings { delay_ns: 10 * MS, jitter: jitter.clone(), ..LinkSettings::default() };
        let settings = LinkSettings { jitter_reorders: reorders, ..settings };
        let mut engine = Engine::new(3);
        let a = engine.add_port("a", false).expect("new");
        let b = engine.add_port("b", false).expect("new");
        let link = engine.connect("ab", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
        let mut book = Book::default();
        let frames = 2_000;
        for frame in 0..frames {
            offer(&mut engine, a, frame * gap, mac(2), mac(1), 100);
        }
        run_dry(&mut engine, &mut book);
        let sum: u64 = book.times(b).iter().sum::<u64>() - (0..frames).map(|frame| frame * gap).sum::<u64>();
        let account = engine.ledger().link(link, Direction::Forward);
        (sum / frames, account.held.frames, account.held_for.nanos() / frames)
    };
    // Apart by more than twice the spread, none overtakes.
    let (apart, none, _) = delays(11 * MS, false);
    assert_eq!(none, 0);
    assert!(apart.abs_diff(10 * MS) < MS / 5, "{apart}");
    // Close together, most wait for an earlier one, and the mean delay grows by what is counted.
    let (close, held, more) = delays(MS / 10, false);
    assert!(held > 1_500, "{held}");
    assert!(close.abs_diff(10 * MS + more) < MS / 5, "{close} with {more}");
    assert!(more > 7 * MS / 2, "{more}");
    let (free, none, _) = delays(MS / 10, true);
    assert_eq!(none, 0);
    assert!(free.abs_diff(10 * MS) < MS / 5, "{free}");
}
