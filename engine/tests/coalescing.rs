//! Coalesced hand-over: segments that are handed over together keep their own times.

mod common;

use std::collections::BTreeMap;

use airloom_engine::frame::segment::{self, HEADER_MAX};
use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::settings::{
    Discipline, Jitter, LinkSettings, Loss, QueueSettings, Rate, SwitchSettings, VlanSettings,
};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Direction, DropReason, Egress, End, Engine, LinkId, Place, PortId};
use common::{Book, check_ledger, mac, offer_super_that_came, run_dry, tcp4};
use proptest::prelude::*;

/// Time from the arrival of a frame at a router to its departure.
const LATENCY: u64 = 3_000;
/// Most times the span for which segments gather on a wire without load that they gather on a busy
/// one.
const MOST_LOAD: u64 = 5;

/// A frame or a run of segments that a router sends on.
struct Onward {
    port: PortId,
    octets: Vec<u8>,
    cut: Option<(Segmentation, Checksum)>,
    /// When its segments leave.
    departures: Vec<u64>,
}

/// Nodes that forward what reaches them, and two that receive.
#[derive(Default)]
struct Nodes {
    /// For each port of a router the other one.
    across: BTreeMap<PortId, PortId>,
    onward: BTreeMap<(u64, usize), Onward>,
    count: usize,
    received: Vec<(PortId, u64, Vec<u8>)>,
    drops: Vec<(Place, u64, DropReason)>,
    /// Largest number of segments handed over together.
    together: u16,
}

impl Egress for Nodes {
    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        self.deliver_run(port, &vec![at; usize::from(frame.count)], frame, pool)
    }

    fn deliver_run(&mut self, port: PortId, arrivals: &[Instant], frame: &Frame, pool: &Pool) -> Delivery {
        assert_eq!(arrivals.len(), usize::from(frame.count));
        assert!(arrivals.is_sorted());
        self.together = self.together.max(frame.count);
        let Some(&port) = self.across.get(&port) else {
            for (at, number) in arrivals.iter().zip(frame.first..) {
                let mut octets = vec![0; frame.segment_octets(number) as usize];
                segment::complete(frame, pool, number, &mut octets);
                self.received.push((port, at.nanos(), octets));
            }
            return Delivery::Taken;
        };
        let mut head = [0; HEADER_MAX];
        let piece = segment::header(frame, pool, frame.first, frame.count, &mut head);
        let mut octets = head[..piece.header].to_vec();
        octets.extend_from_slice(&pool.octets(frame.buffer)[piece.payload]);
        let mut cut = piece.segmentation.zip(piece.checksum);
        if let (None, Some(checksum)) = (cut, piece.checksum) {
            segment::complete_checksum(&mut octets, checksum);
            cut = None;
        }
        let departures: Vec<u64> = arrivals.iter().map(|at| at.nanos() + LATENCY).collect();
        let last = departures[departures.len() - 1];
        self.onward.insert((last, self.count), Onward { port, octets, cut, departures });
        self.count += 1;
        Delivery::Taken
    }

    fn dropped(&mut self, place: Place, at: Instant, frame: &Frame, why: DropReason, _: &Pool) {
        for _ in 0..frame.count {
            self.drops.push((place, at.nanos(), why));
        }
    }
}

/// A link of the chain.
#[derive(Clone, Debug)]
struct Hop {
    rate: u64,
    delay: u64,
    packets: u32,
    ecn: bool,
    middle: Middle,
    /// Probability that a frame is lost.
    loss: f64,
    /// Half width of uniform jitter in nanoseconds.
    jitter: u64,
    discipline: Discipline,
}

/// What is in the middle of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Middle {
    Nothing,
    Hub,
    /// A switch, and the VLANs of its ports towards the two ends; without if there are none.
    Switch(Option<[Member; 2]>),
}

/// Membership of a switch's port in VLAN 10 and VLAN 20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    /// Access port of VLAN 10.
    Access,
    /// Trunk of both, this one untagged.
    Native(u16),
    /// Trunk of both, each tagged.
    Tagged,
}

impl Member {
    fn settings(self) -> VlanSettings {
        let trunk = |native| VlanSettings::Trunk { allowed: vec![10, 20], native };
        match self {
            Self::Access => VlanSettings::Access { vlan: 10 },
            Self::Native(vlan) => trunk(Some(vlan)),
            Self::Tagged => trunk(None),
        }
    }
}

/// A link without impairments.
const PLAIN: Hop = Hop {
    rate: 1_000_000_000,
    delay: 0,
    packets: 100,
    ecn: false,
    middle: Middle::Nothing,
    loss: 0.0,
    jitter: 0,
    discipline: Discipline::DropTail,
};

