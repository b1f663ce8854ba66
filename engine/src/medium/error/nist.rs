//! Bit errors of convolutionally coded OFDM.

use super::ErrorModel;
use crate::math;
use crate::math::erfc;
use crate::medium::phy::{Coding, Modulation};

/// The NIST model for OFDM: an exact raw bit error rate, and a union bound for the decoder.
///
/// Raw bit error rate p at signal-to-noise ratio s per subcarrier (linear):
/// BPSK `erfc(sqrt(s))/2`, QPSK `erfc(sqrt(s/2))/2`, 16-QAM `3/8 erfc(sqrt(s/10))`,
/// 64-QAM `7/24 erfc(sqrt(s/42))`. After the Viterbi decoder with hard decisions,
/// `p_b <= 1/(2k) * sum of a_d D^d` with `D = sqrt(4p(1-p))`, k the bits entering the code at a
/// time and a_d the distance spectrum of the (133, 171) code or its punctured forms.
///
/// Source: Pei and Henderson, "Validation of OFDM error rate model in ns-3", 2010, after Miller,
/// "Validation of 802.11a/UWB coexistence simulation", NIST, 2003; spectra from Frenger, Orten
/// and Ottosson, "Convolutional codes with optimum distance spectrum", IEEE Comm. Letters 3(11),
/// 1999, and Haccoun and Begin, IEEE Trans. Comm. 37(11), 1989. Range: additive white Gaussian
/// noise, p_b below about 0.01; the bound is capped at 1/2 above, where frames are lost anyway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nist;

