//! Histogram of lateness in nanoseconds, with time and port of the worst values.
//!
//! Buckets are log-linear: [`STEPS`] equal steps in each power of two, so that a value
//! read back is at most 1/[`STEPS`] (1.6 %) above the recorded one, from 1 ns to 18
//! minutes. The extremes are exact.

use airloom_engine::time::{Instant, Span};

/// Steps in each power of two.
pub const STEPS: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 6;
/// Values from 2^40 ns (18 minutes) on share the last bucket.
const VALUE_BITS: u32 = 40;
const BUCKETS: usize = ((VALUE_BITS - STEP_BITS + 1) as usize) << STEP_BITS;
/// Number of worst values that are kept.
pub const WORST: usize = 16;

/// One of the worst values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worst {
    /// The lateness.
    pub value: Span,
    /// The time.
    pub at: Instant,
    /// Number of the port.
    pub port: u32,
}

/// A histogram of spans.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    sum: u128,
    /// The worst values, unsorted; `floor` is the smallest of them once the list is full.
    worst: Vec<Worst>,
    floor: Span,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            sum: 0,
            worst: Vec::with_capacity(WORST),
            floor: Span::ZERO,
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // bounded by BUCKETS
fn bucket(nanos: u64) -> usize {
    let nanos = nanos.min((1 << VALUE_BITS) - 1);
    let power = (63 - (nanos | 1).leading_zeros()).saturating_sub(STEP_BITS);
    ((u64::from(power) << STEP_BITS) + (nanos >> power)) as usize
}

/// The largest value of a bucket.
fn top(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let power = (bucket >> STEP_BITS).saturating_sub(1);
    ((bucket - (power << STEP_BITS) + 1) << power) - 1
}

impl Histogram {
    /// Records one value, observed at `at` at a port.
    #[inline]
    pub fn record(&mut self, value: Span, at: Instant, port: u32) {
        self.buckets[bucket(value.nanos())] += 1;
        self.count += 1;
        self.sum += u128::from(value.nanos());
        if self.worst.len() < WORST || value > self.floor {
            self.remember(Worst { value, at, port });
        }
    }

    #[cold]
    fn remember(&mut self, worst: Worst) {
        if self.worst.len() < WORST {
            self.worst.push(worst);
        } else if let Some(least) = self.worst.iter_mut().min_by_key(|worst| worst.value) {
            *least = worst;
        }
        if self.worst.len() == WORST {
            self.floor = self.worst.iter().map(|worst| worst.value).min().unwrap_or_default();
        }
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the values; None without values.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The value that `share` (0 to 1) of all values do not exceed, rounded up to its bucket's
    /// upper bound; None without values.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn quantile(&self, share: f64) -> Option<Span> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                let most = self.max().unwrap_or(Span::MAX);
                return Some(Span::from_nanos(top(index)).min(most));
            }
        }
        None
    }

    /// The largest value, exact; None without values.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        self.worst.iter().map(|worst| worst.value).max()
    }

    /// The worst values, worst first.
    #[must_use]
    pub fn worst(&self) -> Vec<Worst> {
        let mut worst = self.worst.clone();
        worst.sort_by_key(|worst| (std::cmp::Reverse(worst.value), worst.at));
        worst
    }

    /// The buckets that are not empty: largest value in nanoseconds, and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, &n)| (top(i), n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PORT: u32 = 0;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(nanos in 0..(1u64 << VALUE_BITS)) {
            let index = bucket(nanos);
            prop_assert!(index < BUCKETS);
            prop_assert!(nanos <= top(index));
            prop_assert!(top(index) - nanos <= nanos / STEPS);
            prop_assert!(index == 0 || top(index - 1) < nanos);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in proptest::collection::vec(0u64..10_000_000, 1..400),
        ) {
            let mut histogram = Histogram::default();
            for &value in &values {
                histogram.record(Span::from_nanos(value), Instant::ZERO, PORT);
            }
            values.sort_unstable();
            for (share, rank) in [(0.5, values.len().div_ceil(2)), (1.0, values.len())] {
                let exact = values[rank - 1];
                let read = histogram.quantile(share).expect("there are values").nanos();
                prop_assert!(read >= exact && read - exact <= exact / STEPS);
            }
        }
    }

    #[test]
    fn the_worst_moments_are_kept_exactly() {
        let mut histogram = Histogram::default();
        for n in 0..1000u64 {
            let value = Span::from_nanos(n * 7919 % 1000);
            histogram.record(value, Instant::from_nanos(n), PORT);
        }
        let worst = histogram.worst();
        assert_eq!(worst.len(), WORST);
        assert_eq!(worst[0].value.nanos(), 999);
        assert_eq!(worst[WORST - 1].value.nanos(), 984);
        assert!(worst.iter().all(|w| w.at.nanos() * 7919 % 1000 == w.value.nanos()));
        assert_eq!(histogram.max().map(Span::nanos), Some(999));
        assert_eq!(histogram.buckets().map(|(_, n)| n).sum::<u64>(), 1000);
    }

    #[test]
    fn nothing_recorded_has_no_quantile() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        assert_eq!(histogram.max(), None);
        assert_eq!(histogram.mean(), None);
    }

    #[test]
    fn what_is_beyond_the_range_counts_in_the_last_bucket() {
        let mut histogram = Histogram::default();
        histogram.record(Span::MAX, Instant::ZERO, PORT);
        assert_eq!(histogram.max(), Some(Span::MAX));
        assert_eq!(histogram.count(), 1);
    }
}
