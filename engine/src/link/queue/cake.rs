//! CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: A Comprehensive Queue Management Solution
//! for Home Gateways", IEEE LANMAN 2018): tins by DSCP, flows of hosts in each, COBALT in each flow.
//!
//! The shaper is the rate of the link, with its overhead. ECN-capable packets are marked. Super-frames
//! leave as single frames.
//!
//! *Tins.* Each has a share of the rate as threshold and a schedule that runs at it: a frame of `c`
//! octets makes the tin due `c / threshold` later. The highest tin that is due sends; if none is, the one
//! that is due first. So a tin has priority up to its threshold, and beyond it what others leave. Best
//! effort, with the whole rate, is always due, and is therefore the lowest; bulk, with a sixteenth, is
//! above it and gets its sixteenth, and not more, from a busy one.
//!
//! *Flows.* DRR++ as in RFC 8290: a flow is sparse in its first round and goes first, then it is busy.
//! A flow's quantum is `rate / 4096` for a second, from 300 to 1514 octets, divided by the number of busy
//! flows of its host (its source, its destination, or that of the two that has more), so that hosts share
//! alike and then their flows. Deficits have 16 bits for fractions of octets.

mod cobalt;
mod table;

use std::collections::VecDeque;

use super::codel::Backlog;
use super::{Limits, QueueContext, Verdict};
use crate::drop_reason::DropReason;
use crate::frame::packet;
use crate::link::in_flight::InFlight;
use crate::link::serializer::Serializer;
use crate::random::Stream;
use crate::settings::{CakeIsolation, CakeTins};
use crate::time::{Instant, Span};
use cobalt::{Cobalt, Parameters};
use table::{PLACES, Table};

/// Fractions of an octet in a deficit.
const FRACTIONS: i64 = 1 << 16;

/// Settings, as in [`crate::settings::Discipline::Cake`].
#[derive(Clone, Copy, Debug)]
pub(super) struct CakeSettings {
    pub target_ns: u64,
    pub interval_ns: u64,
    pub isolation: CakeIsolation,
    pub tins: CakeTins,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// In no list.
    #[default]
    Idle,
    /// In its first round.
    Sparse,
    /// Counted among the busy flows of its hosts.
    Busy,
    /// Empty after its first round; it leaves at its next turn.
    Decaying,
}

#[derive(Default)]
struct Flow {
    backlog: Backlog,
    cobalt: Cobalt,
    state: State,
    deficit: i64,
    source: usize,
    destination: usize,
}

/// The hosts at one end of the flows, and how many busy flows each has.
struct Hosts {
    table: Table,
    busy: Vec<u32>,
}

impl Hosts {
    fn new() -> Self {
        Self { table: Table::new(), busy: vec![0; PLACES] }
    }
}

/// What a tin has from its first frame on.
struct Members {
    table: Table,
    flows: Vec<Flow>,
    sources: Hosts,
    destinations: Hosts,
}

impl Members {
    fn new() -> Self {
        let mut flows = Vec::new();
        flows.resize_with(PLACES, Flow::default);
        Self { table: Table::new(), flows, sources: Hosts::new(), destinations: Hosts::new() }
    }

    /// Counts a flow as busy, or no longer.
    fn set_busy(&mut self, place: usize, busy: bool) {
        let flow = &mut self.flows[place];
        if (flow.state == State::Busy) == busy {
            return;
        }
        flow.state = if busy { State::Busy } else { State::Idle };
        for (hosts, host) in [(&mut self.sources, flow.source), (&mut self.destinations, flow.destination)] {
            let count = &mut hosts.busy[host];
            *count = if busy { *count + 1 } else { *count - 1 };
        }
    }

    /// Number of busy flows of the host of a flow, at least 1.
    fn load(&self, place: usize, isolation: CakeIsolation) -> i64 {
        let flow = &self.flows[place];
        let source = self.sources.busy[flow.source];
        let destination = self.destinations.busy[flow.destination];
        let load = match isolation {
            CakeIsolation::Flows => 1,
            CakeIsolation::DualSrchost => source,
            CakeIsolation::DualDsthost => destination,
            CakeIsolation::TripleIsolate => source.max(destination),
        };
        load.max(1).into()
    }
}

struct Tin {
    /// The threshold is the rate divided by it.
    divisor: u64,
    /// In bit/s; `None` without a rate.
    threshold: Option<u64>,
    parameters: Parameters,
    quantum: i64,
    due: Instant,
    members: Option<Box<Members>>,
    sparse: VecDeque<usize>,
    busy: VecDeque<usize>,
    /// Number of busy flows.
    busy_flows: u64,
}

