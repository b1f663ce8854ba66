//! Captures with radiotap headers, parsed by an independent reader.

#![allow(clippy::cast_possible_truncation)]

mod world;

use airloom_engine::medium::capture::{self, Direction, Sniffed};
use airloom_engine::medium::phy::{Channel, Ht, tables};
use airloom_engine::medium::{Kind, Membership, RadioId, RadioSettings, RateSettings, Roaming};
use airloom_engine::random::Stream;
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

/// A parsed record.
#[derive(Debug)]
struct Record {
    micros: u64,
    broken: bool,
    halves: u8,
    mhz: u16,
    signal: Option<i8>,
    frame: Vec<u8>,
}

fn read(octets: &[u8]) -> Record {
    let word = |at: usize| u16::from_le_bytes([octets[at], octets[at + 1]]);
    assert_eq!(octets[0], 0, "version");
    let length = usize::from(word(2));
    let present = u32::from_le_bytes(octets[4..8].try_into().expect("four"));
    assert_eq!(present & !(1 << 19 | 0b110_1111), 0, "fields {present:b}");
    let signal = (present & 1 << 5 != 0).then(|| i8::from_le_bytes([octets[22]]));
    // One octet for each power, three for a scheme of 802.11n.
    let scheme = if present & 1 << 19 == 0 { 0 } else { 3 };
    assert_eq!(length, 22 + (present & 0b110_0000).count_ones() as usize + scheme);
    assert_eq!(octets[16] & 0x10, 0x10, "check sequence at the end");
    Record {
        micros: u64::from_le_bytes(octets[8..16].try_into().expect("eight")),
        broken: octets[16] & 0x40 != 0,
        halves: octets[17],
        mhz: word(18),
        signal,
        frame: octets[length..].to_vec(),
    }
}

