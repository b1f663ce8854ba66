//! PM QoS request that keeps idle processors out of deep sleep states, whose wake-up takes longer
//! than the processing of a frame.
//!
//! The kernel's PM QoS request (Documentation/power/pm_qos_interface.rst) is valid while the device
//! is open, so it ends with the process. In a virtual machine it decides between HLT, from which
//! the hypervisor has to wake the processor (30 to 70 us), and polling (a few us).

use std::fs::{File, OpenOptions};
use std::io::Write;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// Requests a wake-up latency of zero; None without permission.
#[must_use]
pub fn request() -> Option<File> {
    let mut device = OpenOptions::new().write(true).open(DEVICE).ok()?;
    let microseconds = 0i32;
    device.write_all(&microseconds.to_ne_bytes()).ok()?;
    Some(device)
}
