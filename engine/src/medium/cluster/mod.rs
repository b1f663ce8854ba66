//! Selection of the radios that process a frame individually; others are updated together or later.
//!
//! See [`record`]. This changes no results: it only defers updates that a radio does not
//! need yet. If an effect differs between members of a cluster, or could not be undone, they are
//! woken and process it individually.

mod collision;
pub(super) mod gap;
mod listeners;
pub(super) mod radios;
pub(super) mod record;

use crate::calendar::Class;
use crate::medium::cluster::collision::Collision;
use crate::medium::cluster::gap::{Common, Gap};
use crate::medium::cluster::listeners::Listeners;
use crate::medium::cluster::record::{Cluster, Member};
use crate::medium::error::Decoder;
use crate::medium::mac::lane::Stage;
use crate::medium::propagation::Fading;
use crate::medium::radio::Radio;
use crate::medium::radio::airtime::Doing;
use crate::medium::shared::Core;
use crate::medium::signal::{AirEvent, ClusterId, Heard, Signal};
use crate::medium::timers::Timers;
use crate::medium::types::{Kind, To};
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// Frames without a change of the medium before clusters are formed: changes dissolve them.
const STABLE_FRAMES: u32 = 32;
/// Smallest and largest number of radios in a cluster.
const SIZES: core::ops::RangeInclusive<usize> = 4..=1024;
/// Longest propagation delay in a cluster: far below a receiver's detection time.
const MAX_DELAY: Span = Span::from_micros(1);
/// Consecutive frames not addressed to a radio alone before it falls asleep.
const OVERHEARD: u32 = 2;
/// Margin of all signals above the energy detection threshold, because sums of powers round.
const ENERGY_MARGIN: f64 = 1.01;

/// The clusters of a medium.
pub(in crate::medium) struct Clusters {
    all: Vec<Cluster>,
    /// When the first sleeping radio of each cluster may send.
    timers: Timers,
    /// Counts dissolutions of clusters, and the frames since the last one.
    generation: u64,
    stable_frames: u32,
    /// Number of receptions that were processed individually.
    individual_receptions: u64,
    /// Ranks in a cluster; kept to reuse the allocation.
    ranks: Vec<usize>,
}

impl Default for Clusters {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            timers: Timers::default(),
            generation: 1,
            stable_frames: 0,
            individual_receptions: 0,
            ranks: Vec::new(),
        }
    }
}

impl Clusters {
    /// When the first sleeping radio may send; [`Instant::NEVER`] if none will.
    pub(in crate::medium) fn next_at(&self) -> Instant {
        self.timers.first_at()
    }

    /// The number of the cluster of that radio.
    pub(in crate::medium) fn first(&self) -> usize {
        self.timers.first()
    }

    /// Counts receptions that are processed individually.
    pub(in crate::medium) fn count_individual(&mut self, receptions: usize) {
        self.individual_receptions += receptions as u64;
    }

    /// Number of receptions that were processed individually.
    pub(in crate::medium) fn individual_receptions(&self) -> u64 {
        self.individual_receptions
    }
}

impl Radio {
    /// True if it is in no exchange and receives nothing, so that a cluster can represent it.
    pub(in crate::medium) fn only_overhears(&self) -> bool {
        self.overheard >= OVERHEARD
            && self.contention.lanes.len() == 1
            && !self.settings.as_ns3
            && self.hold.windows.is_none()
            && self.hold.watched.is_none()
            && self.hold.share.is_none()
            && self.switched_on
            && self.exchange.stage == Stage::Free
            && self.exchange.answer.is_none()
            && !(self.busy || self.transmitting || self.away)
            && self.reception.is_silent()
            && self.contention.counting
            && !self.contention.stopped_self
            && self.scan.is_none()
            && self.ordered.is_none()
    }

