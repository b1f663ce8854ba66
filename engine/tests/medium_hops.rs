//! Frequency hopping: isolation within a set, collisions between sets, the loss of the switching
//! time, the ends of dwells, and hopping with time slots.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::{
    CardSettings, HopSettings, LeakageSettings, Membership, RadioChange, RadioId, RadioSettings, Roaming,
    SlotSettings,
};
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

const MS: u64 = 1_000_000;
/// Five channels that do not overlap, even if they leak.
const CHANNELS: [u16; 5] = [36, 44, 52, 60, 100];
/// Length of an exchange: 364 us of data, SIFS of 16 us, 28 us of acknowledgment.
const EXCHANGE: u64 = 408_000;
/// Mean time from one exchange to the next: DIFS of 34 us and 7.5 slots of 9 us in addition.
const CYCLE: u64 = EXCHANGE + 34_000 + 67_500;

fn hops(step: u16, sequence: u16, dwell_ns: u64, switch_ns: u64) -> HopSettings {
    HopSettings { channels: CHANNELS.to_vec(), step, sequence, dwell_ns, switch_ns }
}

/// A world with a saturated pair for each sequence, all in range of each other.
fn pairs(sequences: &[Option<HopSettings>], more: &RadioSettings) -> (World, Vec<(RadioId, RadioId)>) {
    let mut world = World::new(1, reference_loss());
    let mut x = 0.0;
    let mut place = || {
        x += 0.5;
        x
    };
    let mut pairs = Vec::new();
    for hops in sequences {
        let settings = RadioSettings { hops: hops.clone(), ..more.clone() };
        pairs.push((world.add(settings.clone(), place(), 0.0), world.add(settings, place(), 0.0)));
    }
    for &(from, to) in &pairs {
        world.saturate(at(0.0), from, to, PAYLOAD);
    }
    world.start_counting(at(0.0));
    (world, pairs)
}

/// Mbit/s of each pair over so many seconds.
fn flows(sequences: &[Option<HopSettings>], seconds: f64) -> Vec<f64> {
    let (mut world, pairs) = pairs(sequences, &at_rate(36.0));
    world.run(at(seconds));
    let over = Span::from_nanos((seconds * 1e9) as u64);
    pairs.iter().map(|&(from, to)| world.goodput(from, to, over)).collect()
}

#[test]
fn sequences_of_one_set_do_not_disturb_each_other() {
    let sequence = |number| Some(hops(2, number, 20 * MS, MS / 4));
    let alone = flows(&[sequence(0)], 10.0)[0];
    let both = flows(&[sequence(0), sequence(3)], 10.0);
    assert!(alone > 20.0, "{alone}");
    for flow in &both {
        let coupling = (alone - flow) / alone;
        assert!(coupling.abs() < 0.005, "{coupling} of {alone}: {both:?}");
    }
    // All of a set, on leaking channels that are far apart: still isolated.
    let mut world = World::new(1, reference_loss());
    world.medium.set_leakage(LeakageSettings::default().build().expect("defaults"));
    let settings = |number| RadioSettings { hops: sequence(number), ..at_rate(36.0) };
    let pairs: Vec<_> = (0..5)
        .map(|number| {
            let x = f64::from(number) * 20.0;
            (world.add(settings(number), x, 0.0), world.add(settings(number), x, 1.0))
        })
        .collect();
    for &(from, to) in &pairs {
        world.saturate(at(0.0), from, to, PAYLOAD);
    }
    world.start_counting(at(0.0));
    world.run(at(5.0));
    for (from, to) in pairs {
        let flow = world.goodput(from, to, Span::from_secs(5));
        assert!((flow / alone - 1.0).abs() < 0.005, "{flow} of {alone}");
    }
}

