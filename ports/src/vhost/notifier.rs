//! Notifiers, by which a guest and its device wake each other: an eventfd (`kick` towards the device,
//! `call` towards the guest), or one end of a pair of sockets. They come from another program, so their
//! type is checked before they are used.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys::{check, set_nonblocking};

/// The type of a file that is only a descriptor, as an eventfd is.
const NO_TYPE: libc::mode_t = 0;

/// A notifier.
#[derive(Debug)]
pub struct Notifier {
    fd: OwnedFd,
    socket: bool,
}

impl Notifier {
    /// Takes a descriptor for one; it will never block.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a file or a device, or the kernel's answer.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Self::of(fd, &[NO_TYPE, libc::S_IFSOCK])
    }

    /// Takes a descriptor for one whose notifications are counted: an eventfd. A socket does not count,
    /// and the port could not notify itself by it.
    ///
    /// # Errors
    /// As [`Notifier::new`], and for a socket.
    pub fn eventfd(fd: OwnedFd) -> io::Result<Self> {
        Self::of(fd, &[NO_TYPE])
    }

    fn of(fd: OwnedFd, kinds: &[libc::mode_t]) -> io::Result<Self> {
        let raw = fd.as_raw_fd();
        // SAFETY: a stat is plain integers, for which zero is a value; the call fills it.
        let kind = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            check(libc::fstat(raw, &raw mut stat))?;
            stat.st_mode & libc::S_IFMT
        };
        if !kinds.contains(&kind) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set_nonblocking(raw)?;
        Ok(Self { fd, socket: kind == libc::S_IFSOCK })
    }

    /// True if the peer may sleep on although it was notified. User Mode Linux is woken by a socket, that is
    /// by a signal: a kernel that is just going to sleep notes the signal and sleeps all the same.
    #[must_use]
    pub fn may_be_missed(&self) -> bool {
        self.socket
    }

    /// Notifies the peer; false if the peer has closed its end. A notification that was not taken yet is enough.
    #[must_use]
    pub fn notify(&self) -> bool {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight octets that outlive the call. Signals, SIGPIPE among them, are blocked in the loop.
        let put = unsafe { libc::write(self.fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        put >= 0 || io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    /// Notifications since the last call; for an eventfd.
    ///
    /// # Errors
    /// If the peer has closed its end, or the descriptor is no notifier.
    pub fn take_count(&self) -> io::Result<u64> {
        let mut count = [0u8; 8];
        // SAFETY: eight octets that outlive the call.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        match usize::try_from(got) {
            Ok(got) if got == count.len() => Ok(u64::from_ne_bytes(count)),
            Ok(_) => Err(io::ErrorKind::InvalidInput.into()),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }
}

impl AsRawFd for Notifier {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
