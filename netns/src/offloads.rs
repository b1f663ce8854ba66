//! Offloads of interfaces: what the kernel leaves to a network device (`ethtool(8)`, and the kernel's
//! `linux/ethtool.h`).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::spec::NodeSpec;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// Scatter and gather, checksums, TCP segmentation and generic segmentation of sent frames.
const OF_SENT: [u32; 4] = [0x19, 0x17, 0x1f, 0x24];
/// Checksums and generic receive offload of received frames.
const OF_RECEIVED: [u32; 2] = [0x15, 0x2c];

/// Which offloads an interface uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Offloads {
    /// Of sent frames: checksums and segmentation.
    pub transmit: bool,
    /// Of received frames: checksums and merging.
    pub receive: bool,
}

impl Default for Offloads {
    /// All.
    fn default() -> Self {
        Self { transmit: true, receive: true }
    }
}

/// A value of a device, as `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Switches off what the interfaces of a node are not to use, in the network namespace of the calling
/// thread.
pub(crate) fn restrict(node: &NodeSpec) -> Result<(), Error> {
    let limited = |offloads: Offloads| offloads != Offloads::default();
    if !node.interfaces.iter().any(|interface| limited(interface.offloads)) {
        return Ok(());
    }
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(|source| Error::kernel(&node.name, "ethtool socket", &source.into()))?;
    for interface in &node.interfaces {
        let sent = OF_SENT.iter().filter(|_| !interface.offloads.transmit);
        let received = OF_RECEIVED.iter().filter(|_| !interface.offloads.receive);
        for &command in sent.chain(received) {
            switch_off(&socket, &interface.name, command).map_err(|source| {
                Error::kernel(&node.name, format!("offloads of {}", interface.name), &source)
            })?;
        }
    }
    Ok(())
}

/// Switches one offload off; does nothing if the device does not have it.
fn switch_off(socket: &OwnedFd, interface: &str, command: u32) -> io::Result<()> {
    let mut value = Value { command, data: 0 };
    // SAFETY: an ifreq is plain integers and a pointer, for which zero is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: SIOCETHTOOL reads and writes the request and the value, which outlive the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => Ok(()),
        _ => Err(error),
    }
}
