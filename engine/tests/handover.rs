//! Grants that change at an exact time, and transmissions outside of slots that nobody holds back.

#![allow(clippy::cast_precision_loss)]

mod stack;
mod world;

use airloom_engine::medium::{Police, Policed, RadioChange, RadioId, RadioSettings, SlotSettings, Violated};
use airloom_engine::time::{Instant, Span};
use airloom_engine::{Change, DropReason};
use stack::{Lab, ask, mac, qos_data, wlan};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// Length of data of [`PAYLOAD`] at 36 Mbit/s, and of the whole exchange with SIFS and acknowledgment.
const DATA: u64 = 364 * US;
const EXCHANGE: u64 = 408 * US;

fn grant(slice: &str, channels: &[u16], police: Police) -> Policed {
    Policed {
        slice: slice.to_owned(),
        channels: channels.to_vec(),
        power_dbm: None,
        ssids: Vec::new(),
        airtime_weight: None,
        assigned: true,
        police,
    }
}

fn slots(own: &[u16], hold: bool) -> SlotSettings {
    SlotSettings { frame: 4, length_ns: MS, guard_ns: 100 * US, own: own.to_vec(), hold }
}

#[test]
fn a_grant_ends_and_begins_at_the_nanosecond() {
    let moved = 20 * MS;
    for (before, after) in [(36, 44), (44, 36)] {
        for sent in [moved - 1, moved] {
            let mut lab = Lab::new(5);
            let added = [1, 2].map(|node| lab.add(node, f64::from(node), wlan()));
            for (node, (port, _)) in (1..).zip(added) {
                assert!(lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack"));
            }
            let [(port, radio), _] = added;
            let medium = lab.engine.medium(lab.medium).expect("known");
            medium.police(radio, &grant("one", &[before], Police::Enforce)).expect("a channel");
            let new = RadioChange::Grant(Box::new(grant("one", &[after], Police::Enforce)));
            let change = Change::Radio(lab.medium, radio, Box::new(new));
            lab.engine.schedule(Instant::from_nanos(moved), change).expect("a channel");
            lab.send(port, sent, &qos_data(mac(2), mac(1), 1, 200), ask(1, &[(0, 1)]));
            lab.run(40 * MS);
            let granted = if sent < moved { before } else { after };
            let medium = lab.engine.medium(lab.medium).expect("known");
            let found: Vec<_> =
                medium.violations().0.iter().map(|one| (one.what, one.from.nanos(), one.frames)).collect();
            let refused = granted != 36;
            let wanted = if refused { vec![(Violated::Channel, sent, 1)] } else { Vec::new() };
            assert_eq!(found, wanted, "{before} to {after}, sent at {sent}");
            assert_eq!(lab.book.received.len(), usize::from(!refused));
        }
    }
}

#[test]
fn a_radio_without_a_stack_follows_its_grant() {
    let mut world = World::new(1, reference_loss());
    let (from, to) = (world.add(at_rate(36.0), 0.0, 0.0), world.add(at_rate(36.0), 1.0, 0.0));
    world.saturate(Instant::ZERO, from, to, PAYLOAD);
    let mut used = Vec::new();
    for (second, channels, most) in [(0.0, [36, 40], 20.0), (1.0, [40, 44], 20.0), (2.0, [44, 48], 10.0)] {
        world.run(at(second));
        let policed = Policed { power_dbm: Some(most), ..grant("one", &channels, Police::Enforce) };
        for radio in [from, to] {
            world.medium.change(radio, &RadioChange::Grant(Box::new(policed.clone())), &mut world.sinks);
        }
        let settings = world.medium.settings(from);
        used.push((world.medium.channel(from).number, settings.power_dbm));
    }
    world.run(at(3.0));
    assert_eq!(used, [(36, 16.0), (40, 16.0), (44, 10.0)]);
    assert!(world.medium.violations().0.is_empty());
    let sent: Vec<_> = world.medium.uses(from).iter().map(|used| used.channel.number).collect();
    assert_eq!(sent, [36, 40, 44]);
    assert!(world.goodput(from, to, Span::from_secs(3)) > 22.0);
}

#[test]
fn a_grant_that_the_radio_cannot_have_is_refused_when_it_is_scheduled() {
    let mut world = World::new(1, reference_loss());
    let radio = world.add(at_rate(36.0), 0.0, 0.0);
    let no_channel = RadioChange::Grant(Box::new(grant("one", &[1], Police::Watch)));
    let no_slot = RadioChange::Slots(Some(slots(&[4], true)));
    for (change, named) in [(no_channel, "channel"), (no_slot, "slots.own")] {
        let error = world.medium.check(radio, &change).expect_err("not possible");
        assert!(error.to_string().contains(named), "{error}");
    }
}

/// A pair with the second of four slots, which does not wait for it.
fn watched(police: Police) -> (World, RadioId, RadioId) {
    let mut world = World::new(1, reference_loss());
    let settings = RadioSettings { slots: Some(slots(&[1], false)), ..at_rate(36.0) };
    let (from, to) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings, 1.0, 0.0));
    for radio in [from, to] {
        world.medium.police(radio, &grant("one", &[36], police)).expect("a channel");
    }
    (world, from, to)
}

