//! Radio media by name, and what is known of their radios at a moment.

use airloom_engine::medium::mobility::{Mobility, Position};
use airloom_engine::medium::{
    Airtime, ChannelAirtime, MediumSettings, NoiseSettings, PeerCounts, RadioChange, RadioCounts, RadioId,
    RadioSettings, SettingsError, Sighting,
};
use airloom_engine::time::Instant;
use airloom_engine::{Change, MediumId};

use crate::error::Error;
use crate::world::World;

/// Media and radios of a world, by name.
#[derive(Default)]
pub struct Media {
    media: Vec<(String, MediumId)>,
    /// Name of the port, its medium and its radio, in the order in which they were added.
    radios: Vec<(String, MediumId, RadioId)>,
}

/// A radio at a moment.
#[derive(Clone, Debug)]
pub struct RadioView {
    /// Name of its port.
    pub port: String,
    /// Name of its medium.
    pub medium: String,
    /// Its number on the medium, by which others speak of it.
    pub number: u32,
    /// Its settings now.
    pub settings: RadioSettings,
    /// Whether it is switched on.
    pub on: bool,
    /// Its access point's number, if it is a station that has one.
    pub access_point: Option<u32>,
    /// Where it is.
    pub position: Position,
    /// Its channel's centre in MHz.
    pub mhz: u16,
    /// Frames that wait.
    pub queued: u32,
    /// What it counted.
    pub counts: RadioCounts,
    /// Where its time went.
    pub airtime: Airtime,
    /// Whom it has met: the other's number, and what was exchanged.
    pub peers: Vec<(u32, PeerCounts)>,
}

/// Somebody whom a radio heard when it looked around.
#[derive(Clone, Debug)]
pub struct SightingView {
    /// Name of its port.
    pub port: String,
    /// What was heard.
    pub sighting: Sighting,
}

/// A channel of a medium.
#[derive(Clone, Debug)]
pub struct ChannelView {
    /// Name of the medium.
    pub medium: String,
    /// Number of the channel.
    pub number: u16,
    /// Its centre in MHz.
    pub mhz: u16,
    /// How much it was in use.
    pub airtime: ChannelAirtime,
}

impl World {
    /// Adds a medium.
    ///
    /// # Errors
    /// A setting that cannot work, or the engine's.
    pub fn add_medium(&mut self, name: &str, settings: &MediumSettings) -> Result<(), Error> {
        let medium = settings.build(self.engine.seed(), name)?;
        let id = self.engine.add_medium(name, medium)?;
        self.media.media.push((name.to_owned(), id));
        debug_assert_eq!(id.index(), self.edge.media.len());
        self.edge.media.push((name.to_owned(), Vec::new()));
        Ok(())
    }

    /// Puts a radio behind the port of that name.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or the engine's.
    pub fn add_radio(
        &mut self,
        medium: &str,
        port: &str,
        settings: RadioSettings,
        mobility: Box<dyn Mobility>,
    ) -> Result<(), Error> {
        let id = self.medium_id(medium)?;
        let radio = self.engine.add_radio(id, self.port(port)?, settings, mobility)?;
        self.media.radios.push((port.to_owned(), id, radio));
        let number = self.port(port)?.index();
        if let Some((_, ports)) = self.edge.media.get_mut(id.index()) {
            ports.push(number);
        }
        Ok(())
    }

    /// Adds a source of noise to a medium.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or a setting that cannot work.
    pub fn add_noise(
        &mut self,
        medium: &str,
        settings: NoiseSettings,
        mobility: Box<dyn Mobility>,
    ) -> Result<(), Error> {
        let id = self.medium_id(medium)?;
        Ok(self.engine.add_noise(id, settings, mobility)?)
    }

    /// Has all media tell what is on the air.
    pub(crate) fn sniff(&mut self) -> Result<(), Error> {
        for (_, id) in &self.media.media {
            self.engine.medium(*id)?.set_sniffing(true);
        }
        Ok(())
    }

    /// Has a radio changed at an instant.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or the engine's.
    pub fn schedule_radio(&mut self, at: Instant, port: &str, change: RadioChange) -> Result<(), Error> {
        let (medium, radio) = self.radio(port)?;
        Ok(self.engine.schedule(at, Change::Radio(medium, radio, Box::new(change)))?)
    }

