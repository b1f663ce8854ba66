//! The tables of 802.11n (HT) in mixed format.
//!
//! Sources, IEEE Std 802.11-2020, clause 19: rates of equal modulation, tables 19-27 to 19-34 (MCS 0
//! to 31 at 20 and 40 MHz); fields and their lengths, table 19-6; number of training fields by streams,
//! table 19-13; length of a frame, 19.4.3; response rates, 10.6.6.5.2 by way of the non-HT
//! reference rates of 10.6.11.
//!
//! The preamble is L-STF 8, L-LTF 8, L-SIG 4, HT-SIG 8, HT-STF 4, and one HT-LTF of 4 us for one
//! stream, two for two, four for three and four. Each table begins with the eight rates of clause 17,
//! in which responses, broadcast and management frames are sent; at 40 MHz they are sent in both
//! halves of the channel (non-HT duplicate, 19.3.11.12).
//!
//! Approximations: the 72 bits of L-SIG and HT-SIG count evenly over the time from the start of L-SIG to
//! the end of the training fields. Streams are ideally separated, and share the power evenly.

use super::channel::Band;
use super::tables::{ERP, OFDM, ofdm_rates};
use super::{Coding, Ht, Modulation, Phy, Rate};

/// Its name in scenarios.
pub const NAME: &str = "802.11n";
/// Most MPDUs of an A-MPDU, and sequence numbers of a block ack (10.25.6).
pub(in crate::medium) const MOST_FRAMES: u8 = 64;
/// Rates of clause 17 at the start of each table.
const PLAIN: usize = 8;
/// Modulation and coding schemes of equal modulation.
const SCHEMES: usize = 32;
/// Data bits in a symbol of one stream, by MCS modulo 8: with the 52 data subcarriers of 20 MHz, and
/// with the 108 of 40 MHz.
const SYMBOL_BITS: [[u16; 8]; 2] =
    [[26, 52, 78, 104, 156, 208, 234, 260], [54, 108, 162, 216, 324, 432, 486, 540]];
/// Modulation and code by MCS modulo 8.
const FORMS: [(Modulation, Coding); 8] = [
    (Modulation::Bpsk, Coding::Half),
    (Modulation::Qpsk, Coding::Half),
    (Modulation::Qpsk, Coding::ThreeQuarters),
    (Modulation::Qam16, Coding::Half),
    (Modulation::Qam16, Coding::ThreeQuarters),
    (Modulation::Qam64, Coding::TwoThirds),
    (Modulation::Qam64, Coding::ThreeQuarters),
    (Modulation::Qam64, Coding::FiveSixths),
];
/// Index of the reference rate by MCS modulo 8: the rate of clause 17 with the same modulation and
/// code, and 54 Mbit/s for the code of rate 5/6.
pub(super) const REFERENCE: [u8; 8] = [0, 2, 3, 4, 5, 6, 7, 7];

const fn rate(mcs: u8, wide: bool, short: bool, extension_ns: u32) -> Rate {
    let ht = Ht { mcs, wide, short };
    let streams = ht.streams();
    let (modulation, coding) = FORMS[(mcs % 8) as usize];
    let symbol_bits = SYMBOL_BITS[wide as usize][(mcs % 8) as usize] * streams as u16;
    let symbol_ns = if short { 3_600 } else { 4_000 };
    let trainings = if streams == 3 { 4 } else { streams as u32 };
    // One encoder up to 300 Mbit/s, two above; each has six tail bits.
    let encoders = if symbol_bits > 1_200 { 2 } else { 1 };
    Rate {
        #[allow(clippy::cast_possible_truncation)] // at most 600 Mbit/s
        bits_per_second: (symbol_bits as u64 * 1_000_000_000 / symbol_ns as u64) as u32,
        modulation,
        coding,
        preamble_ns: 32_000 + 4_000 * trainings,
        header_ns: 16_000 + 4_000 * trainings,
        header_bits: 24 + 48,
        header: (Modulation::Bpsk, Coding::Half),
        symbol_ns,
        symbol_bits,
        extra_bits: 16 + 6 * encoders,
        extension_ns,
        mandatory: false,
        spreading: 1,
        ht: Some(ht),
    }
}

