//! Whether the calendar already holds an event for an element.

use crate::time::Instant;

/// The earliest instant for which an element has an event in the calendar.
///
/// Events are never taken out of the calendar. One that was overtaken by an earlier one still
/// comes and finds nothing to do, so elements must tolerate being woken without cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Asks for an event at `at`. True if one has to be pushed for it.
    pub fn arm(&mut self, at: Instant) -> bool {
        let needed = self.0.is_none_or(|armed| at < armed);
        if needed {
            self.0 = Some(at);
        }
        needed
    }

    /// An event has come at `now`.
    pub fn expired(&mut self, now: Instant) {
        if self.0.is_some_and(|armed| armed <= now) {
            self.0 = None;
        }
    }
}
