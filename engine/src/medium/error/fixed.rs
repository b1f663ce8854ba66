//! Bit errors independent of the signal.

use super::ErrorModel;
use crate::math;
use crate::medium::phy::{Coding, Modulation};

/// Every bit of every frame fails with the same probability, at any ratio.
///
/// Range: 0 to 1. With 0 only collisions, range and reception thresholds lose frames: the model
/// to use with an on/off radio. (A fixed *frame* error rate belongs to a pair of radios and not
/// to a rate: see `Medium::set_frame_error`.)
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Probability of a bit error.
    pub bit_error: f64,
}

impl ErrorModel for Fixed {
    fn ln_bit(&self, _modulation: Modulation, _coding: Coding, ratio: f64) -> f64 {
        // Below 0 dB a stronger signal is on the air: the frame cannot be decoded.
        if ratio < 1.0 { f64::NEG_INFINITY } else { math::ln_1p(-self.bit_error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_counts_only_against_stronger_signals() {
        let model = Fixed { bit_error: 1e-3 };
        let survives = |ratio: f64| math::exp(model.ln_bit(Modulation::Qam64, Coding::ThreeQuarters, ratio));
        assert!((survives(1.5) - 0.999).abs() < 1e-12);
        assert!((survives(1e6) - 0.999).abs() < 1e-12);
        assert!(survives(0.9) < 1e-300);
    }
}
