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

use crate::medium::cluster::collision::Collision;
use crate::medium::cluster::gap::{Common, CountedGap, Gap, Lag, MAX_FRAMES, Wait, passed};
use crate::medium::cluster::listeners::Listeners;
use crate::medium::cluster::radios::Radios;
use crate::medium::radio::Radio;
use crate::medium::radio::airtime::Airtime;
use crate::medium::reach::Reach;
use crate::medium::signal::{AirEvent, Signal};
use crate::medium::types::Kind;
use crate::time::{Instant, Span};

/// Individual state of a sleeping radio.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::medium) struct Member {
    pub(in crate::medium) asleep: bool,
    /// A backoff is in progress.
    backing_off: bool,
    /// It sleeps, a backoff is in progress, and a frame waits for its end.
    wants: bool,
    /// Common slot count at which its backoff ends.
    due: u64,
    /// Common counts when it fell asleep: gaps that were long enough, and time spent receiving.
    openings: i64,
    received: Span,
    /// What it waits for in the present gap.
    wait: Wait,
    /// Smallest ratio of its signal to noise at another member.
    pub(in crate::medium) least_snr: f64,
}

impl Member {
    /// A radio with this property, awake.
    pub(in crate::medium) fn awake(least_snr: f64) -> Self {
        Self { least_snr, ..Self::default() }
    }
}

/// A cluster of radios.
#[derive(Debug)]
pub(in crate::medium) struct Cluster {
    /// Radio numbers, ascending; the index of a radio is its rank.
    pub(in crate::medium) radios: Vec<u32>,
    pub(in crate::medium) members: Vec<Member>,
    /// The members in collisions; valid for those that sleep.
    listeners: Listeners,
    /// Ranks of the radios that are awake, ascending.
    pub(in crate::medium) awake: Vec<usize>,
    pub(in crate::medium) common: Common,
    pub(in crate::medium) gap: Option<Gap>,
    /// Frames whose reservations may last beyond the start of the gap.
    reserving: Vec<Signal>,
    /// Frames of the last collision; [`Wait::frame`] is an index of it.
    collided: Vec<Signal>,
    /// Latest end of a reservation by one of them that only some members know.
    nav_until: Instant,
    /// Events since the gap ended; empty during a gap.
    pub(in crate::medium) events: Vec<AirEvent>,
    pub(in crate::medium) on_air: u32,
    /// Slots counted, gaps long enough to count any, and time spent receiving.
    pub(in crate::medium) slots: u64,
    openings: i64,
    received: Span,
    /// True if a sleeping member may wait for more than AIFS.
    waits_differ: bool,
    /// For each [`Wait`]: no backoff of a sleeping member with a frame to send ends before this
    /// count.
    least_due: [u64; Wait::COUNT],
    /// No sleeping member sends before this instant if the channel stays idle.
    pub(in crate::medium) next: Instant,
}

impl Cluster {
    pub(in crate::medium) fn new(
        radios: Vec<u32>,
        members: Vec<Member>,
        listeners: Listeners,
        common: Common,
    ) -> Self {
        Self {
            awake: (0..radios.len()).collect(),
            radios,
            members,
            listeners,
            common,
            gap: None,
            reserving: Vec::new(),
            collided: Vec::new(),
            nav_until: Instant::ZERO,
            events: Vec::new(),
            on_air: 0,
            slots: 0,
            openings: 0,
            received: Span::ZERO,
            waits_differ: false,
            least_due: [u64::MAX; Wait::COUNT],
            next: Instant::NEVER,
        }
    }

    /// True if any member sleeps.
    pub(in crate::medium) fn has_sleepers(&self) -> bool {
        self.awake.len() < self.radios.len()
    }

    /// End of the reservation by this frame's duration field, at its sender.
    fn reserved(signal: &Signal) -> Instant {
        signal.end + signal.duration
    }

    /// Makes a radio process all frames individually again.
    pub(in crate::medium) fn mark_awake(&mut self, rank: usize) {
        self.awake.insert(self.awake.partition_point(|&other| other < rank), rank);
    }

    /// True if an earlier frame may reserve the channel beyond `now`.
    pub(in crate::medium) fn outlasts(&self, now: Instant) -> bool {
        self.reserving.iter().any(|signal| Self::reserved(signal) + self.common.max_delay > now)
            || self.nav_outlasts(now)
    }