/// What one end sends.
#[derive(Clone, Debug)]
struct Send {
    /// Time since the last one.
    gap: u64,
    /// True if the last node sends it.
    back: bool,
    payload: usize,
    size: u16,
    /// VLAN of its tag.
    vlan: Option<u16>,
}

impl Send {
    /// What enters the first link.
    fn onward(&self, port: PortId, number: usize) -> Onward {
        let mut octets = tcp4(self.payload, u32::try_from(number).expect("few") << 17, 0x18);
        if self.back {
            octets[..12].rotate_left(6);
        }
        let (mut start, mut header) = (34, 54);
        if let Some(vlan) = self.vlan {
            let [high, low] = vlan.to_be_bytes();
            octets.splice(12..12, [0x81, 0x00, high, low]);
            (start, header) = (start + 4, header + 4);
        }
        let cut = Segmentation { protocol: Protocol::Tcp4, header, size: self.size };
        Onward { port, octets, cut: Some((cut, Checksum { start, offset: 16 })), departures: Vec::new() }
    }
}

fn offer(engine: &mut Engine, now: u64, onward: &Onward) {
    let buffer = engine.pool().take(onward.octets.len());
    engine.pool().octets_mut(buffer)[..onward.octets.len()].copy_from_slice(&onward.octets);
    let length = u32::try_from(onward.octets.len()).expect("a frame");
    let (cut, checksum) = onward.cut.unzip();
    let frame = Frame::new(buffer, length, cut, checksum);
    let departures: Vec<Instant> = onward.departures.iter().copied().map(Instant::from_nanos).collect();
    engine.offer_run(onward.port, Instant::from_nanos(now), &departures, frame);
}

struct Outcome {
    received: Vec<(PortId, u64, Vec<u8>)>,
    drops: Vec<(Place, u64, DropReason)>,
    ledger: String,
    together: u16,
    /// Segments that entered a link late, and by how many nanoseconds at most.
    late: (u64, u64),
}

/// Sends over a chain of routers whose ports gather segments for `coalesce_ns`.
fn chain(hops: &[Hop], sends: &[Send], coalesce_ns: u64) -> Outcome {
    let mut engine = Engine::new(1);
    let mut nodes = Nodes::default();
    let mut links = Vec::new();
    let mut near = engine.add_port("first", false).expect("new");
    let first = near;
    for (number, hop) in hops.iter().enumerate() {
        let far = engine.add_port(&format!("{number} in"), true).expect("new");
        let queue = QueueSettings {
            packets: Some(hop.packets),
            ecn: hop.ecn,
            discipline: hop.discipline.clone(),
            ..QueueSettings::default()
        };
        let settings = LinkSettings {
            rate: Rate::BitsPerSecond(hop.rate),
            delay_ns: hop.delay,
            loss: if hop.loss > 0.0 { Loss::Bernoulli { probability: hop.loss } } else { Loss::None },
            jitter: if hop.jitter > 0 { Jitter::Uniform { spread_ns: hop.jitter } } else { Jitter::None },
            queue,
            coalesce_ns,
            ..LinkSettings::default()
        };
        let name = number.to_string();
        engine.let_gather(near);
        engine.let_gather(far);
        let kind = match hop.middle {
            Middle::Nothing => None,
            Middle::Hub => Some(SwitchSettings::Hub),
            Middle::Switch(_) => Some(SwitchSettings::Switch { ageing_ns: 300_000_000_000, addresses: 1000 }),
        };
        let mut join = |engine: &mut Engine, name: &str, a, b| {
            let link = engine.connect(name, a, b, &settings, &settings).expect("fits");
            links.push(link);
            link
        };
        if let Some(kind) = kind {
            let switch = End::Switch(engine.add_switch(&name, &kind).expect("new"));
            let near = join(&mut engine, &format!("{number} near"), End::Port(near), switch);
            let far = join(&mut engine, &format!("{number} far"), End::Port(far), switch);
            if let Middle::Switch(Some(members)) = hop.middle {
                for (link, member) in [near, far].into_iter().zip(members) {
                    engine
                        .set_vlan(link, Direction::Backward, &member.settings())
                        .expect("a switch is there");
                }
            }
        } else {
            join(&mut engine, &name, End::Port(near), End::Port(far));
        }
        if number + 1 < hops.len() {
            let out = engine.add_port(&format!("{number} out"), true).expect("new");
            nodes.across.extend([(far, out), (out, far)]);
            near = out;
        } else {
            near = far;
        }
    }
    let last = near;
    let mut at = 0;
    for (number, send) in sends.iter().enumerate() {
        at += send.gap;
        let onward = send.onward(if send.back { last } else { first }, number);
        nodes.onward.insert((at, nodes.count), onward);
        nodes.count += 1;
    }
    loop {
        let onward = nodes.onward.keys().next().map(|&(at, _)| at);
        let next = engine.next_at().map(Instant::nanos);
        let Some(now) = onward.into_iter().chain(next).min() else { break };
        while let Some(entry) = nodes.onward.first_entry()
            && entry.key().0 == now
        {
            let onward = entry.remove();
            offer(&mut engine, now, &onward);
        }
        engine.advance(Instant::from_nanos(now), &mut nodes);
        check_ledger(&mut engine);
    }
    let late = late(&mut engine, &links);
    let ledger = ledger(&mut engine, &links);
    let Nodes { mut received, mut drops, together, .. } = nodes;
    received.sort();
    drops.sort();
    Outcome { received, drops, ledger, together, late }
}

