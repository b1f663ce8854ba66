//! VLANs: no frame leaves in another VLAN, and each leaves with the correct tag.

mod common;

use airloom_engine::settings::{LinkSettings, SwitchSettings, VlanSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Direction, DropReason, End, Engine, PortId};
use common::{Book, check_ledger, mac, offer_super};
use proptest::prelude::*;

fn access(vlan: u16) -> VlanSettings {
    VlanSettings::Access { vlan }
}

fn trunk(allowed: &[u16], native: Option<u16>) -> VlanSettings {
    VlanSettings::Trunk { allowed: allowed.to_vec(), native }
}

/// One switch, a port for each setting; `None` leaves a port unconfigured.
fn star(settings: &[Option<VlanSettings>]) -> (Engine, Vec<PortId>) {
    let mut engine = Engine::new(1);
    let switch = SwitchSettings::Switch { ageing_ns: 300_000_000_000, addresses: 1000 };
    let switch = engine.add_switch("s", &switch).expect("new");
    let ports = settings
        .iter()
        .enumerate()
        .map(|(number, vlan)| {
            let port = engine.add_port(&number.to_string(), false).expect("new");
            let plain = LinkSettings::default();
            let link = engine
                .connect(&number.to_string(), End::Port(port), End::Switch(switch), &plain, &plain)
                .expect("valid");
            if let Some(vlan) = vlan {
                engine.set_vlan(link, Direction::Backward, vlan).expect("a switch is there");
            }
            port
        })
        .collect();
    (engine, ports)
}

/// A frame of 100 octets and its tags.
fn frame(to: [u8; 6], from: [u8; 6], tags: &[[u8; 4]], mark: u8) -> Vec<u8> {
    let mut octets = [to, from].concat();
    octets.extend(tags.concat());
    octets.extend([0x88, 0xb5]);
    octets.extend([mark; 86]);
    octets
}

fn tag(vlan: u16) -> [u8; 4] {
    let [a, b] = vlan.to_be_bytes();
    [0x81, 0, a, b]
}

/// Offers a frame and returns the output: ports and octets.
fn send(engine: &mut Engine, port: PortId, at: u64, octets: &[u8]) -> (Vec<(usize, Vec<u8>)>, Book) {
    let pool = engine.pool();
    let buffer = pool.take(octets.len());
    pool.octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
    let length = u32::try_from(octets.len()).expect("small");
    engine.offer(
        port,
        Instant::from_nanos(at),
        airloom_engine::frame::Frame::new(buffer, length, None, None),
    );
    let mut book = Book::default();
    engine.advance(Instant::from_nanos(at), &mut book);
    check_ledger(engine);
    let out = book.deliveries.iter().map(|one| (one.port.index(), one.octets.clone())).collect();
    (out, book)
}

#[test]
fn tags_are_put_and_taken_at_the_edge_and_priorities_kept() {
    let (mut engine, ports) = star(&[
        Some(access(10)),
        Some(access(20)),
        Some(trunk(&[10, 20], None)),
        Some(trunk(&[20], Some(10))),
    ]);
    let all = [0xff; 6];
    let plain = frame(all, mac(1), &[], 7);
    let (out, _) = send(&mut engine, ports[0], 1, &plain);
    assert_eq!(out, [(2, frame(all, mac(1), &[tag(10)], 7)), (3, plain)], "native: no tag");
    // Priority 5 and drop eligibility are kept; the tag is removed where the VLAN is native.
    let (out, _) = send(&mut engine, ports[2], 2, &frame(all, mac(2), &[tag(0xb000 | 20)], 8));
    assert_eq!(out, [(1, frame(all, mac(2), &[], 8)), (3, frame(all, mac(2), &[tag(0xb000 | 20)], 8))]);
    // A tag with VLAN 0 is a priority tag.
    let (out, _) = send(&mut engine, ports[0], 3, &frame(all, mac(3), &[tag(0x6000)], 9));
    assert_eq!(out[0], (2, frame(all, mac(3), &[tag(0x6000 | 10)], 9)));
    // Only the outermost tag counts.
    let inner = tag(99);
    let (out, _) = send(&mut engine, ports[2], 4, &frame(all, mac(4), &[tag(10), inner], 1));
    assert_eq!(out[0], (0, frame(all, mac(4), &[inner], 1)));
    // A service tag is payload.
    let service = [0x88, 0xa8, 0, 20];
    let (out, _) = send(&mut engine, ports[0], 5, &frame(all, mac(5), &[service], 1));
    assert_eq!(out[0], (2, frame(all, mac(5), &[tag(10), service], 1)));
}

#[test]
fn what_a_port_does_not_take_is_dropped_for_that() {
    let (mut engine, ports) = star(&[Some(access(10)), Some(trunk(&[10], None)), None]);
    for (port, tags) in
        [(0, vec![tag(20)]), (1, vec![tag(20)]), (1, vec![]), (1, vec![tag(4095)]), (2, vec![tag(10)])]
    {
        let (out, book) = send(&mut engine, ports[port], 1, &frame([0xff; 6], mac(1), &tags, 1));
        assert!(out.is_empty());
        assert_eq!(book.dropped(DropReason::WrongVlan), 1, "port {port}, tags {tags:?}");
    }
}

