//! Radios of 802.11 stacks and Ethernet radios in one cell: management frames and translation.

#![allow(clippy::cast_possible_truncation)]

mod stack;

use airloom_engine::DropReason;
use airloom_engine::PortId;
use airloom_engine::frame::Frame;
use airloom_engine::medium::capture::{self, Direction, Sniffed};
use airloom_engine::medium::phy::{Channel, tables};
use airloom_engine::medium::wlan::header::{Header, Type};
use airloom_engine::medium::wlan::management::Management;
use airloom_engine::medium::wlan::translation;
use airloom_engine::medium::{Kind, RadioId};
use airloom_engine::medium::{Membership, RadioSettings, RateSettings, Roaming};
use airloom_engine::time::Instant;
use airloom_engine::time::Span;
use proptest::prelude::*;
use stack::{GROUP, Lab, ask, mac};

const MS: u64 = 1_000_000;
const SSID: &str = "cell";

fn ethernet(membership: Membership) -> RadioSettings {
    RadioSettings { membership, rate: RateSettings::Constant(54_000_000), ..RadioSettings::default() }
}

fn access_point() -> RadioSettings {
    ethernet(Membership::AccessPoint { ssid: SSID.to_owned(), beacon_ns: 102_400_000 })
}

fn station() -> RadioSettings {
    ethernet(Membership::Station(Roaming { ssid: SSID.to_owned(), ..Roaming::default() }))
}

/// An 802.11 frame: frame control, three addresses, sequence number, body.
fn frame(control: [u8; 2], addresses: [[u8; 6]; 3], sequence: u16, body: &[u8]) -> Vec<u8> {
    let mut octets = vec![control[0], control[1], 0, 0];
    octets.extend(addresses.concat());
    octets.extend((sequence << 4).to_le_bytes());
    octets.extend(body);
    octets
}

fn ssid_element() -> Vec<u8> {
    [&[0, SSID.len() as u8], SSID.as_bytes(), &[1, 3, 0x8c, 0x12, 0x98]].concat()
}

/// LLC and SNAP header of IPv4, and a payload.
fn llc(payload: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], payload].concat()
}

fn ethernet_frame(to: [u8; 6], from: [u8; 6], payload: &[u8]) -> Vec<u8> {
    [&to[..], &from, &[8, 0], payload].concat()
}

/// Offers an Ethernet frame.
fn offer(lab: &mut Lab, port: PortId, at: u64, octets: &[u8]) {
    let buffer = lab.engine.pool().take(octets.len());
    lab.engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
    lab.engine.offer(port, Instant::from_nanos(at), Frame::new(buffer, octets.len() as u32, None, None));
}

/// The last frame of this type and subtype that a stack received, after `after`.
fn last(lab: &Lab, port: PortId, control: u8) -> Option<Vec<u8>> {
    let found = lab.book.at(port).into_iter().rev().find(|received| received.octets[0] == control);
    found.map(|received| received.octets.clone())
}

fn management(octets: &[u8]) -> Management<'_> {
    let header = Header::parse(octets).expect("a header");
    assert_eq!(header.kind(), Some(Type::Management));
    Management::parse(header.subtype(), &octets[header.length..]).expect("well formed")
}

/// A stack's station that has joined the Ethernet access point `node`: 1, at port `port`.
fn join(lab: &mut Lab, port: PortId, own: u8, from: u64) {
    let to_ap = |control, body: &[u8]| frame([control, 0], [mac(1), mac(own), mac(1)], 1, body);
    lab.send(port, from * MS, &to_ap(0xb0, &[0, 0, 1, 0, 0, 0]), ask(1, &[(0, 3)]));
    lab.run((from + 20) * MS);
    let answer = last(lab, port, 0xb0).expect("an answer");
    let open = Management::Authentication { algorithm: 0, transaction: 2, status: 0 };
    assert_eq!(management(&answer), open);
    assert_eq!(answer[4..10], mac(own));
    assert_eq!(answer[10..22], [mac(1), mac(1)].concat());
    let request = [&[1, 0, 10, 0][..], &ssid_element()].concat();
    lab.send(port, (from + 20) * MS, &to_ap(0, &request), ask(2, &[(0, 3)]));
    lab.run((from + 40) * MS);
    let answer = last(lab, port, 0x10).expect("an answer");
    assert_eq!(management(&answer), Management::AssociationResponse { status: 0, identifier: 1 });
}

