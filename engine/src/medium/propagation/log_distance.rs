//! Log-distance path loss.

use super::friis::free_space_db;
use super::{PathLoss, Site};
use crate::math;

/// `L = L0 + 10 n log10(d / d0)` dB; at `d0` and closer, `L0`.
///
/// Source: Rappaport, "Wireless Communications: Principles and Practice", 2nd ed. 2002, 4.9.1.
/// Range: n from 1.6 (corridor) through 2 (free space) to 6 (obstructed); d above d0.
#[derive(Clone, Copy, Debug)]
pub struct LogDistance {
    /// Exponent n.
    pub exponent: f64,
    /// Reference distance d0 in metres.
    pub reference_m: f64,
    /// Loss L0 at the reference distance in dB; `None` for that of free space there, at the frequency
    /// of the signal.
    pub reference_db: Option<f64>,
}

impl LogDistance {
    fn nearest_db(&self, hertz: f64) -> f64 {
        self.reference_db.unwrap_or_else(|| free_space_db(self.reference_m, hertz))
    }
}

impl PathLoss for LogDistance {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        let ratio = from.position.distance(to.position) / self.reference_m;
        self.nearest_db(hertz) + 10.0 * self.exponent * math::log10(ratio.max(1.0))
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        let decades = (budget_db - self.nearest_db(hertz)) / (10.0 * self.exponent);
        Some(self.reference_m * math::pow(10.0, decades) * 1.001)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::mobility::Position;
    use super::*;

    #[test]
    fn free_space_ends_at_the_reference_distance_at_every_frequency() {
        // ITU-R P.525: 46.73 dB over 1 m at 5.18 GHz, 40.09 dB at 2.412 GHz, 20 dB more over 10 m.
        for (hertz, metres, loss) in [(5.18e9, 1.0, 46.73), (2.412e9, 1.0, 40.09), (2.412e9, 10.0, 60.09)] {
            let model = LogDistance { exponent: 3.0, reference_m: metres, reference_db: None };
            let site = |x| Site { radio: 0, position: Position::new(x, 0.0, 0.0) };
            let found = [metres, 10.0 * metres].map(|x| model.loss_db(site(0.0), site(x), hertz));
            assert!((found[0] - loss).abs() < 0.01 && (found[1] - found[0] - 30.0).abs() < 1e-9, "{found:?}");
            let reach = model.reach_m(100.0, hertz).expect("a reach");
            assert!((model.loss_db(site(0.0), site(reach), hertz) - 100.0).abs() < 0.02);
        }
    }

    #[test]
    fn received_powers_of_the_reference_runs() {
        // 16 dBm, exponent 3, 46.6777 dB at 1 m: the powers of the reference runs.
        let model = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.6777) };
        let site = |x| Site { radio: 0, position: Position::new(x, 0.0, 0.0) };
        for (metres, dbm) in [(5.0, -51.65), (20.0, -69.71), (60.0, -84.02), (120.0, -93.05)] {
            let received = 16.0 - model.loss_db(site(0.0), site(metres), 5.18e9);
            assert!((received - dbm).abs() < 0.006, "{metres} m: {received}");
        }
        let reach = model.reach_m(100.0, 5.18e9).expect("a reach");
        assert!((model.loss_db(site(0.0), site(reach), 5.18e9) - 100.0).abs() < 0.02);
    }
}
