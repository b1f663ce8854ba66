//! Clusters: radios that are all in range of each other and of no others, and their common state.
//!
//! Most receivers of a frame have no decision to make: they sense a busy channel, set the NAV from
//! the frame's duration, and resume backoff afterwards. In a cluster such radios are *asleep*: one
//! record of the events on the air represents all of them. A radio is woken, which means that its
//! state is computed from the record, before any event that concerns it alone: a frame addressed to
//! it, a frame of its node, the end of its backoff, a change. The computed state equals, to the
//! nanosecond, the state after processing every frame.
//!
//! The backoffs of sleeping radios use a common slot count: a radio whose backoff ends `n` slots
//! from now holds the present count plus `n`. Propagation delays differ, so an interval may hold
//! one slot more for one radio than for another; each radio is then evaluated separately.

use super::air::Signal;
use super::airtime::Airtime;
use super::clash::Left;
use super::radio::{Kind, Radio};
use super::reach::Heard;
use crate::time::{Instant, Span};

/// Identifier of a cluster: the generation of clusters, and its number in that generation.
pub(super) type ClusterId = (u64, usize);

/// Individual state of a sleeping radio.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member {
    pub(super) asleep: bool,
    /// A backoff is in progress, and a frame waits for its end.
    pub(super) backing_off: bool,
    pub(super) wants: bool,
    /// The last frame was received with errors: EIFS applies.
    pub(super) extended: bool,
    /// Common slot count at which its backoff ends.
    pub(super) due: u64,
    /// Common counts when it fell asleep: gaps that were long enough, and time spent receiving.
    pub(super) openings: i64,
    pub(super) received: Span,
    /// Additional effects of collisions, and the busy time of the last of them.
    pub(super) left: Left,
    pub(super) left_in: u64,
    /// Smallest ratio of its signal to noise at another member.
    pub(super) weakest: f64,
    /// The radio's noise, and its preamble threshold.
    pub(super) noise: f64,
    pub(super) preamble_ratio: f64,
}

/// An event on the air of a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    Begins(Signal),
    Ends(Signal),
}

/// Properties that all members of a cluster shared when it was formed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    pub(super) slot: Span,
    pub(super) aifs: Span,
    pub(super) extension: Span,
    pub(super) detect: Span,
    /// The longest propagation delay.
    pub(super) spread: Span,
    /// True if any member's transmission makes the channel busy by energy alone at all others.
    pub(super) loud: bool,
}

/// The idle time after the last frame, and how it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The first and the last frame of the preceding busy time.
    pub(super) first: Signal,
    pub(super) last: Signal,
}

/// A cluster of radios.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Radio numbers, ascending; the index of a radio is its rank.
    pub(super) radios: Vec<u32>,
    pub(super) members: Vec<Member>,
    /// Ranks of the radios that are awake, ascending.
    pub(super) awake: Vec<usize>,
    pub(super) common: Common,
    pub(super) gap: Option<Gap>,
    /// Frames whose reservations may last beyond the start of the gap.
    reserving: Vec<Signal>,
    /// Events since the gap ended; empty during a gap.
    pub(super) turns: Vec<Turn>,
    pub(super) on_air: u32,
    /// Slots counted, gaps long enough to count any, and time spent receiving.
    pub(super) slots: u64,
    openings: i64,
    received: Span,
    /// True if EIFS may apply to a member.
    extended: bool,
    /// Number of busy times.
    busy_times: u64,
    /// No backoff of a sleeping member with a frame to send ends before this count.
    least: u64,
    /// No sleeping member sends before this instant if the channel stays idle.
    pub(super) next: Instant,
}

/// Whole slots from `from` to `until`; `None` if `until` is before `from`.
fn passed(from: Instant, until: Instant, slot: Span) -> Option<u64> {
    (from <= until).then(|| until.since(from).nanos() / slot.nanos())
}

impl Cluster {
    pub(super) fn new(radios: Vec<u32>, members: Vec<Member>, common: Common) -> Self {
        Self {
            awake: (0..radios.len()).collect(),
            radios,
            members,
            common,
            gap: None,
            reserving: Vec::new(),
            turns: Vec::new(),
            on_air: 0,
            slots: 0,
            openings: 0,
            received: Span::ZERO,
            extended: false,
            busy_times: 0,
            least: u64::MAX,
            next: Instant::NEVER,
        }
    }

    pub(super) fn asleep(&self) -> bool {
        self.awake.len() < self.radios.len()
    }

    /// End of the reservation by this frame's duration field, at its sender.
    fn reserved(signal: &Signal) -> Instant {
        signal.end + signal.duration
    }

    /// Makes a radio process all frames individually again.
    pub(super) fn rouse(&mut self, rank: usize) {
        self.members[rank].asleep = false;
        self.awake.insert(self.awake.partition_point(|&other| other < rank), rank);
    }

