//! A flag that SIGTERM and SIGINT set: the program then ends its loop and writes out what it has.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the program was asked to stop.
#[must_use]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Lets both signals set the flag. They also end a system call that waits, because `SA_RESTART` is left out.
pub fn install() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let handler: extern "C" fn(libc::c_int) = note;
        // SAFETY: a zeroed sigaction is a valid one (empty mask, no flags); the handler only stores to an atomic,
        // which is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
