//! Gaps between the busy times of a cluster's channel, and the backoff slots counted in them.

use super::air::Signal;
use super::collision::Wait;
use crate::time::{Instant, Span};

/// The idle time after the last frame, and how it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The first and the last frame of the preceding busy time.
    pub(super) first: Signal,
    pub(super) last: Signal,
}

/// What a member counted less than the others in a gap: slots, and whether the gap was long enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lag {
    pub(super) slots: i64,
    pub(super) openings: i64,
}

impl Lag {
    pub(super) fn of(own: Option<u64>, common: Option<u64>) -> Self {
        let slots = |count: Option<u64>| i64::try_from(count.unwrap_or(0)).unwrap_or(i64::MAX);
        Self {
            slots: slots(common) - slots(own),
            openings: i64::from(common.is_some()) - i64::from(own.is_some()),
        }
    }
}

/// Slots of a gap that a busy time ended.
pub(super) struct CountedGap {
    pub(super) gap: Gap,
    pub(super) ending: Signal,
    /// The slots that the common count is advanced by; `None` if counting had not begun.
    pub(super) common: Option<u64>,
    /// True if a member may have counted other slots.
    pub(super) differs: bool,
    /// The common count at its end.
    pub(super) slots: u64,
    /// The lag for each [`Wait`]; `None` if propagation delays decide it.
    pub(super) lags: [Option<Lag>; Wait::COUNT],
}

/// Whole slots from `from` to `until`; `None` if `until` is before `from`.
pub(super) fn passed(from: Instant, until: Instant, slot: Span) -> Option<u64> {
    (from <= until).then(|| until.since(from).nanos() / slot.nanos())
}