#[test]
fn an_exchange_outside_of_its_slots_is_recorded_with_its_time_outside() {
    // The window is from 1 to 1.9 ms in each 4 ms. Offers on an idle channel are sent at once.
    let cases = [
        (200 * MS + 500 * US, Some(EXCHANGE)),
        (400 * MS + 1_000 * US, None),
        (600 * MS + 1_900 * US - EXCHANGE, None),
        (800 * MS + 1_900 * US - EXCHANGE + 1, Some(1)),
        (1_000 * MS + 1_000 * US - 1, Some(1)),
        (1_200 * MS + 1_900 * US, Some(EXCHANGE)),
    ];
    for police in [Police::Watch, Police::Enforce] {
        let (mut world, from, to) = watched(police);
        for (at, _) in cases {
            world.run(Instant::from_nanos(at));
            world.offer(Instant::from_nanos(at), from, Some(to), PAYLOAD);
        }
        world.run(at(2.0));
        let found: Vec<_> = world
            .medium
            .violations()
            .0
            .iter()
            .map(|one| {
                assert_eq!((one.radio, one.what, one.frames), (from, Violated::Slot, 1));
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let outside = (one.amount * 1e3).round() as u64;
                (one.from.nanos(), outside)
            })
            .collect();
        let wanted: Vec<_> = cases.iter().filter_map(|&(at, by)| by.map(|by| (at, by))).collect();
        assert_eq!(found, wanted, "{police:?}");
        let refused = if police == Police::Watch { 0 } else { wanted.len() };
        assert_eq!(world.sinks.delivered, (cases.len() - refused) as u64);
        assert_eq!(world.sinks.drops.get(&DropReason::OutsideGrant).copied().unwrap_or(0), refused as u64);
    }
}

#[test]
fn violations_of_slots_that_follow_each_other_are_one_record_with_the_longest() {
    let (mut world, from, to) = watched(Police::Watch);
    world.saturate(Instant::ZERO, from, to, PAYLOAD);
    world.run(at(1.0));
    let (found, unrecorded) = world.medium.violations();
    let [one] = found[..] else { panic!("{found:?}") };
    assert_eq!(unrecorded, 0);
    assert!((one.amount - 408.0).abs() < 1e-9, "{} us", one.amount);
    // Of 1 s in 519.5 us each, all but those that lie in 0.9 of 4 ms.
    assert!((1_400..1_750).contains(&one.frames), "{one:?}");
    assert!(world.goodput(from, to, Span::from_secs(1)) > 22.0, "it was not held back");
}

