//! Grants of slices, and the state of their police.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::medium::phy::Channel;
use crate::medium::types::RadioId;
use crate::time::{Instant, Span};

/// Most records of a slice; later ones are only counted.
pub(super) const RECORDS: usize = 1_024;

/// Most names that slices may claim by announcing them.
pub(super) const CLAIMS: usize = 256;

/// The grant of a slice, for one of its radios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policed {
    /// Name of the slice.
    pub slice: String,
    /// Numbers of its channels.
    pub channels: Vec<u16>,
    /// Largest transmit power in dBm.
    pub power_dbm: Option<f64>,
    /// SSIDs that belong to the slice.
    pub ssids: Vec<String>,
    /// Weight of the slice in the airtime of its channel, 1 to 1000; `None` for contention without
    /// weights.
    #[serde(default)]
    pub airtime_weight: Option<u16>,
    /// Whether the slice has this radio now. Slices have one physical radio in turn if each has a
    /// radio here and one of them is assigned. The others neither send nor receive.
    #[serde(default = "yes")]
    pub assigned: bool,
    /// What follows a violation.
    pub police: Police,
}

pub(super) const fn yes() -> bool {
    true
}

/// What follows a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Police {
    /// It is recorded.
    Watch,
    /// It is recorded, and the frame is not transmitted.
    Enforce,
    /// The same; after so many the radio is turned off for good.
    Cut(u32),
}

/// What a transmission violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violated {
    /// The channel is not one of the grant.
    Channel,
    /// The power is above that of the grant.
    Power,
    /// The transmitter address is that of another radio.
    Address,
    /// The SSID belongs to another slice.
    Ssid,
    /// The BSSID belongs to another slice.
    Bssid,
    /// The frame exchange does not fit into the slots of the slice.
    Slot,
}

impl Violated {
    /// Name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Power => "power",
            Self::Address => "address",
            Self::Ssid => "ssid",
            Self::Bssid => "bssid",
            Self::Slot => "slot",
        }
    }
}

/// Transmissions of one radio that violated its grant in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The radio.
    pub radio: RadioId,
    /// What was violated.
    pub what: Violated,
    /// When the first and the last transmission began, or was refused.
    pub from: Instant,
    /// See `from`.
    pub until: Instant,
    /// Number of transmissions.
    pub frames: u64,
    /// By how much: MHz from the nearest channel of the grant, dB above its power, the longest time
    /// of one exchange outside of the slots in microseconds; 0 otherwise.
    pub amount: f64,
    /// The channel of the transmissions.
    pub channel: Channel,
    /// The slice whose name was used, by number.
    pub(super) owner: Option<u16>,
}

/// Use of a channel by a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelUse {
    /// The channel.
    pub channel: Channel,
    /// Sum of the lengths of its frames.
    pub sent: Span,
    /// Number of frames.
    pub frames: u64,
}

/// The state of a radio that belongs to a slice.
#[derive(Clone, Debug)]
pub(in crate::medium) struct Policer {
    pub(in crate::medium) slice: u16,
    pub(super) channels: Vec<Channel>,
    pub(super) power_dbm: f64,
    pub(super) police: Police,
    /// See [`Policed::assigned`].
    pub(in crate::medium) assigned: bool,
    pub(super) violations: u64,
    /// Turned off by [`Police::Cut`].
    pub(super) cut: bool,
    /// The latest record, of its slice.
    pub(in crate::medium) latest: Option<usize>,
    pub(super) uses: Vec<ChannelUse>,
}

/// A slice with a radio on the medium.
pub(in crate::medium) struct Tenant {
    pub(in crate::medium) name: String,
    pub(super) channels: Vec<Channel>,
    /// Its violations, at most [`RECORDS`].
    pub(in crate::medium) records: Vec<Violation>,
    /// Its transmissions that violated the grant and are in no record.
    pub(in crate::medium) unrecorded: u64,
}

/// What the medium knows of its slices.
#[derive(Default)]
pub(in crate::medium) struct Registry {
    pub(in crate::medium) tenants: Vec<Tenant>,
    pub(super) ssids: BTreeMap<Vec<u8>, u16>,
    pub(super) cells: BTreeMap<[u8; 6], u16>,
}

/// A finding: what is violated, by how much, and whose name was used.
pub(super) type Finding = (Violated, f64, Option<u16>);

impl Policer {
    pub(super) fn finding(&self, channel: Channel, power_dbm: f64) -> Option<Finding> {
        if !self.channels.contains(&channel) {
            let apart = self.channels.iter().map(|granted| granted.mhz.abs_diff(channel.mhz)).min();
            return Some((Violated::Channel, f64::from(apart.unwrap_or(0)), None));
        }
        let above = power_dbm - self.power_dbm;
        (above > 0.0).then_some((Violated::Power, above, None))
    }

    /// Counts a transmission on a channel.
    pub(in crate::medium) fn use_channel(&mut self, channel: Channel, length: Span) {
        let known = self.uses.iter().position(|used| used.channel == channel);
        let at = known.unwrap_or_else(|| {
            self.uses.push(ChannelUse { channel, sent: Span::ZERO, frames: 0 });
            self.uses.len() - 1
        });
        self.uses[at].sent += length;
        self.uses[at].frames += 1;
    }
}

impl Registry {
    pub(super) fn number(&mut self, name: &str, channels: &[Channel]) -> u16 {
        let known = self.tenants.iter().position(|tenant| tenant.name == name);
        let at = known.unwrap_or_else(|| {
            let (name, channels, records) = (name.to_owned(), Vec::new(), Vec::new());
            self.tenants.push(Tenant { name, channels, records, unrecorded: 0 });
            self.tenants.len() - 1
        });
        let tenant = &mut self.tenants[at];
        channels.clone_into(&mut tenant.channels);
        tenant.records.reserve_exact(RECORDS - tenant.records.len());
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// The other slice that owns an announced SSID or BSSID; claims what nobody owns.
    pub(super) fn announced(&mut self, slice: u16, ssid: &[u8], bssid: [u8; 6]) -> Option<(Violated, u16)> {
        if !ssid.is_empty() {
            match self.ssids.get(ssid) {
                Some(&owner) if owner != slice => return Some((Violated::Ssid, owner)),
                None if self.ssids.len() < CLAIMS => {
                    self.ssids.insert(ssid.to_vec(), slice);
                }
                _ => {}
            }
        }
        match self.cells.get(&bssid) {
            Some(&owner) if owner != slice => return Some((Violated::Bssid, owner)),
            None if self.cells.len() < CLAIMS => {
                self.cells.insert(bssid, slice);
            }
            _ => {}
        }
        None
    }
}