    /// Applies a past event on the air. Returns when a request-to-send reserved the channel by it:
    /// that reservation may have to be undone.
    fn replay(&mut self, event: &AirEvent, path: &Heard, decoders: &[Decoder]) -> Option<Instant> {
        let mut requested = None;
        match event {
            AirEvent::Start(signal) => {
                self.hear(signal, path, decoders);
                self.sense_anew(Signal::arrival(path, signal.start));
            }
            AirEvent::End(signal) => {
                let at = Signal::arrival(path, signal.end);
                if let Some(lock) = self.depart(at, signal.number, path.power, decoders) {
                    let whole = self.survives(&lock);
                    self.account.turn(at, Doing::Receiving, !whole);
                    if whole {
                        (self.contention.extended, self.contention.broken_at) = (false, None);
                        let until = at + signal.duration;
                        let longer = until > self.contention.reserved_until;
                        requested = (longer && signal.kind == Kind::Rts).then_some(at);
                        self.contention.reserved_until = self.contention.reserved_until.max(until);
                    } else {
                        self.counts.broken += 1;
                        (self.contention.extended, self.contention.broken_at) = (true, Some(at));
                    }
                }
                self.sense_anew(at);
            }
        }
        requested
    }
}

impl Medium {
    /// Writes to `out` the radios that must process a frame now; its cluster records it for the
    /// others.
    pub(in crate::medium) fn start_in_cluster(
        &mut self,
        now: Instant,
        signal: &Signal,
        to: To,
        out: &mut Vec<Heard>,
    ) -> Option<ClusterId> {
        let from = signal.from as usize;
        self.clusters.stable_frames = self.clusters.stable_frames.saturating_add(1);
        if self.core.radios[from].cluster.is_none() {
            self.form_cluster(from, now);
        }
        let Some((number, own)) = self.core.radios[from].cluster else {
            self.core.reach.receivers(from, now, out);
            if out.iter().any(|path| self.core.radios[path.radio as usize].asleep) {
                // A radio reaches a cluster that does not reach it: so it is none.
                self.dissolve_clusters();
                self.mark_unclustered(out);
            }
            return None;
        };
        if self.clusters.all[number].has_sleepers() {
            self.wake_for_start(number, now, signal, to);
        }
        let cluster = &mut self.clusters.all[number];
        cluster.events.push(AirEvent::Start(*signal));
        cluster.on_air += 1;
        out.clear();
        let others = cluster.awake.iter().filter(|&&rank| rank != own);
        out.extend(others.map(|&rank| self.core.reach.member_path(signal.from, cluster.radios[rank], rank)));
        self.set_next(number);
        Some((self.clusters.generation, number))
    }

    /// Prepares for the start of a frame: wakes radios that must process it individually.
    fn wake_for_start(&mut self, number: usize, now: Instant, signal: &Signal, to: To) {
        let cluster = &self.clusters.all[number];
        let Common { detect, max_delay, sensed_by_energy, .. } = cluster.common;
        let Some(gap) = cluster.gap else { return };
        let silent = cluster.events.is_empty();
        // A request's reservation may be undone; an earlier reservation must not be.
        let may_undo = signal.kind == Kind::Rts && cluster.outlasts(now);
        let at_once = silent && now < gap.last.end + max_delay * 2;
        let joins = |first: &AirEvent| matches!(first, AirEvent::Start(first) if signal.joins(first, &cluster.common));
        let sensed = silent || sensed_by_energy || cluster.events.first().is_some_and(joins);
        if to == To::Group || at_once || may_undo || !sensed {
            return self.wake_all(number);
        }
        if silent && cluster.next < now + detect + max_delay {
            self.wake_contenders(number, now);
        }
        // After this frame, the record no longer holds reservations that only some members know.
        if silent && self.clusters.all[number].nav_outlasts(signal.end) {
            for rank in 0..self.clusters.all[number].radios.len() {
                if self.clusters.all[number].has_own_nav(rank) {
                    self.wake(self.clusters.all[number].radios[rank] as usize);
                }
            }
        }
        if let To::Radio(receiver) = to {
            self.wake(receiver.index());
        }
    }

    /// Wakes the radios whose backoff may end at about `now`.
    pub(in crate::medium) fn wake_contenders(&mut self, number: usize, now: Instant) {
        let mut ranks = core::mem::take(&mut self.clusters.ranks);
        self.clusters.all[number].contenders(now, &mut ranks);
        for &rank in &ranks {
            self.wake(self.clusters.all[number].radios[rank] as usize);
        }
        self.clusters.ranks = ranks;
        let next = self.clusters.all[number].next;
        self.clusters.timers.set(number, next);
    }

