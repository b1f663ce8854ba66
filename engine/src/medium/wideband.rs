//! Reception on every channel of a band.
//!
//! A radio of an 802.11 stack ([`super::wlan`]) is tuned to the channel of its last request, where
//! it senses, reserves, transmits and answers as any radio. The engine does not learn on which
//! channel the stack listens while it is silent (a passive scan, a monitor). So the radio receives
//! on all channels of its band, each with its own state: interference, followed frame, noise. The
//! stack discards what it does not want to hear.

use super::Medium;
use super::air::Signal;
use super::error::Decoder;
use super::hearing::Arrived;
use super::leakage::Leakage;
use super::mac::AccessPoint;
use super::phy::Channel;
use super::radio::{Lock, Radio};
use super::reach::Heard;
use crate::time::Instant;

/// Reception of the channels that the radio is not tuned to.
pub(super) struct Wideband {
    pub(super) tuned: Channel,
    others: Vec<Reception>,
    leakage: Leakage,
    /// The access point whose EDCA parameters the radio has.
    pub(super) access_point: Option<AccessPoint>,
}

/// Reception on one channel: the counterpart of the fields of the same names in [`Radio`].
struct Reception {
    channel: Channel,
    energy: f64,
    signals: u32,
    lock: Option<Lock>,
    ambient: f64,
}

impl Wideband {
    /// Reception on these channels of a radio that is tuned to one of them.
    pub(super) fn new(tuned: Channel, channels: impl Iterator<Item = Channel>, leakage: Leakage) -> Self {
        let silent = |channel| Reception { channel, energy: 0.0, signals: 0, lock: None, ambient: 0.0 };
        let others = channels.filter(|&channel| channel != tuned).map(silent).collect();
        Self { tuned, others, leakage, access_point: None }
    }

    /// Ends receptions on channels with infinite noise.
    pub(super) fn lose_deaf(&mut self) {
        self.others
            .iter_mut()
            .filter(|other| other.ambient.is_infinite())
            .for_each(|other| other.lock = None);
    }

    /// The channel of this frequency; the tuned one for 0.
    pub(super) fn channel(&self, mhz: u16) -> Option<Channel> {
        let others = self.others.iter().map(|other| other.channel);
        core::iter::once(self.tuned).chain(others).find(|channel| channel.mhz == mhz || mhz == 0)
    }
}

impl Radio {
    /// Exchanges the reception of the tuned channel with that of another one.
    fn exchange(&mut self, other: &mut Reception) {
        core::mem::swap(&mut self.energy, &mut other.energy);
        core::mem::swap(&mut self.signals, &mut other.signals);
        core::mem::swap(&mut self.lock, &mut other.lock);
        core::mem::swap(&mut self.ambient, &mut other.ambient);
    }

    /// Calls `each` for every channel that a signal on `sent` reaches, with the share of its power
    /// there; the fields of the radio hold the reception of that channel meanwhile.
    fn on_each_channel(&mut self, sent: Channel, mut each: impl FnMut(&mut Self, Channel, f64)) {
        let Some(mut wideband) = self.wideband.take() else { return };
        let share = wideband.leakage.share(sent, wideband.tuned);
        if share > 0.0 {
            each(self, wideband.tuned, share);
        }
        for other in &mut wideband.others {
            let share = wideband.leakage.share(sent, other.channel);
            if share > 0.0 {
                self.exchange(other);
                each(self, other.channel, share);
                self.exchange(other);
            }
        }
        self.wideband = Some(wideband);
    }

    /// Handles the start of a frame on channel `sent`. The result is that of the frame's channel.
    pub(super) fn hear_on(
        &mut self,
        signal: &Signal,
        ear: &Heard,
        sent: Channel,
        decoders: &[Decoder],
    ) -> Arrived {
        let Some(tuned) = self.wideband.as_ref().map(|wideband| wideband.tuned) else {
            return self.hear(signal, ear, decoders);
        };
        let mut arrived = Arrived::Unheard;
        self.on_each_channel(sent, |radio, channel, share| {
            let ear = Heard { power: ear.power * share, tuned: channel == sent, ..*ear };
            let here = if channel == tuned {
                radio.hear(signal, &ear, decoders)
            } else {
                radio.arrive(
                    Signal::arrival(&ear, signal.start),
                    ear.power,
                    radio.lock_offered(signal, &ear),
                    decoders,
                )
            };
            if channel == sent {
                arrived = here;
            }
        });
        arrived
    }

    /// Handles the end of a frame on channel `sent`: the lock on it, if any, and whether the radio
    /// is tuned to its channel.
    pub(super) fn depart_on(
        &mut self,
        at: Instant,
        number: u32,
        power: f64,
        sent: Channel,
        decoders: &[Decoder],
    ) -> (Option<Lock>, bool) {
        let Some(tuned) = self.wideband.as_ref().map(|wideband| wideband.tuned) else {
            return (self.depart(at, number, power, decoders), true);
        };
        let mut lock = None;
        self.on_each_channel(sent, |radio, _, share| {
            lock = lock.or(radio.depart(at, number, power * share, decoders));
        });
        (lock, tuned == sent)
    }

    /// Ends the reception of frames on other channels: the radio transmits.
    pub(super) fn lose_others(&mut self) {
        for other in self.wideband.iter_mut().flat_map(|wideband| &mut wideband.others) {
            other.lock = None;
        }
    }
}

impl Medium {
    /// Tunes a radio that receives on all channels. It has not sensed the new channel before, and
    /// knows no reservation of it.
    pub(super) fn tune(&mut self, index: usize, channel: Channel) {
        let now = self.now;
        let radio = &mut self.radios[index];
        let Some(mut wideband) = radio.wideband.take() else { return };
        if let Some(other) = wideband.others.iter_mut().find(|other| other.channel == channel) {
            radio.exchange(other);
            other.channel = core::mem::replace(&mut wideband.tuned, channel);
        }
        radio.wideband = Some(wideband);
        if self.reach.places[index].channel == channel {
            return;
        }
        self.dissolve_clusters();
        self.reach.places[index].channel = channel;
        self.reach.power_changed(index);
        self.reach.retuned();
        let radio = &mut self.radios[index];
        radio.settings.channel = channel.number;
        (radio.extended, radio.broken_at, radio.reserved_until) = (false, None, now);
        (radio.busy, radio.idle_since) = (radio.senses(), now);
        radio.book(now, false);
        radio.recount(now);
        radio.restart(now);
        self.follow_channel(index);
        self.timers.set(index, self.radios[index].next_at());
        self.review_card_of(index);
    }

    /// Sets the noise on the channels that a radio is not tuned to.
    pub(super) fn soak_others(&mut self, index: usize) {
        let Some(mut wideband) = self.radios[index].wideband.take() else { return };
        for other in &mut wideband.others {
            let ambient = self.ambient(index, other.channel);
            let (now, radio) = (self.now, &mut self.radios[index]);
            radio.exchange(other);
            radio.settle(now, &self.decoders);
            radio.ambient = ambient;
            radio.exchange(other);
        }
        self.radios[index].wideband = Some(wideband);
    }
}
