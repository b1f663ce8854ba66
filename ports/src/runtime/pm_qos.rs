//! The power-management request that keeps idle processors out of deep sleep states, from which a wake
//! takes longer than a frame.
//!
//! The kernel's PM QoS request (Documentation/power/pm_qos_interface.rst) holds while the device is
//! open, so it ends with the process. In a virtual machine the difference is
//! between a halt, which the hypervisor has to end (30 to 70 us), and polling (a few).

use std::fs::{File, OpenOptions};
use std::io::Write;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// Requests a wake latency of zero; none without the right to.
#[must_use]
pub fn request() -> Option<File> {
    let mut device = OpenOptions::new().write(true).open(DEVICE).ok()?;
    let microseconds = 0i32;
    device.write_all(&microseconds.to_ne_bytes()).ok()?;
    Some(device)
}
