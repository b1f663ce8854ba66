//! The physical layers of a radio with several bands.
//!
//! A radio of an 802.11 stack has the layer of the channel that it is tuned to: rates, times, and the
//! sets of rates for responses. An Ethernet radio keeps that of the channel it begins with.

use crate::medium::phy::Phy;
use crate::medium::settings::radio::RadioSettings;
use crate::time::Span;

/// What a radio has of one physical layer.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Layer {
    pub(in crate::medium) phy: &'static Phy,
    pub(in crate::medium) slot: Span,
    /// Difference between EIFS and DIFS.
    pub(in crate::medium) extension: Span,
    pub(in crate::medium) basic: u32,
    /// Rate of broadcast and requests-to-send, if set.
    pub(in crate::medium) control: Option<u8>,
    /// Number of the decoder for its transmissions.
    pub(in crate::medium) decoder: u8,
}

impl Layer {
    pub(in crate::medium) fn new(phy: &'static Phy, settings: &RadioSettings, decoder: u8) -> Self {
        let known = settings.basic_rates.iter().filter_map(|&rate| phy.rate_index(rate));
        let basic = known.fold(0, |set, index| set | 1 << index);
        Self {
            phy,
            slot: phy.slot + Span::from_micros(3 * u64::from(settings.coverage_class)),
            extension: phy.eifs().saturating_sub(phy.difs()),
            basic: if basic == 0 { phy.mandatory() } else { basic },
            control: settings.control_rate.and_then(|rate| phy.rate_index(rate)),
            decoder,
        }
    }
}
