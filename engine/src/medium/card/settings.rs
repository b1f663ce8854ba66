//! Settings and counters of a card.

use serde::{Deserialize, Serialize};

use crate::medium::settings::error::SettingsError;

/// A physical radio that several radios share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CardSettings {
    /// The most virtual MACs that the card has, 1 to 64.
    pub virtual_macs: u32,
    /// Time on a channel before the card serves the next one, in nanoseconds, 1 ms to 500 ms.
    pub dwell_ns: u64,
    /// Time of a switch to another channel, in nanoseconds, up to 100 ms.
    pub switch_ns: u64,
    /// Before the card leaves a channel, its stations tell their access points that they doze, and
    /// after its return that they are awake.
    pub power_save: bool,
    /// Greatest age of results that answer the scan of a virtual MAC, in nanoseconds, up to 60 s; 0
    /// if none do.
    pub scan_age_ns: u64,
    /// A virtual MAC's scan of a channel is answered by what another one receives there at the same
    /// time.
    pub merge_scans: bool,
}

impl Default for CardSettings {
    fn default() -> Self {
        Self {
            virtual_macs: 4,
            dwell_ns: 40_000_000,
            switch_ns: 1_000_000,
            power_save: true,
            scan_age_ns: 1_000_000_000,
            merge_scans: true,
        }
    }
}

impl CardSettings {
    /// Checks every setting of the card called `card`.
    ///
    /// # Errors
    /// Names the first invalid setting.
    pub fn validate(&self, card: &str) -> Result<(), SettingsError> {
        let range = |setting, value: u64, allowed: core::ops::RangeInclusive<u64>, range| {
            if allowed.contains(&value) {
                return Ok(());
            }
            Err(SettingsError::Card { card: card.to_owned(), setting, value: value.to_string(), range })
        };
        range("virtual_macs", u64::from(self.virtual_macs), 1..=64, "1 to 64")?;
        range("dwell_ns", self.dwell_ns, 1_000_000..=500_000_000, "1 ms to 500 ms, in nanoseconds")?;
        range("switch_ns", self.switch_ns, 0..=100_000_000, "0 to 100 ms, in nanoseconds")?;
        range("scan_age_ns", self.scan_age_ns, 0..=60_000_000_000, "0 to 60 s, in nanoseconds")
    }
}

/// Counters of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardCounts {
    /// Switches to another channel.
    pub switches: u64,
    /// Time spent on them, in nanoseconds.
    pub switching_ns: u64,
    /// Visits to a channel for a scan.
    pub visits: u64,
    /// Internal collisions: a virtual MAC gave way to another one of its card.
    pub collisions: u64,
    /// Requests for the scan of a channel.
    pub scans_asked: u64,
    /// Of these, those answered by the scan of another virtual MAC at the same time.
    pub scans_merged: u64,
    /// Of these, those answered from the cache.
    pub scans_cached: u64,
    /// Results (beacons and probe responses) passed on for requests that were not sent.
    pub scan_results: u64,
    /// Sum of the ages of these results, in nanoseconds.
    pub scan_age_ns: u64,
    /// Greatest age of such a result, in nanoseconds.
    pub scan_oldest_ns: u64,
    /// Time in which at least one virtual MAC was on and all of those dozed, in nanoseconds.
    pub asleep_ns: u64,
}
