//! The engine's time as the calendar grants it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airloom_engine::Clock;
use airloom_engine::time::Instant;

/// A clock that stands still until the calendar sets it.
#[derive(Clone, Debug, Default)]
pub struct CalendarClock(Arc<AtomicU64>);

impl CalendarClock {
    /// Sets the time.
    pub(super) fn set(&self, now: Instant) {
        self.0.store(now.nanos(), Ordering::Relaxed);
    }
}

impl Clock for CalendarClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Only the calendar lets time pass: the instant is there.
    fn wait(&self, _: Instant) {}
}