#[test]
fn a_stack_joins_an_ethernet_access_point() {
    let mut lab = Lab::new(1);
    let (ap, _) = lab.add(1, 0.0, access_point());
    let sta = lab.stack(2, 5.0);
    let (plain, _) = lab.add(3, 8.0, station());
    lab.run(500 * MS);
    let beacon = last(&lab, sta, 0x80).expect("a beacon");
    let Management::Beacon(said) = management(&beacon) else { panic!("{beacon:?}") };
    assert_eq!((said.ssid, said.interval, said.is_access_point()), (SSID.as_bytes(), 100, true));
    // The time of its first symbol, in microseconds.
    let received = lab.book.at(sta).pop().expect("a beacon").status;
    assert!(received.tsf_us.abs_diff(said.timestamp) <= 1);

    let probe = frame([0x40, 0], [GROUP, mac(2), GROUP], 0, &ssid_element());
    lab.send(sta, 500 * MS, &probe, ask(0, &[(0, 1)]));
    lab.run(520 * MS);
    let answer = last(&lab, sta, 0x50).expect("an answer");
    assert_eq!(answer[4..10], mac(2));
    assert!(matches!(management(&answer), Management::ProbeResponse(said) if said.ssid == SSID.as_bytes()));
    join(&mut lab, sta, 2, 520);

    // To the access point's node, with QoS; to a station behind it; to all.
    let payload = [0x45; 100];
    let up = |to, sequence| {
        let mut octets = frame([0x88, 1], [mac(1), mac(2), to], sequence, &[0, 0]);
        octets.extend(llc(&payload));
        octets
    };
    for (sequence, to) in [mac(1), mac(3), GROUP].into_iter().enumerate() {
        let at = (600 + 20 * sequence as u64) * MS;
        lab.send(sta, at, &up(to, sequence as u16), ask(10 + sequence as u64, &[(7, 4)]));
    }
    lab.run(700 * MS);
    let expected = |to| ethernet_frame(to, mac(2), &payload);
    let at_ap = [(ap, expected(mac(1))), (ap, expected(GROUP))];
    let at_plain = [(plain, expected(mac(3))), (plain, expected(GROUP))];
    let got = |port| lab.book.ethernet.iter().filter(|(at, _)| *at == port).cloned().collect::<Vec<_>>();
    assert_eq!(got(ap), at_ap);
    assert_eq!(got(plain), at_plain);
    assert!(lab.book.of(sta).iter().skip(1).all(|status| status.acknowledged), "{:?}", lab.book.statuses);
    let own = last(&lab, sta, 0x08).expect("its own group frame comes back");
    assert_eq!(own[1] & 3, 2);

    // Down: from the node of the access point, and from the station.
    offer(&mut lab, ap, 710 * MS, &ethernet_frame(mac(2), mac(1), &payload));
    lab.run(720 * MS);
    let down = last(&lab, sta, 0x08).expect("data");
    assert_eq!(down[..2], [0x08, 0x02]);
    assert_eq!(down[4..22], [mac(2), mac(1), mac(1)].concat());
    assert_eq!(down[24..], llc(&payload));
    offer(&mut lab, plain, 730 * MS, &ethernet_frame(mac(2), mac(3), &payload));
    lab.run(740 * MS);
    let down = last(&lab, sta, 0x08).expect("data");
    assert_eq!(down[4..22], [mac(2), mac(1), mac(3)].concat());

    // A frame that only signals; then the station leaves, and its data is refused.
    let null = frame([0x48, 1], [mac(1), mac(2), mac(1)], 30, &[]);
    lab.send(sta, 750 * MS, &null, ask(20, &[(0, 2)]));
    let leave = frame([0xa0, 0], [mac(1), mac(2), mac(1)], 31, &[8, 0]);
    lab.send(sta, 760 * MS, &leave, ask(21, &[(0, 2)]));
    lab.send(sta, 770 * MS, &up(mac(1), 32), ask(22, &[(7, 2)]));
    lab.run(800 * MS);
    assert_eq!(got_len(&lab, ap), 2);
    assert!(lab.book.drops.iter().any(|(_, why)| *why == DropReason::NotAssociated));
    assert_eq!(management(&last(&lab, sta, 0xc0).expect("told so")), Management::Leave(7));
    lab.run(5_000 * MS);
    assert_eq!(lab.book.of(sta).len(), 9);
}