const fn rates(wide: bool, short: bool, extension_ns: u32) -> [Rate; PLAIN + SCHEMES] {
    let plain = ofdm_rates(extension_ns);
    let mut rates = [plain[0]; PLAIN + SCHEMES];
    let mut at = 0;
    while at < PLAIN + SCHEMES {
        #[allow(clippy::cast_possible_truncation)] // below 32
        let mcs = at.saturating_sub(PLAIN) as u8;
        rates[at] = if at < PLAIN { plain[at] } else { rate(mcs, wide, short, extension_ns) };
        at += 1;
    }
    rates
}

macro_rules! layer {
    ($base:expr, $extension:literal, $wide:literal, $short:literal) => {
        Phy {
            name: NAME,
            bandwidth_hz: if $wide { 40_000_000 } else { 20_000_000 },
            rates: &{ rates($wide, $short, $extension) },
            ..$base
        }
    };
}

/// At 2.4 GHz, by width and guard interval: timing of ERP with the short slot.
static TWO: [[Phy; 2]; 2] = [
    [layer!(ERP, 6_000, false, false), layer!(ERP, 6_000, false, true)],
    [layer!(ERP, 6_000, true, false), layer!(ERP, 6_000, true, true)],
];

/// At 5 GHz, by width and guard interval: timing of clause 17.
static FIVE: [[Phy; 2]; 2] = [
    [layer!(OFDM, 0, false, false), layer!(OFDM, 0, false, true)],
    [layer!(OFDM, 0, true, false), layer!(OFDM, 0, true, true)],
];

/// Both bands at 20 MHz with the long guard interval; [`layer`] has the others. Its own figures are
/// those of 5 GHz.
pub static N: Phy = Phy {
    name: NAME,
    bands: &[Band::Two, Band::Five],
    layers: &[&TWO[0][0], &FIVE[0][0]],
    rates: &{ rates(false, false, 0) },
    ..OFDM
};