#[test]
fn sequences_of_two_sets_share_the_dwells_in_which_they_meet() {
    let dwell = 20 * MS;
    let sequences = [Some(hops(1, 0, dwell, 0)), Some(hops(3, 2, dwell, 0))];
    let (mut world, pairs) = pairs(&sequences, &at_rate(36.0));
    let (mut met, dwells) = (0, 500);
    let mut split = [[0u64; 2]; 2];
    for number in 0..dwells {
        let before = pairs.map_frames(&world);
        world.run(Instant::from_nanos(number * dwell + dwell / 2));
        let meets = world.medium.channel(pairs[0].0) == world.medium.channel(pairs[1].0);
        assert_eq!(world.medium.channel(pairs[0].0), world.medium.channel(pairs[0].1));
        met += u64::from(meets);
        world.run(Instant::from_nanos((number + 1) * dwell - 1));
        for (pair, (after, before)) in pairs.map_frames(&world).iter().zip(before).enumerate() {
            split[pair][usize::from(meets)] += after - before;
        }
    }
    // (1 - 3) n = 2 mod 5 has one solution: one dwell of five.
    assert_eq!(met * 5, dwells);
    for [apart, together] in split {
        let (apart, together) = (apart as f64 / (dwells - met) as f64, together as f64 / met as f64);
        // A dwell that is not shared: 20 ms less the rest in which no exchange fits.
        let full = (dwell - EXCHANGE) as f64 / CYCLE as f64 + 0.5;
        assert!((apart / full - 1.0).abs() < 0.02, "{apart} of {full}");
        // Shared by two: half of the frames each.
        assert!((together / full - 0.5).abs() < 0.02, "{together} of {full}");
    }
}

trait Frames {
    fn map_frames(&self, world: &World) -> Vec<u64>;
}

impl Frames for Vec<(RadioId, RadioId)> {
    /// Frames that each pair has received.
    fn map_frames(&self, world: &World) -> Vec<u64> {
        let count = |(from, to): &(RadioId, RadioId)| {
            world.sinks.tallies.get(&(from.number(), to.number())).map_or(0, |tally| tally.frames)
        };
        self.iter().map(count).collect()
    }
}

#[test]
fn the_switching_time_is_lost() {
    let dwell = 50 * MS;
    for switch in [MS, 10 * MS, 25 * MS] {
        let flow = flows(&[Some(hops(1, 0, dwell, switch))], 20.0)[0];
        let alone = f64::from(PAYLOAD) * 8.0 / (CYCLE as f64 * 1e-3);
        let cycles = (dwell - switch - EXCHANGE) as f64 / CYCLE as f64 + 0.5;
        let wanted = alone * cycles * CYCLE as f64 / dwell as f64;
        assert!((flow / wanted - 1.0).abs() < 0.01, "{flow} of {wanted} with {switch} ns");
    }
}

#[test]
fn exchanges_end_before_the_switching_time() {
    let (dwell, switch) = (5 * MS, 200_000);
    let cases = [
        at_rate(36.0),
        RadioSettings { fragment_octets: Some(400), ..at_rate(36.0) },
        RadioSettings { rts_octets: Some(0), ..at_rate(36.0) },
        RadioSettings { qos: true, ..at_rate(36.0) },
    ];
    for more in cases {
        let (mut world, _) = pairs(&[Some(hops(1, 0, dwell, switch))], &more);
        world.sinks.keep_arrivals = true;
        world.run(at(2.0));
        let arrivals = std::mem::take(&mut world.sinks.arrivals);
        assert!(arrivals.len() > 1_000, "{}: {more:?}", arrivals.len());
        for (_, frame, at) in arrivals {
            // The propagation delay is some nanoseconds.
            let ends = at.nanos() % dwell + 16_000 + 28_000;
            assert!(ends <= dwell - switch + 100, "{ends}: {more:?}");
            world.sinks.pool.release(frame.buffer);
        }
        let retries: u64 = (0..2).map(|radio| world.medium.counts(RadioId::new(radio)).unanswered).sum();
        assert_eq!(retries, 0, "{more:?}");
    }
}

#[test]
fn a_frame_that_fits_into_no_dwell_waits_and_a_short_one_passes() {
    for switch in [0, 50_000] {
        let settings = RadioSettings { hops: Some(hops(1, 0, 350_000, switch)), ..at_rate(36.0) };
        let mut world = World::new(1, reference_loss());
        let (from, to) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings, 1.0, 0.0));
        for _ in 0..20 {
            world.offer(at(0.0), from, Some(to), 100);
        }
        world.offer(at(0.0), from, Some(to), PAYLOAD);
        world.run(at(1.0));
        assert_eq!(world.sinks.delivered, 20, "408 us do not fit into 350 us");
        assert_eq!(world.medium.queued(from), 1);
    }
}

