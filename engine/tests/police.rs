//! Transmissions of slices' radios against their grants: records, refusals, and what others notice.

mod stack;
mod world;

use airloom_engine::medium::{
    Police, Policed, RadioChange, RadioId, RadioSettings, RateSettings, Violated, Violation,
};
use airloom_engine::time::{Instant, Span};
use airloom_engine::{Change, DropReason};
use stack::{Lab, ask, beacon, mac, qos_data, wlan};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

const MS: u64 = 1_000_000;

fn grant(slice: &str, channel: u16, police: Police) -> Policed {
    Policed {
        slice: slice.to_owned(),
        channels: vec![channel],
        power_dbm: Some(16.0),
        ssids: vec![slice.to_owned()],
        airtime_weight: None,
        assigned: true,
        police,
    }
}

/// Two slices of two radios each, a few metres apart: `one` on channel 36, `two` on 44.
fn two_slices(police: Police) -> (World, [RadioId; 4]) {
    let mut world = World::new(7, reference_loss());
    let tuned = |channel| RadioSettings { channel, ..at_rate(36.0) };
    let radios =
        [(36, 0.0), (36, 1.0), (44, 2.0), (44, 3.0)].map(|(channel, x)| world.add(tuned(channel), x, 0.0));
    for (radio, (slice, channel)) in
        radios.into_iter().zip([("one", 36), ("one", 36), ("two", 44), ("two", 44)])
    {
        world.medium.police(radio, &grant(slice, channel, police)).expect("channels of the band");
    }
    (world, radios)
}

fn change(world: &mut World, radio: RadioId, change: &RadioChange) {
    world.medium.check(radio, change).expect("a permitted setting");
    world.medium.change(radio, change, &mut world.sinks);
}

fn saturated(police: Police, offends: Option<&RadioChange>) -> (World, [RadioId; 4]) {
    let (mut world, radios) = two_slices(police);
    world.saturate(Instant::ZERO, radios[0], radios[1], PAYLOAD);
    if let Some(offence) = offends {
        world.saturate(Instant::ZERO, radios[2], radios[3], PAYLOAD);
        change(&mut world, radios[2], offence);
        change(&mut world, radios[3], offence);
    }
    world.run(at(2.0));
    (world, radios)
}

fn rate(police: Police, offends: Option<&RadioChange>) -> f64 {
    let (world, radios) = saturated(police, offends);
    world.goodput(radios[0], radios[1], Span::from_secs(2))
}

#[test]
fn an_offender_takes_half_of_the_channel_if_watched_and_nothing_if_enforced() {
    let offence = RadioChange::Channel(36);
    let alone = rate(Police::Watch, None);
    assert!(alone > 20.0, "{alone} Mbit/s");
    let watched = (alone - rate(Police::Watch, Some(&offence))) / alone;
    assert!((0.4..0.6).contains(&watched), "coupling {watched}");
    for police in [Police::Enforce, Police::Cut(10)] {
        let coupling = (alone - rate(police, Some(&offence))) / alone;
        assert!(coupling.abs() < 0.0005, "coupling {coupling} with {police:?}");
    }
}

#[test]
fn a_violation_says_when_what_and_by_how_much() {
    let (world, radios) = saturated(Police::Watch, Some(&RadioChange::Channel(36)));
    let (found, unrecorded) = world.medium.violations();
    assert_eq!(unrecorded, 0);
    let [sender, receiver] = found[..] else { panic!("{found:?}") };
    assert_eq!((sender.radio, receiver.radio), (radios[2], radios[3]));
    for &violation in &found {
        assert_eq!((violation.what, violation.channel.number), (Violated::Channel, 36));
        assert!((violation.amount - 40.0).abs() < 1e-9, "{} MHz off", violation.amount);
        assert_eq!(world.medium.concerned(violation), ["one"]);
        assert_eq!(world.medium.slice(violation.radio), Some("two"));
        assert!(violation.until.since(violation.from) > Span::from_millis(1_900));
    }
    // The sender's data and the receiver's acknowledgments, each transmission once.
    let frames = |radio| world.medium.uses(radio).iter().map(|used| used.frames).sum::<u64>();
    let offending: u64 = found.iter().map(|violation| violation.frames).sum();
    assert_eq!(offending, frames(radios[2]) + frames(radios[3]));
    assert!(offending > 1_000);
}

