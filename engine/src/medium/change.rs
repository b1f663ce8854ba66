//! Changes of a radio at run time.

use serde::{Deserialize, Serialize};

use crate::math::linear;
use crate::medium::mobility::{Position, Static};
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::radio::scan_state::Order;
use crate::medium::settings::error::SettingsError;
use crate::medium::settings::radio::{Membership, RadioSettings, RateSettings, Roaming, tuned};
use crate::medium::slices::policer::Policed;
use crate::medium::slices::slots::SlotSettings;
use crate::medium::types::RadioId;
use crate::medium::{Medium, rate, uncontended};
use crate::time::Span;

/// A change of a radio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RadioChange {
    /// Transmit power in dBm, from the next frame on.
    Power(f64),
    /// Another channel. The radio loses the frames on the air.
    Channel(u16),
    /// Another rate control.
    Rate(RateSettings),
    /// RTS threshold: longer frames, in octets, use request-to-send; `None` for no frames.
    RtsOctets(Option<u32>),
    /// Another place, at which it rests.
    Position(Position),
    /// A station looks for the network with this SSID, 1 to 32 octets; an ad-hoc radio joins the
    /// cell with this name, or the nameless one.
    Ssid(String),
    /// Scans other channels and returns; see [`Medium::scanned`].
    Scan {
        /// Channel numbers, in order; empty for all channels of the physical layer.
        channels: Vec<u16>,
        /// Sends probe requests instead of only waiting for beacons.
        active: bool,
        /// Time on each channel in nanoseconds, 1 ms to 10 s.
        dwell_ns: u64,
    },
    /// Another grant of the radio's slice; transmissions that begin from now on are checked against
    /// it. A radio on another channel is tuned to the first one of the grant, and power above that of
    /// the grant is lowered to it, except for [`Membership::Wlan`]: these are up to the node's stack. A
    /// radio that is assigned no more is off until it is assigned again.
    Grant(Box<Policed>),
    /// Other time slots, or none. An exchange in progress goes on to its end.
    Slots(Option<SlotSettings>),
    /// On, or off: an inactive radio neither receives nor sends, and drops queued frames. One that its
    /// slice does not have is on as soon as it is assigned.
    On(bool),
}