fn late(engine: &mut Engine, links: &[LinkId]) -> (u64, u64) {
    let ledger = engine.ledger();
    let both = |&link: &LinkId| [Direction::Forward, Direction::Backward].map(|way| ledger.link(link, way));
    links.iter().flat_map(both).fold((0, 0), |(frames, most), account| {
        (frames + account.late.frames, most.max(account.late_most.nanos()))
    })
}

fn ledger(engine: &mut Engine, links: &[LinkId]) -> String {
    let ledger = engine.ledger();
    let wires: Vec<_> = links
        .iter()
        .flat_map(|&link| {
            [Direction::Forward, Direction::Backward].map(|direction| ledger.link(link, direction))
        })
        .collect();
    format!("{:?} {:?} {wires:?}", ledger.offered, ledger.delivered)
}

fn middle() -> impl Strategy<Value = Middle> {
    // Seldom one that drops frames: most should reach the end.
    let member = || {
        prop_oneof![
            4 => Just(Member::Native(10)),
            4 => Just(Member::Native(20)),
            1 => Just(Member::Tagged),
            1 => Just(Member::Access),
        ]
    };
    prop_oneof![
        2 => Just(Middle::Nothing),
        1 => Just(Middle::Hub),
        1 => Just(Middle::Switch(None)),
        2 => (member(), member()).prop_map(|(near, far)| Middle::Switch(Some([near, far]))),
    ]
}

fn hop() -> impl Strategy<Value = Hop> {
    let rate = prop::sample::select(vec![10_000_000, 100_000_000, 333_333_333, 1_000_000_000]);
    let delay = prop::sample::select(vec![0, 1, 5_000, 200_000]);
    let loss = prop::sample::select(vec![0.0, 0.0, 0.05]);
    let jitter = prop::sample::select(vec![0, 0, 50_000]);
    (rate, delay, 2..60_u32, any::<bool>(), middle(), loss, jitter).prop_map(
        |(rate, delay, packets, ecn, middle, loss, jitter)| Hop {
            rate,
            delay,
            packets,
            ecn,
            middle,
            loss,
            jitter,
            ..PLAIN
        },
    )
}

fn managed() -> impl Strategy<Value = Discipline> {
    let (target_ns, interval_ns) = (500_000, 2_000_000);
    let red = Discipline::Red { min_octets: 5_000, max_octets: 40_000, probability: 0.1, weight: 0.02 };
    prop::sample::select(vec![
        red,
        Discipline::CoDel { target_ns, interval_ns },
        Discipline::FqCoDel { target_ns, interval_ns, quantum: 1514, flows: 64 },
    ])
}