fn got_len(lab: &Lab, port: PortId) -> usize {
    lab.book.ethernet.iter().filter(|(at, _)| *at == port).count()
}

/// Runs a stack's access point by hand until `until`: beacons, and answers to the frames of
/// management that reach it.
fn serve(lab: &mut Lab, ap: PortId, from: u64, until: u64, capability: u8) {
    let beacon = [&[0; 8][..], &[100, 0, capability, 0], &ssid_element()].concat();
    let mut done = lab.book.received.len();
    for step in from..until {
        if step % 100 == 0 {
            let octets = frame([0x80, 0], [GROUP, mac(1), mac(1)], 0, &beacon);
            lab.send(ap, step * MS, &octets, ask(1_000, &[(0, 1)]));
        }
        lab.run((step + 1) * MS);
        let new: Vec<_> = lab.book.received[done..].to_vec();
        done = lab.book.received.len();
        for got in new.iter().filter(|got| got.port == ap && got.octets[4..10] == mac(1)) {
            let header = Header::parse(&got.octets).expect("a header");
            let (control, body) = match header.kind() {
                Some(Type::Management) => match management(&got.octets) {
                    Management::Authentication { algorithm: 0, transaction: 1, .. } => {
                        (0xb0, vec![0, 0, 2, 0, 0, 0])
                    }
                    Management::AssociationRequest(ssid) if ssid == SSID.as_bytes() => {
                        (0x10, vec![1, 0, 0, 0, 1, 0xc0, 1, 1, 0x8c])
                    }
                    other => panic!("{other:?}"),
                },
                _ => continue,
            };
            let octets = frame([control, 0], [header.transmitter, mac(1), mac(1)], 1, &body);
            lab.send(ap, (step + 1) * MS, &octets, ask(2_000, &[(0, 4)]));
        }
    }
}

