//! The scheduling priority of the loop's thread.
//!
//! The thread runs in the kernel's real-time class (`SCHED_RR`). Niceness does not suffice: if the
//! kernel groups tasks by session (autogroup), it applies only within a session. But the kernel
//! throttles a real-time thread that uses 95 % of a second: it suspends the thread for the
//! remaining 50 ms. Near that limit the thread therefore drops to `SCHED_OTHER`: it then competes
//! for CPU, but is not suspended.

use airloom_engine::time::Span;

/// Above this CPU time per second the thread leaves the real-time class.
const MOST: Span = Span::from_millis(850);
/// Below this CPU time per second it returns.
const LEAST: Span = Span::from_millis(600);

/// The priority of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Priority {
    allowed: bool,
    realtime: bool,
}

impl Priority {
    /// Makes the calling thread real-time, if permitted.
    #[must_use]
    pub fn take() -> Self {
        let allowed = set(true);
        Self { allowed, realtime: allowed }
    }

    /// Whether the thread may be real-time.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self.allowed
    }

    /// Adapts the class after a second in which the thread used `cpu` CPU time.
    pub fn used(&mut self, cpu: Span) {
        let wanted = if self.realtime { cpu <= MOST } else { cpu < LEAST };
        if self.allowed && wanted != self.realtime && set(wanted) {
            self.realtime = wanted;
        }
    }
}

fn set(realtime: bool) -> bool {
    let class = if realtime { libc::SCHED_RR } else { libc::SCHED_OTHER };
    let parameter = libc::sched_param { sched_priority: i32::from(realtime) };
    // SAFETY: the parameter outlives the call.
    unsafe { libc::sched_setscheduler(0, class, &raw const parameter) == 0 }
}