/// All tins of a wire, the lowest first.
pub(super) struct Cake {
    settings: CakeSettings,
    salt: u64,
    dice: Stream,
    tins: Vec<Tin>,
}

impl Cake {
    pub fn new(settings: CakeSettings, serializer: &Serializer, salt: u64) -> Self {
        let divisors: &[u64] = match settings.tins {
            CakeTins::Besteffort => &[1],
            CakeTins::Diffserv3 => &[1, 16, 4],
            CakeTins::Diffserv4 => &[1, 16, 2, 4],
        };
        let tins = divisors.iter().map(|&divisor| Tin {
            divisor,
            threshold: None,
            parameters: Parameters::new(settings.target_ns, settings.interval_ns, None),
            quantum: 0,
            due: Instant::ZERO,
            members: None,
            sparse: VecDeque::new(),
            busy: VecDeque::new(),
            busy_flows: 0,
        });
        let mut made = Self { settings, salt, dice: Stream::named(salt, "cake"), tins: tins.collect() };
        made.follow(serializer);
        made
    }

    /// Follows a change of the link's rate.
    pub fn follow(&mut self, serializer: &Serializer) {
        for tin in &mut self.tins {
            let threshold = serializer.mean().map(|rate| (rate / tin.divisor).max(1));
            tin.threshold = threshold;
            tin.parameters = Parameters::new(self.settings.target_ns, self.settings.interval_ns, threshold);
            let quantum = threshold.map_or(1514, |rate| (rate / 8 / 4096).clamp(300, 1514));
            tin.quantum = i64::try_from(quantum).unwrap_or(1514) * FRACTIONS;
        }
    }

    /// All queued frames, tin by tin and flow by flow.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        let flows = self.tins.iter().flat_map(|tin| &tin.members).flat_map(|members| &members.flows);
        flows.flat_map(|flow| &flow.backlog.waiting)
    }

    /// Enqueues a run; if the limits are then exceeded, drops from the longest flow.
    pub fn put(&mut self, queue_context: &mut QueueContext, limits: &Limits, flight: InFlight, exempt: u16) {
        let octets = &queue_context.context.pool.octets(flight.frame.buffer)[..flight.frame.length as usize];
        let tin = tin_of(self.settings.tins, packet::dscp(octets).unwrap_or(0));
        let flow = packet::flow(octets, self.salt);
        let (source, destination) = packet::hosts(octets, self.salt);
        queue_context.came(&flight.frame);
        self.tins[tin].put(queue_context.context.now, flight, flow, source, destination);
        while queue_context.totals.tally.frames > u64::from(exempt) && limits.exceeded(queue_context.totals) {
            self.drop_from_fattest(queue_context);
        }
    }

    fn drop_from_fattest(&mut self, queue_context: &mut QueueContext) {
        let flows = self.tins.iter_mut().flat_map(|tin| {
            let parameters = tin.parameters;
            tin.members.iter_mut().flat_map(|members| &mut members.flows).map(move |flow| (flow, parameters))
        });
        let Some((flow, parameters)) = flows.max_by_key(|(flow, _)| flow.backlog.octets) else { return };
        let Some(flight) = flow.backlog.pop(queue_context, false) else { return };
        flow.cobalt.overflowed(queue_context.context.now, &parameters);
        queue_context.context.drop(queue_context.place, flight.frame, DropReason::QueueFull);
    }

    /// Dequeues the next frame.
    pub fn take(&mut self, queue_context: &mut QueueContext) -> Option<InFlight> {
        let now = queue_context.context.now;
        loop {
            let mut best: Option<(usize, Span)> = None;
            for (number, tin) in self.tins.iter().enumerate().filter(|(_, tin)| !tin.is_empty()) {
                let wait = tin.due.since(now);
                if best.is_none_or(|(_, least)| wait == Span::ZERO || wait < least) {
                    best = Some((number, wait));
                }
            }
            let tin = &mut self.tins[best?.0];
            if let Some(flight) = tin.take(queue_context, self.settings.isolation, &mut self.dice) {
                tin.charge(now, queue_context.charge.of(&flight.frame));
                return Some(flight);
            }
        }
    }

    /// Dequeues any frame, without queue management.
    pub fn take_any(&mut self, queue_context: &mut QueueContext) -> Option<InFlight> {
        let mut flows =
            self.tins.iter_mut().flat_map(|tin| &mut tin.members).flat_map(|members| &mut members.flows);
        flows.find_map(|flow| flow.backlog.pop(queue_context, true))
    }
}

impl Tin {
    fn is_empty(&self) -> bool {
        self.sparse.is_empty() && self.busy.is_empty()
    }

