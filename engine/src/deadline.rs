//! Deadline of an element: avoids duplicate events in the calendar.

use crate::time::Instant;

/// The earliest instant for which the calendar holds an event of an element.
///
/// Events are never removed from the calendar. An event that an earlier one has made obsolete is
/// still delivered, so elements must tolerate a wake-up with nothing to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Requests an event at `at`. Returns true if the caller must push one.
    pub fn arm(&mut self, at: Instant) -> bool {
        let needed = self.0.is_none_or(|armed| at < armed);
        if needed {
            self.0 = Some(at);
        }
        needed
    }

    /// The instant of the earliest event.
    pub fn armed(&self) -> Option<Instant> {
        self.0
    }

    /// Records that the event at `now` has been delivered.
    pub fn expired(&mut self, now: Instant) {
        if self.0.is_some_and(|armed| armed <= now) {
            self.0 = None;
        }
    }
}
