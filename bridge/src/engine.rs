//! The engine for Python: built, then stepped or driven by the wall clock, then read.
//!
//! Every call releases the GIL before it waits, and the engine's thread never acquires it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Mutex;

use airloom_engine::medium::{
    CardSettings, MediumSettings, MobilitySettings, NoiseSettings, Policed, RadioChange, RadioSettings,
};
use airloom_engine::settings::{LinkSettings, SwitchSettings, VlanSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction};
use airloom_ports::capture::Choice;
use airloom_ports::detached::Detached;
use airloom_ports::interface::Interface;
use airloom_ports::memory::{Inbox, Memory};
use airloom_ports::monitor::Monitor;
use airloom_ports::runtime::driver::Driver;
use airloom_ports::runtime::priority::Scheduling;
use airloom_ports::tunnel::{Encapsulation, Tunnel};
use airloom_ports::world::World;
use airloom_ports::world::captures::RUN;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{TapSource, duplicate, offered, read_settings};
use crate::errors::Fault;
use crate::received::{Frame, Received};
use crate::state::State;
use crate::views::{LedgerState, Punctuality, loads};
use crate::{guests, media};

/// The engine on its own thread, driven by the wall clock or step by step.
#[pyclass(frozen, module = "airloom._engine")]
pub struct Engine {
    pub state: Mutex<State>,
    /// Frames received by memory ports.
    inbox: Inbox,
}

#[pymethods]
impl Engine {
    #[new]
    fn new(seed: u64) -> Self {
        Self { state: Mutex::new(State::Still(Box::new(World::new(seed)))), inbox: Inbox::default() }
    }

    #[pyo3(signature = (name, tap, transit = false, complete_checksums = false, offloads = (true, true)))]
    #[allow(clippy::too_many_arguments)] // each has a name in Python
    fn add_tap_port(
        &self,
        py: Python<'_>,
        name: String,
        tap: TapSource<'_>,
        transit: bool,
        complete_checksums: bool,
        offloads: (bool, bool),
    ) -> PyResult<()> {
        self.add(py, name, transit, Box::new(tap.port(complete_checksums, offloads)?))
    }

    #[pyo3(signature = (name, transit = false))]
    fn add_memory_port(&self, py: Python<'_>, name: String, transit: bool) -> PyResult<()> {
        self.add(py, name, transit, Box::new(Memory::new(&self.inbox)))
    }

