//! Radios of 802.11n with aggregation, and what a sniffer sees of their frames, for tests.

#![allow(dead_code)] // each test uses its part

use airloom_engine::medium::phy::channel::Band;
use airloom_engine::medium::phy::{ACK_OCTETS, Phy, ht};
use airloom_engine::medium::propagation::Matrix;
use airloom_engine::medium::{RadioId, RadioSettings, RateSettings};
use airloom_engine::time::Span;

use crate::world::{World, at_rate};

/// Transmit power in dBm, the default.
pub const POWER: f64 = 16.0;
/// Octets on the air around a payload: UDP, IPv4, LLC and SNAP, MAC header with QoS field, check sequence.
pub const AROUND: u32 = 8 + 20 + 8 + 26 + 4;
/// Octets of a compressed block ack.
pub const BLOCK_ACK: u32 = 32;

pub fn settings(mcs: u8, frames: u8) -> RadioSettings {
    RadioSettings {
        phy: "802.11n".into(),
        rate: RateSettings::Mcs(mcs),
        qos: true,
        aggregation: Some(frames),
        ..at_rate(6.0)
    }
}

/// Radios that hear each other at this power in dBm, and without delay.
pub fn cell(settings: &RadioSettings, count: usize, dbm: f64, seed: u64) -> (World, Vec<RadioId>) {
    let mut world = World::new(seed, Box::new(all_hear(count, dbm)));
    let radios = (0..count).map(|_| world.add(settings.clone(), 0.0, 0.0)).collect();
    (world, radios)
}

/// The losses between radios that hear each other at this power in dBm.
pub fn all_hear(count: usize, dbm: f64) -> Matrix {
    let mut loss = Matrix::silent(count);
    for a in 0..count {
        (0..count).filter(|&b| b != a).for_each(|b| loss.set(a, b, POWER - dbm));
    }
    loss
}

pub fn layer() -> &'static Phy {
    ht::layer(Band::Five, false, false)
}

/// Octets of an A-MPDU with so many MPDUs of this payload.
pub fn octets(frames: u32, payload: u32) -> u32 {
    let own = payload + AROUND;
    (frames - 1) * (4 + own).next_multiple_of(4) + 4 + own
}

/// Airtime of so many octets, and that of their block ack.
pub fn airtimes(mcs: u8, octets: u32) -> (Span, Span) {
    let phy = layer();
    let index = phy.scheme(mcs).expect("a rate");
    let answer = &phy.rates[usize::from(phy.response(index, phy.mandatory()))];
    (phy.rates[usize::from(index)].airtime(octets), answer.airtime(BLOCK_ACK))
}

/// Frames of an A-MPDU, its octets, its airtime and that of its answer, in closed form.
pub fn aggregate(mcs: u8, frames: u32, payload: u32) -> (u32, u32, Span, Span) {
    let phy = layer();
    let index = phy.scheme(mcs).expect("a rate");
    let rate = &phy.rates[usize::from(index)];
    let fits = |frames: &u32| {
        let octets = octets(*frames, payload);
        octets <= 65_535 && rate.airtime(octets) <= Span::from_micros(5_484)
    };
    let frames = (2..=frames).take_while(fits).last().unwrap_or(1);
    if frames == 1 {
        let answer = &phy.rates[usize::from(phy.response(index, phy.mandatory()))];
        let own = payload + AROUND;
        return (1, own, rate.airtime(own), answer.airtime(ACK_OCTETS));
    }
    let octets = octets(frames, payload);
    let (data, answer) = airtimes(mcs, octets);
    (frames, octets, data, answer)
}

/// A record of the sniffer that sees all transmissions.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When its PPDU began, in microseconds.
    pub at: u64,
    /// First octet of the frame: 0x88 data, 0xb4 RTS, 0xd4 Ack, 0x94 block ack.
    pub kind: u8,
    pub retry: bool,
    pub duration: u16,
    /// Octets of the MPDU, check sequence included.
    pub octets: u32,
    pub sequence: u16,
    /// Part of an A-MPDU.
    pub joined: bool,
}

/// What the sniffer has seen, in the order of the ends.
pub fn seen(world: &World) -> Vec<Seen> {
    let all = world.sinks.sniffs.iter().filter(|(radio, _)| radio.is_none());
    let two =
        |octets: &[u8], at: usize| octets.get(at..at + 2).map_or(0, |o| u16::from_le_bytes([o[0], o[1]]));
    all.map(|(_, record)| {
        let head = usize::from(record[2]);
        let frame = &record[head..];
        Seen {
            at: u64::from_le_bytes(record[8..16].try_into().expect("eight")),
            kind: frame[0],
            retry: frame[1] & 8 != 0,
            duration: two(frame, 2),
            octets: u32::try_from(frame.len()).expect("short"),
            sequence: two(frame, 22) >> 4,
            joined: record[6] >> 4 & 1 == 1,
        }
    })
    .collect()
}

/// The A-MPDUs among these, each with its MPDUs.
pub fn joined(seen: &[Seen]) -> Vec<Vec<Seen>> {
    let mut all: Vec<Vec<Seen>> = Vec::new();
    for one in seen.iter().filter(|one| one.joined) {
        match all.last_mut() {
            Some(last) if last[0].at == one.at => last.push(*one),
            _ => all.push(vec![*one]),
        }
    }
    all
}

/// Octets of an A-MPDU of these MPDUs.
pub fn octets_of(parts: &[Seen]) -> u32 {
    parts.iter().fold(0_u32, |octets, part| octets.next_multiple_of(4) + 4 + part.octets)
}
