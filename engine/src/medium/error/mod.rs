//! Error models: from SINR to the probability that bits are received without error.
//!
//! For a rate and a ratio, an [`ErrorModel`] returns the probability that a number of consecutive
//! bits have no error. A frame whose interference changes is divided into chunks of constant ratio;
//! the logarithms of their probabilities add up. A [`Decoder`] tabulates a model for one physical
//! layer, because the data path evaluates it for every chunk.

mod fixed;
mod nist;
mod spread;
mod table;

pub use fixed::Fixed;
pub use nist::Nist;
pub use spread::Spread;
pub use table::Table;

use super::phy::{Coding, Ht, Modulation, Phy};
use crate::math;

/// Probability that bits are received without error.
pub trait ErrorModel: Send + Sync {
    /// Natural logarithm of the probability that one bit of this modulation and code is received
    /// without error at the given ratio of signal to interference and noise (linear, not dB, in
    /// [`Modulation::bandwidth_hz`]). At most 0.
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
/// Table entries per dB.
const PER_DB: f64 = 20.0;
/// Number of table entries, up to 45 dB.
const POINTS: usize = 1200;
/// A bit error probability below this counts as zero: 2^15 bits then have no error with more than 1
/// - 1e-9.
const NEGLIGIBLE: f64 = 3e-14;

/// Frames whose success probability has this negative logarithm or more are certainly lost.
const LOST: f64 = 66.0;
/// Numbers of bits are classified by their power of two.
const BIT_CLASSES: usize = 20;

struct Curve {
    /// From this ratio on (linear) no frame is lost.
    certain: f64,
    /// Up to this ratio (linear) some hundred bits are certainly lost.
    hopeless: f64,
    /// Up to these ratios (linear) 2^n bits and more are lost with a probability of at least 1 -
    /// e^-[`LOST`].
    lost: [f64; BIT_CLASSES],
    /// Natural logarithm of `-ln_bit` every 1/[`PER_DB`] dB from [`LOWEST_DB`].
    points: Vec<f64>,
}

impl Curve {
    fn new(model: &dyn ErrorModel, modulation: Modulation, coding: Coding) -> Self {
        #[allow(clippy::cast_precision_loss)] // some thousand points
        let ratio = |index: usize| math::linear(LOWEST_DB + index as f64 / PER_DB);
        let harm = |index: usize| -model.ln_bit(modulation, coding, ratio(index));
        let last = (0..POINTS).rev().find(|&index| harm(index) > NEGLIGIBLE);
        let (used, certain) = match last {
            None => (0, 0.0),
            // Errors that no signal power prevents.
            Some(last) if last + 1 == POINTS => (POINTS, f64::INFINITY),
            Some(last) => (last + 2, ratio(last + 1)),
        };
        // e^50 for each bit is certain loss, and finite so that interpolation yields a number.
        let point = |index| math::ln(harm(index).max(NEGLIGIBLE / 10.0)).min(50.0);
        // The error rate falls with the ratio; 0.3 for each bit leaves e^-60 of 200.
        let good = (0..used).find(|&index| harm(index) < 0.3).unwrap_or(used);
        let hopeless = good.checked_sub(1).map_or(0.0, ratio);
        let points: Vec<f64> = (0..used).map(point).collect();
        let mut bits = 0.5;
        let lost = [(); BIT_CLASSES].map(|()| {
            bits *= 2.0;
            // Between two entries the error rate lies between theirs.
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

/// A model whose ratios count in another bandwidth than those that it is asked for.
struct Scaled<'a> {
    model: &'a dyn ErrorModel,
    scale: f64,
}

impl ErrorModel for Scaled<'_> {
    fn ln_bit(&self, modulation: Modulation, coding: Coding, ratio: f64) -> f64 {
        self.model.ln_bit(modulation, coding, ratio * self.scale)
    }
}

/// An error model, tabulated for the rates of one physical layer.
pub struct Decoder {
    payload: Vec<Curve>,
    header: Vec<Curve>,
}

impl Decoder {
    /// Tabulates `model` for ratios in the noise bandwidth of the layer; between points, 0.05 dB apart, the logarithm is interpolated.
    #[must_use]
    pub fn new(model: &dyn ErrorModel, phy: &Phy) -> Self {
        let curve = |(modulation, coding): (Modulation, Coding), streams: u8| {
            // A subcarrier of OFDM has the ratio of the whole band; each stream has its share of the power.
            let band = if modulation.is_spread() { modulation.bandwidth_hz() } else { phy.bandwidth_hz };
            let scale = f64::from(phy.bandwidth_hz) / f64::from(band) / f64::from(streams);
            Curve::new(&Scaled { model, scale }, modulation, coding)
        };
        Self {
            payload: phy
                .rates
                .iter()
                .map(|rate| curve((rate.modulation, rate.coding), rate.ht.map_or(1, Ht::streams)))
                .collect(),
            header: phy.rates.iter().map(|rate| curve(rate.header, 1)).collect(),
        }
    }

    /// Logarithm of the probability that `bits` payload bits at rate `index` have no error at
    /// `ratio`.
    #[must_use]
    pub fn payload(&self, index: u8, ratio: f64, bits: f64) -> f64 {
        let curve = &self.payload[usize::from(index)];
        curve.ln_bits(ratio, bits)
    }

    /// The same for bits of the header that precedes the payload.
    #[must_use]
    pub fn header(&self, index: u8, ratio: f64, bits: f64) -> f64 {
        let curve = &self.header[usize::from(index)];
        curve.ln_bits(ratio, bits)
    }

    /// The ratio (linear) up to which so many payload bits at rate `index` have no error with less
    /// than e^-66.
    #[must_use]
    pub fn lost(&self, index: u8, bits: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some thousand bits
        let class = (bits as u64).checked_ilog2();
        class.map_or(0.0, |class| {
            self.payload[usize::from(index)].lost[BIT_CLASSES.min(class as usize + 1) - 1]
        })
    }

    /// The ratio (linear) from which the header before a rate's payload never has errors.
    #[must_use]
    pub fn header_certain(&self, index: u8) -> f64 {
        self.header[usize::from(index)].certain
    }

    /// The ratio (linear) from which a rate's payload never has errors.
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
                    let ratio = math::linear(-10.0 + f64::from(step) * 0.02);
                    // The noise of 802.11bg is that of 20 MHz, and the model of its CCK counts 22 MHz.
                    let both = phy.decodes(true) && phy.decodes(false) && rate.modulation.is_spread();
                    let counted = if both { ratio * 20.0 / 22.0 } else { ratio };
                    let counted = counted / f64::from(rate.ht.map_or(1, Ht::streams));
                    let direct = math::exp(Standard.ln_bit(rate.modulation, rate.coding, counted) * 12_000.0);
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
                let harm =
                    |db: i32| -Standard.ln_bit(rate.modulation, rate.coding, math::linear(f64::from(db)));
                assert!((-12..40).all(|db| harm(db + 1) <= harm(db)), "{rate:?}");
            }
        }
    }
}
