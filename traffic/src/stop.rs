//! A flag set by SIGTERM and SIGINT: the program then ends its loop and completes its output.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGINT];

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the program was asked to stop.
#[must_use]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Runs a blocking system call with the given signal mask, so that both signals
/// interrupt it even if they arrived right before; returns `None`, without the call, if
/// the program has been asked to stop.
pub fn waiting<T>(call: impl FnOnce(*const libc::sigset_t) -> T) -> Option<T> {
    let mut both = MaybeUninit::uninit();
    let mut usual = MaybeUninit::uninit();
    // SAFETY: both sets live through the calls; `sigemptyset` makes the first valid,
    // `pthread_sigmask` the second.
    unsafe {
        libc::sigemptyset(both.as_mut_ptr());
        for signal in SIGNALS {
            libc::sigaddset(both.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, both.as_ptr(), usual.as_mut_ptr());
    }
    let done = (!asked()).then(|| call(usual.as_ptr()));
    // SAFETY: the set was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, usual.as_ptr(), std::ptr::null_mut()) };
    done
}

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Installs the handler of both signals. They also interrupt a blocking system call,
/// because `SA_RESTART` is not set.
pub fn install() {
    for signal in SIGNALS {
        let handler: extern "C" fn(libc::c_int) = note;
        // SAFETY: a zeroed sigaction is a valid one (empty mask, no flags); the handler only stores
        // to an atomic, which is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
