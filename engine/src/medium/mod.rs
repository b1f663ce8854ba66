//! The radio medium: IEEE 802.11 stations on shared channels.
//!
//! Layer on layer, each a small trait with its formula and source: position ([`mobility`]), loss
//! ([`propagation`]), interference, error probability ([`error`]), rates and timing ([`phy`]), the
//! distributed coordination function (`mac`), choice of rates ([`rate`]). A [`Medium`] is a state
//! machine of its own: it is offered frames, says when it wants to be called, and hands frames to
//! an [`Outside`]. It draws from streams named after its radios, so another radio out of reach
//! changes nothing for the others.
//!
//! Two things are approximate by intent. All receivers of a frame are dealt with when it leaves
//! its sender, each with its own arrival time; two frames whose order of arrival differs from the
//! order of their starts are thus told apart only within a propagation delay. And a receiver that
//! follows a frame follows it to its end, even if its header was broken.

pub mod error;
pub mod mobility;
pub mod phy;
pub mod propagation;
pub mod rate;

mod air;
mod airtime;
mod bss;
mod bystanders;
pub mod capture;
mod change;
mod clash;
mod cluster;
mod hearing;
mod index;
mod laws;
mod mac;
mod motions;
mod noise;
mod peers;
mod radio;
mod reach;
mod scan;
mod settings;
mod sniff;
mod timers;

pub use airtime::Airtime;
pub use change::RadioChange;
pub use laws::{
    CurveSettings, ErrorSettings, FadingSettings, LossSettings, MediumSettings, ShadowingSettings,
    WallSettings,
};
pub use motions::MobilitySettings;
pub use noise::NoiseSettings;
pub use peers::PeerCounts;
pub use radio::{Kind, RadioCounts, RadioId, To};
pub use scan::{Scanned, Sighting};
pub use settings::{Membership, RadioSettings, RateSettings, Roaming, SettingsError};
pub use sniff::ChannelAirtime;

use std::collections::BTreeMap;

use crate::calendar::Calendar;
use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::random::Stream;
use crate::time::{Instant, Span};

use air::Sending;
use airtime::Account;
use bss::Cell;
use cluster::{Cluster, ClusterId};
use error::{Decoder, ErrorModel, Standard};
use mobility::{Mobility, Position};
use propagation::{Fading, PathLoss};
use radio::{Radio, Stage};
use reach::{Place, Reach, linear};
use timers::Timers;

/// The world around a medium: buffers, and where frames go.
///
/// A frame comes with one use of its buffer; every method that takes it by value gets that use.
pub trait Outside {
    /// The octets of a frame, Ethernet header first (for a super-frame, those of the whole).
    fn octets(&self, frame: &Frame) -> &[u8];
    /// Counts one more use of the frame's buffer.
    fn share(&mut self, frame: &Frame);
    /// Gives one use back.
    fn release(&mut self, frame: Frame);
    /// A frame has arrived for the node of `radio`.
    fn deliver(&mut self, radio: RadioId, at: Instant, frame: Frame);
    /// A frame of `radio` came to nothing.
    fn dropped(&mut self, radio: RadioId, at: Instant, frame: Frame, why: Why);
    /// A broadcast was delivered to so many radios beyond the first.
    fn copied(&mut self, frame: &Frame, copies: u32);
    /// A frame has left the queue of `radio`, which may have room for another.
    fn finished(&mut self, _radio: RadioId, _at: Instant) {}
    /// A frame was on the air, or reached a radio; only after [`Medium::set_sniffing`]. Calls come
    /// when frames end, so their times ascend only for frames that do not overlap.
    fn sniffed(&mut self, _sniffed: &capture::Sniffed) {}
}

/// What is to happen in a medium.
#[derive(Clone, Debug)]
enum Event {
    /// A transmission ends.
    End(u32),
    /// A frame reaches a node.
    Deliver { radio: u32, frame: Frame },
    /// Time to see whether a request-to-send was answered.
    Unclear { radio: u32, since: Instant },
    /// Time for a beacon.
    Beacon { radio: u32 },
    /// A step of a search for networks.
    Search { radio: u32, step: u32 },
    /// Time to see whether anything followed a request-to-send, for those of a cluster who sleep.
    Unheard { cluster: ClusterId, since: Instant },
    /// A source of noise changes.
    Noise { source: u32, turn: noise::Turn },
}

