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

use crate::calendar::Class;
use crate::medium::settings::radio::RadioSettings;
use crate::medium::slices::hops::HopSettings;
use crate::medium::slices::periodic::Table;
use crate::medium::slices::slots::SlotSettings;
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// The windows of a radio: the times that are in a window of every table.
#[derive(Clone, Debug)]
pub(in crate::medium) struct Windows(Vec<Table>);

impl Windows {
    /// The windows that these settings hold a radio to; `None` if it starts exchanges at any time.
    pub(in crate::medium) fn of(settings: &RadioSettings) -> Option<Box<Self>> {
        let slots = settings.slots.as_ref().filter(|slots| slots.hold).map(SlotSettings::windows);
        Self::common([slots, settings.hops.as_ref().map(HopSettings::windows)].into_iter().flatten())
    }

    /// The windows that all tables have in common; `None` without a table.
    fn common(tables: impl IntoIterator<Item = Table>) -> Option<Box<Self>> {
        let tables: Vec<Table> = tables.into_iter().collect();
        (!tables.is_empty()).then(|| Box::new(Self(tables)))
    }

    /// The end of the window that `at` is in, if it is in one.
    pub(in crate::medium) fn window_end(&self, at: Instant) -> Option<Instant> {
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
    pub(in crate::medium) fn watch_windows(&mut self, radio: u32) {
        let now = self.core.now;
        let state = &self.core.radios[radio as usize];
        let Some(windows) = &state.hold.windows else { return };
        let event = Event::Window { radio, epoch: state.hold.window_epoch };
        self.core.calendar.push(windows.next_edge(now), Class::Timer, radio, event);
    }

    /// A window of a radio begins or ends.
    pub(in crate::medium) fn window_edge(&mut self, radio: u32, epoch: u32) {
        let state = &self.core.radios[radio as usize];
        if state.hold.window_epoch == epoch && state.switched_on {
            self.open_or_close(radio);
            self.watch_windows(radio);
        }
    }

    /// Follows the windows of a radio that was turned on; while it was off nobody did.
    pub(in crate::medium) fn resume_windows(&mut self, index: usize) {
        if self.core.radios[index].hold.windows.is_some() {
            let radio = u32::try_from(index).unwrap_or(u32::MAX);
            self.core.radios.awake(index).hold.window_epoch += 1;
            self.open_or_close(radio);
            self.watch_windows(radio);
        }
    }

    /// Gives a radio other slots from now on. An exchange in progress goes on to its end.
    pub(in crate::medium) fn set_slots(&mut self, index: usize, slots: Option<&SlotSettings>) {
        self.wake(index);
        let now = self.core.now;
        let state = self.core.radios.awake(index);
        state.settings.slots = slots.cloned();
        state.hold.windows = Windows::of(&state.settings);
        state.hold.watched = slots.filter(|slots| !slots.hold).map(SlotSettings::windows);
        state.hold.window_epoch += 1;
        // Frames that did not fit into the old slots are tried anew.
        state.hold.in_window = false;
        state.recount(now);
        let radio = u32::try_from(index).unwrap_or(u32::MAX);
        self.move_to_group(index);
        self.open_or_close(radio);
        self.watch_windows(radio);
    }

    /// Lets a radio contend in its windows only.
    fn open_or_close(&mut self, radio: u32) {
        let now = self.core.now;
        let state = self.core.radios.awake(radio as usize);
        let windows = state.hold.windows.as_ref();
        let open = windows.is_none_or(|windows| windows.window_end(now).is_some());
        if open && (!state.hold.in_window || windows.is_some_and(|windows| windows.begins(now))) {
            // The channel is sensed anew in the window.
            state.contention.free_since = state.contention.free_since.max(now);
            for lane in &mut state.contention.lanes {
                lane.deferred = false;
            }
            if state.hold.in_window {
                state.restart(now);
            }
        }
        state.hold.in_window = open;
        state.recount(now);
        state.set_access();
        self.core.arm(radio as usize);
    }

    /// True if an exchange of this length must wait for the radio's next window.
    pub(in crate::medium) fn must_wait(&self, index: usize, now: Instant, exchange: Span) -> bool {
        let Some(windows) = &self.core.radios[index].hold.windows else { return false };
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
        let windows = Windows::common([slots, dwells]).expect("two tables");
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
        assert!(Windows::common([]).is_none());
    }
}
