//! Shares of slices in the airtime of a channel: state, and the rule of virtual times.

use crate::medium::phy::Channel;
use crate::medium::slices::codes::CodeSettings;
use crate::time::{Instant, Span};

/// Fractions of a nanosecond in a virtual time: 2^64 of them are 208 days.
pub(super) const FRACTIONS: u64 = 1024;

/// The part of a radio in the airtime of its slice.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Share {
    pub(super) slice: u16,
    pub(super) weight: u16,
    /// Its group, and the slice's place in it.
    pub(super) group: usize,
    pub(super) member: usize,
    /// True while it waits until its slice is no longer ahead.
    pub(super) blocked: bool,
}

/// The slices that share a channel by weights.
#[derive(Debug)]
pub(in crate::medium) struct Group {
    pub(super) channel: Channel,
    /// The own slots of its radios; empty for radios without slots.
    pub(super) slots: Vec<u16>,
    /// The code of its radios.
    pub(super) code: Option<CodeSettings>,
    pub(super) members: Vec<Member>,
    /// The virtual time v, in fractions of a nanosecond.
    pub(super) virtual_time: u64,
    /// Radios that wait.
    pub(super) blocked: Vec<u32>,
    /// True if an [`Event::Share`] is scheduled.
    pub(super) scheduled: bool,
}

/// A slice in a group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) slice: u16,
    pub(super) weight: u16,
    pub(super) radios: Vec<u32>,
    /// The virtual time V, in fractions of a nanosecond.
    pub(super) used: u64,
    /// True if it had a frame to send at the last look, since when, and the end of its last frame.
    pub(super) backlogged: bool,
    pub(super) since: Instant,
    pub(super) sent: Instant,
    /// It did not transmit although it could, and counts as idle until it does.
    pub(super) stalled: bool,
}

impl Member {
    /// Airtime by which it is ahead of a virtual time.
    pub(super) fn lead(&self, virtual_time: u64) -> Span {
        let fractions = self.used.saturating_sub(virtual_time).saturating_mul(u64::from(self.weight));
        Span::from_nanos(fractions / FRACTIONS)
    }
}