    #[pyo3(signature = (
        name, listener, mac, mtu, transit = false, handling = None, offloads = (true, true), guest = None
    ))]
    #[allow(clippy::too_many_arguments)] // each has a name in Python
    fn add_vhost_port(
        &self,
        py: Python<'_>,
        name: String,
        listener: i32,
        mac: &str,
        mtu: u16,
        transit: bool,
        handling: Option<&guests::Handling>,
        offloads: (bool, bool),
        guest: Option<usize>,
    ) -> PyResult<()> {
        let port = guests::device(duplicate(listener)?, mac, mtu, offered(offloads), handling)?;
        self.add_of(py, name, transit, Box::new(port), guest)
    }

    #[pyo3(signature = (name, device, radio, phy, transit = false, guest = None))]
    #[allow(clippy::too_many_arguments)] // each has a name in Python
    fn add_wlan_port(
        &self,
        py: Python<'_>,
        name: String,
        device: &guests::WlanDevice,
        radio: usize,
        phy: &str,
        transit: bool,
        guest: Option<usize>,
    ) -> PyResult<()> {
        self.add_of(py, name, transit, Box::new(device.port(radio, phy)?), guest)
    }

    fn set_monitor(&self, py: Python<'_>, name: String, listener: i32, card: String) -> PyResult<()> {
        let monitor = Monitor::serve(duplicate(listener)?, card).map_err(Fault::from)?;
        self.act(py, "set_monitor", move |world| world.set_monitor(&name, monitor))
    }

    #[pyo3(signature = (name, listener, mac, mtu, handling = None, offloads = (true, true)))]
    #[allow(clippy::too_many_arguments)] // each has a name in Python
    fn attach_vhost(
        &self,
        py: Python<'_>,
        name: String,
        listener: i32,
        mac: &str,
        mtu: u16,
        handling: Option<&guests::Handling>,
        offloads: (bool, bool),
    ) -> PyResult<()> {
        let device = guests::device(duplicate(listener)?, mac, mtu, offered(offloads), handling)?;
        self.exchange(py, name, Box::new(device))
    }

    fn add_interface_port(&self, py: Python<'_>, name: String, interface: &str) -> PyResult<()> {
        let interface = Interface::attach(interface).map_err(Fault::from)?;
        self.add(py, name, true, Box::new(interface))
    }

    fn add_tunnel_port(
        &self,
        py: Python<'_>,
        name: String,
        receive: i32,
        send: i32,
        remote: IpAddr,
        encapsulation: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let encapsulation: Encapsulation = read_settings(encapsulation, &format!("tunnel {name}"))?;
        let tunnel = Tunnel::new(duplicate(receive)?, duplicate(send)?, remote, encapsulation);
        self.add(py, name, true, Box::new(tunnel))
    }

    #[pyo3(signature = (name, tap, complete_checksums = false, offloads = (true, true)))]
    fn attach_tap(
        &self,
        py: Python<'_>,
        name: String,
        tap: TapSource<'_>,
        complete_checksums: bool,
        offloads: (bool, bool),
    ) -> PyResult<()> {
        self.exchange(py, name, Box::new(tap.port(complete_checksums, offloads)?))
    }

    fn detach(&self, py: Python<'_>, name: String) -> PyResult<()> {
        self.exchange(py, name, Box::new(Detached))
    }

    fn add_switch(&self, py: Python<'_>, name: String, settings: &Bound<'_, PyAny>) -> PyResult<()> {
        let settings: SwitchSettings = read_settings(settings, &format!("switch {name}"))?;
        self.act(py, "add_switch", move |world| world.add_switch(&name, &settings).map(|_| ()))
    }

    fn connect(
        &self,
        py: Python<'_>,
        name: String,
        a: String,
        b: String,
        forward: &Bound<'_, PyAny>,
        backward: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let forward: LinkSettings = read_settings(forward, &format!("link {name} forward"))?;
        let backward: LinkSettings = read_settings(backward, &format!("link {name} backward"))?;
        self.act(py, "connect", move |world| world.connect(&name, &a, &b, &forward, &backward).map(|_| ()))
    }

    fn disconnect(&self, py: Python<'_>, name: String) -> PyResult<()> {
        self.act(py, "disconnect", move |world| world.disconnect(&name))
    }

    fn set_transit(&self, py: Python<'_>, port: String, transit: bool) -> PyResult<()> {
        self.act(py, "set_transit", move |world| world.set_transit(&port, transit))
    }

    fn set_switch(&self, py: Python<'_>, name: String, settings: &Bound<'_, PyAny>) -> PyResult<()> {
        let settings: SwitchSettings = read_settings(settings, &format!("switch {name}"))?;
        self.act(py, "set_switch", move |world| {
            let switch = world.names.switches.id(&name)?;
            Ok(world.engine.schedule(Instant::ZERO, Change::Switch(switch, settings))?)
        })
    }

    fn move_to_port(&self, py: Python<'_>, link: String, end: &str, port: String) -> PyResult<()> {
        let direction = direction_from(end)?;
        self.act(py, "move_to_port", move |world| {
            let (link, port) = (world.names.links.id(&link)?, world.names.ports.id(&port)?);
            Ok(world.engine.move_to_port(link, direction, port)?)
        })
    }

    fn set_vlan(&self, py: Python<'_>, link: String, end: &str, settings: &Bound<'_, PyAny>) -> PyResult<()> {
        let direction = direction_from(end)?;
        let settings: VlanSettings = read_settings(settings, &format!("VLANs of link {link}"))?;
        self.act(py, "set_vlan", move |world| {
            let link = world.names.links.id(&link)?;
            Ok(world.engine.set_vlan(link, direction, &settings)?)
        })
    }

    #[pyo3(signature = (path, ports = None, *, apart = false, snap = None))]
    fn capture(
        &self,
        py: Python<'_>,
        path: PathBuf,
        ports: Option<Vec<String>>,
        apart: bool,
        snap: Option<u32>,
    ) -> PyResult<()> {
        let wanted = ports.map(|names| names.into_iter().collect());
        let choice = Choice { wanted, snap, apart, filters: None };
        py.detach(|| match &mut *self.state() {
            State::Still(world) => Ok(world.capture(&path, choice)?),
            State::Virtual(calendar) => Ok(calendar.world.capture(&path, choice)?),
            _ => Err(Fault::State { call: "capture", needs: "an engine that has not started" }),
        })
        .map_err(PyErr::from)
    }

    fn schedule(&self, py: Python<'_>, policy: i32, priority: i32, nice: i32) -> PyResult<()> {
        self.act(py, "schedule", move |world| {
            world.scheduling = Some(Scheduling { policy, priority, nice });
            Ok(())
        })
    }

    fn poll_idle(&self, py: Python<'_>, processors: Vec<usize>) -> PyResult<()> {
        self.act(py, "poll_idle", move |world| {
            world.idle_poll = processors;
            Ok(())
        })
    }

    fn idle_polled(&self, py: Python<'_>) -> u64 {
        py.detach(|| match &*self.state() {
            State::Running(driver) => driver.idle_polled().nanos(),
            State::Still(_) | State::Virtual(_) | State::Stopped(_) | State::Lost => 0,
        })
    }

    fn start(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| {
            let mut state = self.state();
            match std::mem::replace(&mut *state, State::Lost) {
                State::Still(world) => {
                    let driver = Driver::start(*world)?;
                    let zero = driver.clock().zero();
                    *state = State::Running(driver);
                    Ok(zero)
                }
                other => {
                    *state = other;
                    Err(Fault::State { call: "start", needs: "an engine that has not started" })
                }
            }
        })
        .map_err(PyErr::from)
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| -> Result<(), Fault> {
            let mut state = self.state();
            match std::mem::replace(&mut *state, State::Lost) {
                State::Still(mut world) => {
                    let finished = world.captures.finish();
                    *state = State::Still(world);
                    Ok(finished?)
                }
                State::Virtual(mut calendar) => {
                    let finished = calendar.world.captures.finish();
                    *state = State::Virtual(calendar);
                    Ok(finished?)
                }
                State::Running(driver) => {
                    let (mut driven, error) = driver.stop()?;
                    let finished = driven.world.captures.finish();
                    *state = State::Stopped(Box::new(driven));
                    finished?;
                    error.map_or(Ok(()), |error| Err(error.into()))
                }
                other => {
                    *state = other;
                    Ok(())
                }
            }
        })
        .map_err(PyErr::from)
    }

    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        let now = py.detach(|| match &*self.state() {
            State::Still(world) => Ok(world.engine.now()),
            State::Virtual(calendar) => Ok(Instant::from_nanos(calendar.now())),
            State::Running(driver) => Ok(driver.clock().now()),
            State::Stopped(driven) => Ok(driven.world.engine.now()),
            State::Lost => Err(Fault::LOST),
        })?;
        Ok(now.nanos())
    }

    fn set_link(
        &self,
        py: Python<'_>,
        name: String,
        direction: &str,
        settings: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.schedule_link(py, 0, name, direction, Some(settings), None)
    }

    fn set_link_up(&self, py: Python<'_>, name: String, up: bool) -> PyResult<()> {
        self.schedule_link(py, 0, name, "both", None, Some(up))
    }

    #[pyo3(signature = (at, name, direction, settings, up))]
    fn schedule_link(
        &self,
        py: Python<'_>,
        at: u64,
        name: String,
        direction: &str,
        settings: Option<&Bound<'_, PyAny>>,
        up: Option<bool>,
    ) -> PyResult<()> {
        let directions: &[Direction] = match direction {
            "forward" => &[Direction::Forward],
            "backward" => &[Direction::Backward],
            "both" => &[Direction::Forward, Direction::Backward],
            _ => {
                let allowed = "forward, backward, both";
                return Err(Fault::Word { what: "direction", given: direction.to_owned(), allowed }.into());
            }
        };
        let settings: Option<LinkSettings> =
            settings.map(|settings| read_settings(settings, &format!("link {name}"))).transpose()?;
        self.act(py, "schedule_link", move |world| {
            let link = world.names.links.id(&name)?;
            let at = Instant::from_nanos(at);
            if let Some(settings) = settings {
                for &direction in directions {
                    let change = Change::Link(link, direction, Box::new(settings.clone()));
                    world.engine.schedule(at, change)?;
                }
            }
            if let Some(up) = up {
                world.engine.schedule(at, if up { Change::Up(link) } else { Change::Down(link) })?;
            }
            Ok(())
        })
    }

    fn add_medium(&self, py: Python<'_>, name: String, settings: &Bound<'_, PyAny>) -> PyResult<()> {
        let settings: MediumSettings = read_settings(settings, &format!("medium {name}"))?;
        self.act(py, "add_medium", move |world| world.add_medium(&name, &settings))
    }

    fn add_radio(
        &self,
        py: Python<'_>,
        medium: String,
        port: String,
        settings: &Bound<'_, PyAny>,
        motion: &Bound<'_, PyAny>,
        node: String,
    ) -> PyResult<()> {
        let settings: RadioSettings = read_settings(settings, &format!("radio {port}"))?;
        let motion: MobilitySettings = read_settings(motion, &format!("motion of {port}"))?;
        self.act(py, "add_radio", move |world| {
            let motion = motion.build(world.engine.seed(), &node)?;
            world.add_radio(&medium, &port, settings, motion)
        })
    }

    fn remove_radio(&self, py: Python<'_>, port: String) -> PyResult<()> {
        self.act(py, "remove_radio", move |world| world.remove_radio(&port))
    }

    fn set_medium(&self, py: Python<'_>, name: String, settings: &Bound<'_, PyAny>) -> PyResult<()> {
        let settings: MediumSettings = read_settings(settings, &format!("medium {name}"))?;
        self.act(py, "set_medium", move |world| world.set_medium(&name, &settings))
    }

    fn set_motion(
        &self,
        py: Python<'_>,
        port: String,
        motion: &Bound<'_, PyAny>,
        node: String,
    ) -> PyResult<()> {
        let motion: MobilitySettings = read_settings(motion, &format!("motion of {port}"))?;
        self.act(py, "set_motion", move |world| {
            let motion = motion.build(world.engine.seed(), &node)?;
            world.set_motion(&port, motion)
        })
    }

    fn remove_noise(&self, py: Python<'_>, medium: String) -> PyResult<()> {
        self.act(py, "remove_noise", move |world| world.remove_noise(&medium))
    }

    fn withdraw_changes(&self, py: Python<'_>) -> PyResult<u64> {
        self.act(py, "withdraw_changes", |world| Ok(world.engine.withdraw_changes().nanos()))
    }

    fn police(&self, py: Python<'_>, port: String, grant: &Bound<'_, PyAny>) -> PyResult<()> {
        let policed: Policed = read_settings(grant, &format!("grant of {port}"))?;
        self.act(py, "police", move |world| world.police(&port, &policed))
    }

    fn violations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (found, unrecorded) = self.look(py, World::violations)?;
        media::violations(py, &found, &unrecorded)
    }

    fn forget_violations(&self, py: Python<'_>, slice: String) -> PyResult<()> {
        self.act(py, "forget_violations", move |world| world.forget_violations(&slice))
    }

    fn add_card(
        &self,
        py: Python<'_>,
        medium: String,
        name: String,
        settings: &Bound<'_, PyAny>,
        ports: Vec<String>,
    ) -> PyResult<()> {
        let settings: CardSettings = read_settings(settings, &format!("card {name}"))?;
        self.act(py, "add_card", move |world| world.add_card(&medium, &name, settings, &ports))
    }

    fn set_frame_error(
        &self,
        py: Python<'_>,
        sender: String,
        receiver: String,
        probability: f64,
    ) -> PyResult<()> {
        self.act(py, "set_frame_error", move |world| world.set_frame_error(&sender, &receiver, probability))
    }

    fn add_noise(
        &self,
        py: Python<'_>,
        medium: String,
        settings: &Bound<'_, PyAny>,
        motion: &Bound<'_, PyAny>,
        source: String,
    ) -> PyResult<()> {
        let settings: NoiseSettings = read_settings(settings, &format!("noise of {medium}"))?;
        let motion: MobilitySettings = read_settings(motion, &format!("motion of {source}"))?;
        self.act(py, "add_noise", move |world| {
            let motion = motion.build(world.engine.seed(), &source)?;
            world.add_noise(&medium, settings, motion)
        })
    }

    fn set_radio(&self, py: Python<'_>, port: String, change: &Bound<'_, PyAny>) -> PyResult<()> {
        self.schedule_radio(py, 0, port, change)
    }

    fn schedule_radio(
        &self,
        py: Python<'_>,
        at: u64,
        port: String,
        change: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let change: RadioChange = read_settings(change, &format!("radio {port}"))?;
        let at = Instant::from_nanos(at);
        self.act(py, "schedule_radio", move |world| world.schedule_radio(at, &port, change))
    }

    fn radios<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let radios = self.look(py, World::radios)?;
        media::radios(py, &radios)
    }

    fn channels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let channels = self.look(py, World::channels)?;
        media::channels(py, &channels)
    }

    fn cards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let cards = self.look(py, World::cards)?;
        media::cards(py, &cards)
    }

    fn scanned<'py>(&self, py: Python<'py>, port: String) -> PyResult<Bound<'py, PyAny>> {
        let (times, seen) = self.act(py, "scanned", move |world| world.scanned(&port))?;
        media::scanned(py, times, &seen)
    }

    fn signal(&self, py: Python<'_>, sender: String, receiver: String) -> PyResult<f64> {
        self.act(py, "signal", move |world| world.power_at(&sender, &receiver))
    }

    fn meet_guests(&self, py: Python<'_>) -> bool {
        py.detach(|| match &mut *self.state() {
            State::Still(world) => world.edge.negotiate(),
            State::Virtual(_) | State::Running(_) | State::Stopped(_) | State::Lost => false,
        })
    }

    fn guests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let guests = self.read(py, |world| guests::of(world), |driven| guests::of(&driven.world))?;
        guests::view(py, &guests)
    }

    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.read(py, LedgerState::of, |driven| LedgerState::of(&mut driven.world))?.view(py)
    }

    fn link_loads<'py>(&self, py: Python<'py>) -> PyResult<(u64, Bound<'py, PyBytes>)> {
        let still = |world: &mut World| (world.engine.now(), loads(world));
        let (at, found) =
            self.read(py, still, |driven| (driven.world.engine.now(), loads(&mut driven.world)))?;
        Ok((at.nanos(), PyBytes::new(py, &found)))
    }

    fn lateness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let still = |world: &mut World| Punctuality {
            histograms: Punctuality::of_virtual(world),
            capture: world.captures.account(RUN),
            ..Punctuality::default()
        };
        self.read(py, still, |driven| Punctuality::of(driven))?.view(py)
    }

    fn offer(&self, py: Python<'_>, port: String, at: u64, octets: &[u8]) -> PyResult<()> {
        let octets = octets.to_vec();
        self.act(py, "offer", move |world| {
            let port = world.names.ports.id(&port)?;
            world.offer(port, Instant::from_nanos(at), &octets)
        })
    }

    fn step<'py>(&self, py: Python<'py>, until: u64) -> PyResult<Vec<Frame<'py>>> {
        let received = py.detach(|| match &mut *self.state() {
            State::Still(world) => {
                world.advance(Instant::from_nanos(until));
                Ok(Received::of(world, &self.inbox))
            }
            _ => Err(Fault::State { call: "step", needs: "an engine that has not started" }),
        })?;
        Ok(received.frames(py))
    }

    fn received<'py>(&self, py: Python<'py>) -> PyResult<Vec<Frame<'py>>> {
        let inbox = self.inbox.clone();
        let received = self.act(py, "received", move |world| Ok(Received::of(world, &inbox)))?;
        Ok(received.frames(py))
    }
}

/// The direction that begins at an end of a link.
fn direction_from(end: &str) -> Result<Direction, Fault> {
    match end {
        "a" => Ok(Direction::Forward),
        "b" => Ok(Direction::Backward),
        _ => Err(Fault::Word { what: "end", given: end.to_owned(), allowed: "a, b" }),
    }
}
