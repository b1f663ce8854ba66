//! A flag that SIGTERM and SIGINT set: the program then ends its loop and writes out what it has.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGINT];

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the program was asked to stop.
#[must_use]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Runs a system call that waits with the signal mask it is given, so that both signals end it even if they came
/// right before; `None`, without the call, if the program has been asked to stop.
pub fn waiting<T>(call: impl FnOnce(*const libc::sigset_t) -> T) -> Option<T> {
    let mut both = MaybeUninit::uninit();
    let mut usual = MaybeUninit::uninit();
    // SAFETY: both sets live through the calls; `sigemptyset` makes the first valid, `pthread_sigmask` the second.
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

/// Lets both signals set the flag. They also end a system call that waits, because `SA_RESTART` is left out.
pub fn install() {
    for signal in SIGNALS {
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
