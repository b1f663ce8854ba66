//! Coalescing of wake-ups, for traffic so dense that a wake-up for every few frames costs
//! more than their processing.
//!
//! It works like interrupt coalescing of network cards: while the loop wakes more often than
//! every [`WAIT`] and finds several frames each time, it sleeps on the clock instead of on the
//! ports, so that frames accumulate. This delays a frame by at most [`WAIT`], and appears in the
//! ingress histogram. A request-response exchange, however fast, causes one frame per wake-up and
//! is never delayed. Streams of super-frames are not delayed either: their sender has already
//! batched them, processing one takes longer than a wake-up, and a sender that waits for
//! acknowledgments would lose the time.

use airloom_engine::time::Span;

/// Maximum time for which frames accumulate.
const WAIT: Span = Span::from_micros(50);
/// Minimum number of frames per wake-up that counts as a stream.
const STREAM: u64 = 4;
/// Frames that are longer than this on average, in octets, are not coalesced.
const LONG: u64 = 4_096;
/// Weight of the newest wake-up in the means: 1/WEIGHT.
const WEIGHT: u64 = 8;
/// Fixed point of the means.
const ONE: u64 = 1024;

/// Statistics of the last wake-ups.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coalescing {
    /// Mean number of frames per wake-up, in units of 1/[`ONE`].
    frames: u64,
    /// Mean number of octets per wake-up.
    octets: u64,
    /// Mean time between wake-ups, in nanoseconds.
    gap: u64,
}

impl Coalescing {
    /// Records a wake-up: its frames, their octets, and the time since the previous one.
    pub fn woke(&mut self, frames: u64, octets: u64, gap: Span) {
        // A long pause shows only that the stream has ended.
        let gap = gap.nanos().min(20 * WAIT.nanos());
        let learn = |mean: &mut u64, value: u64| *mean = (*mean * (WEIGHT - 1) + value) / WEIGHT;
        learn(&mut self.frames, frames * ONE);
        learn(&mut self.octets, octets);
        learn(&mut self.gap, gap);
    }

    /// How long to let frames accumulate now; None if there is no stream.
    #[must_use]
    pub fn wait(&self) -> Option<Span> {
        // A wake-up by the clock is late, so a coalesced stream shows a somewhat longer gap.
        let stream = self.frames >= STREAM * ONE && self.gap < 4 * WAIT.nanos();
        (stream && self.octets * ONE <= LONG * self.frames).then_some(WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OCTETS: u64 = 1_514;

    fn after(wakes: u32, frames: u64, octets: u64, gap: Span) -> Option<Span> {
        let mut coalescing = Coalescing::default();
        for _ in 0..wakes {
            coalescing.woke(frames, frames * octets, gap);
        }
        coalescing.wait()
    }

    #[test]
    fn a_stream_gathers_and_a_dialogue_does_not() {
        assert_eq!(after(50, 8, OCTETS, Span::from_micros(20)), Some(WAIT));
        assert_eq!(after(50, 1, OCTETS, Span::from_micros(20)), None);
        assert_eq!(after(50, 8, OCTETS, Span::from_millis(1)), None, "bursts of a slow source");
        assert_eq!(after(50, 8, 65_226, Span::from_micros(100)), None, "super-frames");
    }

    #[test]
    fn it_ends_with_the_stream() {
        let mut coalescing = Coalescing::default();
        for _ in 0..50 {
            coalescing.woke(20, 20 * OCTETS, Span::from_micros(60));
        }
        assert!(coalescing.wait().is_some());
        for _ in 0..16 {
            coalescing.woke(1, OCTETS, WAIT);
        }
        assert_eq!(coalescing.wait(), None);
    }
}
