//! The engine with any network, settings, changes and traffic, valid or not.
//!
//! Input: a sequence of acts, each an octet that selects the act, and its arguments.

use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use airloom_engine::settings::{
    CakeIsolation, CakeTins, Carrier, Class, Counts, Discipline, Jitter, Late, LinkSettings, Loss, Policer,
    QueueSettings, Rate, Receiver, Segments, SwitchSettings,
};
use airloom_engine::time::{Instant, Span};
use airloom_engine::{
    Change, Delivery, Direction, Egress, End, Engine, Gathers, HostLoss, LinkId, PortId, SwitchId,
};

/// Maximum number of acts per input, which limits its run time.
const ACTS: usize = 400;

/// Input octets; zero after the end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn octet(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// A number of any size: small and huge numbers are equally likely.
    fn number(&mut self) -> u64 {
        let shift = self.octet() % 64;
        let octets = [0; 8].map(|_: u8| self.octet());
        u64::from_be_bytes(octets) >> shift
    }

    fn short(&mut self, bound: u64) -> u32 {
        u32::try_from(self.number() % bound.min(1 << 32)).unwrap_or(u32::MAX)
    }

    /// Mostly a valid probability.
    fn chance(&mut self) -> f64 {
        match self.octet() {
            0..128 => 0.0,
            255 => f64::from_bits(self.number()),
            octet => f64::from(octet - 128) / 126.0,
        }
    }

    fn option(&mut self) -> Option<u64> {
        (self.octet() % 2 == 0).then(|| self.number())
    }

    fn link(&mut self) -> LinkSettings {
        let rate = match self.octet() % 6 {
            0 => Rate::Unlimited,
            1 => {
                let opportunities_ns =
                    (0..self.octet() % 8).map(|_| u64::from(self.short(1_000_000))).collect();
                Rate::Trace { opportunities_ns, period_ns: self.number(), octets: self.short(1 << 32) }
            }
            3 => Rate::TokenBucket {
                bits_per_second: self.number(),
                burst_octets: self.number(),
                peak_bits_per_second: self.option(),
            },
            _ => Rate::BitsPerSecond(self.number()),
        };
        let jitter = self.law();
        let loss = match self.octet() % 4 {
            0 => Loss::Bernoulli { probability: self.chance() },
            1 => Loss::GilbertElliott {
                good_to_bad: self.chance(),
                bad_to_good: self.chance(),
                loss_good: self.chance(),
                loss_bad: self.chance(),
            },
            _ => Loss::None,
        };
        let discipline = match self.octet() % 12 {
            0 => Discipline::Red {
                min_octets: self.number(),
                max_octets: self.number(),
                probability: self.chance(),
                weight: self.chance(),
                packet_octets: self.number(),
                marks_above: self.number() % 2 == 0,
            },
            1 => Discipline::CoDel { target_ns: self.number(), interval_ns: self.number() },
            2 => Discipline::FqCoDel {
                target_ns: self.number(),
                interval_ns: self.number(),
                quantum: self.short(1 << 21),
                flows: self.short(100),
            },
            3 => Discipline::Pie {
                target_ns: self.number(),
                update_ns: self.number(),
                burst_ns: self.number(),
                alpha: self.chance(),
                beta: self.chance(),
            },
            4 => Discipline::Step { packets: self.option(), octets: self.option(), time_ns: self.option() },
            5 => Discipline::Priority { classes: self.classes() },
            6 => Discipline::Drr { classes: self.classes() },
            7 => Discipline::DualPi2 {
                target_ns: self.number(),
                update_ns: self.number(),
                alpha: self.chance(),
                beta: self.chance(),
                coupling: self.chance(),
                step_ns: self.number(),
                ramp_ns: self.number(),
                classic: self.chance(),
            },
            8 => Discipline::Cake {
                target_ns: self.number(),
                interval_ns: self.number(),
                isolation: [CakeIsolation::Flows, CakeIsolation::DualSrchost, CakeIsolation::TripleIsolate]
                    [usize::from(self.octet() % 3)],
                tins: [CakeTins::Besteffort, CakeTins::Diffserv3, CakeTins::Diffserv4]
                    [usize::from(self.octet() % 3)],
            },
            _ => Discipline::DropTail,
        };
        let policer = (self.octet() % 4 == 0)
            .then(|| Policer { bits_per_second: self.number(), burst_octets: self.number() });
        LinkSettings {
            rate,
            delay_ns: self.number(),
            jitter,
            jitter_reorders: self.octet() % 2 == 0,
            loss,
            duplicate: self.chance(),
            corrupt: self.chance(),
            reorder: self.chance(),
            mtu: self.short(10_000),
            counts: if self.octet() % 2 == 0 { Counts::Frame } else { Counts::Packet },
            overhead: self.short(1_100),
            shortest: self.short(10_000),
            queue: QueueSettings {
                packets: self.option().map(|packets| u32::try_from(packets).unwrap_or(u32::MAX)),
                octets: self.option(),
                time_ns: self.option(),
                discipline,
                ecn: self.octet() % 2 == 0,
            },
            policer,
            segments: if self.octet() % 2 == 0 { Segments::Timed } else { Segments::Carried },
            late: if self.octet() % 2 == 0 { Late::CatchUp } else { Late::Slip },
            carrier: if self.octet() % 2 == 0 { Carrier::Follow } else { Carrier::Keep },
            gap_ns: self.option().unwrap_or(0),
            coalesce_ns: self.option().unwrap_or(0) % 20_000_000,
            receiver: Receiver {
                latency_ns: self.option().unwrap_or(0),
                moderation_ns: self.option().unwrap_or(0),
                service: self.law(),
                tick_ns: self.option().unwrap_or(0),
            },
        }
    }

    fn classes(&mut self) -> Vec<Class> {
        let class = |reader: &mut Self| Class {
            dscp: (0..reader.octet() % 3).map(|_| reader.octet() % 70).collect(),
            quantum: reader.short(1 << 21),
            packets: reader.option().map(|packets| u32::try_from(packets).unwrap_or(u32::MAX)),
        };
        (0..self.octet() % 5).map(|_| class(self)).collect()
    }

    fn law(&mut self) -> Jitter {
        match self.octet() % 7 {
            0 => Jitter::Uniform { spread_ns: self.number() },
            1 => Jitter::Normal { sigma_ns: self.number() },
            2 => Jitter::Pareto { scale_ns: self.number(), shape: 1.0 + self.chance() },
            3 => Jitter::Table {
                values_ns: (0..self.octet() % 5)
                    .map(|_| i64::from_be_bytes(self.number().to_be_bytes()))
                    .collect(),
            },
            4 => Jitter::Exponential { mean_ns: self.number() },
            _ => Jitter::None,
        }
    }

    fn switch(&mut self) -> SwitchSettings {
        match self.octet() % 4 {
            0 | 1 => SwitchSettings::Hub,
            2 => SwitchSettings::ShortestPath {
                ageing_ns: self.number(),
                addresses: self.short(20),
                convergence_ns: u64::from(self.octet() % 2) * 1_000,
            },
            _ => SwitchSettings::Switch { ageing_ns: self.number(), addresses: self.short(20) },
        }
    }
}

