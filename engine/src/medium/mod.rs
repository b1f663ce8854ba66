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
pub mod wlan;

mod air;
mod bss;
mod card;
mod change;
mod cluster;
mod errors;
mod mac;
mod monitor;
mod noise;
mod outside;
mod radio;
mod reach;
mod refit;
mod scan;
mod settings;
mod setup;
mod shared;
mod signal;
mod slices;
mod timers;
mod types;
mod uncontended;

pub use card::settings::{CardCounts, CardSettings};
pub use change::RadioChange;
pub use monitor::{ChannelAirtime, capture};
pub use noise::NoiseSettings;
pub use outside::Outside;
pub use radio::RadioCounts;
pub use radio::airtime::Airtime;
pub use radio::peers::PeerCounts;
pub use radio::scan_state::{Scanned, Sighting};
pub use reach::leakage::{Leakage, LeakageSettings};
pub use settings::error::SettingsError;
pub use settings::medium::{
    CurveSettings, ErrorSettings, FadingSettings, LossSettings, MediumSettings, ShadowingSettings,
    WallSettings,
};
pub use settings::mobility::MobilitySettings;
pub use settings::radio::{Membership, RadioSettings, RateSettings, Roaming};
pub use slices::codes::CodeSettings;
pub use slices::hops::HopSettings;
pub use slices::policer::{ChannelUse, Police, Policed, Violated, Violation};
pub use slices::slots::SlotSettings;
pub use types::{Kind, RadioId, To};
pub use uncontended::AccessSettings;

use std::collections::BTreeMap;

use crate::frame::Frame;
use crate::time::{Instant, Span};

