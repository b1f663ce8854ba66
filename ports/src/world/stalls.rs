//! Time in which the thread of the loop stood still while it worked.
//!
//! A hypervisor stops a virtual machine for milliseconds, and the scheduler a thread. A frame that was handed
//! over to a router before and is read after that has waited for the loop, not for the router.

use airloom_engine::time::{Instant, Span};

/// Longest work between two looks at the clock. To write 64 segments, which a router forwards meanwhile, takes
/// 50 to 100 us.
const WORK: Span = Span::from_micros(300);

/// The sum of stalls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stalls {
    looked: Instant,
    total: Span,
}

impl Stalls {
    /// Records that the thread has worked since the previous record.
    pub fn worked(&mut self, now: Instant) {
        let since = now.since(self.looked);
        if since > WORK {
            self.total += since;
        }
        self.looked = now;
    }

    /// Records that the thread has waited since the previous record, for however long.
    pub fn waited(&mut self, now: Instant) {
        self.looked = now;
    }

    /// `now` by a clock that stands still with the thread: without all stalls until then.
    pub fn clock(&self, now: Instant) -> Instant {
        now - self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_gap_in_work_is_a_stall_and_a_wait_is_not() {
        let mut stalls = Stalls::default();
        let at = |micros: u64| Instant::from_nanos(micros * 1_000);
        stalls.waited(at(5_000));
        stalls.worked(at(5_300));
        assert_eq!(stalls.total, Span::ZERO);
        stalls.worked(at(7_300));
        stalls.waited(at(9_000));
        stalls.worked(at(9_010));
        assert_eq!(stalls.total, Span::from_micros(2_000));
        assert_eq!(stalls.clock(at(9_010)), at(7_010));
    }
}
