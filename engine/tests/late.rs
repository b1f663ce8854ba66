//! Pacing of wires under a late wall clock.
//!
//! No window of 10 ms exceeds the rate by more than 1 %; with `Slip`, no window at all exceeds it.

mod common;

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::settings::{Late, LinkSettings, QueueSettings, Rate, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Clock, Delivery, Direction, Egress, End, Engine, Gathers, LinkId, PortId};

const RATE: u64 = 100_000_000;
/// Octets of a frame; octets on the wire below.
const OCTETS: u32 = 1514;
const WIRE: u64 = 1538;
const LENGTH: u64 = WIRE * 8 * 1_000_000_000 / RATE;
/// Duration of an undisturbed delivery, and the moment in it at which the node receives the frame.
const HAND_OVER: (u64, u64) = (2_000, 800);

/// Time of the octets of a frame and its check sequence.
const OCTETS_ALONE: u64 = (OCTETS as u64 + 4) * 8 * 1_000_000_000 / RATE;

/// Records the wall-clock time of deliveries, and their due times.
#[derive(Default)]
struct Wall {
    clock: Time,
    handed: Vec<(u64, u64)>,
    /// Duration of each delivery: before and after the node receives the frame.
    takes: Vec<(u64, u64)>,
}

/// The wall clock, which advances during deliveries.
#[derive(Clone, Default)]
struct Time(Rc<Cell<u64>>);

impl Clock for Time {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.get())
    }

    fn wait(&self, until: Instant) {
        self.0.set(self.0.get().max(until.nanos()));
    }
}

impl Egress for Wall {
    fn deliver(&mut self, _: PortId, at: Instant, _: &Frame, _: &Pool) -> Delivery {
        let (before, after) = match self.takes.len() {
            0 => (0, 0),
            length => self.takes[self.handed.len() % length],
        };
        let now = self.clock.0.get();
        self.handed.push((now + before, at.nanos()));
        self.clock.0.set(now + before + after);
        Delivery::Taken
    }
}

/// A saturated link whose driver runs at the given instants only.
fn saturated(late: Late, delay: u64, visits: impl Iterator<Item = u64>) -> (Vec<(u64, u64)>, u64) {
    driven(late, delay, visits, Wall::default())
}

/// The same with deliveries that take time.
fn driven(
    late: Late,
    delay: u64,
    visits: impl Iterator<Item = u64>,
    mut wall: Wall,
) -> (Vec<(u64, u64)>, u64) {
    let settings = LinkSettings {
        late,
        rate: Rate::BitsPerSecond(RATE),
        delay_ns: delay,
        queue: QueueSettings { packets: Some(100_000), ..QueueSettings::default() },
        ..LinkSettings::default()
    };
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    let link =
        engine.connect("a-b", End::Port(a), End::Port(b), &settings, &LinkSettings::default()).expect("fits");
    for _ in 0..2_000 {
        common::offer(&mut engine, a, 0, common::mac(2), common::mac(1), OCTETS);
    }
    let clock = wall.clock.clone();
    for visit in visits {
        clock.0.set(clock.0.get().max(visit));
        engine.advance_on(&clock, clock.now(), &mut wall);
    }
    common::check_ledger(&mut engine);
    (wall.handed, engine.ledger().link(link, Direction::Forward).paused.nanos())
}

/// h1 - s1 - h2 with equal links: the engine, the port of h1, and the second link.
fn behind_another(settings: &LinkSettings) -> (Engine, PortId, LinkId) {
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    let switch = engine.add_switch("s", &SwitchSettings::Hub).expect("new");
    engine.connect("a-s", End::Port(a), End::Switch(switch), settings, settings).expect("fits");
    let second = engine.connect("s-b", End::Switch(switch), End::Port(b), settings, settings).expect("fits");
    (engine, a, second)
}

/// Instants of the driver's visits: for each gap, one visit at the lateness that `late` returns,
/// then `count` - 1 visits at a distance of `apart` plus the gap. If the second number of a gap is
/// 0, the lateness is of the rare kind.
fn irregular(gaps: Vec<(u64, u64)>, count: usize, apart: u64, late: impl Fn(u64, bool) -> u64) -> Vec<u64> {
    let mut now = 0;
    let mut visits = Vec::with_capacity(gaps.len() * count);
    for (gap, rare) in gaps {
        for number in 0..count {
            now += if number == 0 { late(gap, rare == 0) } else { apart + gap };
            visits.push(now);
        }
    }
    visits
}

/// Largest number of frames in any 10 ms, beyond the limit of 1.01 times the rate and one frame.
fn excess(handed: &[(u64, u64)]) -> i64 {
    let most = 10_100_000 / LENGTH + 1;
    let worst = (0..handed.len())
        .map(|first| handed[first..].iter().take_while(|(at, _)| at - handed[first].0 < 10_000_000).count())
        .max()
        .unwrap_or(0);
    i64::try_from(worst).expect("small") - i64::try_from(most).expect("small")
}

