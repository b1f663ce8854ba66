//! Fading from frame to frame.

use crate::math;
use crate::random::Stream;

/// Power gain drawn independently for each frame and receiver, mean 1: block fading, with a
/// coherence time longer than a frame and shorter than the gap between frames.
///
/// * Rayleigh (no direct path): the power is exponential.
/// * Rician with factor K = direct / scattered power (linear): power of a complex normal with
///   mean; K = 0 is Rayleigh.
/// * Nakagami with shape m >= 1/2: the power is gamma with shape m and mean 1; m = 1 is Rayleigh.
///
/// Sources: Rappaport 2002, 5.6; Nakagami, "The m-distribution", 1960; gamma variates by Marsaglia
/// and Tsang, "A simple method for generating gamma variables", ACM TOMS 26(3), 2000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fading {
    /// None.
    None,
    /// Rayleigh.
    Rayleigh,
    /// Rician.
    Rician {
        /// Direct over scattered power, linear.
        k: f64,
    },
    /// Nakagami.
    Nakagami {
        /// Shape.
        m: f64,
    },
}

impl Fading {
    /// Draws a power gain, linear.
    pub fn gain(self, stream: &mut Stream) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Rayleigh => stream.exponential(),
            Self::Rician { k } => {
                let sigma = (0.5 / (k + 1.0)).sqrt();
                let direct = (k / (k + 1.0)).sqrt() + sigma * stream.normal();
                let across = sigma * stream.normal();
                direct * direct + across * across
            }
            Self::Nakagami { m } => gamma(m, stream) / m,
        }
    }

    /// Gain in dB that is exceeded in less than one frame of ten thousand: the margin for the range
    /// of faded signals.
    #[must_use]
    pub fn margin_db(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Rayleigh => 9.7,
            Self::Rician { .. } => 10.0,
            // The gamma distribution of shape 1/2 has the longest permitted tail.
            Self::Nakagami { m } => {
                if m < 1.0 {
                    12.0
                } else {
                    9.7
                }
            }
        }
    }
}

/// A gamma variate of the given shape and scale 1.
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        let boost = math::pow(1.0 - stream.unit(), 1.0 / shape);
        return gamma(shape + 1.0, stream) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = stream.normal();
        let v = (1.0 + c * x).powi(3);
        let u = 1.0 - stream.unit();
        if v > 0.0 && math::ln(u) < 0.5 * x * x + d - d * v + d * math::ln(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of many gains.
    fn moments(fading: Fading) -> (f64, f64) {
        let mut stream = Stream::named(3, "fading");
        let n = 200_000;
        let gains: Vec<f64> = (0..n).map(|_| fading.gain(&mut stream)).collect();
        let mean = gains.iter().sum::<f64>() / f64::from(n);
        (mean, gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / f64::from(n))
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        // Variance of the power: Rayleigh 1, Rician (1 + 2K)/(1 + K)^2, Nakagami 1/m.
        for (fading, variance) in [
            (Fading::Rayleigh, 1.0),
            (Fading::Rician { k: 0.0 }, 1.0),
            (Fading::Rician { k: 4.0 }, 9.0 / 25.0),
            (Fading::Nakagami { m: 0.5 }, 2.0),
            (Fading::Nakagami { m: 1.0 }, 1.0),
            (Fading::Nakagami { m: 3.0 }, 1.0 / 3.0),
        ] {
            let (mean, found) = moments(fading);
            assert!((mean - 1.0).abs() < 0.015, "{fading:?}: mean {mean}");
            assert!((found / variance - 1.0).abs() < 0.05, "{fading:?}: variance {found}");
        }
    }

    #[test]
    fn rayleigh_fades_as_its_closed_form_says() {
        // P(gain < x) = 1 - exp(-x): a 10 dB fade in 9.5 % of the frames.
        let mut stream = Stream::named(4, "fading");
        let deep = (0..100_000).filter(|_| Fading::Rayleigh.gain(&mut stream) < 0.1).count();
        assert!((9_200..9_850).contains(&deep), "{deep}");
    }
}