use air::Air;
use bss::cell::Cell;
use card::state::Card;
use cluster::Clusters;
use errors::Errors;
use mobility::{Mobility, Position};
use monitor::Monitor;
use propagation::{Fading, PathLoss};
use reach::{Place, Reach};
use shared::Core;
use signal::ClusterId;
use slices::Slices;
use slices::hops::Hopping;
use uncontended::Uncontended;

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
    core: Core,
    addresses: BTreeMap<[u8; 6], RadioId>,
    fading: Fading,
    errors: Errors,
    air: Air,
    clusters: Clusters,
    slices: Slices,
    hopping: Hopping,
    cards: Vec<Card>,
    noises: Vec<noise::Source>,
    monitor: Monitor,
    /// True once a radio aggregates frames: clusters do not represent that.
    aggregates: bool,
    /// Queues of the radios, if the medium has no channel access.
    uncontended: Option<Box<Uncontended>>,
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
            core: Core::new(Reach::new(loss, FLOOR_DBM)),
            addresses: BTreeMap::new(),
            fading: Fading::None,
            errors: Errors::default(),
            air: Air::default(),
            clusters: Clusters::default(),
            slices: Slices::default(),
            hopping: Hopping::default(),
            cards: Vec::new(),
            noises: Vec::new(),
            monitor: Monitor::default(),
            aggregates: false,
            uncontended: None,
            scratch: (Vec::new(), Vec::new()),
        }
    }

    /// Time of the next event; [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let next = self
            .core
            .timers
            .first_at()
            .min(self.clusters.next_at())
            .min(self.core.calendar.next_at().unwrap_or(Instant::NEVER));
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
        let (timer, access) = (self.core.timers.first_at(), self.clusters.next_at());
        if access < Instant::NEVER
            && access <= timer.min(self.core.calendar.next_at().unwrap_or(Instant::NEVER))
        {
            if access > until {
                return false;
            }
            self.core.now = access;
            self.core.calendar.pass(access);
            self.wake_contenders(self.clusters.first(), access);
            return true;
        }
        // At one instant, transmissions end before others begin.
        if timer >= self.core.calendar.next_at().unwrap_or(Instant::NEVER) {
            let Some((key, event)) = self.core.calendar.pop(until) else { return false };
            self.core.now = key.at;
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
        debug_assert!(timer >= self.core.now, "a timer for {timer} fires at {}", self.core.now);
        self.core.now = timer;
        self.core.calendar.pass(timer);
        self.fire(self.core.timers.first(), timer, outside);
        true
    }

    /// Advances the time to `now`; no earlier event may be pending.
    pub fn pass(&mut self, now: Instant) {
        self.core.now = self.core.now.max(now);
        self.core.calendar.pass(now);
    }

    /// Calls `visit` for every frame inside that is neither delivered nor dropped.
    pub fn visit(&self, visit: &mut dyn FnMut(&Frame)) {
        for lane in self.core.radios.iter().flat_map(|radio| &radio.contention.lanes) {
            lane.queue
                .iter()
                .filter(|waiting| !waiting.arrived)
                .filter_map(|w| w.frame.as_ref())
                .for_each(&mut *visit);
        }
        for radio in self.core.radios.iter() {
            radio.exchange.reorder.values().flat_map(|reorder| reorder.frames()).for_each(&mut *visit);
            if let Cell::AccessPoint { dozing, .. } = &radio.cell {
                dozing.frames().filter_map(|waiting| waiting.frame.as_ref()).for_each(&mut *visit);
            }
        }
        self.uncontended.iter().flat_map(|state| state.frames()).for_each(&mut *visit);
        self.core.calendar.events().for_each(|event| {
            if let Event::Deliver { frame, .. } | Event::DeliverWlan { frame, .. } = event {
                visit(frame);
            }
        });
    }

    /// The present instant of the medium.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.core.now
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
        if !mobility.position(self.core.now).is_sane() {
            return Err(SettingsError::Position { radio: self.core.radios[radio.index()].name.clone() });
        }
        self.dissolve_clusters();
        self.core.reach.places[radio.index()].mobility = mobility;
        self.core.reach.moved(radio.index(), self.core.now);
        self.soak(radio.index());
        self.follow_noise();
        Ok(())
    }

    /// Position of a radio at the present instant of the medium.
    pub fn position(&mut self, radio: RadioId) -> Position {
        self.core.reach.places[radio.index()].mobility.position(self.core.now)
    }

    /// Power in dBm, without fading, at which `to` receives a transmission of `from` now.
    pub fn power_at(&mut self, from: RadioId, to: RadioId) -> f64 {
        self.core.reach.path(from.index(), to.index(), self.core.now).0
    }

    /// Number of position queries and path loss computations so far: the work that grows with the
    /// number of radios.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.core.reach.work()
    }

    /// Number of receptions processed individually so far: the work that grows with the number of
    /// radios in range of each other. One record represents the other receptions.
    #[must_use]
    pub fn individual_receptions(&self) -> u64 {
        self.clusters.individual_receptions()
    }

    /// Counters of a radio.
    #[must_use]
    pub fn counts(&mut self, radio: RadioId) -> RadioCounts {
        self.wake(radio.index());
        self.core.radios[radio.index()].counts
    }

    /// Airtime of a radio by state, up to `at`.
    #[must_use]
    pub fn airtime(&mut self, radio: RadioId, at: Instant) -> Airtime {
        self.wake(radio.index());
        self.core.radios[radio.index()].account.at(at)
    }

    /// Time in which the station of a radio's stack dozed, up to now.
    #[must_use]
    pub fn dozed(&self, radio: RadioId) -> Span {
        self.core.radios[radio.index()].dozing.total(self.core.now)
    }

    /// Present settings of a radio, including all changes.
    #[must_use]
    pub fn settings(&self, radio: RadioId) -> &RadioSettings {
        &self.core.radios[radio.index()].settings
    }

    /// True if a radio is on.
    #[must_use]
    pub fn is_on(&self, radio: RadioId) -> bool {
        self.core.radios[radio.index()].switched_on
    }

    /// True if its node, or an event, wants a radio on. It is off all the same while its slice does not
    /// have it.
    #[must_use]
    pub fn is_wanted_on(&self, radio: RadioId) -> bool {
        self.core.radios[radio.index()].wanted_on
    }

    /// The channel of a radio.
    #[must_use]
    pub fn channel(&self, radio: RadioId) -> phy::Channel {
        self.core.reach.places[radio.index()].channel
    }

    /// Number of frames in a radio's queues, including the one in transmission.
    #[must_use]
    pub fn queued(&self, radio: RadioId) -> u32 {
        self.core.radios[radio.index()].waiting
    }
}
