//! Frame errors by measured table.

use super::ErrorModel;
use crate::math;
use crate::medium::error::Standard;
use crate::medium::phy::{Coding, Modulation};

/// Frame error rates as a function of the ratio, for some modulations and codes.
///
/// Each curve lists points (ratio in dB, ascending; frame error rate 0 to 1) measured with frames
/// of `octets`. Between points the frame error rate is linear in dB; outside, it stays as at the
/// nearest end. Other lengths follow by independence of bits: `1 - (1 - f)^(n/octets)`.
/// Modulations without a curve follow [`Standard`].
#[derive(Clone, Debug, Default)]
pub struct Table {
    curves: Vec<Measured>,
}

#[derive(Clone, Debug)]
struct Measured {
    modulation: Modulation,
    coding: Coding,
    octets: u32,
    points: Vec<(f64, f64)>,
}

impl Table {
    /// Adds a curve. Returns false, with nothing added, if it has no points, a frame error rate
    /// outside 0 to 1, ratios that do not ascend, or no octets.
    #[must_use]
    pub fn add(
        &mut self,
        modulation: Modulation,
        coding: Coding,
        octets: u32,
        points: Vec<(f64, f64)>,
    ) -> bool {
        let ascending = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let sane = points.iter().all(|(db, lost)| db.is_finite() && (0.0..=1.0).contains(lost));
        let good = octets > 0 && !points.is_empty() && ascending && sane;
        if good {
            self.curves.push(Measured { modulation, coding, octets, points });
        }
        good
    }
}

impl Measured {
    fn frame_error(&self, db: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 < db);
        match (after.checked_sub(1).map(|at| self.points[at]), self.points.get(after)) {
            (None, Some(first)) => first.1,
            (Some(last), None) => last.1,
            (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (db - x0) / (x1 - x0),
            (None, None) => 1.0,
        }
    }
}

impl ErrorModel for Table {
    fn ln_bit(&self, modulation: Modulation, coding: Coding, ratio: f64) -> f64 {
        let found = self.curves.iter().find(|curve| curve.modulation == modulation && curve.coding == coding);
        let Some(curve) = found else { return Standard.ln_bit(modulation, coding, ratio) };
        math::ln_1p(-curve.frame_error(10.0 * math::log10(ratio))) / (f64::from(curve.octets) * 8.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_points_come_back() {
        let mut table = Table::default();
        let points = vec![(4.0, 1.0), (6.0, 0.5), (8.0, 0.0)];
        assert!(table.add(Modulation::Bpsk, Coding::Half, 1000, points));
        let lost = |db: f64, octets: f64| {
            let bit = table.ln_bit(Modulation::Bpsk, Coding::Half, math::linear(db));
            -math::exp_m1(bit * octets * 8.0)
        };
        assert!((lost(6.0, 1000.0) - 0.5).abs() < 1e-9);
        assert!((lost(7.0, 1000.0) - 0.25).abs() < 1e-9);
        assert!((lost(6.0, 2000.0) - 0.75).abs() < 1e-9);
        assert!(lost(9.0, 1000.0).abs() < 1e-12);
        assert!((lost(3.0, 1000.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn senseless_curves_are_refused() {
        let mut table = Table::default();
        for points in [vec![], vec![(1.0, 0.1), (1.0, 0.2)], vec![(1.0, 1.5)], vec![(f64::NAN, 0.5)]] {
            assert!(!table.add(Modulation::Bpsk, Coding::Half, 1000, points));
        }
        assert!(!table.add(Modulation::Bpsk, Coding::Half, 0, vec![(1.0, 0.5)]));
    }
}
