//! From signal to interference and noise, to the probability that bits survive.
//!
//! An [`ErrorModel`] says, for a rate and a ratio, how probable it is that a number of bits in
//! a row arrive unharmed. A frame whose interference changes on the way is cut into chunks of
//! constant ratio; the logarithms of their probabilities add up. A [`Decoder`] tabulates a model
//! for one physical layer, because the data path asks it for every chunk.

mod fixed;
mod nist;
mod spread;
mod table;

pub use fixed::Fixed;
pub use nist::Nist;
pub use spread::Spread;
pub use table::Table;

use super::phy::{Coding, Modulation, Phy};
use crate::math;

/// Probability that bits arrive unharmed.
pub trait ErrorModel: Send + Sync {
    /// Natural logarithm of the probability that one bit of this modulation and code arrives
    /// unharmed at the given ratio of signal to interference and noise (linear, not dB, in the
    /// bandwidth of the physical layer). At most 0.
    fn ln_bit(&self, modulation: Modulation, coding: Coding, ratio: f64) -> f64;
}

/// The models of this crate for all rates: [`Nist`] for OFDM, [`Spread`] for DSSS and CCK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl ErrorModel for Standard {
    fn ln_bit(&self, modulation: Modulation, coding: Coding, ratio: f64) -> f64 {
        if modulation.is_spread() {
            Spread.ln_bit(modulation, coding, ratio)
        } else {
            Nist.ln_bit(modulation, coding, ratio)
        }
    }
}

/// Lowest ratio of the tables, dB; below it a frame is lost.
const LOWEST_DB: f64 = -15.0;
/// Points of a table for each dB.
const PER_DB: f64 = 20.0;
/// Points of a table, up to 45 dB.
const POINTS: usize = 1200;
/// A probability of harm per bit below this is taken as none: 2^15 bits then survive with
/// more than 1 - 1e-9.
const NEGLIGIBLE: f64 = 3e-14;

/// Frames whose probability of survival has this negative logarithm or more are lost for certain.
const LOST: f64 = 66.0;
/// Numbers of bits are told apart by their power of two.
const BIT_CLASSES: usize = 20;

struct Curve {
    /// From this ratio on (linear) nothing is lost.
    certain: f64,
    /// Up to this ratio (linear) some hundred bits are lost for certain.
    hopeless: f64,
    /// Up to these ratios (linear) 2^n bits and more are lost but for e^-[`LOST`].
    lost: [f64; BIT_CLASSES],
    /// Natural logarithm of `-ln_bit` every 1/[`PER_DB`] dB from [`LOWEST_DB`].
    points: Vec<f64>,
}

impl Curve {
    fn new(model: &dyn ErrorModel, modulation: Modulation, coding: Coding) -> Self {
        #[allow(clippy::cast_precision_loss)] // some thousand points
        let ratio = |index: usize| math::pow(10.0, (LOWEST_DB + index as f64 / PER_DB) / 10.0);
        let harm = |index: usize| -model.ln_bit(modulation, coding, ratio(index));
        let last = (0..POINTS).rev().find(|&index| harm(index) > NEGLIGIBLE);
        let (used, certain) = match last {
            None => (0, 0.0),
            // Harm that no signal prevents.
            Some(last) if last + 1 == POINTS => (POINTS, f64::INFINITY),
            Some(last) => (last + 2, ratio(last + 1)),
        };
        // e^50 for each bit is certain loss, and finite so that interpolation stays a number.
        let point = |index| math::ln(harm(index).max(NEGLIGIBLE / 10.0)).min(50.0);
        // Harm falls with the ratio; 0.3 for each bit leaves e^-60 of 200.
        let good = (0..used).find(|&index| harm(index) < 0.3).unwrap_or(used);
        let hopeless = good.checked_sub(1).map_or(0.0, ratio);
        let points: Vec<f64> = (0..used).map(point).collect();
        let mut bits = 0.5;
        let lost = [(); BIT_CLASSES].map(|()| {
            bits *= 2.0;
            // Between two points harm lies between theirs.
            let open = points.iter().position(|point| math::exp(*point) * bits < LOST).unwrap_or(used);
            open.checked_sub(1).map_or(0.0, ratio)
        });
        Self { certain, hopeless, lost, points }
    }

