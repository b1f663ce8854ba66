//! The scheduling priority of the loop's thread.
//!
//! The thread runs in the kernel's real-time class (`SCHED_RR`). Niceness does not suffice: if the
//! kernel groups tasks by session (autogroup), it applies only within a session. But the kernel
//! throttles a real-time thread that uses 95 % of a second: it suspends the thread for the
//! remaining 50 ms. Near that limit the thread therefore drops to `SCHED_OTHER`: it then competes
//! for CPU, but is not suspended. A scenario may fix the scheduling instead; then it stays.

use std::io;

use airloom_engine::time::Span;

/// Above this CPU time per second the thread leaves the real-time class.
const MOST: Span = Span::from_millis(850);
/// Below this CPU time per second it returns.
const LEAST: Span = Span::from_millis(600);

/// A fixed scheduling, by the kernel's numbers (`sched(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// The policy, such as `SCHED_FIFO`.
    pub policy: i32,
    /// Priority with a real-time policy, otherwise 0.
    pub priority: i32,
    /// Nice value.
    pub nice: i32,
}

impl Scheduling {
    /// Whether the policy is one of the real-time class.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        matches!(self.policy, libc::SCHED_RR | libc::SCHED_FIFO)
    }

    /// Sets the calling thread's scheduling.
    fn apply(self) -> io::Result<()> {
        set_policy(self.policy, self.priority)?;
        // SAFETY: no pointers; on Linux, 0 is the calling thread.
        let failed = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.nice) != 0 };
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The priority of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Priority {
    allowed: bool,
    realtime: bool,
    fixed: bool,
}

impl Priority {
    /// Makes the calling thread real-time, if permitted.
    #[must_use]
    pub fn take() -> Self {
        let allowed = set(true);
        Self { allowed, realtime: allowed, fixed: false }
    }

    /// Gives the calling thread a fixed scheduling.
    ///
    /// # Errors
    /// If this user may not.
    pub fn fix(wanted: Scheduling) -> io::Result<Self> {
        wanted.apply()?;
        let realtime = wanted.is_realtime();
        Ok(Self { allowed: realtime, realtime, fixed: true })
    }

    /// Whether the thread may be real-time.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self.allowed
    }

    /// Adapts the class after a second in which the thread used `cpu` CPU time.
    pub fn used(&mut self, cpu: Span) {
        let wanted = if self.realtime { cpu <= MOST } else { cpu < LEAST };
        if self.allowed && !self.fixed && wanted != self.realtime && set(wanted) {
            self.realtime = wanted;
        }
    }
}

fn set(realtime: bool) -> bool {
    let class = if realtime { libc::SCHED_RR } else { libc::SCHED_OTHER };
    set_policy(class, i32::from(realtime)).is_ok()
}

/// Sets the calling thread's policy, by the kernel's number, and its priority in the real-time class.
///
/// # Errors
/// If this user may not.
pub fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter outlives the call; on Linux, 0 is the calling thread.
    let failed = unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) != 0 };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels() -> (i32, i32) {
        // SAFETY: no pointers; 0 is the calling thread.
        unsafe { (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0)) }
    }

    #[test]
    fn a_fixed_scheduling_stays_whatever_the_thread_uses() {
        let wanted = Scheduling { policy: libc::SCHED_BATCH, priority: 0, nice: 7 };
        let mut priority = Priority::fix(wanted).expect("nobody needs a right to yield");
        assert!(!priority.is_allowed());
        for cpu in [Span::from_millis(900), Span::from_millis(100)] {
            priority.used(cpu);
            assert_eq!(kernels(), (libc::SCHED_BATCH, 7));
        }
    }

    #[test]
    fn a_scheduling_that_the_kernel_refuses_is_an_error() {
        let wrong = Scheduling { policy: libc::SCHED_OTHER, priority: 9, nice: 0 };
        let error = Priority::fix(wrong).expect_err("this policy has no priorities");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
