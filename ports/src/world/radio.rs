//! Radio media by name, and the state of their radios at an instant.

use std::collections::{BTreeMap, HashMap};

use airloom_engine::medium::mobility::{Mobility, Position};
use airloom_engine::medium::{
    Airtime, CardCounts, CardSettings, ChannelAirtime, ChannelUse, MediumSettings, Membership, NoiseSettings,
    PeerCounts, Policed, RadioChange, RadioCounts, RadioId, RadioSettings, SettingsError, Sighting,
    Violation,
};
use airloom_engine::time::{Instant, Span};
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
    /// It carries 802.11 frames instead of Ethernet frames.
    wlan: bool,
}

/// The port of each radio.
#[derive(Debug, Default)]
pub(crate) struct Radios {
    /// In the order of addition.
    all: Vec<Radio>,
    by_port: HashMap<PortId, Radio>,
    /// By medium and number.
    ports: Vec<Vec<PortId>>,
}

impl Radios {
    /// Adds the radio that the engine has just created.
    fn insert(&mut self, radio: Radio) {
        self.all.push(radio);
        self.by_port.insert(radio.port, radio);
        let media = self.ports.len().max(radio.medium.index() + 1);
        self.ports.resize_with(media, Vec::new);
        self.ports[radio.medium.index()].push(radio.port);
    }

    /// Removes the radio of a port. Its number on its medium stays that of the port.
    fn remove(&mut self, port: PortId) {
        self.all.retain(|radio| radio.port != port);
        self.by_port.remove(&port);
    }

    /// Whether a port is that of a radio that carries 802.11 frames.
    pub(crate) fn is_wlan(&self, port: PortId) -> bool {
        self.by_port.get(&port).is_some_and(|radio| radio.wlan)
    }

    /// Whether a port is that of a radio.
    pub(crate) fn has(&self, port: PortId) -> bool {
        self.by_port.contains_key(&port)
    }

    /// The port of a medium's radio.
    pub(crate) fn port(&self, medium: MediumId, radio: RadioId) -> Option<PortId> {
        self.ports.get(medium.index())?.get(radio.number() as usize).copied()
    }
}

/// State of a radio at an instant.
#[derive(Clone, Debug)]
pub struct RadioView {
    /// Name of its port.
    pub port: String,
    /// Name of its medium.
    pub medium: String,
    /// Its number on the medium; other radios refer to it by this number.
    pub number: u32,
    /// Its current settings.
    pub settings: RadioSettings,
    /// Whether it is switched on.
    pub on: bool,
    /// Whether it would be if its slice had it.
    pub wanted_on: bool,
    /// Its access point's number, if it is an associated station.
    pub access_point: Option<u32>,
    /// Its position.
    pub position: Position,
    /// Centre frequency of its channel in MHz.
    pub mhz: u16,
    /// Queued frames.
    pub queued: u32,
    /// Its counters.
    pub counts: RadioCounts,
    /// Its airtime by use.
    pub airtime: Airtime,
    /// Time in which its station, of a stack, dozed.
    pub dozed: Span,
    /// Frames of its stack at frequencies where it has no channel, by MHz.
    pub foreign: BTreeMap<u16, u64>,
    /// The radios it exchanged frames with: their numbers and counters.
    pub peers: Vec<(u32, PeerCounts)>,
    /// Its slice.
    pub slice: Option<String>,
    /// Whether it was turned off because of violations of its slice's grant.
    pub cut: bool,
    /// The channels that it has transmitted on, if it belongs to a slice.
    pub uses: Vec<ChannelUse>,
}

/// A violation of a slice's grant.
#[derive(Clone, Debug)]
pub struct ViolationView {
    /// Name of the radio's port.
    pub port: String,
    /// Name of its slice.
    pub slice: String,
    /// The violation.
    pub violation: Violation,
    /// Names of the other slices that it concerns.
    pub concerned: Vec<String>,
}

/// A radio found by a scan.
#[derive(Clone, Debug)]
pub struct SightingView {
    /// Name of its port.
    pub port: String,
    /// The scan result.
    pub sighting: Sighting,
}

