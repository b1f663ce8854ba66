//! The engine and its environment, by name: ports, switches, links, and received frames.

pub mod edge;
pub mod names;
pub(crate) mod passage;
pub mod radio;
pub(crate) mod stalls;

use std::path::Path;

use airloom_engine::frame::{BufferId, CLASSES, Frame};
use airloom_engine::settings::{LinkSettings, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Egress, End, Engine, LinkId, PortId, SwitchId};

use crate::capture::{Capture, Choice};
use crate::error::Error;
use crate::monitor::Monitor;
use crate::port::{Incoming, LARGEST_FRAME, Port};
use crate::recorder::Recorder;
use crate::runtime::background::Pending;
use crate::runtime::priority::Scheduling;
use crate::runtime::wall_clock::WallClock;
use crate::rx::RxBuffers;
use crate::vnet::Meaning;
use edge::Edge;
use names::Names;
use radio::Radios;

/// Buffers of each class that exist before frames arrive. While a queue grows to its largest length,
/// each new frame takes one more; an allocation during the run delays frames by 20 to 50 us.
const RESERVED: [usize; CLASSES.len()] = [4096, 512, 32];

/// The engine, its edge, and the names of all elements.
pub struct World {
    /// The emulated network.
    pub engine: Engine,
    /// Its ports.
    pub edge: Edge,
    /// Names of ports, switches, links and media.
    pub names: Names,
    /// The capture, if there is one.
    pub capture: Option<Capture>,
    /// How the loop's thread is scheduled, if that is fixed.
    pub scheduling: Option<Scheduling>,
    /// Numbers of the processors that poll while they are idle.
    pub idle_poll: Vec<usize>,
    /// None while the engine is stepped.
    clock: Option<WallClock>,
    rx: RxBuffers,
    radios: Radios,
}

