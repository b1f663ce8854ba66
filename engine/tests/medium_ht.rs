//! 802.11n: throughput of each rate in closed form, range by width and streams, channels of 40 MHz beside
//! others, other layers on the channel, captures.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::medium::phy::channel::Band;
use airloom_engine::medium::phy::{ACK_OCTETS, ht};
use airloom_engine::medium::propagation::Matrix;
use airloom_engine::medium::{CodeSettings, Membership, RadioId, RadioSettings, RateSettings};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at, at_rate};

/// Transmit power in dBm, the default.
const POWER: f64 = 16.0;
/// Octets on the air of [`PAYLOAD`]: UDP, IPv4, LLC and SNAP, MAC header, check sequence.
const OCTETS: u32 = 1534;

fn scheme(mcs: u8, width_mhz: u16, guard_interval_ns: u16) -> RadioSettings {
    RadioSettings {
        phy: "802.11n".into(),
        width_mhz,
        guard_interval_ns,
        rate: RateSettings::Mcs(mcs),
        ..at_rate(6.0)
    }
}

/// Radios that hear each other with these powers in dBm, and without delay.
fn heard(settings: &[RadioSettings], dbm: impl Fn(usize, usize) -> f64) -> (World, Vec<RadioId>) {
    let mut loss = Matrix::silent(settings.len());
    for a in 0..settings.len() {
        for b in (0..settings.len()).filter(|&b| b != a) {
            loss.set(a, b, POWER - dbm(a, b));
        }
    }
    let mut world = World::new(1, Box::new(loss));
    let radios = settings.iter().map(|each| world.add(each.clone(), 0.0, 0.0)).collect();
    (world, radios)
}

/// Mbit/s of saturated flows, each from a radio to the next.
fn flows(world: &mut World, ends: &[(RadioId, RadioId)], seconds: f64) -> Vec<f64> {
    for &(from, to) in ends {
        world.saturate(at(0.0), from, to, PAYLOAD);
    }
    world.run(at(0.1));
    world.start_counting(at(0.1));
    world.run(at(0.1 + seconds));
    let over = Span::from_nanos((seconds * 1e9) as u64);
    ends.iter().map(|&(from, to)| world.goodput(from, to, over)).collect()
}

fn alone(settings: &RadioSettings, seconds: f64) -> f64 {
    let (mut world, radios) = heard(&[settings.clone(), settings.clone()], |_, _| -40.0);
    let found = flows(&mut world, &[(radios[0], radios[1])], seconds);
    assert!(world.sinks.drops.is_empty(), "{:?}", world.sinks.drops);
    found[0]
}

/// Mbit/s of one saturated flow without losses: DIFS, the mean backoff of 7.5 slots, the frame, SIFS,
/// the acknowledgment at a rate of clause 17.
fn closed_form(band: Band, mcs: u8, wide: bool, short: bool) -> f64 {
    let phy = ht::layer(band, wide, short);
    let index = phy.scheme(mcs).expect("a rate");
    let answer = &phy.rates[usize::from(phy.response(index, phy.mandatory()))];
    let cycle =
        phy.difs() + phy.rates[usize::from(index)].airtime(OCTETS) + phy.sifs + answer.airtime(ACK_OCTETS);
    let backoff = phy.slot.nanos() as f64 * f64::from(phy.cw_min) / 2.0;
    f64::from(PAYLOAD * 8) * 1e3 / (cycle.nanos() as f64 + backoff)
}

#[test]
fn one_flow_at_every_rate_is_the_closed_form() {
    for (wide, short) in [(false, false), (false, true), (true, false), (true, true)] {
        for mcs in 0..32 {
            // Both bands: each with half of the rates, and each rate in one of them.
            let two = (mcs + u8::from(wide)) % 2 == 1;
            let settings = RadioSettings {
                channel: if two { 1 } else { 36 },
                ..scheme(mcs, if wide { 40 } else { 20 }, if short { 400 } else { 800 })
            };
            let found = alone(&settings, 2.0);
            let band = if two { Band::Two } else { Band::Five };
            let expected = closed_form(band, mcs, wide, short);
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.01, "{settings:?}: {found:.3} against {expected:.3}");
        }
    }
}

