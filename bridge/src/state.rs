//! What owns the engine's world in each state, and how a call reaches it there.

use std::sync::MutexGuard;

use airloom_ports::capture::Counts;
use airloom_ports::error::Error;
use airloom_ports::port::Port;
use airloom_ports::runtime::background::Pending;
use airloom_ports::runtime::driver::{Driven, Driver};
use airloom_ports::world::World;
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::errors::Fault;

pub enum State {
    /// Being built, or stepped.
    Still(Box<World>),
    /// Driven by the wall clock.
    Running(Driver),
    /// Stopped; the driven world can be read.
    Stopped(Box<Driven>, Option<(Counts, bool)>),
    /// Lost after a panic.
    Lost,
}

impl Engine {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Runs a closure on the world, on the thread that owns it, and registers a port that the
    /// closure created with the loop.
    pub fn act<T: Send + 'static>(
        &self,
        py: Python<'_>,
        call: &'static str,
        act: impl FnOnce(&mut World) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        py.detach(|| match &mut *self.state() {
            State::Still(world) => Ok(act(world)?),
            State::Running(driver) => Ok(driver.ask(|driven| act(&mut driven.world))??),
            State::Stopped(..) | State::Lost => {
                Err(Fault::State { call, needs: "an engine that is not stopped" })
            }
        })
        .map_err(PyErr::from)
    }

    /// Adds a port, also while the loop runs.
    pub fn add(&self, py: Python<'_>, name: String, transit: bool, port: Box<dyn Port>) -> PyResult<()> {
        py.detach(|| match &mut *self.state() {
            State::Still(world) => Ok(world.add(&name, transit, port).map(|_| ())?),
            State::Running(driver) => Ok(driver.ask(move |driven| {
                let port = driven.world.add(&name, transit, port)?;
                driven.watch(port)
            })??),
            State::Stopped(..) | State::Lost => {
                Err(Fault::State { call: "add", needs: "an engine that is not stopped" })
            }
        })
        .map_err(PyErr::from)
    }

    /// Replaces a port.
    pub fn exchange(&self, py: Python<'_>, name: String, port: Box<dyn Port>) -> PyResult<()> {
        py.detach(|| {
            let closing = match &mut *self.state() {
                State::Still(world) => {
                    let id = world.names.ports.id(&name)?;
                    world.exchange(id, port)
                }
                State::Running(driver) => driver.ask(move |driven| {
                    let id = driven.world.names.ports.id(&name)?;
                    driven.exchange(id, port)
                })??,
                State::Stopped(..) | State::Lost => {
                    return Err(Fault::State { call: "this", needs: "an engine that is not stopped" });
                }
            };
            // The old interface is gone only after the last use of its descriptor.
            closing.into_iter().for_each(Pending::wait);
            Ok(())
        })
        .map_err(PyErr::from)
    }

    /// Reads from the world or its driver, in any state.
    pub fn read<T: Send + 'static>(
        &self,
        py: Python<'_>,
        still: impl FnOnce(&mut World) -> T + Send,
        driven: impl FnOnce(&mut Driven, Option<&(Counts, bool)>) -> T + Send + 'static,
    ) -> PyResult<T> {
        py.detach(|| match &mut *self.state() {
            State::Still(world) => Ok(still(world)),
            State::Running(driver) => Ok(driver.ask(|now| driven(now, None))?),
            State::Stopped(ended, capture) => Ok(driven(ended, capture.as_ref())),
            State::Lost => Err(Fault::LOST),
        })
        .map_err(PyErr::from)
    }

    /// Reads what only the world knows, in any state.
    pub fn look<T: Send + 'static>(
        &self,
        py: Python<'_>,
        look: fn(&mut World) -> Result<T, Error>,
    ) -> PyResult<T> {
        let found = self.read(py, look, move |driven, _| look(&mut driven.world))?;
        Ok(found.map_err(Fault::from)?)
    }
}