/// A medium and its radios.
pub struct Medium {
    seed: u64,
    name: String,
    now: Instant,
    radios: Vec<Radio>,
    addresses: BTreeMap<[u8; 6], RadioId>,
    reach: Reach,
    fading: Fading,
    error: Box<dyn ErrorModel>,
    /// One decoder for each physical layer in use, in their order of appearance.
    decoders: Vec<Decoder>,
    decoder_names: Vec<&'static str>,
    /// Frame error rates of pairs, sender first.
    frame_errors: BTreeMap<(u32, u32), f64>,
    /// Frames on the air; numbers are used again.
    air: Vec<Option<Sending>>,
    free: Vec<u32>,
    spare: Vec<Vec<reach::Heard>>,
    noises: Vec<noise::Source>,
    channels: sniff::Channels,
    sniffing: bool,
    calendar: Calendar<Event>,
    timers: Timers,
    clusters: Vec<Cluster>,
    /// When the first of those who sleep in each cluster may send.
    rises: Timers,
    /// Counts how often clusters were dissolved, and the frames since.
    generation: u64,
    settled: u32,
    /// Receivers that had to be told of a frame for themselves so far.
    told: u64,
    /// Ranks in a cluster, kept for their buffer.
    rising: Vec<usize>,
}

/// Power in mW below which a signal is ignored, by default: 16 dB below the noise of a perfect
/// receiver in 20 MHz.
pub const FLOOR_DBM: f64 = -117.0;

impl Medium {
    /// A medium with the given loss between places; frames do not fade, errors follow
    /// [`error::Standard`].
    #[must_use]
    pub fn new(seed: u64, name: &str, loss: Box<dyn PathLoss>) -> Self {
        Self {
            seed,
            name: name.to_owned(),
            now: Instant::ZERO,
            radios: Vec::new(),
            addresses: BTreeMap::new(),
            reach: Reach::new(loss, FLOOR_DBM),
            fading: Fading::None,
            error: Box::new(Standard),
            decoders: Vec::new(),
            decoder_names: Vec::new(),
            frame_errors: BTreeMap::new(),
            air: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            noises: Vec::new(),
            channels: sniff::Channels::default(),
            sniffing: false,
            calendar: Calendar::default(),
            timers: Timers::default(),
            clusters: Vec::new(),
            rises: Timers::default(),
            generation: 1,
            settled: 0,
            told: 0,
            rising: Vec::new(),
        }
    }

    /// Signals weaker than this many dBm at a receiver, fading apart, are ignored from now on.
    pub fn set_floor(&mut self, floor_dbm: f64) {
        self.dissolve();
        self.reach.set_floor(floor_dbm);
    }

    /// From now on signals fade in this way.
    pub fn set_fading(&mut self, fading: Fading) {
        self.dissolve();
        self.reach.set_margin(fading.margin_db());
        self.fading = fading;
    }

    /// From now on bits fail by this model.
    pub fn set_error_model(&mut self, model: Box<dyn ErrorModel>) {
        self.dissolve();
        self.error = model;
        self.decoders.clear();
        for name in &self.decoder_names {
            if let Some(phy) = phy::tables::by_name(name) {
                self.decoders.push(Decoder::new(&*self.error, phy));
            }
        }
    }

    /// From now on signals are lost on the way by this model.
    pub fn set_loss(&mut self, loss: Box<dyn PathLoss>) {
        self.dissolve();
        self.reach.set_loss(loss);
    }

    /// From now on frames from one radio to another fail with this probability (0 to 1), on top
    /// of everything else and whatever their length or rate.
    pub fn set_frame_error(&mut self, from: RadioId, to: RadioId, probability: f64) {
        self.dissolve();
        self.frame_errors.insert((from.0, to.0), probability);
    }