    fn put(&mut self, now: Instant, flight: InFlight, flow: u32, source: u32, destination: u32) {
        if self.is_empty() {
            self.due = self.due.max(now);
        }
        let members = self.members.get_or_insert_with(|| Box::new(Members::new()));
        let place = members.table.find(flow);
        match members.flows[place].state {
            State::Idle => {
                members.table.claim(flow);
                let made = &mut members.flows[place];
                made.source = members.sources.table.claim(source);
                made.destination = members.destinations.table.claim(destination);
                made.state = State::Sparse;
                made.deficit = self.quantum;
                self.sparse.push_back(place);
            }
            State::Decaying => {
                members.set_busy(place, true);
                self.busy_flows += 1;
            }
            State::Sparse | State::Busy => {}
        }
        members.flows[place].backlog.put(flight);
    }

    fn take(
        &mut self,
        queue_context: &mut QueueContext,
        isolation: CakeIsolation,
        dice: &mut Stream,
    ) -> Option<InFlight> {
        let members = self.members.as_mut()?;
        loop {
            let is_sparse = !self.sparse.is_empty();
            let list = if is_sparse { &mut self.sparse } else { &mut self.busy };
            let place = *list.front()?;
            let flow = &mut members.flows[place];
            if flow.deficit <= 0 && !flow.backlog.waiting.is_empty() {
                // Its round is over: the next one is among the busy flows.
                if flow.state != State::Busy {
                    members.set_busy(place, true);
                    self.busy_flows += 1;
                }
                members.flows[place].deficit += self.quantum / members.load(place, isolation);
                list.pop_front();
                self.busy.push_back(place);
                continue;
            }
            if let Some(flight) = next_of(flow, queue_context, &self.parameters, self.busy_flows, dice) {
                let charged = i64::try_from(queue_context.charge.of(&flight.frame)).unwrap_or(1 << 20);
                flow.deficit -= charged * FRACTIONS;
                return Some(flight);
            }
            flow.cobalt.emptied(queue_context.context.now, &self.parameters);
            list.pop_front();
            if is_sparse {
                // It does not get another first round by coming back at once.
                flow.state = State::Decaying;
                self.busy.push_back(place);
                continue;
            }
            self.busy_flows -= u64::from(flow.state == State::Busy);
            members.set_busy(place, false);
            let flow = &mut members.flows[place];
            flow.state = State::Idle;
            members.table.release(place);
            members.sources.table.release(flow.source);
            members.destinations.table.release(flow.destination);
        }
    }

    /// Moves the schedule on by a frame that costs so many octets.
    fn charge(&mut self, now: Instant, octets: u64) {
        let Some(rate) = self.threshold else { return };
        let length = u128::from(octets) * 8_000_000_000 / u128::from(rate);
        let length = Span::from_nanos(u64::try_from(length).unwrap_or(u64::MAX));
        // A tin that has waited may catch up, by one frame at a time.
        self.due = if self.due < now { self.due + length } else { self.due.max(now + length) };
    }
}

/// The next frame of a flow that its queue management lets pass, the last one in any case.
fn next_of(
    flow: &mut Flow,
    queue_context: &mut QueueContext,
    parameters: &Parameters,
    busy: u64,
    dice: &mut Stream,
) -> Option<InFlight> {
    let now = queue_context.context.now;
    loop {
        let flight = flow.backlog.pop(queue_context, false)?;
        let verdict = flow.cobalt.judge(now, now.since(flight.at), parameters, busy, dice);
        let flight = match verdict {
            Verdict::Pass => return Some(flight),
            Verdict::Signal => match queue_context.mark(flight) {
                Ok(marked) => return Some(marked),
                Err(flight) => flight,
            },
            Verdict::Drop => flight,
        };
        if flow.backlog.waiting.is_empty() {
            return Some(flight);
        }
        queue_context.context.drop(queue_context.place, flight.frame, DropReason::EarlyDrop);
    }
}

/// The tin of a DSCP, as tc-cake(8) lists them: 0 is best effort, 1 bulk.
fn tin_of(tins: CakeTins, dscp: u8) -> usize {
    match (tins, dscp) {
        (CakeTins::Besteffort, _) => 0,
        // LE and CS1.
        (_, 1 | 8) => 1,
        // TOS4, VA, EF, CS6, CS7.
        (CakeTins::Diffserv3, 4 | 44 | 46 | 48 | 56) => 2,
        // TOS4, CS2, AF2x, CS3, AF3x, AF4x.
        (CakeTins::Diffserv4, 4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 2,
        // CS4, CS5, VA, EF, CS6, CS7.
        (CakeTins::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 3,
        _ => 0,
    }
}
