//! Log-distance path loss.

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
    /// Loss L0 at the reference distance in dB.
    pub reference_db: f64,
}

impl PathLoss for LogDistance {
    fn loss_db(&self, from: Site, to: Site, _hertz: f64) -> f64 {
        let ratio = from.position.distance(to.position) / self.reference_m;
        self.reference_db + 10.0 * self.exponent * math::log10(ratio.max(1.0))
    }

    fn reach_m(&self, budget_db: f64, _hertz: f64) -> Option<f64> {
        let decades = (budget_db - self.reference_db) / (10.0 * self.exponent);
        Some(self.reference_m * math::pow(10.0, decades) * 1.001)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::mobility::Position;
    use super::*;

    #[test]
    fn received_powers_of_the_reference_runs() {
        // 16 dBm, exponent 3, 46.6777 dB at 1 m: the powers of the reference runs.
        let model = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: 46.6777 };
        let site = |x| Site { radio: 0, position: Position::new(x, 0.0, 0.0) };
        for (metres, dbm) in [(5.0, -51.65), (20.0, -69.71), (60.0, -84.02), (120.0, -93.05)] {
            let received = 16.0 - model.loss_db(site(0.0), site(metres), 5.18e9);
            assert!((received - dbm).abs() < 0.006, "{metres} m: {received}");
        }
        let reach = model.reach_m(100.0, 5.18e9).expect("a reach");
        assert!((model.loss_db(site(0.0), site(reach), 5.18e9) - 100.0).abs() < 0.02);
    }
}