    /// Adds a radio.
    ///
    /// # Errors
    /// The first setting that cannot work, or an address that is already there.
    pub fn add_radio(
        &mut self,
        name: &str,
        settings: RadioSettings,
        mut mobility: Box<dyn Mobility>,
    ) -> Result<RadioId, SettingsError> {
        let checked = settings.check(name)?;
        if let Some(other) = self.addresses.get(&settings.mac) {
            let other = self.radios[other.index()].name.clone();
            return Err(SettingsError::Address { radio: name.to_owned(), other });
        }
        if !mobility.position(self.now).is_sane() {
            return Err(SettingsError::Position { radio: name.to_owned() });
        }
        self.dissolve();
        let id = RadioId(u32::try_from(self.radios.len()).unwrap_or(u32::MAX));
        let phy = checked.phy;
        let known = self.decoder_names.iter().position(|known| *known == phy.name);
        let decoder = known.unwrap_or_else(|| {
            self.decoders.push(Decoder::new(&*self.error, phy));
            self.decoder_names.push(phy.name);
            self.decoders.len() - 1
        });
        let slot = phy.slot + Span::from_micros(3 * u64::from(settings.coverage_class));
        self.addresses.insert(settings.mac, id);
        self.reach.add(Place {
            mobility,
            eirp_dbm: settings.power_dbm + settings.gain_dbi,
            gain_dbi: settings.gain_dbi,
            channel: checked.channel,
            up: true,
        });
        self.timers.add();
        // Thermal noise at 290 K: -174 dBm/Hz (k T = 1.380649e-23 J/K * 290 K).
        let noise =
            1.380_649e-23 * 290.0 * 1e3 * f64::from(phy.bandwidth_hz) * linear(settings.noise_figure_db);
        self.radios.push(Radio {
            name: name.to_owned(),
            phy,
            slot,
            extension: phy.eifs().saturating_sub(phy.difs()),
            basic: checked.basic,
            control: checked.control,
            decoder: u8::try_from(decoder).unwrap_or(0),
            dice: Stream::named(self.seed, &format!("{}/{name}", self.name)),
            rate: rate::controller(&settings.rate, phy),
            noise,
            ambient: 0.0,
            sense: linear(settings.carrier_sense_dbm),
            sensitivity: linear(settings.receive_dbm),
            preamble_ratio: settings.preamble_db.map_or(0.0, linear),
            capture_ratio: settings.capture_db.map_or(f64::INFINITY, linear),
            capture_window: Span::from_nanos(settings.capture_ns.unwrap_or(u64::MAX)),
            switched_on: true,
            cell: Cell::new(&settings.membership, checked.channels),
            away: false,
            scan: None,
            ordered: None,
            scanned: Scanned::default(),
            step: 0,
            energy: 0.0,
            signals: 0,
            lock: None,
            transmitting: false,
            busy: false,
            idle_since: self.now,
            account: Account::new(self.now),
            overheard: 0,
            cluster: None,
            asleep: false,
            alone: 0,
            lanes: mac::lanes(phy, slot, settings.qos),
            counting: true,
            stopped: Instant::ZERO,
            stopped_self: true,
            free_since: self.now,
            reserved_until: self.now,
            extended: false,
            broken_at: None,
            access_at: Instant::NEVER,
            stage: Stage::Free,
            answer: None,
            txop_until: Instant::ZERO,
            sequence: 0,
            heard_from: BTreeMap::new(),
            waiting: 0,
            counts: RadioCounts::default(),
            peers: BTreeMap::new(),
            settings,
        });
        self.soak(id.index());
        self.enlist(id.index());
        Ok(id)
    }