/// Accepts frames or loses them.
#[derive(Default)]
struct Sink {
    calls: u32,
}

impl Egress for Sink {
    fn deliver(&mut self, _port: PortId, _at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        self.calls = self.calls.wrapping_add(1);
        assert!(frame.count > 0 && frame.length as usize <= pool.octets(frame.buffer).len());
        if self.calls % 7 == 0 { Delivery::Lost(HostLoss::NodeGone) } else { Delivery::Taken }
    }
}

/// The network built by the input so far.
struct World {
    engine: Engine,
    ports: Vec<PortId>,
    switches: Vec<SwitchId>,
    links: Vec<LinkId>,
    sink: Sink,
}

impl World {
    fn end(&self, reader: &mut Reader) -> Option<End> {
        let index = usize::from(reader.octet());
        if index % 2 == 0 {
            self.ports.get(index / 2 % self.ports.len().max(1)).copied().map(End::Port)
        } else {
            self.switches.get(index / 2 % self.switches.len().max(1)).copied().map(End::Switch)
        }
    }

    fn link(&self, reader: &mut Reader) -> Option<LinkId> {
        self.links.get(usize::from(reader.octet()) % self.links.len().max(1)).copied()
    }

    /// Performs the next act. Every refusal must have a code.
    fn act(&mut self, reader: &mut Reader) -> Option<()> {
        let now = self.engine.now();
        match reader.octet() % 17 {
            0 => {
                let name = format!("{}", self.ports.len());
                let options = reader.octet();
                let port = self.engine.add_port(&name, options % 2 == 0).ok()?;
                let gathers = Gathers { tcp: options % 4 < 2, udp: options % 8 < 4 };
                self.engine.let_gather(port, gathers);
                self.ports.push(port);
            }
            1 => {
                let name = format!("{}", self.switches.len());
                self.switches.push(self.engine.add_switch(&name, &reader.switch()).ok()?);
            }
            2 | 3 => {
                let (a, b) = (self.end(reader)?, self.end(reader)?);
                let name = format!("{}", self.links.len());
                let (forward, backward) = (reader.link(), reader.link());
                match self.engine.connect(&name, a, b, &forward, &backward) {
                    Ok(link) => self.links.push(link),
                    Err(error) => assert!(!error.code().is_empty() && !error.to_string().is_empty()),
                }
            }
            4 | 5 => {
                let link = self.link(reader)?;
                let at = Instant::from_nanos(now.nanos().saturating_add(reader.number() >> 24));
                let change = match reader.octet() % 4 {
                    0 => Change::Up(link),
                    1 => Change::Down(link),
                    2 => Change::Link(link, Direction::Forward, Box::new(reader.link())),
                    _ => Change::Link(link, Direction::Backward, Box::new(reader.link())),
                };
                self.engine.schedule(at, change).ok()?;
            }
            6 => {
                let switch = *self.switches.get(usize::from(reader.octet()))?;
                self.engine.schedule(now, Change::Switch(switch, reader.switch())).ok()?;
            }
            7..12 => self.offer(reader)?,
            12 => {
                let link = self.link(reader)?;
                let port = *self.ports.get(usize::from(reader.octet()) % self.ports.len().max(1))?;
                let end = if reader.octet() % 2 == 0 { Direction::Forward } else { Direction::Backward };
                self.engine.move_to_port(link, end, port).ok()?;
            }
            _ => {
                let until = now.nanos().saturating_add(reader.number() >> 20);
                self.engine.advance(Instant::from_nanos(until.min(u64::MAX - 1)), &mut self.sink);
                assert_eq!(self.engine.ledger().in_flight(), self.engine.recount());
            }
        }
        Some(())
    }