    /// Has frames from one radio to another fail with a probability of 0 to 1, beside all else.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name or two radios of different media; a probability that is none.
    pub fn set_frame_error(&mut self, from: &str, to: &str, probability: f64) -> Result<(), Error> {
        let ((medium, sender), (other, receiver)) = (self.radio(from)?, self.radio(to)?);
        if medium != other {
            return Err(Error::unknown("radio on the same medium", to));
        }
        if !(0.0..=1.0).contains(&probability) {
            let (value, range) = (probability.to_string(), "0 to 1".to_owned());
            return Err(SettingsError::Law { setting: "frame_error", value, range }.into());
        }
        self.engine.medium(medium)?.set_frame_error(sender, receiver, probability);
        Ok(())
    }

    /// All radios at the engine's present instant, in the order in which they were added.
    ///
    /// # Errors
    /// None in a world whose media are its own.
    pub fn radios(&mut self) -> Result<Vec<RadioView>, Error> {
        let names = std::mem::take(&mut self.media.radios);
        let found = names.iter().map(|(port, medium, radio)| self.view(port, *medium, *radio)).collect();
        self.media.radios = names;
        found
    }

    /// How often a radio has looked around for its node, and whom it heard the last time.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name.
    pub fn scanned(&mut self, port: &str) -> Result<(u64, Vec<SightingView>), Error> {
        let (medium, radio) = self.radio(port)?;
        let scanned = self.engine.medium(medium)?.scanned(radio).clone();
        let named = |id: RadioId| {
            let found = self.media.radios.iter().find(|(_, of, radio)| (*of, *radio) == (medium, id));
            found.map(|(name, ..)| name.clone()).unwrap_or_default()
        };
        let view = |sighting: Sighting| SightingView { port: named(sighting.radio), sighting };
        Ok((scanned.times, scanned.found.into_iter().map(view).collect()))
    }

    /// All channels that were used, medium by medium.
    ///
    /// # Errors
    /// None in a world whose media are its own.
    pub fn channels(&mut self) -> Result<Vec<ChannelView>, Error> {
        let mut found = Vec::new();
        for (name, id) in &self.media.media {
            let medium = self.engine.medium(*id)?;
            found.extend(medium.channels().map(|channel| ChannelView {
                medium: name.clone(),
                number: channel.number,
                mhz: channel.mhz,
                airtime: medium.channel_airtime(channel),
            }));
        }
        Ok(found)
    }

    /// Power in dBm at which one radio would hear another now, without fading.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name or two radios of different media.
    pub fn power_at(&mut self, from: &str, to: &str) -> Result<f64, Error> {
        let ((medium, sender), (other, receiver)) = (self.radio(from)?, self.radio(to)?);
        if medium != other {
            return Err(Error::unknown("radio on the same medium", to));
        }
        Ok(self.engine.medium(medium)?.power_at(sender, receiver))
    }

    fn medium_id(&self, name: &str) -> Result<MediumId, Error> {
        let found = self.media.media.iter().find(|(known, _)| known == name);
        found.map(|(_, id)| *id).ok_or_else(|| Error::unknown("medium", name))
    }

    fn radio(&self, port: &str) -> Result<(MediumId, RadioId), Error> {
        let found = self.media.radios.iter().find(|(known, ..)| known == port);
        found.map(|(_, medium, radio)| (*medium, *radio)).ok_or_else(|| Error::unknown("radio", port))
    }

    fn view(&mut self, port: &str, id: MediumId, radio: RadioId) -> Result<RadioView, Error> {
        let medium = self.engine.medium(id)?;
        // Names of others are left to whoever shows this: the engine is not to wait for them.
        Ok(RadioView {
            port: port.to_owned(),
            medium: self.media.media.get(id.index()).map(|(name, _)| name.clone()).unwrap_or_default(),
            number: radio.number(),
            access_point: medium.access_point(radio).map(RadioId::number),
            settings: medium.settings(radio).clone(),
            on: medium.is_on(radio),
            position: medium.position(radio),
            mhz: medium.channel(radio).mhz,
            queued: medium.queued(radio),
            counts: medium.counts(radio),
            airtime: medium.airtime(radio, medium.now()),
            peers: medium.peers(radio).map(|(peer, counts)| (peer.number(), counts)).collect(),
        })
    }
}
