//! Sending in advance changes no result: super-frames through drop-tail queues, which allow it, are
//! compared with their single frames through RED below its lower threshold, which does the same as
//! drop-tail but sends each frame when the wire is free.

mod common;

use airloom_engine::frame::{Frame, segment};
use airloom_engine::settings::{Discipline, Jitter, LinkSettings, Loss, QueueSettings, Rate, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction, End, Engine, LinkId};
use common::{Book, check_ledger, offer_octets, offer_super, run_dry, super_frame};
use proptest::prelude::*;

/// Time of a frame of 1000 octets at 1 Gbit/s. Most instants are multiples of it, so that
/// transmissions, arrivals and changes coincide.
const FRAME: u64 = 8_000;
const SIZE: u16 = 946;

/// Settings of one direction of a link.
#[derive(Clone, Debug)]
struct Setting {
    rate: u64,
    delay: u64,
    packets: u32,
    loss: bool,
    jitter: bool,
    reorders: bool,
    gap: u64,
}

impl Setting {
    fn settings(&self, discipline: &Discipline) -> LinkSettings {
        let queue = QueueSettings {
            packets: Some(self.packets),
            discipline: discipline.clone(),
            ..QueueSettings::default()
        };
        LinkSettings {
            rate: Rate::BitsPerSecond(self.rate),
            overhead: 0,
            shortest: 0,
            delay_ns: self.delay,
            loss: if self.loss { Loss::Bernoulli { probability: 0.1 } } else { Loss::None },
            jitter: if self.jitter { Jitter::Uniform { spread_ns: 2 * FRAME } } else { Jitter::None },
            jitter_reorders: self.reorders,
            gap_ns: self.gap,
            queue,
            ..LinkSettings::default()
        }
    }
}

/// What happens to the link behind the hub.
#[derive(Clone, Debug)]
enum Happens {
    Frames { from: usize, payload: usize },
    Setting(Setting),
    Up(bool),
    Look,
}

fn setting() -> impl Strategy<Value = Setting> {
    let rate = prop::sample::select(vec![100_000_000, 333_333_333, 1_000_000_000, 1_000_000_000]);
    let delay = prop::sample::select(vec![0, 1, FRAME, 20 * FRAME, 300_000]);
    let seldom = || prop::sample::select(vec![false, false, false, true]);
    let gap = prop::sample::select(vec![0, 0, 0, 500]);
    (rate, delay, 2..300_u32, seldom(), seldom(), seldom(), gap).prop_map(
        |(rate, delay, packets, loss, jitter, reorders, gap)| Setting {
            rate,
            delay,
            packets,
            loss,
            jitter,
            reorders,
            gap,
        },
    )
}

fn happens() -> impl Strategy<Value = (u64, Happens)> {
    let gap = prop_oneof![4 => (0..40_u64).prop_map(|frames| frames * FRAME), 1 => 0..400_000_u64];
    let what = prop_oneof![
        8 => (0..2_usize, 1..60_000_usize).prop_map(|(from, payload)| Happens::Frames { from, payload }),
        2 => setting().prop_map(Happens::Setting),
        1 => any::<bool>().prop_map(Happens::Up),
        3 => Just(Happens::Look),
    ];
    (gap, what)
}

