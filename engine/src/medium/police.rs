//! Checks every transmission of a slice's radio against the grant of its slice.
//!
//! A transmission violates the grant if its channel is not one of the grant, if the radio's power is
//! above that of the grant, or if a frame of a node's own 802.11 stack uses a name of somebody else:
//! the transmitter address of another radio, or, in a beacon or a probe response, the SSID or BSSID
//! of another slice. So does a frame exchange outside of the slots, if the radio does not wait for
//! them. An SSID or BSSID that no slice was given belongs to the slice that announces it
//! first. A radio without a slice is not checked.
//!
//! A grant may change at an exact time ([`RadioChange::Grant`]). Transmissions that begin at or after
//! it are checked against the new one. With [`Policed::assigned`] it takes a radio from a slice, or
//! gives it one: until then the radio is off, whatever its node sets.
//!
//! Violations that follow each other within [`GAP`] at one radio, and differ in nothing but their
//! time, or the time outside of slots, are one [`Violation`] with a number of frames.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::header::{Header, Type};
use super::management::Management;
use super::phy::Channel;
use super::radio::{Answer, Kind, RadioId, Stage};
use super::settings::{SettingsError, tuned};
use super::{Event, Medium, Outside, RadioChange};
use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::time::{Instant, Span};

/// Longest time between two violations of one record.
const GAP: Span = Span::from_millis(100);
/// Most records; later ones are only counted.
const RECORDS: usize = 1_024;
/// Most names that slices may claim by announcing them.
const CLAIMS: usize = 256;

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

