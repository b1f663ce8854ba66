//! The engine's edge: its ports, what stands behind each, and how frames get there.

use std::os::fd::{AsRawFd, RawFd};

use airloom_engine::frame::{CLASSES, Frame, Pool};
use airloom_engine::medium::capture::{self, Sniffed};
use airloom_engine::time::Instant;
use airloom_engine::{Handed, HostLoss, MediumId, Outlet, Place, PortId, Why, segment};

use crate::capture::{Capture, Ear};
use crate::clock::WallClock;
use crate::interface::{self, Interface};
use crate::lateness::Histogram;
use crate::outgo;
use crate::pcapng::Direction;
use crate::tap::Tap;
use crate::tunnel::Tunnel;
use crate::vhost::{Standing, Vhost};
use crate::vnet;

/// Octets of the largest frame.
pub(crate) const LARGE: usize = CLASSES[2];
/// Frames that wait at memory ports to be taken, at most, while the wall clock runs.
const RECEIVED: usize = 65_536;

/// What stands behind a port.
#[derive(Debug)]
pub enum Outside {
    /// A node's TAP interface.
    Tap(Tap),
    /// A real interface of the host.
    Interface(Interface),
    /// The network device of a guest.
    Vhost(Box<Vhost>),
    /// A tunnel to another laboratory, or to a kernel's tunnel.
    Tunnel(Box<Tunnel>),
    /// The program that drives the engine.
    Memory,
    /// Nothing for now: what goes there is lost. A TAP keeps its namespace alive, so that of a
    /// node which is to go must go first.
    Nothing,
}

/// A port as the machine sees it.
#[derive(Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What stands behind it.
    pub outside: Outside,
    /// Frames that the kernel dropped before the engine took them; for real interfaces and tunnels
    /// only, a TAP keeps this count itself, as the drops of its transmit side.
    pub missed: u64,
    /// True once the other side is gone: its namespace died.
    pub gone: bool,
    /// Frames to read in the next turn.
    pub(crate) batch: u32,
    /// When the loop last knew it to be empty.
    pub(crate) looked: Instant,
}

impl Port {
    /// True if nobody is behind it any more, for now or for ever.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match &self.outside {
            Outside::Vhost(vhost) => vhost.standing() == Standing::Gone,
            _ => self.gone,
        }
    }

    /// The descriptor to wait on.
    #[must_use]
    pub fn fd(&self) -> Option<RawFd> {
        match &self.outside {
            Outside::Tap(tap) => Some(tap.as_raw_fd()),
            Outside::Interface(interface) => Some(interface.as_raw_fd()),
            Outside::Vhost(vhost) => Some(vhost.as_raw_fd()),
            Outside::Tunnel(tunnel) => Some(tunnel.as_raw_fd()),
            Outside::Memory | Outside::Nothing => None,
        }
    }

    /// Whether frames are left that the descriptor no longer tells of.
    #[must_use]
    pub(crate) fn has_more(&self) -> bool {
        matches!(&self.outside, Outside::Tunnel(tunnel) if tunnel.has_more())
    }
}

/// A frame that reached a memory port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The port.
    pub port: usize,
    /// When.
    pub at: Instant,
    /// Its octets, checksums complete.
    pub octets: Box<[u8]>,
}

/// Where the engine's frames go.
pub struct Edge {
    /// All ports, by number.
    pub ports: Vec<Port>,
    /// How late frames were handed to their nodes.
    pub delivery: Histogram,
    /// What waits at memory ports.
    pub received: Vec<Received>,
    /// The capture, if there is one.
    pub capture: Option<Capture>,
    /// Numbers of the ports that have, or had, a guest behind them.
    guests: Vec<usize>,
    /// Tunnels that have something to say themselves.
    pub(crate) asked: Vec<usize>,
    /// None while the engine is stepped.
    pub(crate) clock: Option<WallClock>,
    /// Names of links and switches, by number.
    pub(crate) links: Vec<String>,
    pub(crate) switches: Vec<String>,
    comment: String,
    scratch: Box<[u8]>,
    /// Names of media, and the ports of their radios, by number.
    pub(crate) media: Vec<(String, Vec<usize>)>,
    air: Vec<u8>,
}

impl Edge {
    /// An edge without ports.
    pub(crate) fn new() -> Self {
        Self {
            ports: Vec::new(),
            delivery: Histogram::default(),
            received: Vec::new(),
            guests: Vec::new(),
            capture: None,
            asked: Vec::new(),
            clock: None,
            links: Vec::new(),
            switches: Vec::new(),
            comment: String::with_capacity(256),
            scratch: vec![0; LARGE].into_boxed_slice(),
            media: Vec::new(),
            air: Vec::with_capacity(4096),
        }
    }

    /// Has time follow a clock from now on.
    pub(crate) fn follow(&mut self, clock: WallClock) {
        self.clock = Some(clock);
        if let Some(capture) = &mut self.capture {
            capture.follow(clock.zero_since_1970());
        }
    }

