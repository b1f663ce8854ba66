//! Small helpers around system calls.

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

/// The result of a system call, with errno as the error.
pub(crate) fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a descriptor non-blocking.
pub(crate) fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: F_GETFL and F_SETFL touch no memory of ours.
    unsafe {
        let status = libc::fcntl(fd, libc::F_GETFL);
        check(status)?;
        check(libc::fcntl(fd, libc::F_SETFL, status | libc::O_NONBLOCK))
    }
}

/// An `ifreq` with the name filled in; None if the name is too long or not a C string.
pub(crate) fn interface_request(name: &str) -> Option<libc::ifreq> {
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
