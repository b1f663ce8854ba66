//! Creates TAP interfaces, whose other ends become ports of an engine.
//!
//! A device is *persistent*: closing its descriptor then does not wait for the kernel, and the
//! interface is removed with its namespace. Frames have a 12-octet virtio-net header. The engine's
//! port sets the offloads when it takes ownership of the descriptor.

use std::ffi::{CString, c_void};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Ioctl, IoctlOutput, Opcode, Setter, Updater, ioctl};

const TUNSETPERSIST: Opcode = 0x4004_54cb;
const TUNSETIFF: Opcode = 0x4004_54ca;
const TUNSETVNETHDRSZ: Opcode = 0x4004_54d8;
const TUNGETIFF: Opcode = 0x8004_54d2;
const SIOCGSKNS: Opcode = 0x894c;

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

/// Creates the interface `name` in the network namespace of the calling thread, down and without an
/// address. It exists until it or its namespace is deleted. Returns the descriptor of its other end.
///
/// # Errors
/// [`TapError::Device`] without `/dev/net/tun`, [`TapError::Create`] if the kernel refuses.
pub fn create(name: &str) -> Result<OwnedFd, TapError> {
    let fail = |what, source: Errno| TapError::Create { name: name.to_owned(), what, source: source.into() };
    let mut request = interface_request(name).ok_or_else(|| fail("name", Errno::INVAL))?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = open(c"/dev/net/tun", flags, Mode::empty()).map_err(|source| TapError::Device(source.into()))?;
    #[allow(clippy::cast_possible_truncation)] // the flags fit, the kernel's field is short
    let kind = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    request.ifr_ifru.ifru_flags = kind;
    // SAFETY: the request has the layout that TUNSETIFF reads and fills.
    unsafe { ioctl(&fd, Updater::<TUNSETIFF, _>::new(&mut request)) }
        .map_err(|source| fail("TUNSETIFF", source))?;
    // SAFETY: TUNSETVNETHDRSZ reads one int.
    unsafe { ioctl(&fd, Setter::<TUNSETVNETHDRSZ, _>::new(HEADER_OCTETS)) }
        .map_err(|source| fail("TUNSETVNETHDRSZ", source))?;
    // SAFETY: TUNSETPERSIST takes its argument by value.
    unsafe { ioctl(&fd, IntegerSetter::<TUNSETPERSIST>::new_usize(1)) }
        .map_err(|source| fail("TUNSETPERSIST", source))?;
    Ok(fd)
}

/// The network namespace that a TAP was created in, which exists at least as long as its
/// descriptor.
///
/// # Errors
/// If the kernel refuses: the namespace belongs to another user namespace.
pub fn namespace_of(tap: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: SIOCGSKNS takes no argument and returns a descriptor.
    Ok(unsafe { ioctl(tap, NamespaceOf) }?)
}

/// The present name of a TAP's interface.
///
/// # Errors
/// If the interface is gone.
pub fn name_of(tap: impl AsFd) -> io::Result<String> {
    // SAFETY: an ifreq is plain integers, for which zero is a value; it has the layout that TUNGETIFF
    // fills.
    let request = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        ioctl(tap, Updater::<TUNGETIFF, _>::new(&mut request))?;
        request
    };
    let octets = request.ifr_name.iter().map(|octet| octet.to_ne_bytes()[0]).take_while(|octet| *octet != 0);
    Ok(String::from_utf8_lossy(&octets.collect::<Vec<u8>>()).into_owned())
}

/// The request SIOCGSKNS.
struct NamespaceOf;

// SAFETY: the request passes no pointer, and its result is a new descriptor without an owner.
unsafe impl Ioctl for NamespaceOf {
    type Output = OwnedFd;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        SIOCGSKNS
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(descriptor: IoctlOutput, _: *mut c_void) -> rustix::io::Result<OwnedFd> {
        // SAFETY: the descriptor is new and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
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
