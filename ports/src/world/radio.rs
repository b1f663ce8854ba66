//! Radio media by name, and what is known of their radios at a moment.

use std::collections::HashMap;

use airloom_engine::medium::mobility::{Mobility, Position};
use airloom_engine::medium::{
    Airtime, ChannelAirtime, MediumSettings, NoiseSettings, PeerCounts, RadioChange, RadioCounts, RadioId,
    RadioSettings, SettingsError, Sighting,
};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Engine, MediumId, PortId};

use crate::error::Error;
use crate::world::World;
use crate::world::names::Names;

/// A radio: its port, its medium, and its number on that.
#[derive(Clone, Copy, Debug)]
struct Radio {
    port: PortId,
    medium: MediumId,
    id: RadioId,
}

/// Which port each radio belongs to.
#[derive(Debug, Default)]
pub(crate) struct Radios {
    /// In the order in which they were added.
    all: Vec<Radio>,
    by_port: HashMap<PortId, Radio>,
    /// By medium and number.
    ports: Vec<Vec<PortId>>,
}

impl Radios {
    /// Enters the radio that the engine has just added.
    fn insert(&mut self, radio: Radio) {
        self.all.push(radio);
        self.by_port.insert(radio.port, radio);
        let media = self.ports.len().max(radio.medium.index() + 1);
        self.ports.resize_with(media, Vec::new);
        self.ports[radio.medium.index()].push(radio.port);
    }

    /// The port of a medium's radio.
    pub(crate) fn port(&self, medium: MediumId, radio: RadioId) -> Option<PortId> {
        self.ports.get(medium.index())?.get(radio.number() as usize).copied()
    }
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
        self.names.media.insert(name, id);
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
        let (medium, port) = (self.names.media.id(medium)?, self.names.ports.id(port)?);
        let id = self.engine.add_radio(medium, port, settings, mobility)?;
        self.radios.insert(Radio { port, medium, id });
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
        let id = self.names.media.id(medium)?;
        Ok(self.engine.add_noise(id, settings, mobility)?)
    }

    /// Has all media tell what is on the air.
    pub(crate) fn sniff(&mut self) -> Result<(), Error> {
        for (_, id) in self.names.media.iter() {
            self.engine.medium(id)?.set_sniffing(true);
        }
        Ok(())
    }

    /// Has a radio changed at an instant.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or the engine's.
    pub fn schedule_radio(&mut self, at: Instant, port: &str, change: RadioChange) -> Result<(), Error> {
        let Radio { medium, id, .. } = self.radio(port)?;
        Ok(self.engine.schedule(at, Change::Radio(medium, id, Box::new(change)))?)
    }

    /// Has frames from one radio to another fail with a probability of 0 to 1, beside all else.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name or two radios of different media; a probability that is none.
    pub fn set_frame_error(&mut self, from: &str, to: &str, probability: f64) -> Result<(), Error> {
        let (sender, receiver) = (self.radio(from)?, self.radio(to)?);
        if sender.medium != receiver.medium {
            return Err(Error::unknown("radio on the same medium", to));
        }
        if !(0.0..=1.0).contains(&probability) {
            let (value, range) = (probability.to_string(), "0 to 1".to_owned());
            return Err(SettingsError::Law { setting: "frame_error", value, range }.into());
        }
        self.engine.medium(sender.medium)?.set_frame_error(sender.id, receiver.id, probability);
        Ok(())
    }

    /// All radios at the engine's present instant, in the order in which they were added.
    ///
    /// # Errors
    /// None in a world whose media are its own.
    pub fn radios(&mut self) -> Result<Vec<RadioView>, Error> {
        let Self { engine, names, radios, .. } = self;
        radios.all.iter().map(|&radio| view(engine, names, radio)).collect()
    }

    /// How often a radio has looked around for its node, and whom it heard the last time.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name.
    pub fn scanned(&mut self, port: &str) -> Result<(u64, Vec<SightingView>), Error> {
        let Radio { medium, id, .. } = self.radio(port)?;
        let scanned = self.engine.medium(medium)?.scanned(id).clone();
        let named = |id: RadioId| {
            let port = self.radios.port(medium, id);
            port.map_or("", |port| self.names.ports.name(port.index())).to_owned()
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
        for (name, id) in self.names.media.iter() {
            let medium = self.engine.medium(id)?;
            found.extend(medium.channels().map(|channel| ChannelView {
                medium: name.to_owned(),
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
        let (sender, receiver) = (self.radio(from)?, self.radio(to)?);
        if sender.medium != receiver.medium {
            return Err(Error::unknown("radio on the same medium", to));
        }
        Ok(self.engine.medium(sender.medium)?.power_at(sender.id, receiver.id))
    }

    fn radio(&self, port: &str) -> Result<Radio, Error> {
        let id = self.names.ports.id(port).map_err(|_| Error::unknown("radio", port))?;
        self.radios.by_port.get(&id).copied().ok_or_else(|| Error::unknown("radio", port))
    }
}

/// A radio as it is now. Names of others are left to the caller, so that the engine need not wait for
/// them.
fn view(engine: &mut Engine, names: &Names, radio: Radio) -> Result<RadioView, Error> {
    let medium = engine.medium(radio.medium)?;
    let id = radio.id;
    Ok(RadioView {
        port: names.ports.name(radio.port.index()).to_owned(),
        medium: names.media.name(radio.medium.index()).to_owned(),
        number: id.number(),
        access_point: medium.access_point(id).map(RadioId::number),
        settings: medium.settings(id).clone(),
        on: medium.is_on(id),
        position: medium.position(id),
        mhz: medium.channel(id).mhz,
        queued: medium.queued(id),
        counts: medium.counts(id),
        airtime: medium.airtime(id, medium.now()),
        peers: medium.peers(id).map(|(peer, counts)| (peer.number(), counts)).collect(),
    })
}
