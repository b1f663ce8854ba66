//! Measures the engine's CPU time in nanoseconds for a TCP segment and hop of a chain of routers,
//! whose ports get segments together.
//!
//! `cargo run --release -p airloom-engine --example chain_speed -- [hops] [Mbit/s] [super-frames]`

use std::collections::BTreeMap;

use airloom_engine::frame::segment::{self, HEADER_MAX};
use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::settings::{LinkSettings, QueueSettings, Rate};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Egress, End, Engine, Gathers, PortId};

const HEADER: usize = 66;
const SIZE: usize = 1448;
const SEGMENTS: usize = 45;
/// Time from the arrival of a super-frame at a router to its departure, in nanoseconds: at least,
/// and how much more at most.
const LATENCY: (u64, u64) = (10_000, 40_000);

/// What a router sends on.
struct Onward {
    port: PortId,
    at: Instant,
    arrivals: Vec<Instant>,
    octets: usize,
    cut: Option<Segmentation>,
}

/// Routers, and the node at the end.
struct Nodes {
    /// For each port that receives the one that sends.
    across: BTreeMap<PortId, PortId>,
    now: Instant,
    /// In order of departure.
    onward: BTreeMap<(Instant, u64), Onward>,
    spare: Vec<Vec<Instant>>,
    runs: u64,
    segments: u64,
}

impl Egress for Nodes {
    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        let arrivals = vec![at; usize::from(frame.count)];
        self.deliver_run(port, &arrivals, frame, pool)
    }

    fn deliver_run(&mut self, port: PortId, arrivals: &[Instant], frame: &Frame, pool: &Pool) -> Delivery {
        self.runs += 1;
        self.segments += u64::from(frame.count);
        if let Some(&port) = self.across.get(&port) {
            let mut head = [0; HEADER_MAX];
            let piece = segment::header(frame, pool, frame.first, frame.count, &mut head);
            let octets = piece.header + piece.payload.len();
            let mut times = self.spare.pop().unwrap_or_default();
            times.clear();
            let latency = LATENCY.0 + (self.runs * 7_919_993) % LATENCY.1;
            times.extend(arrivals.iter().map(|&at| Instant::from_nanos(at.nanos() + latency)));
            let at = Instant::from_nanos(self.now.nanos() + latency);
            let onward = Onward { port, at, arrivals: times, octets, cut: piece.segmentation };
            self.onward.insert((at, self.runs), onward);
        }
        Delivery::Taken
    }
}

/// Offers a super-frame with the headers of one and arbitrary payload.
fn offer(engine: &mut Engine, onward: &Onward) {
    let buffer = engine.pool().take(onward.octets);
    let octets = engine.pool().octets_mut(buffer);
    octets[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6]);
    octets[46] = 0x80;
    let length = u32::try_from(onward.octets).expect("short");
    let checksum = Some(Checksum { start: 34, offset: 16 });
    let frame = Frame::new(buffer, length, onward.cut, checksum);
    engine.offer_run(onward.port, onward.at, &onward.arrivals, frame);
}

/// CPU time of this thread in nanoseconds.
fn spent() -> u64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux with scheduler statistics");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a number")
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let (hops, rate) = (words.next().unwrap_or(16), words.next().unwrap_or(1000) * 1_000_000);
    let super_frames = words.next().unwrap_or(5_000);
    let mut engine = Engine::new(1);
    let queue = QueueSettings { packets: Some(1000), ..QueueSettings::default() };
    let link = LinkSettings { rate: Rate::BitsPerSecond(rate), queue, ..LinkSettings::default() };
    let mut across = BTreeMap::new();
    let first = engine.add_port("first", false).expect("new name");
    let mut near = first;
    for hop in 0..hops {
        let far = engine.add_port(&format!("{hop} in"), true).expect("new name");
        engine.let_gather(far, Gathers { tcp: true, udp: false });
        engine.connect(&hop.to_string(), End::Port(near), End::Port(far), &link, &link).expect("valid");
        near = engine.add_port(&format!("{hop} out"), true).expect("new name");
        if hop + 1 < hops {
            across.insert(far, near);
        }
    }
    let mut nodes = Nodes {
        across,
        now: Instant::ZERO,
        onward: BTreeMap::new(),
        spare: Vec::new(),
        runs: 0,
        segments: 0,
    };
    let cut = Segmentation {
        protocol: Protocol::Tcp4,
        header: u16::try_from(HEADER).expect("short"),
        size: u16::try_from(SIZE).expect("short"),
    };
    let octets = HEADER + SIZE * SEGMENTS;
    // The link is busy all the time, with one or two super-frames in its queue.
    let each = SEGMENTS as u64 * (HEADER + SIZE + 24) as u64 * 8 * 1_000_000_000 / rate;
    let begun = spent();
    let mut sent = 0;
    loop {
        let next = (sent < super_frames).then(|| Instant::from_nanos(sent * each));
        let onward = nodes.onward.keys().next().map(|&(at, _)| at);
        let Some(now) = [next, onward, engine.next_at()].into_iter().flatten().min() else { break };
        nodes.now = now;
        if next == Some(now) {
            let bare = Onward { port: first, at: now, arrivals: Vec::new(), octets, cut: Some(cut) };
            offer(&mut engine, &bare);
            sent += 1;
        }
        while let Some(entry) = nodes.onward.first_entry()
            && entry.get().at <= now
        {
            let onward = entry.remove();
            offer(&mut engine, &onward);
            nodes.spare.push(onward.arrivals);
        }
        engine.advance(now, &mut nodes);
    }
    let spent = spent() - begun;
    assert_eq!(nodes.segments, super_frames * SEGMENTS as u64 * hops);
    println!(
        "{hops} hops of {} Mbit/s: {:.1} ns for a segment and hop, {:.1} segments together",
        rate / 1_000_000,
        spent as f64 / nodes.segments as f64,
        nodes.segments as f64 / nodes.runs as f64,
    );
}
