//! What a wire does when the host is late: it makes up for it slowly, or loses the time.
//!
//! On the wall clock frames can be handed over later than the model says. Handing over at once
//! all that became due meanwhile would be a burst faster than the wire. So a frame follows the
//! one before it almost as far behind as its octets take, or as the model has it if that is closer.
//! How much closer is the wire's [`Late`]:
//!
//! * `CatchUp`: one part in [`GAIN`], and at any moment up to [`SLACK`] in all. That is the generic cell
//!   rate algorithm (ITU-T I.371, annex A) with increment and limit of that size: no window of 10 ms of
//!   real time ever gets more than 1 % above the rate and one frame.
//! * `Slip`: no slack, and the gain is what the wire can spare of each frame's overhead. The octets
//!   of the frames themselves are never faster than the rate, in no window at all.
//!
//! Lateness of up to 1 ms, or 0.3 ms where it slips, is made up for in that way; for what is beyond, the
//! wire pauses, and what waits is sent that much later. The time lost is counted, for the verdict to judge. A clock that
//! jumps knows no lateness at all.
//!
//! A hand-over itself takes time, and the node may have the frame at any moment of it. With `CatchUp`
//! the distance to the next frame counts from its end. Where it slips that would be lost from every
//! frame, so what a hand-over usually takes is learned and left out: only one that was held up counts from
//! its end.

use crate::settings::Late;
use crate::time::{Instant, Span};

/// With `CatchUp`, how much sooner frames may come in all. Wakes are rarely later than that; and with
/// [`GAIN`] it leaves 0.15 % of 10 ms for what stamps are off.
const SLACK: Span = Span::from_micros(60);
/// With `CatchUp`, frames may follow each other by this part of a transmission sooner.
const GAIN: u64 = 400;
/// Lateness that is made up for; what is more is lost. Lost time is a lower mean rate, made-up
/// time is frames that are late: what a run may have of the latter is 1 ms by default. What slips
/// makes up for it slowly, and should be well within that meanwhile.
const MADE_UP: (Span, Span) = (Span::from_millis(1), Span::from_micros(300));
/// With `Slip`, by how much the usual length of a hand-over is corrected: up by one step when one took
/// longer, down by three when one did not. So a quarter of them take less.
const STEP: Span = Span::from_nanos(20);

/// How long a frame takes on its wire, and what part of that is spare: gap, not octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub all: Span,
    pub spare: Span,
}

/// The restraint on one wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    late: Late,
    /// From where the distance to the next frame counts: when the last one was handed over, or
    /// was to be if it went a slack sooner.
    last: Instant,
    /// When the last one was due.
    due: Instant,
    /// Lateness for which the wire has paused already.
    settled: Span,
    /// When the last hand-over began.
    begun: Instant,
    /// What one usually takes.
    usual: Span,
}

impl Pacing {
    pub fn new(late: Late) -> Self {
        Self {
            late,
            last: Instant::ZERO,
            due: Instant::ZERO,
            settled: Span::ZERO,
            begun: Instant::ZERO,
            usual: Span::ZERO,
        }
    }

    pub fn change(&mut self, late: Late) {
        self.late = late;
    }

    /// Until when a frame that was due at `due` has to wait; none if it may be handed over at `wall`.
    pub fn hold(&self, wall: Instant, due: Instant, length: Length) -> Option<Instant> {
        let slack = match self.late {
            Late::CatchUp => SLACK,
            Late::Slip => Span::ZERO,
        };
        let open = self.open(due, length) - slack;
        (wall < open).then_some(open)
    }

    /// A frame that was due at `due` is handed over from `wall` on. Returns how much longer the wire has
    /// to pause.
    pub fn passed(&mut self, wall: Instant, due: Instant, length: Length) -> Span {
        let made_up = match self.late {
            Late::CatchUp => MADE_UP.0,
            Late::Slip => MADE_UP.1,
        };
        let before = self.settled;
        self.last = wall.max(self.open(due, length));
        self.settled = wall.since(due).saturating_sub(made_up);
        self.due = due;
        self.begun = wall;
        self.settled.saturating_sub(before)
    }

