//! Airtime of a radio by state.

use crate::time::{Instant, Span};

/// State of a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Doing {
    /// Channel idle.
    Idle,
    /// Transmitting.
    Transmitting,
    /// Receiving a frame.
    Receiving,
    /// Channel busy with energy that it cannot decode.
    Busy,
}

/// Time of a radio in each state; the five parts add up to the time since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    /// Channel idle.
    pub idle: Span,
    /// Transmitting.
    pub transmitting: Span,
    /// Receiving frames without error.
    pub receiving: Span,
    /// Receiving frames that were corrupted.
    pub collided: Span,
    /// Channel busy with energy that it could not decode.
    pub busy: Span,
}

/// Airtime counters of one radio.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Account {
    total: Airtime,
    doing: Doing,
    since: Instant,
}

impl Account {
    pub(in crate::medium) fn new(at: Instant) -> Self {
        Self { total: Airtime::default(), doing: Doing::Idle, since: at }
    }

    /// True if this is the present state.
    pub(in crate::medium) fn is(&self, doing: Doing) -> bool {
        self.doing == doing
    }

    /// Changes the state at `at`. `failed` applies to a reception that ends.
    pub(in crate::medium) fn turn(&mut self, at: Instant, doing: Doing, failed: bool) {
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

    /// Adds these parts up to `at`, the rest as idle; the radio is idle from then on.
    pub(in crate::medium) fn skip(&mut self, at: Instant, parts: &Airtime) {
        let span = at.since(self.since);
        self.total.receiving += parts.receiving;
        self.total.collided += parts.collided;
        self.total.busy += parts.busy;
        let other = parts.receiving + parts.collided + parts.busy;
        self.total.idle += span.saturating_sub(other);
        self.since = self.since.max(at);
        self.doing = Doing::Idle;
    }

    /// The airtime up to `at`.
    pub(in crate::medium) fn at(&self, at: Instant) -> Airtime {
        let mut copy = *self;
        copy.turn(at, self.doing, false);
        copy.total
    }
}