    /// What is to be done now and then: the capture's file kept up to date, the drops of real
    /// interfaces and tunnels fetched from the kernel.
    pub fn each_second(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.push();
        }
        for port in &mut self.ports {
            port.missed += match &mut port.outside {
                Outside::Interface(interface) => interface.dropped(),
                Outside::Tunnel(tunnel) => tunnel.dropped(),
                Outside::Tap(_) | Outside::Vhost(_) | Outside::Memory | Outside::Nothing => 0,
            };
        }
    }

    /// Serves what guests want to agree upon, frames apart: before time zero nothing takes those, but
    /// a guest's kernel does not start without its devices. False if there was nothing to do.
    pub fn meet_guests(&mut self) -> bool {
        let mut done = false;
        for &guest in &self.guests {
            if let Outside::Vhost(vhost) = &mut self.ports[guest].outside {
                done |= vhost.meet();
            }
        }
        done
    }

    /// Tells the guests what has come for them since the last call; gives when one may have to be told again.
    pub(crate) fn tell_guests(&mut self, now: Instant) -> Instant {
        let mut again = Instant::NEVER;
        for &guest in &self.guests {
            if let Outside::Vhost(vhost) = &mut self.ports[guest].outside {
                vhost.tell(now);
                again = vhost.device().reminder().map_or(again, |at| at.min(again));
            }
        }
        again
    }

    /// Remembers a port that has a guest to be told.
    pub(crate) fn meet(&mut self, port: usize, outside: &Outside) {
        if matches!(outside, Outside::Vhost(_)) && !self.guests.contains(&port) {
            self.guests.push(port);
        }
    }
}

impl Outlet for Edge {
    fn entered(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) {
        if let Some(capture) = &mut self.capture {
            let port = (port.index(), self.ports[port.index()].name.as_str());
            capture.frame(port, at, (frame, pool), Some(Direction::Outbound), "");
        }
    }

    fn wall(&self) -> Option<Instant> {
        self.clock.as_ref().map(WallClock::now)
    }

    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Handed {
        let index = port.index();
        if let Some(clock) = &self.clock {
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            self.delivery.record(clock.now().since(at), at, number);
        }
        let port = &mut self.ports[index];
        let handed = match &mut port.outside {
            _ if port.gone => Handed::Lost(HostLoss::NodeGone),
            Outside::Nothing => Handed::Lost(HostLoss::NodeGone),
            Outside::Tap(tap) => outgo::write(tap.as_raw_fd(), vnet::OCTETS, frame, pool),
            Outside::Interface(interface) => {
                outgo::write(interface.as_raw_fd(), interface::VNET_OCTETS, frame, pool)
            }
            Outside::Vhost(vhost) => vhost.put(frame, pool, &mut self.scratch),
            Outside::Tunnel(tunnel) => {
                let handed = tunnel.deliver(frame, pool);
                if tunnel.has_answers() {
                    self.asked.push(index);
                }
                handed
            }
            Outside::Memory => self.keep(index, at, frame, pool),
        };
        if let Some(capture) = &mut self.capture {
            let port = (index, self.ports[index].name.as_str());
            let (taken, loss) = match handed {
                // The engine drops it, and says so itself.
                Handed::NotUp => return handed,
                Handed::Taken => (frame.count, None),
                Handed::Partly(taken, loss) => (taken, Some(loss)),
                Handed::Lost(loss) => (0, Some(loss)),
            };
            if taken > 0 {
                let part = frame.part(frame.first, taken);
                capture.frame(port, at, (&part, pool), Some(Direction::Inbound), "");
            }
            if let Some(loss) = loss {
                self.comment.clear();
                self.comment.push_str("lost by the host: ");
                self.comment.push_str(loss.name());
                let part = frame.part(frame.first + taken, frame.count - taken);
                capture.frame(port, at, (&part, pool), None, &self.comment);
            }
        }
        handed
    }

    fn dropped(&mut self, place: Place, at: Instant, frame: &Frame, why: Why, pool: &Pool) {
        let Some(capture) = &mut self.capture else { return };
        self.comment.clear();
        for piece in match place {
            Place::Port(port) => {
                ["dropped: ", why.name(), " at port ", &self.ports[port.index()].name, "", ""]
            }
            Place::Link(link, direction) => {
                let link = &self.links[link.index()];
                ["dropped: ", why.name(), " on link ", link, " ", direction.name()]
            }
            Place::Switch(switch) => {
                ["dropped: ", why.name(), " in ", &self.switches[switch.index()], "", ""]
            }
        } {
            self.comment.push_str(piece);
        }
        let origin = frame.origin as usize;
        let port = (origin, self.ports[origin].name.as_str());
        capture.frame(port, at, (frame, pool), None, &self.comment);
    }

    fn sniffed(&mut self, medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        self.hear(medium, sniffed, pool);
    }
}

impl Edge {
    /// Adds what is on the air to the capture.
    fn hear(&mut self, medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        let (Some(capture), Some((name, radios))) = (&mut self.capture, self.media.get(medium.index()))
        else {
            return;
        };
        let octets =
            sniffed.frame.map_or(0, |frame| segment::complete(&frame, pool, frame.first, &mut self.scratch));
        self.air.clear();
        capture::write(sniffed, &self.scratch[..octets], &mut self.air);
        let number = u32::try_from(medium.index()).unwrap_or(u32::MAX);
        let heard = sniffed.radio.and_then(|radio| Some((radio, *radios.get(radio.number() as usize)?)));
        match heard {
            Some((radio, port)) => {
                let port = self.ports[port].name.as_str();
                let named = || format!("{port} on the air");
                capture.sniffed(Ear::Radio(number, radio.number()), Some(port), sniffed.at, &self.air, named);
            }
            None => {
                let channel = sniffed.channel;
                let named = || format!("{name}, channel {}", channel.number);
                capture.sniffed(Ear::Channel(number, channel.mhz), None, sniffed.at, &self.air, named);
            }
        }
    }

    /// Keeps what reached a memory port, segment by segment.
    fn keep(&mut self, port: usize, at: Instant, frame: &Frame, pool: &Pool) -> Handed {
        if self.clock.is_some() && self.received.len() + usize::from(frame.count) > RECEIVED {
            return Handed::Lost(HostLoss::RingFull);
        }
        for number in frame.first..frame.first + frame.count {
            let octets = segment::complete(frame, pool, number, &mut self.scratch);
            self.received.push(Received { port, at, octets: self.scratch[..octets].into() });
        }
        Handed::Taken
    }
}
