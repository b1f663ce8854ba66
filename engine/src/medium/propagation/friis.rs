//! Free-space path loss.

use super::{LIGHT, PathLoss, Site};
use crate::math;

/// Free space between isotropic antennas: `L = 20 log10(4 pi d f / c)` dB, d in m, f in Hz.
///
/// Source: Friis, "A note on a simple transmission formula", Proc. IRE 34(5), 1946; ITU-R P.525.
/// Range: the far field, d above a wavelength; closer than `wavelength / (4 pi)` the loss is 0,
/// never a gain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Friis;

/// Free-space loss in dB over `metres` at `hertz`.
pub(super) fn free_space_db(metres: f64, hertz: f64) -> f64 {
    (20.0 * math::log10(4.0 * core::f64::consts::PI * metres * hertz / LIGHT)).max(0.0)
}

impl PathLoss for Friis {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        free_space_db(from.position.distance(to.position), hertz)
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        Some(math::pow(10.0, budget_db / 20.0) * LIGHT / (4.0 * core::f64::consts::PI * hertz) * 1.001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // ITU-R P.525: L = 32.4 + 20 log10 f(MHz) + 20 log10 d(km).
        for (metres, mhz) in [(1.0, 5180.0), (100.0, 2412.0), (10_000.0, 900.0)] {
            let itu = 32.45 + 20.0 * math::log10(mhz) + 20.0 * math::log10(metres / 1000.0);
            assert!((free_space_db(metres, mhz * 1e6) - itu).abs() < 0.01);
        }
        assert!((free_space_db(1.0, 5.18e9) - 46.73).abs() < 0.01);
        assert!(free_space_db(0.0, 5e9).abs() < 1e-12);
        let reach = Friis.reach_m(80.0, 2.412e9).expect("a reach");
        assert!((free_space_db(reach, 2.412e9) - 80.0).abs() < 0.02);
    }
}