    /// True if a reservation that only some sleeping members know may last beyond `until`.
    pub(in crate::medium) fn nav_outlasts(&self, until: Instant) -> bool {
        self.nav_until + self.common.max_delay > until
    }

    /// True if this member sleeps, and knows a reservation that others may not know.
    pub(in crate::medium) fn has_own_nav(&self, rank: usize) -> bool {
        let member = &self.members[rank];
        member.asleep && member.wait.frame().is_some()
    }

    /// Earliest instant, for any member with this wait, from which slots of a gap are counted.
    fn counted_from(&self, gap: &Gap, wait: Wait) -> Instant {
        let Common { aifs, extension, .. } = self.common;
        let clear = self.reserving.iter().map(Self::reserved).fold(gap.last.end, Instant::max);
        if wait == Wait::EIFS {
            return (clear + aifs).max(gap.last.end + aifs + extension);
        }
        let nav = wait.frame().map(|frame| Self::reserved(&self.collided[frame]));
        nav.map_or(clear, |nav| nav.max(clear)) + aifs
    }

    /// The waits that sleeping members may have.
    fn waits(&self) -> impl Iterator<Item = Wait> + use<> {
        let eifs = self.waits_differ.then_some(Wait::EIFS);
        core::iter::once(Wait::AIFS).chain(eifs).chain((0..self.collided.len()).map(Wait::nav))
    }

    /// End of the reservations that all members know, at the member of this rank.
    fn reserved_until(&self, rank: usize, reach: &Reach) -> Option<Instant> {
        let own = self.radios[rank];
        let end = |signal: &Signal| {
            Signal::arrival(&reach.member_path(signal.from, own, rank), Self::reserved(signal))
        };
        self.reserving.iter().map(end).max()
    }

    /// Puts a radio to sleep if its state equals the record; true if it did.
    pub(in crate::medium) fn put_to_sleep(&mut self, rank: usize, radio: &mut Radio, reach: &Reach) -> bool {
        let Some(gap) = self.gap.filter(|_| self.events.is_empty()) else { return false };
        // A radio neither receives nor reserves the channel by its own frame.
        let own = self.radios[rank];
        let mut recent = self.reserving.iter().chain([&gap.first, &gap.last]);
        if recent.any(|signal| signal.from == own) {
            return false;
        }
        let arrival =
            |signal: &Signal, at: Instant| Signal::arrival(&reach.member_path(signal.from, own, rank), at);
        let reserved = self.reserved_until(rank, reach);
        let lane = &radio.contention.lanes[0];
        let alike = radio.only_overhears()
            && gap.last.kind != Kind::Rts
            && radio.idle_since == arrival(&gap.last, gap.last.end)
            && radio.contention.stopped == arrival(&gap.first, gap.first.start)
            && (radio.contention.reserved_until <= radio.idle_since
                || Some(radio.contention.reserved_until) == reserved)
            && reserved.is_none_or(|until| until <= radio.idle_since.max(radio.contention.reserved_until))
            && lane.from == radio.counted_from(lane);
        if !alike {
            return false;
        }
        let wait = if radio.contention.extended { Wait::EIFS } else { Wait::AIFS };
        let member = &mut self.members[rank];
        *member = Member {
            asleep: true,
            backing_off: lane.backing_off,
            wants: lane.backing_off && lane.wants(radio.away),
            due: self.slots + u64::from(lane.slots),
            openings: self.openings,
            received: self.received,
            wait,
            ..*member
        };
        self.listeners.reset(rank);
        self.waits_differ |= wait != Wait::AIFS;
        if member.wants {
            let least = &mut self.least_due[wait.index()];
            *least = member.due.min(*least);
        }
        radio.asleep = true;
        true
    }

