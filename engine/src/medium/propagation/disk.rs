//! Unit disk: constant loss within a range.

use super::{PathLoss, Site};

/// Within `range_m` the loss is `loss_db`, beyond it is infinite: the on/off loss of the NET
/// testbed (0 from neighbours, 1 from all others). Source: the unit disk graph, Clark, Colbourn and
/// Johnson, Discrete Mathematics 86, 1990. Range: protocol studies; not a model of signals.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Range in metres, inclusive.
    pub range_m: f64,
    /// Loss within the range in dB.
    pub loss_db: f64,
}

impl PathLoss for Disk {
    fn loss_db(&self, from: Site, to: Site, _hertz: f64) -> f64 {
        if from.position.distance(to.position) <= self.range_m { self.loss_db } else { f64::INFINITY }
    }

    fn reach_m(&self, _budget_db: f64, _hertz: f64) -> Option<f64> {
        Some(self.range_m)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::mobility::Position;
    use super::*;

    #[test]
    fn a_step_at_the_range() {
        let disk = Disk { range_m: 100.0, loss_db: 60.0 };
        let site = |x| Site { radio: 0, position: Position::new(x, 0.0, 0.0) };
        assert!((disk.loss_db(site(0.0), site(100.0), 1e9) - 60.0).abs() < 1e-12);
        assert!(disk.loss_db(site(0.0), site(100.001), 1e9).is_infinite());
    }
}