#[test]
fn slots_and_hops_hold_together() {
    // Two slices with one sequence, in turn; and a third with another sequence of the set.
    let slot =
        |own| SlotSettings { frame: 2, length_ns: 30 * MS, guard_ns: MS / 10, own: vec![own], hold: true };
    let mut world = World::new(1, reference_loss());
    let mut add = |sequence, own: Option<u16>, x: f64| {
        let hops = Some(hops(1, sequence, 20 * MS, MS / 10));
        let settings = RadioSettings { hops, slots: own.map(slot), ..at_rate(36.0) };
        (world.add(settings.clone(), x, 0.0), world.add(settings, x, 1.0))
    };
    let pairs = [add(0, Some(0), 0.0), add(0, Some(1), 1.0), add(2, None, 2.0)];
    for (from, to) in pairs {
        world.saturate(at(0.0), from, to, PAYLOAD);
    }
    world.start_counting(at(0.0));
    world.run(at(12.0));
    let [first, second, third] = pairs.map(|(from, to)| world.goodput(from, to, Span::from_secs(12)));
    assert!((first / second - 1.0).abs() < 0.01, "{first}, {second}");
    // Windows of 20 and 10 ms less their guards, instead of three of 20 ms.
    let part = |window: u64| (window - MS / 10 - EXCHANGE) as f64 / CYCLE as f64 + 0.5;
    let wanted = (part(20 * MS) + part(10 * MS)) / (3.0 * part(20 * MS));
    assert!((first / third / wanted - 1.0).abs() < 0.01, "{first} of {third}, {wanted}");
    let unanswered: u64 = (0..6).map(|radio| world.medium.counts(RadioId::new(radio)).unanswered).sum();
    assert_eq!(unanswered, 0);
}

#[test]
fn no_frame_is_lost_or_made() {
    let sequences = [Some(hops(1, 0, 3 * MS, 0)), Some(hops(2, 0, 2 * MS, MS / 2)), None];
    let (mut world, _) = pairs(&sequences, &RadioSettings { channel: 44, ..at_rate(36.0) });
    world.run(at(3.0));
    let mut inside = 0;
    world.medium.visit(&mut |_| inside += 1);
    let dropped: u64 = world.sinks.drops.values().sum();
    assert_eq!(world.offered, world.sinks.delivered + dropped + inside);
    assert!(world.sinks.delivered > 3_000, "{}", world.sinks.delivered);
}

/// An access point or a station of a network that hops.
fn member(membership: Membership, sequence: u16) -> RadioSettings {
    RadioSettings { membership, hops: Some(hops(2, sequence, 20 * MS, MS)), ..at_rate(36.0) }
}

fn access_point(sequence: u16) -> RadioSettings {
    member(Membership::AccessPoint { ssid: "net".into(), beacon_ns: 102_400_000 }, sequence)
}

fn station(sequence: u16, active: bool) -> RadioSettings {
    let channels = CHANNELS.to_vec();
    member(
        Membership::Station(Roaming { ssid: "net".into(), active, channels, ..Roaming::default() }),
        sequence,
    )
}

#[test]
fn a_station_joins_an_access_point_that_hops_as_it_does() {
    for active in [false, true] {
        let mut world = World::new(1, reference_loss());
        let ap = world.add(access_point(0), 0.0, 0.0);
        let same = world.add(station(0, active), 5.0, 0.0);
        let other = world.add(station(3, active), 0.0, 5.0);
        world.run(at(0.5));
        assert_eq!(world.medium.access_point(same), Some(ap), "active: {active}");
        assert_eq!(world.medium.access_point(other), None, "they never meet");
        for millisecond in 0..200 {
            world.run(at(0.5) + Span::from_nanos(millisecond * MS));
            assert_eq!(world.medium.channel(same), world.medium.channel(ap));
        }
        // As between two radios without an access point, less its beacons.
        let alone = flows(&[Some(hops(2, 0, 20 * MS, MS))], 5.0)[0];
        let (from, to) = if active { (same, ap) } else { (ap, same) };
        world.saturate(at(1.0), from, to, PAYLOAD);
        world.start_counting(at(1.0));
        world.run(at(6.0));
        let flow = world.goodput(from, to, Span::from_secs(5));
        assert!((flow / alone - 1.0).abs() < 0.02, "{flow} of {alone}");
    }
}