    /// True if an earlier frame may reserve the channel beyond `now`.
    pub(super) fn outlasts(&self, now: Instant) -> bool {
        self.reserving.iter().any(|signal| Self::reserved(signal) + self.common.spread > now)
    }

    /// Earliest instant, for any member, from which slots of a gap are counted.
    fn counted_from(&self, gap: &Gap, extended: bool) -> Instant {
        let clear = self.reserving.iter().map(Self::reserved).fold(gap.last.end, Instant::max);
        let plain = clear + self.common.aifs;
        if extended { plain.max(gap.last.end + self.common.aifs + self.common.extension) } else { plain }
    }

    /// End of the reservations at a member; `ear` returns the path from another radio.
    fn reserved_until(&self, ear: &impl Fn(u32) -> Heard) -> Option<Instant> {
        let each = self.reserving.iter();
        each.map(|signal| Signal::arrival(&ear(signal.from), Self::reserved(signal))).max()
    }

    /// Puts a radio to sleep if its state equals the record; true if it did. `ear` returns the path
    /// from another radio.
    pub(super) fn admit(&mut self, rank: usize, radio: &mut Radio, ear: &impl Fn(u32) -> Heard) -> bool {
        let Some(gap) = self.gap.filter(|_| self.turns.is_empty()) else { return false };
        // A radio neither receives nor reserves the channel by its own frame.
        let own = self.radios[rank];
        let mut recent = self.reserving.iter().chain([&gap.first, &gap.last]);
        if recent.any(|signal| signal.from == own) {
            return false;
        }
        let reserved = self.reserved_until(ear);
        let lane = &radio.lanes[0];
        let alike = radio.is_bystander()
            && gap.last.kind != Kind::Rts
            && radio.idle_since == Signal::arrival(&ear(gap.last.from), gap.last.end)
            && radio.stopped == Signal::arrival(&ear(gap.first.from), gap.first.start)
            && (radio.reserved_until <= radio.idle_since || Some(radio.reserved_until) == reserved)
            && reserved.is_none_or(|until| until <= radio.idle_since.max(radio.reserved_until))
            && lane.from == radio.counted_from(lane);
        if !alike {
            return false;
        }
        let member = &mut self.members[rank];
        *member = Member {
            asleep: true,
            backing_off: lane.backing_off,
            wants: lane.backing_off && lane.wants(radio.away),
            extended: radio.extended,
            due: self.slots + u64::from(lane.slots),
            openings: self.openings,
            received: self.received,
            left: Left::default(),
            left_in: 0,
            ..*member
        };
        self.extended |= member.extended;
        if member.wants {
            self.least = self.least.min(member.due);
        }
        radio.asleep = true;
        true
    }

    /// Computes the state of a sleeping radio as of the start of the present gap or, during a busy
    /// time, of the last gap.
    pub(super) fn restore(&mut self, rank: usize, radio: &mut Radio, ear: &impl Fn(u32) -> Heard) {
        let Some(gap) = self.gap else { return };
        let member = &mut self.members[rank];
        member.asleep = false;
        let member = *member;
        radio.asleep = false;
        let at = Signal::arrival(&ear(gap.last.from), gap.last.end);
        let left = member.left;
        let ahead = if member.left_in == self.busy_times { left.ahead } else { Span::ZERO };
        let receiving = self.received.saturating_sub(member.received) + left.receiving;
        let parts = Airtime { receiving, collided: left.collided, busy: left.busy, ..Airtime::default() };
        radio.account.skip(at + ahead, &parts);
        radio.counts.broken += left.broken;
        radio.idle_since = at;
        radio.stopped = Signal::arrival(&ear(gap.first.from), gap.first.start);
        radio.extended = member.extended;
        radio.broken_at = member.extended.then_some(at);
        if let Some(until) = self.reserved_until(ear) {
            radio.reserved_until = radio.reserved_until.max(until);
        }
        let left = member.due.saturating_sub(self.slots);
        let from = radio.counted_from(&radio.lanes[0]);
        let lane = &mut radio.lanes[0];
        if member.backing_off {
            // A backoff without a frame to send ends once a gap was long enough for the remaining
            // slots.
            let over = if lane.slots == 0 { self.openings > member.openings } else { left == 0 };
            lane.backing_off = member.wants || !over;
            lane.slots = u32::try_from(left).unwrap_or(u32::MAX);
        }
        lane.from = from;
        radio.set_access();
    }

    /// Advances the sleeping radios past a gap and one frame that all members received.
    pub(super) fn passed_by(&mut self, signal: Signal, ear: &impl Fn(u32, u32, usize) -> Heard) {
        if let Some(gap) = self.gap {
            self.count(&gap, &signal, ear);
        }
        self.received += signal.end.since(signal.start);
        self.turns.clear();
        self.open(Gap { first: signal, last: signal }, &[signal]);
    }

