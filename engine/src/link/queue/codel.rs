//! Controlled delay (RFC 8289): drops from the head while the standing queue is too long.
//!
//! A packet that has waited `target` or longer is above the target. When this has lasted for an
//! `interval`, one packet is dropped and the next drop is due `interval / sqrt(count)` later, where
//! `count` is the number of drops since dropping began (section 5.3). Dropping ends with the first
//! packet that has waited less, or when at most one packet's worth of octets is left.

use std::collections::VecDeque;

use super::{QueueContext, pop};
use crate::drop_reason::DropReason;
use crate::link::in_flight::InFlight;
use crate::time::{Instant, Span};

/// The parameters `target` and `interval`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    target: Span,
    interval: Span,
}

impl Law {
    pub fn new(target_ns: u64, interval_ns: u64) -> Self {
        Self { target: Span::from_nanos(target_ns), interval: Span::from_nanos(interval_ns) }
    }

    /// When the next drop is due after the `count`th drop at `at`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn next(self, at: Instant, count: u32) -> Instant {
        // An interval is below 2^53 ns; the square root is exactly rounded on every machine.
        at + Span::from_nanos((self.interval.nanos() as f64 / f64::from(count).sqrt()) as u64)
    }
}

/// The state of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct CoDel {
    dropping: bool,
    count: u32,
    /// `count` when dropping last began.
    before: u32,
    drop_next: Instant,
    /// When the delay will have been above the target for an interval, if that lasts.
    above_until: Option<Instant>,
}

/// A queue and the number of octets in it.
#[derive(Default)]
pub(super) struct Backlog {
    pub waiting: VecDeque<InFlight>,
    pub octets: u64,
}

impl Backlog {
    pub fn put(&mut self, flight: InFlight) {
        self.octets += flight.frame.octets();
        self.waiting.push_back(flight);
    }

    pub fn pop(&mut self, queue_context: &mut QueueContext, whole: bool) -> Option<InFlight> {
        let flight = pop(&mut self.waiting, queue_context.context.pool, whole)?;
        self.octets -= flight.frame.octets();
        queue_context.went(&flight.frame);
        Some(flight)
    }
}

impl CoDel {
    /// The next frame to be sent (`deque` of section 5.5).
    pub fn take(
        &mut self,
        queue_context: &mut QueueContext,
        law: Law,
        backlog: &mut Backlog,
        largest: u64,
        whole: bool,
    ) -> Option<InFlight> {
        let now = queue_context.context.now;
        let mut drop = self.judge(law, now, backlog, largest);
        if self.dropping {
            self.dropping = drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let next = law.next(self.drop_next, self.count);
                if let Some(marked) = discard(queue_context, backlog) {
                    self.drop_next = next;
                    return Some(marked);
                }
                drop = self.judge(law, now, backlog, largest);
                self.dropping = drop;
                if drop {
                    self.drop_next = next;
                }
            }
        } else if drop {
            let marked = discard(queue_context, backlog);
            if marked.is_none() {
                self.judge(law, now, backlog, largest);
            }
            self.dropping = true;
            // If dropping ended recently, the previous drop rate is a good initial value.
            let delta = self.count.saturating_sub(self.before);
            let recent = now.since(self.drop_next) < law.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = law.next(now, self.count);
            self.before = self.count;
            if marked.is_some() {
                return marked;
            }
        }
        backlog.pop(queue_context, whole)
    }

    /// Whether the first frame may be dropped (`dodeque` of section 5.5).
    fn judge(&mut self, law: Law, now: Instant, backlog: &Backlog, largest: u64) -> bool {
        let Some(first) = backlog.waiting.front() else {
            self.above_until = None;
            return false;
        };
        let left = backlog.octets - u64::from(first.frame.segment_octets(first.frame.first));
        if now.since(first.at) < law.target || left <= largest {
            self.above_until = None;
            return false;
        }
        match self.above_until {
            None => {
                self.above_until = Some(now + law.interval);
                false
            }
            Some(until) => now >= until,
        }
    }
}

/// Drops the first frame, or returns it marked.
fn discard(queue_context: &mut QueueContext, backlog: &mut Backlog) -> Option<InFlight> {
    let flight = backlog.pop(queue_context, false)?;
    match queue_context.mark(flight) {
        Ok(marked) => Some(marked),
        Err(flight) => {
            queue_context.context.drop(queue_context.place, flight.frame, DropReason::EarlyDrop);
            None
        }
    }
}
