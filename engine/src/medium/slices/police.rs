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
//! time, or the time outside of slots, are one [`Violation`] with a number of frames. Each slice has
//! places of its own for them, so that none can take those of others.

use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::medium::change::RadioChange;
use crate::medium::mac::lane::{Answer, Stage};
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::settings::error::SettingsError;
use crate::medium::settings::radio::tuned;
use crate::medium::slices::policer::{
    ChannelUse, Finding, Police, Policed, Policer, RECORDS, Violated, Violation,
};
use crate::medium::types::RadioId;
use crate::medium::wlan::header::{Header, Type};
use crate::medium::wlan::management::Management;
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// Longest time between two violations of one record.
const GAP: Span = Span::from_millis(100);

impl Medium {
    /// Gives a radio to a slice, whose grant all its transmissions are checked against from now on.
    /// A second call replaces the grant. Call it before the radio has frames; a later grant is a
    /// [`RadioChange::Grant`].
    ///
    /// # Errors
    /// Names a channel that the radio does not have, or a weight out of range.
    pub fn police(&mut self, radio: RadioId, policed: &Policed) -> Result<(), SettingsError> {
        let channels = self.check_grant(radio, policed)?;
        self.wake(radio.index());
        let slice = self.slices.registry.number(&policed.slice, &channels);
        for ssid in policed.ssids.iter().filter(|ssid| !ssid.is_empty()) {
            self.slices.registry.ssids.entry(ssid.clone().into_bytes()).or_insert(slice);
        }
        let power_dbm = policed.power_dbm.unwrap_or(f64::INFINITY);
        let old = self.core.radios.awake(radio.index()).hold.policer.take();
        let policer = match old {
            Some(old) => Policer {
                // Records of another slice stay with that one.
                latest: old.latest.filter(|_| old.slice == slice),
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
        self.core.radios.awake(radio.index()).hold.policer = Some(Box::new(policer));
        self.set_weight(radio.index(), slice, policed.airtime_weight);
        self.follow_switch(radio.index());
        Ok(())
    }

    /// Checks a grant, and returns its channels.
    pub(in crate::medium) fn check_grant(
        &self,
        radio: RadioId,
        policed: &Policed,
    ) -> Result<Vec<Channel>, SettingsError> {
        let state = &self.core.radios[radio.index()];
        if let Some(weight) = policed.airtime_weight.filter(|weight| !(1..=1000).contains(weight)) {
            return Err(SettingsError::Range {
                radio: state.name.clone(),
                setting: "airtime_weight",
                value: weight.to_string(),
                range: "1 to 1000",
            });
        }
        policed.channels.iter().map(|&number| tuned(&state.name, state.bands(), number)).collect()
    }

    /// The slice of a radio.
    #[must_use]
    pub fn slice(&self, radio: RadioId) -> Option<&str> {
        let policer = self.core.radios[radio.index()].hold.policer.as_ref()?;
        self.slices.registry.tenants.get(usize::from(policer.slice)).map(|tenant| tenant.name.as_str())
    }

    /// True if the radio was turned off because of violations.
    #[must_use]
    pub fn is_cut(&self, radio: RadioId) -> bool {
        self.core.radios[radio.index()].hold.policer.as_ref().is_some_and(|policer| policer.cut)
    }

    /// False while its slice does not have the radio.
    #[must_use]
    pub fn is_assigned(&self, radio: RadioId) -> bool {
        self.core.radios[radio.index()].hold.policer.as_ref().is_none_or(|policer| policer.assigned)
    }

    /// Channels that a slice's radio has transmitted on.
    #[must_use]
    pub fn uses(&self, radio: RadioId) -> &[ChannelUse] {
        self.core.radios[radio.index()].hold.policer.as_ref().map_or(&[], |policer| &policer.uses)
    }

    /// The other slices that a violation concerns: those with a channel that overlaps a channel not
    /// granted, or the owner of the name.
    #[must_use]
    pub fn concerned(&self, violation: &Violation) -> Vec<&str> {
        let own =
            self.core.radios[violation.radio.index()].hold.policer.as_ref().map(|policer| policer.slice);
        let tenants = (0u16..).zip(&self.slices.registry.tenants);
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
    pub(in crate::medium) fn is_foreign(&self, index: usize, ssid: &str) -> bool {
        let Some(policer) = &self.core.radios[index].hold.policer else { return false };
        self.slices.registry.ssids.get(ssid.as_bytes()).is_some_and(|&owner| owner != policer.slice)
    }

    /// Checks a transmission that is about to begin; true if it must not.
    pub(in crate::medium) fn refuses(&mut self, index: usize, now: Instant) -> bool {
        let channel = self.core.reach.places[index].channel;
        let radio = &self.core.radios[index];
        let Some(policer) = &radio.hold.policer else { return false };
        match policer.finding(channel, radio.settings.power_dbm) {
            Some(finding) => self.violate(index, now, channel, finding),
            None => false,
        }
    }

    /// Records an exchange that does not fit into the radio's slots; true if it must not begin.
    pub(in crate::medium) fn refuses_slot(&mut self, index: usize, now: Instant, by: Span) -> bool {
        let channel = self.core.reach.places[index].channel;
        #[allow(clippy::cast_precision_loss)] // exchanges are short
        let microseconds = by.nanos() as f64 / 1e3;
        self.violate(index, now, channel, (Violated::Slot, microseconds, None))
    }

    /// Checks the names in a frame of a node's own stack; true if it must not be transmitted.
    pub(in crate::medium) fn refuses_names(
        &mut self,
        id: RadioId,
        now: Instant,
        channel: Channel,
        octets: &[u8],
    ) -> bool {
        let Some(policer) = &self.core.radios[id.index()].hold.policer else { return false };
        let Some(header) = Header::parse(octets) else { return false };
        let slice = policer.slice;
        let owner_of = |address: &[u8; 6]| self.addresses.get(address).filter(|&&owner| owner != id);
        let slice_of = |owner: RadioId| {
            self.core.radios[owner.index()].hold.policer.as_ref().map(|policer| policer.slice)
        };
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
            None => self.slices.registry.announced(slice, said.ssid, bssid),
        };
        found.is_some_and(|(what, owner)| self.violate(id.index(), now, channel, (what, 0.0, Some(owner))))
    }

    /// Records a violation, and orders the radio to be turned off if it was the last permitted one;
    /// true if the transmission must not take place.
    fn violate(&mut self, index: usize, now: Instant, channel: Channel, finding: Finding) -> bool {
        let (what, amount, owner) = finding;
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let Some(policer) = &mut self.core.radios.awake(index).hold.policer else { return false };
        policer.violations += 1;
        let Some(tenant) = self.slices.registry.tenants.get_mut(usize::from(policer.slice)) else {
            return false;
        };
        let records = &mut tenant.records;
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
                tenant.unrecorded += 1;
            }
        }
        match policer.police {
            Police::Watch => false,
            Police::Enforce => true,
            Police::Cut(after) => {
                if policer.violations >= u64::from(after) && !policer.cut {
                    policer.cut = true;
                    self.core.calendar.push(now, Class::Release, number, Event::Cut { radio: number });
                }
                true
            }
        }
    }

