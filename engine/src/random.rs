//! One seeded stream of random numbers for each model element.
//!
//! A stream is named, not numbered: its state derives from the run's seed and the element's name,
//! so that an added link does not change the random numbers of other links. The generator is
//! xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS
//! 47(4), 2021), seeded through SplitMix64 as its authors advise: small, fast, the same on every
//! machine, and implemented here so that a new version of a library cannot change published
//! results. Logarithms and cosines come from [`crate::math`] for the same reason.

use crate::math;

/// A stream of random numbers of one model element.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

impl Stream {
    /// Creates the stream of the element `name` in the run with this `seed`.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a spreads the name over 64 bits; SplitMix64 then fills the state.
        let mut mix = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
            .wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut next = || {
            mix = mix.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = mix;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self { state: [next(), next(), next(), next()] }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s1.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= t;
        *s3 = s3.rotate_left(45);
        result
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit a double exactly
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in `0..bound` without bias (Lemire, "Fast random integer generation in an
    /// interval", ACM TOMACS 29(1), 2019). Zero if `bound` is zero.
    #[allow(clippy::cast_possible_truncation)] // taking the low half is the method
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            if (wide as u64) >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// True with the given probability. A probability of 0 or 1 draws no number.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (probability >= 1.0 || self.unit() < probability)
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller 1958, the cosine half, so that
    /// each draw takes exactly two numbers from the stream).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * math::ln(1.0 - self.unit())).sqrt();
        radius * math::cos(core::f64::consts::TAU * self.unit())
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -math::ln(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_never_change() {
        // Expected values from another implementation of FNV-1a, SplitMix64 and xoshiro256**.
        let mut stream = Stream::named(1, "link a-b");
        assert_eq!(stream.bits(), 0x85dd_3aeb_c374_6614);
        assert_eq!(stream.bits(), 0xf745_5233_e65d_9df0);
        assert_eq!(stream.bits(), 0xe2ef_9aca_2c34_7ca6);
        assert_eq!(stream.bits(), 0xc9f9_6382_5f03_9839);
        assert_ne!(Stream::named(1, "link a-c").bits(), 0x85dd_3aeb_c374_6614);
        assert_ne!(Stream::named(2, "link a-b").bits(), 0x85dd_3aeb_c374_6614);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut stream = Stream::named(7, "moments");
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.unit()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || stream.exponential()) - 1.0).abs() < 0.01);
        assert!(mean(&mut || stream.normal()).abs() < 0.01);
        assert!((mean(&mut || stream.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((0..1000).all(|_| stream.below(7) < 7));
    }
}