/// All that can be seen of two sources whose links merge at a hub: what is received and dropped,
/// and the ledger meanwhile and at the end.
fn outcome(links: &[Setting; 2], all: &[(u64, Happens)], discipline: &Discipline) -> Vec<String> {
    let mut engine = Engine::new(1);
    let hub = End::Switch(engine.add_switch("hub", &SwitchSettings::Hub).expect("new"));
    let names = ["a", "b", "c"];
    let ports = names.map(|name| engine.add_port(name, false).expect("new"));
    let mut joined = Vec::new();
    for (number, port) in ports.into_iter().enumerate() {
        let link = links[number / 2].settings(discipline);
        joined.push(engine.connect(names[number], End::Port(port), hub, &link, &link).expect("fits"));
    }
    let last = joined[2];
    let mut book = Book::default();
    let mut seen = Vec::new();
    let mut at = 0;
    for (gap, what) in all {
        at += gap;
        let now = Instant::from_nanos(at);
        match what {
            Happens::Frames { from, payload } => {
                let frame = super_frame(&mut engine, *payload, SIZE);
                if *discipline == Discipline::DropTail {
                    engine.offer(ports[*from], now, frame);
                    continue;
                }
                let (count, buffer) = (u16::try_from(frame.segments()).expect("few"), frame.buffer);
                let frame = Frame { count, ..frame };
                for segment in 0..count {
                    let mut octets = vec![0; frame.segment_octets(segment) as usize];
                    segment::complete(&frame, engine.pool(), segment, &mut octets);
                    offer_octets(&mut engine, ports[*from], at, &octets);
                }
                engine.pool().release(buffer);
            }
            Happens::Setting(setting) => {
                let settings = Box::new(setting.settings(discipline));
                engine.schedule(now, Change::Link(last, Direction::Backward, settings)).expect("in range");
            }
            Happens::Up(up) => {
                let change = if *up { Change::Up(last) } else { Change::Down(last) };
                engine.schedule(now, change).expect("known");
            }
            Happens::Look => {
                engine.advance(now, &mut book);
                check_ledger(&mut engine);
                seen.push(accounts(&mut engine, &joined));
            }
        }
    }
    run_dry(&mut engine, &mut book);
    seen.push(accounts(&mut engine, &joined));
    let mut received: Vec<_> =
        book.deliveries.into_iter().map(|one| (one.port, one.at, one.octets)).collect();
    received.sort();
    let mut drops: Vec<_> = book
        .drops
        .iter()
        .flat_map(|drop| {
            (0..drop.frames).map(move |_| format!("{:?} {} {:?}", drop.place, drop.at, drop.why))
        })
        .collect();
    drops.sort();
    seen.extend(drops);
    seen.extend(received.iter().map(|(port, at, octets)| {
        let sum = octets.iter().fold(0_u32, |sum, &octet| sum.wrapping_mul(31) ^ u32::from(octet));
        format!("{port:?} {at} {} {sum}", octets.len())
    }));
    seen
}

fn accounts(engine: &mut Engine, links: &[LinkId]) -> String {
    let ledger = engine.ledger();
    let of = |&link: &LinkId| {
        [Direction::Forward, Direction::Backward].map(|direction| ledger.link(link, direction).clone())
    };
    format!("{:?} {:?}", ledger.delivered, links.iter().map(of).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn sending_in_advance_changes_no_result(
        links in [setting(), setting()],
        all in prop::collection::vec(happens(), 1..40),
    ) {
        let (far, weight) = (1 << 39, 0.002);
        let never = Discipline::Red { min_octets: far, max_octets: 2 * far, probability: 0.1, weight, packet_octets: 500, marks_above: false };
        let ahead = outcome(&links, &all, &Discipline::DropTail);
        let each = outcome(&links, &all, &never);
        for (ahead, each) in ahead.iter().zip(&each) {
            prop_assert_eq!(ahead, each);
        }
        prop_assert_eq!(ahead.len(), each.len());
    }
}

#[test]
fn a_change_takes_back_what_has_not_begun() {
    let plain = Setting {
        rate: 1_000_000_000,
        delay: 0,
        packets: 300,
        loss: false,
        jitter: false,
        reorders: false,
        gap: 0,
    };
    let link = |rate| Setting { rate, ..plain.clone() }.settings(&Discipline::DropTail);
    let mut engine = Engine::new(1);
    let [a, b] = ["a", "b"].map(|name| engine.add_port(name, false).expect("new"));
    let fast = link(1_000_000_000);
    let joined = engine.connect("a-b", End::Port(a), End::Port(b), &fast, &fast).expect("fits");
    // Five frames of 1000 octets; the third one begins when the rate changes, as the last one does.
    offer_super(&mut engine, a, 0, 5 * usize::from(SIZE), SIZE);
    for (at, rate) in [(2 * FRAME, 500_000_000), (6 * FRAME, 250_000_000)] {
        let change = Change::Link(joined, Direction::Forward, Box::new(link(rate)));
        engine.schedule(Instant::from_nanos(at), change).expect("in range");
    }
    let mut book = Book::default();
    engine.advance(Instant::from_nanos(FRAME), &mut book);
    let queue = |engine: &mut Engine| engine.ledger().link(joined, Direction::Forward).queue.frames;
    assert_eq!(queue(&mut engine), 3, "the second one has begun");
    engine.advance(Instant::from_nanos(2 * FRAME), &mut book);
    assert_eq!(queue(&mut engine), 2);
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b), [1, 2, 4, 6, 10].map(|frames| frames * FRAME));
}
