//! Dual-queue coupled active queue management, `DualPI2` (RFC 9332, appendices A.1 and A.2).
//!
//! Packets with the codepoint ECT(1) or CE wait in the low-latency queue L, all others in the classic
//! queue C. Every `update` the base probability moves by
//!
//! `p' += alpha * (delay - target) + beta * (delay - old)`, from 0 to 1,
//!
//! where the delay in seconds is the longer of the times that the first packets of L and C have waited;
//! `alpha` and `beta` are per second. Each queue counts its own signals (`recur` of the RFC): the counter
//! grows by the probability for each packet, and the packet at which it exceeds 1 is signalled and takes
//! 1 from it.
//!
//! * C: `p_C = p'^2`. The packet is marked if it is ECN-capable and `p_C < 1 / k^2`, otherwise dropped.
//! * L: `p_L = max(ramp, k p')`, marked. The ramp goes from 0 to 1 while the time that the packet has
//!   waited goes from `step` to `step + ramp`; with a ramp of 0 it is a step. A step shorter than the
//!   transmission of one packet of 1500 octets is as long as that (`floor` of the RFC).
//! * Overload, `k p' >= 1`: packets of L are dropped with `p_C` as well, and marked with `k p'`.
//!
//! L goes first, except that C gets at least the share `classic` of the octets while both wait (weighted
//! round robin of section 4.1.1: 1/16 as recommended). Nothing is signalled at enqueue; the limits of the
//! queue hold for both together. Super-frames leave as single frames, as with `split_gso` of
//! tc-dualpi2(8). What happens between two packets at the times of updates is made up at the next one, with
//! the delays of those times.

use std::collections::VecDeque;

use super::{Limits, QueueContext, admit, pop};
use crate::drop_reason::DropReason;
use crate::frame::packet;
use crate::link::in_flight::InFlight;
use crate::link::serializer::Serializer;
use crate::math::float;
use crate::time::{Instant, Span};

/// Settings, as in [`crate::settings::Discipline::DualPi2`].
#[derive(Clone, Copy, Debug)]
pub(super) struct DualPi2Settings {
    pub target_ns: u64,
    pub update_ns: u64,
    pub alpha: f64,
    pub beta: f64,
    pub coupling: f64,
    pub step_ns: u64,
    pub ramp_ns: u64,
    pub classic: f64,
}

/// Octets on the wire of a packet of 1500 octets, the least that the step of L amounts to.
const FLOOR_OCTETS: f64 = 1538.0;
/// Updates that are made up between two packets; with a probability of 1, nothing changes in more.
const MOST: u32 = 100_000;

/// What happens to a packet that leaves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Pass,
    Mark,
    Drop,
}

/// The controller.
#[derive(Debug)]
struct Pi2 {
    settings: DualPi2Settings,
    /// Step of L in seconds, not below the transmission of one packet.
    step: f64,
    /// The base probability p'.
    base: f64,
    /// Delay in seconds at the last update.
    old: f64,
    next: Option<Instant>,
}

impl Pi2 {
    fn new(settings: DualPi2Settings, serializer: &Serializer) -> Self {
        let mut pi2 = Self { settings, step: 0.0, base: 0.0, old: 0.0, next: None };
        pi2.follow(serializer);
        pi2
    }

    fn follow(&mut self, serializer: &Serializer) {
        let floor = serializer.mean().map_or(0.0, |rate| FLOOR_OCTETS * 8.0 / float(rate.max(1)));
        self.step = (float(self.settings.step_ns) / 1e9).max(floor);
    }

    /// Makes the updates that were due until `now`, while the packets that are first since `first` were.
    fn update(&mut self, now: Instant, first: Option<Instant>) {
        let period = Span::from_nanos(self.settings.update_ns);
        let mut next = self.next.unwrap_or(now + period);
        for _ in 0..MOST {
            let rests = first.is_none() && self.old == 0.0 && self.base == 0.0;
            if next > now || rests {
                break;
            }
            self.calculate(first.map_or(0.0, |at| float(next.since(at).nanos()) / 1e9));
            next += period;
        }
        if next <= now {
            next += period * (now.since(next).nanos() / period.nanos() + 1);
        }
        self.next = Some(next);
    }

    fn calculate(&mut self, delay: f64) {
        let DualPi2Settings { target_ns, alpha, beta, .. } = self.settings;
        let step = alpha * (delay - float(target_ns) / 1e9) + beta * (delay - self.old);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.old = delay;
    }

    /// `p_CL`, coupled from C to L, at most 1.
    fn coupled(&self) -> f64 {
        (self.settings.coupling * self.base).min(1.0)
    }

    /// `p_C`.
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// Probability of L's own ramp for a packet that has waited so long.
    fn ramp(&self, waited: Span) -> f64 {
        let (waited, ramp) = (float(waited.nanos()) / 1e9, float(self.settings.ramp_ns) / 1e9);
        if waited >= self.step + ramp {
            1.0
        } else if waited > self.step {
            (waited - self.step) / ramp
        } else {
            0.0
        }
    }

