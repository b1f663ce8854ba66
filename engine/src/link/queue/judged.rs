//! Admission to a first-in first-out queue: frame by frame, by a discipline and by the limits.

use std::collections::VecDeque;

use super::pie::Pie;
use super::red::Red;
use super::{Limits, QueueContext, Verdict};
use crate::drop_reason::DropReason;
use crate::link::in_flight::InFlight;
use crate::random::Stream;

/// Enqueues as much of a run as fits, and drops the rest.
pub(super) fn admit(
    queue_context: &mut QueueContext,
    limits: &Limits,
    flight: InFlight,
    exempt: u16,
) -> Option<InFlight> {
    let fit = limits.free(queue_context.totals, &flight.frame, queue_context.charge).max(exempt);
    let (fits, rest) = queue_context.split(flight, fit);
    if let Some(flight) = rest {
        queue_context.context.drop(queue_context.place, flight.frame, DropReason::QueueFull);
    }
    fits
}

/// Enqueues a run with the judgment of RED.
pub(super) fn put_by_red(
    queue_context: &mut QueueContext,
    red: &mut Red,
    dice: &mut Stream,
    limits: &Limits,
    waiting: &mut VecDeque<InFlight>,
    flight: InFlight,
    exempt: u16,
) {
    let now = queue_context.context.now;
    put_judged(queue_context, |octets| red.judge(now, octets, dice), limits, waiting, flight, exempt);
}

/// Enqueues a run, judged frame by frame by the octets before it; consecutive accepted frames stay
/// together.
fn put_judged(
    queue_context: &mut QueueContext,
    mut judge: impl FnMut(u64) -> Verdict,
    limits: &Limits,
    waiting: &mut VecDeque<InFlight>,
    flight: InFlight,
    exempt: u16,
) {
    let mut rest = Some(flight);
    let mut exempt = exempt;
    let mut passed = 0;
    while let Some(flight) = rest.take() {
        // Number of frames accepted before the first that is not.
        let mut octets = queue_context.totals.tally.octets;
        let mut verdict = Verdict::Pass;
        while verdict == Verdict::Pass && passed < flight.frame.count {
            verdict = judge(octets);
            octets += u64::from(flight.frame.segment_octets(flight.frame.first + passed));
            passed += u16::from(verdict == Verdict::Pass);
        }
        let (run, after) = queue_context.split(flight, passed);
        if let Some(run) = run {
            if let Some(run) = admit(queue_context, limits, run, exempt) {
                queue_context.came(&run.frame);
                waiting.push_back(run);
            }
            exempt = exempt.saturating_sub(passed);
            passed = 0;
        }
        let Some(after) = after else { return };
        let (one, after) = queue_context.split(after, 1);
        rest = after;
        let Some(one) = one else { return };
        let marked = if verdict == Verdict::Signal { queue_context.mark(one) } else { Err(one) };
        match marked {
            Err(one) => queue_context.context.drop(queue_context.place, one.frame, DropReason::EarlyDrop),
            Ok(one) => {
                if let Some(one) = admit(queue_context, limits, one, exempt) {
                    queue_context.came(&one.frame);
                    waiting.push_back(one);
                }
                exempt = exempt.saturating_sub(1);
            }
        }
    }
}

/// Enqueues a run with the judgment of PIE.
pub(super) fn put_by_pie(
    queue_context: &mut QueueContext,
    pie: &mut Pie,
    dice: &mut Stream,
    limits: &Limits,
    waiting: &mut VecDeque<InFlight>,
    flight: InFlight,
    exempt: u16,
) {
    pie.update(queue_context.context.now, queue_context.totals.charged);
    put_judged(queue_context, |octets| pie.judge(octets, dice), limits, waiting, flight, exempt);
}
