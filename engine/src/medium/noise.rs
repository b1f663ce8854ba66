//! Noise sources other than 802.11 radios.

use serde::{Deserialize, Serialize};

use crate::calendar::Class;
use crate::math::linear;
use crate::medium::mobility::Mobility;
use crate::medium::phy::Channel;
use crate::medium::settings::error::SettingsError;
use crate::medium::slices::codes::CodeSettings;
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// A source of white noise in a band.
///
/// A receiver collects the share of its power that falls into the receiver's channel, attenuated by
/// the medium's loss at the centre of the band; it does not fade. It counts as noise for every
/// frame and, if it is strong enough, as a busy channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseSettings {
    /// Radiated power in dBm, over the whole band, -100 to 100.
    pub power_dbm: f64,
    /// Lower and upper edge of the band in Hz.
    pub band_hz: [f64; 2],
    /// First switch-on, in nanoseconds after the start of the run.
    pub from_ns: u64,
    /// Final switch-off.
    pub until_ns: Option<u64>,
    /// If set, the source is on and off alternately for these times, in nanoseconds, 100 us and more:
    /// each turn is an event for all radios.
    pub burst_ns: Option<[u64; 2]>,
}

/// A source and its state.
pub(super) struct Source {
    settings: NoiseSettings,
    mobility: Box<dyn Mobility>,
    on: bool,
    /// True if its next [`Turn::Refresh`] is in the calendar.
    followed: bool,
    /// It was taken out and stays off.
    removed: bool,
}

impl Source {
    /// Takes the source out; what it has in the calendar has no effect any more.
    pub(super) fn remove(&mut self) {
        (self.on, self.removed) = (false, true);
    }
}

/// Shortest time on or off in nanoseconds.
const SHORTEST_NS: u64 = 100_000;
/// Interval at which powers are recomputed while a source is on and something moves.
const REFRESH: Span = Span::from_millis(10);

impl Medium {
    /// Adds a source of noise.
    ///
    /// # Errors
    /// If a number is outside its range.
    pub fn add_noise(
        &mut self,
        settings: NoiseSettings,
        mobility: Box<dyn Mobility>,
    ) -> Result<(), SettingsError> {
        let refuse = |setting, value: String, range: &str| {
            Err(SettingsError::Law { setting, value, range: range.to_owned() })
        };
        if !(-100.0..=100.0).contains(&settings.power_dbm) {
            return refuse("noise.power_dbm", settings.power_dbm.to_string(), "-100 to 100 dBm");
        }
        let [low, high] = settings.band_hz;
        if !(1e6..=1e11).contains(&low) || !(low + 1.0..=1e11).contains(&high) {
            return refuse(
                "noise.band_hz",
                format!("{low} to {high}"),
                "1 MHz to 100 GHz, the lower edge first",
            );
        }
        if let Some(turn) = settings.burst_ns.into_iter().flatten().find(|&turn| turn < SHORTEST_NS) {
            return refuse("noise.burst_ns", turn.to_string(), "100 us and more, in nanoseconds");
        }
        let source = u32::try_from(self.noises.len()).unwrap_or(u32::MAX);
        let at = Instant::from_nanos(settings.from_ns).max(self.core.now);
        if let Some(until) = settings.until_ns {
            let end = Instant::from_nanos(until).max(at);
            self.core.calendar.push(end, Class::Change, source, Event::Noise { source, turn: Turn::End });
        }
        self.dissolve_clusters();
        self.noises.push(Source { settings, mobility, on: false, followed: false, removed: false });
        self.core.calendar.push(at, Class::Change, source, Event::Noise { source, turn: Turn::On });
        Ok(())
    }

    /// Handles an event of a source.
    pub(super) fn noise(&mut self, source: u32, turn: Turn) {
        let now = self.core.now;
        let noise = &mut self.noises[source as usize];
        let over = noise.settings.until_ns.is_some_and(|until| now.nanos() >= until);
        if noise.removed || over && turn != Turn::End {
            return;
        }
        let next = match (turn, noise.settings.burst_ns) {
            (Turn::On, Some([on, _])) => Some((Span::from_nanos(on), Turn::Off)),
            (Turn::Off, Some([_, off])) => Some((Span::from_nanos(off), Turn::On)),
            _ => None,
        };
        match turn {
            Turn::On => noise.on = true,
            Turn::Off | Turn::End => noise.on = false,
            Turn::Refresh => noise.followed = false,
        }
        if let Some((span, turn)) = next {
            self.core.calendar.push(now + span, Class::Change, source, Event::Noise { source, turn });
        }
        self.follow_noise();
        for index in 0..self.core.radios.len() {
            self.soak(index);
        }
    }

    /// Schedules periodic updates of active sources while they, or radios, move.
    pub(super) fn follow_noise(&mut self) {
        let radios_move = !self.noises.is_empty() && self.core.reach.moves();
        for (number, source) in (0u32..).zip(&mut self.noises) {
            let moves = radios_move || source.mobility.top_speed() > 0.0;
            if source.on && moves && !core::mem::replace(&mut source.followed, true) {
                let event = Event::Noise { source: number, turn: Turn::Refresh };
                self.core.calendar.push(self.core.now + REFRESH, Class::Change, number, event);
            }
        }
    }

    /// Recomputes the noise from all sources at a radio.
    pub(super) fn soak(&mut self, index: usize) {
        let now = self.core.now;
        let ambient = self.ambient(index, self.core.reach.places[index].channel);
        if ambient.to_bits() != self.core.radios[index].reception.ambient().to_bits() {
            let radio = self.core.radios.awake(index);
            radio.reception.set_ambient(ambient, now, &radio.receiver, self.errors.decoders());
            self.core.listen(index, now);
        }
        self.soak_others(index);
    }

    /// Sets the noise on the channels that a radio is not tuned to.
    fn soak_others(&mut self, index: usize) {
        if self.core.radios[index].wideband.is_none() {
            return;
        }
        let (now, receiver) = (self.core.now, self.core.radios[index].receiver);
        let Some(mut wideband) = self.core.radios.awake(index).wideband.take() else { return };
        for (channel, reception) in wideband.others() {
            let ambient = self.ambient(index, channel);
            reception.set_ambient(ambient, now, &receiver, self.errors.decoders());
        }
        self.core.radios.awake(index).wideband = Some(wideband);
    }

    /// The noise from all sources at a radio on a channel, in mW.
    pub(super) fn ambient(&mut self, index: usize, channel: Channel) -> f64 {
        if self.is_deaf(index, channel) {
            return f64::INFINITY;
        }
        let now = self.core.now;
        let mut ambient = 0.0;
        for source in self.noises.iter_mut().filter(|source| source.on) {
            let phy = self.core.radios[index].layer.phy;
            let half = f64::from(phy.bandwidth_hz) / 2.0;
            let centre = channel.middle_hertz(phy.is_wide());
            let [low, high] = source.settings.band_hz;
            let shared = (high.min(centre + half) - low.max(centre - half)).max(0.0) / (high - low);
            if shared > 0.0 {
                let place = source.mobility.position(now);
                let loss = self.core.reach.loss_from(place, f64::midpoint(low, high), index, now);
                ambient += shared * linear(source.settings.power_dbm - loss);
            }
        }
        ambient * self.core.radios[index].settings.code.map_or(1.0, CodeSettings::noise)
    }
}

/// An event of a noise source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Switch on.
    On,
    /// Switch off, possibly not for the last time.
    Off,
    /// The source or a radio has moved.
    Refresh,
    /// Final switch-off.
    End,
}
