//! What of a medium changes while it runs beside its radios' settings: its laws, its noise, and which
//! radios it has.

use crate::medium::settings::error::SettingsError;
use crate::medium::settings::medium::MediumSettings;
use crate::medium::{Medium, Outside, RadioChange, RadioId};

impl Medium {
    /// Gives the medium other laws. Frames on the air keep the power with which they arrived; errors of
    /// what is still to come of them follow the new laws.
    ///
    /// # Errors
    /// Names the first invalid setting, or the channel access, which stays with or without contention.
    pub fn set_laws(&mut self, laws: &MediumSettings) -> Result<(), SettingsError> {
        let new = laws.build(self.seed, &self.name)?;
        match (&mut self.uncontended, new.uncontended) {
            (Some(state), Some(new)) => state.follow(*new),
            (None, None) => {}
            _ => {
                return Err(SettingsError::Law {
                    setting: "access",
                    value: "with and without contention in turn".to_owned(),
                    range: "that of the medium from its start".to_owned(),
                });
            }
        }
        self.dissolve_clusters();
        for index in 0..self.core.radios.len() {
            self.core.radios.awake(index).settle(self.core.now, self.errors.decoders());
        }
        self.fading = new.fading;
        self.core.reach.follow(new.core.reach);
        self.errors.set_model(new.errors.into_model());
        for index in 0..self.core.radios.len() {
            let leakage = self.core.reach.leakage;
            if let Some(wideband) = &mut self.core.radios.awake(index).wideband {
                wideband.follow(leakage);
            }
            self.soak(index);
        }
        self.follow_noise();
        Ok(())
    }

    /// Removes all sources of noise.
    pub fn remove_noise(&mut self) {
        self.dissolve_clusters();
        self.noises.iter_mut().for_each(super::noise::Source::remove);
        for index in 0..self.core.radios.len() {
            self.soak(index);
        }
    }

    /// Removes a radio: it is off for good, and its address is free for another one. Its number and its
    /// counters stay.
    ///
    /// # Errors
    /// If it shares a card with others, or was removed before.
    pub fn remove_radio(&mut self, radio: RadioId, outside: &mut impl Outside) -> Result<(), SettingsError> {
        self.check_removal(radio)?;
        self.change(radio, &RadioChange::On(false), outside);
        self.wake(radio.index());
        self.core.radios.awake(radio.index()).removed = true;
        self.addresses.retain(|_, owner| *owner != radio);
        self.errors.forget(radio.0);
        Ok(())
    }

    /// Checks whether a radio can be removed.
    ///
    /// # Errors
    /// As [`Medium::remove_radio`].
    pub fn check_removal(&self, radio: RadioId) -> Result<(), SettingsError> {
        let state = &self.core.radios[radio.index()];
        self.check_present(radio)?;
        if self.card_of(radio.index()).is_some() {
            return Err(SettingsError::Range {
                radio: state.name.clone(),
                setting: "card",
                value: "shared".to_owned(),
                range: "radios without a card, of those that are removed",
            });
        }
        Ok(())
    }

    /// Refuses a radio that was removed.
    pub(super) fn check_present(&self, radio: RadioId) -> Result<(), SettingsError> {
        let state = &self.core.radios[radio.index()];
        if !state.removed {
            return Ok(());
        }
        Err(SettingsError::Range {
            radio: state.name.clone(),
            setting: "change",
            value: "of a removed radio".to_owned(),
            range: "the radios that are there",
        })
    }
}
