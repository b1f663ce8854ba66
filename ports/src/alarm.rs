//! An alarm for what is to be looked at again soon: a timer of the kernel that is set and left alone.
//!
//! To end each sleep early would do as well, but a near end sets the processor's own timer anew at every
//! sleep, which in a virtual machine costs more than the sleep itself: 12 to 18 us.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use airloom_engine::time::Span;

use crate::error::Error;
use crate::sys::check;

/// One, readable when it has rung.
pub(crate) struct Alarm {
    timer: OwnedFd,
    set: bool,
}

impl Alarm {
    /// One that is not set.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel has no descriptor left.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: no pointers are passed.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        check(fd).map_err(|source| Error::Loop { what: "a timer", source })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Self { timer: unsafe { OwnedFd::from_raw_fd(fd) }, set: false })
    }

    /// Has it ring after a wait of less than a second, unless it is set already.
    pub fn set(&mut self, wait: Span) {
        if self.set {
            return;
        }
        let nanos = i64::try_from(wait.nanos()).unwrap_or(i64::MAX).clamp(1, 999_999_999);
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec { tv_sec: 0, tv_nsec: nanos };
        let when = libc::itimerspec { it_interval: never, it_value: value };
        // SAFETY: the times outlive the call.
        let answer = unsafe {
            libc::timerfd_settime(self.timer.as_raw_fd(), 0, &raw const when, std::ptr::null_mut())
        };
        self.set = answer == 0;
    }

    /// It rang, and is not set any more.
    pub fn rang(&mut self) {
        let mut count = [0u8; 8];
        // SAFETY: eight octets that outlive the call.
        unsafe { libc::read(self.timer.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        self.set = false;
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.timer.as_raw_fd()
    }
}
