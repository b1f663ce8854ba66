//! How long packets may accumulate in the socket before they are read together.
//!
//! The kernel stamps every packet on arrival, so a later read loses no information; but a
//! receiver that wakes up for each packet takes CPU time from the measured system. While packets
//! arrive, the receiver therefore sleeps on the clock instead of on its socket: for the time that
//! [`ENOUGH`] of them need at the last observed rate, limited so that arriving packets cannot
//! fill the socket's buffer.

use airloom_engine::time::{Instant, Span};

use crate::net::batch::RECEIVE;

/// Longest pause.
const LONGEST: Span = Span::from_millis(50);
/// Number of packets worth one wake-up: those of one system call. A larger number would occupy a
/// processor long enough to delay a sender that shares it.
const ENOUGH: u64 = RECEIVE as u64;
/// Fewer packets than this in the longest pause are not a stream: the receiver waits for each.
const FEW: u64 = 2;
/// Octets of buffer that the fastest sender fills per millisecond; the kernel counts whole buffers,
/// for a packet of 1470 octets 2304.
const FASTEST: u64 = 1_000_000;
/// A faster stream keeps its receiver busy anyway: no pause.
const SHORTEST: Span = Span::from_millis(5);

/// Computes the pauses of one receiver.
pub(super) struct Gathering {
    longest: Span,
    emptied: Instant,
    taken: u64,
}

impl Gathering {
    /// For a socket with `buffer` octets of buffer that is first read at `now`; no pause exceeds
    /// `most`.
    pub(super) fn new(buffer: u32, most: Span, now: Instant) -> Self {
        let filled = Span::from_nanos(u64::from(buffer) * 1_000_000 / FASTEST);
        Self { longest: LONGEST.min(filled).min(most), emptied: now, taken: 0 }
    }

    /// Records the number of packets read.
    pub(super) fn took(&mut self, packets: usize) {
        self.taken += packets as u64;
    }

    /// The socket is empty at `now`: how long to let packets accumulate, if they form a stream.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Span> {
        let (taken, since) = (std::mem::take(&mut self.taken), now.since(self.emptied));
        self.emptied = now;
        let expected = |span: Span| u128::from(taken) * u128::from(span.nanos());
        if expected(self.longest) < u128::from(FEW) * u128::from(since.nanos()) {
            return None;
        }
        let enough = Span::from_nanos(since.nanos().saturating_mul(ENOUGH) / taken.max(1));
        Some(enough.min(self.longest)).filter(|pause| taken > 0 && *pause >= SHORTEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: u32 = 64 << 20;

    /// The pause for a socket that returned `taken` packets after `since`.
    fn pause(buffer: u32, taken: usize, since: Span) -> Option<Span> {
        let begun = Instant::from_nanos(7);
        let mut gathering = Gathering::new(buffer, Span::from_secs(1), begun);
        gathering.took(taken);
        gathering.pause(begun + since)
    }

    #[test]
    fn a_stream_gathers_and_a_dialogue_does_not() {
        assert_eq!(pause(BUFFER, 1, Span::from_micros(11_760)), Some(LONGEST));
        assert_eq!(pause(BUFFER, 1, Span::from_millis(30)), None);
        assert_eq!(pause(BUFFER, 0, Span::from_millis(50)), None, "silence");
        assert_eq!(pause(BUFFER, 1, Span::ZERO), None, "no rate to know from one moment");
    }

    #[test]
    fn a_fast_stream_gathers_as_much_as_one_read_takes() {
        assert_eq!(pause(BUFFER, 10, Span::from_millis(1)), Some(Span::from_nanos(6_400_000)));
        assert_eq!(pause(BUFFER, 20, Span::from_millis(1)), None, "too fast to be worth it");
    }

    #[test]
    fn a_small_buffer_is_never_left_alone_for_long() {
        assert_eq!(pause(5_000_000, 1, Span::from_millis(1)), Some(Span::from_millis(5)));
        assert_eq!(pause(425_984, 1, Span::from_millis(1)), None, "what users get without root");
    }

    #[test]
    fn each_pause_follows_from_what_the_last_one_brought() {
        let mut now = Instant::from_nanos(7);
        let mut gathering = Gathering::new(BUFFER, Span::from_secs(1), now);
        for (taken, after, wanted) in [
            (64, 5, None),
            (16, 5, Some(8)),
            (32, 8, Some(16)),
            (0, 16, None),
            (1, 900, None),
            (1, 2, Some(50)),
        ] {
            now += Span::from_millis(after);
            gathering.took(taken);
            if wanted.is_some() || taken < 64 {
                assert_eq!(gathering.pause(now), wanted.map(Span::from_millis), "{taken} after {after} ms");
            }
        }
    }
}
