//! Quantities with units on the command line, in the same words as a scenario: `10 Mbit/s`, `5 ms`, `1470 B`.
//!
//! A bare number is refused, and so is what is no whole number of base units (bit/s, ns, octets).

use airloom_engine::time::Span;

/// Why a text is no quantity; the sentence names the units that are allowed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QuantityError {
    /// There is no number in front.
    #[error("`{0}` does not begin with a number")]
    Number(String),
    /// The unit is missing or unknown.
    #[error("`{text}` needs one of the units {units}")]
    Unit {
        /// What was given.
        text: String,
        /// What is allowed.
        units: &'static str,
    },
    /// It is not a whole number of base units, or too large.
    #[error("`{text}` is not a whole number of {base} below 2^63")]
    Range {
        /// What was given.
        text: String,
        /// The base unit.
        base: &'static str,
    },
}

/// A kind of quantity: its units as multiples of the base unit.
struct Kind {
    base: &'static str,
    words: &'static str,
    units: &'static [(&'static str, u64)],
}

const RATE: Kind = Kind {
    base: "bit/s",
    words: "bit/s, kbit/s, Mbit/s, Gbit/s",
    units: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
};
const SPAN: Kind = Kind {
    base: "ns",
    words: "ns, us, ms, s, min, h",
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
    words: "B, kB, MB, KiB, MiB",
    units: &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("KiB", 1 << 10), ("MiB", 1 << 20)],
};

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
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || decimals.contains('.') {
        return Err(QuantityError::Number(text.to_owned()));
    }
    let Some(&(_, scale)) = kind.units.iter().find(|(word, _)| *word == unit) else {
        return Err(QuantityError::Unit { text: text.to_owned(), units: kind.words });
    };
    exact(whole, decimals.trim_end_matches('0'), scale)
        .ok_or_else(|| QuantityError::Range { text: text.to_owned(), base: kind.base })
}

/// `whole.decimals * scale` as an integer, if it is one.
fn exact(whole: &str, decimals: &str, scale: u64) -> Option<u64> {
    let digits: u128 = format!("{whole}{decimals}").parse().ok()?;
    let divisor = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let product = digits.checked_mul(u128::from(scale))?;
    let value = u64::try_from(product / divisor).ok()?;
    (product % divisor == 0 && value < 1 << 63).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_decimal_numbers_are_exact() {
        assert_eq!(rate("10 Mbit/s"), Ok(10_000_000));
        assert_eq!(rate("2.5kbit/s"), Ok(2_500));
        assert_eq!(span("0.000000001 s"), Ok(Span::from_nanos(1)));
        assert_eq!(span("1.50 ms"), Ok(Span::from_micros(1_500)));
        assert_eq!(size("1470B"), Ok(1470));
        assert_eq!(size("8 MiB"), Ok(8 << 20));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in ["", " ", "B", "-1 B", "1", "1 b", "1.2.3 B", "1e3 B", "0.5 B", "9223372036854775808 B"] {
            assert!(size(text).is_err(), "{text}");
        }
        let long = format!("1.{} s", "0".repeat(60) + "1");
        assert!(matches!(span(&long), Err(QuantityError::Range { .. })));
    }
}
