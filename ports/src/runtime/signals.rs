//! Signals of the process, which its other threads handle.

/// Blocks the signals in the calling thread, except SIGBUS, which access to a guest's memory can cause.
pub fn leave_to_others() {
    // SAFETY: the signal set is filled before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigdelset(&raw mut all, libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}
