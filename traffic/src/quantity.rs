//! Quantities with units on the command line, written as in a scenario: `10
//! Mbit/s`, `5 ms`, `1470 B`.
//!
//! A number without a unit is refused, and so is a value that is not a whole number of base units
//! (bit/s, ns, octets). Grammar and units are those of `python/airloom/units`;
//! `tests/data/units.csv` tests both implementations with the same values.

use airloom_engine::time::Span;

/// Error in a quantity; the message lists the permitted units.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QuantityError {
    /// It does not begin with a number.
    #[error("`{0}` does not begin with a number")]
    Number(String),
    /// The number is negative.
    #[error("`{0}` is below zero")]
    Negative(String),
    /// The unit is missing or unknown.
    #[error("`{text}` needs one of the units {units}")]
    Unit {
        /// The given text.
        text: String,
        /// The permitted units.
        units: String,
    },
    /// It is not a whole number of base units, or too large.
    #[error("`{text}` is not a whole number of {base} below 2^63")]
    Range {
        /// The given text.
        text: String,
        /// The base unit.
        base: &'static str,
    },
}

/// A kind of quantity: its units as multiples of the base unit.
struct Kind {
    base: &'static str,
    units: &'static [(&'static str, u64)],
}

const RATE: Kind = Kind {
    base: "bit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
};
const SPAN: Kind = Kind {
    base: "ns",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
};
const SIZE: Kind = Kind {
    base: "octets",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
};
/// Maximum length of a quantity in characters.
const LONGEST: usize = 64;

/// A rate in bit/s.
pub fn rate(text: &str) -> Result<u64, QuantityError> {
    parse(text, &RATE)
}

/// A duration.
pub fn span(text: &str) -> Result<Span, QuantityError> {
    parse(text, &SPAN).map(Span::from_nanos)
}

/// A number of octets.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    parse(text, &SIZE)
}

fn parse(text: &str, kind: &Kind) -> Result<u64, QuantityError> {
    let number = || QuantityError::Number(text.to_owned());
    if text.chars().count() > LONGEST {
        return Err(number());
    }
    let (decimal, unit) = Decimal::split(text.trim_ascii()).ok_or_else(number)?;
    let Some(&(_, scale)) = kind.units.iter().find(|(word, _)| *word == unit) else {
        let units = kind.units.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        return Err(QuantityError::Unit { text: text.to_owned(), units });
    };
    if decimal.negative && !decimal.digits.is_empty() {
        return Err(QuantityError::Negative(text.to_owned()));
    }
    decimal.times(scale).ok_or_else(|| QuantityError::Range { text: text.to_owned(), base: kind.base })
}

/// A decimal number: `digits * 10^exponent`, without zeros at either end of the digits.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Decimal {
    /// Splits a text into its leading number and the rest without spaces.
    fn split(text: &str) -> Option<(Self, &str)> {
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = leading_digits(rest);
        let (decimals, rest) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
        if whole.is_empty() && decimals.is_empty() {
            return None;
        }
        let (power, rest) = power(rest);
        let digits = format!("{whole}{decimals}");
        let short = digits.trim_end_matches('0');
        let zeros = i32::try_from(digits.len() - short.len()).ok()?;
        let exponent = power - i32::try_from(decimals.len()).ok()? + zeros;
        let digits = short.trim_start_matches('0').to_owned();
        Some((Self { negative, digits, exponent }, rest.trim_ascii_start()))
    }

    /// The number of base units, if it is an integer below 2^63.
    fn times(&self, scale: u64) -> Option<u64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let digits: u128 = self.digits.parse().ok()?;
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs())?;
        let scale = u128::from(scale);
        let value = if self.exponent >= 0 {
            digits.checked_mul(power)?.checked_mul(scale)?
        } else {
            let common = greatest_common_divisor(power, scale);
            let divisor = power / common;
            (digits % divisor == 0).then_some(digits / divisor)?.checked_mul(scale / common)?
        };
        u64::try_from(value).ok().filter(|value| *value < 1 << 63)
    }
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Splits off the power of ten after a number, `e3` with one or two digits.
fn power(text: &str) -> (i32, &str) {
    let read = || {
        let rest = text.strip_prefix(['e', 'E'])?;
        let (digits, after) = leading_digits(rest.strip_prefix(['+', '-']).unwrap_or(rest));
        let value: i32 = digits.parse().ok().filter(|_| digits.len() <= 2)?;
        Some((if rest.starts_with('-') { -value } else { value }, after))
    };
    read().unwrap_or((0, text))
}

fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, text, and the number of base units or an empty field; the Python
    /// tests read the same file.
    const VECTORS: &str = include_str!("../../tests/data/units.csv");

    #[test]
    fn the_words_are_those_of_a_scenario() {
        let mut read = 0;
        for line in VECTORS.lines().skip(1) {
            let fields: Vec<_> = line.split(',').collect();
            let [kind, text, expected] = fields[..] else { panic!("{line}") };
            let found = match kind {
                "rate" => rate(text),
                "duration" => span(text).map(Span::nanos),
                "size" => size(text),
                _ => panic!("{line}"),
            };
            assert_eq!(found.ok(), expected.parse().ok(), "{line}");
            read += 1;
        }
        assert!(read > 60, "{read}");
    }

    #[test]
    fn a_refusal_says_why() {
        assert!(matches!(size("B"), Err(QuantityError::Number(_))));
        assert!(matches!(size("-1 B"), Err(QuantityError::Negative(_))));
        assert!(matches!(size("0.5 B"), Err(QuantityError::Range { .. })));
        let units = size("1").expect_err("no unit").to_string();
        assert_eq!(units, "`1` needs one of the units B, kB, MB, GB, KiB, MiB, GiB");
    }
}
