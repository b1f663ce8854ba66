//! Functions of real numbers that give the same bits on every machine.
//!
//! Those of the standard library come from the platform's C library, and differ in the last bits.
//! Square roots and the basic operations are exact by IEEE 754 and need no other home.

/// The natural logarithm.
pub(crate) fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// `x` to the power of `y`.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The cosine of an angle in radians.
pub(crate) fn cos(x: f64) -> f64 {
    libm::cos(x)
}
