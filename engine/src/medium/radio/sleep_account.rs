//! How long radios could sleep.
//!
//! A station of a stack dozes from the acknowledgment of a frame to its access point with the power
//! management bit, until that of a frame without it (802.11-2020, 11.2.3). A physical radio can
//! sleep only while all of its virtual MACs doze. Stations of the engine never doze by themselves.
//!
//! Approximation: a stack does not tell its device when it wakes for beacons, so this time counts
//! as asleep.

use crate::time::{Instant, Span};

/// Time asleep.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::medium) struct SleepAccount {
    since: Option<Instant>,
    total: Span,
}

impl SleepAccount {
    /// Records whether it sleeps from now on.
    pub(in crate::medium) fn set(&mut self, asleep: bool, now: Instant) {
        match self.since {
            Some(since) if !asleep => {
                self.total += now.since(since);
                self.since = None;
            }
            None if asleep => self.since = Some(now),
            _ => {}
        }
    }

    pub(in crate::medium) fn is_asleep(&self) -> bool {
        self.since.is_some()
    }

    /// Time asleep until `now`.
    pub(in crate::medium) fn total(&self, now: Instant) -> Span {
        self.since.map_or(self.total, |since| self.total + now.since(since))
    }
}