#[test]
fn a_station_that_hops_roams_to_a_stronger_access_point_of_its_sequence() {
    let mut world = World::new(1, reference_loss());
    let (near, far) = (world.add(access_point(1), 0.0, 0.0), world.add(access_point(1), 60.0, 0.0));
    let walker = world.add(station(1, false), 2.0, 0.0);
    world.run(at(1.0));
    assert_eq!(world.medium.access_point(walker), Some(near));
    let place = RadioChange::Position(Position::new(58.0, 0.0, 0.0));
    world.medium.change(walker, &place, &mut world.sinks);
    world.run(at(4.0));
    assert_eq!(world.medium.access_point(walker), Some(far));
    assert_eq!(world.medium.channel(walker), world.medium.channel(far));
}

#[test]
fn what_cannot_hop_is_refused() {
    let place = || Box::new(Static(Position::new(0.0, 0.0, 0.0)));
    let good = RadioSettings { hops: Some(hops(1, 0, 20 * MS, MS)), ..RadioSettings::default() };
    let cases = [
        (RadioSettings { hops: Some(hops(5, 0, MS, 0)), ..good.clone() }, "hops.step"),
        (RadioSettings { hops: Some(hops(1, 5, MS, 0)), ..good.clone() }, "hops.sequence"),
        (RadioSettings { hops: Some(hops(1, 0, MS, MS)), ..good.clone() }, "hops.switch"),
        (RadioSettings { membership: Membership::Wlan, ..good.clone() }, "a stack of the node's own"),
        (RadioSettings { phy: "802.11g".to_owned(), channel: 1, ..good.clone() }, "no channel 36"),
    ];
    for (settings, words) in cases {
        let mut world = World::new(1, reference_loss());
        let error = world.medium.add_radio("a", settings, place()).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
    let mut world = World::new(1, reference_loss());
    let (a, b) = (world.add(good, 0.0, 0.0), world.add(RadioSettings::default(), 1.0, 0.0));
    let scan = RadioChange::Scan { channels: vec![], active: false, dwell_ns: 20 * MS };
    for change in [RadioChange::Channel(36), scan] {
        let error = world.medium.check(a, &change).expect_err("it hops");
        assert!(error.to_string().contains("without a hopping sequence"), "{error}");
        assert_eq!(world.medium.check(b, &change), Ok(()));
    }
    let error = world.medium.add_card("card", CardSettings::default(), &[b, a]).expect_err("it hops");
    assert!(error.to_string().contains("do not share a card"), "{error}");
}

#[test]
fn a_medium_whose_hopping_radios_are_off_has_no_event() {
    let mut world = World::new(1, reference_loss());
    let slots = SlotSettings { frame: 2, length_ns: MS, guard_ns: 0, own: vec![0], hold: true };
    let settings = RadioSettings { hops: Some(hops(1, 0, MS, 0)), slots: Some(slots), ..at_rate(36.0) };
    let (a, b) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings, 1.0, 0.0));
    world.run(at(0.1));
    assert!(world.medium.next_at().is_some_and(|next| next <= at(0.101)));
    for radio in [a, b] {
        world.medium.change(radio, &RadioChange::On(false), &mut world.sinks);
    }
    world.run(at(0.2));
    assert_eq!(world.medium.next_at(), None);
    // Turned on again, both are on the channel of the dwell, and follow it.
    world.run(at(0.2345));
    for radio in [a, b] {
        world.medium.change(radio, &RadioChange::On(true), &mut world.sinks);
    }
    world.saturate(at(0.2345), a, b, PAYLOAD);
    world.start_counting(at(0.2345));
    world.run(at(1.2345));
    let rate = world.goodput(a, b, Span::from_secs(1));
    let (mut other, pairs) = pairs(
        &[Some(hops(1, 0, MS, 0))],
        &RadioSettings {
            slots: Some(SlotSettings { frame: 2, length_ns: MS, guard_ns: 0, own: vec![0], hold: true }),
            ..at_rate(36.0)
        },
    );
    other.run(at(1.0));
    let expected = other.goodput(pairs[0].0, pairs[0].1, Span::from_secs(1));
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} Mbit/s for {expected}");
}
