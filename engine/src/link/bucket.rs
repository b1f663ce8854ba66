//! Token buckets: a shaper's, behind which frames wait, and a policer's, which drops.
//!
//! A bucket holds up to `burst` octets of tokens, which come at `rate`; a frame takes as many as it has
//! octets. The state is the instant at which the bucket will be full, as an exact fraction: the generic
//! cell rate algorithm (ITU-T I.371, virtual scheduling), which is the same bucket (RFC 2697, section 3).

use crate::time::Instant;

const NANOS: u128 = 1_000_000_000;

/// A bucket, full at first.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// bit/s.
    rate: u128,
    /// Octets.
    burst: u128,
    /// When it is full: nanoseconds times `rate`.
    full: u128,
}

impl Bucket {
    pub fn new(rate: u64, burst_octets: u64) -> Self {
        Self { rate: rate.into(), burst: burst_octets.into(), full: 0 }
    }

    /// When the bucket will have the tokens for `octets`, which are taken then: `now`, or later. A frame
    /// of more octets than the bucket holds waits for the rest, too.
    pub fn take(&mut self, now: Instant, octets: u64) -> Instant {
        let present = u128::from(now.nanos()) * self.rate;
        self.full = self.full.max(present) + u128::from(octets) * 8 * NANOS;
        let at = self.full.saturating_sub(self.depth()).max(present).div_ceil(self.rate);
        Instant::from_nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }

    /// Takes the tokens for `octets` if they are there.
    pub fn conforms(&mut self, now: Instant, octets: u64) -> bool {
        let present = u128::from(now.nanos()) * self.rate;
        let full = self.full.max(present) + u128::from(octets) * 8 * NANOS;
        let conforms = full - present <= self.depth();
        if conforms {
            self.full = full;
        }
        conforms
    }

    fn depth(&self) -> u128 {
        self.burst * 8 * NANOS
    }

    /// bit/s.
    pub fn rate(&self) -> u64 {
        u64::try_from(self.rate).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        // 8 Mbit/s is an octet each microsecond.
        let mut bucket = Bucket::new(8_000_000, 5_000);
        let times: Vec<u64> = (0..8).map(|_| bucket.take(Instant::ZERO, 1_000).nanos()).collect();
        assert_eq!(times, [0, 0, 0, 0, 0, 1_000_000, 2_000_000, 3_000_000]);
        // Full again 5 ms after it was empty, at 3 ms.
        let times: Vec<u64> =
            (0..6).map(|_| bucket.take(Instant::from_nanos(20_000_000), 1_000).nanos()).collect();
        assert_eq!(times, [20_000_000, 20_000_000, 20_000_000, 20_000_000, 20_000_000, 21_000_000]);
    }

    #[test]
    fn a_policer_passes_the_burst_and_the_rate_exactly() {
        let mut bucket = Bucket::new(7_000_000, 10_000);
        // 1000 octets each 100 us are 80 Mbit/s: in 10 s pass 10,000 octets and 8.75 MB.
        let passed = (0..100_000u64)
            .filter(|number| bucket.conforms(Instant::from_nanos(number * 100_000), 1_000))
            .count();
        assert_eq!(passed, 10 + 8_749, "the last tokens come after the last frame");
    }

    #[test]
    fn a_frame_longer_than_the_bucket_waits_for_its_octets() {
        let mut bucket = Bucket::new(8_000_000, 500);
        assert_eq!(bucket.take(Instant::ZERO, 1_500).nanos(), 1_000_000);
        assert!(!bucket.conforms(Instant::from_nanos(900_000_000), 501));
    }
}
