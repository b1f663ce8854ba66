//! Single mechanisms: queues, fragments, RTS/CTS, EDCA, capture, noise, channel overlap, timing.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use airloom_engine::DropReason;
use airloom_engine::medium::error::Fixed;
use airloom_engine::medium::mobility::{ConstantVelocity, Position, Static};
use airloom_engine::medium::phy::{Channel, tables};
use airloom_engine::medium::propagation::{Fading, Matrix};
use airloom_engine::medium::{NoiseSettings, RadioChange, RadioId, RadioSettings, RateSettings};
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

fn pair(settings: &RadioSettings) -> (World, RadioId, RadioId) {
    let mut world = World::new(1, reference_loss());
    let (a, b) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings.clone(), 5.0, 0.0));
    (world, a, b)
}

/// Mbit/s from a to b over ten seconds of saturation.
fn saturated(world: &mut World, a: RadioId, b: RadioId) -> f64 {
    world.saturate(at(0.0), a, b, PAYLOAD);
    world.run(at(0.2));
    world.start_counting(at(0.2));
    world.run(at(10.2));
    world.goodput(a, b, Span::from_secs(10))
}

#[test]
fn the_drivers_two_limits() {
    let plain = RadioSettings::default();
    assert_eq!((plain.transmit_buffers, plain.tail_drop), (40, 50));
    for (buffers, tail, kept) in [(40, 1000, 40), (1000, 50, 50), (1000, 1000, 60)] {
        let settings = RadioSettings { transmit_buffers: buffers, tail_drop: tail, ..at_rate(54.0) };
        let (mut world, a, b) = pair(&settings);
        (0..60).for_each(|_| world.offer(at(0.0), a, Some(b), PAYLOAD));
        world.run(at(1.0));
        assert_eq!(world.sinks.delivered, kept, "{buffers} {tail}");
        assert_eq!(world.sinks.drops.get(&DropReason::RadioQueueFull).copied().unwrap_or(0), 60 - kept);
        assert_eq!(world.medium.counts(a).refused, 60 - kept);
    }
    // With four lanes the tail limit applies to each lane, the buffer limit to all together.
    let settings = RadioSettings { qos: true, transmit_buffers: 70, tail_drop: 50, ..at_rate(54.0) };
    let (mut world, a, b) = pair(&settings);
    for _ in 0..60 {
        world.offer(at(0.0), a, Some(b), PAYLOAD);
        world.offer_marked(at(0.0), a, b, PAYLOAD, 46);
    }
    world.run(at(1.0));
    assert_eq!(world.sinks.delivered, 70);
}

#[test]
fn fragments_take_their_airtime_and_arrive_as_one() {
    // 1534 octets at 36 Mbit/s in fragments of at most 600: bodies of 572, 572 and 362.
    let settings = RadioSettings { fragment_octets: Some(600), ..at_rate(36.0) };
    let (mut world, a, b) = pair(&settings);
    world.offer(at(1.0), a, Some(b), PAYLOAD);
    world.run(at(2.0));
    assert_eq!(world.sinks.delivered, 1);
    assert_eq!(world.medium.counts(a).sent, 3);
    let piece = |octets| tables::A.rates[5].airtime(octets).nanos();
    let between = 16_000 + 28_000 + 16_000 + 2 * 17;
    let expected = piece(600) + between + piece(600) + between + piece(390) + 17;
    assert_eq!(world.sinks.tallies[&(0, 1)].delay, expected);
    // Only the lost fragment is sent again.
    let (mut world, a, b) = pair(&settings);
    world.medium.set_frame_error(a, b, 0.3);
    (0..300).for_each(|_| world.offer(at(0.0), a, Some(b), PAYLOAD));
    world.run(at(5.0));
    assert_eq!(world.sinks.delivered + world.sinks.drops.values().sum::<u64>(), 300);
    let sent = world.medium.counts(a).sent as f64;
    assert!((sent / (900.0 / 0.7) - 1.0).abs() < 0.06, "{sent}");
    assert_eq!(world.sinks.pool.in_use(), 0);
}

