//! The engine and its environment, by name: ports, switches, links, and received frames.

pub mod captures;
pub mod edge;
pub mod names;
pub(crate) mod passage;
pub mod radio;
pub mod seen;
pub(crate) mod stalls;

use airloom_engine::frame::{BufferId, CLASSES, Frame};
use airloom_engine::settings::{LinkSettings, SwitchSettings};
use airloom_engine::time::{Instant, Span};
use airloom_engine::{Clock, Egress, End, Engine, LinkId, PortId, SwitchId};

use crate::error::Error;
use crate::monitor::Monitor;
use crate::port::{Incoming, LARGEST_FRAME, Port};
use crate::recorder::Recorder;
use crate::runtime::background::Pending;
use crate::runtime::priority::Scheduling;
use crate::runtime::wall_clock::WallClock;
use crate::rx::RxBuffers;
use crate::virtual_time::clock::CalendarClock;
use crate::vnet::Meaning;
use captures::Captures;
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
    /// Its captures.
    pub captures: Captures,
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
            captures: Captures::default(),
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
        self.captures.follow(clock.zero_since_1970());
        Ok(())
    }

    /// Starts to be stepped by a calendar, whose engine's time zero is `zero` nanoseconds after 1970.
    pub(crate) fn start_virtual(&mut self, clock: CalendarClock, zero: u64) {
        self.edge.start_virtual(clock);
        self.captures.start_at(zero);
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
        self.edge.attach(port, node_of(name, transit));
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

    /// Connects two ends by a link; each end is the name of a port or a switch. A link that was taken out
    /// goes on with its account.
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
        if let Some(id) = self.names.links.id(name).ok().filter(|id| self.engine.is_disconnected(*id)) {
            let both = (forward, backward);
            self.with_egress(|engine, _, egress| engine.reconnect(id, name, (a, b), both, egress))?;
            return Ok(id);
        }
        let id = self.engine.connect(name, a, b, forward, backward)?;
        self.names.links.insert(name, id);
        Ok(id)
    }

    /// Takes a link out: its frames are dropped, and its ends are free.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or an error of the engine.
    pub fn disconnect(&mut self, name: &str) -> Result<(), Error> {
        let id = self.names.links.id(name)?;
        Ok(self.with_egress(|engine, _, egress| engine.disconnect(id, egress))?)
    }

    /// Tells whether the node of a port forwards frames from now on.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name.
    pub fn set_transit(&mut self, name: &str, transit: bool) -> Result<(), Error> {
        let id = self.names.ports.id(name)?;
        self.engine.set_transit(id, transit);
        self.edge.set_node(id.index(), node_of(name, transit));
        Ok(())
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
        self.engine.let_gather(id, port.gathers());
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

    /// Work done once a second: updates the captures' files, and reads the drops at ports from the
    /// kernel.
    pub(crate) fn each_second(&mut self) {
        self.captures.push(self.engine.now());
        self.edge.each_second();
    }

    /// Advances time to `until`. Returns false if events are left, because they take too long
    /// ([`Engine::advance_on`]).
    pub fn advance(&mut self, until: Instant) -> bool {
        let done = self.with_egress(|engine, clock, egress| match clock {
            None => {
                engine.advance(until, egress);
                true
            }
            Some(clock) => engine.advance_on(clock, until, egress),
        });
        if !self.edge.answers.is_empty() {
            self.answer();
        }
        done
    }

    /// Acts on the engine with the place where its frames leave, which a capture records.
    pub(crate) fn with_egress<T>(
        &mut self,
        act: impl FnOnce(&mut Engine, Option<&WallClock>, &mut dyn Egress) -> T,
    ) -> T {
        let Self { engine, edge, names, radios, captures, clock, .. } = self;
        match captures.all() {
            [] => act(engine, clock.as_ref(), edge),
            captures => act(engine, clock.as_ref(), &mut Recorder { inner: edge, captures, names, radios }),
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
    pub(crate) fn take_in(&mut self, number: usize, clock: &dyn Clock) -> Taken {
        let incoming = loop {
            let port = &mut self.edge.ports[number].port;
            match port.receive(&mut self.rx, self.engine.pool()) {
                // An address that another radio has stays with that one.
                Incoming::Addresses(port, addresses) => {
                    let _ = self.engine.set_wlan_addresses(port, &addresses);
                }
                Incoming::Listening(port, listening) => {
                    let _ = self.engine.set_wlan_listening(port, listening);
                }
                incoming => break incoming,
            }
        };
        self.take(number, incoming, clock)
    }

    /// Takes in one entry of the queue of a guest that it has logged, and offers it at the clock's time.
    pub(crate) fn take_logged(&mut self, number: usize, entry: &[u8], clock: &dyn Clock) {
        let incoming = self.edge.ports[number].port.take_logged(entry, self.engine.pool());
        self.take(number, incoming, clock);
    }

    /// Time after a frame of a port until anything may come of it outside of its node, at least.
    pub(crate) fn ahead(&self, number: usize) -> Span {
        // Segments that a node forwards may have left it before.
        if self.edge.ports[number].node.is_some() {
            return Span::ZERO;
        }
        self.engine.lookahead(self.names.ports.at(number))
    }

    fn take(&mut self, number: usize, incoming: Incoming, clock: &dyn Clock) -> Taken {
        match incoming {
            Incoming::Transmit(port, buffer, octets, request) => {
                let now = clock.now();
                self.engine.transmit(port, now, Frame::new(buffer, octets, None, None), request);
                Taken::Frame(now, octets)
            }
            Incoming::Addresses(..) | Incoming::Listening(..) | Incoming::Empty => Taken::Nothing,
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

/// The node of a port, if it forwards frames.
fn node_of(port: &str, transit: bool) -> Option<&str> {
    if transit { port.split_once(':').map(|(node, _)| node) } else { None }
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