/// A channel of a medium.
#[derive(Clone, Debug)]
pub struct ChannelView {
    /// Name of the medium.
    pub medium: String,
    /// Number of the channel.
    pub number: u16,
    /// Its centre frequency in MHz.
    pub mhz: u16,
    /// Its use.
    pub airtime: ChannelAirtime,
}

/// A card of a medium.
#[derive(Clone, Debug)]
pub struct CardView {
    /// Name of the medium.
    pub medium: String,
    /// Name of the card.
    pub name: String,
    /// Number of the channel that it serves; `None` during a switch.
    pub channel: Option<u16>,
    /// Its counters.
    pub counts: CardCounts,
}

impl World {
    /// Adds a medium.
    ///
    /// # Errors
    /// An invalid setting, or an error of the engine.
    pub fn add_medium(&mut self, name: &str, settings: &MediumSettings) -> Result<(), Error> {
        let medium = settings.build(self.engine.seed(), name)?;
        let id = self.engine.add_medium(name, medium)?;
        self.names.media.insert(name, id);
        self.engine.medium(id)?.set_sniffing(self.captures.sniffs());
        Ok(())
    }

    /// Attaches a radio to the port of that name.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or an error of the engine.
    pub fn add_radio(
        &mut self,
        medium: &str,
        port: &str,
        settings: RadioSettings,
        mobility: Box<dyn Mobility>,
    ) -> Result<(), Error> {
        let (medium, port) = (self.names.media.id(medium)?, self.names.ports.id(port)?);
        let wlan = settings.membership == Membership::Wlan;
        let id = self.engine.add_radio(medium, port, settings, mobility)?;
        self.radios.insert(Radio { port, medium, id, wlan });
        Ok(())
    }

    /// Takes a radio out, also while the engine runs: its port is free for another one.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or an error of the engine.
    pub fn remove_radio(&mut self, port: &str) -> Result<(), Error> {
        let Radio { port, medium, id, .. } = self.radio(port)?;
        self.with_egress(|engine, _, egress| engine.remove_radio(medium, id, egress))?;
        self.radios.remove(port);
        Ok(())
    }

    /// Gives a medium other laws now.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or an invalid setting.
    pub fn set_medium(&mut self, name: &str, settings: &MediumSettings) -> Result<(), Error> {
        let id = self.names.media.id(name)?;
        Ok(self.engine.medium(id)?.set_laws(settings)?)
    }

    /// Gives a radio another movement now.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or a position that is not finite.
    pub fn set_motion(&mut self, port: &str, mobility: Box<dyn Mobility>) -> Result<(), Error> {
        let Radio { medium, id, .. } = self.radio(port)?;
        Ok(self.engine.medium(medium)?.set_mobility(id, mobility)?)
    }

    /// Removes all sources of noise of a medium.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name.
    pub fn remove_noise(&mut self, medium: &str) -> Result<(), Error> {
        let id = self.names.media.id(medium)?;
        self.engine.medium(id)?.remove_noise();
        Ok(())
    }

    /// Makes the radios at these ports virtual MACs of one card.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name or a radio of another medium, or an error of the engine.
    pub fn add_card(
        &mut self,
        medium: &str,
        name: &str,
        settings: CardSettings,
        ports: &[String],
    ) -> Result<(), Error> {
        let id = self.names.media.id(medium)?;
        let mut radios = Vec::with_capacity(ports.len());
        for port in ports {
            let radio = self.radio(port)?;
            if radio.medium != id {
                return Err(Error::unknown("radio on the same medium", port));
            }
            radios.push(radio.id);
        }
        Ok(self.engine.add_card(id, name, settings, &radios)?)
    }

    /// Adds a source of noise to a medium.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or an invalid setting.
    pub fn add_noise(
        &mut self,
        medium: &str,
        settings: NoiseSettings,
        mobility: Box<dyn Mobility>,
    ) -> Result<(), Error> {
        let id = self.names.media.id(medium)?;
        Ok(self.engine.add_noise(id, settings, mobility)?)
    }

    /// Makes all media report the frames on the air, or no longer.
    pub(crate) fn sniff(&mut self, on: bool) -> Result<(), Error> {
        for (_, id) in self.names.media.iter() {
            self.engine.medium(id)?.set_sniffing(on);
        }
        Ok(())
    }