    /// Computes the state of a sleeping radio as of the start of the present gap or, during a busy
    /// time, of the last gap.
    pub(in crate::medium) fn restore(&mut self, rank: usize, radio: &mut Radio, reach: &Reach) {
        let Some(gap) = self.gap else { return };
        let (own, member) = (self.radios[rank], self.members[rank]);
        self.members[rank] = Member { asleep: false, wants: false, ..member };
        let arrival =
            |signal: &Signal, at: Instant| Signal::arrival(&reach.member_path(signal.from, own, rank), at);
        radio.asleep = false;
        let at = arrival(&gap.last, gap.last.end);
        let sums = self.listeners.effect(rank);
        let receiving = self.received.saturating_sub(member.received) + sums.receiving;
        let parts = Airtime { receiving, collided: sums.collided, busy: sums.busy, ..Airtime::default() };
        radio.account.skip(at + sums.ahead, &parts);
        radio.counts.broken += sums.broken;
        radio.idle_since = at;
        radio.contention.stopped = arrival(&gap.first, gap.first.start);
        radio.contention.extended = member.wait == Wait::EIFS;
        radio.contention.broken_at = radio.contention.extended.then_some(at);
        if let Some(until) = self.reserved_until(rank, reach) {
            radio.contention.reserved_until = radio.contention.reserved_until.max(until);
        }
        if let Some(signal) = member.wait.frame().map(|frame| &self.collided[frame]) {
            radio.contention.reserved_until =
                radio.contention.reserved_until.max(arrival(signal, Self::reserved(signal)));
        }
        let left = member.due.saturating_sub(self.slots);
        let from = radio.counted_from(&radio.contention.lanes[0]);
        let lane = &mut radio.contention.lanes[0];
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
    pub(in crate::medium) fn receive_single(&mut self, signal: Signal, reach: &Reach) {
        if let Some(counted) = self.count_gap(&signal) {
            if counted.differs {
                self.forget_due();
                self.listeners.catch_up();
                for rank in 0..self.members.len() {
                    if self.members[rank].asleep {
                        let wait = core::mem::take(&mut self.members[rank].wait);
                        self.count_slots(rank, wait, &counted, reach);
                        self.note_due(rank);
                    }
                }
            }
            self.advance_slots(&counted);
        }
        self.received += signal.end.since(signal.start);
        self.events.clear();
        self.open_gap(Gap { first: signal, last: signal }, &[signal]);
    }

    /// Advances the sleeping members past a gap and the collision that ended it. Adds to `others` the
    /// ranks of those for which only individual processing can do this.
    pub(in crate::medium) fn collide(
        &mut self,
        collision: &Collision,
        counted: Option<&CountedGap>,
        radios: &mut Radios,
        reach: &Reach,
        others: &mut Vec<usize>,
    ) {
        collision.evaluate(&mut self.listeners);
        for rank in 0..self.members.len() {
            let member = &mut self.members[rank];
            if !member.asleep {
                continue;
            }
            let radio = radios.represented(self.radios[rank] as usize);
            if let Some(wait) = collision.wait(rank, &mut self.listeners, radio) {
                let before = core::mem::replace(&mut member.wait, wait);
                counted.into_iter().for_each(|counted| self.count_slots(rank, before, counted, reach));
                self.note_due(rank);
            } else {
                others.push(rank);
            }
        }
    }

    /// Begins the gap after a collision, to which all members were advanced.
    pub(in crate::medium) fn end_collision(
        &mut self,
        collision: Option<&Collision>,
        counted: Option<&CountedGap>,
        gap: Gap,
        events: &[AirEvent],
    ) {
        collision.into_iter().for_each(|collision| collision.sum_up(&mut self.listeners));
        counted.into_iter().for_each(|counted| self.advance_slots(counted));
        self.open_gap(gap, &[]);
        let started =
            |event: &AirEvent| if let AirEvent::Start(signal) = event { Some(*signal) } else { None };
        self.collided.extend(events.iter().filter_map(started).take(MAX_FRAMES));
        self.nav_until = self.collided.iter().map(Self::reserved).max().unwrap_or_default();
        self.waits_differ = true;
    }

    /// Begins a gap after frames that reserve the channel for all members.
    fn open_gap(&mut self, gap: Gap, received: &[Signal]) {
        let (max_delay, end) = (self.common.max_delay, gap.last.end);
        self.reserving.extend(received.iter().filter(|signal| signal.duration > Span::ZERO));
        self.reserving.retain(|signal| Self::reserved(signal) + max_delay > end);
        self.collided.clear();
        self.nav_until = Instant::ZERO;
        self.waits_differ = false;
        self.gap = Some(gap);
    }

    /// Counts the slots between the start of the gap and the frame that ended it.
    pub(in crate::medium) fn count_gap(&self, ending: &Signal) -> Option<CountedGap> {
        let gap = self.gap?;
        let Common { slot, max_delay, detect, .. } = self.common;
        let until = ending.start + detect;
        let bounds = |wait| {
            let from = self.counted_from(&gap, wait);
            (passed(from + max_delay, until, slot), passed(from, until + max_delay, slot))
        };
        let common = bounds(Wait::AIFS).0;
        let slots = self.slots + common.unwrap_or(0);
        let mut lags = [None; Wait::COUNT];
        for wait in self.waits() {
            let (least, most) = bounds(wait);
            lags[wait.index()] = (least == most).then(|| Lag::of(least, common));
        }
        let differs = self.waits_differ || lags[Wait::AIFS.index()].is_none();
        Some(CountedGap { gap, ending: *ending, common, differs, slots, lags })
    }

    /// Lag of this member, if propagation delays decide it.
    #[cold]
    fn own_lag(&self, rank: usize, wait: Wait, counted: &CountedGap, reach: &Reach) -> Lag {
        let Common { slot, aifs, extension, detect, .. } = self.common;
        let own = self.radios[rank];
        let arrival =
            |signal: &Signal, at: Instant| Signal::arrival(&reach.member_path(signal.from, own, rank), at);
        let until = arrival(&counted.ending, counted.ending.start) + detect;
        let idle = arrival(&counted.gap.last, counted.gap.last.end);
        let clear = self.reserved_until(rank, reach).map_or(idle, |until| until.max(idle));
        let nav = wait.frame().map(|frame| &self.collided[frame]);
        let nav = nav.map(|signal| arrival(signal, Self::reserved(signal)));
        let mut from = nav.map_or(clear, |nav| nav.max(clear)) + aifs;
        if wait == Wait::EIFS {
            from = from.max(idle + aifs + extension);
        }
        Lag::of(passed(from, until, slot), counted.common)
    }

    /// Counts the slots of a gap for a sleeping member with this wait.
    #[inline]
    fn count_slots(&mut self, rank: usize, wait: Wait, counted: &CountedGap, reach: &Reach) {
        if !counted.differs {
            return;
        }
        let lag = match counted.lags[wait.index()] {
            Some(lag) => lag,
            None => self.own_lag(rank, wait, counted, reach),
        };
        let member = &mut self.members[rank];
        // The slots that it counted less than the others are left of its backoff.
        member.due = member.due.saturating_add_signed(lag.slots).max(counted.slots);
        member.openings += lag.openings;
    }

    /// Advances the common counts past a gap.
    fn advance_slots(&mut self, counted: &CountedGap) {
        self.slots = counted.slots;
        self.openings += i64::from(counted.common.is_some());
    }

    /// Forgets when backoffs end; [`Self::note_due`] notes it for each sleeping member.
    pub(in crate::medium) fn forget_due(&mut self) {
        self.least_due = [u64::MAX; Wait::COUNT];
    }

    fn note_due(&mut self, rank: usize) {
        let member = &self.members[rank];
        if member.wants {
            let least = &mut self.least_due[member.wait.index()];
            *least = member.due.min(*least);
        }
    }

    /// Computes when the first sleeping member may send; NEVER during a busy time.
    pub(in crate::medium) fn set_next(&mut self) {
        self.next = Instant::NEVER;
        let Some(gap) = self.gap.filter(|_| self.events.is_empty()) else { return };
        for wait in self.waits() {
            let least = self.least_due[wait.index()];
            if least < u64::MAX {
                let left = self.common.slot * least.saturating_sub(self.slots);
                self.next = self.next.min(self.counted_from(&gap, wait) + left);
            }
        }
    }

    /// The sleeping members that may send at `now`, or so soon after that they would not detect
    /// another transmission that begins then. Updates the earliest time of the others.
    pub(in crate::medium) fn contenders(&mut self, now: Instant, out: &mut Vec<usize>) {
        out.clear();
        let Some(gap) = self.gap else { return };
        let soon = now + self.common.detect + self.common.max_delay;
        // Backoffs that end before this count end too soon.
        let mut ends_soon = [0; Wait::COUNT];
        for wait in self.waits() {
            let from = self.counted_from(&gap, wait);
            let slots = soon.since(from).nanos().div_ceil(self.common.slot.nanos());
            ends_soon[wait.index()] = if soon > from { self.slots + slots } else { 0 };
        }
        self.forget_due();
        for (rank, member) in self.members.iter().enumerate() {
            if member.wants {
                let wait = member.wait.index();
                if member.due < ends_soon[wait] {
                    out.push(rank);
                } else {
                    self.least_due[wait] = self.least_due[wait].min(member.due);
                }
            }
        }
        self.set_next();
    }
}
