//! Physical layers whose symbols are spread by a code.

use std::sync::OnceLock;

use super::tables::ALL;
use super::{Phy, Rate};

/// Powers of two that are spreading factors: 2 to 128.
const FACTORS: usize = 7;

/// The physical layer with symbols, preamble and header `factor` times as long; `phy` itself for
/// other factors than 2, 4, 8 to 128. Its rates keep their names (bit/s without spreading).
#[must_use]
pub fn spread(phy: &'static Phy, factor: u16) -> &'static Phy {
    static TABLES: [[OnceLock<Phy>; FACTORS]; ALL.len()] =
        [const { [const { OnceLock::new() }; FACTORS] }; ALL.len()];
    let row = ALL.iter().position(|known| core::ptr::eq(*known, phy));
    let column = factor.is_power_of_two().then(|| factor.trailing_zeros() as usize);
    let cell = row.zip(column).and_then(|(row, column)| TABLES[row].get(column.wrapping_sub(1)));
    cell.map_or(phy, |cell| cell.get_or_init(|| longer(phy, factor)))
}

fn longer(phy: &Phy, factor: u16) -> Phy {
    let times = u32::from(factor);
    let rate = |rate: &Rate| Rate {
        preamble_ns: rate.preamble_ns * times,
        header_ns: rate.header_ns * times,
        symbol_ns: rate.symbol_ns * times,
        spreading: factor,
        ..*rate
    };
    // One table for each layer and factor in use, for the rest of the process.
    let rates = phy.rates.iter().map(rate).collect::<Vec<_>>().leak();
    Phy { rates, ..*phy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_many_times_longer() {
        for phy in ALL {
            for factor in [2, 16, 128] {
                let spread = spread(phy, factor);
                for (plain, longer) in phy.rates.iter().zip(spread.rates) {
                    let extension = u64::from(plain.extension_ns);
                    let times = u64::from(factor);
                    let wanted = (plain.airtime(1534).nanos() - extension) * times + extension;
                    let found = longer.airtime(1534).nanos();
                    // DSSS rounds the payload up to microseconds, once.
                    assert!(found <= wanted && found + 1_000 * times > wanted, "{found} of {wanted}");
                }
                assert!(core::ptr::eq(spread, super::spread(phy, factor)), "one table");
                assert_eq!(spread.rate_index(11_000_000), phy.rate_index(11_000_000));
            }
            for factor in [0, 1, 3, 256] {
                assert!(core::ptr::eq(super::spread(phy, factor), phy));
            }
        }
    }
}
