//! System calls for which rustix has no safe function, or costs more.

use std::io;
use std::os::fd::{AsFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The result of a system call, with errno as the error.
pub(crate) fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a descriptor non-blocking.
pub(crate) fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?)
}

/// Whether this kernel can be asked for a single call not to wait, for every file that was tried.
static CALLS_DO_NOT_WAIT: AtomicBool = AtomicBool::new(true);

/// `preadv2` of what is there now, without the C library's support of thread cancellation, which
/// costs a twentieth of the time of a small frame.
///
/// The call does not wait even if the descriptor may: a TAP of another process is shared with it,
/// and so are its flags. Kernels that cannot do so for this file (`EOPNOTSUPP`) get `readv`.
///
/// # Safety
/// The pieces must be writable memory.
#[inline]
pub(crate) unsafe fn read_pieces(fd: RawFd, pieces: &mut [libc::iovec]) -> io::Result<usize> {
    let (first, count) = (pieces.as_mut_ptr(), pieces.len());
    if CALLS_DO_NOT_WAIT.load(Ordering::Relaxed) {
        // SAFETY: the slice is as long as it says; the caller vouches for what it refers to.
        let got = unsafe { libc::syscall(libc::SYS_preadv2, fd, first, count, HERE, HERE, libc::RWF_NOWAIT) };
        if let Some(result) = outcome(got) {
            return result;
        }
    }
    // SAFETY: as above.
    let got = unsafe { libc::syscall(libc::SYS_readv, fd, first, count) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// `pwritev2`, likewise.
///
/// # Safety
/// The pieces must be readable memory.
#[inline]
pub(crate) unsafe fn write_pieces(fd: RawFd, pieces: &[libc::iovec]) -> io::Result<usize> {
    let (first, count) = (pieces.as_ptr(), pieces.len());
    if CALLS_DO_NOT_WAIT.load(Ordering::Relaxed) {
        // SAFETY: the slice is as long as it says; the caller vouches for what it refers to.
        let put =
            unsafe { libc::syscall(libc::SYS_pwritev2, fd, first, count, HERE, HERE, libc::RWF_NOWAIT) };
        if let Some(result) = outcome(put) {
            return result;
        }
    }
    // SAFETY: as above.
    let put = unsafe { libc::syscall(libc::SYS_writev, fd, first, count) };
    usize::try_from(put).map_err(|_| io::Error::last_os_error())
}

/// The position of calls that have none: as `readv` and `writev` (preadv2(2)).
const HERE: libc::c_long = -1;

/// The result of a call that does not wait; `None` if the kernel cannot do so.
fn outcome(answer: libc::c_long) -> Option<io::Result<usize>> {
    if let Ok(octets) = usize::try_from(answer) {
        return Some(Ok(octets));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
        CALLS_DO_NOT_WAIT.store(false, Ordering::Relaxed);
        return None;
    }
    Some(Err(error))
}
