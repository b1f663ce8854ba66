//! Stress test: radios of all kinds, changed at random while they send.
//!
//! Time must advance and every frame must have one outcome.

#![allow(clippy::cast_possible_truncation)]

mod world;

use airloom_engine::medium::mobility::{Area, Position, RandomWaypoint};
use airloom_engine::medium::propagation::Fading;
use airloom_engine::medium::{Membership, NoiseSettings, RadioChange, RadioSettings, RateSettings, Roaming};
use airloom_engine::random::Stream;
use airloom_engine::time::{Instant, Span};
use world::{World, reference_loss};

const CHANNELS: [u16; 3] = [36, 40, 44];

fn settings(dice: &mut Stream) -> RadioSettings {
    let pick = |dice: &mut Stream, bound: u64| dice.below(bound) as usize;
    let membership = match pick(dice, 4) {
        0 => Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 20_000_000 },
        1 => Membership::Station(Roaming {
            ssid: "lab".into(),
            channels: CHANNELS.to_vec(),
            dwell_ns: 25_000_000,
            active: dice.chance(0.5),
            lost_ns: 100_000_000,
            ..Roaming::default()
        }),
        _ => Membership::AdHoc { ssid: ["", "", "", "one"][pick(dice, 4)].to_owned(), beacon_ns: 20_000_000 },
    };
    RadioSettings {
        channel: CHANNELS[pick(dice, 3)],
        rate: [
            RateSettings::Constant(54_000_000),
            RateSettings::Arf,
            RateSettings::Aarf,
            RateSettings::Minstrel,
        ][pick(dice, 4)]
        .clone(),
        preamble_db: dice.chance(0.5).then_some(4.0),
        capture_db: dice.chance(0.5).then_some(10.0),
        capture_ns: dice.chance(0.3).then_some(16_000),
        rts_octets: dice.chance(0.3).then_some(500),
        fragment_octets: dice.chance(0.3).then_some(400),
        transmit_buffers: 30,
        qos: dice.chance(0.5),
        coverage_class: pick(dice, 3) as u8,
        as_ns3: dice.chance(0.2),
        membership,
        ..RadioSettings::default()
    }
}

fn storm(seed: u64) -> (u64, u64, usize) {
    let mut dice = Stream::named(seed, "storm");
    let mut world = World::new(seed, reference_loss());
    world
        .medium
        .set_fading([Fading::None, Fading::Rayleigh, Fading::Nakagami { m: 2.0 }][dice.below(3) as usize]);
    world.medium.set_sniffing(dice.chance(0.3));
    let area = Area { corner: Position::default(), width: 80.0, height: 80.0 };
    let nodes: Vec<_> = (0..14)
        .map(|_| {
            let settings = settings(&mut dice);
            world.add(settings, 80.0 * dice.unit(), 80.0 * dice.unit())
        })
        .collect();
    for (number, &node) in (0..).zip(&nodes).filter(|(number, _)| number % 3 == 0) {
        let motion = Stream::named(seed, &format!("motion {number}"));
        let motion = RandomWaypoint::start(area, [1.0, 50.0], [0.0, 0.5], motion);
        world.medium.set_mobility(node, motion).expect("a place");
    }
    let mut now = Instant::ZERO;
    for _ in 0..6_000 {
        now += Span::from_nanos(dice.below(400_000));
        world.run(now);
        let node = nodes[dice.below(14) as usize];
        match dice.below(60) {
            0 => {
                let change = match dice.below(10) {
                    0 => RadioChange::Channel(CHANNELS[dice.below(3) as usize]),
                    1 => RadioChange::Power(30.0 * dice.unit()),
                    2 => RadioChange::On(false),
                    3 => RadioChange::Position(Position::new(80.0 * dice.unit(), 0.0, 0.0)),
                    4 => RadioChange::RtsOctets(dice.chance(0.5).then_some(300)),
                    5 => RadioChange::Ssid(["", "lab", "lab"][dice.below(3) as usize].to_owned()),
                    6 => RadioChange::Scan {
                        channels: CHANNELS[dice.below(3) as usize..].to_vec(),
                        active: dice.chance(0.5),
                        dwell_ns: 10_000_000,
                    },
                    _ => RadioChange::On(true),
                };
                world.medium.change(node, &change, &mut world.sinks);
            }
            1 if dice.chance(0.2) => {
                let noise = NoiseSettings {
                    power_dbm: 20.0 * dice.unit(),
                    band_hz: [5.15e9, 5.25e9],
                    from_ns: now.nanos(),
                    until_ns: Some(now.nanos() + 100_000_000),
                    burst_ns: dice.chance(0.5).then_some([300_000, 700_000]),
                };
                let motion =
                    RandomWaypoint::start(area, [1.0, 2.0], [0.0, 0.5], Stream::named(seed, "noise"));
                world.medium.add_noise(noise, motion).expect("valid");
            }
            _ => {
                let to = (!dice.chance(0.2)).then(|| nodes[dice.below(14) as usize]);
                let payload = 20 + dice.below(1400) as u32;
                match to {
                    Some(to) => world.offer_marked(now, node, to, payload, dice.below(64) as u8),
                    None => world.offer(now, node, None, payload),
                }
            }
        }
        let mut inside = 0;
        world.medium.visit(&mut |_| inside += 1);
        let fates = world.sinks.delivered + world.sinks.drops.values().sum::<u64>();
        assert_eq!(world.offered + world.sinks.copies, fates + inside, "at {now}");
    }
    now += Span::from_secs(20);
    world.run(now);
    let fates = world.sinks.delivered + world.sinks.drops.values().sum::<u64>();
    assert_eq!(world.offered + world.sinks.copies, fates, "nothing is left over after a while");
    for &node in &nodes {
        let time = world.medium.airtime(node, now);
        let sum = time.idle + time.transmitting + time.receiving + time.collided + time.busy;
        assert!(sum.nanos().abs_diff(now.nanos()) < 10_000, "{time:?}");
    }
    assert_eq!(world.sinks.pool.in_use(), 0);
    (world.sinks.delivered, world.sinks.copies, world.sinks.sniffs.len())
}

#[test]
fn every_frame_meets_one_fate_whatever_happens() {
    for seed in 0..25 {
        let seen = storm(seed);
        assert!(seen.0 > 10, "seed {seed}: {seen:?}");
        assert_eq!(storm(seed), seen, "the same again, seed {seed}");
    }
}
