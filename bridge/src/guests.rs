//! The guests behind ports: their devices, and what crossed the boundary to them, as dictionaries.

use std::os::fd::OwnedFd;

use airloom_netns::read_mac;
use airloom_ports::edge::Outside;
use airloom_ports::vhost::{Card, Counts, Standing, Vhost};
use airloom_ports::world::World;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Fault;

/// The network device of the guest that will connect to a listening socket.
pub fn device(listener: OwnedFd, mac: &str, mtu: u16) -> Result<Outside, Fault> {
    let mac = read_mac(mac).map_err(Fault::Settings)?;
    let vhost = Vhost::serve(listener, Card { mac, mtu })?;
    Ok(Outside::Vhost(Box::new(vhost)))
}

/// One port's guest, as the engine's thread saw it.
pub struct Guest {
    port: String,
    standing: Standing,
    cause: Option<String>,
    connections: u64,
    features: u64,
    counts: Counts,
}

impl Guest {
    fn of(port: &str, vhost: &Vhost) -> Self {
        Self {
            port: port.to_owned(),
            standing: vhost.standing(),
            cause: vhost.cause().map(ToString::to_string),
            connections: vhost.connections(),
            features: vhost.features(),
            counts: vhost.device().counts,
        }
    }
}

/// The guests of a world.
pub fn of(world: &World) -> Vec<Guest> {
    let guest = |port: &airloom_ports::edge::Port| match &port.outside {
        Outside::Vhost(vhost) => Some(Guest::of(&port.name, vhost)),
        _ => None,
    };
    world.edge.ports.iter().filter_map(guest).collect()
}

/// The dictionary that the stub of `Engine.guests` describes.
pub fn view<'py>(py: Python<'py>, guests: &[Guest]) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for guest in guests {
        let view = PyDict::new(py);
        view.set_item("standing", guest.standing.name())?;
        view.set_item("cause", &guest.cause)?;
        view.set_item("connections", guest.connections)?;
        view.set_item("features", guest.features)?;
        let counts = &guest.counts;
        for (name, value) in [
            ("taken", counts.taken),
            ("taken_octets", counts.taken_octets),
            ("put", counts.put),
            ("put_octets", counts.put_octets),
            ("waited", counts.waited),
            ("full", counts.full),
            ("kicks", counts.kicks),
            ("calls", counts.calls),
            ("spared", counts.spared),
            ("again", counts.again),
        ] {
            view.set_item(name, value)?;
        }
        found.set_item(&guest.port, view)?;
    }
    Ok(found)
}