    /// When the medium wants to be called next.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let next = self
            .timers
            .first_at()
            .min(self.rises.first_at())
            .min(self.calendar.next_at().unwrap_or(Instant::NEVER));
        (next < Instant::NEVER).then_some(next)
    }

    /// Lets everything happen that is due at or before `until`.
    pub fn advance(&mut self, until: Instant, outside: &mut impl Outside) {
        while self.step(until, outside) {}
        if until < Instant::NEVER {
            self.pass(until);
        }
    }

    /// Lets the next thing happen, if it is due at or before `until`; false if nothing was.
    pub fn step(&mut self, until: Instant, outside: &mut impl Outside) -> bool {
        let (timer, rise) = (self.timers.first_at(), self.rises.first_at());
        if rise < Instant::NEVER && rise <= timer.min(self.calendar.next_at().unwrap_or(Instant::NEVER)) {
            if rise > until {
                return false;
            }
            self.now = rise;
            self.calendar.pass(rise);
            self.rise(self.rises.first(), rise);
            return true;
        }
        // What ends on the air at an instant makes way for what begins at it.
        if timer >= self.calendar.next_at().unwrap_or(Instant::NEVER) {
            let Some((key, event)) = self.calendar.pop(until) else { return false };
            self.now = key.at;
            match event {
                Event::End(number) => self.end(key.at, number, outside),
                Event::Deliver { radio, frame } => outside.deliver(RadioId(radio), key.at, frame),
                Event::Unclear { radio, since } => self.unclear(radio as usize, since, key.at),
                Event::Beacon { radio } => self.beacon(radio as usize, outside),
                Event::Search { radio, step } => self.search(radio as usize, step, outside),
                Event::Unheard { cluster, since } => self.unheard(cluster, since),
                Event::Noise { source, turn } => self.noise(source, turn),
            }
            return true;
        }
        if timer > until {
            return false;
        }
        debug_assert!(timer >= self.now, "a timer for {timer} fires at {}", self.now);
        self.now = timer;
        self.calendar.pass(timer);
        self.fire(self.timers.first(), timer, outside);
        true
    }

    /// Declares that time has reached `now` and nothing was due before.
    pub fn pass(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.calendar.pass(now);
    }

    /// Calls `visit` for every frame inside that has not met its fate.
    pub fn visit(&self, visit: &mut dyn FnMut(&Frame)) {
        for lane in self.radios.iter().flat_map(|radio| &radio.lanes) {
            lane.queue
                .iter()
                .filter(|waiting| !waiting.arrived)
                .filter_map(|w| w.frame.as_ref())
                .for_each(&mut *visit);
        }
        self.calendar.events().for_each(|event| {
            if let Event::Deliver { frame, .. } = event {
                visit(frame);
            }
        });
    }

    /// The instant that the medium has reached.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Puts a radio on another path from the present instant on.
    ///
    /// # Errors
    /// If the path's present place is not a number of metres.
    pub fn set_mobility(
        &mut self,
        radio: RadioId,
        mut mobility: Box<dyn Mobility>,
    ) -> Result<(), SettingsError> {
        if !mobility.position(self.now).is_sane() {
            return Err(SettingsError::Position { radio: self.radios[radio.index()].name.clone() });
        }
        self.dissolve();
        self.reach.places[radio.index()].mobility = mobility;
        self.reach.moved(radio.index(), self.now);
        self.soak(radio.index());
        self.follow_noise();
        Ok(())
    }

    /// Where a radio is at the instant that the medium has reached.
    pub fn position(&mut self, radio: RadioId) -> Position {
        self.reach.places[radio.index()].mobility.position(self.now)
    }

    /// Power in dBm at which `to` would hear `from` now, without fading.
    pub fn power_at(&mut self, from: RadioId, to: RadioId) -> f64 {
        self.reach.path(from.index(), to.index(), self.now).0
    }

    /// How often the place of a radio was asked for or a loss between two was computed so far: the
    /// work that grows with the number of radios.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.reach.work()
    }

    /// How often so far a receiver had to be told of a frame for itself: the work that grows with
    /// the number of those who hear each other. For the others one record stands.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.told
    }

    /// What a radio counted.
    #[must_use]
    pub fn counts(&mut self, radio: RadioId) -> RadioCounts {
        self.wake(radio.index());
        self.radios[radio.index()].counts
    }

    /// Where a radio's time went, up to `at`.
    #[must_use]
    pub fn airtime(&mut self, radio: RadioId, at: Instant) -> Airtime {
        self.wake(radio.index());
        self.radios[radio.index()].account.at(at)
    }

    /// A radio's settings, with all changes.
    #[must_use]
    pub fn settings(&self, radio: RadioId) -> &RadioSettings {
        &self.radios[radio.index()].settings
    }

    /// Whether a radio is switched on.
    #[must_use]
    pub fn is_on(&self, radio: RadioId) -> bool {
        self.radios[radio.index()].switched_on
    }

    /// The channel that a radio is tuned to.
    #[must_use]
    pub fn channel(&self, radio: RadioId) -> phy::Channel {
        self.reach.places[radio.index()].channel
    }

    /// Frames that wait in a radio, the one it is busy with included.
    #[must_use]
    pub fn queued(&self, radio: RadioId) -> u32 {
        self.radios[radio.index()].waiting
    }
}
