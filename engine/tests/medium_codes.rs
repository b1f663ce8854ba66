//! Code division: rate, range, capacity, near-far effect, and orthogonality of aligned codes.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
#![allow(clippy::disallowed_methods)] // closed forms to compare with

mod world;

use airloom_engine::medium::error::{ErrorModel, Standard};
use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::phy::{Coding, Modulation};
use airloom_engine::medium::propagation::{Disk, PathLoss};
use airloom_engine::medium::{
    CardSettings, CodeSettings, Membership, Police, Policed, RadioId, RadioSettings,
};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at, at_rate, reference_loss};

/// Octets of a frame with [`PAYLOAD`] on the air.
const OCTETS: f64 = 1534.0;
/// Noise of the receiver in 20 MHz, dBm: 1.380649e-23 J/K * 290 K * 20 MHz * 7 dB.
const NOISE_DBM: f64 = -93.965;

fn code(spreading: u16, number: u16) -> CodeSettings {
    CodeSettings { spreading, number, synchronous: false }
}

fn aligned(spreading: u16, number: u16) -> CodeSettings {
    CodeSettings { synchronous: true, ..code(spreading, number) }
}

fn with(code: CodeSettings, megabits: f64) -> RadioSettings {
    RadioSettings { code: Some(code), ..at_rate(megabits) }
}

/// Mbit/s of saturated pairs, 1 m long and `apart` metres from each other: one for each code.
fn flows(codes: &[Option<CodeSettings>], apart: f64, megabits: f64, seconds: f64) -> Vec<f64> {
    let mut world = World::new(1, reference_loss());
    let pairs: Vec<_> = (0u8..)
        .zip(codes)
        .map(|(number, code)| {
            let settings = RadioSettings { code: *code, ..at_rate(megabits) };
            let x = f64::from(number) * apart;
            (world.add(settings.clone(), x, 0.0), world.add(settings, x, 1.0))
        })
        .collect();
    for &(from, to) in &pairs {
        world.saturate(at(0.0), from, to, PAYLOAD);
    }
    world.start_counting(at(0.0));
    world.run(at(seconds));
    let over = Span::from_nanos((seconds * 1e9) as u64);
    pairs.iter().map(|&(from, to)| world.goodput(from, to, over)).collect()
}

/// Mbit/s of one saturated flow at 36 Mbit/s: DIFS of 34 us, 7.5 slots of 9 us, 364 us of data, SIFS
/// of 16 us, 28 us of acknowledgment; frames are as many times longer as the spreading factor.
fn expected(spreading: u16) -> f64 {
    f64::from(PAYLOAD) * 8.0 / (34.0 + 67.5 + 16.0 + f64::from(spreading) * (364.0 + 28.0))
}

/// The ratio, linear, at which half of the frames are received.
fn needed(modulation: Modulation, coding: Coding) -> f64 {
    let (mut low, mut high) = (0.01, 1e4);
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        let survives = (Standard.ln_bit(modulation, coding, middle) * OCTETS * 8.0).exp() > 0.5;
        (low, high) = if survives { (low, middle) } else { (middle, high) };
    }
    low
}

#[test]
fn the_rate_is_divided_by_the_spreading_factor() {
    for spreading in [2, 8, 64] {
        let found = flows(&[Some(code(spreading, 1))], 0.5, 36.0, 20.0)[0];
        let wanted = expected(spreading);
        assert!((found / wanted - 1.0).abs() < 0.01, "{found} of {wanted} with {spreading}");
    }
}

#[test]
fn aligned_codes_do_not_disturb_each_other_and_one_code_is_shared() {
    let alone = flows(&[Some(aligned(8, 0))], 0.5, 36.0, 10.0)[0];
    let all: Vec<_> = (0..8).map(|number| Some(aligned(8, number))).collect();
    let found = flows(&all, 0.5, 36.0, 10.0);
    for flow in &found {
        assert!(((alone - flow) / alone).abs() < 0.005, "{flow} of {alone}");
    }
    // A whole set of codes carries what one channel carries, less the spaces that codes share.
    let sum: f64 = found.iter().sum();
    assert!((sum / (8.0 * expected(8)) - 1.0).abs() < 0.01, "{sum}");
    let shared = flows(&[Some(aligned(8, 0)), Some(aligned(8, 0))], 0.5, 36.0, 20.0);
    for flow in &shared {
        assert!((flow / alone - 0.5).abs() < 0.05, "{shared:?} of {alone}");
    }
}

