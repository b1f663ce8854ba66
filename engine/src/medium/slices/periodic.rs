//! Windows that repeat.

use crate::time::{Instant, Span};

/// Shortest and longest dwell and slot in nanoseconds: 100 us and 10 s. Each is an event of the
/// medium, whether a radio has frames or not, and the shortest frame exchange takes some 60 us.
pub(in crate::medium) const LENGTHS_NS: core::ops::RangeInclusive<u64> = 100_000..=10_000_000_000;

/// The same in words.
pub(in crate::medium) const LENGTHS: &str = "100 us to 10 s";

/// Windows that repeat.
#[derive(Clone, Debug)]
pub(in crate::medium) struct Table {
    period: u64,
    /// Start and end of each window in nanoseconds from the start of a period; ascending, at least
    /// one.
    windows: Vec<(u64, u64)>,
}

impl Table {
    pub(in crate::medium) fn new(period: u64, windows: Vec<(u64, u64)>) -> Self {
        Self { period, windows }
    }

    /// The end of the window that `at` is in, if it is in one.
    pub(in crate::medium) fn window_end(&self, at: Instant) -> Option<Instant> {
        let (start, offset) = self.split(at);
        let inside = |&&(from, until): &&(u64, u64)| (from..until).contains(&offset);
        self.windows.iter().find(inside).map(|&(_, until)| Instant::from_nanos(start + until))
    }

    /// When a window next begins or ends, after `at`.
    pub(in crate::medium) fn next_edge(&self, at: Instant) -> Instant {
        let (start, offset) = self.split(at);
        let edges = self.windows.iter().flat_map(|&(from, until)| [from, until]);
        let next = edges.filter(|&edge| edge > offset).min();
        Instant::from_nanos(start + next.unwrap_or(self.period + self.windows[0].0))
    }

    /// Time of an exchange from `at` on that is in no window.
    pub(in crate::medium) fn outside(&self, at: Instant, exchange: Span) -> Span {
        let (mut period, _) = self.split(at);
        let end = at.nanos() + exchange.nanos();
        let mut inside = 0;
        while period < end {
            for &(from, until) in &self.windows {
                inside += (period + until).min(end).saturating_sub((period + from).max(at.nanos()));
            }
            period += self.period;
        }
        exchange.saturating_sub(Span::from_nanos(inside))
    }

    /// True if a window begins at `at`.
    pub(super) fn begins(&self, at: Instant) -> bool {
        let (_, offset) = self.split(at);
        self.windows.iter().any(|&(from, _)| from == offset)
    }

    /// Start of the period that `at` is in, and the time since then.
    fn split(&self, at: Instant) -> (u64, u64) {
        let offset = at.nanos() % self.period;
        (at.nanos() - offset, offset)
    }
}