    /// Schedules a change of a radio at an instant.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or an error of the engine.
    pub fn schedule_radio(&mut self, at: Instant, port: &str, change: RadioChange) -> Result<(), Error> {
        let Radio { medium, id, .. } = self.radio(port)?;
        Ok(self.engine.schedule(at, Change::Radio(medium, id, Box::new(change)))?)
    }

    /// Gives a radio to a slice, whose grant its transmissions are checked against.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, or a channel that the radio does not have.
    pub fn police(&mut self, port: &str, policed: &Policed) -> Result<(), Error> {
        let Radio { medium, id, .. } = self.radio(port)?;
        Ok(self.engine.medium(medium)?.police(id, policed)?)
    }

    /// Violations of grants so far, by medium, and the number of transmissions that were not
    /// recorded, by slice.
    ///
    /// # Errors
    /// None in a world that created its media itself.
    pub fn violations(&mut self) -> Result<(Vec<ViolationView>, BTreeMap<String, u64>), Error> {
        let (mut found, mut unrecorded) = (Vec::new(), BTreeMap::new());
        for (_, id) in self.names.media.iter() {
            let medium = self.engine.medium(id)?;
            let (violations, _) = medium.violations();
            for (slice, more) in medium.unrecorded() {
                *unrecorded.entry(slice.to_owned()).or_default() += more;
            }
            found.extend(violations.iter().map(|violation| {
                ViolationView {
                    port: self
                        .radios
                        .port(id, violation.radio)
                        .map_or("", |port| self.names.ports.name(port.index()))
                        .to_owned(),
                    slice: medium.slice(violation.radio).unwrap_or_default().to_owned(),
                    violation: (*violation).clone(),
                    concerned: medium.concerned(violation).into_iter().map(str::to_owned).collect(),
                }
            }));
        }
        Ok((found, unrecorded))
    }

    /// Forgets the violations of a slice, whose radios have left.
    ///
    /// # Errors
    /// None in a world that created its media itself.
    pub fn forget_violations(&mut self, slice: &str) -> Result<(), Error> {
        for (_, id) in self.names.media.iter() {
            self.engine.medium(id)?.forget_violations(slice);
        }
        Ok(())
    }

    /// Sets an additional error probability, from 0 to 1, of frames from one radio to another.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name or two radios of different media; an invalid probability.
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

    /// All radios at the engine's present instant, in the order of addition.
    ///
    /// # Errors
    /// None in a world that created its media itself.
    pub fn radios(&mut self) -> Result<Vec<RadioView>, Error> {
        let Self { engine, names, radios, .. } = self;
        radios.all.iter().map(|&radio| view(engine, names, radio)).collect()
    }

    /// How many scans a radio has made for its node, and the radios found by the last one.
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

    /// All channels that were used, by medium.
    ///
    /// # Errors
    /// None in a world that created its media itself.
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

    /// All cards, by medium.
    ///
    /// # Errors
    /// None in a world that created its media itself.
    pub fn cards(&mut self) -> Result<Vec<CardView>, Error> {
        let mut found = Vec::new();
        for (name, id) in self.names.media.iter() {
            let medium = self.engine.medium(id)?;
            found.extend(medium.cards().map(|(card, channel, counts)| CardView {
                medium: name.to_owned(),
                name: card.to_owned(),
                channel: channel.map(|channel| channel.number),
                counts,
            }));
        }
        Ok(found)
    }

    /// Power in dBm at which one radio would receive another now, without fading.
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

/// State of a radio now. The caller resolves the names of other radios, so that the
/// engine does not wait for that.
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
        wanted_on: medium.is_wanted_on(id),
        position: medium.position(id),
        mhz: medium.channel(id).mhz,
        queued: medium.queued(id),
        counts: medium.counts(id),
        airtime: medium.airtime(id, medium.now()),
        dozed: medium.dozed(id),
        foreign: medium.foreign(id),
        peers: medium.peers(id).map(|(peer, counts)| (peer.number(), counts)).collect(),
        slice: medium.slice(id).map(str::to_owned),
        cut: medium.is_cut(id),
        uses: medium.uses(id).to_vec(),
    })
}
