//! What a wire does when the host is late: it makes up for it slowly, or loses the time.
//!
//! On the wall clock frames can be handed over later than the model says. Handing over at once
//! all that became due meanwhile would be a burst faster than the wire. So a late frame follows the
//! one before it almost as far behind as its octets take, or as the model has it if that is closer.
//! How much closer is the wire's [`Late`]:
//!
//! * `CatchUp`: lateness up to 70 us counts as none, and beyond that the gain is one part in 333. No
//!   window of 10 ms of real time ever gets more than 1 % above the rate (0.3 % of gain, 0.7 % of
//!   slack) and one frame.
//! * `Slip`: no slack, and the gain is what the wire can spare of each frame's overhead. The octets
//!   of the frames themselves are never faster than the rate, in no window at all.
//!
//! Lateness of up to 1 ms, or 0.3 ms where it slips, is made up for in that way; for what is beyond, the
//! wire pauses, and what waits is sent that much later. The time lost is counted, for the verdict to judge. A clock that
//! jumps knows no lateness at all.

use crate::settings::Late;
use crate::time::{Instant, Span};

/// With `CatchUp`, lateness that counts as none: what a machine takes to wake up. 0.7 % of 10 ms.
const SLACK: Span = Span::from_micros(70);
/// With `CatchUp`, late frames follow each other by this part of a transmission sooner.
const GAIN: u64 = 333;
/// Lateness that is made up for; what is more is lost. Lost time is a lower mean rate, made-up
/// time is frames that are late: what a run may have of the latter is 1 ms by default. What slips
/// makes up for it slowly, and should be well within that meanwhile.
const MADE_UP: (Span, Span) = (Span::from_millis(1), Span::from_micros(300));
/// With `Slip`, how long a hand-over may take before the machine must have stood still in it.
const HAND_OVER: Span = Span::from_micros(20);

/// How long a frame takes on its wire, and what part of that is spare: gap, not octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub all: Span,
    pub spare: Span,
}

/// The restraint on one wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restraint {
    late: Late,
    /// From where the distance to the next frame counts: when the last one was handed over, or
    /// was to be if it went a slack sooner.
    last: Instant,
    /// When the last one was due.
    due: Instant,
    /// Lateness for which the wire has paused already.
    settled: Span,
}

impl Restraint {
    pub fn new(late: Late) -> Self {
        Self { late, last: Instant::ZERO, due: Instant::ZERO, settled: Span::ZERO }
    }

    pub fn change(&mut self, late: Late) {
        self.late = late;
    }

    /// Until when a frame that was due at `due` has to wait; none if it may be handed over at `wall`.
    pub fn hold(&self, wall: Instant, due: Instant, length: Length) -> Option<Instant> {
        let late = self.minds(wall.since(due));
        let open = self.open(due, length) - self.slack();
        (late && wall < open).then_some(open)
    }

    /// A frame that was due at `due` is handed over at `wall`. Returns how much longer the wire has
    /// to pause.
    pub fn passed(&mut self, wall: Instant, due: Instant, length: Length) -> Span {
        let late = wall.since(due);
        let before = self.settled;
        if self.minds(late) {
            self.last = wall.max(self.open(due, length));
            self.settled = late.saturating_sub(self.made_up());
        } else {
            self.last = wall;
            self.settled = Span::ZERO;
        }
        self.due = due;
        self.settled.saturating_sub(before)
    }

    /// The frame has been handed over at `wall`: later than it seemed if the machine stood still
    /// in between.
    pub fn done(&mut self, wall: Instant) {
        let allowed = match self.late {
            Late::CatchUp => Span::ZERO,
            Late::Slip => HAND_OVER,
        };
        self.last = self.last.max(wall - allowed);
    }

    /// From when on a late frame that was due at `due` is not faster than the wire.
    fn open(&self, due: Instant, length: Length) -> Instant {
        let gain = match self.late {
            Late::CatchUp => Span::from_nanos(length.all.nanos() / GAIN),
            Late::Slip => length.spare,
        };
        self.last + length.all.min(due.since(self.due)).saturating_sub(gain)
    }

    /// Whether a frame that is so late has to keep its distance. What slips always has: the frame
    /// before it may have been late.
    fn minds(&self, late: Span) -> bool {
        self.late == Late::Slip || late > SLACK
    }

    fn made_up(&self) -> Span {
        match self.late {
            Late::CatchUp => MADE_UP.0,
            Late::Slip => MADE_UP.1,
        }
    }

    fn slack(&self) -> Span {
        match self.late {
            Late::CatchUp => SLACK,
            Late::Slip => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Length = Length { all: Span::from_micros(100), spare: Span::from_nanos(500) };

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// Hands over a frame that is due, as soon after `wall` as the restraint lets it.
    fn hand_over(restraint: &mut Restraint, mut wall: Instant, due: Instant) -> (Instant, Span) {
        while let Some(open) = restraint.hold(wall, due, LENGTH) {
            assert!(open > wall);
            wall = open;
        }
        (wall, restraint.passed(wall, due, LENGTH))
    }

    #[test]
    fn frames_on_time_are_never_held() {
        let mut restraint = Restraint::new(Late::CatchUp);
        for micros in [0, 1, 2, 30] {
            let (wall, pause) = hand_over(&mut restraint, at(micros + 40), at(micros));
            assert_eq!((wall, pause), (at(micros + 40), Span::ZERO), "as close as they like");
        }
    }

    #[test]
    fn after_a_stall_frames_keep_their_distance_and_the_wire_pauses_once() {
        let mut restraint = Restraint::new(Late::CatchUp);
        assert_eq!(restraint.passed(at(6_000), at(0), LENGTH), Span::from_micros(5_000));
        let mut wall = at(6_000);
        for frame in 1..20 {
            let pause;
            (wall, pause) = hand_over(&mut restraint, wall, at(frame * 100));
            let made_up = Span::from_nanos(frame * LENGTH.all.nanos() / GAIN);
            assert!(wall >= at(6_000 + frame * 100) - SLACK - made_up, "frame {frame} at {wall}");
            assert_eq!(pause, Span::ZERO, "frame {frame}");
        }
    }

    #[test]
    fn what_slips_is_never_faster_than_its_octets_and_is_made_up_for_in_the_gaps() {
        let mut restraint = Restraint::new(Late::Slip);
        let mut last = at(0);
        for frame in 1..1_000u64 {
            // Every tenth frame the machine wakes 40 us late.
            let late = if frame % 10 == 0 { 40 } else { 0 };
            let (wall, pause) = hand_over(&mut restraint, last.max(at(frame * 100 + late)), at(frame * 100));
            assert!(wall.since(last) >= LENGTH.all.saturating_sub(LENGTH.spare), "frame {frame}");
            assert_eq!(pause, Span::ZERO, "frame {frame}");
            assert!(wall <= at(frame * 100 + 40), "frame {frame}: it does not add up");
            last = wall;
        }
    }

    #[test]
    fn what_the_model_has_closer_than_the_wire_may_stay_so() {
        let mut restraint = Restraint::new(Late::Slip);
        hand_over(&mut restraint, at(210), at(200));
        let (wall, _) = hand_over(&mut restraint, at(230), at(230));
        assert_eq!(
            wall.nanos(),
            239_500,
            "as far behind as the jitter of the model has it, 10 us late, less the gap"
        );
        let (wall, _) = hand_over(&mut restraint, wall, at(235));
        assert_eq!(wall.nanos(), 244_000);
    }
}
