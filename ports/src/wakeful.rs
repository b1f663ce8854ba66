//! Keeps idle processors from sleeping so deeply that waking them takes longer than a frame.
//!
//! The kernel's latency request (Documentation/power/pm_qos_interface.rst) holds while the device is
//! open, so it ends with the run however that ends. In a virtual machine the difference is
//! between a halt, which the hypervisor has to end (30 to 70 us), and polling (a few).

use std::fs::{File, OpenOptions};
use std::io::Write;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// Asks for processors that wake at once; none where that takes rights that we do not have.
#[must_use]
pub fn request() -> Option<File> {
    let mut device = OpenOptions::new().write(true).open(DEVICE).ok()?;
    let microseconds = 0i32;
    device.write_all(&microseconds.to_ne_bytes()).ok()?;
    Some(device)
}
