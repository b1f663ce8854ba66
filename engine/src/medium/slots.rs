//! Time division: a radio starts exchanges only in its own slots.
//!
//! Time is divided into frames of [`SlotSettings::frame`] slots of [`SlotSettings::length_ns`] each,
//! from the start of the engine's time. Adjacent own slots are one *window*. Each window ends
//! [`SlotSettings::guard_ns`] before the end of its last slot.
//!
//! Within a window the radio contends as always (802.11-2020 10.3). At its start the radio senses
//! the channel for an AIFS before it counts; a backoff is suspended outside of windows and goes on in
//! the next one. When a backoff ends, the whole exchange (request and clear to send, all fragments
//! and acknowledgments) has to fit into the rest of the window. If it does not, the frame waits for the
//! next window with a new backoff of the same contention window. A transmission opportunity ends
//! with the last exchange that fits. Responses are sent at any time: those that ask for them keep to
//! their own slots.
//!
//! A radio that does not [hold](SlotSettings::hold) its frames contends at any time, and each of its
//! exchanges that does not fit into a window is a violation of its slice's grant
//! ([`super::Violated::Slot`]) by the time outside of all windows.
//!
//! The share of the channel of a radio with `k` of `n` slots in `w` windows is
//! `(k * length - w * guard) / (n * length)`, less the rests in which no exchange fits.

use serde::{Deserialize, Serialize};

use super::{Event, Medium};
use crate::calendar::Class;
use crate::time::{Instant, Span};

/// The slots of a radio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotSettings {
    /// Slots in a frame, 1 to 256.
    pub frame: u16,
    /// Length of a slot in nanoseconds, up to 10 s.
    pub length_ns: u64,
    /// Silence at the end of each window in nanoseconds, less than a slot.
    pub guard_ns: u64,
    /// Numbers of the radio's own slots from 0, ascending; at least one.
    pub own: Vec<u16>,
    /// Frames wait for the radio's slots; otherwise the police is told of those that do not.
    #[serde(default = "holds")]
    pub hold: bool,
}

const fn holds() -> bool {
    true
}

/// Longest slot in nanoseconds.
const LONGEST_NS: u64 = 10_000_000_000;

impl SlotSettings {
    /// The first setting that is out of range, with its value and its range.
    pub(super) fn flaw(&self) -> Option<(&'static str, String, &'static str)> {
        if !(1..=256).contains(&self.frame) {
            return Some(("slots.frame", self.frame.to_string(), "1 to 256"));
        }
        if !(1..=LONGEST_NS).contains(&self.length_ns) {
            return Some(("slots.length", format!("{} ns", self.length_ns), "1 ns to 10 s"));
        }
        if self.guard_ns >= self.length_ns {
            return Some(("slots.guard", format!("{} ns", self.guard_ns), "less than a slot"));
        }
        let ascends = self.own.windows(2).all(|pair| pair[0] < pair[1]);
        if self.own.is_empty() || !ascends || self.own.iter().any(|&slot| slot >= self.frame) {
            return Some(("slots.own", format!("{:?}", self.own), "numbers of slots, ascending"));
        }
        None
    }
}

/// The windows of a radio.
#[derive(Clone, Debug)]
pub(super) struct SlotTable {
    period: u64,
    /// Start and end of each window in nanoseconds from the start of a frame.
    windows: Vec<(u64, u64)>,
    hold: bool,
}

impl SlotTable {
    pub(super) fn new(settings: &SlotSettings) -> Self {
        let mut windows: Vec<(u64, u64)> = Vec::new();
        for &slot in &settings.own {
            let from = u64::from(slot) * settings.length_ns;
            let until = from + settings.length_ns;
            match windows.last_mut() {
                Some(last) if last.1 == from => last.1 = until,
                _ => windows.push((from, until)),
            }
        }
        for window in &mut windows {
            window.1 -= settings.guard_ns;
        }
        Self { period: u64::from(settings.frame) * settings.length_ns, windows, hold: settings.hold }
    }

    /// The end of the window that `at` is in, if it is in one.
    pub(super) fn window_end(&self, at: Instant) -> Option<Instant> {
        let (start, offset) = (at.nanos() - at.nanos() % self.period, at.nanos() % self.period);
        let inside = |&&(from, until): &&(u64, u64)| (from..until).contains(&offset);
        self.windows.iter().find(inside).map(|&(_, until)| Instant::from_nanos(start + until))
    }

    /// True if an exchange may begin at `at`.
    pub(super) fn admits(&self, at: Instant) -> bool {
        !self.hold || self.window_end(at).is_some()
    }

    /// Time of an exchange from `at` on that is in no window.
    fn outside(&self, at: Instant, exchange: Span) -> Span {
        let (start, offset) = (at.nanos() - at.nanos() % self.period, at.nanos());
        let end = offset + exchange.nanos();
        let mut inside = 0;
        let mut frame = start;
        while frame < end {
            for &(from, until) in &self.windows {
                inside += (frame + until).min(end).saturating_sub((frame + from).max(offset));
            }
            frame += self.period;
        }
        exchange.saturating_sub(Span::from_nanos(inside))
    }

    /// When a window next begins or ends, after `at`.
    fn next_edge(&self, at: Instant) -> Instant {
        let (start, offset) = (at.nanos() - at.nanos() % self.period, at.nanos() % self.period);
        let edges = self.windows.iter().flat_map(|&(from, until)| [from, until]);
        let next = edges.filter(|&edge| edge > offset).min();
        Instant::from_nanos(start + next.unwrap_or(self.period + self.windows[0].0))
    }
}

