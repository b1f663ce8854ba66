//! A capture that a reader follows while the engine runs, for Python.

use std::collections::BTreeMap;

use airloom_ports::capture::{Account, Capture, Choice};
use airloom_ports::error::Error;
use airloom_ports::filter::{Filter, Instruction};
use pyo3::prelude::*;

use crate::convert::duplicate;
use crate::engine::Engine;
use crate::errors::Fault;
use crate::views::CaptureView;

/// Filters as `struct bpf_insn` has their instructions, by link type.
type Programs = BTreeMap<u16, Vec<(u16, u8, u8, u32)>>;

/// A capture of an engine that is written to a descriptor.
#[pyclass(frozen, module = "airloom._engine")]
pub struct LiveCapture {
    engine: Py<Engine>,
    number: u32,
}

#[pymethods]
impl LiveCapture {
    #[new]
    #[pyo3(signature = (engine, descriptor, ports = None, *, snap = None, filters = None))]
    fn new(
        py: Python<'_>,
        engine: Py<Engine>,
        descriptor: i32,
        ports: Option<Vec<String>>,
        snap: Option<u32>,
        filters: Option<Programs>,
    ) -> PyResult<Self> {
        let wanted = ports.map(|names| names.into_iter().collect());
        let filters = filters.map(checked).transpose()?;
        let choice = Choice { wanted, snap, apart: false, filters };
        // Not on the engine's thread, which would be late.
        let capture = py.detach(|| Ok::<_, Fault>(Capture::stream(duplicate(descriptor)?, choice)?))?;
        let number = engine.get().act(py, "a capture", move |world| world.begin_capture(capture))?;
        Ok(Self { engine, number })
    }

    fn push<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let number = self.number;
        let account = self.engine.get().read(
            py,
            move |world| world.push_capture(number),
            move |driven| driven.world.push_capture(number),
        )?;
        self.view(py, account)
    }

    fn end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let number = self.number;
        let taken = self.engine.get().read(
            py,
            move |world| world.take_capture(number),
            move |driven| driven.world.take_capture(number),
        )?;
        // Not on the engine's thread: the reader has some time.
        let account = py.detach(|| taken.map(|capture| capture.account().0));
        let kept = self.engine.get().read(
            py,
            move |world| world.captures.keep(number, account),
            move |driven| driven.world.captures.keep(number, account),
        )?;
        self.view(py, kept)
    }
}

fn checked(programs: Programs) -> Result<BTreeMap<u16, Filter>, Fault> {
    let instruction = |(code, holds, fails, k)| Instruction { code, holds, fails, k };
    let filter = |program: Vec<_>| Filter::new(program.into_iter().map(instruction).collect());
    programs.into_iter().map(|(link_type, program)| Ok((link_type, filter(program)?))).collect()
}

impl LiveCapture {
    fn view<'py>(&self, py: Python<'py>, account: Option<Account>) -> PyResult<Bound<'py, PyAny>> {
        let unknown = || Fault::Below(Error::Unknown { kind: "capture", name: self.number.to_string() });
        let (counts, failed) = account.ok_or_else(unknown)?;
        CaptureView::of(counts, failed).view(py)
    }
}