    /// The frame has been handed over by `wall`.
    pub fn done(&mut self, wall: Instant) {
        let usual = match self.late {
            Late::CatchUp => Span::ZERO,
            Late::Slip => self.usual,
        };
        self.last = self.last.max(wall - usual);
        self.usual = if wall.since(self.begun) > self.usual {
            self.usual + STEP
        } else {
            self.usual.saturating_sub(Span::from_nanos(3 * STEP.nanos()))
        };
    }

    /// From when on a frame that was due at `due` is not faster than the wire.
    fn open(&self, due: Instant, length: Length) -> Instant {
        let gain = match self.late {
            Late::CatchUp => Span::from_nanos(length.all.nanos() / GAIN),
            Late::Slip => length.spare,
        };
        self.last + length.all.min(due.since(self.due)).saturating_sub(gain)
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
    fn hand_over(pacing: &mut Pacing, mut wall: Instant, due: Instant) -> (Instant, Span) {
        while let Some(open) = pacing.hold(wall, due, LENGTH) {
            assert!(open > wall);
            wall = open;
        }
        (wall, pacing.passed(wall, due, LENGTH))
    }

    #[test]
    fn frames_on_time_are_never_held() {
        let mut pacing = Pacing::new(Late::CatchUp);
        for micros in [0, 1, 2, 30] {
            let (wall, pause) = hand_over(&mut pacing, at(micros + 40), at(micros));
            assert_eq!((wall, pause), (at(micros + 40), Span::ZERO), "as close as they like");
        }
    }

    #[test]
    fn after_a_stall_frames_keep_their_distance_and_the_wire_pauses_once() {
        let mut pacing = Pacing::new(Late::CatchUp);
        assert_eq!(pacing.passed(at(6_000), at(0), LENGTH), Span::from_micros(5_000));
        let mut wall = at(6_000);
        for frame in 1..20 {
            let pause;
            (wall, pause) = hand_over(&mut pacing, wall, at(frame * 100));
            let made_up = Span::from_nanos(frame * LENGTH.all.nanos() / GAIN);
            assert!(wall >= at(6_000 + frame * 100) - SLACK - made_up, "frame {frame} at {wall}");
            assert_eq!(pause, Span::ZERO, "frame {frame}");
        }
    }

    #[test]
    fn what_slips_is_never_faster_than_its_octets_and_is_made_up_for_in_the_gaps() {
        let mut pacing = Pacing::new(Late::Slip);
        let mut last = at(0);
        for frame in 1..1_000u64 {
            // Every tenth frame the machine wakes 40 us late.
            let late = if frame % 10 == 0 { 40 } else { 0 };
            let (wall, pause) = hand_over(&mut pacing, last.max(at(frame * 100 + late)), at(frame * 100));
            assert!(wall.since(last) >= LENGTH.all.saturating_sub(LENGTH.spare), "frame {frame}");
            assert_eq!(pause, Span::ZERO, "frame {frame}");
            assert!(wall <= at(frame * 100 + 40), "frame {frame}: it does not add up");
            last = wall;
        }
    }

    #[test]
    fn what_the_model_has_closer_than_the_wire_may_stay_so() {
        let mut pacing = Pacing::new(Late::Slip);
        hand_over(&mut pacing, at(210), at(200));
        let (wall, _) = hand_over(&mut pacing, at(230), at(230));
        assert_eq!(
            wall.nanos(),
            239_500,
            "as far behind as the jitter of the model has it, 10 us late, less the gap"
        );
        let (wall, _) = hand_over(&mut pacing, wall, at(235));
        assert_eq!(wall.nanos(), 244_000);
    }
}
