//! Descriptors by which a guest and its device wake each other: an eventfd, or one end of a pair of
//! sockets. They come from another program, so they are looked at before they are used.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys::check;

/// The type of a file that is only a descriptor, as an eventfd is.
const NO_TYPE: libc::mode_t = 0;

/// One of them.
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
    socket: bool,
}

impl Bell {
    /// Takes a descriptor for one; it will never block.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a file or a device, or the kernel's answer.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Self::of(fd, &[NO_TYPE, libc::S_IFSOCK])
    }

    /// Takes a descriptor for one that is to be heard: an eventfd. Of a socket it could not be said how
    /// often it rang, nor could the port ring it for itself.
    ///
    /// # Errors
    /// As [`Bell::new`], and for a socket.
    pub fn counting(fd: OwnedFd) -> io::Result<Self> {
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
        // SAFETY: F_GETFL and F_SETFL touch no memory of ours.
        unsafe {
            let status = libc::fcntl(raw, libc::F_GETFL);
            check(status)?;
            check(libc::fcntl(raw, libc::F_SETFL, status | libc::O_NONBLOCK))?;
        }
        Ok(Self { fd, socket: kind == libc::S_IFSOCK })
    }

    /// True if whoever it is for may sleep on although it rang. A socket is how User Mode Linux is woken: by a
    /// signal, and a kernel that is just going to sleep notes it and sleeps all the same, until the next one.
    #[must_use]
    pub fn may_be_slept_through(&self) -> bool {
        self.socket
    }

    /// Rings; false if nobody can hear it any more. One that was not heard yet has rung enough.
    #[must_use]
    pub fn ring(&self) -> bool {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight octets that outlive the call. Signals, SIGPIPE among them, are blocked in the loop.
        let put = unsafe { libc::write(self.fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        put >= 0 || io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    /// How often it rang since the last call; for an eventfd.
    ///
    /// # Errors
    /// If it cannot ring any more, or never could.
    pub fn heard(&self) -> io::Result<u64> {
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

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
