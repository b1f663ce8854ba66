//! Whether the calendar already holds an event for what an element waits for.

use crate::time::Instant;

/// The earliest instant for which an element has an event in the calendar.
///
/// Events are never taken out of the calendar. One that was overtaken by an earlier one still
/// comes and finds nothing to do, so elements must bear being woken for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alarm(Option<Instant>);

impl Alarm {
    /// Asks to be woken at `at`. True if an event has to be pushed for it.
    pub fn set(&mut self, at: Instant) -> bool {
        let needed = self.0.is_none_or(|set| at < set);
        if needed {
            self.0 = Some(at);
        }
        needed
    }

    /// Says that an event has come at `now`.
    pub fn rung(&mut self, now: Instant) {
        if self.0.is_some_and(|set| set <= now) {
            self.0 = None;
        }
    }
}
