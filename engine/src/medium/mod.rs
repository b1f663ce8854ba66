//! The radio medium: IEEE 802.11 stations on shared channels.
//!
//! The layers are small traits, each with its formula and source: position ([`mobility`]), loss
//! ([`propagation`]), interference, error probability ([`error`]), rates and timing ([`phy`]), the
//! distributed coordination function (`mac`), rate control ([`rate`]). A [`Medium`] is a separate
//! state machine: it accepts frames, returns the time of its next event, and passes frames to an
//! [`Outside`]. It draws from streams named after its radios, so an additional radio out of range
//! changes nothing for the others.
//!
//! Two approximations are intentional. All receivers of a frame are processed when it leaves its
//! sender, each with its own arrival time; if the order of arrival of two frames differs from the
//! order of their starts, the result is exact only to within a propagation delay. A receiver that
//! follows a frame follows it to its end, even if its header was corrupted.

pub mod error;
pub mod mobility;
pub mod phy;
pub mod propagation;
pub mod rate;

mod air;
mod airtime;
mod bss;
pub mod capture;
mod card;
mod change;
mod cluster;
mod codes;
mod collision;
mod gap;
pub mod header;
mod hearing;
mod hops;
mod index;
mod interworking;
mod joint_processing;
mod laws;
mod leakage;
mod listeners;
mod mac;
pub mod management;
mod motions;
mod noise;
mod outside;
mod peers;
mod police;
mod radio;
mod reach;
mod scan;
mod settings;
mod shares;
mod slots;
mod sniff;
mod timers;
pub mod translation;
mod uncontended;
mod wideband;
mod windows;
pub mod wlan;

pub use airtime::Airtime;
pub use card::{CardCounts, CardSettings};
pub use change::RadioChange;
pub use codes::CodeSettings;
pub use hops::HopSettings;
pub use laws::{
    CurveSettings, ErrorSettings, FadingSettings, LossSettings, MediumSettings, ShadowingSettings,
    WallSettings,
};
pub use leakage::{Leakage, LeakageSettings};
pub use motions::MobilitySettings;
pub use noise::NoiseSettings;
pub use outside::Outside;
pub use peers::PeerCounts;
pub use police::{ChannelUse, Police, Policed, Violated, Violation};
pub use radio::{Kind, RadioCounts, RadioId, To};
pub use scan::{Scanned, Sighting};
pub use settings::{Membership, RadioSettings, RateSettings, Roaming, SettingsError};
pub use slots::SlotSettings;
pub use sniff::ChannelAirtime;
pub use uncontended::AccessSettings;

use std::collections::BTreeMap;

use crate::calendar::Calendar;
use crate::frame::Frame;
use crate::math::linear;
use crate::random::Stream;
use crate::time::{Instant, Span};

use air::Sending;
use airtime::Account;
use bss::Cell;
use card::SleepAccount;
use cluster::{Cluster, ClusterId};
use error::{Decoder, ErrorModel, Standard};
use hops::Sequence;
use mobility::{Mobility, Position};
use propagation::{Fading, PathLoss};
use radio::{Radio, Stage};
use reach::{Place, Reach};
use timers::Timers;
use uncontended::Uncontended;
use wideband::Wideband;
use windows::Windows;

/// An event of a medium.
#[derive(Clone, Debug)]
enum Event {
    /// A transmission ends.
    End(u32),
    /// The last bit of a frame has left a radio without channel access.
    Left { radio: u32 },
    /// A frame is delivered to a node.
    Deliver { radio: u32, frame: Frame },
    /// An 802.11 frame is delivered to the stack of a node.
    DeliverWlan { radio: u32, frame: Frame, status: wlan::RxStatus },
    /// Checks whether a request-to-send was answered.
    NavReset { radio: u32, since: Instant },
    /// Beacon time.
    Beacon { radio: u32 },
    /// A step of a scan.
    Search { radio: u32, step: u32 },
    /// Checks for the sleeping radios of a cluster whether a request-to-send was answered.
    RequestUnanswered { cluster: ClusterId, since: Instant },
    /// A transmission window of a radio begins or ends.
    Window { radio: u32, epoch: u32 },
    /// A dwell of this length in nanoseconds begins.
    Hop { dwell: u64 },
    /// Looks for slices that do not use their airtime while others wait for it.
    Share { group: u32 },
    /// The next step of a card.
    Card { card: u32, epoch: u32 },
    /// A radio violated its grant too often.
    Cut { radio: u32 },
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
    /// Frames on the air; numbers are reused.
    air: Vec<Option<Sending>>,
    free: Vec<u32>,
    spare: Vec<Vec<reach::Heard>>,
    noises: Vec<noise::Source>,
    cards: Vec<card::Card>,
    channels: sniff::Channels,
    /// Queues of the radios, if the medium has no channel access.
    uncontended: Option<Box<Uncontended>>,
    /// Lengths of dwells of hopping radios in nanoseconds; and, kept to reuse the allocation, the
    /// radios that hopped last.
    dwells: Vec<u64>,
    hopped: Vec<usize>,
    /// Slices and their violations.
    registry: police::Registry,
    /// Slices that share channels by weights.
    groups: Vec<shares::Group>,
    sniffing: bool,
    calendar: Calendar<Event>,
    timers: Timers,
    clusters: Vec<Cluster>,
    /// When the first sleeping radio of each cluster may send.
    access_timers: Timers,
    /// Counts dissolutions of clusters, and the frames since the last one.
    generation: u64,
    stable_frames: u32,
    /// Number of receptions that were processed individually.
    individual_receptions: u64,
    /// Ranks in a cluster; kept to reuse the allocation.
    ranks: Vec<usize>,
    /// Octets of an Ethernet frame and of an 802.11 frame; kept to reuse the allocations.
    scratch: (Vec<u8>, Vec<u8>),
}

