//! Creates TAP interfaces, whose other ends become ports of an engine.
//!
//! A device is *persistent*: closing its descriptor then does not wait for the kernel, and the
//! interface is removed with its namespace. Frames have a 12-octet virtio-net header. The engine's
//! port sets the offloads when it takes ownership of the descriptor.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const TUNSETPERSIST: libc::c_ulong = 0x4004_54cb;
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;

/// Octets of the virtio-net header in front of each frame.
const HEADER_OCTETS: libc::c_int = 12;

/// Length of the kernel's queue to the engine, in frames. The kernel's default is 500. At 300,000
/// frames/s this bridges 7 ms in which the engine does not run; it costs 16 kB per TAP. It is set
/// by rtnetlink, because the ioctl is not permitted in user namespaces.
pub const RING_FRAMES: u32 = 2_048;

/// Why a TAP could not be created.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The TUN/TAP driver is not available.
    #[error("cannot open /dev/net/tun: {0}")]
    Device(#[source] io::Error),
    /// The kernel refused to create the interface.
    #[error("cannot make the TAP interface {name}: {what}: {source}")]
    Create {
        /// Name of the interface.
        name: String,
        /// The step that failed.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl TapError {
    /// Every code that [`TapError::code`] can return.
    pub const CODES: [&'static str; 2] = ["host.tun-device", "host.tap-create"];

    /// The error's stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Device(_) => Self::CODES[0],
            Self::Create { .. } => Self::CODES[1],
        }
    }
}

/// Creates the interface `name` in the network namespace of the calling thread, with an `mtu` in
/// octets, down and without an address. It exists until it or its namespace is deleted. Returns the
/// descriptor of its other end.
///
/// # Errors
/// [`TapError::Device`] without `/dev/net/tun`, [`TapError::Create`] if the kernel refuses.
pub fn create(name: &str, mtu: u32) -> Result<OwnedFd, TapError> {
    let fail = |what, source| TapError::Create { name: name.to_owned(), what, source };
    let mut request =
        interface_request(name).ok_or_else(|| fail("name", io::Error::from_raw_os_error(libc::EINVAL)))?;
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path is a constant C string.
    let fd = unsafe { libc::open(c"/dev/net/tun".as_ptr(), flags) };
    check(fd).map_err(TapError::Device)?;
    // SAFETY: the descriptor was just opened and has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    #[allow(clippy::cast_possible_truncation)] // the flags fit, the kernel's field is short
    let kind = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    request.ifr_ifru.ifru_flags = kind;
    // SAFETY: the request outlives the call and has the layout that TUNSETIFF reads.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETIFF, &raw mut request) })
        .map_err(|source| fail("TUNSETIFF", source))?;
    let octets = HEADER_OCTETS;
    // SAFETY: TUNSETVNETHDRSZ reads one int that outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETVNETHDRSZ, &raw const octets) })
        .map_err(|source| fail("TUNSETVNETHDRSZ", source))?;
    // SAFETY: TUNSETPERSIST takes its argument by value.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETPERSIST, 1 as libc::c_ulong) })
        .map_err(|source| fail("TUNSETPERSIST", source))?;
    set_mtu(request, mtu).map_err(|(what, source)| fail(what, source))?;
    Ok(fd)
}

/// Sets the MTU of the interface that the request names.
fn set_mtu(mut request: libc::ifreq, mtu: u32) -> Result<(), (&'static str, io::Error)> {
    // SAFETY: no pointers are passed.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(socket).map_err(|source| ("socket", source))?;
    // SAFETY: the socket was just made and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    request.ifr_ifru.ifru_mtu = i32::try_from(mtu).unwrap_or(i32::MAX);
    // SAFETY: the request outlives the call and has the layout that SIOCSIFMTU reads.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU, &raw const request) })
        .map_err(|source| ("SIOCSIFMTU", source))
}

/// An `ifreq` with the name filled in; None if the name is too long or not a C string.
fn interface_request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: an ifreq is plain integers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = CString::new(name).ok()?;
    let octets = name.as_bytes_with_nul();
    if octets.len() > request.ifr_name.len() {
        return None;
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(octets) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Some(request)
}

/// The result of a system call, with errno as the error.
fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
