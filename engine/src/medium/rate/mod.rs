//! Which rate a frame is sent at, chosen for each receiver from what came of earlier frames.

mod constant;
mod fallback;
mod sampling;

pub use constant::Constant;
pub use fallback::Fallback;
pub use sampling::Sampling;

use super::phy::Phy;
use super::settings::RateSettings;
use crate::random::Stream;
use crate::time::Instant;

/// Chooses rates.
pub trait RateControl: Send {
    /// Index of the rate for the next transmission to `peer`; `tries` transmissions of the same
    /// frame have failed before.
    fn choose(&mut self, peer: u32, tries: u32, now: Instant, dice: &mut Stream) -> u8;

    /// A transmission to `peer` at `rate`, the `tries`-th of its frame, was acknowledged or not.
    fn report(&mut self, peer: u32, rate: u8, tries: u32, acknowledged: bool, now: Instant);
}

/// The controller that the settings ask for.
pub(super) fn controller(settings: &RateSettings, phy: &'static Phy) -> Box<dyn RateControl> {
    match settings {
        RateSettings::Constant(bits_per_second) => {
            Box::new(Constant(phy.rate_index(*bits_per_second).unwrap_or(0)))
        }
        RateSettings::Arf => Box::new(Fallback::new(phy, false)),
        RateSettings::Aarf => Box::new(Fallback::new(phy, true)),
        RateSettings::Minstrel => Box::new(Sampling::new(phy)),
    }
}
