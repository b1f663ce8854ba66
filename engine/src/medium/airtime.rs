//! Where a radio's time went.

use crate::time::{Instant, Span};

/// What a radio does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing on its channel.
    Idle,
    /// Sends.
    Transmitting,
    /// Follows a frame.
    Receiving,
    /// Senses energy that it cannot follow.
    Busy,
}

/// How long a radio did what; the five parts add up to the time since it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    /// Nothing on its channel.
    pub idle: Span,
    /// Sending.
    pub transmitting: Span,
    /// Following frames that arrived well.
    pub receiving: Span,
    /// Following frames that arrived broken.
    pub collided: Span,
    /// Sensing energy that it could not follow.
    pub busy: Span,
}

/// Keeps the account of one radio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    total: Airtime,
    doing: Doing,
    since: Instant,
}

impl Account {
    pub(super) fn new(at: Instant) -> Self {
        Self { total: Airtime::default(), doing: Doing::Idle, since: at }
    }

    /// From `at` on it does something else. What ended was a reception that `failed`, perhaps.
    pub(super) fn turn(&mut self, at: Instant, doing: Doing, failed: bool) {
        let span = at.since(self.since);
        let part = match self.doing {
            Doing::Idle => &mut self.total.idle,
            Doing::Transmitting => &mut self.total.transmitting,
            Doing::Receiving if failed => &mut self.total.collided,
            Doing::Receiving => &mut self.total.receiving,
            Doing::Busy => &mut self.total.busy,
        };
        *part += span;
        // Arrivals are stamped up to a propagation delay ahead; never count time twice.
        self.since = self.since.max(at);
        self.doing = doing;
    }

    /// Up to `at` it was idle but for these parts, and is idle from then on.
    pub(super) fn skip(&mut self, at: Instant, parts: &Airtime) {
        let span = at.since(self.since);
        self.total.receiving += parts.receiving;
        self.total.collided += parts.collided;
        self.total.busy += parts.busy;
        let other = parts.receiving + parts.collided + parts.busy;
        self.total.idle += span.saturating_sub(other);
        self.since = self.since.max(at);
        self.doing = Doing::Idle;
    }

    /// The account up to `at`.
    pub(super) fn at(&self, at: Instant) -> Airtime {
        let mut copy = *self;
        copy.turn(at, self.doing, false);
        copy.total
    }
}