impl Medium {
    /// Checks a change before it is due.
    ///
    /// # Errors
    /// Names the invalid setting.
    pub fn check(&self, radio: RadioId, change: &RadioChange) -> Result<(), SettingsError> {
        self.check_present(radio)?;
        let state = &self.core.radios[radio.index()];
        let with = |settings: RadioSettings| settings.check(&state.name).map(|_| ());
        if self.uncontended.is_some() {
            return match change {
                RadioChange::Rate(rate) => {
                    uncontended::rate_of(&state.name, rate, true)?;
                    with(RadioSettings { rate: rate.clone(), ..state.settings.clone() })
                }
                RadioChange::Position(place) if !place.is_sane() => {
                    Err(SettingsError::Position { radio: state.name.clone() })
                }
                RadioChange::Position(_) | RadioChange::On(_) => Ok(()),
                other => Err(SettingsError::Range {
                    radio: state.name.clone(),
                    setting: "change",
                    value: format!("{other:?}"),
                    range: "position, rate and on, as its medium has no channel access",
                }),
            };
        }
        match change {
            RadioChange::Power(power_dbm) => {
                with(RadioSettings { power_dbm: *power_dbm, ..state.settings.clone() })
            }
            RadioChange::Channel(_) | RadioChange::Scan { .. } if state.hops.is_some() => {
                Err(SettingsError::Range {
                    radio: state.name.clone(),
                    setting: "channel",
                    value: "another one".to_owned(),
                    range: "radios without a hopping sequence",
                })
            }
            RadioChange::Channel(number) => tuned(&state.name, state.bands(), *number).map(|_| ()),
            RadioChange::Rate(_) | RadioChange::Scan { .. }
                if state.settings.membership == Membership::Wlan =>
            {
                Err(SettingsError::Range {
                    radio: state.name.clone(),
                    setting: "device",
                    value: "wlan".to_owned(),
                    range: "radios whose node has no 802.11 stack; this one's chooses rates and scans itself",
                })
            }
            RadioChange::Rate(rate @ RateSettings::Unmodulated(_)) => {
                uncontended::rate_of(&state.name, rate, false).map(|_| ())
            }
            RadioChange::Rate(rate) => with(RadioSettings { rate: rate.clone(), ..state.settings.clone() }),
            RadioChange::Position(place) if !place.is_sane() => {
                Err(SettingsError::Position { radio: state.name.clone() })
            }
            RadioChange::Ssid(name) if self.is_foreign(radio.index(), name) => Err(SettingsError::Range {
                radio: state.name.clone(),
                setting: "ssid",
                value: format!("{name:?}"),
                range: "names that no other slice has",
            }),
            RadioChange::On(true) if self.is_cut(radio) => Err(SettingsError::Range {
                radio: state.name.clone(),
                setting: "on",
                value: "true".to_owned(),
                range: "radios that were not turned off because of violations of their slice's grant",
            }),
            RadioChange::Ssid(name) => {
                let mut settings = state.settings.clone();
                match &mut settings.membership {
                    Membership::Station(Roaming { ssid, .. }) if !name.is_empty() => name.clone_into(ssid),
                    Membership::AdHoc { ssid, .. } => name.clone_into(ssid),
                    _ => {
                        return Err(SettingsError::Range {
                            radio: state.name.clone(),
                            setting: "ssid",
                            value: format!("{name:?}"),
                            range: "1 to 32 octets, for stations and cells without access point",
                        });
                    }
                }
                with(settings)
            }
            RadioChange::Scan { channels, dwell_ns, .. } => {
                channels
                    .iter()
                    .try_for_each(|&number| tuned(&state.name, state.bands(), number).map(|_| ()))?;
                let roaming = Roaming { ssid: "any".to_owned(), dwell_ns: *dwell_ns, ..Roaming::default() };
                with(RadioSettings { membership: Membership::Station(roaming), ..state.settings.clone() })
            }
            RadioChange::Grant(policed) => self.check_grant(radio, policed).map(|_| ()),
            RadioChange::Slots(slots) => {
                with(RadioSettings { slots: slots.clone(), ..state.settings.clone() })
            }
            RadioChange::Position(_) | RadioChange::RtsOctets(_) | RadioChange::On(_) => Ok(()),
        }
    }