/// CRC residue of a frame whose check sequence is correct (computed over the sequence, too).
fn check_is_right(frame: &[u8]) -> bool {
    let crc = frame.iter().fold(!0u32, |crc, &octet| {
        (0..8).fold(
            crc ^ u32::from(octet),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    });
    crc == 0xdebb_20e3
}

#[test]
fn a_data_frame_and_its_acknowledgment() {
    let mut world = World::new(1, reference_loss());
    let (a, b) = (world.add(at_rate(54.0), 0.0, 0.0), world.add(at_rate(54.0), 5.0, 0.0));
    world.medium.set_sniffing(true);
    world.offer(at(1.0), a, Some(b), PAYLOAD);
    world.run(at(2.0));
    // Each frame once as received, once as seen on the channel.
    let records: Vec<_> = world.sinks.sniffs.iter().map(|(radio, octets)| (*radio, read(octets))).collect();
    assert_eq!(records.len(), 4);
    let (radio, data) = &records[0];
    assert_eq!(*radio, Some(b));
    assert_eq!((data.micros, data.halves, data.mhz, data.signal), (1_000_000, 108, 5180, Some(-52)));
    assert_eq!(data.frame.len(), 1534);
    assert!(check_is_right(&data.frame) && !data.broken);
    assert_eq!(data.frame[..4], [0x08, 0x00, 44, 0], "data, reserving SIFS and acknowledgment");
    assert_eq!(data.frame[4..10], world.mac(b));
    assert_eq!(data.frame[10..16], world.mac(a));
    assert_eq!(data.frame[24..32], [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00]);
    assert_eq!(data.frame[32], 0x45);
    let (radio, channel) = &records[1];
    assert_eq!((*radio, channel.signal, channel.frame.len()), (None, None, 1534));
    let (radio, ack) = &records[2];
    assert_eq!(*radio, Some(a));
    assert_eq!(ack.frame[..10], [[0xd4, 0, 0, 0].as_slice(), &world.mac(a)].concat());
    assert_eq!((ack.frame.len(), ack.micros, ack.halves), (14, 1_000_264, 48));
}

#[test]
fn collisions_and_repeats_can_be_seen() {
    let mut world = World::new(1, reference_loss());
    let settings = RadioSettings { preamble_db: None, ..at_rate(24.0) };
    let nodes: Vec<_> = (0..4).map(|_| world.add(settings.clone(), 0.1, 0.0)).collect();
    world.medium.set_sniffing(true);
    for &from in &nodes[1..] {
        world.saturate(at(0.0), from, nodes[0], PAYLOAD);
    }
    world.run(at(1.0));
    let records: Vec<_> = world.sinks.sniffs.iter().map(|(radio, octets)| (*radio, read(octets))).collect();
    let broken = records.iter().filter(|(_, record)| record.broken).count();
    let repeats = records.iter().filter(|(_, record)| record.frame[1] & 0x08 != 0).count();
    assert!(broken > 100 && repeats > 100, "{broken} {repeats}");
    assert!(records.iter().all(|(_, record)| check_is_right(&record.frame) != record.broken));
}

#[test]
fn an_access_points_frames_have_their_forms() {
    let mut world = World::new(1, reference_loss());
    let access_point = Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 102_400_000 };
    let roaming = Roaming { ssid: "lab".into(), active: true, dwell_ns: 20_000_000, ..Roaming::default() };
    let ap = world.add(RadioSettings { membership: access_point, qos: true, ..at_rate(24.0) }, 0.0, 0.0);
    let station = Membership::Station(roaming);
    let sta = world.add(RadioSettings { membership: station, ..at_rate(24.0) }, 5.0, 0.0);
    world.medium.set_sniffing(true);
    world.run(at(1.0));
    world.offer(at(1.0), sta, Some(ap), PAYLOAD);
    world.offer(at(1.0), ap, Some(sta), PAYLOAD);
    world.run(at(1.5));
    let records: Vec<_> = world.sinks.sniffs.iter().map(|(_, octets)| read(octets)).collect();
    let of = |control: u8| records.iter().filter(|record| record.frame[0] == control).collect::<Vec<_>>();
    for control in [0x80, 0x40, 0x50, 0x00, 0x10, 0xd4] {
        assert!(!of(control).is_empty(), "{control:02x}");
    }
    let beacon = of(0x80)[0];
    assert_eq!(beacon.frame[32..34], [100, 0], "time units between beacons");
    assert_eq!(beacon.frame[36..41], [0, 3, b'l', b'a', b'b']);
    let up = of(0x08)[0];
    assert_eq!((up.frame[1], &up.frame[4..10]), (0x01, &world.mac(ap)[..]));
    let down = of(0x88)[0];
    assert_eq!((down.frame[1], down.frame.len()), (0x02, 1536));
    assert_eq!(down.frame[10..16], world.mac(ap));
    assert!(records.iter().all(|record| check_is_right(&record.frame)));
}

#[test]
fn no_frame_brings_the_writer_down() {
    let mut dice = Stream::named(1, "captures");
    for _ in 0..20_000 {
        let ethernet: Vec<u8> = (0..dice.below(40)).map(|_| dice.bits() as u8).collect();
        let pick = |dice: &mut Stream, bound| u32::try_from(dice.below(bound)).expect("small");
        let sniffed = Sniffed {
            radio: None,
            sender: RadioId::new(0),
            at: Instant::from_nanos(dice.bits()),
            channel: Channel { number: dice.bits() as u16, mhz: dice.bits() as u16 },
            bits_per_second: dice.bits() as u32,
            ofdm: dice.chance(0.5),
            ht: dice.chance(0.5).then(|| Ht {
                mcs: dice.bits() as u8,
                wide: dice.chance(0.5),
                short: dice.chance(0.5),
            }),
            signal_dbm: dice.chance(0.5).then(|| f64::from_bits(dice.bits())),
            noise_dbm: dice.chance(0.5).then_some(f64::NAN),
            broken: dice.chance(0.5),
            kind: [Kind::Data, Kind::Ack, Kind::Rts, Kind::Cts][pick(&mut dice, 4) as usize],
            qos: dice.chance(0.5),
            body: (pick(&mut dice, 3000), pick(&mut dice, 3000)),
            duration: Span::from_nanos(dice.bits()),
            sequence: (dice.bits() as u16, dice.bits() as u8),
            more: dice.chance(0.5),
            retry: dice.chance(0.5),
            direction: [Direction::Direct, Direction::ToAccessPoint, Direction::FromAccessPoint]
                [pick(&mut dice, 3) as usize],
            addresses: [[dice.bits() as u8; 6]; 3],
            ssid: "",
            beacon: Span::from_nanos(dice.bits()),
            rates: (&tables::A, dice.bits() as u32),
            frame: None,
            subframe: None,
            block: (0, 0, 0),
        };
        let mut out = Vec::new();
        capture::write(&sniffed, &ethernet, &mut out);
        let record = read(&out);
        assert_eq!(check_is_right(&record.frame), !record.broken);
    }
}