/// The layer of a band, at 20 or 40 MHz, with a guard interval of 800 ns or 400 ns (`short`).
#[must_use]
pub fn layer(band: Band, wide: bool, short: bool) -> &'static Phy {
    let table = match band {
        Band::Two => &TWO,
        Band::Five => &FIVE,
    };
    &table[usize::from(wide)][usize::from(short)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mbit/s of one stream by MCS: 20 MHz at 800 and 400 ns, 40 MHz at 800 and 400 ns, as the standard
    /// prints them, to a tenth (tables 19-27 and 19-31); more streams have as many times as much.
    const PUBLISHED: [[f64; 4]; 8] = [
        [6.5, 7.2, 13.5, 15.0],
        [13.0, 14.4, 27.0, 30.0],
        [19.5, 21.7, 40.5, 45.0],
        [26.0, 28.9, 54.0, 60.0],
        [39.0, 43.3, 81.0, 90.0],
        [52.0, 57.8, 108.0, 120.0],
        [58.5, 65.0, 121.5, 135.0],
        [65.0, 72.2, 135.0, 150.0],
    ];
    const MODES: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

    fn all() -> impl Iterator<Item = (&'static Rate, Ht, Band)> {
        [Band::Two, Band::Five].into_iter().flat_map(|band| {
            MODES.into_iter().flat_map(move |(wide, short)| {
                let rates = layer(band, wide, short).rates.iter();
                rates.filter_map(move |rate| Some((rate, rate.ht?, band)))
            })
        })
    }

    #[test]
    fn every_rate_is_the_published_one() {
        let mut seen = 0;
        for (rate, ht, _) in all() {
            let mode = MODES.iter().position(|&mode| mode == (ht.wide, ht.short)).expect("a mode");
            let streams = f64::from(ht.mcs / 8 + 1);
            let published = PUBLISHED[usize::from(ht.mcs % 8)][mode] * streams;
            let found = f64::from(rate.bits_per_second) / 1e6;
            // One stream is printed to a tenth.
            assert!((found - published).abs() <= 0.05 * streams, "{ht:?}: {found} of {published}");
            seen += 1;
        }
        assert_eq!(seen, 2 * 4 * 32);
        let highest = layer(Band::Five, true, true).rates.last().expect("a rate").bits_per_second;
        assert_eq!(highest, 600_000_000);
    }

    #[test]
    fn bits_of_a_symbol_follow_from_subcarriers_modulation_and_code() {
        for (rate, ht, _) in all() {
            let subcarriers = if ht.wide { 108 } else { 52 };
            let coded = match rate.modulation {
                Modulation::Bpsk => 1,
                Modulation::Qpsk => 2,
                Modulation::Qam16 => 4,
                _ => 6,
            };
            let (carried, of) = match rate.coding {
                Coding::TwoThirds => (2, 3),
                Coding::ThreeQuarters => (3, 4),
                Coding::FiveSixths => (5, 6),
                _ => (1, 2),
            };
            let bits = subcarriers * coded * u16::from(ht.streams()) * carried / of;
            assert_eq!(rate.symbol_bits, bits, "{ht:?}");
        }
    }

    #[test]
    fn two_encoders_where_the_standard_has_two() {
        // Tables 19-27 to 19-34, column N_ES.
        let two = |ht: Ht| ht.wide && (matches!(ht.mcs, 21..=23) || ht.mcs >= 28);
        for (rate, ht, _) in all() {
            assert_eq!(rate.extra_bits, if two(ht) { 28 } else { 22 }, "{ht:?}");
        }
    }

    #[test]
    fn frames_last_as_long_as_the_standard_computes() {
        let micros = |band, wide, short, mcs: u8, octets| {
            let rates = layer(band, wide, short).rates;
            rates[PLAIN + usize::from(mcs)].airtime(octets).nanos()
        };
        // 1500 octets: 12022 bits with service and tail (12028 with two encoders).
        assert_eq!(micros(Band::Five, false, false, 0, 1500), 36_000 + 463 * 4_000);
        assert_eq!(micros(Band::Five, false, false, 7, 1500), 36_000 + 47 * 4_000);
        assert_eq!(micros(Band::Two, false, false, 7, 1500), 36_000 + 47 * 4_000 + 6_000);
        // With the short guard interval the data is filled up to whole symbols of 4 us.
        assert_eq!(micros(Band::Five, false, true, 7, 1500), 36_000 + 172_000);
        assert_eq!(micros(Band::Five, true, false, 15, 1500), 40_000 + 12 * 4_000);
        assert_eq!(micros(Band::Five, true, false, 23, 1500), 48_000 + 8 * 4_000);
        assert_eq!(micros(Band::Five, true, true, 31, 1500), 48_000 + 24_000);
    }

    #[test]
    fn responses_are_sent_at_rates_of_clause_17() {
        for (wide, short) in MODES {
            let phy = layer(Band::Five, wide, short);
            let answers: Vec<u32> = (0..32)
                .map(|mcs| phy.response(phy.scheme(mcs).expect("a rate"), phy.mandatory()))
                .map(|index| phy.rates[usize::from(index)].bits_per_second / 1_000_000)
                .collect();
            for eight in answers.chunks(8) {
                assert_eq!(eight, [6, 12, 12, 24, 24, 24, 24, 24]);
            }
            // With a basic set of all of them it is the reference rate.
            assert_eq!(phy.response(phy.scheme(7).expect("a rate"), 0xff), 7);
            assert_eq!(phy.response(phy.scheme(8).expect("a rate"), 0xff), 0);
            assert_eq!(phy.scheme(32), None);
            // The layer of another width has its rates by scheme, not by bit/s.
            let other = layer(Band::Five, !wide, short);
            let all = (0u8..).zip(other.rates);
            assert!(all.into_iter().all(|(index, _)| phy.same_rate(other, index) == index));
        }
    }
}
