//! The tables of the physical layers.
//!
//! Sources, IEEE Std 802.11-2020: OFDM rates table 17-4, timing table 17-21; DSSS timing table
//! 15-5; HR/DSSS rates 16.2, timing table 16-4; ERP 18.4 (SIFS 10 us, 6 us signal extension).
//! Those of 802.11n are in [`ht`].
//!
//! Energy detection thresholds: OFDM 17.3.10.6, HR/DSSS 16.3.8.5 by transmit power.
//!
//! The standard only bounds the time of clear channel assessment (aCCATime) from above: below 4 us
//! for OFDM at 20 MHz and for ERP with short slots, below 15 us for DSSS and HR/DSSS. The tables
//! use the bounds. The rest of the slot is left for the other parts in 10.3.7, turnaround,
//! propagation and processing: 5 of 9 us, and 5 of 20 us.

use super::channel::Band;
use super::{Coding, Modulation, Phy, Rate, ht};
use crate::time::Span;

const fn ofdm(
    megabits: u32,
    modulation: Modulation,
    coding: Coding,
    symbol_bits: u16,
    mandatory: bool,
    extension_ns: u32,
) -> Rate {
    Rate {
        bits_per_second: megabits * 1_000_000,
        modulation,
        coding,
        preamble_ns: 20_000,
        header_ns: 4_000,
        header_bits: 24,
        header: (Modulation::Bpsk, Coding::Half),
        symbol_ns: 4_000,
        symbol_bits,
        extra_bits: 16 + 6,
        extension_ns,
        mandatory,
        spreading: 1,
        ht: None,
    }
}

pub(super) const fn ofdm_rates(extension_ns: u32) -> [Rate; 8] {
    use Coding::{Half, ThreeQuarters, TwoThirds};
    use Modulation::{Bpsk, Qam16, Qam64, Qpsk};
    [
        ofdm(6, Bpsk, Half, 24, true, extension_ns),
        ofdm(9, Bpsk, ThreeQuarters, 36, false, extension_ns),
        ofdm(12, Qpsk, Half, 48, true, extension_ns),
        ofdm(18, Qpsk, ThreeQuarters, 72, false, extension_ns),
        ofdm(24, Qam16, Half, 96, true, extension_ns),
        ofdm(36, Qam16, ThreeQuarters, 144, false, extension_ns),
        ofdm(48, Qam64, TwoThirds, 192, false, extension_ns),
        ofdm(54, Qam64, ThreeQuarters, 216, false, extension_ns),
    ]
}

const fn spread(bits_per_second: u32, modulation: Modulation, short: bool) -> Rate {
    // Long: 144 bits of preamble and 48 of header at 1 Mbit/s. Short: 72 bits of preamble at
    // 1 Mbit/s, 48 of header at 2 Mbit/s.
    Rate {
        bits_per_second,
        modulation,
        coding: Coding::None,
        preamble_ns: if short { 96_000 } else { 192_000 },
        header_ns: if short { 24_000 } else { 48_000 },
        header_bits: 48,
        header: (if short { Modulation::Dqpsk } else { Modulation::Dbpsk }, Coding::None),
        symbol_ns: 0,
        symbol_bits: 0,
        extra_bits: 0,
        extension_ns: 0,
        mandatory: true,
        spreading: 1,
        ht: None,
    }
}

/// 802.11a: OFDM at 5 GHz, 20 MHz.
pub static A: Phy = OFDM;

pub(super) const OFDM: Phy = Phy {
    name: "802.11a",
    slot: Span::from_micros(9),
    sifs: Span::from_micros(16),
    detect: Span::from_micros(4),
    cw_min: 15,
    cw_max: 1023,
    bandwidth_hz: 20_000_000,
    energy_dbm: [-62.0; 3],
    bands: &[Band::Five],
    layers: &[],
    rates: &{ ofdm_rates(0) },
};

/// 802.11g without 802.11b stations: OFDM at 2.4 GHz, short slot.
pub static G: Phy = ERP;

