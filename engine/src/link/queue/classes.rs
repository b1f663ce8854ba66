//! Queues by the DSCP of the packets (RFC 2474): strict priority, or deficit round robin (Shreedhar and
//! Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", IEEE/ACM Transactions on Networking
//! 4(3), 1996).
//!
//! A packet belongs to the first class that names its DSCP, otherwise to the last class, as do frames
//! that are not IP. With strict priority a class sends when all before it are empty. With deficit round
//! robin each class that has packets gets `quantum` octets in its turn, and keeps what it does not use
//! while it has packets; so the shares of busy classes are those of their quanta, whatever their sizes.

use std::collections::VecDeque;

use super::{Limits, QueueContext, admit, pop};
use crate::frame::packet;
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::settings::Class;

/// One class.
struct Members {
    waiting: VecDeque<InFlight>,
    tally: Tally,
    quantum: u64,
    deficit: u64,
    /// Most frames in this class.
    limit: u64,
}

/// All classes of a wire.
pub(super) struct Classes {
    rotates: bool,
    members: Vec<Members>,
    /// Class by DSCP.
    by_dscp: [usize; 64],
    /// The class whose turn it is, and whether it has got its quantum.
    turn: usize,
    granted: bool,
}

impl Classes {
    /// `rotates`: deficit round robin; otherwise strict priority.
    pub fn new(classes: &[Class], rotates: bool) -> Self {
        let mut by_dscp = [classes.len().saturating_sub(1); 64];
        for (number, class) in classes.iter().enumerate().rev() {
            for dscp in &class.dscp {
                by_dscp[usize::from(*dscp & 63)] = number;
            }
        }
        let members = classes.iter().map(|class| Members {
            waiting: VecDeque::new(),
            tally: Tally::default(),
            quantum: class.quantum.into(),
            deficit: 0,
            limit: class.packets.map_or(u64::MAX, u64::from),
        });
        Self { rotates, members: members.collect(), by_dscp, turn: 0, granted: false }
    }

    /// All queued frames, class by class.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.members.iter().flat_map(|class| &class.waiting)
    }

    /// Enqueues as much of a run as fits.
    pub fn put(&mut self, queue_context: &mut QueueContext, limits: &Limits, flight: InFlight, exempt: u16) {
        let octets = &queue_context.context.pool.octets(flight.frame.buffer)[..flight.frame.length as usize];
        let last = self.members.len() - 1;
        let number = packet::dscp(octets).map_or(last, |dscp| self.by_dscp[usize::from(dscp & 63)]);
        let class = &mut self.members[number];
        // The limit of the class, as one of the whole queue.
        let others = queue_context.totals.tally.frames - class.tally.frames;
        let limits = Limits { frames: limits.frames.min(class.limit.saturating_add(others)), ..*limits };
        if let Some(flight) = admit(queue_context, &limits, flight, exempt) {
            queue_context.came(&flight.frame);
            class.tally += Tally::of(&flight.frame);
            class.waiting.push_back(flight);
        }
    }

    /// The next frame to be sent; with `whole`, the run that it belongs to.
    pub fn take(&mut self, queue_context: &mut QueueContext, whole: bool) -> Option<InFlight> {
        let number = if self.rotates {
            self.next_in_turn(whole)?
        } else {
            self.members.iter().position(|class| !class.waiting.is_empty())?
        };
        self.remove(queue_context, number, whole)
    }

    /// Any frame, without a schedule.
    pub fn take_any(&mut self, queue_context: &mut QueueContext) -> Option<InFlight> {
        let number = self.members.iter().position(|class| !class.waiting.is_empty())?;
        self.remove(queue_context, number, true)
    }

    fn remove(&mut self, queue_context: &mut QueueContext, number: usize, whole: bool) -> Option<InFlight> {
        let class = &mut self.members[number];
        let flight = pop(&mut class.waiting, queue_context.context.pool, whole)?;
        class.tally -= Tally::of(&flight.frame);
        queue_context.went(&flight.frame);
        Some(flight)
    }

    fn next_in_turn(&mut self, whole: bool) -> Option<usize> {
        if self.members.iter().all(|class| class.waiting.is_empty()) {
            return None;
        }
        loop {
            let class = &mut self.members[self.turn];
            match class.waiting.front() {
                None => class.deficit = 0,
                Some(first) => {
                    if !self.granted {
                        class.deficit += class.quantum;
                        self.granted = true;
                    }
                    let frame = &first.frame;
                    let octets =
                        if whole { frame.octets() } else { frame.segment_octets(frame.first).into() };
                    if octets <= class.deficit {
                        class.deficit -= octets;
                        return Some(self.turn);
                    }
                }
            }
            self.turn = (self.turn + 1) % self.members.len();
            self.granted = false;
        }
    }
}