const fn yes() -> bool {
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
    owner: Option<u16>,
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
pub(super) struct Policer {
    slice: u16,
    channels: Vec<Channel>,
    power_dbm: f64,
    police: Police,
    /// See [`Policed::assigned`].
    pub(super) assigned: bool,
    violations: u64,
    /// Turned off by [`Police::Cut`].
    cut: bool,
    /// The latest record.
    latest: Option<usize>,
    uses: Vec<ChannelUse>,
}

/// A slice with a radio on the medium.
struct Tenant {
    name: String,
    channels: Vec<Channel>,
}

/// What the medium knows of its slices.
#[derive(Default)]
pub(super) struct Registry {
    tenants: Vec<Tenant>,
    records: Vec<Violation>,
    unrecorded: u64,
    ssids: BTreeMap<Vec<u8>, u16>,
    cells: BTreeMap<[u8; 6], u16>,
}

/// A finding: what is violated, by how much, and whose name was used.
type Finding = (Violated, f64, Option<u16>);

impl Policer {
    fn finding(&self, channel: Channel, power_dbm: f64) -> Option<Finding> {
        if !self.channels.contains(&channel) {
            let apart = self.channels.iter().map(|granted| granted.mhz.abs_diff(channel.mhz)).min();
            return Some((Violated::Channel, f64::from(apart.unwrap_or(0)), None));
        }
        let above = power_dbm - self.power_dbm;
        (above > 0.0).then_some((Violated::Power, above, None))
    }

    /// Counts a transmission on a channel.
    pub(super) fn use_channel(&mut self, channel: Channel, length: Span) {
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
    fn number(&mut self, name: &str, channels: &[Channel]) -> u16 {
        let known = self.tenants.iter().position(|tenant| tenant.name == name);
        let at = known.unwrap_or_else(|| {
            self.tenants.push(Tenant { name: name.to_owned(), channels: Vec::new() });
            self.tenants.len() - 1
        });
        channels.clone_into(&mut self.tenants[at].channels);
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// The other slice that owns an announced SSID or BSSID; claims what nobody owns.
    fn announced(&mut self, slice: u16, ssid: &[u8], bssid: [u8; 6]) -> Option<(Violated, u16)> {
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

impl Medium {
    /// Gives a radio to a slice, whose grant all its transmissions are checked against from now on.
    /// A second call replaces the grant. Call it before the radio has frames; a later grant is a
    /// [`RadioChange::Grant`].
    ///
    /// # Errors
    /// Names a channel that the radio does not have, or a weight out of range.
    pub fn police(&mut self, radio: RadioId, policed: &Policed) -> Result<(), SettingsError> {
        let channels = self.check_grant(radio, policed)?;
        let slice = self.registry.number(&policed.slice, &channels);
        for ssid in policed.ssids.iter().filter(|ssid| !ssid.is_empty()) {
            self.registry.ssids.entry(ssid.clone().into_bytes()).or_insert(slice);
        }
        self.registry.records.reserve_exact(RECORDS - self.registry.records.len());
        let power_dbm = policed.power_dbm.unwrap_or(f64::INFINITY);
        let old = self.radios[radio.index()].policer.take();
        let policer = match old {
            Some(old) => Policer {
                slice,
                channels,
                power_dbm,
                police: policed.police,
                assigned: policed.assigned,
                ..*old
            },
            None => Policer {
                slice,
                channels,
                power_dbm,
                police: policed.police,
                assigned: policed.assigned,
                violations: 0,
                cut: false,
                latest: None,
                uses: Vec::with_capacity(4),
            },
        };
        self.radios[radio.index()].policer = Some(Box::new(policer));
        self.set_weight(radio.index(), slice, policed.airtime_weight);
        self.follow_switch(radio.index());
        Ok(())
    }

    /// Checks a grant, and returns its channels.
    pub(super) fn check_grant(
        &self,
        radio: RadioId,
        policed: &Policed,
    ) -> Result<Vec<Channel>, SettingsError> {
        let state = &self.radios[radio.index()];
        if let Some(weight) = policed.airtime_weight.filter(|weight| !(1..=1000).contains(weight)) {
            return Err(SettingsError::Range {
                radio: state.name.clone(),
                setting: "airtime_weight",
                value: weight.to_string(),
                range: "1 to 1000",
            });
        }
        policed.channels.iter().map(|&number| tuned(&state.name, state.phy, number)).collect()
    }

    /// The violations so far, in the order of their beginning, and the number of transmissions that
    /// were not recorded, because there were too many different violations.
    #[must_use]
    pub fn violations(&self) -> (&[Violation], u64) {
        (&self.registry.records, self.registry.unrecorded)
    }

    /// The slice of a radio.
    #[must_use]
    pub fn slice(&self, radio: RadioId) -> Option<&str> {
        let policer = self.radios[radio.index()].policer.as_ref()?;
        self.registry.tenants.get(usize::from(policer.slice)).map(|tenant| tenant.name.as_str())
    }

    /// True if the radio was turned off because of violations.
    #[must_use]
    pub fn is_cut(&self, radio: RadioId) -> bool {
        self.radios[radio.index()].policer.as_ref().is_some_and(|policer| policer.cut)
    }

    /// False while its slice does not have the radio.
    #[must_use]
    pub fn is_assigned(&self, radio: RadioId) -> bool {
        self.radios[radio.index()].policer.as_ref().is_none_or(|policer| policer.assigned)
    }

    /// Channels that a slice's radio has transmitted on.
    #[must_use]
    pub fn uses(&self, radio: RadioId) -> &[ChannelUse] {
        self.radios[radio.index()].policer.as_ref().map_or(&[], |policer| &policer.uses)
    }

    /// The other slices that a violation concerns: those with a channel that overlaps a channel not
    /// granted, or the owner of the name.
    #[must_use]
    pub fn concerned(&self, violation: &Violation) -> Vec<&str> {
        let own = self.radios[violation.radio.index()].policer.as_ref().map(|policer| policer.slice);
        let tenants = (0u16..).zip(&self.registry.tenants);
        let meant = tenants.filter(|&(number, tenant)| match violation.owner {
            Some(owner) => owner == number,
            None => {
                Some(number) != own
                    && tenant.channels.iter().any(|channel| channel.overlap(violation.channel) > 0.0)
            }
        });
        meant.map(|(_, tenant)| tenant.name.as_str()).collect()
    }

    /// True if another slice than that of the radio owns this SSID.
    pub(super) fn is_foreign(&self, index: usize, ssid: &str) -> bool {
        let Some(policer) = &self.radios[index].policer else { return false };
        self.registry.ssids.get(ssid.as_bytes()).is_some_and(|&owner| owner != policer.slice)
    }

    /// Checks a transmission that is about to begin; true if it must not.
    pub(super) fn refuses(&mut self, index: usize, now: Instant) -> bool {
        let channel = self.reach.places[index].channel;
        let radio = &self.radios[index];
        let Some(policer) = &radio.policer else { return false };
        match policer.finding(channel, radio.settings.power_dbm) {
            Some(finding) => self.violate(index, now, channel, finding),
            None => false,
        }
    }

    /// Records an exchange that does not fit into the radio's slots; true if it must not begin.
    pub(super) fn refuses_slot(&mut self, index: usize, now: Instant, by: Span) -> bool {
        let channel = self.reach.places[index].channel;
        #[allow(clippy::cast_precision_loss)] // exchanges are short
        let microseconds = by.nanos() as f64 / 1e3;
        self.violate(index, now, channel, (Violated::Slot, microseconds, None))
    }

    /// Checks the names in a frame of a node's own stack; true if it must not be transmitted.
    pub(super) fn refuses_names(
        &mut self,
        id: RadioId,
        now: Instant,
        channel: Channel,
        octets: &[u8],
    ) -> bool {
        let Some(policer) = &self.radios[id.index()].policer else { return false };
        let Some(header) = Header::parse(octets) else { return false };
        let slice = policer.slice;
        let owner_of = |address: &[u8; 6]| self.addresses.get(address).filter(|&&owner| owner != id);
        let slice_of =
            |owner: RadioId| self.radios[owner.index()].policer.as_ref().map(|policer| policer.slice);
        if let Some(&owner) = owner_of(&header.transmitter) {
            let finding = (Violated::Address, 0.0, slice_of(owner));
            return self.violate(id.index(), now, channel, finding);
        }
        if header.kind() != Some(Type::Management) {
            return false;
        }
        let body = octets.get(header.length..).unwrap_or(&[]);
        let (Some(Management::Beacon(said)) | Some(Management::ProbeResponse(said))) =
            Management::parse(header.subtype(), body)
        else {
            return false;
        };
        let bssid = header.others[0];
        let owner = owner_of(&bssid).and_then(|&owner| slice_of(owner)).filter(|&owner| owner != slice);
        let found = match owner {
            Some(owner) => Some((Violated::Bssid, owner)),
            None => self.registry.announced(slice, said.ssid, bssid),
        };
        found.is_some_and(|(what, owner)| self.violate(id.index(), now, channel, (what, 0.0, Some(owner))))
    }

    /// Records a violation, and orders the radio to be turned off if it was the last permitted one;
    /// true if the transmission must not take place.
    fn violate(&mut self, index: usize, now: Instant, channel: Channel, finding: Finding) -> bool {
        let (what, amount, owner) = finding;
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let Some(policer) = &mut self.radios[index].policer else { return false };
        policer.violations += 1;
        let records = &mut self.registry.records;
        let same = |old: &Violation| {
            (old.what, old.channel, old.owner) == (what, channel, owner)
                && (what == Violated::Slot || old.amount.to_bits() == amount.to_bits())
                && now.since(old.until) <= GAP
        };
        match policer.latest.filter(|&at| records.get(at).is_some_and(same)) {
            Some(at) => {
                let record = &mut records[at];
                (record.until, record.frames) = (now, record.frames + 1);
                record.amount = record.amount.max(amount);
            }
            None if records.len() < RECORDS => {
                policer.latest = Some(records.len());
                let (radio, from, until) = (RadioId(number), now, now);
                records.push(Violation { radio, what, from, until, frames: 1, amount, channel, owner });
            }
            None => {
                policer.latest = None;
                self.registry.unrecorded += 1;
            }
        }
        match policer.police {
            Police::Watch => false,
            Police::Enforce => true,
            Police::Cut(after) => {
                if policer.violations >= u64::from(after) && !policer.cut {
                    policer.cut = true;
                    self.calendar.push(now, Class::Release, number, Event::Cut { radio: number });
                }
                true
            }
        }
    }

    /// Turns a radio off that violated its grant too often.
    pub(super) fn cut(&mut self, radio: u32, outside: &mut impl Outside) {
        self.change(RadioId(radio), &RadioChange::On(false), outside);
    }

    /// Drops the first frame of a lane, whose transmission was refused.
    pub(super) fn refuse(&mut self, index: usize, lane: usize, now: Instant, outside: &mut impl Outside) {
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        let radio = &mut self.radios[index];
        // Like an exchange of no length, which stops and restarts the counters.
        radio.lanes[lane].backing_off = false;
        radio.stage = Stage::Sending(u8::try_from(lane).unwrap_or(0));
        radio.recount(now);
        if let Some(first) = radio.lanes[lane].queue.front_mut() {
            let (frame, arrived) = (first.frame.take(), first.arrived);
            (first.short_tries, first.long_tries) = (0, 0);
            match frame {
                Some(frame) if arrived => outside.release(frame),
                Some(frame) => outside.dropped(id, now, frame, Why::OutsideGrant),
                None => {}
            }
        }
        radio.txop_until = now;
        self.finish(index, lane, now, outside);
    }

    /// Checks a frame that is to be sent a SIFS after another one; true if it was refused.
    pub(super) fn refuses_answer(
        &mut self,
        index: usize,
        now: Instant,
        answer: &Answer,
        outside: &mut impl Outside,
    ) -> bool {
        if !self.refuses(index, now) {
            return false;
        }
        match answer.kind {
            Kind::Data => self.refuse(index, usize::from(answer.lane), now, outside),
            _ => self.release(index, now),
        }
        true
    }
}