    fn offer(&mut self, reader: &mut Reader) -> Option<()> {
        let port = *self.ports.get(usize::from(reader.octet()) % self.ports.len().max(1))?;
        let at = Instant::from_nanos(self.engine.now().nanos().saturating_add(reader.number() >> 24));
        let length = reader.short(4_000) as usize;
        let mut octets = vec![reader.octet(); length];
        // Addresses, EtherType and enough of IPv4 and TCP for a super-frame.
        let mut head = [0; 54];
        head[5] = reader.octet() % 8;
        head[11] = reader.octet() % 8;
        head[12..24].copy_from_slice(&[8, 0, 0x45, 1, 0, 0, 0, 0, 0x40, 0, 64, 6]);
        head[46] = 0x50;
        let known = head.len().min(length);
        octets[..known].copy_from_slice(&head[..known]);
        let spoiled = reader.octet();
        if spoiled < 64 && usize::from(spoiled) < length {
            octets[usize::from(spoiled)] = reader.octet();
        }
        let (mut cut, mut checksum) = (None, None);
        if reader.octet() % 2 == 0 {
            let size = u16::try_from(reader.short(1_500)).expect("small");
            cut = Some(Segmentation { protocol: Protocol::Tcp4, header: 54, size });
            checksum = Some(Checksum { start: 34, offset: 16 });
        }
        let buffer = self.engine.pool().take(length);
        self.engine.pool().octets_mut(buffer)[..length].copy_from_slice(&octets);
        let length = u32::try_from(length).expect("small");
        let frame = Frame::new(buffer, length, cut, checksum);
        // The segments of a super-frame may have come one after the other.
        let apart = Span::from_nanos(reader.option().unwrap_or(0) >> 32);
        let segments = frame.segments();
        let arrivals: Vec<Instant> = (0..u64::from(segments.min(4_000)))
            .map(|segment| at - Span::from_nanos(apart.nanos().saturating_mul(u64::from(segments) - segment)))
            .collect();
        self.engine.offer_run(port, at, &arrivals, frame);
        Some(())
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut world = World {
        engine: Engine::new(data.len() as u64),
        ports: Vec::new(),
        switches: Vec::new(),
        links: Vec::new(),
        sink: Sink::default(),
    };
    let mut reader = Reader(data);
    for _ in 0..ACTS {
        if reader.0.is_empty() {
            break;
        }
        // An act that the engine refuses, or that has no target, changes nothing.
        let _ = world.act(&mut reader);
    }
    world.engine.advance(Instant::NEVER, &mut world.sink);
    assert_eq!(world.engine.ledger().in_flight(), world.engine.recount());
    assert_eq!(world.engine.recount().frames, 0);
    assert_eq!(world.engine.pool().in_use(), 0);
}
