//! Whether the loop's thread goes before whatever else wants a processor.
//!
//! Round robin in the kernel's real-time class does that, and niceness would not: it counts only
//! within a session where the kernel groups by sessions. But what runs in that class for 95 % of a
//! second is stopped for the rest of it, 50 ms in one piece, whether or not anybody needs them. So a
//! thread that nears that limit does without the precedence, which it hardly needs: it has to share,
//! but is not stopped.

use airloom_engine::time::Span;

/// Above this part of a second the precedence is given up.
const MOST: Span = Span::from_millis(850);
/// Below this part of a second it is taken again.
const LEAST: Span = Span::from_millis(600);

/// What the thread has.
#[derive(Clone, Copy, Debug)]
pub struct Precedence {
    allowed: bool,
    taken: bool,
}

impl Precedence {
    /// Takes precedence, if the thread has the right to it.
    #[must_use]
    pub fn take() -> Self {
        let allowed = set(true);
        Self { allowed, taken: allowed }
    }

    /// Whether the thread may have it at all.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self.allowed
    }

    /// A second has ended in which the thread used so much processor time.
    pub fn used(&mut self, cpu: Span) {
        let wanted = if self.taken { cpu <= MOST } else { cpu < LEAST };
        if self.allowed && wanted != self.taken && set(wanted) {
            self.taken = wanted;
        }
    }
}

fn set(before_others: bool) -> bool {
    let class = if before_others { libc::SCHED_RR } else { libc::SCHED_OTHER };
    let parameter = libc::sched_param { sched_priority: i32::from(before_others) };
    // SAFETY: the parameter outlives the call.
    unsafe { libc::sched_setscheduler(0, class, &raw const parameter) == 0 }
}
