//! Log-normal shadowing that varies smoothly in space.

use super::{PathLoss, Site};
use crate::math;
use crate::medium::mobility::Position;
use crate::random::Stream;

/// Adds to another model a normally distributed loss (dB) that depends on both ends' places.
///
/// Standard deviation `sigma_db`; if either end moves by d, the correlation with the old value
/// falls as `exp(-d / decorrelation_m)`. The same in both directions. The field is a sum of
/// plane waves over the four coordinates (x, y of both ends) with wave numbers drawn from the
/// spectrum of that correlation, so it is a continuous function that needs no grid and no memory.
///
/// Source: Gudmundson, "Correlation model for shadow fading in mobile radio systems",
/// Electronics Letters 27(23), 1991; sum of sinusoids after Cai and Giannakis, "A two-dimensional
/// channel simulation model for shadowing processes", IEEE Trans. Veh. Tech. 52(6), 2003. Range:
/// sigma 2 to 12 dB, decorrelation distances 1 m (indoors) to 500 m.
pub struct Shadowing<L> {
    inner: L,
    sigma_db: f64,
    decorrelation_m: f64,
    waves: Vec<Wave>,
}

struct Wave {
    /// Wave numbers, rad/m, for x and y of either end.
    a: [f64; 2],
    b: [f64; 2],
    phase: f64,
}

const WAVES: usize = 200;
/// Number of standard deviations that the computed reach allows for.
const EXTREME: f64 = 4.0;

impl<L: PathLoss> Shadowing<L> {
    /// Adds shadowing to `inner`, drawn from `stream`.
    pub fn new(inner: L, sigma_db: f64, decorrelation_m: f64, stream: &mut Stream) -> Self {
        // exp(-|d|/D) in the plane has radial spectrum (1 + (k D)^2)^(-3/2): its distribution
        // inverts to k = sqrt((1-u)^-2 - 1) / D.
        let mut number = || {
            let k = ((1.0 - stream.unit()).powi(-2) - 1.0).sqrt() / decorrelation_m;
            let direction = stream.unit() * core::f64::consts::TAU;
            [k * math::cos(direction), k * math::sin(direction)]
        };
        let pairs: Vec<_> = (0..WAVES).map(|_| (number(), number())).collect();
        let waves = pairs
            .into_iter()
            .map(|(a, b)| Wave { a, b, phase: stream.unit() * core::f64::consts::TAU })
            .collect();
        Self { inner, sigma_db, decorrelation_m, waves }
    }

    /// The shadowing alone, in dB, between two places.
    #[must_use]
    pub fn shadow_db(&self, one: Position, other: Position) -> f64 {
        let sum: f64 = self
            .waves
            .iter()
            .map(|wave| {
                let field = |p: Position, q: Position| {
                    math::cos(
                        wave.a[0] * p.x + wave.a[1] * p.y + wave.b[0] * q.x + wave.b[1] * q.y + wave.phase,
                    )
                };
                field(one, other) + field(other, one)
            })
            .sum();
        // Both orders are added so that the loss is symmetric; their correlation is that of a field
        // displaced by the distance at both ends.
        let apart = Position { z: 0.0, ..one - other }.length();
        let mutual = math::exp(-2.0 * apart / self.decorrelation_m);
        #[allow(clippy::cast_precision_loss)]
        let scale = (2.0 / WAVES as f64 / (2.0 * (1.0 + mutual))).sqrt();
        self.sigma_db * scale * sum
    }
}

impl<L: PathLoss> PathLoss for Shadowing<L> {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        self.inner.loss_db(from, to, hertz) + self.shadow_db(from.position, to.position)
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        self.inner.reach_m(budget_db + EXTREME * self.sigma_db, hertz)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Friis;
    use super::*;

    /// Mean, variance and correlation at a displacement of one end, over many fields.
    fn moments(step: f64) -> (f64, f64, f64) {
        let (mut mean, mut square, mut product) = (0.0, 0.0, 0.0);
        let fields = 3000;
        for seed in 0..fields {
            let shadowing = Shadowing::new(Friis, 6.0, 20.0, &mut Stream::named(seed, "shadowing"));
            let (a, b) = (Position::new(10.0, 20.0, 0.0), Position::new(200.0, -50.0, 0.0));
            let here = shadowing.shadow_db(a, b);
            let there = shadowing.shadow_db(a, b + Position::new(0.0, step, 0.0));
            assert!((here - shadowing.shadow_db(b, a)).abs() < 1e-9, "mutual");
            mean += here;
            square += here * here;
            product += here * there;
        }
        #[allow(clippy::cast_precision_loss)]
        let n = fields as f64;
        (mean / n, square / n, product / square)
    }

    #[test]
    fn normal_with_the_stated_spread_and_decorrelation() {
        let (mean, variance, correlation) = moments(20.0);
        assert!(mean.abs() < 0.35, "mean {mean}");
        assert!((variance.sqrt() - 6.0).abs() < 0.3, "sigma {}", variance.sqrt());
        assert!((correlation - math::exp(-1.0f64)).abs() < 0.06, "correlation {correlation}");
        assert!(moments(200.0).2.abs() < 0.08);
        assert!(moments(1.0).2 > 0.9);
    }
}
