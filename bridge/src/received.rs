//! Frames received by memory ports, converted for Python.

use airloom_ports::memory::{self, Inbox};
use airloom_ports::world::World;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A frame for Python: its port's name, its arrival time in nanoseconds, its octets.
pub type Frame<'py> = (String, u64, Bound<'py, PyBytes>);

/// Frames received by memory ports, taken on the engine's thread.
pub struct Received(Vec<(String, u64, Box<[u8]>)>);

impl Received {
    /// Takes the queued frames.
    pub fn of(world: &World, inbox: &Inbox) -> Self {
        let named = |frame: memory::Received| {
            (world.names.ports.name(frame.port.index()).to_owned(), frame.at.nanos(), frame.octets)
        };
        Self(inbox.take().into_iter().map(named).collect())
    }

    /// Converts the octets to Python objects.
    pub fn frames(self, py: Python<'_>) -> Vec<Frame<'_>> {
        self.0.into_iter().map(|(port, at, octets)| (port, at, PyBytes::new(py, &octets))).collect()
    }
}