#[test]
fn the_closed_form_of_one_rate_in_numbers() {
    // MCS 7, 20 MHz, 800 ns: 34 us, 67.5 us, 36 + 48 * 4 us, 16 us, 28 us at 24 Mbit/s.
    let expected = 1470.0 * 8.0 / (34.0 + 67.5 + 228.0 + 16.0 + 28.0);
    assert!((closed_form(Band::Five, 7, false, false) - expected).abs() < 1e-9);
    assert!((expected - 31.486).abs() < 1e-3);
}

/// The power in dBm at which half of the frames are lost, to a tenth.
fn threshold(settings: &RadioSettings) -> f64 {
    let settings = RadioSettings { short_retries: 1, long_retries: 1, ..settings.clone() };
    let arriving = |dbm: f64| {
        let (mut world, radios) = heard(&[settings.clone(), settings.clone()], |_, _| dbm);
        (0..400).for_each(|_| world.offer(at(0.0), radios[0], Some(radios[1]), PAYLOAD));
        world.run(at(2.0));
        world.sinks.delivered
    };
    let (mut low, mut high) = (-82.0, -30.0);
    while high - low > 0.02 {
        let middle = f64::midpoint(low, high);
        if arriving(middle) < 200 { low = middle } else { high = middle }
    }
    high
}

#[test]
fn width_and_streams_cost_range() {
    let one = threshold(&scheme(7, 20, 800));
    // Thermal noise of 20 MHz at a noise figure of 7 dB is -94.0 dBm. Half of the frames of 1534 octets
    // are lost where the bit error rate after the decoder is ln 2 / 12 294 = 5.6e-5: the bound of the code
    // of rate 5/6 has it at D = 0.0445, so at D^2/4 = 4.95e-4 before it, and 7/24 erfc(sqrt(s/42)) is that
    // at 23.2 dB.
    assert!((one - -94.0 - 23.2).abs() < 0.15, "{one}");
    for (mcs, width, db) in [(15, 20, 3.01), (23, 20, 4.77), (31, 20, 6.02), (7, 40, 3.01), (31, 40, 9.03)] {
        let found = threshold(&scheme(mcs, width, 800)) - one;
        assert!((found - db).abs() < 0.15, "MCS {mcs}, {width} MHz: {found:.2} dB");
    }
    // The same modulation and code as 54 Mbit/s needs as much signal.
    let plain = threshold(&at_rate(54.0));
    let same = threshold(&scheme(6, 20, 800));
    assert!((plain - same).abs() < 0.15, "{plain} {same}");
}

#[test]
fn forty_megahertz_take_two_channels() {
    // 40 MHz on channel 36 occupy 36 and 40. A neighbour of 20 MHz hears half of their power.
    let wide = scheme(7, 40, 800);
    let neighbour = |channel| RadioSettings { channel, ..scheme(7, 20, 800) };
    let together = |channel, dbm: f64| {
        let all = [wide.clone(), wide.clone(), neighbour(channel), neighbour(channel)];
        let (mut world, radios) = heard(&all, |a, b| if a / 2 == b / 2 { -40.0 } else { dbm });
        flows(&mut world, &[(radios[0], radios[1]), (radios[2], radios[3])], 2.0)
    };
    let single = [alone(&wide, 2.0), alone(&neighbour(40), 2.0)];
    let share = |found: &[f64]| [found[0] / single[0], found[1] / single[1]];
    for channel in [44, 48] {
        let [one, two] = share(&together(channel, -45.0));
        assert!((one - 1.0).abs() < 0.01 && (two - 1.0).abs() < 0.01, "channel {channel}: {one} {two}");
    }
    // Below the energy that makes a channel busy, and too weak to harm.
    let [one, two] = share(&together(40, -80.0));
    assert!(one > 0.99 && two > 0.99, "{one} {two}");
    // Above it they take turns.
    let [one, two] = share(&together(40, -45.0));
    assert!(one > 0.2 && two > 0.2 && one + two < 1.1, "{one} {two}");
    // The neighbour hears half the power: -60 dBm is -63 dBm there, which leaves its channel idle,
    // while 40 MHz find theirs busy at -60 dBm.
    let [one, two] = share(&together(40, -60.0));
    assert!(two > 0.95 && one < 0.6, "{one} {two}");
}