/// Share of the frames of a pair that arrive while others send all the time, each on a code of its own.
/// The pair and the others: x of sender and receiver, and of each interfering sender.
fn arriving(
    loss: Box<dyn PathLoss>,
    megabits: f64,
    pair: [f64; 2],
    others: &[f64],
    codes: impl Fn(u16) -> Option<CodeSettings>,
) -> f64 {
    let settings = |number| RadioSettings {
        code: codes(number),
        control_rate: Some((megabits * 1e6) as u64),
        ..at_rate(megabits)
    };
    let mut world = World::new(1, loss);
    let [from, to] = pair.map(|x| world.add(settings(0), x, 0.0));
    for (number, &x) in (1..).zip(others) {
        let other = world.add(settings(number), x, 0.0);
        (0..900).for_each(|_| world.offer(at(0.0), other, None, PAYLOAD));
    }
    world.run(at(0.001));
    // Broadcast: no repetitions.
    let count = 100;
    (0..count).for_each(|_| world.offer(at(0.001), from, None, PAYLOAD));
    let mut seconds = 0.0;
    while world.medium.queued(from) > 0 {
        seconds += 0.5;
        world.run(at(seconds));
    }
    assert!((1..).zip(others).all(|(other, _)| world.medium.queued(RadioId::new(1 + other)) > 0));
    let tally = world.sinks.tallies.get(&(from.number(), to.number())).copied().unwrap_or_default();
    tally.frames as f64 / f64::from(count)
}

/// mW of a signal of 16 dBm after so many metres of the reference loss.
fn power(metres: f64) -> f64 {
    linear(16.0 - 46.6777 - 30.0 * metres.log10())
}

fn linear(decibels: f64) -> f64 {
    10f64.powf(decibels / 10.0)
}

#[test]
fn a_near_sender_of_another_code_ends_a_far_link_at_the_distance_of_the_closed_form() {
    for (spreading, far) in [(16u16, 30.0), (64, 50.0)] {
        let gain = f64::from(spreading);
        let ratio = needed(Modulation::Qpsk, Coding::Half);
        // P / (N / SF + 2 I / (3 SF)) = ratio.
        let interference = (power(far) / ratio - linear(NOISE_DBM) / gain) * 3.0 * gain / 2.0;
        let near = 10f64.powf((16.0 - 46.6777 - 10.0 * interference.log10()) / 30.0);
        assert!(near > 1.0 && near < far, "{near} m of {far} m");
        let at = |distance: f64| {
            arriving(reference_loss(), 12.0, [0.0, far], &[far + distance], |number| {
                Some(code(spreading, number))
            })
        };
        let (beyond, within) = (at(near * 1.1), at(near * 0.9));
        assert!(beyond > 0.9, "{beyond} at {near} m * 1.1 with {spreading}");
        assert!(within < 0.1, "{within} at {near} m * 0.9 with {spreading}");
        // Aligned codes: no near-far effect.
        let close = arriving(reference_loss(), 12.0, [0.0, far], &[far + 0.5], |number| {
            Some(aligned(spreading, number))
        });
        assert!(close > 0.99, "{close}");
    }
}

#[test]
fn the_number_of_equal_senders_is_that_of_the_closed_form() {
    // All powers are equal, and far above the noise: ratio = 3 SF / (2 K) with K other senders.
    let ratio = needed(Modulation::Qpsk, Coding::Half);
    for spreading in [8u16, 16] {
        let most = 3.0 * f64::from(spreading) / 2.0 / ratio;
        let among = |count: f64| {
            let others = vec![1.0; count as usize];
            let loss = Box::new(Disk { range_m: 100.0, loss_db: 80.0 });
            arriving(loss, 12.0, [0.0, 2.0], &others, |number| Some(code(spreading, number)))
        };
        let (fewer, more) = ((most * 0.85).floor(), (most * 1.2).ceil());
        assert!(among(fewer) > 0.9, "{fewer} of {most} with {spreading}: {}", among(fewer));
        assert!(among(more) < 0.1, "{more} of {most} with {spreading}: {}", among(more));
    }
}

#[test]
fn noise_and_sensitivity_gain_the_processing_gain() {
    // The distance where half of the frames drown in noise, without and with a code. Below the
    // default sensitivity, so the limit is the ratio.
    let ratio = needed(Modulation::Qam16, Coding::ThreeQuarters);
    for spreading in [1u16, 4, 16] {
        let gain = f64::from(spreading);
        let least = ratio * linear(NOISE_DBM) / gain;
        let range = 10f64.powf((16.0 - 46.6777 - 10.0 * least.log10()) / 30.0);
        let at = |metres: f64| {
            let codes = |number| (spreading > 1).then_some(code(spreading, number));
            arriving(reference_loss(), 36.0, [0.0, metres], &[], codes)
        };
        assert!(at(range * 0.95) > 0.9, "{} at 0.95 of {range} m", at(range * 0.95));
        assert!(at(range * 1.05) < 0.1, "{} at 1.05 of {range} m", at(range * 1.05));
    }
}

