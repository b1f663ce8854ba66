//! A kernel timer (timerfd) that wakes the loop for the next poll, armed once and left alone.
//!
//! A shorter timeout of each sleep would have the same effect, but reprograms the processor's timer
//! at every sleep, which in a virtual machine costs more than the sleep itself: 12 to 18 us.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use airloom_engine::time::Span;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use crate::error::Error;

/// A timer, readable once it has expired.
pub(crate) struct Timer {
    fd: OwnedFd,
    armed: bool,
}

impl Timer {
    /// Creates a timer that is not armed.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel has no descriptor left.
    pub fn new() -> Result<Self, Error> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
            .map_err(|source| Error::Loop { what: "a timer", source: source.into() })?;
        Ok(Self { fd, armed: false })
    }

    /// Arms it for a wait of less than a second, unless it is already armed.
    pub fn arm(&mut self, wait: Span) {
        if self.armed {
            return;
        }
        let nanos = i64::try_from(wait.nanos()).unwrap_or(i64::MAX).clamp(1, 999_999_999);
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec { tv_sec: 0, tv_nsec: nanos };
        let when = libc::itimerspec { it_interval: never, it_value: value };
        // SAFETY: the times outlive the call.
        let answer =
            unsafe { libc::timerfd_settime(self.fd.as_raw_fd(), 0, &raw const when, std::ptr::null_mut()) };
        self.armed = answer == 0;
    }

    /// Resets it after expiry.
    pub fn expired(&mut self) {
        let mut count = [0u8; 8];
        // SAFETY: eight octets that outlive the call.
        unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        self.armed = false;
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
