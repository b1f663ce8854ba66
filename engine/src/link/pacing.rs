//! Pacing of a wire when the host is late: lateness is recovered slowly, or the time is lost.
//!
//! On the wall clock, frames can be delivered later than the model requires. Delivering all overdue
//! frames at once would be a burst faster than the wire. Each frame therefore follows the previous
//! one almost as far behind as its octets take, or at the modelled distance if that is shorter. How
//! much closer it may follow depends on the wire's [`Late`]:
//!
//! * `CatchUp`: one part in [`GAIN`], and at any moment up to [`SLACK`] in all. That is the generic
//!   cell rate algorithm (ITU-T I.371, annex A) with increment and limit of that size: no window of
//!   10 ms of real time ever gets more than 1 % above the rate and one frame.
//! * `Slip`: no slack; the gain is the spare part of each frame's overhead. The octets of the
//!   frames themselves are never faster than the rate, in any window.
//!
//! Lateness of up to 1 ms, or 0.3 ms with `Slip`, is recovered in that way. For more, the wire pauses,
//! and queued frames are sent that much later: a pause leaves 0.25 ms to recover, or 0.3 ms with
//! `Slip`. Frames that are on the wire by then stay late: the wire does not pause again for lateness
//! for which it has paused already. The lost time is counted, for the verdict. A clock that jumps is
//! never late.
//!
//! Frames that keep their times however late they are handed over are not spaced: segments that may be
//! handed over together ([`crate::link::wire::gather::Gathers`]), single ones of TCP too, and TCP and UDP
//! at a node that forwards. What is overdue is handed over at once, and only for lateness of more than
//! 10 ms the wire pauses, until it is 10 ms.
//!
//! A delivery itself takes time, and the node may receive the frame at any moment of it. With
//! `CatchUp` the distance to the next frame counts from the end of the delivery. With `Slip` every
//! frame would then lose that time. The usual duration of a delivery is therefore estimated and
//! excluded: only a delayed delivery counts from its end.

use std::collections::VecDeque;

use crate::settings::Late;
use crate::time::{Instant, Span};

/// With `CatchUp`, the total by which frames may be early. Wake-ups are rarely later than that;
/// with [`GAIN`] it leaves 0.15 % of 10 ms for errors of time stamps.
const SLACK: Span = Span::from_micros(60);
/// With `CatchUp`, the interval of two frames may be shorter by this part of a transmission.
const GAIN: u64 = 400;
/// Lateness that is recovered without a pause, and what a pause leaves to recover. Lost time lowers
/// the mean rate, recovered time makes frames late: a run may have 1 ms of the latter by default.
/// With [`GAIN`], 1 ms would take 0.4 s to recover, in which a run is not to be late for each stall.
const CATCH_UP: (Span, Span) = (Span::from_millis(1), Span::from_micros(250));
/// The same with `Slip`, which recovers more slowly.
const SLIP: (Span, Span) = (Span::from_micros(300), Span::from_micros(300));
/// The same of frames that keep their times: most stops of a virtual machine take 2 to 4 ms, and a chain
/// of wires would lose what any of them does. Longer lateness is a burst that queues need not hold.
const TIMED: (Span, Span) = (Span::from_millis(10), Span::from_millis(10));
/// With `Slip`, estimates are corrected in steps of this part of a transmission, so that they follow
/// within a few hundred frames; and of no less than so many nanoseconds.
const STEP: (u64, u64) = (4096, 20);
/// With `Slip`, the largest part of a transmission by which a wait ends earlier, and no more than
/// that. A delivery that begins later than that after its instant follows a late wake-up.
const LEAD: (u64, Span) = (32, Span::from_micros(16));

/// Time of a frame on its wire, and the spare part of it: gap, not octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub all: Span,
    pub spare: Span,
}

/// The pacing state of one wire.
#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    late: Late,
    /// Reference for the distance to the next frame: when the last frame was delivered, or its
    /// earliest instant at the rate if it was delivered before that, within the slack.
    last: Instant,
    /// When the last frame was due.
    due: Instant,
    /// Pauses, each with the instant by which the frames are due that it does not delay any more.
    pauses: VecDeque<(Instant, Span)>,
    /// Their sum.
    settled: Span,
    /// When the last delivery began.
    begun: Instant,
    /// Estimated duration of a delivery: three of four take less.
    usual: Span,
    /// Estimated delay from the end of a wait to the beginning of the delivery: three of four are
    /// shorter.
    lead: Span,
    /// Step by which the last frame corrects the estimates.
    step: Span,
}

impl Pacing {
    pub fn new(late: Late) -> Self {
        Self {
            late,
            last: Instant::ZERO,
            due: Instant::ZERO,
            pauses: VecDeque::new(),
            settled: Span::ZERO,
            begun: Instant::ZERO,
            usual: Span::ZERO,
            lead: Span::ZERO,
            step: Span::ZERO,
        }
    }

