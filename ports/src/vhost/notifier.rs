//! Notifiers between a guest and its device: an eventfd (`kick` towards the device, `call`
//! towards the guest), or one end of a socket pair. They are created by another program, so their
//! type is checked before use.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::fstat;
use rustix::io::Errno;

use crate::sys::set_nonblocking;

/// File type of an anonymous inode, such as an eventfd.
const NO_TYPE: libc::mode_t = 0;

/// A notifier.
#[derive(Debug)]
pub struct Notifier {
    fd: OwnedFd,
    socket: bool,
}

impl Notifier {
    /// Wraps a descriptor and makes it non-blocking.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a file or a device, or the kernel's answer.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Self::of(fd, &[NO_TYPE, libc::S_IFSOCK])
    }

    /// Wraps an eventfd, which counts its notifications. A socket does not count, and the port
    /// could not notify itself by it.
    ///
    /// # Errors
    /// As [`Notifier::new`], and for a socket.
    pub fn eventfd(fd: OwnedFd) -> io::Result<Self> {
        Self::of(fd, &[NO_TYPE])
    }

    fn of(fd: OwnedFd, kinds: &[libc::mode_t]) -> io::Result<Self> {
        let kind = fstat(&fd)?.st_mode & libc::S_IFMT;
        if !kinds.contains(&kind) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set_nonblocking(&fd)?;
        Ok(Self { fd, socket: kind == libc::S_IFSOCK })
    }

    /// True if the peer may miss a notification. A socket wakes User Mode Linux by a signal: a
    /// kernel that is about to sleep records the signal but still goes to sleep.
    #[must_use]
    pub fn may_be_missed(&self) -> bool {
        self.socket
    }

    /// Notifies the peer; returns false if the peer has closed its end. A pending
    /// notification is sufficient.
    #[must_use]
    pub fn notify(&self) -> bool {
        // Signals, SIGPIPE among them, are blocked in the loop.
        let put = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        !matches!(put, Err(error) if error != Errno::AGAIN)
    }

    /// Returns the number of notifications since the last call; for an eventfd.
    ///
    /// # Errors
    /// If the peer has closed its end, or the descriptor is not a notifier.
    pub fn take_count(&self) -> io::Result<u64> {
        let mut count = [0u8; 8];
        match rustix::io::read(&self.fd, &mut count) {
            Ok(got) if got == count.len() => Ok(u64::from_ne_bytes(count)),
            Ok(_) => Err(io::ErrorKind::InvalidInput.into()),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsRawFd for Notifier {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
