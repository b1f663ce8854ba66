//! Conversion of all errors to Python's `EngineError(code, message)`.

use airloom_engine::medium::SettingsError;
use airloom_netns::tap::TapError;
use airloom_ports::error::Error;
use pyo3::prelude::*;

use crate::EngineError;

/// Errors of the bridge itself.
#[derive(Debug)]
pub enum Fault {
    /// An error of the engine or the ports.
    Below(Error),
    /// Settings that do not match the engine's structure.
    Settings(String),
    /// A word that is not among the permitted ones.
    Word { what: &'static str, given: String, allowed: &'static str },
    /// A call in the wrong state: `needs` names the required one.
    State { call: &'static str, needs: &'static str },
    /// The descriptor cannot be duplicated.
    Descriptor(std::io::Error),
    /// The kernel has or makes no simulated radios.
    Radios(String),
}

impl Fault {
    /// Any call after the engine panicked.
    pub const LOST: Self = Self::State { call: "this call", needs: "an engine that met no bug" };

    /// A descriptor that is not open.
    pub fn bad_descriptor() -> Self {
        Self::Descriptor(std::io::Error::from_raw_os_error(libc::EBADF))
    }

    /// The setting that is out of its range, and the text of the range.
    fn range(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Below(Error::Engine(airloom_engine::Error::Range { field, allowed, .. })) => {
                Some((field, allowed))
            }
            _ => None,
        }
    }
}

/// Codes of [`Fault`] beside those of the engine and the ports.
const CODES: [&str; 5] = ["engine.settings", "engine.word", "engine.state", "host.descriptor", "host.radios"];

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Below(error)
    }
}

impl From<SettingsError> for Fault {
    fn from(error: SettingsError) -> Self {
        Self::Below(error.into())
    }
}

impl From<airloom_engine::Error> for Fault {
    fn from(error: airloom_engine::Error) -> Self {
        Self::Below(error.into())
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        let range = fault.range();
        let (code, message) = match fault {
            Fault::Below(error) => (error.code(), error.to_string()),
            Fault::Settings(why) => (CODES[0], why),
            Fault::Word { what, given, allowed } => {
                (CODES[1], format!("{what} {given:?} is not one of {allowed}"))
            }
            Fault::State { call, needs } => (CODES[2], format!("{call} needs {needs}")),
            Fault::Descriptor(error) => (CODES[3], format!("cannot duplicate a descriptor: {error}")),
            Fault::Radios(why) => (CODES[4], format!("the radios of this machine's kernel: {why}")),
        };
        let error = EngineError::new_err((code, message));
        let Some((setting, allowed)) = range else { return error };
        let named = Python::attach(|py| {
            let value = error.value(py);
            value.setattr("setting", setting)?;
            value.setattr("allowed", allowed)
        });
        named.err().unwrap_or(error)
    }
}

/// Every code of an `EngineError`, sorted, except those of settings out of their range: these are
/// the setting's path and begin with `link.` or `switch.`.
#[pyfunction]
pub fn error_codes() -> Vec<&'static str> {
    let below = airloom_engine::Error::CODES
        .iter()
        .chain(&Error::CODES)
        .chain(&airloom_netns::Error::CODES)
        .chain(&TapError::CODES);
    let mut codes: Vec<_> = below.chain(&SettingsError::CODES).chain(&CODES).copied().collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}
