//! Reception on every channel of a band.
//!
//! A radio of an 802.11 stack ([`super::wlan`]) is tuned to the channel of its last request, where
//! it senses, reserves, transmits and answers as any radio. The engine does not learn on which
//! channel a stack listens while it is silent (a passive scan, a monitor), unless its driver says so
//! ([`crate::medium::wlan::listening`]). So the radio receives on all channels of its bands, each with its own state: interference, followed frame, noise. The
//! stack discards what it does not want to hear.

use std::collections::BTreeMap;

use crate::medium::mac::lane::AccessPoint;
use crate::medium::phy::{Channel, Phy};
use crate::medium::radio::layer::Layer;
use crate::medium::radio::reception::Reception;
use crate::medium::reach::leakage::Leakage;
use crate::time::Instant;

/// Reception of the channels that the radio is not tuned to.
pub(in crate::medium) struct Wideband {
    pub(in crate::medium) tuned: Channel,
    others: Vec<OtherChannel>,
    leakage: Leakage,
    /// The physical layer of all its bands, and what the radio has of the layer of each, if they differ.
    pub(in crate::medium) phy: &'static Phy,
    layers: Vec<Layer>,
    /// The access point whose EDCA parameters the radio has.
    pub(in crate::medium) access_point: Option<AccessPoint>,
    /// Where its stack listens.
    pub(in crate::medium) ear: Ear,
    /// Its addresses that have left their network and sent nothing since.
    pub(in crate::medium) left: Vec<[u8; 6]>,
    /// Where it returns at the end of its exchange.
    pub(in crate::medium) home: Option<Home>,
    /// Frames that its stack wanted to send where the radio has no channel, by frequency in MHz.
    foreign: BTreeMap<u16, u64>,
}

/// Maximum number of frequencies without a channel that are counted apart.
const MAX_FOREIGN: usize = 64;

/// Reception on a channel that the radio is not tuned to.
struct OtherChannel {
    channel: Channel,
    reception: Reception,
}

impl Wideband {
    /// Reception on all channels of a physical layer by a radio that is tuned to one of them.
    pub(in crate::medium) fn new(
        phy: &'static Phy,
        layers: Vec<Layer>,
        tuned: Channel,
        leakage: Leakage,
    ) -> Self {
        let silent = |channel| OtherChannel { channel, reception: Reception::default() };
        let others = Channel::all(phy.bands).filter(|&channel| channel != tuned).map(silent).collect();
        Self {
            tuned,
            others,
            leakage,
            phy,
            layers,
            access_point: None,
            ear: Ear::default(),
            left: Vec::new(),
            home: None,
            foreign: BTreeMap::new(),
        }
    }

    /// Takes over the leakage between channels of other laws.
    pub(in crate::medium) fn follow(&mut self, leakage: Leakage) {
        self.leakage = leakage;
    }

    /// Counts a frame for a frequency at which the radio has no channel.
    pub(in crate::medium) fn count_foreign(&mut self, mhz: u16) {
        if self.foreign.len() < MAX_FOREIGN || self.foreign.contains_key(&mhz) {
            *self.foreign.entry(mhz).or_default() += 1;
        }
    }

    /// Ends receptions on the other channels that have infinite noise.
    pub(in crate::medium) fn lose_deaf(&mut self) {
        for other in self.others.iter_mut().filter(|other| other.reception.is_deaf()) {
            other.reception.lose();
        }
    }

    /// Ends receptions on all other channels: the radio transmits.
    pub(in crate::medium) fn lose_others(&mut self) {
        for other in &mut self.others {
            other.reception.lose();
        }
    }

    /// Share of the power of a signal on `sent` that reaches the channel that the radio is tuned to.
    pub(in crate::medium) fn share_tuned(&self, sent: Channel) -> f64 {
        self.leakage.share(sent, self.tuned)
    }

    /// The other channels that a signal on `sent` reaches, each with the share of its power there.
    pub(in crate::medium) fn reached(
        &mut self,
        sent: Channel,
    ) -> impl Iterator<Item = (Channel, &mut Reception, f64)> {
        let Self { others, leakage, .. } = self;
        others.iter_mut().filter_map(move |other| {
            let share = leakage.share(sent, other.channel);
            (share > 0.0).then_some((other.channel, &mut other.reception, share))
        })
    }

    /// All other channels.
    pub(in crate::medium) fn others(&mut self) -> impl Iterator<Item = (Channel, &mut Reception)> {
        self.others.iter_mut().map(|other| (other.channel, &mut other.reception))
    }

    /// Tunes to a channel: `tuned`, the reception of the present one, becomes that of the new one.
    pub(in crate::medium) fn tune(&mut self, channel: Channel, tuned: &mut Reception) {
        if let Some(other) = self.others.iter_mut().find(|other| other.channel == channel) {
            core::mem::swap(tuned, &mut other.reception);
            other.channel = core::mem::replace(&mut self.tuned, channel);
        }
    }

    /// What the radio has of the layer of a channel, if its bands have different ones.
    pub(in crate::medium) fn layer(&self, channel: Channel) -> Option<Layer> {
        self.layers.iter().find(|layer| core::ptr::eq(layer.phy, self.phy.on(channel))).copied()
    }

    /// Frames for frequencies without a channel, by frequency in MHz.
    pub(in crate::medium) fn foreign(&self) -> &BTreeMap<u16, u64> {
        &self.foreign
    }

    /// The channel of this frequency; the tuned one for 0.
    pub(in crate::medium) fn channel(&self, mhz: u16) -> Option<Channel> {
        let others = self.others.iter().map(|other| other.channel);
        core::iter::once(self.tuned).chain(others).find(|channel| channel.mhz == mhz || mhz == 0)
    }
}

/// Where the stack of a radio listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::medium) enum Ear {
    /// Its driver does not say.
    #[default]
    Unsaid,
    /// On no channel of the radio.
    Nowhere,
    /// On this one.
    On(Channel),
}

/// The channel that a radio returns to at the end of its exchange.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Home {
    pub(in crate::medium) channel: Channel,
    /// What it knew about its channel: end of the reservation, EIFS, end of the last broken frame.
    pub(in crate::medium) knew: Option<(Instant, bool, Option<Instant>)>,
}