    fn ln_bits(&self, ratio: f64, bits: f64) -> f64 {
        if ratio >= self.certain || bits <= 0.0 {
            0.0
        } else if ratio <= self.hopeless && bits >= 200.0 {
            f64::NEG_INFINITY
        } else {
            self.ln_bit(ratio) * bits
        }
    }

    fn ln_bit(&self, ratio: f64) -> f64 {
        let at = (10.0 * math::log10(ratio) - LOWEST_DB) * PER_DB;
        if at.is_nan() || at < 0.0 {
            return f64::NEG_INFINITY;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
        let below = (at as usize).min(self.points.len() - 2);
        #[allow(clippy::cast_precision_loss)]
        let share = (at - below as f64).min(1.0);
        -math::exp(self.points[below] * (1.0 - share) + self.points[below + 1] * share)
    }
}

/// An error model, tabulated for the rates of one physical layer.
pub struct Decoder {
    payload: Vec<Curve>,
    header: Vec<Curve>,
}

impl Decoder {
    /// Tabulates `model`; between points, 0.05 dB apart, the logarithm is interpolated.
    #[must_use]
    pub fn new(model: &dyn ErrorModel, phy: &Phy) -> Self {
        let curve = |(modulation, coding)| Curve::new(model, modulation, coding);
        Self {
            payload: phy.rates.iter().map(|rate| curve((rate.modulation, rate.coding))).collect(),
            header: phy.rates.iter().map(|rate| curve(rate.header)).collect(),
        }
    }

    /// Logarithm of the probability that `bits` payload bits at rate `index` survive `ratio`.
    #[must_use]
    pub fn payload(&self, index: u8, ratio: f64, bits: f64) -> f64 {
        let curve = &self.payload[usize::from(index)];
        curve.ln_bits(ratio, bits)
    }

    /// The same for bits of the header that goes before the payload.
    #[must_use]
    pub fn header(&self, index: u8, ratio: f64, bits: f64) -> f64 {
        let curve = &self.header[usize::from(index)];
        curve.ln_bits(ratio, bits)
    }

    /// The ratio (linear) up to which so many payload bits at rate `index` survive with less than
    /// e^-66.
    #[must_use]
    pub fn lost(&self, index: u8, bits: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some thousand bits
        let class = (bits as u64).checked_ilog2();
        class.map_or(0.0, |class| {
            self.payload[usize::from(index)].lost[BIT_CLASSES.min(class as usize + 1) - 1]
        })
    }

    /// The ratio (linear) from which the header before a rate's payload is never harmed.
    #[must_use]
    pub fn header_certain(&self, index: u8) -> f64 {
        self.header[usize::from(index)].certain
    }

    /// The ratio (linear) from which a rate's payload is never harmed.
    #[must_use]
    pub fn certain(&self, index: u8) -> f64 {
        self.payload[usize::from(index)].certain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::phy::tables;

    #[test]
    fn the_table_follows_the_model() {
        for phy in tables::ALL {
            let decoder = Decoder::new(&Standard, phy);
            for (index, rate) in (0u8..).zip(phy.rates) {
                for step in 0..2000 {
                    let ratio = math::pow(10.0, (-10.0 + f64::from(step) * 0.02) / 10.0);
                    let direct = math::exp(Standard.ln_bit(rate.modulation, rate.coding, ratio) * 12_000.0);
                    let tabled = math::exp(decoder.payload(index, ratio, 12_000.0));
                    assert!(
                        (direct - tabled).abs() < 2e-3,
                        "{} {index} {ratio}: {direct} {tabled}",
                        phy.name
                    );
                }
            }
        }
    }

    #[test]
    fn more_signal_never_harms() {
        for phy in tables::ALL {
            for rate in phy.rates {
                let harm = |db: i32| {
                    -Standard.ln_bit(rate.modulation, rate.coding, math::pow(10.0, f64::from(db) / 10.0))
                };
                assert!((-12..40).all(|db| harm(db + 1) <= harm(db)), "{rate:?}");
            }
        }
    }
}
