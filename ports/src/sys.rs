//! System calls for which rustix has no safe function, or costs more.

use std::io;
use std::os::fd::{AsFd, RawFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The result of a system call, with errno as the error.
pub(crate) fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a descriptor non-blocking.
pub(crate) fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?)
}

/// `readv` without the C library's support of thread cancellation, which costs a twentieth of
/// the time of a small frame.
///
/// # Safety
/// The pieces must be writable memory.
#[inline]
pub(crate) unsafe fn read_pieces(fd: RawFd, pieces: &mut [libc::iovec]) -> io::Result<usize> {
    // SAFETY: the slice is as long as it says; the caller vouches for what it refers to.
    let got = unsafe { libc::syscall(libc::SYS_readv, fd, pieces.as_mut_ptr(), pieces.len()) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// `writev`, likewise.
///
/// # Safety
/// The pieces must be readable memory.
#[inline]
pub(crate) unsafe fn write_pieces(fd: RawFd, pieces: &[libc::iovec]) -> io::Result<usize> {
    // SAFETY: the slice is as long as it says; the caller vouches for what it refers to.
    let put = unsafe { libc::syscall(libc::SYS_writev, fd, pieces.as_ptr(), pieces.len()) };
    usize::try_from(put).map_err(|_| io::Error::last_os_error())
}
