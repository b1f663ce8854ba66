//! Transmission windows: the times in which a radio starts exchanges.
//!
//! Time slots ([`super::slots`]) and the dwells of frequency hopping ([`super::hops`]) are tables of
//! windows that repeat from the start of the engine's time. A radio with both is in a window while it
//! is in a window of each, and that window ends with the first of them.
//!
//! Within a window the radio contends as always (802.11-2020 10.3). At its start the radio senses
//! the channel for an AIFS before it counts; a backoff is suspended outside of windows and goes on in
//! the next one. When a backoff ends, the whole exchange (request and clear to send, all fragments
//! and acknowledgments) has to fit into the rest of the window. If it does not, the frame waits for the
//! next window with a new backoff of the same contention window. A transmission opportunity ends
//! with the last exchange that fits. Responses are sent at any time: those that ask for them keep to
//! their own windows.

use super::{Event, Medium};
use crate::calendar::Class;
use crate::time::{Instant, Span};

/// Windows that repeat.
#[derive(Clone, Debug)]
pub(super) struct Table {
    period: u64,
    /// Start and end of each window in nanoseconds from the start of a period; ascending, at least
    /// one.
    windows: Vec<(u64, u64)>,
}

impl Table {
    pub(super) fn new(period: u64, windows: Vec<(u64, u64)>) -> Self {
        Self { period, windows }
    }

    /// The end of the window that `at` is in, if it is in one.
    pub(super) fn window_end(&self, at: Instant) -> Option<Instant> {
        let (start, offset) = self.split(at);
        let inside = |&&(from, until): &&(u64, u64)| (from..until).contains(&offset);
        self.windows.iter().find(inside).map(|&(_, until)| Instant::from_nanos(start + until))
    }

    /// When a window next begins or ends, after `at`.
    pub(super) fn next_edge(&self, at: Instant) -> Instant {
        let (start, offset) = self.split(at);
        let edges = self.windows.iter().flat_map(|&(from, until)| [from, until]);
        let next = edges.filter(|&edge| edge > offset).min();
        Instant::from_nanos(start + next.unwrap_or(self.period + self.windows[0].0))
    }

    /// True if a window begins at `at`.
    fn begins(&self, at: Instant) -> bool {
        let (_, offset) = self.split(at);
        self.windows.iter().any(|&(from, _)| from == offset)
    }

    /// Start of the period that `at` is in, and the time since then.
    fn split(&self, at: Instant) -> (u64, u64) {
        let offset = at.nanos() % self.period;
        (at.nanos() - offset, offset)
    }
}

/// The windows of a radio: the times that are in a window of every table.
#[derive(Clone, Debug)]
pub(super) struct Windows(Vec<Table>);

impl Windows {
    /// The windows of these tables; `None` without a table: the radio starts exchanges at any time.
    pub(super) fn of(tables: impl IntoIterator<Item = Table>) -> Option<Box<Self>> {
        let tables: Vec<Table> = tables.into_iter().collect();
        (!tables.is_empty()).then(|| Box::new(Self(tables)))
    }

    /// The end of the window that `at` is in, if it is in one.
    pub(super) fn window_end(&self, at: Instant) -> Option<Instant> {
        let ends = self.0.iter().map(|table| table.window_end(at));
        ends.reduce(|first, next| Some(first?.min(next?))).flatten()
    }

    /// When a window of a table next begins or ends, after `at`.
    fn next_edge(&self, at: Instant) -> Instant {
        self.0.iter().map(|table| table.next_edge(at)).min().unwrap_or(Instant::NEVER)
    }

    /// True if the radio's window begins at `at`; the last one may end at the same time.
    fn begins(&self, at: Instant) -> bool {
        self.window_end(at).is_some() && self.0.iter().any(|table| table.begins(at))
    }
}

impl Medium {
    /// Schedules the next edge of a radio's windows.
    pub(super) fn watch_windows(&mut self, radio: u32) {
        let now = self.now;
        let Some(windows) = &self.radios[radio as usize].windows else { return };
        let at = windows.next_edge(now);
        self.calendar.push(at, Class::Timer, radio, Event::Window { radio });
    }

    /// A window of a radio begins or ends.
    pub(super) fn window_edge(&mut self, radio: u32) {
        let now = self.now;
        let state = &mut self.radios[radio as usize];
        let Some(windows) = &state.windows else { return };
        let open = windows.window_end(now).is_some();
        if open && (!state.in_window || windows.begins(now)) {
            // The channel is sensed anew in the window.
            state.free_since = state.free_since.max(now);
            for lane in &mut state.lanes {
                lane.deferred = false;
            }
            if state.in_window {
                state.restart(now);
            }
        }
        state.in_window = open;
        state.recount(now);
        state.set_access();
        self.timers.set(radio as usize, self.radios[radio as usize].next_at());
        self.watch_windows(radio);
    }

    /// True if an exchange of this length must wait for the radio's next window.
    pub(super) fn must_wait(&self, index: usize, now: Instant, exchange: Span) -> bool {
        let Some(windows) = &self.radios[index].windows else { return false };
        windows.window_end(now).is_none_or(|end| now + exchange > end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_of_two_tables_are_those_that_both_have() {
        let slots = Table::new(4_000, vec![(0, 1_900), (3_000, 3_900)]);
        let dwells = Table::new(700, vec![(0, 600)]);
        let windows = Windows::of([slots, dwells]).expect("two tables");
        let end = |at| windows.window_end(Instant::from_nanos(at)).map(Instant::nanos);
        assert_eq!(end(0), Some(600));
        assert_eq!(end(600), None);
        assert_eq!(end(1_400), Some(1_900));
        assert_eq!(end(2_100), None);
        assert_eq!(end(3_000), Some(3_400));
        assert_eq!(end(4_200), Some(4_800));
        assert!(windows.begins(Instant::from_nanos(700)));
        assert!(!windows.begins(Instant::from_nanos(2_100)), "outside of the slots");
        let mut at = Instant::from_nanos(0);
        let edges: Vec<u64> = core::iter::repeat_with(|| {
            at = windows.next_edge(at);
            at.nanos()
        })
        .take(7)
        .collect();
        assert_eq!(edges, [600, 700, 1_300, 1_400, 1_900, 2_000, 2_100]);
        assert!(Windows::of([]).is_none());
    }
}