/// Whether an exchange fits into the windows of its radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It does, or the radio has no slots.
    Fits,
    /// It does not, and waits for the next window.
    Waits,
    /// It does not, by this time; the radio does not wait.
    Exceeds(Span),
}

impl Medium {
    /// Schedules the next edge of a radio's windows.
    pub(super) fn watch_slots(&mut self, radio: u32) {
        let now = self.now;
        let state = &self.radios[radio as usize];
        let Some(table) = state.slots.as_ref().filter(|table| table.hold) else { return };
        let event = Event::Slot { radio, epoch: state.slot_epoch };
        self.calendar.push(table.next_edge(now), Class::Timer, radio, event);
    }

    /// Gives a radio other slots from now on. An exchange in progress goes on to its end.
    pub(super) fn set_slots(&mut self, index: usize, slots: Option<&SlotSettings>) {
        self.wake(index);
        let state = &mut self.radios[index];
        state.slots = slots.map(|slots| Box::new(SlotTable::new(slots)));
        state.settings.slots = slots.cloned();
        state.slot_epoch += 1;
        let radio = u32::try_from(index).unwrap_or(u32::MAX);
        // Frames that did not fit into the old slots are tried anew.
        state.in_window = false;
        state.recount(self.now);
        self.move_to_group(index);
        self.open_or_close(radio);
        self.watch_slots(radio);
    }

    /// A window of a radio begins or ends.
    pub(super) fn slot_edge(&mut self, radio: u32, epoch: u32) {
        if self.radios[radio as usize].slot_epoch == epoch {
            self.open_or_close(radio);
            self.watch_slots(radio);
        }
    }

    /// Lets a radio contend in its windows only.
    fn open_or_close(&mut self, radio: u32) {
        let now = self.now;
        let state = &mut self.radios[radio as usize];
        let open = state.slots.as_ref().is_none_or(|table| table.admits(now));
        if open && !state.in_window {
            // The channel is sensed anew in the window.
            state.free_since = state.free_since.max(now);
            for lane in &mut state.lanes {
                lane.deferred = false;
            }
        }
        state.in_window = open;
        state.recount(now);
        state.set_access();
        self.timers.set(radio as usize, self.radios[radio as usize].next_at());
    }

    /// Whether an exchange of this length that would begin now fits into the radio's windows.
    pub(super) fn fit(&self, index: usize, now: Instant, exchange: Span) -> Fit {
        match &self.radios[index].slots {
            None => Fit::Fits,
            Some(table) if table.window_end(now).is_some_and(|end| now + exchange <= end) => Fit::Fits,
            Some(table) if table.hold => Fit::Waits,
            Some(table) => Fit::Exceeds(table.outside(now, exchange)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(own: &[u16]) -> SlotTable {
        SlotTable::new(&SlotSettings {
            frame: 4,
            length_ns: 1_000,
            guard_ns: 100,
            own: own.to_vec(),
            hold: true,
        })
    }

    #[test]
    fn adjacent_slots_are_one_window() {
        let table = table(&[0, 1, 3]);
        let end = |at| table.window_end(Instant::from_nanos(at)).map(Instant::nanos);
        assert_eq!(end(0), Some(1_900));
        assert_eq!(end(1_899), Some(1_900));
        assert_eq!(end(1_900), None);
        assert_eq!(end(2_999), None);
        assert_eq!(end(3_000), Some(3_900));
        assert_eq!(end(4_000), Some(5_900));
        assert_eq!(end(7_950), None);
    }

    #[test]
    fn the_time_outside_of_all_windows_is_exact() {
        let table = table(&[0, 1, 3]);
        let outside = |at, long| table.outside(Instant::from_nanos(at), Span::from_nanos(long)).nanos();
        assert_eq!(outside(0, 1_900), 0);
        assert_eq!(outside(1_899, 1), 0);
        assert_eq!(outside(1_899, 2), 1);
        assert_eq!(outside(2_000, 500), 500);
        assert_eq!(outside(2_950, 100), 50);
        // Three frames have 9 us with a guard of 100 ns in two windows each.
        assert_eq!(outside(0, 12_000), 3 * 1_200);
    }

    #[test]
    fn edges_follow_one_another() {
        let table = table(&[1, 3]);
        let mut at = Instant::from_nanos(0);
        let edges: Vec<u64> = core::iter::repeat_with(|| {
            at = table.next_edge(at);
            at.nanos()
        })
        .take(6)
        .collect();
        assert_eq!(edges, [1_000, 1_900, 3_000, 3_900, 5_000, 5_900]);
    }

    #[test]
    fn flaws_are_named() {
        let good = SlotSettings { frame: 4, length_ns: 1_000, guard_ns: 100, own: vec![0, 2], hold: true };
        assert_eq!(good.flaw(), None);
        let flaw = |settings: SlotSettings| settings.flaw().map(|(name, ..)| name);
        assert_eq!(flaw(SlotSettings { frame: 0, ..good.clone() }), Some("slots.frame"));
        assert_eq!(flaw(SlotSettings { length_ns: 0, ..good.clone() }), Some("slots.length"));
        assert_eq!(flaw(SlotSettings { guard_ns: 1_000, ..good.clone() }), Some("slots.guard"));
        for own in [vec![], vec![1, 1], vec![2, 1], vec![4]] {
            assert_eq!(flaw(SlotSettings { own, ..good.clone() }), Some("slots.own"));
        }
    }
}