#[test]
fn who_lacks_a_rate_hears_the_frame_with_errors() {
    let (plain, narrow, wide) = (at_rate(6.0), scheme(3, 20, 800), scheme(3, 40, 800));
    for (from, to, arrives) in [
        (&plain, &narrow, true),
        (&plain, &wide, true),
        (&narrow, &wide, true),
        (&narrow, &plain, false),
        (&wide, &plain, false),
        (&wide, &narrow, false),
    ] {
        let (mut world, radios) = heard(&[from.clone(), to.clone()], |_, _| -40.0);
        world.offer(at(0.1), radios[0], Some(radios[1]), PAYLOAD);
        // Broadcast is sent at a rate that all of them have.
        world.offer(at(0.2), radios[0], None, PAYLOAD);
        world.run(at(1.0));
        assert_eq!(world.sinks.delivered, 1 + u64::from(arrives), "{from:?} {to:?}");
        let broken = world.medium.counts(radios[1]).broken;
        assert_eq!(broken, if arrives { 0 } else { 7 }, "one for each transmission");
    }
}

#[test]
fn a_capture_has_the_scheme_and_no_rate() {
    for (mcs, width, guard, flags) in [(7, 20, 800, 0), (12, 20, 400, 4), (31, 40, 400, 5), (0, 40, 800, 1)] {
        let settings = scheme(mcs, width, guard);
        let (mut world, radios) = heard(&[settings.clone(), settings], |_, _| -40.0);
        world.medium.set_sniffing(true);
        world.offer(at(0.1), radios[0], Some(radios[1]), PAYLOAD);
        world.run(at(0.2));
        let of = |control: u8| {
            let seen = world
                .sinks
                .sniffs
                .iter()
                .find(|(radio, octets)| radio.is_some() && octets[usize::from(octets[2])] == control);
            &seen.expect("a frame").1
        };
        let present = |octets: &[u8]| u32::from_le_bytes(octets[4..8].try_into().expect("four"));
        let data = of(0x08);
        assert_eq!(present(data), 1 << 19 | 1 << 6 | 1 << 5 | 0b1011);
        let head = usize::from(data[2]);
        assert_eq!(data[head - 3..head], [0x1f, flags, mcs]);
        assert_eq!(u16::from_le_bytes([data[18], data[19]]), 5180);
        let ack = of(0xd4);
        assert_eq!(present(ack), 1 << 6 | 1 << 5 | 0b1111);
        assert_eq!(ack[17], if mcs % 8 == 0 { 12 } else { 48 }, "6 or 24 Mbit/s");
    }
}

#[test]
fn what_contradicts_is_refused_by_name() {
    let n = scheme(7, 20, 800);
    let a = at_rate(6.0);
    for (settings, told) in [
        (RadioSettings { width_mhz: 40, ..a.clone() }, "width_mhz = 40 MHz"),
        (RadioSettings { guard_interval_ns: 400, ..a.clone() }, "guard_interval_ns = 400 ns"),
        (RadioSettings { rate: RateSettings::Mcs(0), ..a.clone() }, "rate = MCS 0"),
        (RadioSettings { width_mhz: 80, ..n.clone() }, "width_mhz = 80 MHz"),
        (RadioSettings { guard_interval_ns: 200, ..n.clone() }, "guard_interval_ns = 200 ns"),
        (RadioSettings { rate: RateSettings::Mcs(32), ..n.clone() }, "rate = MCS 32"),
        (RadioSettings { rate: RateSettings::Aarf, ..n.clone() }, "rate = aarf"),
        (
            RadioSettings { streams: Some(2), rate: RateSettings::Mcs(16), ..n.clone() },
            "MCS 16 with streams: 2",
        ),
        (RadioSettings { streams: Some(5), ..n.clone() }, "streams = 5"),
        (RadioSettings { streams: Some(2), ..a.clone() }, "streams = 2"),
        (RadioSettings { rate: RateSettings::Constant(65_000_000), ..n.clone() }, "65000000 bit/s"),
        (RadioSettings { membership: Membership::Wlan, ..n.clone() }, "phy = 802.11n"),
        (RadioSettings { channel: 14, width_mhz: 40, ..n.clone() }, "40 MHz on channel 14"),
        (
            RadioSettings {
                code: Some(CodeSettings { spreading: 4, number: 0, synchronous: true }),
                ..n.clone()
            },
            "code = a code",
        ),
    ] {
        let error = settings.validate("r").expect_err("refused").to_string();
        assert!(error.contains(told), "{error}");
    }
    let plain = RadioSettings { rate: RateSettings::Constant(54_000_000), width_mhz: 40, ..n };
    plain.validate("r").expect("a rate of clause 17");
}