#[test]
fn a_frame_error_rate_leads_to_repeats_and_gives_up_at_the_limit() {
    let (mut world, a, b) = pair(&at_rate(54.0));
    world.medium.set_frame_error(a, b, 0.5);
    (0..1000).for_each(|_| world.offer(at(0.0), a, Some(b), 100));
    world.run(at(10.0));
    let lost = world.sinks.drops[&DropReason::RetryLimit] as f64;
    // 0.5^7 of the frames.
    assert!((lost / 7.8 - 1.0).abs() < 1.0, "{lost}");
    // Lost acknowledgments: every frame arrives once, but some are given up nevertheless.
    let (mut world, a, b) = pair(&at_rate(54.0));
    world.medium.set_frame_error(b, a, 0.5);
    (0..1000).for_each(|_| world.offer(at(0.0), a, Some(b), 100));
    world.run(at(10.0));
    assert_eq!(world.sinks.delivered, 1000);
    assert!(world.sinks.drops.is_empty(), "{:?}", world.sinks.drops);
    assert!(world.medium.counts(b).duplicates > 800);
    assert!(world.medium.counts(a).given_up > 0);
}

#[test]
fn a_request_and_its_clearance_take_their_time() {
    let settings = RadioSettings { rts_octets: Some(500), ..at_rate(54.0) };
    let (mut world, a, b) = pair(&settings);
    world.offer(at(1.0), a, Some(b), PAYLOAD);
    world.run(at(2.0));
    // RTS and CTS at 24 Mbit/s: 28 us each; then 248 us; four propagation delays of 17 ns.
    assert_eq!(world.sinks.tallies[&(0, 1)].delay, (28 + 16 + 28 + 16 + 248) * 1_000 + 3 * 17);
    world.offer(at(2.0), a, Some(b), 400);
    world.run(at(3.0));
    assert_eq!(world.medium.counts(a).requests, 1, "short frames go without");
}

#[test]
fn a_frame_whose_requests_stay_without_an_answer_tells_if_its_receiver_was_in_range() {
    let settings = RadioSettings { rts_octets: Some(500), ..at_rate(54.0) };
    for (metres, why) in [(5.0, DropReason::RetryLimit), (1e5, DropReason::OutOfRange)] {
        let mut world = World::new(1, reference_loss());
        let (a, b) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings.clone(), metres, 0.0));
        // No clear-to-send arrives.
        world.medium.set_frame_error(b, a, 1.0);
        world.offer(at(0.0), a, Some(b), PAYLOAD);
        world.run(at(1.0));
        assert_eq!(world.sinks.drops.keys().collect::<Vec<_>>(), [&why]);
        assert_eq!(world.medium.counts(a).requests_unanswered, 7);
    }
}

#[test]
fn voice_goes_before_background() {
    let settings = RadioSettings { qos: true, ..at_rate(24.0) };
    let mut world = World::new(1, reference_loss());
    let sink = world.add(settings.clone(), 0.0, 0.0);
    let stations: Vec<_> = (0..4).map(|_| world.add(settings.clone(), 2.0, 0.0)).collect();
    let dscp = [46, 34, 0, 8];
    for round in 0..4000u64 {
        let now = Instant::from_nanos(round * 500_000);
        world.run(now);
        for (&station, dscp) in stations.iter().zip(dscp) {
            if world.medium.queued(station) < 20 {
                world.offer_marked(now, station, sink, PAYLOAD, dscp);
            }
        }
    }
    let frames: Vec<u64> =
        stations.iter().map(|s| world.sinks.tallies.get(&(s.number(), 0)).map_or(0, |t| t.frames)).collect();
    assert!(frames.is_sorted_by(|a, b| a > b), "{frames:?}");
    assert!(frames[0] > 4 * frames[2] && frames[2] > 2 * frames[3], "{frames:?}");
}

#[test]
fn lanes_of_one_radio_collide_inside_it_and_the_higher_wins() {
    let settings = RadioSettings { qos: true, ..at_rate(24.0) };
    let (mut world, a, b) = pair(&settings);
    for round in 0..2000u64 {
        let now = Instant::from_nanos(round * 400_000);
        world.run(now);
        for dscp in [46, 8] {
            if world.medium.queued(a) < 20 {
                world.offer_marked(now, a, b, PAYLOAD, dscp);
            }
        }
    }
    world.run(at(2.0));
    assert_eq!(world.medium.counts(a).unanswered, 0, "nothing collides on the air");
    assert!(world.sinks.drops.is_empty());
    assert_eq!(world.offered, world.sinks.delivered);
}