    /// Turns a radio off that violated its grant too often.
    pub(in crate::medium) fn cut(&mut self, radio: u32, outside: &mut impl Outside) {
        self.change(RadioId(radio), &RadioChange::On(false), outside);
    }

    /// Drops the first frame of a lane, whose transmission was refused.
    pub(in crate::medium) fn refuse(
        &mut self,
        index: usize,
        lane: usize,
        now: Instant,
        outside: &mut impl Outside,
    ) {
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        let radio = self.core.radios.awake(index);
        // Like an exchange of no length, which stops and restarts the counters.
        radio.contention.lanes[lane].backing_off = false;
        radio.exchange.stage = Stage::Sending(u8::try_from(lane).unwrap_or(0));
        radio.recount(now);
        if let Some(first) = radio.contention.lanes[lane].queue.front_mut() {
            let (frame, arrived) = (first.frame.take(), first.arrived);
            (first.short_tries, first.long_tries) = (0, 0);
            match frame {
                Some(frame) if arrived => outside.release(frame),
                Some(frame) => outside.dropped(id, now, frame, Why::OutsideGrant),
                None => {}
            }
        }
        radio.exchange.txop_until = now;
        self.finish(index, lane, now, false, outside);
    }

    /// Checks a frame that is to be sent a SIFS after another one; true if it was refused.
    pub(in crate::medium) fn refuses_answer(
        &mut self,
        index: usize,
        now: Instant,
        answer: &Answer,
        outside: &mut impl Outside,
    ) -> bool {
        if !self.refuses(index, now) {
            return false;
        }
        if answer.is_own() {
            self.refuse(index, usize::from(answer.lane), now, outside);
        } else {
            self.release(index, now);
        }
        true
    }
}
