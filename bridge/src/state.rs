//! What owns the engine's world in each state, and how a call reaches it there.

use std::sync::MutexGuard;

use airloom_ports::error::Error;
use airloom_ports::port::Port;
use airloom_ports::runtime::background::Pending;
use airloom_ports::runtime::driver::{Driven, Driver};
use airloom_ports::virtual_time::Calendar;
use airloom_ports::world::World;
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::errors::Fault;

pub enum State {
    /// Being built, or stepped.
    Still(Box<World>),
    /// In virtual time, before its end.
    Virtual(Box<Calendar>),
    /// Driven by the wall clock.
    Running(Driver),
    /// Stopped; the driven world can be read.
    Stopped(Box<Driven>),
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
            State::Virtual(calendar) => {
                calendar.catch_up_engine()?;
                let done = act(&mut calendar.world)?;
                calendar.catch_up_engine()?;
                Ok(done)
            }
            State::Running(driver) => Ok(driver.ask(|driven| act(&mut driven.world))??),
            State::Stopped(_) | State::Lost => {
                Err(Fault::State { call, needs: "an engine that is not stopped" })
            }
        })
        .map_err(PyErr::from)
    }

    /// Adds a port, also while the loop runs.
    pub fn add(&self, py: Python<'_>, name: String, transit: bool, port: Box<dyn Port>) -> PyResult<()> {
        py.detach(|| match &mut *self.state() {
            State::Still(world) => Ok(world.add(&name, transit, port).map(|_| ())?),
            State::Virtual(calendar) => Ok(calendar.world.add(&name, transit, port).map(|_| ())?),
            State::Running(driver) => Ok(driver.ask(move |driven| {
                let port = driven.world.add(&name, transit, port)?;
                driven.watch(port)
            })??),
            State::Stopped(_) | State::Lost => {
                Err(Fault::State { call: "add", needs: "an engine that is not stopped" })
            }
        })
        .map_err(PyErr::from)
    }

    /// Adds a port, in virtual time as a device of a guest.
    pub fn add_of(
        &self,
        py: Python<'_>,
        name: String,
        transit: bool,
        port: Box<dyn Port>,
        guest: Option<usize>,
    ) -> PyResult<()> {
        match guest {
            None => self.add(py, name, transit, port),
            Some(guest) => self
                .on_calendar(py, "this", move |calendar| Ok(calendar.add_port(&name, transit, port, guest)?)),
        }
    }

    /// Puts the world into virtual time, set up by a closure.
    pub fn virtualize(&self, py: Python<'_>, set_up: impl FnOnce(&mut Calendar) + Send) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.state();
            match std::mem::replace(&mut *state, State::Lost) {
                State::Still(world) => {
                    let mut calendar = Box::new(Calendar::new(*world));
                    set_up(&mut calendar);
                    *state = State::Virtual(calendar);
                    Ok(())
                }
                other => {
                    *state = other;
                    Err(Fault::State { call: "virtual time", needs: "an engine that has not started" })
                }
            }
        })
        .map_err(PyErr::from)
    }

    /// Runs a closure on the calendar.
    pub fn on_calendar<T: Send>(
        &self,
        py: Python<'_>,
        call: &'static str,
        act: impl FnOnce(&mut Calendar) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        py.detach(|| match &mut *self.state() {
            State::Virtual(calendar) => act(calendar),
            _ => Err(Fault::State { call, needs: "an engine in virtual time" }),
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
                State::Virtual(calendar) => {
                    let id = calendar.world.names.ports.id(&name)?;
                    calendar.world.exchange(id, port)
                }
                State::Running(driver) => driver.ask(move |driven| {
                    let id = driven.world.names.ports.id(&name)?;
                    driven.exchange(id, port)
                })??,
                State::Stopped(_) | State::Lost => {
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
        driven: impl FnOnce(&mut Driven) -> T + Send + 'static,
    ) -> PyResult<T> {
        py.detach(|| match &mut *self.state() {
            State::Still(world) => Ok(still(world)),
            State::Virtual(calendar) => Ok(still(&mut calendar.world)),
            State::Running(driver) => Ok(driver.ask(driven)?),
            State::Stopped(ended) => Ok(driven(ended)),
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
        let found = self.read(py, look, move |driven| look(&mut driven.world))?;
        Ok(found.map_err(Fault::from)?)
    }
}