    pub fn change(&mut self, late: Late) {
        self.late = late;
    }

    /// Until when a frame that was due at `due` has to wait; `None` if it may be delivered at
    /// `wall`.
    pub fn hold(&self, wall: Instant, due: Instant, length: Length) -> Option<Instant> {
        let early = match self.late {
            Late::CatchUp => SLACK,
            Late::Slip => self.lead,
        };
        let until = self.open(due, length) - early;
        (wall < until).then_some(until)
    }

    /// Until when the delivery of a frame for which [`Self::hold`] has ended is not to begin, a few
    /// microseconds after `wall`; `None` if it may begin at once.
    pub fn rest(&mut self, wall: Instant, due: Instant, length: Length) -> Option<Instant> {
        if self.late == Late::CatchUp {
            return None;
        }
        let open = self.open(due, length);
        let limit = LEAD.1.min(Span::from_nanos(length.all.nanos() / LEAD.0));
        self.step = Span::from_nanos((length.all.nanos() / STEP.0).max(STEP.1));
        if due < open && wall < open + limit {
            self.lead = self.corrected(self.lead, wall > open).min(limit);
        }
        (wall < open).then_some(open)
    }

    /// Records that the delivery of a frame that was due at `due` begins at `wall`; `spaced` is false
    /// of a frame that keeps its time. Returns how much longer the wire has to pause.
    pub fn passed(&mut self, wall: Instant, due: Instant, length: Length, spaced: bool) -> Span {
        let (most, left) = match self.late {
            _ if !spaced => TIMED,
            Late::CatchUp => CATCH_UP,
            Late::Slip => SLIP,
        };
        while let Some(&(_, pause)) = self.pauses.front().filter(|(until, _)| *until < due) {
            self.pauses.pop_front();
            self.settled = self.settled.saturating_sub(pause);
        }
        self.last = if spaced { wall.max(self.open(due, length)) } else { wall };
        self.due = due;
        self.begun = wall;
        let more = wall.since(due).saturating_sub(self.settled);
        if more > most { more.saturating_sub(left) } else { Span::ZERO }
    }

    /// Records that the wire pauses; frames that are due by `until` stay as late as they are.
    pub fn paused(&mut self, pause: Span, until: Instant) {
        self.pauses.push_back((until, pause));
        self.settled += pause;
    }

    /// Records that the delivery was complete by `wall`.
    pub fn done(&mut self, wall: Instant) {
        let usual = match self.late {
            Late::CatchUp => Span::ZERO,
            Late::Slip => self.usual,
        };
        self.last = self.last.max(wall - usual);
        self.usual = self.corrected(self.usual, wall.since(self.begun) > self.usual);
    }

    /// An estimate that three of four values do not exceed, corrected by a value that is larger or
    /// not: the third quartile by stochastic approximation.
    fn corrected(&self, estimate: Span, larger: bool) -> Span {
        if larger { estimate + self.step + self.step + self.step } else { estimate.saturating_sub(self.step) }
    }

    /// Earliest instant at which a frame that was due at `due` is not faster than the wire.
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

    /// Delivers a frame that is due, as soon after `wall` as the pacing permits.
    fn hand_over(pacing: &mut Pacing, mut wall: Instant, due: Instant) -> (Instant, Span) {
        while let Some(open) = pacing.hold(wall, due, LENGTH) {
            assert!(open > wall);
            wall = open;
        }
        (wall, pacing.passed(wall, due, LENGTH, true))
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
        assert_eq!(pacing.passed(at(6_000), at(0), LENGTH, true), Span::from_micros(5_750));
        pacing.paused(Span::from_micros(5_750), at(20 * 100));
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
    fn a_wire_pauses_for_what_comes_on_top_of_lateness_for_which_it_has_paused() {
        let mut pacing = Pacing::new(Late::Slip);
        let millis = |count: u64| at(count * 1_000);
        assert_eq!(pacing.passed(millis(5), at(300), LENGTH, true), Span::from_micros(4_400));
        pacing.paused(Span::from_micros(4_400), millis(2));
        assert_eq!(pacing.passed(millis(7), millis(2), LENGTH, true), Span::from_micros(300), "0.3 ms more");
        pacing.paused(Span::from_micros(300), millis(4));
        // From here on frames are due 4.4 ms later: that pause excuses no more lateness.
        assert_eq!(pacing.passed(at(8_600), millis(8), LENGTH, true), Span::from_micros(300));
    }

    #[test]
    fn what_slips_is_never_faster_than_its_octets_and_is_made_up_for_in_the_gaps() {
        let mut pacing = Pacing::new(Late::Slip);
        let mut last = at(0);
        for frame in 1..1_000u64 {
            // For every tenth frame, the machine wakes 40 us late.
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
