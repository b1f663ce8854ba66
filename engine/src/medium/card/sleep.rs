//! How long radios could sleep.
//!
//! A station of a stack dozes from the acknowledgment of a frame to its access point with the power
//! management bit, until that of a frame without it (802.11-2020, 11.2.3). A physical radio can
//! sleep only while all of its virtual MACs doze. Stations of the engine never doze by themselves.
//!
//! Approximation: a stack does not tell its device when it wakes for beacons, so this time counts
//! as asleep.

use crate::medium::Medium;
use crate::time::{Instant, Span};

/// Time asleep.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::medium) struct SleepAccount {
    since: Option<Instant>,
    total: Span,
}

impl SleepAccount {
    fn set(&mut self, asleep: bool, now: Instant) {
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

impl Medium {
    /// Records that a station of a stack dozes, or not.
    pub(in crate::medium) fn set_dozing(&mut self, index: usize, dozes: bool) {
        let now = self.now;
        self.radios[index].dozing.set(dozes, now);
        let Some(card) = self.card_of(index) else { return };
        let members = self.cards[card].members.iter().map(|member| &self.radios[member.radio as usize]);
        let mut on = members.filter(|radio| radio.switched_on).peekable();
        let asleep = on.peek().is_some() && on.all(|radio| radio.dozing.is_asleep());
        self.cards[card].asleep.set(asleep, now);
    }
}