#[test]
fn an_ethernet_station_joins_an_access_point_of_a_stack() {
    let mut lab = Lab::new(2);
    let ap = lab.stack(1, 0.0);
    let (sta, radio) = lab.add(2, 5.0, station());
    serve(&mut lab, ap, 0, 600, 1);
    let home = lab.engine.medium(lab.medium).expect("known").access_point(radio);
    assert_eq!(home.map(|home| home.number()), Some(0));

    let payload = [0x45; 300];
    offer(&mut lab, sta, 600 * MS, &ethernet_frame(mac(9), mac(2), &payload));
    offer(&mut lab, sta, 601 * MS, &ethernet_frame(GROUP, mac(2), &payload));
    lab.run(620 * MS);
    let data: Vec<_> = lab.book.at(ap).into_iter().filter(|got| got.octets[0] == 0x08).collect();
    let [one, all] = &data[..] else { panic!("{data:?}") };
    for (got, to) in [(one, mac(9)), (all, GROUP)] {
        assert_eq!(got.octets[1], 1);
        assert_eq!(got.octets[4..22], [mac(1), mac(2), to].concat());
        assert_eq!(got.octets[24..], llc(&payload));
        assert_eq!(got.status.rate, 7);
    }
    // Down, with the source behind the access point; its own group frame is ignored.
    let down = |to, from, sequence| frame([0x08, 2], [to, mac(1), from], sequence, &llc(&payload));
    lab.send(ap, 620 * MS, &down(mac(2), mac(9), 5), ask(1, &[(7, 4)]));
    lab.send(ap, 630 * MS, &down(GROUP, mac(9), 6), ask(2, &[(0, 1)]));
    lab.send(ap, 640 * MS, &down(GROUP, mac(2), 7), ask(3, &[(0, 1)]));
    // Of another network.
    let foreign = frame([0x08, 2], [mac(2), mac(7), mac(9)], 8, &llc(&payload));
    lab.send(ap, 650 * MS, &foreign, ask(4, &[(7, 4)]));
    lab.run(660 * MS);
    let expected = |to| (sta, ethernet_frame(to, mac(9), &payload));
    assert_eq!(lab.book.ethernet, [expected(mac(2)), expected(GROUP)]);
    assert!(lab.book.of(ap).iter().any(|status| status.cookie == 1 && status.acknowledged));
    // Sent away, the station looks for a network and finds the same one.
    lab.send(ap, 670 * MS, &frame([0xc0, 0], [mac(2), mac(1), mac(1)], 9, &[2, 0]), ask(5, &[(0, 4)]));
    lab.run(690 * MS);
    assert_eq!(lab.engine.medium(lab.medium).expect("known").access_point(radio), None);
    serve(&mut lab, ap, 700, 1_200, 1);
    assert!(lab.engine.medium(lab.medium).expect("known").access_point(radio).is_some());
}

#[test]
fn a_network_with_keys_is_none_for_an_ethernet_station() {
    let mut lab = Lab::new(3);
    let ap = lab.stack(1, 0.0);
    let (_, radio) = lab.add(2, 5.0, station());
    serve(&mut lab, ap, 0, 800, 0x11);
    assert_eq!(lab.engine.medium(lab.medium).expect("known").access_point(radio), None);
    assert!(lab.book.at(ap).is_empty());
}

#[test]
fn an_independent_cell_has_members_of_both_kinds() {
    let mut lab = Lab::new(4);
    let cell = Membership::AdHoc { ssid: SSID.to_owned(), beacon_ns: 102_400_000 };
    let (plain, _) = lab.add(1, 0.0, ethernet(cell));
    let stack = lab.stack(2, 5.0);
    lab.run(400 * MS);
    let beacon = last(&lab, stack, 0x80).expect("a beacon");
    let network: [u8; 6] = beacon[16..22].try_into().expect("six");
    assert!(matches!(management(&beacon), Management::Beacon(said) if !said.is_access_point()));
    let payload = [7; 60];
    for (number, to) in [mac(1), GROUP].into_iter().enumerate() {
        let octets = frame([0x08, 0], [to, mac(2), network], number as u16, &llc(&payload));
        lab.send(stack, (400 + 10 * number as u64) * MS, &octets, ask(1, &[(7, 3)]));
    }
    offer(&mut lab, plain, 430 * MS, &ethernet_frame(mac(2), mac(1), &payload));
    lab.run(450 * MS);
    let expected = |to| (plain, ethernet_frame(to, mac(2), &payload));
    assert_eq!(lab.book.ethernet, [expected(mac(1)), expected(GROUP)]);
    let back = last(&lab, stack, 0x08).expect("data");
    assert_eq!(back[1..2], [0]);
    assert_eq!(back[4..22], [mac(2), mac(1), network].concat());
}

