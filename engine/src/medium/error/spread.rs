//! Bit errors of DSSS and CCK.

use super::ErrorModel;
use crate::math;
use crate::math::erfc;
use crate::medium::phy::{Coding, Modulation};

/// Bit errors of 802.11b in additive white Gaussian noise, counted in 22 MHz.
///
/// With s the ratio in 22 MHz and R the symbol rate, Es/N0 = s * 22 MHz / R:
/// * 1 Mbit/s, DBPSK: `p = exp(-Eb/N0) / 2` (Proakis, Digital Communications, 5.2-69).
/// * 2 Mbit/s, DQPSK: `p = (sqrt2 + 1)/sqrt(8 pi sqrt2) * exp(-(2 - sqrt2) Eb/N0) / sqrt(Eb/N0)`,
///   asymptotic (Proakis 5.2-71 with the Bessel function's leading term).
/// * 5.5 Mbit/s, CCK with 4 code words in 4 phases: 16 biorthogonal signals,
///   `P_c = integral from -sqrt(2 Es/N0) of (1 - 2 Q(v + sqrt(2 Es/N0)))^7 phi(v) dv` (Proakis
///   5.2-27), `p = 8/15 (1 - P_c)`.
/// * 11 Mbit/s, CCK with 64 code words in 4 phases, bounded as 16 sets of biorthogonal signals:
///   `p = 128/255 (1 - P_c^16)`.
///
/// Source: Pei and Henderson, "Validation of ns-3 802.11b PHY model", 2009, who use the same
/// forms. Range: any ratio; the asymptote is capped at 1/2.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread;

const BANDWIDTH: f64 = 22e6;
const CCK_SYMBOLS: f64 = 1.375e6;

/// Error probability of the decision among 16 biorthogonal signals, with `edge` = sqrt(2 Es/N0):
/// Simpson's rule over the ten standard deviations that matter. The error probability, not its
/// complement, is returned, so that small values keep their digits.
fn biorthogonal_error(edge: f64) -> f64 {
    const STEPS: u32 = 400;
    let from = (-edge).max(-9.0);
    let step = (9.0 - from) / f64::from(STEPS);
    let density = |v: f64| math::exp(-v * v / 2.0) / (2.0 * core::f64::consts::PI).sqrt();
    // 1 - (1 - x)^7 with x = 2 Q(v + edge) = erfc((v + edge)/sqrt2)
    let wrong = |v: f64| {
        let x = erfc((v + edge) / core::f64::consts::SQRT_2).min(1.0);
        -math::exp_m1(7.0 * math::ln_1p(-x))
    };
    let sum: f64 = (0..=STEPS)
        .map(|n| {
            let v = from + f64::from(n) * step;
            let weight = if n == 0 || n == STEPS { 1.0 } else { f64::from(2 + 2 * (n % 2)) };
            weight * wrong(v) * density(v)
        })
        .sum();
    // Below -edge the sign is wrong.
    (sum * step / 3.0 + 0.5 * erfc(-from / core::f64::consts::SQRT_2)).min(1.0)
}

impl ErrorModel for Spread {
    fn ln_bit(&self, modulation: Modulation, _coding: Coding, ratio: f64) -> f64 {
        let s = ratio.max(0.0);
        let p = match modulation {
            Modulation::Dbpsk => 0.5 * math::exp(-s * BANDWIDTH / 1e6),
            Modulation::Dqpsk => {
                let bit = s * BANDWIDTH / 2e6;
                let root2 = core::f64::consts::SQRT_2;
                (root2 + 1.0) / (8.0 * core::f64::consts::PI * root2).sqrt() * math::exp(-(2.0 - root2) * bit)
                    / bit.sqrt()
            }
            _ => {
                let error = biorthogonal_error((2.0 * s * BANDWIDTH / CCK_SYMBOLS).sqrt());
                if modulation == Modulation::Cck4 {
                    8.0 / 15.0 * error
                } else {
                    -128.0 / 255.0 * math::exp_m1(16.0 * math::ln_1p(-error))
                }
            }
        };
        math::ln_1p(-p.min(0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit_error(modulation: Modulation, bit_over_noise_db: f64, bits_per_second: f64) -> f64 {
        let ratio = math::linear(bit_over_noise_db) * bits_per_second / BANDWIDTH;
        -math::exp_m1(Spread.ln_bit(modulation, Coding::None, ratio))
    }

    #[test]
    fn differential_phase_shift_keying_at_known_points() {
        // Proakis, figure 5.2-12: DBPSK 1e-5 at 10.34 dB; DQPSK about 2.3 dB worse than QPSK's
        // 9.59 dB.
        let p = bit_error(Modulation::Dbpsk, 10.34, 1e6);
        assert!((p / 1e-5 - 1.0).abs() < 0.03, "{p}");
        let p = bit_error(Modulation::Dqpsk, 11.95, 2e6);
        assert!((p / 1e-5 - 1.0).abs() < 0.25, "{p}");
    }

    #[test]
    fn biorthogonal_signals_at_limits() {
        // No signal: a guess among 16. Much signal: union bound of 14 neighbours at right angles.
        assert!((biorthogonal_error(0.0) - 15.0 / 16.0).abs() < 1e-3);
        let edge: f64 = 7.0;
        let union = 14.0 * 0.5 * erfc(edge / 2.0);
        let p = biorthogonal_error(edge);
        assert!(p < union && p > 0.9 * union, "{p} against {union}");
    }

    #[test]
    fn faster_rates_of_a_kind_need_more_signal() {
        let needed = |modulation: Modulation| {
            (0..400)
                .map(|n| -15.0 + f64::from(n) * 0.1)
                .find(|db| -Spread.ln_bit(modulation, Coding::None, math::linear(*db)) < 1e-5)
                .expect("a ratio")
        };
        let [dbpsk, dqpsk, cck4, cck8] =
            [Modulation::Dbpsk, Modulation::Dqpsk, Modulation::Cck4, Modulation::Cck8].map(needed);
        // Coherent CCK gains by its code what it loses in energy: 5.5 Mbit/s needs about the same
        // ratio as differential 2 Mbit/s.
        assert!(dbpsk < dqpsk && cck4 < cck8 && dqpsk < cck8 && (cck4 - dqpsk).abs() < 0.5);
    }
}