#[test]
fn slots_that_are_handed_over_are_used_by_their_holder_of_the_time() {
    // In the middle of the second of two slots.
    let handed = 1_000 * MS + 1_500 * US;
    let table = |own| SlotSettings { frame: 2, ..slots(&[own], true) };
    let mut world = World::new(1, reference_loss());
    let pairs = [0, 1].map(|own| {
        let settings = RadioSettings { slots: Some(table(own)), ..at_rate(36.0) };
        let x = f64::from(own);
        (world.add(settings.clone(), x, 0.0), world.add(settings, x, 1.0))
    });
    for (from, to) in pairs {
        world.saturate(Instant::ZERO, from, to, PAYLOAD);
    }
    world.sinks.keep_arrivals = true;
    world.run(Instant::from_nanos(handed - 1));
    world.medium.advance(Instant::from_nanos(handed), &mut world.sinks);
    for (own, (from, to)) in [1, 0].into_iter().zip(pairs) {
        for radio in [from, to] {
            world.medium.change(radio, &RadioChange::Slots(Some(table(own))), &mut world.sinks);
        }
    }
    world.run(at(2.0));
    let mut numbers = [[0; 2]; 2];
    for (radio, frame, at) in std::mem::take(&mut world.sinks.arrivals) {
        let began = at.nanos() - DATA;
        let after = began > handed;
        let second = radio == pairs[1].1;
        let own = u64::from(second != after);
        let offset = began % (2 * MS);
        assert!((own * MS..own * MS + 900 * US - EXCHANGE + 100).contains(&offset), "{began} of {own}");
        numbers[usize::from(second)][usize::from(after)] += 1;
        world.sinks.pool.release(frame.buffer);
    }
    assert!(numbers.iter().flatten().all(|&number| number > 450), "{numbers:?}");
}

#[test]
fn weights_change_at_the_time_of_the_grant() {
    let mut world = World::new(1, reference_loss());
    let pairs = [0.0, 1.0].map(|x| [0.0, 1.0].map(|y| world.add(at_rate(36.0), x, y)));
    let weighted =
        |slice: &str, weight| Policed { airtime_weight: Some(weight), ..grant(slice, &[36], Police::Watch) };
    let give = |world: &mut World, weights: [u16; 2]| {
        for ((pair, slice), weight) in pairs.iter().zip(["one", "two"]).zip(weights) {
            for &radio in pair {
                let new = RadioChange::Grant(Box::new(weighted(slice, weight)));
                world.medium.change(radio, &new, &mut world.sinks);
            }
        }
    };
    let sent = |world: &World| {
        pairs.map(|pair| -> f64 {
            let uses = pair.into_iter().flat_map(|radio| world.medium.uses(radio));
            uses.map(|used| used.sent.nanos() as f64).sum()
        })
    };
    give(&mut world, [1, 1]);
    for [from, to] in pairs {
        world.saturate(Instant::ZERO, from, to, PAYLOAD);
    }
    world.run(at(5.0));
    let before = sent(&world);
    assert!((before[1] / before[0] - 1.0).abs() < 0.01, "{before:?}");
    give(&mut world, [1, 4]);
    world.run(at(10.0));
    let after = sent(&world);
    let second = (after[1] - before[1]) / (after[0] - before[0]);
    assert!((second / 4.0 - 1.0).abs() < 0.02, "{second}");
}

#[test]
fn a_radio_changes_hands_at_the_nanosecond() {
    let handed = 20 * MS;
    for sent in [handed - 1, handed] {
        let mut world = World::new(1, reference_loss());
        // Two radios on each of two nodes stand for one, which two slices have in turn.
        let pairs = ["one", "two"].map(|slice| {
            [0.0, 5.0].map(|x| {
                let radio = world.add(at_rate(36.0), x, 0.0);
                let assigned = slice == "one";
                let policed = Policed { assigned, ..grant(slice, &[36], Police::Enforce) };
                world.medium.police(radio, &policed).expect("a channel");
                assert_eq!((world.medium.is_on(radio), world.medium.is_wanted_on(radio)), (assigned, true));
                radio
            })
        });
        let hand_over = |world: &mut World| {
            for (pair, slice) in pairs.iter().zip(["one", "two"]) {
                for &radio in pair {
                    let new = Policed { assigned: slice == "two", ..grant(slice, &[36], Police::Enforce) };
                    let change = RadioChange::Grant(Box::new(new));
                    world.medium.change(radio, &change, &mut world.sinks);
                }
            }
        };
        world.run(Instant::from_nanos(sent));
        if sent == handed {
            hand_over(&mut world);
        }
        for [from, to] in pairs {
            world.offer(Instant::from_nanos(sent), from, Some(to), PAYLOAD);
        }
        // A frame on the air at the handover goes on to its end, and nobody receives it any more.
        let held = pairs[usize::from(sent == handed)];
        assert_eq!(world.sinks.drops, [(DropReason::RadioOff, 1)].into());
        world.run(Instant::from_nanos(handed));
        hand_over(&mut world);
        world.run(Instant::from_nanos(2 * handed));
        let uses = pairs.map(|[from, _]| world.medium.uses(from).iter().map(|used| used.frames).sum::<u64>());
        let frames = held.map(|radio| world.medium.uses(radio).iter().map(|used| used.frames).sum::<u64>());
        if sent == handed {
            assert_eq!((uses, frames, world.sinks.delivered), ([0, 1], [1, 1], 1));
        } else {
            assert_eq!((uses, frames, world.sinks.delivered), ([1, 0], [1, 0], 0));
            assert_eq!(world.sinks.drops, [(DropReason::RadioOff, 1), (DropReason::OutOfRange, 1)].into());
        }
    }
}

