//! Gaps between the busy times of a cluster's channel, and the backoff slots counted in them.

use crate::medium::signal::Signal;
use crate::time::{Instant, Span};

/// The idle time after the last frame, and how it began.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Gap {
    /// The first and the last frame of the preceding busy time.
    pub(in crate::medium) first: Signal,
    pub(in crate::medium) last: Signal,
}

/// What a member counted less than the others in a gap: slots, and whether the gap was long enough.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::medium) struct Lag {
    pub(in crate::medium) slots: i64,
    pub(in crate::medium) openings: i64,
}

impl Lag {
    pub(in crate::medium) fn of(own: Option<u64>, common: Option<u64>) -> Self {
        let slots = |count: Option<u64>| i64::try_from(count.unwrap_or(0)).unwrap_or(i64::MAX);
        Self {
            slots: slots(common) - slots(own),
            openings: i64::from(common.is_some()) - i64::from(own.is_some()),
        }
    }
}

/// Slots of a gap that a busy time ended.
pub(in crate::medium) struct CountedGap {
    pub(in crate::medium) gap: Gap,
    pub(in crate::medium) ending: Signal,
    /// The slots that the common count is advanced by; `None` if counting had not begun.
    pub(in crate::medium) common: Option<u64>,
    /// True if a member may have counted other slots.
    pub(in crate::medium) differs: bool,
    /// The common count at its end.
    pub(in crate::medium) slots: u64,
    /// The lag for each [`Wait`]; `None` if propagation delays decide it.
    pub(in crate::medium) lags: [Option<Lag>; Wait::COUNT],
}

/// Whole slots from `from` to `until`; `None` if `until` is before `from`.
pub(in crate::medium) fn passed(from: Instant, until: Instant, slot: Span) -> Option<u64> {
    (from <= until).then(|| until.since(from).nanos() / slot.nanos())
}

/// Maximum number of frames evaluated in this way.
pub(in crate::medium) const MAX_FRAMES: usize = 8;

/// What a radio waits for before it counts slots, besides the reservations that all radios know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::medium) struct Wait(u8);

impl Wait {
    /// Nothing but AIFS.
    pub(in crate::medium) const AIFS: Self = Self(0);
    /// EIFS: the frame that it followed had errors.
    pub(in crate::medium) const EIFS: Self = Self(1);
    const NAV: u8 = 2;
    /// Number of waits.
    pub(in crate::medium) const COUNT: usize = Self::NAV as usize + MAX_FRAMES;

    /// The NAV of the frame of this index, which others may not have received.
    pub(in crate::medium) fn nav(frame: usize) -> Self {
        Self(u8::try_from(frame).map_or(u8::MAX, |frame| Self::NAV.saturating_add(frame)))
    }

    /// The index of the frame whose NAV it is.
    pub(in crate::medium) fn frame(self) -> Option<usize> {
        self.0.checked_sub(Self::NAV).map(usize::from)
    }

    pub(in crate::medium) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Properties that all members of a cluster shared when it was formed.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Common {
    pub(in crate::medium) slot: Span,
    pub(in crate::medium) aifs: Span,
    pub(in crate::medium) extension: Span,
    pub(in crate::medium) detect: Span,
    /// The longest propagation delay.
    pub(in crate::medium) max_delay: Span,
    /// True if any member's transmission makes the channel busy by energy alone at all others.
    pub(in crate::medium) sensed_by_energy: bool,
}