impl World {
    /// A world without ports; `seed` initializes the random numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut engine = Engine::new(seed);
        let rx = RxBuffers::new(engine.pool());
        let (edge, names, radios) = (Edge::new(), Names::default(), Radios::default());
        Self {
            engine,
            edge,
            names,
            capture: None,
            scheduling: None,
            idle_poll: Vec::new(),
            clock: None,
            rx,
            radios,
        }
    }

    /// Allocates the buffers that a run usually needs: 16 MB, which take some milliseconds.
    pub(crate) fn reserve(&mut self) {
        for (octets, count) in CLASSES.into_iter().zip(RESERVED) {
            self.engine.pool().reserve(octets, count);
        }
    }

    /// Starts to follow a clock.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel refuses a thread.
    pub(crate) fn start(&mut self, clock: WallClock) -> Result<(), Error> {
        self.clock = Some(clock);
        self.edge.start(clock)?;
        if let Some(capture) = &mut self.capture {
            capture.follow(clock.zero_since_1970());
        }
        Ok(())
    }

    /// Adds a port, named `NODE:INTERFACE`; `transit` is true if its node forwards frames.
    ///
    /// # Errors
    /// An error of the engine, if the name is in use.
    pub fn add(&mut self, name: &str, transit: bool, mut port: Box<dyn Port>) -> Result<PortId, Error> {
        let id = self.engine.add_port(name, transit)?;
        port.attached(id);
        self.names.ports.insert(name, id);
        self.engine.let_gather(id, port.gathers());
        let node = if transit { name.split_once(':').map(|(node, _)| node) } else { None };
        self.edge.attach(port, node);
        Ok(id)
    }

    /// Adds a switch or hub.
    ///
    /// # Errors
    /// An error of the engine.
    pub fn add_switch(&mut self, name: &str, settings: &SwitchSettings) -> Result<SwitchId, Error> {
        let id = self.engine.add_switch(name, settings)?;
        self.names.switches.insert(name, id);
        Ok(id)
    }

    /// Connects two ends by a link; each end is the name of a port or a switch.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or an error of the engine.
    pub fn connect(
        &mut self,
        name: &str,
        a: &str,
        b: &str,
        forward: &LinkSettings,
        backward: &LinkSettings,
    ) -> Result<LinkId, Error> {
        let (a, b) = (self.end(a)?, self.end(b)?);
        let id = self.engine.connect(name, a, b, forward, backward)?;
        self.names.links.insert(name, id);
        Ok(id)
    }

    fn end(&self, name: &str) -> Result<End, Error> {
        match (self.names.ports.id(name), self.names.switches.id(name)) {
            (Ok(port), _) => Ok(End::Port(port)),
            (Err(_), Ok(switch)) => Ok(End::Switch(switch)),
            (Err(_), Err(_)) => Err(Error::unknown("port or switch", name)),
        }
    }

    /// Replaces a port: the new TAP of a restarted node. Returns what is left of closing the old
    /// one.
    pub fn exchange(&mut self, id: PortId, mut port: Box<dyn Port>) -> Option<Pending> {
        port.attached(id);
        self.edge.exchange(id.index(), port)
    }

    /// Gives a port the monitor of the machine whose card is behind it.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name.
    pub fn set_monitor(&mut self, port: &str, monitor: Monitor) -> Result<(), Error> {
        let id = self.names.ports.id(port)?;
        self.edge.set_monitor(id.index(), monitor);
        Ok(())
    }

    /// Captures ports and media to a file, or to a folder of files.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, [`Error::Capture`] if the file cannot be created.
    pub fn capture(&mut self, path: &Path, choice: Choice) -> Result<(), Error> {
        for name in choice.wanted.iter().flatten() {
            if self.names.media.id(name).is_err() {
                self.names.ports.id(name)?;
            }
        }
        self.capture = Some(Capture::create(path, choice)?);
        self.sniff()
    }

    /// Work done once a second: updates the capture's file, and reads the drops at ports from the
    /// kernel.
    pub(crate) fn each_second(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.push(self.engine.now());
        }
        self.edge.each_second();
    }

    /// Advances time to `until`.
    pub fn advance(&mut self, until: Instant) {
        let Self { engine, edge, names, radios, capture, clock, .. } = self;
        let mut recorder;
        let egress: &mut dyn Egress = match capture {
            None => edge,
            Some(capture) => {
                recorder = Recorder { inner: edge, capture, names, radios };
                &mut recorder
            }
        };
        match clock {
            None => engine.advance(until, egress),
            Some(clock) => engine.advance_on(clock, until, egress),
        }
        if !self.edge.answers.is_empty() {
            self.answer();
        }
    }

    /// Enters the replies of ports into the engine.
    fn answer(&mut self) {
        let now = self.engine.now();
        for (port, octets) in std::mem::take(&mut self.edge.answers) {
            // Answers are shorter than any buffer.
            let _ = self.offer(port, now, &octets);
        }
    }

    /// Enters a frame through a port at `at`, for any kind of port.
    ///
    /// # Errors
    /// [`Error::FrameTooLong`] if it exceeds the largest buffer.
    pub fn offer(&mut self, port: PortId, at: Instant, octets: &[u8]) -> Result<(), Error> {
        if octets.len() > LARGEST_FRAME {
            return Err(Error::FrameTooLong { octets: octets.len(), most: LARGEST_FRAME });
        }
        let pool = self.engine.pool();
        let buffer = pool.take(octets.len());
        pool.octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
        let length = u32::try_from(octets.len()).expect("a buffer is shorter than 4 GB");
        self.enter(port, at, buffer, length, Meaning::default());
        Ok(())
    }

    /// Reads one frame from a port and offers it at the time of the read.
    pub(crate) fn take_in(&mut self, number: usize, clock: &WallClock) -> Taken {
        let incoming = loop {
            let port = &mut self.edge.ports[number].port;
            match port.receive(&mut self.rx, self.engine.pool()) {
                // An address that another radio has stays with that one.
                Incoming::Addresses(port, addresses) => {
                    let _ = self.engine.set_wlan_addresses(port, &addresses);
                }
                incoming => break incoming,
            }
        };
        match incoming {
            Incoming::Transmit(port, buffer, octets, request) => {
                let now = clock.now();
                self.engine.transmit(port, now, Frame::new(buffer, octets, None, None), request);
                Taken::Frame(now, octets)
            }
            Incoming::Addresses(..) | Incoming::Empty => Taken::Nothing,
            Incoming::Frame(buffer, octets, meaning) => {
                let now = clock.now();
                self.edge.stalls.worked(now);
                let frame = Frame::new(buffer, octets, meaning.segmentation, meaning.checksum);
                let port = self.names.ports.at(number);
                match self.edge.left(number, now, &frame, self.engine.pool()) {
                    Some(departures) => self.engine.offer_run(port, now, departures, frame),
                    None => self.engine.offer(port, now, frame),
                }
                Taken::Frame(now, octets)
            }
            Incoming::Closed => Taken::Closed,
        }
    }

    fn enter(&mut self, port: PortId, at: Instant, buffer: BufferId, length: u32, meaning: Meaning) {
        let frame = Frame::new(buffer, length, meaning.segmentation, meaning.checksum);
        self.engine.offer(port, at, frame);
    }
}

/// Result of a read from a port.
pub(crate) enum Taken {
    /// A frame of so many octets was read at this time.
    Frame(Instant, u32),
    /// There was no frame.
    Nothing,
    /// The port is closed.
    Closed,
}