    fn judge_low(&self, count: &mut f64, waited: Span) -> Signal {
        let coupled = self.coupled();
        if coupled < 1.0 {
            let marks = recurs(count, self.ramp(waited).max(coupled));
            return if marks { Signal::Mark } else { Signal::Pass };
        }
        if recurs(count, self.classic()) {
            Signal::Drop
        } else if recurs(count, coupled) {
            Signal::Mark
        } else {
            Signal::Pass
        }
    }

    fn judge_classic(&self, count: &mut f64) -> Signal {
        let k = self.settings.coupling;
        if !recurs(count, self.classic()) {
            Signal::Pass
        } else if self.classic() >= (1.0 / (k * k)).min(1.0) {
            Signal::Drop
        } else {
            Signal::Mark
        }
    }
}

/// Whether a signal is due, if it is with this probability on average.
fn recurs(count: &mut f64, probability: f64) -> bool {
    *count += probability;
    let due = *count > 1.0;
    if due {
        *count -= 1.0;
    }
    due
}

/// One of the two queues, and the counter of its signals.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<InFlight>,
    count: f64,
}

/// Both queues and their controller.
pub(super) struct DualPi2 {
    pi2: Pi2,
    low: Lane,
    classic: Lane,
    /// Octets that C may send before L.
    credit: f64,
}

impl DualPi2 {
    pub fn new(settings: DualPi2Settings, serializer: &Serializer) -> Self {
        let pi2 = Pi2::new(settings, serializer);
        Self { pi2, low: Lane::default(), classic: Lane::default(), credit: 0.0 }
    }

    /// Follows a change of the link's rate.
    pub fn follow(&mut self, serializer: &Serializer) {
        self.pi2.follow(serializer);
    }

    /// All queued frames.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.low.waiting.iter().chain(&self.classic.waiting)
    }

    /// Enqueues as much of a run as fits.
    pub fn put(&mut self, queue_context: &mut QueueContext, limits: &Limits, flight: InFlight, exempt: u16) {
        self.update(queue_context.context.now);
        let octets = &queue_context.context.pool.octets(flight.frame.buffer)[..flight.frame.length as usize];
        let lane = if packet::is_low_latency(octets) { &mut self.low } else { &mut self.classic };
        if let Some(flight) = admit(queue_context, limits, flight, exempt) {
            queue_context.came(&flight.frame);
            lane.waiting.push_back(flight);
        }
    }

    /// The next frame to be sent.
    pub fn take(&mut self, queue_context: &mut QueueContext) -> Option<InFlight> {
        let now = queue_context.context.now;
        self.update(now);
        while let Some(low) = self.next() {
            let lane = if low { &mut self.low } else { &mut self.classic };
            let flight = pop(&mut lane.waiting, queue_context.context.pool, false)?;
            queue_context.went(&flight.frame);
            let signal = if low {
                self.pi2.judge_low(&mut lane.count, now.since(flight.at))
            } else {
                self.pi2.judge_classic(&mut lane.count)
            };
            let flight = match signal {
                Signal::Pass => return Some(flight),
                Signal::Mark => match queue_context.mark(flight) {
                    Ok(marked) => return Some(marked),
                    Err(flight) => flight,
                },
                Signal::Drop => flight,
            };
            queue_context.context.drop(queue_context.place, flight.frame, DropReason::EarlyDrop);
        }
        None
    }

    /// Any frame, without queue management.
    pub fn take_any(&mut self, queue_context: &mut QueueContext) -> Option<InFlight> {
        let flight = self.low.waiting.pop_front().or_else(|| self.classic.waiting.pop_front())?;
        queue_context.went(&flight.frame);
        Some(flight)
    }

    fn update(&mut self, now: Instant) {
        let first = |lane: &Lane| lane.waiting.front().map(|flight| flight.at);
        let earliest = match (first(&self.low), first(&self.classic)) {
            (Some(low), Some(classic)) => Some(low.min(classic)),
            (one, other) => one.or(other),
        };
        self.pi2.update(now, earliest);
    }

    /// Whether the next frame is one of L; `None` if there is none.
    fn next(&mut self) -> Option<bool> {
        let octets = |lane: &Lane| {
            let first = &lane.waiting.front()?.frame;
            Some(f64::from(first.segment_octets(first.first)))
        };
        match (octets(&self.low), octets(&self.classic)) {
            (None, None) => None,
            (Some(low), Some(classic)) => {
                let waits = self.credit < classic;
                let share = self.pi2.settings.classic;
                self.credit += if waits { low * share / (1.0 - share) } else { -classic };
                Some(waits)
            }
            (low, _) => {
                self.credit = 0.0;
                Some(low.is_some())
            }
        }
    }
}

#[cfg(test)]
mod tests;