#[test]
fn what_its_node_sets_holds_when_a_slice_has_the_radio() {
    let mut world = World::new(1, reference_loss());
    let radio = world.add(at_rate(36.0), 0.0, 0.0);
    let assign = |world: &mut World, assigned| {
        let new = Policed { assigned, ..grant("one", &[36], Police::Watch) };
        world.medium.change(radio, &RadioChange::Grant(Box::new(new)), &mut world.sinks);
    };
    let mut set = |step: &str, on: bool| {
        match step {
            "assign" | "take" => assign(&mut world, step == "assign"),
            _ => world.medium.change(radio, &RadioChange::On(step == "up"), &mut world.sinks),
        }
        assert_eq!(world.medium.is_on(radio), on, "{step}");
    };
    set("take", false);
    set("up", false);
    set("assign", true);
    set("down", false);
    set("take", false);
    set("assign", false);
    set("up", true);
    set("take", false);
    set("down", false);
    set("assign", false);
}

#[test]
fn waiting_frames_of_a_radio_that_is_taken_are_dropped() {
    let mut world = World::new(1, reference_loss());
    let (from, to) = (world.add(at_rate(36.0), 0.0, 0.0), world.add(at_rate(36.0), 5.0, 0.0));
    for _ in 0..50 {
        world.offer(Instant::ZERO, from, Some(to), PAYLOAD);
    }
    world.run(Instant::from_nanos(DATA / 2));
    let taken = Policed { assigned: false, ..grant("one", &[36], Police::Watch) };
    world.medium.change(from, &RadioChange::Grant(Box::new(taken)), &mut world.sinks);
    assert_eq!(world.medium.queued(from), 1, "the one on the air");
    world.run(at(1.0));
    assert_eq!((world.sinks.delivered, world.sinks.drops[&DropReason::RadioOff]), (1, 49));
    assert_eq!(world.medium.queued(from), 0);
}

#[test]
fn a_stack_without_the_radio_gets_no_acknowledgment() {
    let handed = 20 * MS;
    for sent in [handed - 1, handed] {
        let mut lab = Lab::new(5);
        let added = [1, 2].map(|node| lab.add(node, f64::from(node), wlan()));
        for (node, (port, _)) in (1..).zip(added) {
            assert!(lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack"));
        }
        let [(port, radio), _] = added;
        let assigned = |assigned| Policed { assigned, ..grant("one", &[36], Police::Enforce) };
        lab.engine.medium(lab.medium).expect("known").police(radio, &assigned(false)).expect("a channel");
        let change = Change::Radio(lab.medium, radio, Box::new(RadioChange::Grant(Box::new(assigned(true)))));
        lab.engine.schedule(Instant::from_nanos(handed), change).expect("a channel");
        lab.send(port, sent, &qos_data(mac(2), mac(1), 1, 200), ask(1, &[(0, 1)]));
        lab.run(2 * handed);
        let has = sent == handed;
        let acknowledged: Vec<_> =
            lab.book.statuses.iter().map(|(_, _, status)| status.acknowledged).collect();
        assert_eq!(acknowledged, [has]);
        assert_eq!(lab.book.received.len(), usize::from(has));
        let off = lab.book.drops.iter().filter(|(_, why)| *why == DropReason::RadioOff).count();
        assert_eq!(off, usize::from(!has));
    }
}
