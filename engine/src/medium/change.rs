//! What can change in a radio while time goes on.

use serde::{Deserialize, Serialize};

use super::mobility::{Position, Static};
use super::phy::Channel;
use super::settings::{Membership, RateSettings, SettingsError, tuned};
use super::{Medium, Outside, RadioId, RadioSettings, rate};

/// A change of a radio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RadioChange {
    /// Transmit power in dBm, from the next frame on.
    Power(f64),
    /// Another channel. What is on the air is lost to it.
    Channel(u16),
    /// Another way to choose rates.
    Rate(RateSettings),
    /// Frames of more octets than this are announced by request-to-send; none are with none.
    RtsOctets(Option<u32>),
    /// Another place, where it stays.
    Position(Position),
    /// A station looks for the network of this name, 1 to 32 octets.
    Ssid(String),
    /// Switched on, or off: then it hears nothing, sends nothing and drops what waits.
    On(bool),
}

impl Medium {
    /// Checks a change before it is due.
    ///
    /// # Errors
    /// What cannot work.
    pub fn check(&self, radio: RadioId, change: &RadioChange) -> Result<(), SettingsError> {
        let state = &self.radios[radio.index()];
        let with = |settings: RadioSettings| settings.check(&state.name).map(|_| ());
        match change {
            RadioChange::Power(power_dbm) => {
                with(RadioSettings { power_dbm: *power_dbm, ..state.settings.clone() })
            }
            RadioChange::Channel(number) => tuned(&state.name, state.phy, *number).map(|_| ()),
            RadioChange::Rate(rate) => with(RadioSettings { rate: rate.clone(), ..state.settings.clone() }),
            RadioChange::Position(place) if !place.is_sane() => {
                Err(SettingsError::Position { radio: state.name.clone() })
            }
            RadioChange::Ssid(ssid) => {
                let fits = (1..=32).contains(&ssid.len());
                if fits && matches!(state.settings.membership, Membership::Station(_)) {
                    return Ok(());
                }
                Err(SettingsError::Range {
                    radio: state.name.clone(),
                    setting: "ssid",
                    value: format!("{ssid:?}"),
                    range: "1 to 32 octets, for stations",
                })
            }
            RadioChange::Position(_) | RadioChange::RtsOctets(_) | RadioChange::On(_) => Ok(()),
        }
    }

    /// Carries out a change that [`Medium::check`] has passed; one that it would not is ignored.
    pub fn change(&mut self, radio: RadioId, change: &RadioChange, outside: &mut impl Outside) {
        if self.check(radio, change).is_err() {
            return;
        }
        let index = radio.index();
        let state = &mut self.radios[index];
        match change {
            RadioChange::Power(power_dbm) => {
                state.settings.power_dbm = *power_dbm;
                self.reach.places[index].eirp_dbm = power_dbm + state.settings.gain_dbi;
                self.reach.power_changed(index);
            }
            RadioChange::Channel(number) => {
                if let Ok(channel) = tuned(&state.name, state.phy, *number) {
                    state.settings.channel = *number;
                    self.retune(index, channel);
                }
            }
            RadioChange::Rate(settings) => {
                state.rate = rate::controller(settings, state.phy);
                state.settings.rate = settings.clone();
            }
            RadioChange::Ssid(ssid) => self.seek(index, ssid),
            RadioChange::RtsOctets(octets) => state.settings.rts_octets = *octets,
            RadioChange::Position(place) => {
                self.reach.places[index].mobility = Box::new(Static(*place));
                self.reach.moved(index, self.now);
                self.soak(index);
            }
            RadioChange::On(on) => {
                state.switched_on = *on;
                self.reach.places[index].up = *on;
                self.reach.retuned();
                if !on {
                    self.flush(index, outside);
                }
            }
        }
    }

    /// Tunes a radio to a channel.
    pub(super) fn retune(&mut self, index: usize, channel: Channel) {
        if self.reach.places[index].channel == channel {
            return;
        }
        self.reach.places[index].channel = channel;
        // What it sends may be lost differently at another frequency.
        self.reach.power_changed(index);
        self.reach.retuned();
        self.deafen(index);
        self.soak(index);
        self.timers.set(index, self.radios[index].next_at());
    }
}