/// A code: least distance, step between distances, bits entering at a time, spectrum.
type Spectrum = (i32, i32, f64, &'static [f64]);

const HALF: Spectrum = (
    10,
    2,
    1.0,
    &[36.0, 211.0, 1404.0, 11_633.0, 77_433.0, 502_690.0, 3_322_763.0, 21_292_910.0, 134_365_911.0],
);
const TWO_THIRDS: Spectrum = (
    6,
    1,
    2.0,
    &[3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0, 8_784_123.0],
);
const THREE_QUARTERS: Spectrum = (
    5,
    1,
    3.0,
    &[
        42.0,
        201.0,
        1492.0,
        10_469.0,
        62_935.0,
        379_644.0,
        2_253_373.0,
        13_073_811.0,
        75_152_755.0,
        428_005_675.0,
    ],
);

/// Raw bit error rate of a constellation at ratio `s`.
fn raw(modulation: Modulation, s: f64) -> f64 {
    match modulation {
        Modulation::Bpsk => 0.5 * erfc(s.sqrt()),
        Modulation::Qpsk => 0.5 * erfc((s / 2.0).sqrt()),
        Modulation::Qam16 => 0.75 * 0.5 * erfc((s / 10.0).sqrt()),
        _ => 7.0 / 12.0 * 0.5 * erfc((s / 42.0).sqrt()),
    }
}

/// Weights of Haccoun and Begin; a test computes them from the trellis of the code with the puncturing
/// of 802.11-2020, 19.3.11.6.
const FIVE_SIXTHS: Spectrum = (
    4,
    1,
    5.0,
    &[
        92.0,
        528.0,
        8694.0,
        79_453.0,
        792_114.0,
        7_375_573.0,
        67_884_974.0,
        610_875_423.0,
        5_427_275_376.0,
        47_664_215_639.0,
    ],
);

impl ErrorModel for Nist {
    fn ln_bit(&self, modulation: Modulation, coding: Coding, ratio: f64) -> f64 {
        let p = raw(modulation, ratio.max(0.0));
        let (least, step, entering, spectrum) = match coding {
            Coding::None => return math::ln_1p(-p.min(0.5)),
            Coding::Half => HALF,
            Coding::TwoThirds => TWO_THIRDS,
            Coding::ThreeQuarters => THREE_QUARTERS,
            Coding::FiveSixths => FIVE_SIXTHS,
        };
        let d = (4.0 * p * (1.0 - p)).sqrt();
        let sum: f64 = (0..).zip(spectrum).map(|(n, a)| a * d.powi(least + step * n)).sum();
        math::ln_1p(-(sum / (2.0 * entering)).min(0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::phy::tables::A;

    /// Frame error rate of a 1534-octet frame.
    fn lost(rate: usize, db: f64) -> f64 {
        let rate = &A.rates[rate];
        let bits = f64::from(1534 * 8 + 22);
        1.0 - math::exp(Nist.ln_bit(rate.modulation, rate.coding, math::linear(db)) * bits)
    }

    /// Weights of the information bits of all paths that leave the state zero in one period of the
    /// puncturing pattern and come back, by distance from `least` on. `kept` says for each input of
    /// the period which of the two outputs (133, 171) are sent.
    fn weights(kept: &[[bool; 2]], least: usize, count: usize) -> Vec<f64> {
        const MEMORY: u32 = 6;
        let longest = least + count;
        let mut found = vec![0.0; longest];
        for start in 0..kept.len() {
            // By state and distance: the number of paths, and the sum of their input weights.
            let mut paths = vec![vec![(0.0, 0.0); longest]; 1 << MEMORY];
            for step in 0..2_000 {
                let mut next = vec![vec![(0.0, 0.0); longest]; 1 << MEMORY];
                let phase = kept[(start + step) % kept.len()];
                for (state, here) in paths.iter().enumerate() {
                    for input in 0..2usize {
                        // A path leaves zero once, with its first input, and ends when it is back.
                        if (step == 0) != (state == 0) || (step == 0 && input == 0) {
                            continue;
                        }
                        // The newest bit is the highest of the register.
                        let register = input << MEMORY | state;
                        let output = |polynomial: usize| (register & polynomial).count_ones() as usize & 1;
                        let distance =
                            usize::from(phase[0]) * output(0o133) + usize::from(phase[1]) * output(0o171);
                        for before in 0..longest.saturating_sub(distance) {
                            let (number, sum) = if step == 0 {
                                (f64::from(u8::from(before == 0)), 0.0)
                            } else {
                                here[before]
                            };
                            if number > 0.0 {
                                let into = &mut next[register >> 1][before + distance];
                                into.0 += number;
                                into.1 += sum + if input == 1 { number } else { 0.0 };
                            }
                        }
                    }
                }
                for (sum, arrived) in found.iter_mut().zip(&mut next[0]) {
                    *sum += arrived.1;
                    *arrived = (0.0, 0.0);
                }
                paths = next;
                if paths.iter().flatten().all(|path| path.0 == 0.0) {
                    break;
                }
            }
        }
        assert!(found[..least].iter().all(|&weight| weight == 0.0), "{found:?}");
        found[least..].to_vec()
    }

    #[test]
    fn weights_of_the_codes_follow_from_their_trellis() {
        let (both, first, second) = ([true, true], [true, false], [false, true]);
        for ((least, step, _, published), kept) in [
            (HALF, &[both][..]),
            (TWO_THIRDS, &[both, first][..]),
            (THREE_QUARTERS, &[both, first, second][..]),
            (FIVE_SIXTHS, &[both, first, second, first, second][..]),
        ] {
            let least = usize::try_from(least).expect("small");
            let step = usize::try_from(step).expect("small");
            let computed = weights(kept, least, 1 + step * (published.len() - 1));
            let computed: Vec<f64> = computed.into_iter().step_by(step).collect();
            // From twice the least distance on, the published weights of punctured codes count two paths
            // within one period as one more.
            let alone = published.len().min(least.div_ceil(step));
            assert_eq!(computed[..alone], published[..alone], "{}", kept.len());
            let close = |(one, two): (&f64, &f64)| (one / two - 1.0).abs() < 0.01;
            assert!(computed.iter().zip(published).all(close), "{computed:?}");
        }
    }

    #[test]
    fn raw_rates_at_known_points() {
        // Proakis, Digital Communications: BPSK needs 9.59 dB for 1e-5, 6.79 dB for 1e-3;
        // QPSK the same per bit, so 3.01 dB more per symbol.
        for (modulation, db, expected) in
            [(Modulation::Bpsk, 6.79, 1e-3), (Modulation::Bpsk, 9.59, 1e-5), (Modulation::Qpsk, 12.60, 1e-5)]
        {
            let p = raw(modulation, math::linear(db));
            assert!((p / expected - 1.0).abs() < 0.03, "{modulation:?} {db} dB: {p}");
        }
    }

    #[test]
    fn frame_errors_where_the_reference_simulation_is_on_the_slope() {
        // Transmission failure ratios of the reference at 60, 80 and 100 m; about
        // 1400 transmissions each, so 0.03 is less than three standard deviations.
        for (rate, db, expected) in
            [(3, 9.95, 0.0835), (1, 6.20, 0.6155), (2, 6.20, 0.8139), (0, 3.29, 0.6876), (7, 24.26, 0.0004)]
        {
            let lost = lost(rate, db);
            assert!((lost - expected).abs() < 0.03, "rate {rate} at {db} dB: {lost} against {expected}");
        }
    }

    #[test]
    fn each_rate_falls_within_two_decibels() {
        for rate in 0..8 {
            let ratio_for =
                |target: f64| (0..600).map(|n| f64::from(n) * 0.05).find(|&db| lost(rate, db) < target);
            let (nearly_all, nearly_none) = (ratio_for(0.99), ratio_for(0.01));
            let width = nearly_none.expect("a ratio") - nearly_all.expect("a ratio");
            assert!((0.5..2.5).contains(&width), "rate {rate}: {width} dB");
        }
    }
}