#[test]
fn the_stronger_frame_is_captured() {
    // Hidden from each other, 20 dB apart at the receiver: the stronger one loses very little.
    let run = |capture_db| {
        let mut matrix = Matrix::silent(3);
        for (from, loss) in [(0, 60.0), (2, 80.0)] {
            matrix.set(from, 1, loss);
            matrix.set(1, from, loss);
        }
        let mut world = World::new(1, Box::new(matrix));
        let settings = RadioSettings { capture_db, ..at_rate(6.0) };
        let nodes: Vec<_> = (0..3).map(|_| world.add(settings.clone(), 0.0, 0.0)).collect();
        world.saturate(at(0.0), nodes[0], nodes[1], PAYLOAD);
        world.saturate(at(0.0), nodes[2], nodes[1], PAYLOAD);
        world.run(at(10.0));
        let mut failed = |node: RadioId| {
            let counts = world.medium.counts(node);
            counts.unanswered as f64 / counts.expected as f64
        };
        (failed(nodes[0]), failed(nodes[2]))
    };
    let (with, without) = (run(Some(10.0)), run(None));
    assert!(with.0 < 0.01, "{with:?}");
    // Without capture, the receiver stays with a weaker frame that arrived first.
    assert!(without.0 > 0.015 && with.0 < 0.2 * without.0, "{with:?} {without:?}");
    assert!(with.1 > 0.5 && without.1 > 0.5, "{with:?} {without:?}");
}

#[test]
fn neighbouring_channels_disturb_each_other_less_the_farther_they_are() {
    let total = |other: u16| {
        let mut world = World::new(1, reference_loss());
        let on = |world: &mut World, channel, y| {
            let settings = RadioSettings {
                phy: "802.11g".into(),
                channel,
                carrier_sense_dbm: Some(-40.0),
                ..at_rate(24.0)
            };
            (world.add(settings.clone(), 0.0, y), world.add(settings, 10.0, y))
        };
        let (one, two) = (on(&mut world, 1, 0.0), on(&mut world, other, 12.0));
        for (from, to) in [one, two] {
            world.saturate(at(0.0), from, to, PAYLOAD);
        }
        world.run(at(0.2));
        world.start_counting(at(0.2));
        world.run(at(5.2));
        [one, two].map(|(from, to)| world.goodput(from, to, Span::from_secs(5))).iter().sum::<f64>()
    };
    let totals = [2, 3, 4, 5, 6].map(total);
    assert!(totals[0] < 0.6 * totals[4], "{totals:?}");
    assert!(totals.is_sorted(), "{totals:?}");
    assert!((totals[4] - totals[3]).abs() < 0.02 * totals[4], "5 channels apart is clean: {totals:?}");
}

#[test]
fn noise_lowers_the_ratio_while_it_is_on() {
    let (mut world, a, b) = pair(&at_rate(54.0));
    let noise = NoiseSettings {
        power_dbm: 0.0,
        band_hz: [5.17e9, 5.19e9],
        from_ns: 3_000_000_000,
        until_ns: Some(6_000_000_000),
        burst_ns: None,
    };
    // At 20 m: 0 - 85.7 dBm, against a signal of -51.7 dBm from 5 m; the ratio is below 24 dB only
    // with more power: this source is harmless, the next is not.
    let place = || Box::new(Static(Position::new(25.0, 0.0, 0.0)));
    world.medium.add_noise(noise.clone(), place()).expect("valid");
    world.saturate(at(0.0), a, b, PAYLOAD);
    let goodput = |world: &mut World, from: f64, to: f64| {
        world.run(at(from));
        world.start_counting(at(from));
        world.run(at(to));
        world.goodput(a, b, Span::from_nanos(((to - from) * 1e9) as u64))
    };
    let full = goodput(&mut world, 1.0, 2.0);
    assert!((goodput(&mut world, 4.0, 5.0) / full - 1.0).abs() < 0.03);
    let loud = NoiseSettings { power_dbm: 16.0, from_ns: 7_000_000_000, until_ns: None, ..noise };
    let bursts = NoiseSettings { burst_ns: Some([500_000_000; 2]), ..loud };
    world.medium.add_noise(bursts, place()).expect("valid");
    assert!(goodput(&mut world, 7.05, 7.45) < 0.05 * full, "54 Mbit/s needs more than 20 dB");
    assert!((goodput(&mut world, 7.6, 7.95) / full - 1.0).abs() < 0.06);
    // On another channel it has no effect.
    for radio in [a, b] {
        world.medium.change(radio, &RadioChange::Channel(64), &mut world.sinks);
    }
    assert!((goodput(&mut world, 9.05, 9.45) / full - 1.0).abs() < 0.06);
    let refused = NoiseSettings { power_dbm: 500.0, ..loud_settings() };
    assert!(world.medium.add_noise(refused, place()).expect_err("refused").to_string().contains("power"));
}

