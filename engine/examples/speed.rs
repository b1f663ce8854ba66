//! Measures the engine's CPU time in nanoseconds per frame and link.
//!
//! The cost of offering and delivering the frame is included.
//!
//! `cargo run --release -p airloom-engine --example speed -- [part of the name of a case]`

use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::settings::{Discipline, LinkSettings, QueueSettings, Rate, Segments, SwitchSettings};
use airloom_engine::time::{Instant, Span};
use airloom_engine::{Delivery, Egress, End, Engine, PortId};

/// Counts delivered frames.
#[derive(Default)]
struct Count(u64);

impl Egress for Count {
    fn deliver(&mut self, _port: PortId, _at: Instant, frame: &Frame, _pool: &Pool) -> Delivery {
        self.0 += u64::from(frame.count);
        Delivery::Taken
    }
}

/// Two ports joined by a chain of so many hubs or switches.
fn chain(
    engine: &mut Engine,
    name: &str,
    between: u32,
    kind: &SwitchSettings,
    link: &LinkSettings,
) -> PortId {
    let a = engine.add_port(&format!("{name} a"), false).expect("new name");
    let b = engine.add_port(&format!("{name} b"), false).expect("new name");
    let mut from = End::Port(a);
    for hop in 0..=between {
        let to = if hop == between {
            End::Port(b)
        } else {
            End::Switch(engine.add_switch(&format!("{name} {hop}"), kind).expect("new name"))
        };
        engine.connect(&format!("{name} {hop}"), from, to, link, link).expect("valid");
        from = to;
    }
    // The switches learn the address of b.
    offer(engine, b, 0, [4; 6], [2; 6], 64, None);
    a
}

fn offer(
    engine: &mut Engine,
    port: PortId,
    at: u64,
    to: [u8; 6],
    from: [u8; 6],
    length: u32,
    cut: Option<Segmentation>,
) {
    let buffer = engine.pool().take(length as usize);
    let octets = engine.pool().octets_mut(buffer);
    octets[..6].copy_from_slice(&to);
    octets[6..12].copy_from_slice(&from);
    if cut.is_some() {
        octets[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6]);
        octets[46] = 0x50;
    }
    let checksum = cut.map(|_| Checksum { start: 34, offset: 16 });
    engine.offer(port, Instant::from_nanos(at), Frame::new(buffer, length, cut, checksum));
}

/// CPU time of this thread in nanoseconds: other work on the machine does not count.
fn spent() -> u64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux with scheduler statistics");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a number")
}

/// Offers frames in bursts of 64, `gap` apart, and returns the cost of each hop.
fn measure(
    what: &str,
    engine: &mut Engine,
    ports: &[PortId],
    hops: u64,
    gap: u64,
    cut: Option<Segmentation>,
) {
    let length = if cut.is_some() { 64_000 } else { 1_000 };
    let mut count = Count::default();
    let mut at = 1_000_000_000;
    let mut start = spent();
    let rounds = 1_000_000 / hops / if cut.is_some() { 45 } else { 1 };
    let warm = rounds / 4;
    for round in 0..rounds + warm {
        if round == warm {
            // All buffers have been allocated by now.
            engine.advance(Instant::from_nanos(at) + Span::from_secs(1), &mut count);
            at += 1_000_000_000;
            count.0 = 0;
            start = spent();
        }
        let port = ports[usize::try_from(round).expect("small") % ports.len()];
        offer(engine, port, at, [2; 6], [4; 6], length, cut);
        at += gap;
        if round % 64 == 0 {
            engine.advance(Instant::from_nanos(at), &mut count);
        }
    }
    engine.advance(Instant::from_nanos(at) + Span::from_secs(100), &mut count);
    let nanos = (spent() - start) / (count.0 * hops).max(1);
    println!("{what:<58} {:>7} frames {nanos:>6} ns per frame and link", count.0);
}

fn main() {
    let switch = SwitchSettings::Switch { ageing_ns: 300_000_000_000, addresses: 1024 };
    let shortest = SwitchSettings::ShortestPath {
        ageing_ns: 300_000_000_000,
        addresses: 1024,
        convergence_ns: 50_000_000,
    };
    let queue = QueueSettings { packets: Some(1_000_000), ..QueueSettings::default() };
    let plain = LinkSettings::default();
    let rated = LinkSettings {
        rate: Rate::BitsPerSecond(1_000_000_000),
        delay_ns: 1_000_000,
        queue: queue.clone(),
        ..LinkSettings::default()
    };
    let carried = LinkSettings { segments: Segments::Carried, ..rated.clone() };
    let fq =
        Discipline::FqCoDel { target_ns: 5_000_000, interval_ns: 100_000_000, quantum: 1514, flows: 1024 };
    let managed = LinkSettings { queue: QueueSettings { discipline: fq, ..queue.clone() }, ..rated.clone() };
    let cut = Some(Segmentation { protocol: Protocol::Tcp4, header: 54, size: 1448 });
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let one = |what: &str, between: u32, kind: &SwitchSettings, link: &LinkSettings, gap: u64, cut| {
        if !what.contains(&wanted) {
            return;
        }
        let mut engine = Engine::new(1);
        let port = chain(&mut engine, "", between, kind, link);
        measure(what, &mut engine, &[port], u64::from(between) + 1, gap, cut);
    };
    one("one link without limits", 0, &SwitchSettings::Hub, &plain, 1_000, None);
    one("one link, 1 Gbit/s, 1 ms, idle", 0, &SwitchSettings::Hub, &rated, 10_000, None);
    one("one link, 1 Gbit/s, 1 ms, busy", 0, &SwitchSettings::Hub, &rated, 8_180, None);
    one("one link, 1 Gbit/s, 1 ms, busy, FQ-CoDel", 0, &SwitchSettings::Hub, &managed, 8_180, None);
    one("16 hubs without limits", 16, &SwitchSettings::Hub, &plain, 1_000, None);
    one("16 switches without limits", 16, &switch, &plain, 1_000, None);
    one("16 switches, 1 Gbit/s, 1 ms", 16, &switch, &rated, 10_000, None);
    one("16 switches, 1 Gbit/s, 1 ms, busy", 16, &switch, &rated, 8_180, None);
    one("16 switches without limits, super-frames", 16, &switch, &plain, 100_000, cut);
    one("16 switches, 1 Gbit/s, 1 ms, super-frames timed", 16, &switch, &rated, 600_000, cut);
    one("16 shortest-path, 1 Gbit/s, 1 ms, busy", 16, &shortest, &rated, 8_180, None);
    one("16 shortest-path, 1 Gbit/s, 1 ms, super-frames timed", 16, &shortest, &rated, 600_000, cut);
    one("16 switches, 1 Gbit/s, 1 ms, super-frames carried", 16, &switch, &carried, 600_000, cut);
    let what = "1000 links, 1 Gbit/s, 1 ms, idle";
    if !what.contains(&wanted) {
        return;
    }
    let mut engine = Engine::new(1);
    let ports: Vec<_> = (0..1000)
        .map(|number| chain(&mut engine, &format!("pair {number}"), 0, &SwitchSettings::Hub, &rated))
        .collect();
    measure(what, &mut engine, &ports, 1, 100, None);
}
