//! Rates of a guest's driver and those of its radio.
//!
//! A driver names a rate by its index in the table of the band (`hwsim_rates` in the kernel), or as a
//! modulation and coding scheme. The radio sends at the rates of its physical layer. A rate that it
//! does not have is replaced by its fastest rate that is not faster, or by its slowest.

use airloom_engine::medium::phy::{Channel, Phy};

use super::hwsim::Step;

/// Rates of a driver at 2.4 GHz in bit/s; at 5 GHz it has those from [`OFDM`] on.
const TABLE: [u32; 12] = [
    1_000_000, 2_000_000, 5_500_000, 11_000_000, 6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000,
    36_000_000, 48_000_000, 54_000_000,
];
const OFDM: usize = 4;
/// Rates of one spatial stream at 20 MHz with the long guard interval in bit/s (802.11-2020, tables
/// 19-27 and 21-29).
const SCHEMES: [u32; 9] = [
    6_500_000, 13_000_000, 19_500_000, 26_000_000, 39_000_000, 52_000_000, 58_500_000, 65_000_000, 78_000_000,
];
/// Flags of a step whose index is a modulation and coding scheme: HT, VHT.
const HT: u16 = 1 << 3;
const VHT: u16 = 1 << 8;
/// Highest frequency of the 2.4 GHz band, in MHz.
const TWO: u32 = 3000;

/// The layer that a radio has at this frequency.
fn on(phy: &'static Phy, mhz: u32) -> &'static Phy {
    let channel = u16::try_from(mhz).ok().and_then(|mhz| Channel::centred(phy.bands, mhz));
    channel.map_or(phy, |channel| phy.on(channel))
}

fn table(mhz: u32) -> &'static [u32] {
    if mhz < TWO { &TABLE } else { &TABLE[OFDM..] }
}

/// Index in `phy` of the rate of a step; None if the step has none.
#[must_use]
pub fn of_radio(phy: &'static Phy, mhz: u32, step: Step) -> Option<u8> {
    let phy = on(phy, mhz);
    let index = usize::try_from(step.index).ok()?;
    let wanted = if is_scheme(step) {
        SCHEMES[if step.flags & VHT != 0 { (index & 15).min(8) } else { index % 8 }]
    } else {
        *table(mhz).get(index)?
    };
    let slower = phy.rates.iter().enumerate().filter(|(_, rate)| rate.bits_per_second <= wanted);
    let best = slower.max_by_key(|(_, rate)| rate.bits_per_second);
    u8::try_from(best.map_or(0, |(index, _)| index)).ok()
}

/// Index for the driver of the rate that was used for a step. A scheme stays as it was: the driver
/// keeps the flags of its request.
#[must_use]
pub fn of_driver(phy: &'static Phy, mhz: u32, step: Step, rate: u8) -> i8 {
    if is_scheme(step) {
        return step.index;
    }
    received(phy, mhz, rate).and_then(|index| i8::try_from(index).ok()).unwrap_or(step.index)
}

/// Index in the driver's table of a rate at which a frame was received.
#[must_use]
pub fn received(phy: &'static Phy, mhz: u32, rate: u8) -> Option<u32> {
    let wanted = on(phy, mhz).rates.get(usize::from(rate))?.bits_per_second;
    let index = table(mhz).iter().position(|&rate| rate == wanted)?;
    u32::try_from(index).ok()
}

fn is_scheme(step: Step) -> bool {
    step.flags & (HT | VHT) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use airloom_engine::medium::phy::tables::{A, ABG, B_LONG, BG, G};

    fn step(index: i8, flags: u16) -> Step {
        Step { index, count: 1, flags }
    }

    #[test]
    fn a_rate_that_both_have_keeps_its_speed_both_ways() {
        for (phy, mhz) in [(&A, 5180), (&G, 2412), (&B_LONG, 2412)] {
            for (rate, known) in (0u8..).zip(phy.rates) {
                let index = received(phy, mhz, rate).unwrap();
                let step = step(i8::try_from(index).unwrap(), 0);
                assert_eq!(of_radio(phy, mhz, step), Some(rate), "{} {known:?}", phy.name);
                assert_eq!(of_driver(phy, mhz, step, rate), step.index);
            }
        }
    }

    #[test]
    fn a_radio_of_both_bands_has_the_rates_of_the_channel() {
        for (layer, mhz) in [(&A, 5180), (&BG, 2412)] {
            for rate in 0..u8::try_from(layer.rates.len()).unwrap() {
                let index = received(&ABG, mhz, rate);
                assert_eq!(index, received(layer, mhz, rate));
                let step = step(i8::try_from(index.unwrap()).unwrap(), 0);
                assert_eq!(of_radio(&ABG, mhz, step), Some(rate));
            }
        }
    }

    #[test]
    fn a_rate_that_the_radio_lacks_becomes_the_next_slower_one() {
        // 1 and 11 Mbit/s of a radio with OFDM only: 6 and 9.
        assert_eq!(of_radio(&G, 2412, step(0, 0)), Some(0));
        assert_eq!(of_radio(&G, 2412, step(3, 0)), Some(1));
        assert_eq!(of_driver(&G, 2412, step(0, 0), 0), 4, "6 Mbit/s in the driver's table");
        // 54 Mbit/s of a radio with DSSS only: 11.
        assert_eq!(of_radio(&B_LONG, 2412, step(11, 0)), Some(3));
        // A scheme: HT 7 is 65 Mbit/s, VHT 0 is 6.5.
        assert_eq!(of_radio(&A, 5180, step(7, HT)), Some(7));
        assert_eq!(of_radio(&A, 5180, step(0, VHT)), Some(0));
        assert_eq!(of_driver(&A, 5180, step(5, HT), 6), 5);
        // No rate, or one outside the table.
        assert_eq!(of_radio(&A, 5180, step(-1, 0)), None);
        assert_eq!(of_radio(&A, 5180, step(8, 0)), None);
    }
}
