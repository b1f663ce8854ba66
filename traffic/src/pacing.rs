//! Statistics of a sender's lateness.

use airloom_engine::time::Span;
use serde::Serialize;

/// Steps in each power of two: the relative error of a value is at most 1/16.
const STEPS: u32 = 16;
const BUCKETS: usize = 64 * STEPS as usize;

/// Histogram of lateness (time of sending minus scheduled time) with buckets that grow with the
/// value: fixed memory, relative error at most 1/16.
pub struct Pacing {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u128,
    max: u64,
}

/// Summary of a [`Pacing`], all values in ns.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct PacingSummary {
    /// Exact mean.
    pub mean_ns: u64,
    /// Median, at most 1/16 too high.
    pub p50_ns: u64,
    /// 99th percentile, at most 1/16 too high.
    pub p99_ns: u64,
    /// Exact maximum.
    pub max_ns: u64,
}

impl Default for Pacing {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), count: 0, sum: 0, max: 0 }
    }
}

impl Pacing {
    /// Adds one lateness.
    pub fn add(&mut self, late: Span) {
        let nanos = late.nanos();
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    /// The summary, if there were packets.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // a mean of u64 fits
    pub fn summary(&self) -> Option<PacingSummary> {
        (self.count > 0).then(|| PacingSummary {
            mean_ns: (self.sum / u128::from(self.count)) as u64,
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: self.max,
        })
    }

    fn quantile(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return highest(index).min(self.max);
            }
        }
        self.max
    }
}

#[allow(clippy::cast_possible_truncation)] // four bits
fn bucket(nanos: u64) -> usize {
    if nanos < u64::from(STEPS) {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let step = (nanos >> (power - 4)) as usize & 15;
    ((power - 3) * STEPS) as usize + step
}

/// The highest value of a bucket.
fn highest(index: usize) -> u64 {
    let (power, step) = (index / STEPS as usize, (index % STEPS as usize) as u64);
    if power == 0 {
        return step;
    }
    let width = 1_u64 << (power - 1);
    (16 + step) * width + (width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_of_a_known_series() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.summary(), None);
        for nanos in 1..=100 {
            pacing.add(Span::from_nanos(nanos));
        }
        let summary = pacing.summary().unwrap();
        assert_eq!((summary.mean_ns, summary.max_ns), (50, 100));
        assert!((50..=53).contains(&summary.p50_ns), "{summary:?}");
        assert!((99..=100).contains(&summary.p99_ns), "{summary:?}");
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_within_a_sixteenth(nanos: u64) {
            let top = highest(bucket(nanos));
            prop_assert!(top >= nanos && top - nanos <= nanos / 16, "{} {}", nanos, top);
        }
    }
}