#[test]
fn on_time_it_is_exact_and_never_pauses() {
    let visits = (1..1_000_000u64).map(|n| n * LENGTH).take(2_100);
    let (handed, paused) = saturated(Late::CatchUp, 0, visits);
    assert_eq!(handed.len(), 2_000);
    assert!(handed.iter().enumerate().all(|(n, &(at, due))| at == due && due == (n as u64 + 1) * LENGTH));
    assert_eq!(paused, 0);
}

#[test]
fn small_lateness_costs_nothing() {
    // Always 30 us late, like a machine that has to wake up.
    let visits = (1..2_200u64).map(|n| n * LENGTH + 30_000);
    let (handed, paused) = saturated(Late::CatchUp, 0, visits);
    assert_eq!(handed.len(), 2_000);
    assert_eq!(paused, 0);
    assert!(handed.iter().all(|(at, due)| at - due <= 30_000 + LENGTH));
}

#[test]
fn a_long_stall_is_lost_but_for_what_is_made_up_for() {
    for delay in [0, 1_000_000, 15_000_000] {
        // A stall of 14 ms in the middle, of which 0.25 ms are recovered.
        let step = 10_000;
        let visits = (1..45_000u64).map(|n| n * step).filter(|at| !(100_000_000..114_000_000).contains(at));
        let (handed, paused) = saturated(Late::CatchUp, delay, visits);
        assert_eq!(handed.len(), 2_000, "delay {delay}");
        assert!(excess(&handed) <= 0, "delay {delay}: {} frames too many in 10 ms", excess(&handed));
        assert!((13_600_000..13_850_000).contains(&paused), "delay {delay}: paused {paused} ns");
        let last = handed.last().expect("many").0;
        let ideal = delay + 2_000 * LENGTH;
        assert!(
            (ideal + 13_600_000..ideal + 14_100_000).contains(&last),
            "delay {delay}: {last} for {ideal}"
        );
        // Once the pause has reached the far end, the lateness of frames decreases.
        let tail: Vec<u64> = handed[handed.len() - 100..].iter().map(|(at, due)| at - due).collect();
        assert!(tail[99] < tail[0] && tail[0] < 250_000, "{} then {}", tail[0], tail[99]);
    }
}

