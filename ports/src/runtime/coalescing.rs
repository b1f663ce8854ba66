//! Coalescing of wakes, where frames come so densely that being woken for each handful costs more than
//! handling them.
//!
//! As network cards do with their interrupts: while the loop is woken more often than every [`WAIT`]
//! and finds several frames each time, it sleeps on the clock instead of on the ports, so that frames
//! gather. This delays a frame by at most [`WAIT`], and shows in the ingress histogram. A dialogue,
//! however quick, brings one frame a wake and is never delayed. Neither is a stream of super-frames:
//! its sender has gathered them, handling one takes longer than a wake, and a sender that waits for
//! acknowledgments would lose the time.

use airloom_engine::time::Span;

/// How long frames may gather.
const WAIT: Span = Span::from_micros(50);
/// Fewer frames than this in a wake are no stream.
const STREAM: u64 = 4;
/// Frames that have more octets than this on average need no gathering.
const LONG: u64 = 4_096;
/// Weight of the newest wake in the means: one part of this many.
const WEIGHT: u64 = 8;
/// Fixed point of the means.
const ONE: u64 = 1024;

/// What the last wakes were like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coalescing {
    /// Mean frames a wake, in parts of [`ONE`].
    frames: u64,
    /// Mean octets a wake.
    octets: u64,
    /// Mean time from wake to wake, in nanoseconds.
    gap: u64,
}

impl Coalescing {
    /// Learns from a wake: the frames it brought, their octets, and the time since the one before.
    pub fn woke(&mut self, frames: u64, octets: u64, gap: Span) {
        // One long silence says no more than that the stream has ended.
        let gap = gap.nanos().min(20 * WAIT.nanos());
        let learn = |mean: &mut u64, value: u64| *mean = (*mean * (WEIGHT - 1) + value) / WEIGHT;
        learn(&mut self.frames, frames * ONE);
        learn(&mut self.octets, octets);
        learn(&mut self.gap, gap);
    }

    /// How long to let frames gather now; none if they do not come in a stream.
    #[must_use]
    pub fn wait(&self) -> Option<Span> {
        // A wake on the clock comes late, so a moderated stream shows a somewhat longer gap.
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
