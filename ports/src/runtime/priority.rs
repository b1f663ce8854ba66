//! The scheduling priority of the loop's thread.
//!
//! The thread runs in the kernel's real-time class (`SCHED_RR`). Niceness would not do: it counts only
//! within a session where the kernel groups tasks by sessions. But the kernel throttles a real-time
//! thread that uses 95 % of a second: it stops it for the remaining 50 ms in one piece. So near that
//! limit the thread drops to `SCHED_OTHER`: it then competes for the processor, but is not stopped.

use airloom_engine::time::Span;

/// Above this part of a second the thread leaves the real-time class.
const MOST: Span = Span::from_millis(850);
/// Below this part of a second it returns.
const LEAST: Span = Span::from_millis(600);

/// The priority of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Priority {
    allowed: bool,
    realtime: bool,
}

impl Priority {
    /// Makes the calling thread real-time, if it has the right to.
    #[must_use]
    pub fn take() -> Self {
        let allowed = set(true);
        Self { allowed, realtime: allowed }
    }

    /// Whether the thread has the right to be real-time.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self.allowed
    }

    /// A second has ended in which the thread used so much processor time.
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