#[test]
fn only_the_own_code_is_decoded_and_deferred_to() {
    let mut world = World::new(1, reference_loss());
    let codes = [Some(code(8, 1)), Some(code(8, 2)), None];
    let radios = codes.map(|code| world.add(RadioSettings { code, ..at_rate(36.0) }, 0.0, 0.0));
    for from in radios {
        for (to, other) in radios.into_iter().zip(0..) {
            if to != from {
                world.offer(at(0.1 * f64::from(other)), from, Some(to), 100);
            }
        }
    }
    world.run(at(2.0));
    assert_eq!(world.sinks.delivered, 0);
    assert_eq!(world.sinks.drops.values().sum::<u64>(), world.offered);
    // What remains of a sender at 10 m, 16 dBm - 76.7 dB - 19.8 dB, is below the energy detection
    // threshold of -62 dBm: nobody defers. What remains at 0.5 m, -41.5 dBm, is above it.
    let codes = [Some(code(64, 1)), Some(code(64, 2))];
    let alone = flows(&codes[..1], 0.5, 6.0, 20.0)[0];
    let apart = flows(&codes, 10.0, 6.0, 20.0);
    assert!(apart.iter().all(|flow| (flow / alone - 1.0).abs() < 0.01), "{apart:?} of {alone}");
    let near: f64 = flows(&codes, 0.5, 6.0, 20.0).iter().sum();
    assert!((near / alone - 1.0).abs() < 0.1, "{near} of {alone}");
}

#[test]
fn weights_of_airtime_hold_among_slices_of_one_code() {
    let pairs = |codes: [CodeSettings; 2]| {
        let mut world = World::new(1, reference_loss());
        let (mut flows, mut airtimes) = ([0.0; 2], [0u64; 2]);
        let pairs: Vec<_> = (0u16..)
            .zip(codes)
            .map(|(number, code)| {
                let x = f64::from(number) * 0.5;
                let radios = [0.0, 1.0].map(|y| world.add(with(code, 36.0), x, y));
                for radio in radios {
                    let policed = Policed {
                        slice: format!("slice {number}"),
                        channels: vec![36],
                        power_dbm: None,
                        ssids: vec![],
                        airtime_weight: Some(1 + 2 * number),
                        assigned: true,
                        police: Police::Watch,
                    };
                    world.medium.police(radio, &policed).expect("a grant");
                }
                radios
            })
            .collect();
        for &[from, to] in &pairs {
            world.saturate(at(0.0), from, to, PAYLOAD);
        }
        world.start_counting(at(0.0));
        world.run(at(20.0));
        for (place, [from, to]) in pairs.into_iter().enumerate() {
            flows[place] = world.goodput(from, to, Span::from_secs(20));
            let uses = [from, to].map(|radio| world.medium.uses(radio).to_vec());
            airtimes[place] = uses.iter().flatten().map(|used| used.sent.nanos()).sum();
        }
        (flows, airtimes)
    };
    let (_, [one, three]) = pairs([aligned(8, 1), aligned(8, 1)]);
    assert!((three as f64 / one as f64 / 3.0 - 1.0).abs() < 0.03, "{one}, {three}");
    // On other codes nobody waits.
    for flow in pairs([aligned(8, 1), aligned(8, 2)]).0 {
        assert!((flow / expected(8) - 1.0).abs() < 0.01, "{flow}");
    }
}

#[test]
fn no_frame_is_lost_or_made() {
    let mut world = World::new(1, reference_loss());
    for number in 0..8u16 {
        let settings = with(code(8, number / 2), 54.0);
        let radio = world.add(settings, 2.0 * f64::from(number), 0.0);
        if number % 2 == 1 {
            world.saturate(at(0.0), radio, RadioId::new(radio.number() - 1), PAYLOAD);
        }
    }
    world.run(at(3.0));
    let mut inside = 0;
    world.medium.visit(&mut |_| inside += 1);
    let dropped: u64 = world.sinks.drops.values().sum();
    assert_eq!(world.offered, world.sinks.delivered + dropped + inside);
    assert!(world.sinks.delivered > 200, "{}", world.sinks.delivered);
}

#[test]
fn what_cannot_have_a_code_is_refused() {
    let place = || Box::new(Static(Position::new(0.0, 0.0, 0.0)));
    let good = with(code(8, 1), 36.0);
    let cases = [
        (with(code(12, 1), 36.0), "code.spreading"),
        (with(code(8, 8), 36.0), "code.number"),
        (RadioSettings { membership: Membership::Wlan, ..good.clone() }, "knows no spreading"),
    ];
    for (settings, words) in cases {
        let mut world = World::new(1, reference_loss());
        let error = world.medium.add_radio("a", settings, place()).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
    let mut world = World::new(1, reference_loss());
    let radio = world.add(good, 0.0, 0.0);
    let error = world.medium.add_card("card", CardSettings::default(), &[radio]).expect_err("a code");
    assert!(error.to_string().contains("do not share a card"), "{error}");
}
