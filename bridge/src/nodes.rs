//! Namespaces of nodes for Python: created, read, and closed in batches.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Weak};

use airloom_netns::{self as netns, Counters, Error, NodeSpec, Shape, VethEnd, VethSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::EngineError;
use crate::errors::Fault;
use crate::guests::WlanDevice;
use crate::views::Named;

/// An anonymous network namespace, held by a file descriptor, and its TAPs.
#[pyclass(frozen, module = "airloom._engine")]
pub struct Namespace {
    name: String,
    inner: std::sync::RwLock<Option<netns::Namespace>>,
}

/// The engine's end of a TAP of a namespace, which closes it.
#[pyclass(frozen, module = "airloom._engine")]
pub struct Tap(Weak<OwnedFd>);

impl Tap {
    /// A share of its descriptor.
    pub fn share(&self) -> Result<Arc<OwnedFd>, Fault> {
        self.0.upgrade().ok_or_else(Fault::bad_descriptor)
    }
}

#[pymethods]
impl Tap {
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.share()?.as_raw_fd())
    }
}

fn raise(error: &Error) -> PyErr {
    EngineError::new_err((error.code(), error.to_string()))
}

impl Namespace {
    /// Runs a closure on the namespace without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&netns::Namespace) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let inner = self.inner.read().expect("no holder panics");
            inner.as_ref().map_or_else(|| Err(Error::Closed { node: self.name.clone() }), act)
        })
        .map_err(|error| raise(&error))
    }

    fn take(&self) -> Option<netns::Namespace> {
        self.inner.write().expect("no holder panics").take()
    }
}

#[pymethods]
impl Namespace {
    #[staticmethod]
    fn of_machine(name: &str) -> PyResult<Self> {
        let inner = netns::Namespace::of_machine(name).map_err(|error| raise(&error))?;
        Ok(Self { name: name.to_owned(), inner: std::sync::RwLock::new(Some(inner)) })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |namespace| Ok(namespace.descriptor()?.as_raw_fd()))
    }

    fn taps(&self, py: Python<'_>) -> PyResult<BTreeMap<String, Tap>> {
        self.with(py, |namespace| {
            let tap = |(name, fd): (&str, &Arc<OwnedFd>)| (name.to_owned(), Tap(Arc::downgrade(fd)));
            Ok(namespace.taps().map(tap).collect())
        })
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counters = self.with(py, netns::Namespace::counters)?;
        as_dict(py, counters)
    }

    fn set_up(&self, py: Python<'_>, up: bool) -> PyResult<()> {
        self.with(py, |namespace| namespace.set_up(up))
    }

    fn change(&self, py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<()> {
        let spec: NodeSpec =
            pythonize::depythonize(spec).map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.detach(|| match &mut *self.inner.write().expect("no holder panics") {
            Some(namespace) => namespace.change(spec),
            None => Err(Error::Closed { node: self.name.clone() }),
        })
        .map_err(|error| raise(&error))
    }

    fn forget_neighbours(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, netns::Namespace::forget_neighbours)
    }

    #[pyo3(signature = (interface, rate, burst, packets, overhead))]
    fn shape(
        &self,
        py: Python<'_>,
        interface: &str,
        rate: u64,
        burst: u32,
        packets: u32,
        overhead: u16,
    ) -> PyResult<()> {
        let shape = Shape { rate, burst, packets, overhead };
        self.with(py, |namespace| namespace.shape(interface, &shape))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }
}

/// Creates the namespaces of many nodes, and veth pairs between some of them; all or none.
#[pyfunction]
#[pyo3(signature = (nodes, wires = Vec::new(), radios = None))]
pub fn bring_up(
    py: Python<'_>,
    nodes: &Bound<'_, PyAny>,
    wires: Vec<(String, String, String, String)>,
    radios: Option<&WlanDevice>,
) -> PyResult<Vec<Namespace>> {
    let specs: Vec<NodeSpec> =
        pythonize::depythonize(nodes).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let wires: Vec<VethSpec> = wires
        .into_iter()
        .map(|(a, a_interface, b, b_interface)| VethSpec {
            a: VethEnd { node: a, interface: a_interface },
            b: VethEnd { node: b, interface: b_interface },
        })
        .collect();
    let radios = radios.and_then(WlanDevice::namespace);
    let made = py.detach(|| netns::bring_up(&specs, &wires, radios)).map_err(|error| raise(&error))?;
    Ok(made
        .into_iter()
        .map(|namespace| Namespace {
            name: namespace.name().to_owned(),
            inner: std::sync::RwLock::new(Some(namespace)),
        })
        .collect())
}

/// Closes many namespaces in one batch; those already closed are skipped.
#[pyfunction]
pub fn tear_down(py: Python<'_>, namespaces: Vec<PyRef<'_, Namespace>>) {
    let taken: Vec<_> = namespaces.iter().filter_map(|namespace| namespace.take()).collect();
    py.detach(|| netns::tear_down(taken));
}

/// Reads the counters of many namespaces in one thread.
#[pyfunction]
pub fn counters_of<'py>(
    py: Python<'py>,
    namespaces: Vec<PyRef<'py, Namespace>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let handles: Vec<&Namespace> = namespaces.iter().map(|namespace| &**namespace).collect();
    let counters = py.detach(|| {
        let guards: Vec<_> =
            handles.iter().map(|handle| handle.inner.read().expect("no holder panics")).collect();
        let open: Result<Vec<_>, _> = guards
            .iter()
            .zip(&handles)
            .map(|(guard, handle)| guard.as_ref().ok_or_else(|| Error::Closed { node: handle.name.clone() }))
            .collect();
        netns::counters_of(&open?)
    });
    counters.map_err(|error| raise(&error))?.into_iter().map(|one| as_dict(py, one)).collect()
}

fn as_dict(py: Python<'_>, counters: Vec<(String, Counters)>) -> PyResult<Bound<'_, PyAny>> {
    let named = counters.iter().map(|(name, counters)| (name.as_str(), counters));
    Ok(pythonize::pythonize(py, &Named(named.collect()))?)
}
