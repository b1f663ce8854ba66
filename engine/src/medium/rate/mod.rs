//! Rate control: the rate of a frame, chosen for each receiver from the results of earlier frames.

mod constant;
mod fallback;
mod sampling;

pub use constant::Constant;
pub use fallback::Fallback;
pub use sampling::Sampling;

use super::phy::Phy;
use super::settings::radio::{RadioSettings, RateSettings};
use crate::random::Stream;
use crate::time::Instant;

/// A rate control algorithm.
pub trait RateControl: Send {
    /// Selects the index of the rate for the next transmission to `peer`; `tries` transmissions of
    /// the same frame have failed before.
    fn choose(&mut self, peer: u32, tries: u32, now: Instant, random: &mut Stream) -> u8;

    /// True if the rate that was chosen last for `peer` is a sample, for which one frame is enough.
    fn samples(&self, _peer: u32) -> bool {
        false
    }

    /// Reports whether a transmission to `peer` at `rate`, the `tries`-th of its frame, was
    /// acknowledged.
    fn report(&mut self, peer: u32, rate: u8, tries: u32, acknowledged: bool, now: Instant);
}

/// Creates the controller that the settings specify, for the rates of `phy`.
pub(super) fn controller(settings: &RadioSettings, phy: &'static Phy) -> Box<dyn RateControl> {
    match &settings.rate {
        RateSettings::Constant(bits_per_second) => {
            Box::new(Constant(phy.rate_index(*bits_per_second).unwrap_or(0)))
        }
        RateSettings::Mcs(mcs) => Box::new(Constant(phy.scheme(*mcs).unwrap_or(0))),
        // Never asked: such a radio chooses no rate.
        RateSettings::Unmodulated(_) => Box::new(Constant(0)),
        RateSettings::Arf => Box::new(Fallback::new(phy, false)),
        RateSettings::Aarf => Box::new(Fallback::new(phy, true)),
        RateSettings::Minstrel if phy.is_ht() => {
            let frames = settings.aggregation.unwrap_or(1);
            Box::new(Sampling::of_schemes(phy, settings.streams.unwrap_or(1), frames))
        }
        RateSettings::Minstrel => Box::new(Sampling::new(phy)),
    }
}