/// A frame of an Ethernet radio as it is on the air, without radiotap header and check sequence.
fn on_air(kind: Kind, direction: Direction, ssid: &str, ethernet: &[u8], qos: bool) -> Vec<u8> {
    let llc = if ethernet.len() >= 14 && ethernet[12] >= 6 { 8 } else { 0 };
    let body = if kind == Kind::Data { (ethernet.len() - 14 + llc) as u32 } else { 0 };
    let ends = |at: usize| ethernet.get(at..at + 6).map_or([0; 6], |a| a.try_into().expect("six"));
    let receiver = if direction == Direction::ToAccessPoint { mac(9) } else { ends(0) };
    let transmitter = if direction == Direction::FromAccessPoint { mac(9) } else { ends(6) };
    let sniffed = Sniffed {
        radio: None,
        sender: RadioId::new(0),
        at: Instant::from_nanos(1_234_567),
        channel: Channel { number: 36, mhz: 5180 },
        bits_per_second: 6_000_000,
        ofdm: true,
        ht: None,
        signal_dbm: None,
        noise_dbm: None,
        broken: false,
        kind,
        qos,
        body: if kind == Kind::Data { (body, 0) } else { (33 + ssid.len() as u32, 0) },
        duration: Span::ZERO,
        sequence: (7, 0),
        more: false,
        retry: false,
        direction,
        addresses: [receiver, transmitter, mac(9)],
        ssid,
        beacon: Span::from_millis(100),
        rates: (&tables::A, tables::A.mandatory()),
        frame: None,
        subframe: None,
        block: (0, 0, 0),
    };
    let mut out = Vec::new();
    capture::write(&sniffed, ethernet, &mut out);
    out.drain(..usize::from(out[2]));
    out.truncate(out.len() - 4);
    out
}

fn directions() -> impl Strategy<Value = Direction> {
    use Direction::{Direct, FromAccessPoint, ToAccessPoint};
    proptest::sample::select(vec![Direct, ToAccessPoint, FromAccessPoint])
}

proptest! {
    /// RFC 1042 there and back, for frames with an `EtherType` and for those with a length.
    #[test]
    fn translation_and_its_opposite_give_the_same_frame(
        (addresses, payload) in (any::<[u8; 12]>(), proptest::collection::vec(any::<u8>(), 1..1_500)),
        kind in prop_oneof![Just(None), (0x0600..=0xffff_u16).prop_map(Some)],
        (direction, qos) in (directions(), any::<bool>()),
    ) {
        let kind = kind.unwrap_or(payload.len() as u16).to_be_bytes();
        // A length field precedes an LLC header, which is none of those that name an EtherType.
        prop_assume!(payload[0] != 0xaa);
        prop_assume!(![[0x80, 0xf3], [0x81, 0x37]].contains(&kind));
        let ethernet = [&addresses[..], &kind, &payload].concat();
        let octets = on_air(Kind::Data, direction, "", &ethernet, qos);
        let mut back = Vec::new();
        prop_assert!(translation::to_ethernet(&octets, &mut back));
        prop_assert_eq!(back, ethernet);
        // Cut anywhere, it is refused or shorter, never read beyond its end.
        for length in 0..octets.len().min(40) {
            let mut cut = Vec::new();
            translation::to_ethernet(&octets[..length], &mut cut);
            prop_assert!(cut.len() <= length);
        }
    }

    /// What an Ethernet access point announces is what a reader understands.
    #[test]
    fn announcements_are_read_as_they_were_written(ssid in "[a-z]{1,32}", direction in directions()) {
        let octets = on_air(Kind::Beacon, direction, &ssid, &[], false);
        let Management::Beacon(said) = management(&octets) else { panic!("no beacon") };
        prop_assert_eq!(said.ssid, ssid.as_bytes());
        prop_assert_eq!(said.is_access_point(), direction != Direction::Direct);
        prop_assert_eq!((said.timestamp, said.interval), (1_234, 97));
        // Every element has a place; without its last octet the frame is refused.
        prop_assert_eq!(Management::parse(8, &octets[24..octets.len() - 1]), None);
    }

    /// Any octets are read without harm.
    #[test]
    fn any_body_is_read_or_refused(subtype in 0u8..16, body in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Some(Management::AssociationRequest(ssid) | Management::ProbeRequest(ssid)) =
            Management::parse(subtype, &body)
        {
            prop_assert!(ssid.len() <= 32 && ssid.len() + 2 <= body.len());
        }
    }
}