/// Default power in dBm below which a signal is ignored: 16 dB below the noise of a perfect
/// receiver in 20 MHz.
pub const FLOOR_DBM: f64 = -117.0;

impl Medium {
    /// A medium with the given path loss; signals do not fade, errors follow [`error::Standard`].
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
            cards: Vec::new(),
            channels: sniff::Channels::default(),
            uncontended: None,
            dwells: Vec::new(),
            hopped: Vec::new(),
            registry: police::Registry::default(),
            groups: Vec::new(),
            sniffing: false,
            calendar: Calendar::default(),
            timers: Timers::default(),
            clusters: Vec::new(),
            access_timers: Timers::default(),
            generation: 1,
            stable_frames: 0,
            individual_receptions: 0,
            ranks: Vec::new(),
            scratch: (Vec::new(), Vec::new()),
        }
    }

    /// Sets the power in dBm at a receiver, without fading, below which signals are ignored.
    pub fn set_floor(&mut self, floor_dbm: f64) {
        self.dissolve_clusters();
        self.reach.set_floor(floor_dbm);
    }

    /// Sets the fading model.
    pub fn set_fading(&mut self, fading: Fading) {
        self.dissolve_clusters();
        self.reach.set_margin(fading.margin_db());
        self.fading = fading;
    }

    /// Sets the error model.
    pub fn set_error_model(&mut self, model: Box<dyn ErrorModel>) {
        self.dissolve_clusters();
        self.error = model;
        self.decoders.clear();
        for name in &self.decoder_names {
            if let Some(phy) = phy::tables::by_name(name) {
                self.decoders.push(Decoder::new(&*self.error, phy));
            }
        }
    }

    /// Sets the leakage between channels, for radios that are added from now on.
    pub fn set_leakage(&mut self, leakage: Leakage) {
        self.dissolve_clusters();
        self.reach.set_leakage(leakage);
    }

    /// Sets the loss in dB between radios at one place; without it the path loss model decides.
    pub fn set_antenna_isolation(&mut self, loss_db: Option<f64>) {
        self.dissolve_clusters();
        self.reach.set_antenna_isolation(loss_db);
    }

    /// Sets the path loss model.
    pub fn set_loss(&mut self, loss: Box<dyn PathLoss>) {
        self.dissolve_clusters();
        self.reach.set_loss(loss);
    }

    /// Sets the frame error probability (0 to 1) from one radio to another. It applies in addition
    /// to all other losses, independent of length and rate.
    pub fn set_frame_error(&mut self, from: RadioId, to: RadioId, probability: f64) {
        self.dissolve_clusters();
        self.frame_errors.insert((from.0, to.0), probability);
    }

    /// Adds a radio.
    ///
    /// # Errors
    /// Names the first invalid setting, or an address that is already in use.
    pub fn add_radio(
        &mut self,
        name: &str,
        settings: RadioSettings,
        mut mobility: Box<dyn Mobility>,
    ) -> Result<RadioId, SettingsError> {
        let checked = settings.check(name)?;
        let rate = uncontended::rate_of(name, &settings.rate, self.uncontended.is_some())?;
        if let Some(other) = self.addresses.get(&settings.mac) {
            let other = self.radios[other.index()].name.clone();
            return Err(SettingsError::Address { radio: name.to_owned(), other });
        }
        if !mobility.position(self.now).is_sane() {
            return Err(SettingsError::Position { radio: name.to_owned() });
        }
        self.dissolve_clusters();
        if let (Some(state), Some(rate)) = (&mut self.uncontended, rate) {
            uncontended::check_membership(name, &settings.membership)?;
            state.add(rate, self.now);
        }
        let id = RadioId(u32::try_from(self.radios.len()).unwrap_or(u32::MAX));
        let phy = checked.phy;
        let known = self.decoder_names.iter().position(|known| *known == phy.name);
        let decoder = known.unwrap_or_else(|| {
            self.decoders.push(Decoder::new(&*self.error, phy));
            self.decoder_names.push(phy.name);
            self.decoders.len() - 1
        });
        let wlan = settings.membership == Membership::Wlan;
        let slot = phy.slot + Span::from_micros(3 * u64::from(settings.coverage_class));
        let windows = Windows::of(&settings);
        let watched = settings.slots.as_ref().filter(|slots| !slots.hold).map(SlotSettings::windows);
        let in_window = windows.as_ref().is_none_or(|windows| windows.window_end(self.now).is_some());
        let hops = settings.hops.as_ref().map(|hops| Sequence::new(hops, checked.hops));
        if !wlan {
            self.addresses.insert(settings.mac, id);
        }
        self.reach.add(Place {
            mobility,
            eirp_dbm: settings.power_dbm + settings.gain_dbi,
            gain_dbi: settings.gain_dbi,
            channel: hops.as_ref().map_or(checked.channel, |hops| hops.channel(self.now)),
            up: true,
            wideband: wlan,
            card: 0,
            code: settings.code,
        });
        self.timers.add();
        // Thermal noise at 290 K: -174 dBm/Hz (k T = 1.380649e-23 J/K * 290 K).
        let noise =
            1.380_649e-23 * 290.0 * 1e3 * f64::from(phy.bandwidth_hz) * linear(settings.noise_figure_db);
        // After the correlation with its code.
        let despread = settings.code.map_or(1.0, CodeSettings::noise);
        self.radios.push(Radio {
            name: name.to_owned(),
            phy,
            slot,
            extension: phy.eifs().saturating_sub(phy.difs()),
            basic: checked.basic,
            control: checked.control,
            decoder: u8::try_from(decoder).unwrap_or(0),
            random: Stream::named(self.seed, &format!("{}/{name}", self.name)),
            rate: rate::controller(&settings.rate, phy),
            noise: noise * despread,
            ambient: 0.0,
            sense: linear(settings.carrier_sense_dbm),
            sensitivity: linear(settings.receive_dbm) * despread,
            preamble_ratio: settings.preamble_db.map_or(0.0, linear),
            capture_ratio: settings.capture_db.map_or(f64::INFINITY, linear),
            capture_window: Span::from_nanos(settings.capture_ns.unwrap_or(u64::MAX)),
            switched_on: true,
            cell: Cell::new(&settings.membership, checked.channels),
            dozing: SleepAccount::default(),
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
            unclustered: 0,
            lanes: mac::lanes(phy, slot, settings.qos || wlan),
            counting: in_window,
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
            wideband: wlan.then(|| {
                Box::new(Wideband::new(checked.channel, phy::Channel::all(phy.bands), self.reach.leakage))
            }),
            monitor: settings.monitor,
            card: None,
            held: false,
            counts: RadioCounts::default(),
            peers: BTreeMap::new(),
            policer: None,
            share: None,
            in_window,
            window_epoch: 0,
            windows,
            hops,
            watched,
            settings,
        });
        self.watch_windows(id.0);
        self.watch_hops(id.index());
        self.soak(id.index());
        self.enlist(id.index());
        Ok(id)
    }

    /// Time of the next event; [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let next = self
            .timers
            .first_at()
            .min(self.access_timers.first_at())
            .min(self.calendar.next_at().unwrap_or(Instant::NEVER));
        (next < Instant::NEVER).then_some(next)
    }

    /// Processes all events that are due at or before `until`.
    pub fn advance(&mut self, until: Instant, outside: &mut impl Outside) {
        while self.step(until, outside) {}
        if until < Instant::NEVER {
            self.pass(until);
        }
    }

    /// Processes the next event if it is due at or before `until`; false if none was.
    pub fn step(&mut self, until: Instant, outside: &mut impl Outside) -> bool {
        let (timer, access) = (self.timers.first_at(), self.access_timers.first_at());
        if access < Instant::NEVER && access <= timer.min(self.calendar.next_at().unwrap_or(Instant::NEVER)) {
            if access > until {
                return false;
            }
            self.now = access;
            self.calendar.pass(access);
            self.wake_contenders(self.access_timers.first(), access);
            return true;
        }
        // At one instant, transmissions end before others begin.
        if timer >= self.calendar.next_at().unwrap_or(Instant::NEVER) {
            let Some((key, event)) = self.calendar.pop(until) else { return false };
            self.now = key.at;
            match event {
                Event::End(number) => self.end(key.at, number, outside),
                Event::Left { radio } => self.left(key.at, radio, outside),
                Event::Deliver { radio, frame } => outside.deliver(RadioId(radio), key.at, frame),
                Event::DeliverWlan { radio, frame, status } => {
                    outside.deliver_wlan(RadioId(radio), key.at, frame, &status);
                }
                Event::NavReset { radio, since } => self.reset_nav(radio as usize, since, key.at),
                Event::Beacon { radio } => self.beacon(radio as usize, outside),
                Event::Search { radio, step } => self.search(radio as usize, step, outside),
                Event::RequestUnanswered { cluster, since } => self.request_unanswered(cluster, since),
                Event::Window { radio, epoch } => self.window_edge(radio, epoch),
                Event::Hop { dwell } => self.hop(dwell),
                Event::Share { group } => self.seek_stalled(group as usize),
                Event::Card { card, epoch } => self.card_due(card, epoch, outside),
                Event::Cut { radio } => self.cut(radio, outside),
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

    /// Advances the time to `now`; no earlier event may be pending.
    pub fn pass(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.calendar.pass(now);
    }

    /// Calls `visit` for every frame inside that is neither delivered nor dropped.
    pub fn visit(&self, visit: &mut dyn FnMut(&Frame)) {
        for lane in self.radios.iter().flat_map(|radio| &radio.lanes) {
            lane.queue
                .iter()
                .filter(|waiting| !waiting.arrived)
                .filter_map(|w| w.frame.as_ref())
                .for_each(&mut *visit);
        }
        for radio in &self.radios {
            if let Cell::AccessPoint { dozing, .. } = &radio.cell {
                dozing.frames().filter_map(|waiting| waiting.frame.as_ref()).for_each(&mut *visit);
            }
        }
        self.uncontended.iter().flat_map(|state| state.frames()).for_each(&mut *visit);
        self.calendar.events().for_each(|event| {
            if let Event::Deliver { frame, .. } | Event::DeliverWlan { frame, .. } = event {
                visit(frame);
            }
        });
    }

    /// The present instant of the medium.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Sets the mobility model of a radio from the present instant on.
    ///
    /// # Errors
    /// If the model's present position is not finite.
    pub fn set_mobility(
        &mut self,
        radio: RadioId,
        mut mobility: Box<dyn Mobility>,
    ) -> Result<(), SettingsError> {
        if !mobility.position(self.now).is_sane() {
            return Err(SettingsError::Position { radio: self.radios[radio.index()].name.clone() });
        }
        self.dissolve_clusters();
        self.reach.places[radio.index()].mobility = mobility;
        self.reach.moved(radio.index(), self.now);
        self.soak(radio.index());
        self.follow_noise();
        Ok(())
    }

    /// Position of a radio at the present instant of the medium.
    pub fn position(&mut self, radio: RadioId) -> Position {
        self.reach.places[radio.index()].mobility.position(self.now)
    }

    /// Power in dBm, without fading, at which `to` receives a transmission of `from` now.
    pub fn power_at(&mut self, from: RadioId, to: RadioId) -> f64 {
        self.reach.path(from.index(), to.index(), self.now).0
    }

    /// Number of position queries and path loss computations so far: the work that grows with the
    /// number of radios.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.reach.work()
    }

    /// Number of receptions processed individually so far: the work that grows with the number of
    /// radios in range of each other. One record represents the other receptions.
    #[must_use]
    pub fn individual_receptions(&self) -> u64 {
        self.individual_receptions
    }

    /// Counters of a radio.
    #[must_use]
    pub fn counts(&mut self, radio: RadioId) -> RadioCounts {
        self.wake(radio.index());
        self.radios[radio.index()].counts
    }

    /// Airtime of a radio by state, up to `at`.
    #[must_use]
    pub fn airtime(&mut self, radio: RadioId, at: Instant) -> Airtime {
        self.wake(radio.index());
        self.radios[radio.index()].account.at(at)
    }

    /// Time in which the station of a radio's stack dozed, up to now.
    #[must_use]
    pub fn dozed(&self, radio: RadioId) -> Span {
        self.radios[radio.index()].dozing.total(self.now)
    }

    /// Present settings of a radio, including all changes.
    #[must_use]
    pub fn settings(&self, radio: RadioId) -> &RadioSettings {
        &self.radios[radio.index()].settings
    }

    /// True if a radio is on.
    #[must_use]
    pub fn is_on(&self, radio: RadioId) -> bool {
        self.radios[radio.index()].switched_on
    }

    /// The channel of a radio.
    #[must_use]
    pub fn channel(&self, radio: RadioId) -> phy::Channel {
        self.reach.places[radio.index()].channel
    }

    /// Number of frames in a radio's queues, including the one in transmission.
    #[must_use]
    pub fn queued(&self, radio: RadioId) -> u32 {
        self.radios[radio.index()].waiting
    }
}
