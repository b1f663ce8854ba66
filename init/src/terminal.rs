//! Terminals at both ends of a guest's channel: the caller's, which is set to raw mode, and one in
//! the guest, which the program uses.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::system::check;

/// A terminal in raw mode until this is dropped.
#[derive(Debug)]
pub struct Borrowed {
    fd: OwnedFd,
    before: libc::termios,
    size: [u16; 2],
}

impl Borrowed {
    /// Sets a terminal to raw mode.
    pub fn new(fd: &OwnedFd) -> io::Result<Self> {
        let fd = fd.try_clone()?;
        let before = raw(fd.as_raw_fd())?;
        let size = size_of(fd.as_raw_fd()).unwrap_or([24, 80]);
        Ok(Self { fd, before, size })
    }

    /// Rows and columns.
    pub fn size(&self) -> [u16; 2] {
        self.size
    }

    /// Rows and columns, if they have changed since the last call.
    pub fn new_size(&mut self) -> Option<[u16; 2]> {
        let now = size_of(self.fd.as_raw_fd()).filter(|size| *size != self.size)?;
        self.size = now;
        Some(now)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: the settings outlive the call. A terminal that has gone needs none.
        unsafe { libc::tcsetattr(self.fd.as_raw_fd(), libc::TCSANOW, &raw const self.before) };
    }
}

/// Sets a terminal to raw mode; returns its previous settings.
pub fn raw(fd: RawFd) -> io::Result<libc::termios> {
    // SAFETY: termios is plain integers; the buffers outlive the calls.
    unsafe {
        let mut before: libc::termios = std::mem::zeroed();
        check(libc::tcgetattr(fd, &raw mut before))?;
        let mut settings = before;
        libc::cfmakeraw(&raw mut settings);
        check(libc::tcsetattr(fd, libc::TCSANOW, &raw const settings))?;
        Ok(before)
    }
}

/// Opens a new terminal: the master side and the program's side.
pub fn open(size: [u16; 2]) -> io::Result<(OwnedFd, OwnedFd)> {
    let own = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the string is a constant; the numbers are places that outlive the calls; each
    // descriptor is new and has no other owner.
    unsafe {
        let shown = check(libc::open(c"/dev/ptmx".as_ptr(), own))?;
        let shown = OwnedFd::from_raw_fd(i32::try_from(shown).map_err(io::Error::other)?);
        let unlocked: libc::c_int = 0;
        check(libc::ioctl(shown.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked))?;
        let program = check(libc::ioctl(shown.as_raw_fd(), libc::TIOCGPTPEER, own))?;
        let program = OwnedFd::from_raw_fd(i32::try_from(program).map_err(io::Error::other)?);
        set_size(&shown, size)?;
        Ok((shown, program))
    }
}

/// Sets the size of a terminal: rows and columns.
pub fn set_size(fd: &OwnedFd, [rows, columns]: [u16; 2]) -> io::Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the size outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }).map(drop)
}

fn size_of(fd: RawFd) -> Option<[u16; 2]> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the buffer outlives the call.
    check(unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) }).ok()?;
    Some([size.ws_row, size.ws_col])
}