pub(super) const ERP: Phy = Phy {
    name: "802.11g",
    sifs: Span::from_micros(10),
    bands: &[Band::Two],
    rates: &{ ofdm_rates(6_000) },
    ..OFDM
};

/// 802.11g with the rates of 802.11b: DSSS and CCK with long preambles, and OFDM, with the short slot.
///
/// The smallest window is that of stations with ERP-OFDM rates, 15 (18.4.4); the noise is that of
/// 20 MHz for all rates.
pub static BG: Phy = MIXED;

const MIXED: Phy = Phy {
    name: "802.11bg",
    rates: &{
        let ([one, two, five, eleven], [six, nine, twelve, rest @ ..]) =
            (spread_rates(false), ofdm_rates(6_000));
        let [eighteen, twenty_four, thirty_six, forty_eight, fifty_four] = rest;
        [
            one,
            two,
            five,
            six,
            nine,
            eleven,
            twelve,
            eighteen,
            twenty_four,
            thirty_six,
            forty_eight,
            fifty_four,
        ]
    },
    ..ERP
};

/// Both bands: [`BG`] at 2.4 GHz, [`A`] at 5 GHz, by the channel. Its own figures are those of 2.4 GHz.
pub static ABG: Phy = Phy { name: "802.11abg", bands: &[Band::Two, Band::Five], layers: &[&BG, &A], ..MIXED };

/// 802.11b with long preambles.
pub static B_LONG: Phy = SPREAD;

const SPREAD: Phy = Phy {
    name: "802.11b",
    slot: Span::from_micros(20),
    sifs: Span::from_micros(10),
    detect: Span::from_micros(15),
    cw_min: 31,
    cw_max: 1023,
    bandwidth_hz: 22_000_000,
    energy_dbm: [-70.0, -73.0, -76.0],
    bands: &[Band::Two],
    layers: &[],
    rates: &{ spread_rates(false) },
};

/// 802.11b with short preambles; 1 Mbit/s keeps the long one, as 16.2.2.3 requires.
pub static B_SHORT: Phy = Phy { name: "802.11b-short", rates: &{ spread_rates(true) }, ..SPREAD };

const fn spread_rates(short: bool) -> [Rate; 4] {
    [
        spread(1_000_000, Modulation::Dbpsk, false),
        spread(2_000_000, Modulation::Dqpsk, short),
        spread(5_500_000, Modulation::Cck4, short),
        spread(11_000_000, Modulation::Cck8, short),
    ]
}

/// All physical layers, whose names are used in scenarios.
pub static ALL: [&Phy; 7] = [&A, &G, &B_LONG, &B_SHORT, &BG, &ABG, &ht::N];