    fn set_next(&mut self, number: usize) {
        let cluster = &mut self.clusters.all[number];
        cluster.set_next();
        self.clusters.timers.set(number, cluster.next);
    }

    fn alive(&self, id: Option<ClusterId>) -> Option<usize> {
        id.filter(|&(generation, _)| generation == self.clusters.generation).map(|(_, number)| number)
    }

    /// Processes the end of a frame for the sleeping radios.
    pub(in crate::medium) fn end_in_cluster(&mut self, frame: u32, id: Option<ClusterId>) {
        let Some(number) = self.alive(id) else { return };
        let cluster = &mut self.clusters.all[number];
        let begun = cluster.events.iter().rev().find_map(|event| match event {
            AirEvent::Start(signal) if signal.number == frame => Some(*signal),
            _ => None,
        });
        let Some(signal) = begun else { return };
        cluster.events.push(AirEvent::End(signal));
        cluster.on_air -= 1;
        if cluster.on_air == 0 {
            self.end_busy_time(number);
        }
    }

    /// Ends the busy time of a cluster's channel.
    fn end_busy_time(&mut self, number: usize) {
        let Self { clusters, core, errors, .. } = self;
        let Clusters { all, generation, individual_receptions, ranks, .. } = clusters;
        let Core { now, radios, reach, calendar, timers } = core;
        let (cluster, decoders) = (&mut all[number], errors.decoders());
        let (Some(&AirEvent::Start(first)), Some(&AirEvent::End(last))) =
            (cluster.events.first(), cluster.events.last())
        else {
            return;
        };
        let (_, rank) = radios[first.from as usize].cluster.unwrap_or_default();
        let alone = cluster.events.len() == 2;
        if alone && first.is_certain(cluster.members[rank].least_snr, decoders) {
            cluster.receive_single(first, reach);
            if first.kind == Kind::Rts && cluster.has_sleepers() {
                let at = first.end + radios[first.from as usize].unanswered_after(first.rate);
                let cluster = (*generation, number);
                let event = Event::RequestUnanswered { cluster, since: first.end };
                calendar.push(at, Class::Timer, first.from, event);
            }
            return self.set_next(number);
        }
        let mut individual = core::mem::take(ranks);
        individual.clear();
        let events = core::mem::take(&mut cluster.events);
        let rank = |radio| cluster.radios.partition_point(|&other| other < radio);
        let collision = Collision::of(&events, &cluster.common, rank, decoders);
        let counted = cluster.count_gap(&first);
        cluster.forget_due();
        if let Some(collision) = &collision {
            cluster.collide(collision, counted.as_ref(), radios, reach, &mut individual);
        } else {
            individual.extend((0..cluster.radios.len()).filter(|&rank| cluster.members[rank].asleep));
        }
        for &rank in &individual {
            let own = cluster.radios[rank];
            let radio = radios.represented(own as usize);
            cluster.restore(rank, radio, reach);
            radio.overheard = OVERHEARD;
            for event in &events {
                let (AirEvent::Start(signal) | AirEvent::End(signal)) = event;
                let path = reach.member_path(signal.from, own, rank);
                let Some(since) = radio.replay(event, &path, decoders) else { continue };
                radio.overheard = 0;
                let at = since + radio.unanswered_after(signal.rate);
                if at >= *now {
                    calendar.push(at, Class::Timer, own, Event::NavReset { radio: own, since });
                }
            }
        }
        *individual_receptions += individual.len() as u64;
        cluster.end_collision(collision.as_ref(), counted.as_ref(), Gap { first, last }, &events);
        cluster.events = events;
        cluster.events.clear();
        for &rank in &individual {
            let own = cluster.radios[rank];
            let radio = radios.represented(own as usize);
            if !cluster.put_to_sleep(rank, radio, reach) {
                cluster.mark_awake(rank);
                timers.set(own as usize, radio.next_at());
            }
        }
        *ranks = individual;
        self.set_next(number);
    }

