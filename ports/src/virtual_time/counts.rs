//! Counters of the calendar.

use serde::Serialize;

/// Counters of the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// How often a guest was let run.
    pub runs: u64,
    /// Messages of the time-travel protocol, both ways, acknowledgments among them.
    pub messages: u64,
    /// Notifications by guests.
    pub kicks: u64,
    /// Notifications to guests.
    pub calls: u64,
    /// Notifications by guests that needed no message.
    pub logged: u64,
    /// Notifications to guests that needed no message.
    pub listed: u64,
    /// How often the world stood still because a guest had written to its console.
    pub pauses: u64,
}
