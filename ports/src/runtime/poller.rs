//! Waits for descriptors and for time: level-triggered epoll with a timeout in nanoseconds.
//!
//! Level-triggered, because a port that still has frames is reported again, after the others: no
//! read is needed to find a port empty, and no port starves another.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use airloom_engine::time::Span;
use rustix::event::epoll;

use crate::error::Error;
use crate::sys::check;

/// Maximum number of events per call.
const BATCH: u16 = 128;

/// An epoll instance whose descriptors are identified by numbers.
pub struct Poller {
    epoll: OwnedFd,
    events: Box<[libc::epoll_event; BATCH as usize]>,
}

impl Poller {
    /// Creates an instance without descriptors.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel has no descriptor left.
    pub fn new() -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|source| Error::Loop { what: "epoll", source: source.into() })?;
        Ok(Self { epoll, events: Box::new([libc::epoll_event { events: 0, u64: 0 }; BATCH as usize]) })
    }

    /// Watches `fd` for readability; [`Poller::ready`] returns `number` for it.
    ///
    /// # Errors
    /// [`Error::Loop`] if the descriptor cannot be watched.
    pub fn add(&self, fd: RawFd, number: u64) -> Result<(), Error> {
        #[allow(clippy::cast_sign_loss)] // a bit mask
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: the event outlives the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) })
            .map_err(|source| Error::Loop { what: "a place in epoll", source })
    }

    /// Stops watching `fd`.
    pub fn remove(&self, fd: RawFd) {
        // SAFETY: EPOLL_CTL_DEL takes no event.
        unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut());
        }
    }

    /// Waits until a descriptor is readable, at most `timeout` (without limit if None), and returns
    /// the number of ready descriptors. A signal ends the wait early.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel has no wait with nanoseconds (before 5.11).
    pub fn wait(&mut self, timeout: Option<Span>) -> Result<usize, Error> {
        let limit = timeout.map(|span| libc::timespec {
            tv_sec: i64::try_from(span.nanos() / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(span.nanos() % 1_000_000_000).unwrap_or(0),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the array holds BATCH events, the timeout outlives the call, no signal mask is
        // given.
        let ready = unsafe {
            libc::epoll_pwait2(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                libc::c_int::from(BATCH),
                limit,
                std::ptr::null(),
            )
        };
        usize::try_from(ready).or_else(|_| {
            let source = io::Error::last_os_error();
            match source.raw_os_error() {
                Some(libc::EINTR) => Ok(0),
                _ => Err(Error::Loop { what: "epoll_pwait2", source }),
            }
        })
    }

    /// True if `ready` is the maximum of one wait, so that more descriptors may be ready.
    #[must_use]
    pub fn is_full(&self, ready: usize) -> bool {
        ready == usize::from(BATCH)
    }

    /// Number of the `index`th ready descriptor.
    #[must_use]
    pub fn ready(&self, index: usize) -> u64 {
        self.events[index].u64
    }
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Poller").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

impl AsRawFd for Poller {
    /// Readable while any watched descriptor is ready, so that one poller can watch another.
    fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}