#[test]
fn one_slice_cannot_take_the_records_of_another() {
    let (mut world, radios) = saturated(Police::Enforce, Some(&RadioChange::Power(18.0)));
    // Each power is another violation: many more than a slice has records for.
    for step in 0..1_500_u32 {
        let change_at = at(2.0 + f64::from(step) * 0.002);
        world.run(change_at);
        change(&mut world, radios[2], &RadioChange::Power(19.0 + f64::from(step) * 1e-3));
    }
    let (found, lost) = world.medium.violations();
    assert_eq!(found.len(), 1_024);
    assert!(lost > 0 && found.iter().all(|one| one.radio == radios[2]));
    change(&mut world, radios[0], &RadioChange::Power(19.0));
    world.run(at(6.0));
    let (found, lost) = world.medium.violations();
    let own: Vec<_> = found.iter().filter(|one| one.radio == radios[0]).collect();
    let [Violation { what: Violated::Power, frames, .. }] = own[..] else { panic!("{own:?}") };
    assert!(*frames > 0);
    // Each refused frame of the other slice is in a record or in its own number.
    assert_eq!(world.medium.unrecorded().collect::<Vec<_>>(), [("two", lost)]);
    let recorded: u64 = found.iter().map(|one| one.frames).sum();
    assert_eq!(recorded + lost, world.sinks.drops[&DropReason::OutsideGrant]);
    world.medium.forget_violations("two");
    let (found, lost) = world.medium.violations();
    assert!(lost == 0 && found.len() == 1 && found[0].radio == radios[0], "{found:?}");
}

#[test]
fn power_above_the_grant_is_refused_with_its_excess() {
    let (mut world, radios) = saturated(Police::Enforce, None);
    change(&mut world, radios[0], &RadioChange::Power(19.0));
    world.start_counting(at(2.1));
    world.run(at(3.0));
    assert!(world.sinks.tallies.is_empty(), "{:?}", world.sinks.tallies);
    let refused = world.sinks.drops[&DropReason::OutsideGrant];
    let (found, _) = world.medium.violations();
    let [Violation { what: Violated::Power, frames, amount, .. }] = found[..] else { panic!("{found:?}") };
    assert_eq!(*frames, refused);
    assert!((amount - 3.0).abs() < 1e-9, "{amount} dB");
    // Back within the grant it transmits again.
    change(&mut world, radios[0], &RadioChange::Power(10.0));
    world.start_counting(at(3.0));
    world.run(at(4.0));
    assert!(world.goodput(radios[0], radios[1], Span::from_secs(1)) > 20.0);
}

#[test]
fn a_radio_outside_its_grant_does_not_acknowledge() {
    let (mut world, radios) = two_slices(Police::Enforce);
    change(&mut world, radios[1], &RadioChange::Power(20.0));
    world.offer(Instant::ZERO, radios[0], Some(radios[1]), PAYLOAD);
    world.run(at(1.0));
    let counts = world.medium.counts(radios[0]);
    assert_eq!((counts.sent, counts.unanswered, counts.given_up), (7, 7, 1));
    assert_eq!(world.sinks.delivered, 1);
}

#[test]
fn after_its_last_permitted_violation_the_radio_is_off_for_good() {
    let (mut world, radios) = saturated(Police::Cut(3), Some(&RadioChange::Channel(36)));
    assert!(world.medium.is_cut(radios[2]) && !world.medium.is_on(radios[2]));
    assert!(!world.medium.is_cut(radios[3]), "it never got anything to acknowledge");
    let found: Vec<_> = world.medium.violations().0.iter().map(|one| (one.radio, one.frames)).collect();
    assert_eq!(found, [(radios[2], 3)]);
    assert_eq!(world.sinks.drops[&DropReason::OutsideGrant], 3);
    assert!(world.sinks.drops[&DropReason::RadioOff] > 0);
    let refused = world.medium.check(radios[2], &RadioChange::On(true)).expect_err("for good");
    assert!(refused.to_string().contains("turned off because of violations"), "{refused}");
    world.medium.change(radios[2], &RadioChange::On(true), &mut world.sinks);
    assert!(!world.medium.is_on(radios[2]));
}

#[test]
fn a_name_of_another_slice_cannot_be_set() {
    let (mut world, radios) = two_slices(Police::Watch);
    let error = world.medium.check(radios[0], &RadioChange::Ssid("two".to_owned())).expect_err("taken");
    assert!(error.to_string().contains("names that no other slice has"), "{error}");
    change(&mut world, radios[0], &RadioChange::Ssid("free".to_owned()));
}

#[test]
fn the_airtime_of_a_slice_is_that_of_its_frames_and_acknowledgments() {
    let (mut world, radios) = two_slices(Police::Watch);
    world.offer(Instant::ZERO, radios[0], Some(radios[1]), PAYLOAD);
    world.run(at(0.1));
    let [data] = world.medium.uses(radios[0]) else { panic!("one channel") };
    // 1534 octets at 36 Mbit/s: 20 us + 86 symbols of 4 us; an acknowledgment at 24 Mbit/s: 28 us.
    assert_eq!((data.channel.number, data.frames, data.sent), (36, 1, Span::from_micros(364)));
    let [answer] = world.medium.uses(radios[1]) else { panic!("one channel") };
    assert_eq!((answer.frames, answer.sent), (1, Span::from_micros(28)));
}

/// A beacon with an SSID.
fn named(from: [u8; 6], ssid: &str, sequence: u16) -> Vec<u8> {
    let mut octets = beacon(from, sequence);
    octets.extend([0, u8::try_from(ssid.len()).expect("short")]);
    octets.extend(ssid.as_bytes());
    octets
}

