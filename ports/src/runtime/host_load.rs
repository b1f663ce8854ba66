//! Whether the loop is busy: it works for more than half of the time.
//!
//! The share is a mean over the last [`WINDOW`], by which older turns have lost most of their
//! weight. Time in which the loop waits, asleep or spinning, is no work.

use airloom_engine::time::Span;

/// Time constant of the mean, in nanoseconds.
const WINDOW: u64 = 50_000_000;
/// Work in a window above which the loop is busy.
const BUSY: u64 = WINDOW / 2;
/// Work in a window below which it is so no more.
const CALM: u64 = WINDOW * 3 / 8;

/// Mean work of the loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostLoad {
    /// Work in a window, in nanoseconds.
    work: u64,
    busy: bool,
}

impl HostLoad {
    /// Records a turn of the loop: `work` of the time since the previous turn. Returns whether the
    /// loop is busy.
    pub fn turn(&mut self, work: Span, since: Span) -> bool {
        let (work, since) = (work.nanos(), since.nanos());
        self.work = if since < WINDOW {
            self.work - self.work * since / WINDOW + work
        } else {
            work.saturating_mul(WINDOW) / since
        };
        self.busy = self.work > if self.busy { CALM } else { BUSY };
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After turns of 1 ms, in each of which the loop works for so many microseconds.
    fn after(load: &mut HostLoad, turns: u64, work: u64) -> bool {
        (0..turns).fold(false, |_, _| load.turn(Span::from_micros(work), Span::from_millis(1)))
    }

    #[test]
    fn it_is_busy_above_a_half_and_until_it_is_below_three_eighths() {
        let mut load = HostLoad::default();
        assert!(!after(&mut load, 1_000, 450));
        assert!(after(&mut load, 1_000, 550));
        assert!(after(&mut load, 1_000, 450));
        assert!(!after(&mut load, 1_000, 350));
    }

    #[test]
    fn a_burst_of_work_is_not_enough() {
        let mut load = HostLoad::default();
        assert!(!after(&mut load, 10, 1_000));
        assert!(after(&mut load, 40, 1_000));
    }

    #[test]
    fn one_turn_may_be_longer_than_the_window() {
        let mut load = HostLoad::default();
        assert!(load.turn(Span::from_millis(90), Span::from_millis(100)));
        assert!(!load.turn(Span::from_millis(1), Span::from_secs(1)));
    }

    #[test]
    fn short_turns_count_like_long_ones() {
        let mut load = HostLoad::default();
        let micros = Span::from_micros;
        assert!((0..100_000).fold(false, |_, _| load.turn(micros(8), micros(10))));
        assert!(!(0..100_000).fold(true, |_, _| load.turn(micros(2), micros(10))));
    }
}
