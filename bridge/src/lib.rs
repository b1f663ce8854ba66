//! The Python extension module `airloom._engine`: a thin layer on the engine's crates.

// pyo3's macros generate functions without documentation and with unsafe blocks.
#![allow(missing_docs)]

mod captures;
mod check;
mod clock;
mod convert;
mod engine;
mod errors;
mod guests;
mod media;
mod nodes;
mod received;
mod state;
mod views;
mod virtual_time;

use pyo3::prelude::*;

pyo3::create_exception!(
    airloom._engine,
    EngineError,
    pyo3::exceptions::PyException,
    "Raised with (code, message)."
);

#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::EngineError;
    #[pymodule_export]
    use super::captures::LiveCapture;
    #[pymodule_export]
    use super::check::{check_link, check_medium, check_motion, check_radio, check_switch};
    #[pymodule_export]
    use super::clock::realtime_offset;
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::errors::error_codes;
    #[pymodule_export]
    use super::guests::{Handling, IoTlb, WlanDevice, has_radios};
    #[pymodule_export]
    use super::media::{overlap, read_movements};
    #[pymodule_export]
    use super::nodes::{Namespace, Tap, bring_up, counters_of, tear_down};

    #[pymodule_export]
    use super::virtual_time::VirtualTime;

    use pyo3::prelude::*;

    /// Sets the default attributes of `EngineError`, for errors that are not a
    /// setting out of its range.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let error = module.getattr("EngineError")?;
        error.setattr("setting", module.py().None())?;
        error.setattr("allowed", module.py().None())
    }
}