#[test]
fn a_senders_own_view_is_marked_and_has_no_signal() {
    let heard = Sniffed {
        radio: None,
        sender: RadioId::new(3),
        at: at(1.0),
        channel: Channel { number: 36, mhz: 5180 },
        bits_per_second: 6_000_000,
        ofdm: true,
        ht: None,
        signal_dbm: None,
        noise_dbm: None,
        broken: true,
        kind: Kind::Ack,
        qos: false,
        body: (0, 0),
        duration: Span::ZERO,
        sequence: (0, 0),
        more: false,
        retry: false,
        direction: Direction::Direct,
        addresses: [[2; 6]; 3],
        ssid: "",
        beacon: Span::ZERO,
        rates: (&tables::A, 1),
        frame: None,
        subframe: None,
        block: (0, 0, 0),
    };
    let own = heard.at_sender();
    assert!(own.is_own() && !heard.is_own());
    let mut out = Vec::new();
    capture::write(&own, &[], &mut out);
    let present = u32::from_le_bytes(out[4..8].try_into().expect("four"));
    assert_eq!(present, 1 << 15 | 0b1111, "TX flags, no signal");
    assert_eq!(u16::from_le_bytes([out[2], out[3]]), 24);
    assert_eq!(out[16], 0x10, "the sender does not know that a receiver lost it");
    assert!(check_is_right(&out[24..]));
}

#[test]
fn the_rates_of_a_layer_fill_one_element_or_two() {
    let elements = |phy: &str| {
        let mut world = World::new(1, reference_loss());
        let membership = Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 102_400_000 };
        let channel = if phy == "802.11a" { 36 } else { 1 };
        let lowest = tables::by_name(phy).expect("known").rates[0].bits_per_second;
        let rate = RateSettings::Constant(u64::from(lowest));
        let settings =
            RadioSettings { phy: phy.into(), channel, membership, rate, ..RadioSettings::default() };
        world.add(settings.clone(), 0.0, 0.0);
        world.add(RadioSettings { membership: RadioSettings::default().membership, ..settings }, 5.0, 0.0);
        world.medium.set_sniffing(true);
        world.run(at(1.0));
        let beacon = read(&world.sinks.sniffs[0].1);
        assert_eq!(beacon.frame[0], 0x80);
        let mut rest = &beacon.frame[36..beacon.frame.len() - 4];
        let mut found = Vec::new();
        while let [identifier, length, octets @ ..] = rest {
            let (value, after) = octets.split_at(usize::from(*length));
            if [1, 50].contains(identifier) {
                found.push((*identifier, value.to_vec()));
            }
            rest = after;
        }
        assert!(rest.is_empty());
        found
    };
    let five = vec![0x8c, 0x12, 0x98, 0x24, 0xb0, 0x48, 0x60, 0x6c];
    assert_eq!(elements("802.11a"), [(1, five)]);
    assert_eq!(elements("802.11b"), [(1, vec![0x82, 0x84, 0x8b, 0x96])]);
    let both = vec![0x82, 0x84, 0x8b, 0x8c, 0x12, 0x96, 0x98, 0x24];
    assert_eq!(elements("802.11bg"), [(1, both), (50, vec![0xb0, 0x48, 0x60, 0x6c])]);
}
