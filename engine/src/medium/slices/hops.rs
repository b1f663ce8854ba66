//! Frequency hopping: radios change their channel in step, by sequences.
//!
//! Time is divided into dwells of [`HopSettings::dwell_ns`], from the start of the engine's time. In
//! dwell `n` a radio is on the channel with the index
//!
//! ```text
//! (sequence + step * n) mod N
//! ```
//!
//! of the `N` channels of its set. A set is a list of channels and a step; its sequences are numbered
//! from 0 to `N - 1`. The step has no common divisor with `N`, so that each sequence uses each channel
//! in one of `N` dwells.
//!
//! *Within a set* two sequences differ by the same index in every dwell: they never meet. *Between two
//! sets* with the same channels and dwells and with steps `s` and `t`, sequences `j` and `k` meet in the
//! dwells with `(s - t) n = k - j (mod N)`: with `g` the greatest common divisor of `s - t` and `N`,
//! that is a share of `g / N` of all dwells if `g` divides `k - j`, and of 0 otherwise. For a prime `N`
//! any two sequences of different sets meet in one of `N` dwells. These are the linear congruences
//! from which prime sequences are built as well (Shaar and Davies, "Prime sequences: quasi-optimal
//! sequences for OR channel code division multiplexing", 1983; not checked: the formulas are derived
//! here and tested by counting).
//!
//! All radios with dwells of one length change their channels in one event. A radio is silent for
//! [`HopSettings::switch_ns`] at the end of each dwell: its dwells are windows ([`super::windows`]), in
//! which whole exchanges have to fit. The share of the time in which a radio can be in an exchange is
//! `(dwell - switch) / dwell`, less the rests in which no exchange fits.

use serde::{Deserialize, Serialize};

use crate::calendar::Class;
use crate::medium::phy::Channel;
use crate::medium::slices::periodic::{LENGTHS, LENGTHS_NS, Table};
use crate::medium::{Event, Medium};
use crate::time::Instant;

/// The hopping sequence of a radio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopSettings {
    /// Numbers of the channels of the set, 2 to 79, all different.
    pub channels: Vec<u16>,
    /// Step of the set: by how many places of the list the sequences go on from dwell to dwell; 1 to
    /// the number of channels less 1, without a common divisor with that number.
    pub step: u16,
    /// Number of the sequence: the place of its first channel in the list, from 0.
    pub sequence: u16,
    /// Length of a dwell in nanoseconds, 100 us to 10 s.
    pub dwell_ns: u64,
    /// Silence at the end of each dwell, in which radios change the channel, in nanoseconds; less
    /// than a dwell.
    pub switch_ns: u64,
}

/// Most channels of a set.
const MOST: usize = 79;

impl HopSettings {
    /// The first setting that is out of range, with its value and its range.
    pub(in crate::medium) fn flaw(&self) -> Option<(&'static str, String, &'static str)> {
        let differ = (1..self.channels.len()).all(|at| !self.channels[..at].contains(&self.channels[at]));
        if !(2..=MOST).contains(&self.channels.len()) || !differ {
            let range = "2 to 79 channels, all different";
            return Some(("hops.channels", format!("{:?}", self.channels), range));
        }
        let count = u16::try_from(self.channels.len()).unwrap_or(u16::MAX);
        if self.step == 0 || self.step >= count || common_divisor(self.step, count) != 1 {
            let range = "1 to the number of channels less 1, without a common divisor with that number";
            return Some(("hops.step", self.step.to_string(), range));
        }
        if self.sequence >= count {
            let range = "0 to the number of channels less 1";
            return Some(("hops.sequence", self.sequence.to_string(), range));
        }
        if !LENGTHS_NS.contains(&self.dwell_ns) {
            return Some(("hops.dwell", format!("{} ns", self.dwell_ns), LENGTHS));
        }
        if self.switch_ns >= self.dwell_ns {
            return Some(("hops.switch", format!("{} ns", self.switch_ns), "less than a dwell"));
        }
        None
    }

    /// The windows of the dwells.
    pub(in crate::medium) fn windows(&self) -> Table {
        Table::new(self.dwell_ns, vec![(0, self.dwell_ns - self.switch_ns)])
    }

    /// Place in the list of the channel in the dwell that `at` is in.
    #[allow(clippy::cast_possible_truncation)] // below the number of channels
    fn place(&self, at: Instant) -> usize {
        let count = self.channels.len() as u64;
        let dwell = at.nanos() / self.dwell_ns % count;
        ((u64::from(self.sequence) + u64::from(self.step) * dwell) % count) as usize
    }
}