    /// Processes the end of a frame: radios that processed it and have nothing to do fall asleep.
    pub(in crate::medium) fn sleep_after_frame(&mut self, id: Option<ClusterId>, heard: &[Heard]) {
        let Some(number) = self.alive(id) else { return };
        let Self {
            clusters: Clusters { all: clusters, .. }, core: Core { radios, reach, timers, .. }, ..
        } = self;
        let cluster = &mut clusters[number];
        if !cluster.events.is_empty() {
            return;
        }
        for path in heard {
            let radio = radios.represented(path.radio as usize);
            let Some((_, rank)) = radio.cluster.filter(|_| radio.overheard >= OVERHEARD) else { continue };
            if cluster.put_to_sleep(rank, radio, reach) {
                cluster.awake.retain(|&other| other != rank);
                timers.set(path.radio as usize, Instant::NEVER);
            }
        }
        self.set_next(number);
    }

    /// Wakes a radio: it processes all frames individually from now on.
    pub(in crate::medium) fn wake(&mut self, index: usize) {
        if !self.core.radios[index].asleep {
            return;
        }
        let Self { clusters, core, errors, air, .. } = self;
        let Core { radios, reach, now, calendar, .. } = core;
        let (clusters, decoders) = (&mut clusters.all, errors.decoders());
        let Some((number, rank)) = radios[index].cluster else { return };
        let (cluster, radio) = (&mut clusters[number], radios.represented(index));
        let own = cluster.radios[rank];
        let path = |from: u32| reach.member_path(from, own, rank);
        cluster.restore(rank, radio, reach);
        cluster.mark_awake(rank);
        radio.overheard = 0;
        for (place, event) in cluster.events.iter().enumerate() {
            let (AirEvent::Start(signal) | AirEvent::End(signal)) = event;
            if let Some(since) = radio.replay(event, &path(signal.from), decoders) {
                let at = since + radio.unanswered_after(signal.rate);
                if at >= *now {
                    calendar.push(at, Class::Timer, own, Event::NavReset { radio: own, since });
                }
            }
            let over =
                |other: &AirEvent| matches!(other, AirEvent::End(over) if over.number == signal.number);
            let begins = matches!(event, AirEvent::Start(_));
            if let (true, Some(sending)) = (begins, air.get_mut(signal.number)) {
                if !cluster.events[place..].iter().any(over) {
                    let at = sending.heard.partition_point(|other| other.radio < own);
                    sending.heard.insert(at, path(signal.from));
                }
            }
        }
        if let (Some(gap), true) = (cluster.gap, cluster.events.is_empty()) {
            let since = Signal::arrival(&path(gap.last.from), gap.last.end);
            let at = since + radio.unanswered_after(gap.last.rate);
            if gap.last.kind == Kind::Rts && at >= *now {
                calendar.push(at, Class::Timer, own, Event::NavReset { radio: own, since });
            }
        }
        self.core.arm(index);
    }

    fn wake_all(&mut self, number: usize) {
        for rank in 0..self.clusters.all[number].radios.len() {
            if self.clusters.all[number].members[rank].asleep {
                let index = self.clusters.all[number].radios[rank] as usize;
                self.wake(index);
                // It has nothing to do of its own, and may fall asleep again at once.
                self.core.radios.awake(index).overheard = OVERHEARD - 1;
            }
        }
    }

    /// Handles the timer for a request-to-send that ended at `since` and may have had no answer.
    pub(in crate::medium) fn request_unanswered(&mut self, id: ClusterId, since: Instant) {
        let Some(number) = self.alive(Some(id)) else { return };
        let cluster = &self.clusters.all[number];
        if cluster.events.is_empty() && cluster.gap.is_some_and(|gap| gap.last.end == since) {
            self.wake_all(number);
        }
    }

    /// Prepares for a change that clusters depend on: wakes all radios and dissolves all clusters.
    pub(in crate::medium) fn dissolve_clusters(&mut self) {
        for number in 0..self.clusters.all.len() {
            self.wake_all(number);
            for &radio in &self.clusters.all[number].radios {
                self.core.radios.represented(radio as usize).cluster = None;
            }
        }
        self.clusters.all.clear();
        self.clusters.timers = Timers::default();
        self.clusters.generation += 1;
        self.clusters.stable_frames = 0;
    }

