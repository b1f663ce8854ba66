//! A kernel timer (timerfd) that wakes the loop for the next poll, armed once and left alone
//! unless an earlier time comes up.
//!
//! A shorter timeout of each sleep would have the same effect, but reprograms the processor's timer
//! at every sleep, which in a virtual machine costs more than the sleep itself: 12 to 18 us.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use airloom_engine::time::Instant;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use crate::error::Error;

/// A timer, readable once it has expired.
pub(crate) struct Timer {
    fd: OwnedFd,
    /// When it expires, if it is armed.
    due: Option<Instant>,
}

impl Timer {
    /// Creates a timer that is not armed.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel has no descriptor left.
    pub fn new() -> Result<Self, Error> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
            .map_err(|source| Error::Loop { what: "a timer", source: source.into() })?;
        Ok(Self { fd, due: None })
    }

    /// Arms it for `at`, less than a second from `now`, unless it expires before anyway.
    pub fn arm(&mut self, at: Instant, now: Instant) {
        if self.due.is_some_and(|due| due <= at) {
            return;
        }
        let nanos = i64::try_from(at.since(now).nanos()).unwrap_or(i64::MAX).clamp(1, 999_999_999);
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec { tv_sec: 0, tv_nsec: nanos };
        let when = libc::itimerspec { it_interval: never, it_value: value };
        // SAFETY: the times outlive the call.
        let answer =
            unsafe { libc::timerfd_settime(self.fd.as_raw_fd(), 0, &raw const when, std::ptr::null_mut()) };
        self.due = (answer == 0).then_some(at);
    }

    /// Resets it after expiry.
    pub fn expired(&mut self) {
        let mut count = [0u8; 8];
        // SAFETY: eight octets that outlive the call.
        unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        self.due = None;
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::poller::Poller;
    use airloom_engine::time::Span;

    #[test]
    fn the_earliest_time_counts_whatever_was_armed_before() {
        let (poller, mut timer) = (Poller::new(), Timer::new().expect("a timer"));
        let mut poller = poller.expect("a poller");
        poller.add(timer.as_raw_fd(), 0).expect("added");
        let now = Instant::ZERO;
        timer.arm(now + Span::from_millis(990), now);
        timer.arm(now + Span::from_micros(10), now);
        timer.arm(now + Span::from_millis(500), now);
        assert_eq!(poller.wait(Some(Span::from_millis(400))).expect("waits"), 1);
        timer.expired();
        assert_eq!(poller.wait(Some(Span::ZERO)).expect("waits"), 0);
    }
}
