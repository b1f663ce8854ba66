//! What a wire does when the host is late: it makes up for it slowly, or loses the time.
//!
//! On the wall clock frames can be handed over later than the model says. Handing over at once
//! all that became due meanwhile would be a burst faster than the wire. So after a late frame the
//! next one leaves almost one transmission time behind it, one part in [`GAIN`] sooner. Lateness of
//! up to [`MADE_UP`] is made up for in that way; for what is beyond, the wire pauses, and what
//! waits is sent that much later. No window of 10 ms of real time ever gets more than 1 % above the
//! rate (0.3 % of it [`GAIN`], 0.7 % [`SLACK`]) and one frame; the time lost is counted, for the
//! verdict to judge.
//!
//! Only what is late is restrained. Frames that are on time may be as close to each other as the
//! model (jitter, say) has them, and a clock that jumps knows no lateness at all.

use crate::time::{Instant, Span};

/// Lateness that counts as none: what a machine takes to wake up. 0.7 % of 10 ms.
pub(crate) const SLACK: Span = Span::from_micros(70);

/// Lateness that is made up for, within a third of a second; what is more is lost. Lost time is a
/// lower mean rate, made-up time is frames that are late: what a run may have of the latter is
/// 1 ms by default.
pub(crate) const MADE_UP: Span = Span::from_millis(1);
/// Late frames follow each other by this part of a transmission sooner.
const GAIN: u64 = 333;

/// The restraint on one wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Restraint {
    /// A late frame is handed over from here on.
    open: Instant,
    /// How far behind a frame the next one may follow.
    step: Span,
    /// Lateness for which the wire has paused already.
    settled: Span,
}

impl Restraint {
    /// Until when a frame that was due at `due` has to wait; none if it may be handed over at `wall`.
    pub fn hold(&self, wall: Instant, due: Instant) -> Option<Instant> {
        let late = wall.since(due) > SLACK;
        let open = self.open - SLACK;
        (late && wall < open).then_some(open)
    }

    /// A frame that was due at `due` and takes `length` on the wire is handed over at `wall`.
    /// Returns how much longer the wire has to pause.
    pub fn passed(&mut self, wall: Instant, due: Instant, length: Span) -> Span {
        let late = wall.since(due);
        let before = self.settled;
        if late > SLACK {
            self.step = length.saturating_sub(Span::from_nanos(length.nanos() / GAIN));
            self.open = self.open.max(wall) + self.step;
            self.settled = late.saturating_sub(MADE_UP);
        } else {
            self.step = length;
            self.open = wall + length;
            self.settled = Span::ZERO;
        }
        self.settled.saturating_sub(before)
    }

    /// The frame has been handed over at `wall`: later than it seemed if the machine stood still
    /// in between.
    pub fn done(&mut self, wall: Instant) {
        self.open = self.open.max(wall + self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Span = Span::from_micros(100);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    #[test]
    fn frames_on_time_are_never_held() {
        let mut restraint = Restraint::default();
        for micros in [0, 1, 2, 30] {
            assert_eq!(restraint.hold(at(micros + 40), at(micros)), None, "as close as they like");
            assert_eq!(restraint.passed(at(micros + 40), at(micros), LENGTH), Span::ZERO);
        }
    }

    #[test]
    fn after_a_stall_frames_keep_their_distance_and_the_wire_pauses_once() {
        let mut restraint = Restraint::default();
        assert_eq!(restraint.passed(at(6_000), at(0), LENGTH), Span::from_micros(5_000));
        let mut wall = at(6_000);
        for frame in 1..20 {
            let due = at(frame * 100);
            while let Some(open) = restraint.hold(wall, due) {
                assert!(open > wall);
                wall = open;
            }
            let pause = restraint.passed(wall, due, LENGTH);
            let made_up = Span::from_nanos(frame * LENGTH.nanos() / GAIN);
            assert!(wall >= at(6_000 + frame * 100) - SLACK - made_up, "frame {frame} at {wall}");
            assert_eq!(pause, Span::ZERO, "frame {frame}");
        }
    }
}
