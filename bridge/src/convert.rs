//! Conversion of Python values to the types of the engine's crates.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::errors::Fault;
use crate::nodes::Tap;
use airloom_ports::offloads::Offloads;
use airloom_ports::tap as ports;

/// A TAP, of a node or by its descriptor.
#[derive(FromPyObject)]
pub enum TapSource<'py> {
    /// Of a node, whose descriptor the engine shares.
    OfNode(PyRef<'py, Tap>),
    /// A descriptor, which the engine duplicates.
    Descriptor(i32),
}

impl TapSource<'_> {
    /// Its port, which offers the offloads of sent frames, and of received ones.
    pub fn port(&self, complete_checksums: bool, offloads: (bool, bool)) -> Result<ports::Tap, Fault> {
        let tap = ports::Tap::from_fd(self.descriptor()?, offered(offloads))?;
        Ok(if complete_checksums { tap.completing_checksums() } else { tap })
    }

    /// Its descriptor for the engine.
    fn descriptor(&self) -> Result<Arc<OwnedFd>, Fault> {
        match self {
            Self::OfNode(tap) => tap.share(),
            Self::Descriptor(fd) => duplicate(*fd).map(Arc::new),
        }
    }
}

/// The offloads of sent frames, and of received ones.
pub fn offered((transmit, receive): (bool, bool)) -> Offloads {
    Offloads { transmit, receive }
}

/// Duplicates a descriptor for the engine.
pub fn duplicate(fd: i32) -> Result<OwnedFd, Fault> {
    if fd < 0 {
        return Err(Fault::bad_descriptor());
    }
    // SAFETY: the descriptor is only duplicated; a number that names none is an error, not more.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(Fault::Descriptor)
}

/// Converts a dictionary to engine settings; missing keys get their defaults.
pub fn read_settings<T: DeserializeOwned>(settings: &Bound<'_, PyAny>, whose: &str) -> Result<T, Fault> {
    pythonize::depythonize(settings).map_err(|error| Fault::Settings(format!("{whose}: {error}")))
}
