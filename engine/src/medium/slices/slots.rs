//! Time division: a radio starts exchanges only in its own slots.
//!
//! Time is divided into frames of [`SlotSettings::frame`] slots of [`SlotSettings::length_ns`] each,
//! from the start of the engine's time. Adjacent own slots are one window ([`super::windows`]). Each
//! window ends [`SlotSettings::guard_ns`] before the end of its last slot.
//!
//! A radio that does not [hold](SlotSettings::hold) its frames contends at any time, and each of its
//! exchanges that does not fit into a window is a violation of its slice's grant
//! ([`crate::medium::Violated::Slot`]) by the time outside of all windows.
//!
//! The share of the channel of a radio with `k` of `n` slots in `w` windows is
//! `(k * length - w * guard) / (n * length)`, less the rests in which no exchange fits.

use serde::{Deserialize, Serialize};

use crate::medium::slices::periodic::{LENGTHS, LENGTHS_NS, Table};

/// The slots of a radio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotSettings {
    /// Slots in a frame, 1 to 256.
    pub frame: u16,
    /// Length of a slot in nanoseconds, 100 us to 10 s.
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

impl SlotSettings {
    /// The first setting that is out of range, with its value and its range.
    pub(in crate::medium) fn flaw(&self) -> Option<(&'static str, String, &'static str)> {
        if !(1..=256).contains(&self.frame) {
            return Some(("slots.frame", self.frame.to_string(), "1 to 256"));
        }
        if !LENGTHS_NS.contains(&self.length_ns) {
            return Some(("slots.length", format!("{} ns", self.length_ns), LENGTHS));
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

    /// The windows of these slots.
    pub(in crate::medium) fn windows(&self) -> Table {
        let mut windows: Vec<(u64, u64)> = Vec::new();
        for &slot in &self.own {
            let from = u64::from(slot) * self.length_ns;
            let until = from + self.length_ns;
            match windows.last_mut() {
                Some(last) if last.1 == from => last.1 = until,
                _ => windows.push((from, until)),
            }
        }
        for window in &mut windows {
            window.1 -= self.guard_ns;
        }
        Table::new(u64::from(self.frame) * self.length_ns, windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Instant, Span};

    fn table(own: &[u16]) -> Table {
        SlotSettings { frame: 4, length_ns: 1_000, guard_ns: 100, own: own.to_vec(), hold: true }.windows()
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
        // Three frames of 4 us with 100 ns, 1 us and 100 ns outside of the windows.
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
        let good = SlotSettings { frame: 4, length_ns: 100_000, guard_ns: 100, own: vec![0, 2], hold: true };
        assert_eq!(good.flaw(), None);
        let flaw = |settings: SlotSettings| settings.flaw().map(|(name, ..)| name);
        assert_eq!(flaw(SlotSettings { frame: 0, ..good.clone() }), Some("slots.frame"));
        for length_ns in [0, 1, 99_999] {
            assert_eq!(flaw(SlotSettings { length_ns, ..good.clone() }), Some("slots.length"));
        }
        assert_eq!(flaw(SlotSettings { guard_ns: 100_000, ..good.clone() }), Some("slots.guard"));
        for own in [vec![], vec![1, 1], vec![2, 1], vec![4]] {
            assert_eq!(flaw(SlotSettings { own, ..good.clone() }), Some("slots.own"));
        }
    }
}