#[test]
fn addresses_are_learnt_for_each_vlan() {
    let (mut engine, ports) =
        star(&[Some(access(10)), Some(access(10)), Some(access(20)), Some(access(20)), None, None]);
    // The same address in two VLANs, and in the default one.
    for port in [0, 2, 4] {
        send(&mut engine, ports[port], 1, &frame([0xff; 6], mac(1), &[], 1));
    }
    for (from, to) in [(1, 0), (3, 2), (5, 4)] {
        let (out, _) = send(&mut engine, ports[from], 2, &frame(mac(1), mac(9), &[], 1));
        assert_eq!(out.iter().map(|one| one.0).collect::<Vec<_>>(), [to]);
    }
}

#[test]
fn a_super_frame_gets_its_tag_in_every_segment() {
    let (mut engine, ports) = star(&[Some(access(10)), Some(trunk(&[10], None)), Some(access(10))]);
    let mut book = Book::default();
    offer_super(&mut engine, ports[0], 1, 10_000, 1_000);
    engine.advance(Instant::from_nanos(1), &mut book);
    check_ledger(&mut engine);
    let of = |port: usize| -> Vec<Vec<u8>> {
        let found = book.deliveries.iter().filter(|one| one.port == ports[port]);
        found.map(|one| one.octets.clone()).collect()
    };
    let (tagged, plain) = (of(1), of(2));
    assert_eq!(plain.len(), 10);
    for (tagged, plain) in tagged.iter().zip(&plain) {
        assert_eq!(tagged[12..16], tag(10));
        assert_eq!([&tagged[..12], &tagged[16..]].concat(), *plain, "headers are those of the segment");
    }
    assert_eq!(engine.ledger().tags_put, 40);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let mut engine = Engine::new(1);
    let switch = engine.add_switch("s", &SwitchSettings::Hub).expect("new");
    let port = engine.add_port("p", false).expect("new");
    let plain = LinkSettings::default();
    let link = engine.connect("l", End::Port(port), End::Switch(switch), &plain, &plain).expect("valid");
    for vlan in [access(0), access(4095), trunk(&[1, 4096], None), trunk(&[1], Some(0))] {
        let error = engine.set_vlan(link, Direction::Backward, &vlan).expect_err("out of range");
        assert_eq!(error.code(), "link.vlan");
    }
    assert!(engine.set_vlan(link, Direction::Forward, &access(1)).is_err(), "a port is no switch");
}

fn any_port() -> impl Strategy<Value = Option<VlanSettings>> {
    let number = 1u16..5;
    prop_oneof![
        Just(None),
        number.clone().prop_map(|vlan| Some(access(vlan))),
        (proptest::collection::vec(number.clone(), 0..4), proptest::option::of(number))
            .prop_map(|(allowed, native)| Some(trunk(&allowed, native))),
    ]
}

/// The VLANs that a port carries with a tag, and its untagged VLAN.
fn carried(port: Option<&VlanSettings>) -> (Vec<u16>, Option<u16>) {
    match port {
        None => (vec![], Some(1)),
        Some(VlanSettings::Access { vlan }) => (vec![], Some(*vlan)),
        Some(VlanSettings::Trunk { allowed, native }) => (allowed.clone(), *native),
    }
}

proptest! {
    #[test]
    fn a_frame_never_leaves_in_another_vlan(
        mut settings in proptest::collection::vec(any_port(), 2..7),
        frames in proptest::collection::vec((any::<prop::sample::Index>(), 0u16..8, 0u16..8, any::<bool>(), 0u8..4), 1..40),
    ) {
        // At least one port is configured for VLANs.
        settings.push(Some(access(1)));
        let (mut engine, ports) = star(&settings);
        for (number, (from, vlan, priority, tagged, to)) in frames.into_iter().enumerate() {
            let from = from.index(ports.len());
            let tags = if tagged { vec![tag(priority << 13 | vlan)] } else { vec![] };
            let to = if to == 0 { [0xff; 6] } else { mac(to) };
            let source = mac(u8::try_from(from).expect("few"));
            let sent = frame(to, source, &tags, u8::try_from(number).expect("few"));
            let (out, _) = send(&mut engine, ports[from], number as u64, &sent);
            let (with, without) = carried(settings[from].as_ref());
            let vlan = match vlan {
                vlan if tagged && vlan > 0 => (with.contains(&vlan) || without == Some(vlan)).then_some(vlan),
                _ => without,
            };
            for (port, octets) in out {
                let vlan = vlan.expect("what is not taken does not leave");
                prop_assert_ne!(port, from);
                let (with, without) = carried(settings[port].as_ref());
                let expected = if without == Some(vlan) {
                    vec![]
                } else {
                    prop_assert!(with.contains(&vlan), "port {} does not carry VLAN {}", port, vlan);
                    vec![tag(if tagged { priority << 13 } else { 0 } | vlan)]
                };
                prop_assert_eq!(octets, frame(to, source, &expected, u8::try_from(number).expect("few")));
            }
        }
        prop_assert_eq!(engine.pool().in_use(), 0);
    }
}
