//! A chain of links and routers in memory, whose ports gather segments.

use std::collections::BTreeMap;

use airloom_engine::frame::segment::{self, HEADER_MAX};
use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::settings::{
    Discipline, Jitter, LinkSettings, Loss, QueueSettings, Rate, SwitchSettings, VlanSettings,
};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Direction, DropReason, Egress, End, Engine, Gathers, LinkId, Place, PortId};

use crate::common::{check_ledger, internet_sum, tcp4};

/// Time from the arrival of a frame at a router to its departure.
pub const LATENCY: u64 = 3_000;
pub const BOTH: Gathers = Gathers { tcp: true, udp: true };

/// A frame or a run of segments that a router sends on.
pub struct Onward {
    pub port: PortId,
    pub octets: Vec<u8>,
    pub cut: Option<(Segmentation, Checksum)>,
    /// When its segments leave.
    pub departures: Vec<u64>,
}

/// Nodes that forward what reaches them, and two that receive.
#[derive(Default)]
pub struct Nodes {
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
pub struct Hop {
    pub rate: u64,
    pub delay: u64,
    pub packets: u32,
    pub ecn: bool,
    pub middle: Middle,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Half width of uniform jitter in nanoseconds.
    pub jitter: u64,
    pub discipline: Discipline,
}

/// What is in the middle of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    Nothing,
    Hub,
    /// A switch, and the VLANs of its ports towards the two ends; without if there are none.
    Switch(Option<[Member; 2]>),
}

/// Membership of a switch's port in VLAN 10 and VLAN 20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
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
pub const PLAIN: Hop = Hop {
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
pub struct Send {
    /// Time since the last one.
    pub gap: u64,
    /// True if the last node sends it.
    pub back: bool,
    pub payload: usize,
    pub size: u16,
    /// VLAN of its tag.
    pub vlan: Option<u16>,
    /// True if it consists of datagrams.
    pub udp: bool,
}

/// Turns a TCP super-frame into one of datagrams with the same payload.
fn udp4(mut octets: Vec<u8>) -> Vec<u8> {
    octets.drain(42..54);
    let length = u16::try_from(octets.len() - 14).expect("fits");
    octets[16..18].copy_from_slice(&length.to_be_bytes());
    octets[23] = 17;
    octets[24..26].fill(0);
    let sum = !internet_sum(&octets[14..34]);
    octets[24..26].copy_from_slice(&sum.to_be_bytes());
    octets[38..40].copy_from_slice(&(length - 20).to_be_bytes());
    let mut pseudo = octets[26..34].to_vec();
    pseudo.extend([0, 17]);
    pseudo.extend((length - 20).to_be_bytes());
    octets[40..42].copy_from_slice(&internet_sum(&pseudo).to_be_bytes());
    octets
}

impl Send {
    /// What enters the first link.
    pub fn onward(&self, port: PortId, number: usize) -> Onward {
        let mut octets = tcp4(self.payload, u32::try_from(number).expect("few") << 17, 0x18);
        if self.back {
            octets[..12].rotate_left(6);
        }
        let (mut start, mut header) = (34, if self.udp { 42 } else { 54 });
        if self.udp {
            octets = udp4(octets);
        }
        if let Some(vlan) = self.vlan {
            let [high, low] = vlan.to_be_bytes();
            octets.splice(12..12, [0x81, 0x00, high, low]);
            (start, header) = (start + 4, header + 4);
        }
        let (protocol, offset) = if self.udp { (Protocol::Udp, 6) } else { (Protocol::Tcp4, 16) };
        let cut = Segmentation { protocol, header, size: self.size };
        Onward { port, octets, cut: Some((cut, Checksum { start, offset })), departures: Vec::new() }
    }
}

pub fn offer(engine: &mut Engine, now: u64, onward: &Onward) {
    let buffer = engine.pool().take(onward.octets.len());
    engine.pool().octets_mut(buffer)[..onward.octets.len()].copy_from_slice(&onward.octets);
    let length = u32::try_from(onward.octets.len()).expect("a frame");
    let (cut, checksum) = onward.cut.unzip();
    let frame = Frame::new(buffer, length, cut, checksum);
    let departures: Vec<Instant> = onward.departures.iter().copied().map(Instant::from_nanos).collect();
    engine.offer_run(onward.port, Instant::from_nanos(now), &departures, frame);
}

pub struct Outcome {
    pub received: Vec<(PortId, u64, Vec<u8>)>,
    pub drops: Vec<(Place, u64, DropReason)>,
    pub ledger: String,
    pub together: u16,
    /// Segments that entered a link late, and by how many nanoseconds at most.
    pub late: (u64, u64),
}

/// Sends over a chain of routers whose ports gather segments for `coalesce_ns`.
pub fn chain(hops: &[Hop], sends: &[Send], coalesce_ns: u64) -> Outcome {
    chain_on(&[false], hops, sends, coalesce_ns)
}

/// As [`chain`], on a host that is busy or not in turn.
pub fn chain_on(host_busy: &[bool], hops: &[Hop], sends: &[Send], coalesce_ns: u64) -> Outcome {
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
        engine.let_gather(near, BOTH);
        engine.let_gather(far, BOTH);
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
    for &busy in host_busy.iter().cycle() {
        engine.set_host_busy(busy);
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

fn directions(links: &[LinkId]) -> impl Iterator<Item = (LinkId, Direction)> {
    links.iter().flat_map(|&link| [Direction::Forward, Direction::Backward].map(|way| (link, way)))
}

fn late(engine: &mut Engine, links: &[LinkId]) -> (u64, u64) {
    let ledger = engine.ledger();
    directions(links).fold((0, 0), |(frames, most), (link, way)| {
        let account = ledger.link(link, way);
        (frames + account.late.frames, most.max(account.late_most.nanos()))
    })
}

fn ledger(engine: &mut Engine, links: &[LinkId]) -> String {
    let ledger = engine.ledger();
    let wires: Vec<_> = directions(links).map(|(link, way)| ledger.link(link, way)).collect();
    format!("{:?} {:?} {wires:?}", ledger.offered, ledger.delivered)
}