#[test]
fn a_source_of_noise_that_comes_near_is_heard_more_and_more() {
    // It passes at 20 m/s and is loudest after 10 s; the second source is off for a second before.
    for burst_ns in [None, Some([9_000_000_000, 1_000_000_000])] {
        let (mut world, a, b) = pair(&at_rate(54.0));
        let noise = NoiseSettings { power_dbm: 13.0, band_hz: [5.17e9, 5.19e9], burst_ns, ..loud_settings() };
        let motion = ConstantVelocity {
            start: Position::new(5.0, -200.0, 0.0),
            velocity: Position::new(0.0, 20.0, 0.0),
        };
        world.medium.add_noise(noise, Box::new(motion)).expect("valid");
        world.saturate(at(0.0), a, b, PAYLOAD);
        let goodput = |world: &mut World, from: f64| {
            world.run(at(from));
            world.start_counting(at(from));
            world.run(at(from + 0.5));
            world.goodput(a, b, Span::from_millis(500))
        };
        let [far, near, gone] = [2.2, 10.2, 18.2].map(|from| goodput(&mut world, from));
        assert!(far > 29.0, "{far}");
        assert!(near < 0.1 * far, "{near} of {far}");
        assert!((gone / far - 1.0).abs() < 0.05, "{gone} of {far}");
    }
}

fn loud_settings() -> NoiseSettings {
    NoiseSettings { power_dbm: 0.0, band_hz: [2.4e9, 2.5e9], from_ns: 0, until_ns: None, burst_ns: None }
}

#[test]
fn strong_noise_keeps_the_channel_busy() {
    let (mut world, a, b) = pair(&at_rate(54.0));
    let jam = NoiseSettings { power_dbm: 20.0, band_hz: [5.17e9, 5.19e9], ..loud_settings() };
    let jam = NoiseSettings { from_ns: 1_000_000_000, until_ns: Some(2_000_000_000), ..jam };
    world.medium.add_noise(jam, Box::new(Static(Position::new(2.0, 2.0, 0.0)))).expect("valid");
    world.run(at(1.5));
    world.offer(at(1.5), a, Some(b), PAYLOAD);
    world.run(at(1.9));
    assert_eq!(world.medium.counts(a).sent, 0, "it defers");
    world.run(at(3.0));
    assert_eq!(world.sinks.delivered, 1);
    assert_eq!(world.medium.airtime(a, at(3.0)).busy, Span::from_secs(1));
}

#[test]
fn where_the_time_goes_adds_up() {
    let (mut world, a, b) = pair(&at_rate(54.0));
    let mbit = saturated(&mut world, a, b);
    let end = world.medium.now();
    for radio in [a, b] {
        let time = world.medium.airtime(radio, end);
        let sum = time.idle + time.transmitting + time.receiving + time.collided + time.busy;
        assert!(sum.nanos().abs_diff(end.nanos()) < 1000, "{time:?}");
    }
    let frames = mbit * 1e6 / f64::from(PAYLOAD * 8);
    let expected = frames * 10.2 * 248e3;
    let sent = world.medium.airtime(a, end).transmitting.nanos() as f64;
    assert!((sent / expected - 1.0).abs() < 0.01, "{sent} against {expected}");
    let channel = Channel { number: 36, mhz: 5180 };
    let used = world.medium.channel_airtime(channel);
    let both = world.medium.airtime(a, end).transmitting + world.medium.airtime(b, end).transmitting;
    assert!(used.busy.nanos().abs_diff(both.nanos()) < 300_000, "{used:?}");
    assert_eq!(used.overlapped, Span::ZERO);
    assert_eq!(world.medium.channels().collect::<Vec<_>>(), [channel]);
}

