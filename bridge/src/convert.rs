//! Conversion of Python values to the types of the engine's crates.

use std::os::fd::{BorrowedFd, OwnedFd};

use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::errors::Fault;

/// Duplicates the descriptor of a TAP or socket for the engine.
pub fn duplicate(fd: i32) -> Result<OwnedFd, Fault> {
    if fd < 0 {
        return Err(Fault::Descriptor(std::io::Error::from_raw_os_error(libc::EBADF)));
    }
    // SAFETY: the descriptor is only duplicated; a number that names none is an error, not more.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(Fault::Descriptor)
}

/// Converts a dictionary to engine settings; missing keys get their defaults.
pub fn read_settings<T: DeserializeOwned>(settings: &Bound<'_, PyAny>, whose: &str) -> Result<T, Fault> {
    pythonize::depythonize(settings).map_err(|error| Fault::Settings(format!("{whose}: {error}")))
}