    /// Applies a change that passed [`Medium::check`]; ignores one that would not pass.
    pub fn change(&mut self, radio: RadioId, change: &RadioChange, outside: &mut impl Outside) {
        if self.check(radio, change).is_err() {
            return;
        }
        let index = radio.index();
        match change {
            RadioChange::Power(_) | RadioChange::Position(_) | RadioChange::On(_) => self.dissolve_clusters(),
            RadioChange::Grant(policed) if policed.assigned != self.is_assigned(radio) => {
                self.dissolve_clusters();
            }
            _ => self.wake(index),
        }
        let state = self.core.radios.awake(index);
        match change {
            RadioChange::Power(power_dbm) => {
                state.settings.power_dbm = *power_dbm;
                state.receiver.sense = linear(state.settings.energy_threshold_dbm(state.layer.phy));
                self.core.reach.places[index].eirp_dbm = power_dbm + state.settings.gain_dbi;
                self.core.reach.power_changed(index);
                self.core.listen(index, self.core.now);
            }
            RadioChange::Channel(number) => {
                if let Ok(channel) = tuned(&state.name, state.bands(), *number) {
                    state.settings.channel = *number;
                    match &mut state.scan {
                        Some(scan) => scan.home = channel,
                        None => self.retune(index, channel),
                    }
                }
            }
            RadioChange::Rate(settings) => {
                state.settings.rate = settings.clone();
                state.rate = rate::controller(&state.settings, state.layer.phy);
                if let (Some(state), RateSettings::Unmodulated(rate)) = (&mut self.uncontended, settings) {
                    state.set_rate(index, *rate, self.core.now);
                }
            }
            RadioChange::Ssid(ssid) => self.seek(index, ssid),
            RadioChange::Scan { channels, active, dwell_ns } => {
                let phy = state.layer.phy;
                let order = Order {
                    channels: match channels.as_slice() {
                        [] => Channel::all(phy.bands).collect(),
                        some => some.iter().filter_map(|&n| Channel::numbered(phy.bands, n)).collect(),
                    },
                    dwell: Span::from_nanos(*dwell_ns),
                    active: *active,
                    ssid: String::new(),
                    asked: true,
                };
                self.survey(index, order);
            }
            RadioChange::Grant(policed) => {
                let before = self.is_assigned(radio);
                // Was checked above.
                let _ = self.police(radio, policed);
                self.follow_grant(radio, policed, outside);
                if policed.assigned != before {
                    self.switched(index, outside);
                }
            }
            RadioChange::Slots(slots) => self.set_slots(index, slots.as_ref()),
            RadioChange::RtsOctets(octets) => state.settings.rts_octets = *octets,
            RadioChange::Position(place) => {
                self.core.reach.places[index].mobility = Box::new(Static(*place));
                self.core.reach.moved(index, self.core.now);
                self.soak(index);
                let siblings: Vec<usize> = self.siblings(index).collect();
                for sibling in siblings {
                    self.core.reach.places[sibling].mobility = Box::new(Static(*place));
                    self.core.reach.moved(sibling, self.core.now);
                    self.soak(sibling);
                }
            }
            RadioChange::On(on) => {
                state.wanted_on = *on;
                self.follow_switch(index);
                self.switched(index, outside);
            }
        }
    }

    /// Turns a radio on or off, as its node and its grant say.
    pub(super) fn follow_switch(&mut self, index: usize) {
        let radio = self.core.radios.awake(index);
        let on = radio.wanted_on && radio.hold.policer.as_ref().is_none_or(|policer| policer.assigned);
        if radio.switched_on != on {
            radio.switched_on = on;
            self.core.reach.places[index].up = on;
            self.core.reach.retuned();
            if on {
                self.resume_hops(index);
                self.resume_windows(index);
            }
        }
    }

    /// Ends what a radio did that was turned on or off.
    fn switched(&mut self, index: usize, outside: &mut impl Outside) {
        if !self.core.radios[index].switched_on {
            self.break_off(index);
            self.flush(index, outside);
        }
        self.set_dozing(index, false);
        self.review_card_of(index);
    }

    /// Brings a radio that follows its grant within it.
    fn follow_grant(&mut self, radio: RadioId, policed: &Policed, outside: &mut impl Outside) {
        let settings = &self.core.radios[radio.index()].settings;
        if settings.membership == Membership::Wlan {
            return;
        }
        let (channel, power_dbm) = (settings.channel, settings.power_dbm);
        if let Some(&first) = policed.channels.first().filter(|_| !policed.channels.contains(&channel)) {
            self.change(radio, &RadioChange::Channel(first), outside);
        }
        if let Some(most) = policed.power_dbm.filter(|&most| power_dbm > most) {
            self.change(radio, &RadioChange::Power(most), outside);
        }
    }

    /// Tunes a radio to a channel.
    pub(super) fn retune(&mut self, index: usize, channel: Channel) {
        // The sequence of a radio that hops decides.
        if self.core.reach.places[index].channel == channel || self.core.radios[index].hops.is_some() {
            return;
        }
        if self.core.radios[index].wideband.is_some() {
            return self.tune_when_free(index, channel);
        }
        self.dissolve_clusters();
        self.core.reach.places[index].channel = channel;
        // The loss of its signal may differ at another frequency.
        self.core.reach.power_changed(index);
        self.core.reach.retuned();
        self.end_receptions(index);
        self.follow_channel(index);
        self.soak(index);
        self.core.arm(index);
        self.review_card_of(index);
    }
}
