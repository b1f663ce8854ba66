//! Measures the CPU time of the radio medium for each simulated second.
//!
//! Saturated 802.11a stations at 54 Mbit/s, or 802.11b stations at 11 Mbit/s, all in range of each other, and a grid of 400 nodes on
//! 12 channels. Islands out of range of each other show that the cost grows with the number of
//! radios in range. Run with `cargo run --release --example medium_speed`.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

#[path = "../tests/world/mod.rs"]
mod world;

use airloom_engine::medium::RadioSettings;
use airloom_engine::random::Stream;
use airloom_engine::time::{Instant, Span};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

/// CPU seconds of ns-3.44 for a simulated second, measured on the machine of the reference data:
/// stations and seconds.
const PEER: [(u32, f64); 2] = [(10, 0.6568), (50, 2.4381)];

/// CPU time of this thread in seconds; other load of the machine does not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux's account of threads");
    let nanos: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).expect("nanoseconds");
    nanos as f64 * 1e-9
}

/// `n` saturated stations at the highest rate of a physical layer: cost, and frames per second.
fn saturated(n: u32, seconds: f64, phy: &str) -> (f64, f64) {
    let settings = match phy {
        "802.11b" => RadioSettings { phy: phy.into(), channel: 1, ..at_rate(11.0) },
        _ => at_rate(54.0),
    };
    let mut world = World::new(1, reference_loss());
    let sink = world.add(settings.clone(), 0.0, 0.0);
    for station in 0..n {
        let angle = f64::from(station) / f64::from(n) * core::f64::consts::TAU;
        let from = world.add(settings.clone(), 5.0 * libm::cos(angle), 5.0 * libm::sin(angle));
        world.saturate(at(0.0), from, sink, PAYLOAD);
    }
    world.run(at(0.2));
    let start = cpu_seconds();
    world.run(at(0.2 + seconds));
    ((cpu_seconds() - start) / seconds, world.sinks.delivered as f64 / (seconds + 0.2))
}

/// `n` stations in one cell that send 800 frames a second in total to each other: cost, and share
/// delivered.
fn shared(n: u32, seconds: f64) -> (f64, f64) {
    let mut world = World::new(1, reference_loss());
    let mut dice = Stream::named(1, "shared");
    let nodes: Vec<_> = (0..n)
        .map(|station| {
            let angle = f64::from(station) / f64::from(n) * core::f64::consts::TAU;
            world.add(at_rate(54.0), 5.0 * libm::cos(angle), 5.0 * libm::sin(angle))
        })
        .collect();
    let (mut now, mut start) = (0.0, None);
    while now < 0.2 + seconds {
        now += dice.exponential() / 800.0;
        let (from, to) = (dice.below(u64::from(n)), 1 + dice.below(u64::from(n) - 1));
        let to = nodes[((from + to) % u64::from(n)) as usize];
        world.run(at(now));
        world.offer(at(now), nodes[from as usize], Some(to), PAYLOAD);
        if now >= 0.2 {
            start.get_or_insert_with(cpu_seconds);
        }
    }
    let share = world.sinks.delivered as f64 / world.offered as f64;
    ((cpu_seconds() - start.unwrap_or_default()) / seconds, share)
}

/// 20 by 20 nodes a metre apart, 12 channels, 100 flows of 1 Mbit/s between channel neighbours.
fn grid(seconds: f64) -> (f64, f64) {
    const CHANNELS: [u16; 12] = [36, 40, 44, 48, 52, 56, 60, 64, 149, 153, 157, 161];
    let mut world = World::new(1, reference_loss());
    let nodes: Vec<_> = (0..400u16)
        .map(|node| {
            let channel = CHANNELS[usize::from(node / 2 % 12)];
            let settings = RadioSettings { channel, ..at_rate(54.0) };
            world.add(settings, f64::from(node % 20), f64::from(node / 20))
        })
        .collect();
    let pairs: Vec<_> = nodes.chunks(4).map(|four| (four[0], four[1])).collect();
    let gap = Span::from_nanos(1_470 * 8 * 1_000);
    let start = cpu_seconds();
    let mut round = Instant::ZERO;
    let end = at(seconds);
    while round < end {
        for (number, &(from, to)) in (0u64..).zip(&pairs) {
            let now = round + Span::from_nanos(gap.nanos() / 100 * number);
            world.run(now);
            world.offer(now, from, Some(to), PAYLOAD);
        }
        round += gap;
    }
    world.run(end);
    let share = world.sinks.delivered as f64 / world.offered as f64;
    ((cpu_seconds() - start) / seconds, share)
}

/// Islands of ten nodes 100 km apart, each with one saturated flow: cost for each island.
fn islands(number: u16, seconds: f64) -> f64 {
    let mut world = World::new(1, reference_loss());
    for island in 0..number {
        let x = f64::from(island) * 1e5;
        let nodes: Vec<_> = (0..10).map(|node| world.add(at_rate(54.0), x, f64::from(node))).collect();
        world.saturate(at(0.0), nodes[0], nodes[1], PAYLOAD);
    }
    world.run(at(0.1));
    let start = cpu_seconds();
    world.run(at(0.1 + seconds));
    (cpu_seconds() - start) / seconds / f64::from(number)
}

/// Command line for other programs: `saturated STATIONS SECONDS [PHY]`, `shared STATIONS SECONDS`
/// or `grid SECONDS`.
fn asked(words: &[String]) -> Option<(f64, f64)> {
    match words {
        [what, stations, seconds, phy @ ..] if what == "saturated" => {
            let phy = phy.first().map_or("802.11a", String::as_str);
            Some(saturated(stations.parse().ok()?, seconds.parse().ok()?, phy))
        }
        [what, stations, seconds] if what == "shared" => {
            Some(shared(stations.parse().ok()?, seconds.parse().ok()?))
        }
        [what, seconds] if what == "grid" => Some(grid(seconds.parse().ok()?)),
        _ => None,
    }
}

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.is_empty() {
        let Some((cost, yielded)) = asked(&words) else {
            eprintln!(
                "usage: medium_speed [saturated STATIONS SECONDS [PHY] | shared STATIONS SECONDS | grid SECONDS]"
            );
            return std::process::ExitCode::from(2);
        };
        println!("{cost:.6} {yielded:.6}");
        return std::process::ExitCode::SUCCESS;
    }
    for (n, peer) in PEER {
        let (own, frames) = saturated(n, 10.0, "802.11a");
        println!(
            "{n:>3} stations: {own:.5} CPU s per simulated s, {frames:.0} frames/s; ns-3.44 {peer}: {:.0} times",
            peer / own
        );
    }
    for n in [50, 100] {
        let (own, share) = shared(n, 10.0);
        println!(
            "{n:>3} stations share 800 frames/s: {own:.5} CPU s per simulated s, {:.2} % delivered",
            share * 100.0
        );
    }
    for number in [1, 10, 100] {
        let own = islands(number, 10.0 / f64::from(number));
        println!("{number:>3} islands of 10 nodes: {own:.6} CPU s per simulated s and island");
    }
    let (own, share) = grid(10.0);
    println!("400-node grid: {own:.5} CPU s per simulated s, {:.2} % delivered", share * 100.0);
    std::process::ExitCode::SUCCESS
}
