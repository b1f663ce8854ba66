//! Path loss over the roofs of a city.

use super::{PathLoss, Site};
use crate::math;

/// COST-231 extension of Hata's formula:
/// `L = 46.3 + 33.9 log10 f - 13.82 log10 hb - a(hm) + (44.9 - 6.55 log10 hb) log10 d + C` dB,
/// `a(hm) = (1.1 log10 f - 0.7) hm - (1.56 log10 f - 0.8)`, f in MHz, d in km, C = 3 dB in
/// metropolitan centres and 0 elsewhere; hb is the higher antenna, hm the lower.
///
/// Source: COST Action 231, "Digital mobile radio towards future generation systems", final report
/// 1999, 4.4.1. Range: 1500 to 2000 MHz, hb 30 to 200 m, hm 1 to 10 m, 1 to 20 km. Outside it the
/// model extrapolates: heights are clamped to their range, distances below 20 m count as 20 m.
#[derive(Clone, Copy, Debug)]
pub struct Cost231 {
    /// Kind of city.
    pub city: City,
}

/// Density of the city.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum City {
    /// Medium city or suburb.
    Medium,
    /// Metropolitan centre.
    Metropolitan,
}

impl Cost231 {
    fn at(self, metres: f64, higher: f64, lower: f64, hertz: f64) -> f64 {
        let (base, mobile) = (higher.clamp(30.0, 200.0), lower.clamp(1.0, 10.0));
        let f = math::log10(hertz / 1e6);
        let correction = (1.1 * f - 0.7) * mobile - (1.56 * f - 0.8);
        let slope = 44.9 - 6.55 * math::log10(base);
        let centre = if self.city == City::Metropolitan { 3.0 } else { 0.0 };
        46.3 + 33.9 * f - 13.82 * math::log10(base) - correction
            + slope * math::log10(metres.max(20.0) / 1000.0)
            + centre
    }
}

impl PathLoss for Cost231 {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        let (a, b) = (from.position.z, to.position.z);
        self.at(from.position.distance(to.position), a.max(b), a.min(b), hertz)
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        // High antennas lose least at every distance of the range, low ones at very short
        // distances.
        let least = |metres: f64| {
            [30.0, 200.0]
                .map(|base| self.at(metres, base, 10.0, hertz))
                .into_iter()
                .fold(f64::INFINITY, f64::min)
        };
        Some(super::solve_reach(budget_db, least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_value() {
        // f = 1800 MHz, hb = 30 m, hm = 1.5 m, d = 1 km, medium city, by hand:
        // 46.3 + 110.352 - 20.414 - 0.043 + 0 = 136.2 dB.
        let loss = Cost231 { city: City::Medium }.at(1000.0, 30.0, 1.5, 1.8e9);
        assert!((loss - 136.2).abs() < 0.05, "{loss}");
        let far = Cost231 { city: City::Metropolitan }.at(10_000.0, 30.0, 1.5, 1.8e9);
        assert!((far - loss - 3.0 - 35.225).abs() < 0.01, "{far}");
    }
}
