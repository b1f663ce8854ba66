//! Virtual time for Python: the calendar of an engine, which grants time to guests.

use std::num::NonZeroU64;
use std::time::Duration;

use airloom_ports::virtual_time::{Calendar, Pause, Prices, Processor, Scheduler, Turns};
use airloom_ports::world::seen::Seen;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::duplicate;
use crate::engine::Engine;
use crate::errors::Fault;

/// A frame at a port: engine time in nanoseconds, the port, whether its node has sent it, octets.
type Passed = (u64, String, bool, u64);

/// The calendar of an engine in virtual time.
#[pyclass(frozen, module = "airloom._engine")]
pub struct VirtualTime(Py<Engine>);

#[pymethods]
impl VirtualTime {
    #[new]
    #[pyo3(signature = (engine, plain = false, patience = 60.0))]
    fn new(py: Python<'_>, engine: Py<Engine>, plain: bool, patience: f64) -> PyResult<Self> {
        engine.get().virtualize(py, |calendar| {
            calendar.plain = plain;
            calendar.patience = seconds(patience);
        })?;
        Ok(Self(engine))
    }

    fn add_guest(&self, py: Python<'_>, name: String, time: i32, console: i32, wire: i32) -> PyResult<usize> {
        let (time, console, wire) = (duplicate(time)?, duplicate(console)?, duplicate(wire)?);
        self.on(py, "add_guest", move |calendar| Ok(calendar.add_guest(&name, time, console, wire)?))
    }

    fn take_turns(
        &self,
        py: Python<'_>,
        guests: Vec<usize>,
        quantum: u64,
        phase: u64,
        spans: Vec<(u64, Option<u64>)>,
    ) -> PyResult<()> {
        self.on(py, "take_turns", move |calendar| {
            calendar.take_turns(Turns { guests, quantum, phase, spans });
            Ok(())
        })
    }

    fn pause(&self, py: Python<'_>, guest: usize, paused: bool) -> PyResult<()> {
        self.on(py, "pause", move |calendar| Ok(calendar.pause(guest, paused)?))
    }

    #[pyo3(signature = (name, guests, weights, *, interrupt, frame, copy_rate, context_switch, scheduler, quantum))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn add_processor(
        &self,
        py: Python<'_>,
        name: String,
        guests: Vec<usize>,
        weights: Vec<NonZeroU64>,
        interrupt: u64,
        frame: u64,
        copy_rate: Option<NonZeroU64>,
        context_switch: u64,
        scheduler: &str,
        quantum: u64,
    ) -> PyResult<()> {
        let prices = Prices { interrupt, frame, copy_rate, context_switch };
        let scheduler = match scheduler {
            "round-robin" => Scheduler::RoundRobin,
            "fair" => Scheduler::Fair,
            "priority" => Scheduler::Priority,
            other => return Err(PyValueError::new_err(format!("there is no scheduler {other:?}"))),
        };
        let processor = Processor { name, guests, prices, scheduler, quantum, weights };
        self.on(py, "add_processor", move |calendar| {
            calendar.add_processor(processor);
            Ok(())
        })
    }

    fn begin(&self, py: Python<'_>) -> PyResult<u64> {
        self.on(py, "begin", |calendar| {
            calendar.begin()?;
            Ok(calendar.now())
        })
    }

    fn run(
        &self,
        py: Python<'_>,
        until: u64,
        most: f64,
    ) -> PyResult<(&'static str, Vec<usize>, Vec<Passed>)> {
        self.on(py, "run", move |calendar| {
            Ok(match calendar.run(until, seconds(most))? {
                Pause::Reached => ("reached", Vec::new(), Vec::new()),
                Pause::Spoke(guests) => ("spoke", guests, Vec::new()),
                Pause::Sample(numbers) => ("sample", numbers, Vec::new()),
                Pause::Frames(seen) => {
                    let ports = &calendar.world.names.ports;
                    let passed = |one: &Seen| {
                        (one.at.nanos(), ports.name(one.port.index()).to_owned(), one.sent, one.octets)
                    };
                    ("frames", Vec::new(), seen.iter().map(passed).collect())
                }
                Pause::Ended => ("ended", Vec::new(), Vec::new()),
                Pause::Later => ("later", Vec::new(), Vec::new()),
            })
        })
    }

    fn stop_at_frames(&self, py: Python<'_>, stops: bool) -> PyResult<()> {
        self.on(py, "stop_at_frames", move |calendar| {
            calendar.stop_at_frames(stops);
            Ok(())
        })
    }

    fn every(&self, py: Python<'_>, period: u64, skips: bool) -> PyResult<usize> {
        self.on(py, "every", move |calendar| Ok(calendar.every(period, skips)))
    }

    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        self.on(py, "now", |calendar| Ok(calendar.now()))
    }

    fn gone(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.on(py, "gone", |calendar| Ok(calendar.gone()))
    }

    fn spun<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let spun = self.on(py, "spun", |calendar| Ok(calendar.spun()))?;
        Ok(pythonize::pythonize(py, &spun)?)
    }

    fn worked<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let worked = self.on(py, "worked", |calendar| Ok(calendar.worked()))?;
        Ok(pythonize::pythonize(py, &worked)?)
    }

    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counts = self.on(py, "counts", |calendar| Ok(calendar.counts))?;
        Ok(pythonize::pythonize(py, &counts)?)
    }
}

impl VirtualTime {
    fn on<T: Send>(
        &self,
        py: Python<'_>,
        call: &'static str,
        act: impl FnOnce(&mut Calendar) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        self.0.get().on_calendar(py, call, act)
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 1e9))
}
