//! Packet schedules: patterns as iterators of (time after the start, payload size).
//!
//! Times are computed from the packet's number or summed in exact integers, so that
//! errors do not accumulate.

use std::io::BufRead;

use airloom_engine::random::Stream;
use airloom_engine::time::Span;

/// Time and size of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Time after the start of the flow.
    pub at: Span,
    /// Payload in octets.
    pub size: u32,
}

/// The mean gap between packets, as an exact fraction of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    nanos: u128,
    per: u128,
}

impl Gap {
    /// A fixed interval.
    #[must_use]
    pub fn every(interval: Span) -> Self {
        Self { nanos: u128::from(interval.nanos()), per: 1 }
    }

    /// The gap at which packets of `octets` make `rate` bit/s: `octets * 8 * 10^9 / rate` ns.
    #[must_use]
    pub fn at_rate(octets: u64, rate: u64) -> Self {
        Self { nanos: u128::from(octets) * 8_000_000_000, per: u128::from(rate.max(1)) }
    }

    /// `n` gaps, rounded down to a nanosecond.
    #[allow(clippy::cast_possible_truncation)] // saturated before
    fn times(self, n: u64) -> Span {
        Span::from_nanos((self.nanos * u128::from(n) / self.per).min(u128::from(u64::MAX / 2)) as u64)
    }

    /// The gap as a float, for random patterns; ns.
    #[allow(clippy::cast_precision_loss)] // a mean needs no more than 53 bits
    fn mean(self) -> f64 {
        self.nanos as f64 / self.per as f64
    }
}

/// Distribution of the on and off periods of an on/off source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Periods {
    /// Constant lengths.
    Fixed,
    /// Exponential with the given means: an interrupted process as in voice models.
    Exponential,
}

/// A pattern, before its first packet.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Without pacing: as fast as the socket accepts packets.
    Flood,
    /// One packet per gap: number `k` at `k * gap`.
    Constant(Gap),
    /// Independent exponential gaps with this mean (a Poisson process); the first after one gap.
    Poisson(Gap),
    /// Constant while on, no packets while off; begins with an on period.
    OnOff {
        /// Between packets while on.
        gap: Gap,
        /// Mean length of an on period.
        on: Span,
        /// Mean length of an off period.
        off: Span,
        /// Fixed or random lengths.
        periods: Periods,
    },
    /// Times and sizes from a file.
    Trace(Vec<Due>),
}

impl Pattern {
    /// The packets of the pattern, in order.
    #[must_use]
    pub fn schedule(self, size: u32, seed: u64) -> Schedule {
        let stream = Stream::named(seed, "traffic pattern");
        let mut schedule =
            Schedule { pattern: self, size, stream, n: 0, clock: Span::ZERO, ends: Span::ZERO };
        schedule.open_period();
        schedule
    }
}

/// Iterator over the packets of a [`Pattern`].
#[derive(Clone, Debug)]
pub struct Schedule {
    pattern: Pattern,
    size: u32,
    stream: Stream,
    /// Packets so far; for on/off those of the current period.
    n: u64,
    /// Poisson: time of the latest packet. On/off: start of the current period.
    clock: Span,
    /// On/off: end of the current on period.
    ends: Span,
}

impl Schedule {
    /// Draws the length of an on period that begins at `clock`.
    fn open_period(&mut self) {
        if let Pattern::OnOff { on, periods, .. } = self.pattern {
            self.ends = self.clock + period(on, periods, &mut self.stream);
            self.n = 0;
        }
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let at = match self.pattern {
            Pattern::Flood => Span::ZERO,
            Pattern::Constant(gap) => {
                self.n += 1;
                gap.times(self.n - 1)
            }
            Pattern::Poisson(gap) => {
                self.clock += rounded(self.stream.exponential() * gap.mean());
                self.clock
            }
            Pattern::OnOff { gap, off, periods, .. } => {
                let mut at = self.clock + gap.times(self.n);
                // A random on period may be too short for any packet; the guard prevents an endless
                // loop if the mean length is zero.
                let mut empty = 0;
                while at >= self.ends {
                    self.clock = self.ends + period(off, periods, &mut self.stream);
                    self.open_period();
                    at = self.clock;
                    empty += 1;
                    if empty > 1_000_000 {
                        return None;
                    }
                }
                self.n += 1;
                at
            }
            Pattern::Trace(ref dues) => {
                self.n += 1;
                return dues.get(usize::try_from(self.n - 1).ok()?).copied();
            }
        };
        Some(Due { at, size: self.size })
    }
}

fn period(mean: Span, periods: Periods, stream: &mut Stream) -> Span {
    match periods {
        Periods::Fixed => mean,
        #[allow(clippy::cast_precision_loss)] // a mean needs no more than 53 bits
        Periods::Exponential => rounded(stream.exponential() * mean.nanos() as f64),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // float to integer saturates; never negative
fn rounded(nanos: f64) -> Span {
    Span::from_nanos((nanos.round() as u64).min(u64::MAX / 4))
}

/// Error in a trace; lines count from 1.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error("line {line}: {cause}")]
    Unreadable {
        /// The line.
        line: usize,
        /// Why.
        cause: std::io::Error,
    },
    /// A line is not `time_ns size`.
    #[error(
        "line {line}: `{text}` is not `time_ns size`: two whole numbers, the size from {least} to {most} octets"
    )]
    Shape {
        /// The line.
        line: usize,
        /// Its content.
        text: String,
        /// Smallest payload.
        least: u32,
        /// Largest payload.
        most: u32,
    },
    /// Times decrease.
    #[error("line {line}: its time is before that of the line above")]
    Order {
        /// The line.
        line: usize,
    },
    /// It contains no packet.
    #[error("no packets in it")]
    Empty,
}

/// Reads a trace: one packet per line as `time_ns size`, with non-decreasing times after the start
/// of the flow; empty lines and lines that begin with `#` are ignored.
pub fn trace(reader: impl BufRead, least: u32, most: u32) -> Result<Vec<Due>, TraceError> {
    let mut dues: Vec<Due> = Vec::new();
    for (index, text) in reader.lines().enumerate() {
        let line = index + 1;
        let text = text.map_err(|cause| TraceError::Unreadable { line, cause })?;
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let due = packet(text)
            .filter(|due| (least..=most).contains(&due.size))
            .ok_or_else(|| TraceError::Shape { line, text: text.chars().take(60).collect(), least, most })?;
        if dues.last().is_some_and(|last| due.at < last.at) {
            return Err(TraceError::Order { line });
        }
        dues.push(due);
    }
    if dues.is_empty() { Err(TraceError::Empty) } else { Ok(dues) }
}

fn packet(text: &str) -> Option<Due> {
    let mut words = text.split_ascii_whitespace();
    let nanos: u64 = words.next()?.parse().ok()?;
    let size: u32 = words.next()?.parse().ok()?;
    (words.next().is_none() && nanos < u64::MAX / 4).then_some(Due { at: Span::from_nanos(nanos), size })
}

#[cfg(test)]
mod tests;