fn send() -> impl Strategy<Value = Send> {
    let gap = prop_oneof![0..5_000_u64, 0..400_000_u64];
    let vlan = prop::sample::select(vec![None, None, Some(10), Some(20)]);
    (gap, any::<bool>(), 1..60_000_usize, 500..1_449_u16, vlan)
        .prop_map(|(gap, back, payload, size, vlan)| Send { gap, back, payload, size, vlan })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn each_segment_keeps_its_time_over_a_chain(
        hops in prop::collection::vec(hop(), 1..6),
        sends in prop::collection::vec(send(), 1..30),
        coalesce in 1_000..500_000_u64,
    ) {
        let alone = chain(&hops, &sends, 0);
        let gathered = chain(&hops, &sends, coalesce);
        prop_assert_eq!(&alone.drops, &gathered.drops);
        prop_assert_eq!(&alone.received, &gathered.received);
        prop_assert_eq!(&alone.ledger, &gathered.ledger);
        prop_assert!(alone.together <= 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(50) })]

    #[test]
    fn a_managed_queue_changes_times_only_by_what_is_counted(
        hops in prop::collection::vec((hop(), managed()), 1..4),
        sends in prop::collection::vec(send(), 1..20),
        coalesce in 1_000..500_000_u64,
    ) {
        let hops: Vec<Hop> = hops.into_iter().map(|(hop, discipline)| Hop { discipline, ..hop }).collect();
        let alone = chain(&hops, &sends, 0);
        let gathered = chain(&hops, &sends, coalesce);
        prop_assert_eq!(alone.late, (0, 0));
        prop_assert!(gathered.late.1 <= MOST_LOAD * coalesce, "{} ns late", gathered.late.1);
        if gathered.late.0 == 0 {
            prop_assert_eq!(&alone.drops, &gathered.drops);
            prop_assert_eq!(&alone.received, &gathered.received);
        }
    }

    #[test]
    fn a_busy_chain_gathers_for_longer_and_keeps_all_times(
        hops in prop::collection::vec(prop::sample::select(vec![Middle::Nothing, Middle::Hub]), 2..6),
        cross in prop::collection::vec(send(), 1..10),
        coalesce in 20_000..300_000_u64,
    ) {
        let hops: Vec<Hop> = hops.into_iter().map(|middle| Hop { middle, packets: 2_000, ..PLAIN }).collect();
        let bulk = Send { gap: 300_000, back: false, payload: 60_000, size: 1_448, vlan: None };
        let sends: Vec<Send> = std::iter::repeat_n(bulk, 30).chain(cross).collect();
        let alone = chain(&hops, &sends, 0);
        let gathered = chain(&hops, &sends, coalesce);
        prop_assert_eq!(&alone.received, &gathered.received);
        prop_assert_eq!(&alone.ledger, &gathered.ledger);
        // A segment of 1502 octets and 24 of overhead takes 12208 ns.
        let plain = coalesce / 12_208 + 1;
        prop_assert!(u64::from(gathered.together) > plain.min(40), "{} together", gathered.together);
    }
}

#[test]
fn segments_at_a_gigabit_are_handed_over_together() {
    let hops = vec![PLAIN; 16];
    let sends = [Send { gap: 0, back: false, payload: 60_000, size: 1_448, vlan: None }];
    let outcome = chain(&hops, &sends, 100_000);
    assert_eq!(outcome.together, 9, "100 us are eight intervals of 12 us");
    let alone = chain(&hops, &sends, 0);
    assert_eq!(outcome.received, alone.received);
}

#[test]
fn tagged_segments_are_handed_over_together_behind_a_trunk() {
    let trunk = Middle::Switch(Some([Member::Tagged, Member::Native(20)]));
    let hops = vec![Hop { middle: trunk, ..PLAIN }; 4];
    let sends = [Send { gap: 0, back: false, payload: 60_000, size: 1_448, vlan: Some(10) }];
    let (outcome, alone) = (chain(&hops, &sends, 100_000), chain(&hops, &sends, 0));
    assert!(outcome.together >= 8, "{} together", outcome.together);
    assert_eq!(outcome.received, alone.received);
    assert_eq!(outcome.received.len(), 42);
    let tag = |octets: &[u8]| octets[12..16] == [0x81, 0x00, 0, 10];
    assert!(outcome.received.iter().all(|(_, _, octets)| tag(octets)));
}

#[test]
fn a_segment_that_is_known_after_its_arrival_keeps_its_time() {
    // The queue of the second link drops the segments around it, so it is handed over alone.
    let hop = |rate, packets| Hop { rate, packets, ..PLAIN };
    let hops = [hop(1_000_000_000, 39), hop(333_333_333, 2), hop(10_000_000, 2)];
    let sends = [Send { gap: 0, back: false, payload: 16_639, size: 500, vlan: None }];
    let (alone, gathered) = (chain(&hops, &sends, 0), chain(&hops, &sends, 41_616));
    assert!(gathered.together > 1);
    assert_eq!(gathered.drops, alone.drops);
    assert_eq!(gathered.received, alone.received);
}

#[test]
fn what_entered_meanwhile_goes_first_and_the_error_is_counted() {
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", true).expect("new");
    let b = engine.add_port("b", true).expect("new");
    let settings = LinkSettings { rate: Rate::BitsPerSecond(1_000_000_000), ..LinkSettings::default() };
    let link = engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("fits");
    let mut book = Book::default();
    common::offer(&mut engine, a, 50_000, mac(2), mac(1), 1_000);
    engine.advance(Instant::from_nanos(50_000), &mut book);
    // The segments came at 40 and 70 us.
    offer_super_that_came(&mut engine, a, 10_000..70_000, 2_000, 1_000);
    engine.advance(Instant::from_nanos(70_000), &mut book);
    run_dry(&mut engine, &mut book);
    // 1000 and 24 octets take 8192 ns, 1054 and 24 take 8624.
    assert_eq!(book.times(b), [58_192, 58_192 + 8_624, 70_000 + 8_624]);
    let account = engine.ledger().link(link, Direction::Forward);
    assert_eq!((account.late.frames, account.late_most.nanos()), (1, 10_000));
    check_ledger(&mut engine);
}