    /// Advances the sleeping radios past a gap and frames that collided.
    pub(super) fn clashed(&mut self, first: &Signal, ear: &impl Fn(u32, u32, usize) -> Heard) {
        if let Some(gap) = self.gap {
            self.count(&gap, first, ear);
        }
        let now = self.busy_times + 1;
        for member in &mut self.members {
            member.extended = member.left.extended && member.left_in == now;
            self.extended |= member.extended;
        }
    }

    /// Adds the effect of a collision to the state of a sleeping member.
    pub(super) fn leave(&mut self, rank: usize, left: &Left) {
        let member = &mut self.members[rank];
        let before = member.left;
        member.left = Left {
            broken: before.broken + left.broken,
            receiving: before.receiving + left.receiving,
            collided: before.collided + left.collided,
            busy: before.busy + left.busy,
            ..*left
        };
        member.left_in = self.busy_times + 1;
    }

    /// Begins a new gap after frames that reserve the channel.
    pub(super) fn open(&mut self, gap: Gap, whole: &[Signal]) {
        self.busy_times += 1;
        let (spread, end) = (self.common.spread, gap.last.end);
        self.reserving.extend(whole.iter().filter(|signal| signal.duration > Span::ZERO));
        self.reserving.retain(|signal| Self::reserved(signal) + spread > end);
        self.gap = Some(gap);
    }

    /// Counts the slots between the start of the gap and the frame that ended it.
    fn count(&mut self, gap: &Gap, ending: &Signal, ear: &impl Fn(u32, u32, usize) -> Heard) {
        let Common { slot, spread, detect, .. } = self.common;
        let until = ending.start + detect;
        let bounds = |extended| {
            let from = self.counted_from(gap, extended);
            (passed(from + spread, until, slot), passed(from, until + spread, slot))
        };
        let (plain, extended) = (bounds(false), bounds(true));
        let all_alike = plain.0 == plain.1 && extended.0 == extended.1;
        let common = plain.0.unwrap_or(0);
        if all_alike && plain == extended && !self.extended {
            self.slots += common;
            self.openings += i64::from(plain.0.is_some());
            return;
        }
        for rank in 0..self.members.len() {
            let member = self.members[rank];
            if !member.asleep {
                continue;
            }
            let own = if all_alike {
                if member.extended { extended.0 } else { plain.0 }
            } else {
                let ear = |from| ear(from, self.radios[rank], rank);
                let until = Signal::arrival(&ear(ending.from), ending.start) + detect;
                let idle = Signal::arrival(&ear(gap.last.from), gap.last.end);
                let clear = self.reserved_until(&ear).map_or(idle, |until| until.max(idle));
                let plain = clear + self.common.aifs;
                let behind = idle + self.common.aifs + self.common.extension;
                passed(if member.extended { plain.max(behind) } else { plain }, until, slot)
            };
            let member = &mut self.members[rank];
            member.extended = false;
            // Slots that it counted less than the others are added to its backoff.
            member.due = (member.due + common).saturating_sub(own.unwrap_or(0)).max(self.slots + common);
            member.openings += i64::from(plain.0.is_some()) - i64::from(own.is_some());
            if member.wants {
                self.least = self.least.min(member.due);
            }
        }
        self.slots += common;
        self.openings += i64::from(plain.0.is_some());
        self.extended = false;
    }

    /// Computes when the first sleeping member may send; NEVER during a busy time.
    pub(super) fn look_ahead(&mut self) {
        self.next = match self.gap.filter(|_| self.turns.is_empty()) {
            Some(gap) if self.least < u64::MAX => {
                self.counted_from(&gap, false) + self.common.slot * self.least.saturating_sub(self.slots)
            }
            _ => Instant::NEVER,
        };
    }

    /// The sleeping members that may send at `now`, or so soon after that they would not detect
    /// another transmission that begins then. Updates the earliest time of the others.
    pub(super) fn rising(&mut self, now: Instant, out: &mut Vec<usize>) {
        out.clear();
        let Some(gap) = self.gap else { return };
        let soon = now + self.common.detect + self.common.spread;
        let (plain, extended) = (self.counted_from(&gap, false), self.counted_from(&gap, true));
        (self.least, self.next) = (u64::MAX, Instant::NEVER);
        for rank in 0..self.members.len() {
            let member = &self.members[rank];
            if !(member.asleep && member.wants) {
                continue;
            }
            let left = self.common.slot * member.due.saturating_sub(self.slots);
            let at = if member.extended { extended } else { plain } + left;
            if at < soon {
                out.push(rank);
            } else {
                self.least = self.least.min(member.due);
                self.next = self.next.min(at);
            }
        }
    }
}
