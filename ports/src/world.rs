//! The engine and what is around it, by name: ports, switches, links, and frames that come in.

use std::collections::HashMap;
use std::path::Path;

use airloom_engine::frame::{BufferId, Frame};
use airloom_engine::settings::{LinkSettings, SwitchSettings};
use airloom_engine::time::Instant;
use airloom_engine::{End, Engine, LinkId, PortId, SwitchId};

use crate::capture::Capture;
use crate::clock::WallClock;
use crate::edge::{Edge, LARGE, Outside, Port};
use crate::error::Error;
use crate::intake::{self, Intake, Read};
use crate::media::Media;
use crate::vnet::Meaning;

/// The engine and its edge.
pub struct World {
    /// The emulated network.
    pub engine: Engine,
    /// What is around it.
    pub edge: Edge,
    intake: Intake,
    ids: Vec<PortId>,
    ports: HashMap<String, PortId>,
    switches: HashMap<String, SwitchId>,
    links: HashMap<String, LinkId>,
    pub(crate) media: Media,
}

impl World {
    /// A world without ports; random numbers are drawn by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut engine = Engine::new(seed);
        let intake = Intake::new(engine.pool());
        Self {
            engine,
            edge: Edge::new(),
            intake,
            ids: Vec::new(),
            ports: HashMap::new(),
            switches: HashMap::new(),
            links: HashMap::new(),
            media: Media::default(),
        }
    }

    /// Adds a port; `transit` says that its node passes frames on.
    ///
    /// # Errors
    /// The engine's, if the name is taken.
    pub fn add(&mut self, name: &str, transit: bool, outside: Outside) -> Result<PortId, Error> {
        let id = self.engine.add_port(name, transit)?;
        debug_assert_eq!(id.index(), self.edge.ports.len());
        self.ids.push(id);
        self.edge.meet(id.index(), &outside);
        self.ports.insert(name.to_owned(), id);
        self.edge.ports.push(Port {
            name: name.to_owned(),
            outside,
            missed: 0,
            gone: false,
            batch: 1,
            looked: Instant::ZERO,
        });
        Ok(id)
    }

    /// Adds a switch or hub.
    ///
    /// # Errors
    /// The engine's.
    pub fn add_switch(&mut self, name: &str, settings: &SwitchSettings) -> Result<SwitchId, Error> {
        let id = self.engine.add_switch(name, settings)?;
        debug_assert_eq!(id.index(), self.edge.switches.len());
        self.edge.switches.push(name.to_owned());
        self.switches.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Joins two ends by a link, each the name of a port or of a switch.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or the engine's.
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
        debug_assert_eq!(id.index(), self.edge.links.len());
        self.edge.links.push(name.to_owned());
        self.links.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The port with this name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn port(&self, name: &str) -> Result<PortId, Error> {
        self.ports.get(name).copied().ok_or_else(|| Error::unknown("port", name))
    }

    /// The link with this name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn link(&self, name: &str) -> Result<LinkId, Error> {
        self.links.get(name).copied().ok_or_else(|| Error::unknown("link", name))
    }

    /// The switch with this name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn switch(&self, name: &str) -> Result<SwitchId, Error> {
        self.switches.get(name).copied().ok_or_else(|| Error::unknown("switch", name))
    }

    fn end(&self, name: &str) -> Result<End, Error> {
        match (self.port(name), self.switch(name)) {
            (Ok(port), _) => Ok(End::Port(port)),
            (Err(_), Ok(switch)) => Ok(End::Switch(switch)),
            (Err(_), Err(_)) => Err(Error::unknown("port or switch", name)),
        }
    }

    /// Names of the links, by number.
    #[must_use]
    pub fn link_names(&self) -> &[String] {
        &self.edge.links
    }

    /// Names of the switches, by number.
    #[must_use]
    pub fn switch_names(&self) -> &[String] {
        &self.edge.switches
    }

    /// Number of a port as the engine names it.
    #[must_use]
    pub fn port_ids(&self) -> &[PortId] {
        &self.ids
    }

    /// Puts another thing behind a port: the new TAP of a node that starts again.
    pub fn exchange(&mut self, port: PortId, outside: Outside) {
        self.edge.meet(port.index(), &outside);
        let port = &mut self.edge.ports[port.index()];
        port.outside = outside;
        port.gone = false;
    }

    /// Captures the named ports, or all, to a file.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, [`Error::Capture`] if the file cannot be made.
    pub fn capture(&mut self, path: &Path, ports: Option<Vec<String>>) -> Result<(), Error> {
        for name in ports.iter().flatten() {
            self.port(name)?;
        }
        let wanted = ports.map(|names| names.into_iter().collect());
        self.edge.capture = Some(Capture::create(path, wanted)?);
        self.sniff()
    }

    /// Lets time pass until `until`.
    pub fn advance(&mut self, until: Instant) {
        self.engine.advance(until, &mut self.edge);
        while let Some(port) = self.edge.asked.pop() {
            let Outside::Tunnel(tunnel) = &mut self.edge.ports[port].outside else { continue };
            for answer in tunnel.answers() {
                let now = self.engine.now();
                // It is shorter than any buffer.
                let _ = self.offer(self.ids[port], now, &answer);
            }
        }
    }

    /// A frame enters through a port at `at`, whatever stands behind it.
    ///
    /// # Errors
    /// [`Error::FrameTooLong`] if no buffer holds it.
    pub fn offer(&mut self, port: PortId, at: Instant, octets: &[u8]) -> Result<(), Error> {
        if octets.len() > LARGE {
            return Err(Error::FrameTooLong { octets: octets.len(), most: LARGE });
        }
        let pool = self.engine.pool();
        let buffer = pool.take(octets.len());
        pool.octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
        let length = u32::try_from(octets.len()).expect("a buffer is shorter than 4 GB");
        self.enter(port, at, buffer, length, Meaning::default());
        Ok(())
    }

    /// Reads one frame from a port and offers it at the time of the read.
    pub(crate) fn take_in(&mut self, index: usize, clock: &WallClock) -> Option<Taken> {
        let port = &mut self.edge.ports[index];
        let pool = self.engine.pool();
        let read = match &mut port.outside {
            Outside::Tap(tap) => self.intake.tap(tap, pool),
            Outside::Interface(interface) => self.intake.interface(interface, pool),
            Outside::Vhost(vhost) => vhost.take(pool),
            Outside::Tunnel(tunnel) => intake::tunnel(tunnel, pool),
            Outside::Memory | Outside::Nothing => Read::Empty,
        };
        match read {
            Read::Frame(buffer, octets, meaning) => {
                let now = clock.now();
                self.enter(self.ids[index], now, buffer, octets, meaning);
                Some(Taken { now, octets })
            }
            Read::Empty => None,
            Read::Gone => {
                port.gone = true;
                None
            }
        }
    }

    fn enter(&mut self, port: PortId, at: Instant, buffer: BufferId, length: u32, meaning: Meaning) {
        let frame = Frame::new(buffer, length, meaning.segmentation, meaning.checksum);
        self.engine.offer(port, at, frame);
    }
}

/// A frame was read.
pub(crate) struct Taken {
    /// When.
    pub now: Instant,
    /// Its octets.
    pub octets: u32,
}
