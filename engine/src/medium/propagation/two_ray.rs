//! Two-ray path loss: a direct ray and one reflected by flat ground.

use super::friis::free_space_db;
use super::{LIGHT, PathLoss, Site, solve_reach};
use crate::math;

/// Free space up to the crossover distance `4 pi h1 h2 f / c`, beyond it
/// `L = 40 log10 d - 20 log10(h1 h2)` dB, with heights in metres from the sites' `z`.
///
/// Source: Rappaport 2002, 4.6 (equation 4.53). Range: flat open ground, heights above a
/// wavelength and small against d; heights below `lowest_m` count as `lowest_m`.
#[derive(Clone, Copy, Debug)]
pub struct TwoRay {
    /// Least antenna height in metres (1.5 is a person's).
    pub lowest_m: f64,
}

impl TwoRay {
    fn at(metres: f64, h1: f64, h2: f64, hertz: f64) -> f64 {
        let crossover = 4.0 * core::f64::consts::PI * h1 * h2 * hertz / LIGHT;
        if metres <= crossover {
            free_space_db(metres, hertz)
        } else {
            40.0 * math::log10(metres) - 20.0 * math::log10(h1 * h2)
        }
    }
}

impl PathLoss for TwoRay {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        let height = |site: Site| site.position.z.max(self.lowest_m);
        Self::at(from.position.distance(to.position), height(from), height(to), hertz)
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        // The two formulas are equal at the crossover, so free space never loses more than this
        // model.
        Some(solve_reach(budget_db, |metres| free_space_db(metres, hertz)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_laws_meet_and_the_far_one_falls_by_40_db_a_decade() {
        let crossover = 4.0 * core::f64::consts::PI * 2.0 * 2.0 * 2.412e9 / LIGHT;
        let step =
            TwoRay::at(crossover * 1.0001, 2.0, 2.0, 2.412e9) - TwoRay::at(crossover, 2.0, 2.0, 2.412e9);
        assert!(step.abs() < 0.01, "{step}");
        let decade = TwoRay::at(1e5, 2.0, 2.0, 2.412e9) - TwoRay::at(1e4, 2.0, 2.0, 2.412e9);
        assert!((decade - 40.0).abs() < 1e-9);
        // Rappaport: independent of frequency beyond the crossover.
        assert!((TwoRay::at(1e4, 2.0, 2.0, 9e8) - TwoRay::at(1e4, 2.0, 2.0, 2.4e9)).abs() < 1e-9);
    }
}