/// The physical layer with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Phy> {
    ALL.into_iter().find(|phy| phy.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::phy::{ACK_OCTETS, Channel};

    fn micros(span: Span) -> u64 {
        assert_eq!(span.nanos() % 1_000, 0);
        span.nanos() / 1_000
    }

    #[test]
    fn airtimes_of_1470_octet_datagrams_and_their_acknowledgments() {
        // 1470 octets of UDP payload make a frame of 1534 octets; the times are those observed on
        // the air in the reference simulation.
        let expected =
            [(2072, 44), (1388, 44), (1048, 32), (704, 32), (536, 28), (364, 28), (280, 28), (248, 28)];
        for (index, (data, ack)) in (0u8..).zip(expected) {
            let answer = A.response(index, A.mandatory());
            assert_eq!(micros(A.rates[usize::from(index)].airtime(1534)), data);
            assert_eq!(micros(A.rates[usize::from(answer)].airtime(ACK_OCTETS)), ack);
        }
        assert_eq!(micros(B_LONG.rates[3].airtime(1534)), 192 + 1116);
        assert_eq!(micros(B_SHORT.rates[3].airtime(1534)), 96 + 1116);
        assert_eq!(micros(B_SHORT.rates[0].airtime(14)), 192 + 112);
        assert_eq!(micros(G.rates[7].airtime(1534)), 248 + 6);
    }

    #[test]
    fn spaces_between_frames() {
        let spaces = |phy: &Phy| (micros(phy.difs()), micros(phy.eifs()));
        assert_eq!(spaces(&A), (34, 94));
        assert_eq!(spaces(&G), (28, 10 + 28 + 50));
        assert_eq!(spaces(&B_LONG), (50, 10 + 50 + 304));
        assert_eq!(spaces(&BG), (28, 10 + 28 + 304));
        assert_eq!(ALL.map(|phy| micros(phy.detect)), [4, 4, 15, 15, 4, 4, 4]);
    }

    #[test]
    fn energy_is_detected_by_layer_and_power() {
        for phy in [&A, &G, &BG] {
            assert!(
                [0.0, 16.0, 30.0]
                    .iter()
                    .all(|&power| phy.energy_threshold_dbm(power).to_bits() == (-62.0f64).to_bits())
            );
        }
        // 50 mW are 16.99 dBm, 100 mW are 20 dBm.
        let found = [0.0, 16.9, 17.0, 20.0, 20.1].map(|power| B_LONG.energy_threshold_dbm(power));
        assert_eq!(found.map(f64::to_bits), [-70.0, -70.0, -73.0, -73.0, -76.0f64].map(f64::to_bits));
        assert_eq!(
            found.map(f64::to_bits),
            [0.0, 16.9, 17.0, 20.0, 20.1].map(|power| B_SHORT.energy_threshold_dbm(power).to_bits())
        );
    }

    #[test]
    fn a_layer_of_both_kinds_answers_in_the_kind_of_the_frame() {
        let rates: Vec<u32> = BG.rates.iter().map(|rate| rate.bits_per_second / 100_000).collect();
        assert_eq!(rates, [10, 20, 55, 60, 90, 110, 120, 180, 240, 360, 480, 540]);
        assert!(BG.decodes(true) && BG.decodes(false));
        assert!(G.decodes(false) && !G.decodes(true) && B_LONG.decodes(true) && !B_LONG.decodes(false));
        for basic in [BG.mandatory(), 0b10_0111] {
            // The second basic set has no OFDM rate: the mandatory ones answer.
            let answers = (0..12).map(|index| rates[usize::from(BG.response(index, basic))]);
            assert_eq!(answers.collect::<Vec<_>>(), [10, 20, 55, 60, 60, 110, 120, 120, 240, 240, 240, 240]);
        }
        let delays = BG.rates.iter().map(|rate| micros(rate.start_delay()));
        assert_eq!(delays.collect::<Vec<_>>(), [192, 192, 192, 20, 20, 192, 20, 20, 20, 20, 20, 20]);
        for (index, rate) in (0u8..).zip(BG.rates) {
            let other = if rate.modulation.is_spread() { &B_LONG } else { &G };
            let there = other.same_rate(&BG, index);
            assert_eq!(other.rates[usize::from(there)].airtime(1534), rate.airtime(1534));
            assert_eq!(BG.same_rate(other, there), index);
        }
    }

    #[test]
    fn a_layer_of_both_bands_is_that_of_the_channel() {
        for channel in Channel::all(ABG.bands) {
            let layer = ABG.on(channel);
            assert_eq!(layer.name, if channel.is_two() { "802.11bg" } else { "802.11a" });
            assert!(core::ptr::eq(layer.on(channel), layer));
        }
        assert_eq!(Channel::all(ABG.bands).count(), 14 + 28);
    }

    #[test]
    fn answers_stay_in_the_basic_set_and_below_the_frame() {
        let only_6 = 1;
        assert!((0..8).all(|index| A.response(index, only_6) == 0));
        // 36 Mbit/s is optional: with a basic set of it alone, responses to 6 Mbit/s frames use
        // mandatory rates.
        assert_eq!(A.response(2, 1 << 5), 2);
        assert_eq!(A.lowest(1 << 5), 5);
        assert_eq!(A.lowest(0), 0);
    }
}