/// Two stacks of different slices on one channel, and a third radio without a slice.
fn stacks(police: Police) -> (Lab, [airloom_engine::PortId; 3]) {
    let mut lab = Lab::new(5);
    let added = [1, 2, 3].map(|node| lab.add(node, f64::from(node), wlan()));
    for (node, (port, _)) in (1..).zip(added) {
        assert!(lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack"));
    }
    for (slice, (_, radio)) in ["one", "two"].into_iter().zip(added) {
        let medium = lab.engine.medium(lab.medium).expect("known");
        medium.police(radio, &grant(slice, 36, police)).expect("a channel");
    }
    (lab, added.map(|(port, _)| port))
}

#[test]
fn a_stack_may_not_use_names_of_others() {
    for (police, heard) in [(Police::Watch, 6), (Police::Enforce, 2)] {
        let (mut lab, [one, two, _]) = stacks(police);
        let frames = [
            (one, named(mac(1), "shared", 0), None),
            (two, named(mac(2), "shared", 0), Some(Violated::Ssid)),
            (two, named(mac(2), "one", 1), Some(Violated::Ssid)),
            (two, named(mac(2), "two", 2), None),
            (two, qos_data(mac(3), mac(1), 3, 200), Some(Violated::Address)),
            (
                two,
                {
                    let mut octets = named(mac(2), "other", 4);
                    octets[16..22].copy_from_slice(&mac(1));
                    octets
                },
                Some(Violated::Bssid),
            ),
        ];
        for (number, (port, octets, _)) in (1..).zip(&frames) {
            lab.send(*port, number * 10 * MS, octets, ask(number, &[(0, 1)]));
            lab.run(number * 10 * MS + 5 * MS);
        }
        let wanted: Vec<_> = frames.iter().filter_map(|(.., what)| *what).collect();
        let medium = lab.engine.medium(lab.medium).expect("known");
        let found = medium.violations().0;
        // The second and the third differ in nothing but their time.
        let kinds: Vec<_> = found.iter().flat_map(|one| (0..one.frames).map(|_| one.what)).collect();
        assert_eq!(kinds, wanted);
        assert!(found.iter().all(|one| medium.concerned(one) == ["one"]), "{found:?}");
        assert_eq!(lab.book.received.iter().filter(|got| got.port.index() == 2).count(), heard);
        let refused = lab.book.drops.iter().filter(|(_, why)| *why == DropReason::OutsideGrant).count();
        assert_eq!(refused, if police == Police::Watch { 0 } else { 4 });
        // One truthful status for each request.
        let statuses = lab.book.of(two);
        assert_eq!(statuses.len(), 5);
        let unsent = statuses.iter().filter(|status| status.attempts[0].is_none()).count();
        assert_eq!(unsent, refused);
        assert!(statuses.iter().all(|status| status.attempts[0].is_some() || !status.acknowledged));
    }
}

#[test]
fn a_stack_that_leaves_its_channel_is_refused_with_a_truthful_status() {
    let (mut lab, [_, two, _]) = stacks(Police::Enforce);
    let mut request = ask(1, &[(0, 3)]);
    request.mhz = 5_220;
    lab.send(two, MS, &qos_data(mac(3), mac(2), 1, 200), request);
    lab.run(50 * MS);
    let [status] = lab.book.of(two)[..] else { panic!("{:?}", lab.book.statuses) };
    assert!(status.attempts[0].is_none() && !status.acknowledged);
    assert!(lab.book.received.is_empty());
    let medium = lab.engine.medium(lab.medium).expect("known");
    let (found, _) = medium.violations();
    let [Violation { what: Violated::Channel, amount, frames: 1, .. }] = found[..] else {
        panic!("{found:?}")
    };
    assert!((amount - 40.0).abs() < 1e-9);
}

#[test]
fn the_ledger_balances_while_a_radio_is_cut() {
    let (mut lab, [_, two, _]) = stacks(Police::Cut(2));
    for number in 0..20 {
        let mut request = ask(number, &[(0, 1)]);
        request.mhz = 5_220;
        let sequence = u16::try_from(number).expect("few");
        lab.send(two, MS, &qos_data(mac(3), mac(2), sequence, 1_000), request);
    }
    lab.run(100 * MS);
    assert_eq!(lab.book.of(two).len(), 20);
    let of = |why| lab.book.drops.iter().filter(|drop| drop.1 == why).count();
    assert_eq!((of(DropReason::OutsideGrant), of(DropReason::RadioOff)), (2, 18));
}

#[test]
fn a_radio_without_a_slice_is_not_checked() {
    let mut lab = Lab::new(1);
    let settings = RadioSettings { rate: RateSettings::Constant(6_000_000), ..RadioSettings::default() };
    let (_, radio) = lab.add(1, 0.0, settings);
    let on = Change::Radio(lab.medium, radio, Box::new(RadioChange::Power(30.0)));
    lab.engine.schedule(Instant::ZERO, on).expect("a permitted setting");
    lab.run(MS);
    let medium = lab.engine.medium(lab.medium).expect("known");
    assert!(medium.violations().0.is_empty() && medium.uses(radio).is_empty());
    assert_eq!(medium.slice(radio), None);
}
