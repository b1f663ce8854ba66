//! Flow queues with controlled delay in each (RFC 8290).
//!
//! Packets are sorted by a hash of addresses, protocol and ports. The queues are served by deficit
//! round robin with `quantum` octets; newly active queues come first. Each queue is a `CoDel`
//! queue. When the total limit is exceeded, the queue with the most octets loses up to half of its
//! packets, at most 64 at once, from the head (section 4.1).

use std::collections::VecDeque;

use super::codel::{Backlog, CoDel, Law};
use super::{Limits, QueueContext};
use crate::drop_reason::DropReason;
use crate::frame::packet;
use crate::link::in_flight::InFlight;

/// Maximum number of packets dropped from the longest queue at once.
const BATCH: u64 = 64;

#[derive(Default)]
struct Flow {
    backlog: Backlog,
    codel: CoDel,
    deficit: i64,
    /// True if the queue is in one of the two lists.
    listed: bool,
}

/// All flow queues of a wire.
pub(super) struct Flows {
    law: Law,
    quantum: i64,
    number: u32,
    salt: u64,
    /// Created when the first frame arrives: an idle link uses no memory for them.
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl Flows {
    pub fn new(law: Law, quantum: u32, number: u32, salt: u64) -> Self {
        let quantum = i64::from(quantum);
        Self { law, quantum, number, salt, flows: Vec::new(), new: VecDeque::new(), old: VecDeque::new() }
    }

    /// All queued frames, flow by flow.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.flows.iter().flat_map(|flow| &flow.backlog.waiting)
    }

    /// Enqueues a run; if the limits are then exceeded, drops from the longest queue.
    pub fn put(&mut self, queue_context: &mut QueueContext, limits: &Limits, flight: InFlight, exempt: u16) {
        if self.flows.is_empty() {
            self.flows.resize_with(self.number as usize, Flow::default);
        }
        let octets = queue_context.context.pool.octets(flight.frame.buffer);
        let hash = packet::flow(&octets[..flight.frame.length as usize], self.salt);
        #[allow(clippy::cast_possible_truncation)] // below `number`
        let index = ((u64::from(hash) * u64::from(self.number)) >> 32) as u32;
        let flow = &mut self.flows[index as usize];
        queue_context.came(&flight.frame);
        flow.backlog.put(flight);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(index);
        }
        while queue_context.totals.tally.frames > u64::from(exempt) && limits.exceeded(queue_context.totals) {
            self.drop_from_fattest(queue_context);
        }
    }

    fn drop_from_fattest(&mut self, queue_context: &mut QueueContext) {
        let fattest = self.flows.iter_mut().rev().max_by_key(|flow| flow.backlog.octets);
        let Some(flow) = fattest else { return };
        let half = flow.backlog.octets / 2;
        for _ in 0..BATCH {
            let Some(flight) = flow.backlog.pop(queue_context, false) else { return };
            queue_context.context.drop(queue_context.place, flight.frame, DropReason::QueueFull);
            if flow.backlog.octets <= half {
                return;
            }
        }
    }

    /// Dequeues the next frame.
    pub fn take(&mut self, queue_context: &mut QueueContext, largest: u64, whole: bool) -> Option<InFlight> {
        loop {
            let (index, is_new) = match self.new.front() {
                Some(&index) => (index, true),
                None => (*self.old.front()?, false),
            };
            let flow = &mut self.flows[index as usize];
            let next = if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                None
            } else {
                let next = flow.codel.take(queue_context, self.law, &mut flow.backlog, largest, whole);
                if next.is_none() && !is_new {
                    flow.listed = false;
                    self.old.pop_front();
                    continue;
                }
                next
            };
            if let Some(flight) = next {
                flow.deficit -= i64::try_from(flight.frame.octets()).unwrap_or(i64::MAX);
                return Some(flight);
            }
            // Its deficit is used up, or a new queue is empty: append it to the old queues.
            if is_new {
                self.new.pop_front()
            } else {
                self.old.pop_front()
            };
            self.old.push_back(index);
        }
    }

    /// Dequeues any frame, without queue management.
    pub fn take_any(&mut self, queue_context: &mut QueueContext) -> Option<InFlight> {
        self.flows.iter_mut().find_map(|flow| flow.backlog.pop(queue_context, true))
    }
}