#[test]
fn a_stall_within_the_limit_costs_no_time_and_one_beyond_it_is_soon_recovered() {
    for (stall, most_late) in [(900_000, 900_000), (1_500_000, 250_000)] {
        let visits =
            (1..45_000u64).map(|n| n * 10_000).filter(|at| !(20_000_000..20_000_000 + stall).contains(at));
        let (handed, paused) = saturated(Late::CatchUp, 0, visits);
        let lost = if stall > 1_000_000 { stall - most_late } else { 0 };
        assert!(paused.abs_diff(lost) <= 120_000, "{stall} ns: paused {paused} ns");
        let after = handed.iter().filter(|(at, _)| *at > 24_000_000).map(|(at, due)| at - due);
        assert!(after.max().expect("many") <= most_late, "{stall} ns");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any lateness of the driver: from the first frame on, the frames after the first of any
    /// window took at least as long as their octets take at the rate.
    #[test]
    fn what_slips_is_in_no_window_faster_than_its_rate(
        delay in 0..2_000_000_u64,
        gaps in prop::collection::vec((1..4_000_u64, 0..40_u64), 50..400),
    ) {
        // Mostly visits every few microseconds, sometimes late by up to 4 ms.
        let visits = irregular(gaps, 200, 2_000, |gap, rare| if rare { gap * 1_000 } else { gap });
        let (handed, _) = saturated(Late::Slip, delay, visits.into_iter());
        // Every single distance is long enough, so every window is.
        for pair in handed.windows(2) {
            let apart = pair[1].0 - pair[0].0;
            prop_assert!(apart >= OCTETS_ALONE, "{apart} ns apart, {OCTETS_ALONE} needed");
        }
    }

    /// For any lateness of the driver: with `CatchUp`, no 10 ms exceed the rate by more than 1 %
    /// and one frame.
    #[test]
    fn what_catches_up_is_hardly_faster_than_its_rate(
        delay in 0..2_000_000_u64,
        gaps in prop::collection::vec((1..400_u64, 0..40_u64), 200..1_500),
    ) {
        // Visits about every 20 us, often late by tens or hundreds of microseconds, sometimes by
        // milliseconds.
        let visits = irregular(gaps, 20, 20_000, |gap, rare| if rare { gap * 20_000 } else { gap * 1_000 });
        let (handed, _) = saturated(Late::CatchUp, delay, visits.into_iter());
        prop_assert!(excess(&handed) <= 0, "{} frames too many in 10 ms", excess(&handed));
    }

    /// A delayed delivery, before or after the node receives the frame, makes no window faster than
    /// the rate: the node receives its frames at least as far apart as their octets take.
    #[test]
    fn what_slips_minds_how_long_a_hand_over_takes(
        held in prop::collection::vec((0..100_u64, 0..60_000_u64, any::<bool>()), 50..500),
    ) {
        let takes = held.into_iter().map(|(rare, more, before)| match (rare, before) {
            (0..5, true) => (HAND_OVER.1 + more, HAND_OVER.0 - HAND_OVER.1),
            (0..5, false) => (HAND_OVER.1, HAND_OVER.0 - HAND_OVER.1 + more),
            _ => (HAND_OVER.1, HAND_OVER.0 - HAND_OVER.1),
        });
        let wall = Wall { takes: takes.collect(), ..Wall::default() };
        let (handed, _) = driven(Late::Slip, 0, (1..260_000).map(|n| n * 1_000), wall);
        for pair in handed.windows(2) {
            let apart = pair[1].0 - pair[0].0;
            prop_assert!(apart >= OCTETS_ALONE, "{apart} ns apart, {OCTETS_ALONE} needed");
        }
    }
}

#[test]
fn what_a_hand_over_usually_takes_costs_no_rate() {
    let takes = vec![(HAND_OVER.1, HAND_OVER.0 - HAND_OVER.1)];
    let wall = Wall { takes, ..Wall::default() };
    let (handed, paused) = driven(Late::Slip, 0, (1..2_500_000).map(|n| n * 100), wall);
    assert_eq!((handed.len(), paused), (2_000, 0));
    // The time lost before the duration was learned has been recovered by then.
    let most = handed[1_000..].iter().map(|(at, due)| at - due).max().unwrap_or(0);
    assert!(most <= HAND_OVER.0 + 1_000, "{most} ns late");
}

#[test]
fn what_the_loop_usually_takes_after_a_wait_costs_no_rate() {
    // Visits every 5 us: a wait ends up to 5 us late, which no gap of 1.6 us recovers. Waits that
    // end earlier lose nothing, and no frame is early.
    let (handed, paused) = saturated(Late::Slip, 0, (1..60_000).map(|n| n * 5_000));
    assert_eq!((handed.len(), paused), (2_000, 0));
    assert!(handed.windows(2).all(|pair| pair[1].0 - pair[0].0 >= OCTETS_ALONE));
    let most = handed[1_000..].iter().map(|(at, due)| at - due).max().unwrap_or(0);
    assert!(most <= 10_000, "{most} ns late");
}

#[test]
fn what_slips_makes_up_for_short_lateness_in_the_gaps() {
    // Every tenth visit is 5 us late: 12 octets, 960 ns, of each gap are enough to recover it.
    let visits = (1..2_200u64).map(|n| n * LENGTH + if n % 10 == 0 { 5_000 } else { 0 });
    let visits = visits.flat_map(|at| [at, at + 1_000, at + 2_000, at + 5_000]);
    let (handed, paused) = saturated(Late::Slip, 0, visits);
    assert_eq!((handed.len(), paused), (2_000, 0));
    let most = handed.iter().map(|(at, due)| at - due).max().unwrap_or(0);
    assert!(most <= 10_000, "{most} ns late");
}

#[test]
fn a_stall_behind_a_wire_of_the_same_rate_is_lost_once() {
    // The second wire is free whenever a frame arrives, and still has to pause.
    let settings = LinkSettings {
        late: Late::Slip,
        rate: Rate::BitsPerSecond(RATE),
        queue: QueueSettings { packets: Some(100_000), ..QueueSettings::default() },
        ..LinkSettings::default()
    };
    let (mut engine, a, second) = behind_another(&settings);
    for _ in 0..1_000 {
        common::offer(&mut engine, a, 0, common::mac(2), common::mac(1), OCTETS);
    }
    let mut wall = Wall::default();
    let clock = wall.clock.clone();
    for visit in (1..200_000u64).map(|n| n * 1_000).filter(|at| !(20_000_000..30_000_000).contains(at)) {
        clock.0.set(visit);
        engine.advance_on(&clock, clock.now(), &mut wall);
    }
    common::check_ledger(&mut engine);
    assert_eq!(wall.handed.len(), 1_000);
    let paused = engine.ledger().link(second, Direction::Forward).paused.nanos();
    assert!((9_000_000..11_000_000).contains(&paused), "paused {paused} ns");
    let later = wall.handed.iter().filter(|(at, _)| *at > 31_000_000);
    let late = later.map(|(at, due)| at - due).max().unwrap_or(0);
    assert!(late < 500_000, "{late} ns late long after the stall");
}

/// A link of full TCP segments whose driver stops for so long: when the segments were handed over and
/// when they were due, and for how long the link paused.
fn stopped(stop: u64, forwards: bool, gathers: Gathers) -> (Vec<(u64, u64)>, u64) {
    let settings = LinkSettings {
        rate: Rate::BitsPerSecond(RATE),
        coalesce_ns: 200_000,
        queue: QueueSettings { packets: Some(100_000), ..QueueSettings::default() },
        ..LinkSettings::default()
    };
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", forwards).expect("new");
    engine.let_gather(b, gathers);
    let link = engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("fits");
    for _ in 0..25 {
        common::offer_super(&mut engine, a, 0, 40 * 1_448, 1_448);
    }
    let mut wall = Wall::default();
    let clock = wall.clock.clone();
    let on_time = |at: &u64| !(50_000_000..50_000_000 + stop).contains(at);
    for visit in (1..15_000u64).map(|n| n * 10_000).filter(on_time) {
        clock.0.set(visit);
        engine.advance_on(&clock, clock.now(), &mut wall);
    }
    common::check_ledger(&mut engine);
    (wall.handed, engine.ledger().link(link, Direction::Forward).paused.nanos())
}

#[test]
fn frames_that_keep_their_times_are_not_spaced_and_lose_none_to_a_stop_of_milliseconds() {
    let (tcp, udp) = (Gathers { tcp: true, udp: false }, Gathers { tcp: false, udp: true });
    for (stop, lost) in [(8_000_000, 0..=0), (14_000_000, 2_900_000..=4_100_000)] {
        // Together at any node, or one by one at a node that forwards.
        for (forwards, gathers) in [(false, tcp), (true, udp)] {
            let (handed, paused) = stopped(stop, forwards, gathers);
            assert!(lost.contains(&paused), "a stop of {stop} ns: paused {paused} ns");
            let ideal = 1_000 * (1_448 + 54 + 24) * 8 * 1_000_000_000 / RATE;
            let last = handed.last().expect("many").0;
            assert!(last.abs_diff(ideal + paused) <= 200_000, "a stop of {stop} ns: {last} for {ideal}");
            let later = handed.iter().filter(|(at, _)| *at > 70_000_000).map(|(at, due)| at - due);
            assert!(later.max().expect("many") <= 20_000, "a stop of {stop} ns");
        }
    }
    // One by one at an end they are spaced.
    let (_, paused) = stopped(8_000_000, false, udp);
    assert!((7_000_000..8_000_000).contains(&paused), "paused {paused} ns");
}

#[test]
fn a_host_that_always_wakes_late_loses_time_and_is_not_ever_later() {
    // The offered frames exceed the rate. The gap of a frame makes up for a part of
    // what each wake-up costs; a frame is longer on the wire than what is sent in advance, or shorter.
    for (rate, octets) in
        [(10_000_000, 4_366), (10_000_000, 1_514), (10_000_000, 8_000), (100_000_000, 1_514)]
    {
        let settings = LinkSettings {
            late: Late::Slip,
            rate: Rate::BitsPerSecond(rate),
            mtu: 9_000,
            ..LinkSettings::default()
        };
        let (mut engine, a, second) = behind_another(&settings);
        let length = u64::from(octets + 24) * 8 * 1_000_000_000 / rate;
        let wakes = 20 * length / 1_000; // 2 % of a frame, less than 1 % of which its gap makes up for
        let mut wall = Wall { takes: vec![HAND_OVER], ..Wall::default() };
        let clock = wall.clock.clone();
        let mut offered = 0;
        while offered < 1_000 {
            let next = (offered + 1) * (length - length / 200);
            let event = engine.next_at().map_or(next, |at| at.nanos().min(next));
            clock.0.set(clock.0.get().max(event + wakes));
            engine.advance_on(&clock, clock.now(), &mut wall);
            if next <= clock.0.get() {
                common::offer(&mut engine, a, clock.0.get(), common::mac(2), common::mac(1), octets);
                offered += 1;
            }
        }
        common::check_ledger(&mut engine);
        let late = wall.handed.iter().map(|(at, due)| at - due).max().unwrap_or(0);
        let most = 300_000 + 4 * (wakes + HAND_OVER.0 + HAND_OVER.1);
        assert!(late < most, "{octets} octets at {rate} bit/s: {late} ns late, at most {most}");
        // Nothing else is lost: what is not late is paused.
        let paused = engine.ledger().link(second, Direction::Forward).paused.nanos();
        let last = wall.handed.last().expect("some").0;
        let ideal = length * (wall.handed.len() as u64 + 1);
        assert!(
            paused < last.saturating_sub(ideal) + 2 * length,
            "{octets} octets at {rate} bit/s: {paused}"
        );
    }
}
