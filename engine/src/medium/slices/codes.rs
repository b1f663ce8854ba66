//! Code division: radios on one channel with orthogonal codes.
//!
//! A radio with a code spreads each symbol over [`CodeSettings::spreading`] (SF) times its length, in
//! the bandwidth of its physical layer ([`crate::medium::phy::spread`]): its rates are divided by SF, preamble
//! and header are as many times longer. Inter-frame spaces and slots stay as they are. Codes are the
//! rows of a Walsh-Hadamard matrix of order SF, numbered from 0; each slice scrambles them with one
//! sequence of its medium, so that codes that are not aligned in time are like random ones.
//!
//! A receiver correlates with its own code. All powers below are those after the correlation, relative
//! to a signal of the own code, whose power remains:
//!
//! | what arrives | factor |
//! | --- | --- |
//! | the same code | 1: it can be decoded |
//! | another code, chips aligned ([`CodeSettings::synchronous`]) | 0: the codes are orthogonal |
//! | another code, asynchronous | 2 / (3 SF) |
//! | a signal without code, noise | 1 / SF |
//!
//! The processing gain against noise is 10 log10(SF) dB; range and sensitivity grow by it. With chips
//! of length T and a delay uniform in 0 to T, the correlation of random codes has the mean square
//! SF E[(d/T)^2 + (1 - d/T)^2] = 2 SF / 3, relative to SF^2 of the own one: 2 / (3 SF). It is the term
//! (K - 1) / (3 N) of M. B. Pursley, "Performance evaluation for phase-coded spread-spectrum
//! multiple-access communication, part I", IEEE Trans. Commun. 25(8), 1977, whose ratio is 2 E / N0
//! instead of E / N0 (paper not checked; the mean square is derived here and tested by counting).
//! A strong signal of another code is therefore attenuated by 10 log10(3 SF / 2) dB only: the near-far
//! effect.
//!
//! Carrier sense and energy detection work after the correlation, too: a radio defers to frames of its
//! own code, and to others only if what remains of them exceeds its energy detection threshold. A
//! receiver without a code receives signals with one as interference of full power.

use serde::{Deserialize, Serialize};

/// The code of a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeSettings {
    /// Spreading factor: chips of a symbol; a power of two, 2 to 128.
    pub spreading: u16,
    /// Number of the code, 0 to the spreading factor less 1.
    pub number: u16,
    /// The chips of all radios arrive aligned, so that other codes are not heard at all.
    pub synchronous: bool,
}

impl CodeSettings {
    /// The first setting that is out of range, with its value and its range.
    pub(in crate::medium) fn flaw(self) -> Option<(&'static str, String, &'static str)> {
        if !(2..=128).contains(&self.spreading) || !self.spreading.is_power_of_two() {
            return Some(("code.spreading", self.spreading.to_string(), "2, 4, 8, 16, 32, 64 and 128"));
        }
        if self.number >= self.spreading {
            let range = "0 to the spreading factor less 1";
            return Some(("code.number", self.number.to_string(), range));
        }
        None
    }

    /// Factor of noise, and of signals without a code.
    pub(in crate::medium) fn noise(self) -> f64 {
        1.0 / f64::from(self.spreading)
    }

    /// Factor of a signal with this code, or without one; and whether it can be decoded.
    pub(in crate::medium) fn share(self, sent: Option<Self>) -> (f64, bool) {
        match sent {
            None => (self.noise(), false),
            Some(sent) if (sent.spreading, sent.number) == (self.spreading, self.number) => (1.0, true),
            Some(sent) if sent.spreading == self.spreading && self.synchronous && sent.synchronous => {
                (0.0, false)
            }
            Some(_) => (2.0 / (3.0 * f64::from(self.spreading)), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn code(spreading: u16, number: u16) -> CodeSettings {
        CodeSettings { spreading, number, synchronous: false }
    }

    /// Row of the Walsh-Hadamard matrix: 1 or -1 for each chip.
    fn walsh(code: CodeSettings) -> Vec<i32> {
        (0..code.spreading)
            .map(|chip| 1 - 2 * ((chip & code.number).count_ones() % 2).cast_signed())
            .collect()
    }

    #[test]
    fn aligned_codes_are_orthogonal() {
        for spreading in [2, 4, 16, 128] {
            for (a, b) in (0..spreading).flat_map(|a| (0..spreading).map(move |b| (a, b))) {
                let rows = (walsh(code(spreading, a)), walsh(code(spreading, b)));
                let product: i32 = rows.0.iter().zip(&rows.1).map(|(a, b)| a * b).sum();
                assert_eq!(product, if a == b { i32::from(spreading) } else { 0 });
            }
        }
    }

    #[test]
    fn scrambled_codes_that_are_not_aligned_correlate_like_random_ones() {
        let mut random = Stream::named(1, "chips");
        for spreading in [8, 32, 128] {
            let (mut sum, count) = (0.0, 20_000);
            for _ in 0..count {
                let mut chip = || if random.below(2) == 0 { 1.0 } else { -1.0 };
                let own: Vec<f64> = (0..spreading).map(|_| chip()).collect();
                let other: Vec<f64> = (0..=spreading).map(|_| chip()).collect();
                #[allow(clippy::cast_precision_loss)]
                let delay = random.below(1_000_000) as f64 / 1e6;
                let product: f64 = own
                    .iter()
                    .zip(other.windows(2))
                    .map(|(own, other)| own * (other[0] * delay + other[1] * (1.0 - delay)))
                    .sum();
                sum += (product / f64::from(spreading)).powi(2);
            }
            let found = sum / f64::from(count);
            let (wanted, decoded) = code(spreading, 0).share(Some(code(spreading, 1)));
            assert!((found / wanted - 1.0).abs() < 0.05 && !decoded, "{found} of {wanted}");
        }
    }

    #[test]
    fn factors_of_what_arrives() {
        let own = code(16, 3);
        assert_eq!(own.share(Some(own)), (1.0, true));
        assert_eq!(own.share(None), (1.0 / 16.0, false));
        assert_eq!(own.share(Some(code(16, 4))), (2.0 / 48.0, false));
        let aligned = |number| CodeSettings { synchronous: true, ..code(16, number) };
        assert_eq!(aligned(3).share(Some(aligned(4))), (0.0, false));
        assert_eq!(aligned(3).share(Some(code(16, 4))), (2.0 / 48.0, false));
    }

    #[test]
    fn flaws_are_named() {
        assert_eq!(code(16, 15).flaw(), None);
        for spreading in [0, 1, 3, 24, 256] {
            assert_eq!(code(spreading, 0).flaw().map(|(name, ..)| name), Some("code.spreading"));
        }
        assert_eq!(code(16, 16).flaw().map(|(name, ..)| name), Some("code.number"));
    }
}