#[test]
fn rayleigh_fading_loses_what_its_closed_form_says() {
    // Without bit errors a frame is lost if its gain is below the threshold: 1 - exp(-x).
    let settings = RadioSettings { receive_dbm: -60.0, preamble_db: None, ..at_rate(54.0) };
    let mut world = World::new(1, reference_loss());
    let (a, b) = (world.add(settings.clone(), 0.0, 0.0), world.add(settings, 5.0, 0.0));
    world.medium.set_error_model(Box::new(Fixed { bit_error: 0.0 }));
    world.medium.set_fading(Fading::Rayleigh);
    for round in 0..20_000u64 {
        let now = Instant::from_nanos(round * 1_000_000);
        world.run(now);
        world.offer(now, a, None, 100);
    }
    world.run(at(30.0));
    let mean = world.medium.power_at(a, b);
    let expected = libm::exp(-libm::pow(10.0, (-60.0 - mean) / 10.0));
    let found = world.sinks.delivered as f64 / 20_000.0;
    assert!((found - expected).abs() < 0.01, "{found} against {expected}");
}

#[test]
fn saturation_lies_between_the_published_values() {
    // Bianchi's model for 1500-octet packets, DIFS above and EIFS below, widened by 2.5 %.
    for (rate, n, upper, lower) in
        [(6.0, 5, 4.7087, 4.6899), (24.0, 10, 15.1426, 14.9153), (54.0, 20, 26.2925, 25.3325)]
    {
        for preamble_db in [Some(4.0), None] {
            let mut world = World::new(1, reference_loss());
            let settings = RadioSettings { preamble_db, ..at_rate(rate) };
            let sink = world.add(settings.clone(), 0.0, 0.0);
            let stations: Vec<_> = (0..n).map(|_| world.add(settings.clone(), 0.1, 0.0)).collect();
            // 1500 octets after the 24 of the header: the part left by LLC, IP and UDP counts in
            // full.
            for &station in &stations {
                world.saturate(at(0.0), station, sink, 1500 - 36);
            }
            world.run(at(0.5));
            world.start_counting(at(0.5));
            world.run(at(10.5));
            let sum: f64 = stations.iter().map(|&s| world.goodput(s, sink, Span::from_secs(10))).sum();
            let found = sum * 1500.0 / f64::from(1500 - 36);
            assert!(
                (lower * 0.975..upper * 1.025).contains(&found),
                "{rate} Mbit/s, {n} stations, {preamble_db:?}: {found}"
            );
        }
    }
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    let mut world = World::new(1, reference_loss());
    let mut refused = |settings: RadioSettings| {
        let place = Box::new(Static(Position::default()));
        world.medium.add_radio("r", settings, place).expect_err("refused").to_string()
    };
    let plain = RadioSettings::default();
    for (settings, word) in [
        (RadioSettings { phy: "802.11z".into(), ..plain.clone() }, "802.11z"),
        (RadioSettings { channel: 13, ..plain.clone() }, "channel 13"),
        (RadioSettings { rate: RateSettings::Constant(11_000_000), ..plain.clone() }, "11000000"),
        (RadioSettings { basic_rates: vec![1], ..plain.clone() }, "rate of 1 bit/s"),
        (RadioSettings { power_dbm: f64::NAN, ..plain.clone() }, "power_dbm"),
        (RadioSettings { gain_dbi: -21.0, ..plain.clone() }, "gain_dbi"),
        (RadioSettings { short_retries: 0, ..plain.clone() }, "short_retries"),
        (RadioSettings { fragment_octets: Some(100), ..plain.clone() }, "fragment_octets"),
        (RadioSettings { transmit_buffers: 0, ..plain.clone() }, "transmit_buffers"),
    ] {
        let told = refused(settings);
        assert!(told.contains(word) && told.contains("\"r\""), "{told}");
    }
    let nowhere = Box::new(Static(Position::new(f64::NAN, 0.0, 0.0)));
    let told = world.medium.add_radio("r", plain, nowhere).expect_err("refused").to_string();
    assert!(told.contains("position"), "{told}");
}
