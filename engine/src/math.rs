//! Real functions that return the same bits on every machine.
//!
//! The standard library calls the platform's C library, whose results differ in the last bits.
//! Square roots and the basic operations are exact by IEEE 754 and are not wrapped here.

/// A whole number as a real one: exact below 2^53, as octets of a queue and nanoseconds of a day are.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}

/// The natural logarithm.
pub(crate) fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// `x` to the power of `y`.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The ratio that `db` decibels stand for.
pub(crate) fn linear(db: f64) -> f64 {
    pow(10.0, db / 10.0)
}

/// The cosine of an angle in radians.
pub(crate) fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// e to the power of `x`.
pub(crate) fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// e to the power of `x`, less 1; exact also near 0.
pub(crate) fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// The natural logarithm of 1 + `x`; exact also near 0.
pub(crate) fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

/// The decimal logarithm.
pub(crate) fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// The sine of an angle in radians.
pub(crate) fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// The length of the hypotenuse over two sides.
pub(crate) fn hypot(x: f64, y: f64) -> f64 {
    libm::hypot(x, y)
}

/// The complementary error function: 2/sqrt(pi) times the integral of exp(-t^2) from `x` to infinity.
pub(crate) fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_are_tenths_of_the_decimal_exponent() {
        // IEC 60027-3: 10 dB is a ratio of 10, 3 dB one of 1.995 262.
        assert!([(0.0, 1.0), (10.0, 10.0), (-30.0, 1e-3)].iter().all(|&(db, ratio)| linear(db) == ratio));
        assert!((linear(3.0) - 1.995_262_314_968_88).abs() < 1e-14);
    }

    #[test]
    fn the_complementary_error_function_is_that_of_published_tables() {
        // Abramowitz and Stegun, table 7.1 and 7.3; Wolfram functions site for the last.
        for (x, expected) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 0.004_677_734_981_047_266),
            (3.0, 2.209_049_699_858_544e-5),
            (5.0, 1.537_459_794_428_034_8e-12),
            (-1.0, 1.842_700_792_949_715),
        ] {
            assert!((erfc(x) / expected - 1.0).abs() < 1e-14, "erfc({x}) = {}", erfc(x));
        }
    }
}