    /// Marks radios that hear a radio outside every cluster: they form no cluster themselves.
    fn mark_unclustered(&mut self, heard: &[Heard]) {
        for path in heard {
            self.core.radios.represented(path.radio as usize).unclustered = self.clusters.generation;
        }
    }

    /// Forms the cluster of a radio.
    fn form_cluster(&mut self, from: usize, now: Instant) {
        if self.clusters.stable_frames < STABLE_FRAMES
            || self.core.radios[from].unclustered == self.clusters.generation
        {
            return;
        }
        let plain = matches!(self.fading, Fading::None) && self.noises.is_empty() && !self.aggregates;
        if !plain || self.monitor.is_sniffing() || !self.errors.has_no_pairs() || self.core.reach.moves() {
            return;
        }
        let mut heard = self.air.take_list();
        self.core.reach.receivers(from, now, &mut heard);
        let own = u32::try_from(from).unwrap_or(u32::MAX);
        let mut radios: Vec<u32> = heard.iter().map(|path| path.radio).collect();
        radios.insert(radios.partition_point(|&radio| radio < own), own);
        if self.air.any_from(|radio| radios.binary_search(&radio).is_ok()) {
            self.air.keep_list(heard);
            return;
        }
        let around = heard.clone();
        let found = self.common_properties(&radios, now, &mut heard);
        self.air.keep_list(heard);
        let Some((members, listeners, common)) = found else {
            self.core.radios.represented(from).unclustered = self.clusters.generation;
            return self.mark_unclustered(&around);
        };
        for (rank, &radio) in radios.iter().enumerate() {
            self.core.radios.represented(radio as usize).cluster = Some((self.clusters.all.len(), rank));
        }
        self.clusters.all.push(Cluster::new(radios, members, listeners, common));
        self.clusters.timers.add();
    }

    /// Common properties of these radios, if all are in range of each other and no others, with
    /// good signal.
    fn common_properties(
        &mut self,
        radios: &[u32],
        now: Instant,
        heard: &mut Vec<Heard>,
    ) -> Option<(Vec<Member>, Listeners, Common)> {
        let shared = |&radio: &u32| self.core.radios[radio as usize].hold.card.is_some();
        if !SIZES.contains(&radios.len()) || radios.iter().any(shared) {
            return None;
        }
        let model = &self.core.radios[radios[0] as usize];
        let (phy, slot) = (model.layer.phy, model.layer.slot);
        let mut common = Common {
            slot,
            aifs: phy.sifs + slot * 2,
            extension: model.layer.extension,
            detect: phy.detect,
            max_delay: Span::ZERO,
            sensed_by_energy: true,
        };
        let (mut members, mut listeners) = (Vec::with_capacity(radios.len()), Listeners::new(radios.len()));
        for (rank, &sender) in radios.iter().enumerate() {
            self.core.reach.receivers(sender as usize, now, heard);
            if heard.len() + 1 != radios.len() {
                return None;
            }
            let mut least_snr = f64::INFINITY;
            for (place, path) in heard.iter().enumerate() {
                let radio = &self.core.radios[path.radio as usize];
                let same = path.radio == radios[place + usize::from(place >= rank)]
                    && core::ptr::eq(radio.layer.phy, phy)
                    && radio.layer.slot == slot;
                let found = is_detected(radio, path);
                if !(same && path.tuned && found) {
                    return None;
                }
                common.sensed_by_energy &= path.power >= ENERGY_MARGIN * radio.receiver.sense;
                common.max_delay = common.max_delay.max(Span::from_nanos(u64::from(path.delay_ns)));
                least_snr = least_snr.min(path.power / radio.receiver.noise);
            }
            let radio = &self.core.radios[sender as usize];
            members.push(Member::awake(least_snr));
            listeners.add(radio.receiver.noise, radio.receiver.preamble_ratio, rank, heard);
        }
        (common.max_delay <= MAX_DELAY).then_some((members, listeners, common))
    }
}

/// True if the radio detects this signal in the absence of others.
fn is_detected(radio: &Radio, path: &Heard) -> bool {
    let receiver = &radio.receiver;
    path.power >= receiver.sensitivity && path.power >= receiver.preamble_ratio * receiver.noise
}
