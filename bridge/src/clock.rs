//! The machine's clocks, as the engine reads them.

use airloom_ports::runtime::wall_clock;
use pyo3::prelude::*;

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` in nanoseconds, at present.
#[pyfunction]
pub fn realtime_offset() -> i64 {
    wall_clock::realtime_offset()
}