/// Greatest common divisor.
fn common_divisor(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The hopping sequence of a radio, with resolved channels.
#[derive(Clone, Debug)]
pub(in crate::medium) struct Sequence {
    settings: HopSettings,
    channels: Vec<Channel>,
}

impl Sequence {
    pub(in crate::medium) fn new(settings: &HopSettings, channels: Vec<Channel>) -> Box<Self> {
        Box::new(Self { settings: settings.clone(), channels })
    }

    /// The channel at this time.
    pub(in crate::medium) fn channel(&self, at: Instant) -> Channel {
        self.channels[self.settings.place(at)]
    }
}

/// The dwells of a medium's hopping radios.
#[derive(Default)]
pub(in crate::medium) struct Hopping {
    /// Their lengths in nanoseconds.
    dwells: Vec<u64>,
    /// The radios that hopped last; kept to reuse the allocation.
    hopped: Vec<usize>,
}

impl Medium {
    /// Schedules the end of the present dwell, if no other radio hops at that time.
    pub(in crate::medium) fn watch_hops(&mut self, radio: usize) {
        let Some(hops) = &self.core.radios[radio].hops else { return };
        let dwell = hops.settings.dwell_ns;
        if !self.hopping.dwells.contains(&dwell) {
            self.hopping.dwells.push(dwell);
            self.plan_hop(dwell);
        }
    }

    /// Tunes a hopping radio that was turned on to the channel of the present dwell.
    pub(in crate::medium) fn resume_hops(&mut self, radio: usize) {
        let Some(hops) = &self.core.radios[radio].hops else { return };
        let channel = hops.channel(self.core.now);
        self.dissolve_clusters();
        self.core.reach.places[radio].channel = channel;
        self.core.reach.power_changed(radio);
        self.core.reach.retuned();
        self.follow_channel(radio);
        self.soak(radio);
        self.watch_hops(radio);
    }

    fn plan_hop(&mut self, dwell: u64) {
        let at = Instant::from_nanos((self.core.now.nanos() / dwell + 1) * dwell);
        // Before windows begin.
        self.core.calendar.push(at, Class::Change, 0, Event::Hop { dwell });
    }

    /// A dwell begins: all radios with dwells of this length change their channels.
    pub(in crate::medium) fn hop(&mut self, dwell: u64) {
        let now = self.core.now;
        self.dissolve_clusters();
        let mut moved = core::mem::take(&mut self.hopping.hopped);
        moved.clear();
        for (index, radio) in self.core.radios.iter().enumerate() {
            let hops = radio.hops.as_ref().filter(|hops| hops.settings.dwell_ns == dwell);
            let Some(hops) = hops.filter(|_| radio.switched_on) else { continue };
            self.core.reach.places[index].channel = hops.channel(now);
            // The loss of its signal may differ at another frequency.
            self.core.reach.power_changed(index);
            moved.push(index);
        }
        if moved.is_empty() {
            // All radios with such dwells are off: the first to be turned on begins anew.
            self.hopping.dwells.retain(|&one| one != dwell);
            self.hopping.hopped = moved;
            return;
        }
        self.core.reach.retuned();
        for &index in &moved {
            self.end_receptions(index);
            self.follow_channel(index);
            self.soak(index);
        }
        self.hopping.hopped = moved;
        self.plan_hop(dwell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(count: u16, step: u16, sequence: u16) -> HopSettings {
        let channels = (1..=count).collect();
        HopSettings { channels, step, sequence, dwell_ns: 100_000, switch_ns: 100 }
    }

    /// Places of a sequence in the dwells of one period.
    fn places(count: u16, step: u16, sequence: u16) -> Vec<usize> {
        let settings = settings(count, step, sequence);
        assert_eq!(settings.flaw(), None);
        (0..u64::from(count))
            .map(|dwell| settings.place(Instant::from_nanos(dwell * 100_000 + 99_999)))
            .collect()
    }

    fn meetings(a: &[usize], b: &[usize]) -> usize {
        a.iter().zip(b).filter(|(a, b)| a == b).count()
    }

    fn steps(count: u16) -> impl Iterator<Item = u16> {
        (1..count).filter(move |&step| common_divisor(step, count) == 1)
    }

    #[test]
    fn a_sequence_uses_each_channel_once_in_a_period() {
        for count in 2..=24 {
            for step in steps(count) {
                let mut used = places(count, step, count - 1);
                used.sort_unstable();
                assert!(used.iter().copied().eq(0..usize::from(count)), "{count} {step}: {used:?}");
            }
        }
    }

    #[test]
    fn sequences_of_one_set_never_meet_and_those_of_two_meet_as_counted() {
        for count in 2..=13 {
            for (s, t) in steps(count).flat_map(|s| steps(count).map(move |t| (s, t))) {
                for (j, k) in (0..count).flat_map(|j| (0..count).map(move |k| (j, k))) {
                    let met = meetings(&places(count, s, j), &places(count, t, k));
                    let divisor = if s == t { count } else { common_divisor(s.abs_diff(t), count) };
                    let expected = if j.abs_diff(k) % divisor == 0 { divisor } else { 0 };
                    assert_eq!(met, usize::from(expected), "{count}: {s} {j}, {t} {k}");
                }
            }
        }
    }

    #[test]
    fn flaws_are_named() {
        let good = settings(6, 5, 5);
        assert_eq!(good.flaw(), None);
        let flaw = |settings: HopSettings| settings.flaw().map(|(name, ..)| name);
        for channels in [vec![], vec![1], vec![1, 2, 1], (1..=80).collect()] {
            assert_eq!(flaw(HopSettings { channels, ..good.clone() }), Some("hops.channels"));
        }
        for step in [0, 2, 3, 6, 7] {
            assert_eq!(flaw(HopSettings { step, ..good.clone() }), Some("hops.step"));
        }
        assert_eq!(flaw(HopSettings { sequence: 6, ..good.clone() }), Some("hops.sequence"));
        for dwell_ns in [0, 1, 99_999] {
            assert_eq!(flaw(HopSettings { dwell_ns, switch_ns: 0, ..good.clone() }), Some("hops.dwell"));
        }
        assert_eq!(flaw(HopSettings { dwell_ns: 10_000_000_001, ..good.clone() }), Some("hops.dwell"));
        assert_eq!(flaw(HopSettings { switch_ns: 100_000, ..good.clone() }), Some("hops.switch"));
    }
}
