//! Selection of the radios that process a frame individually; others are updated together or later.
//!
//! See [`super::cluster`]. This changes no results: it only defers updates that a radio does not
//! need yet. If an effect differs between members of a cluster, or could not be undone, they are
//! woken and process it individually.

use super::air::Signal;
use super::airtime::Doing;
use super::clash::Clash;
use super::cluster::{Cluster, ClusterId, Common, Gap, Member, Turn};
use super::error::Decoder;
use super::propagation::Fading;
use super::radio::{Kind, Radio, Stage, To};
use super::reach::Heard;
use super::{Event, Medium};
use crate::calendar::Class;
use crate::time::{Instant, Span};

/// Frames without a change of the medium before clusters are formed: changes dissolve them.
const SETTLED: u32 = 32;
/// Smallest and largest number of radios in a cluster.
const SIZES: core::ops::RangeInclusive<usize> = 4..=1024;
/// Longest propagation delay in a cluster: far below a receiver's detection time.
const SPREAD: Span = Span::from_micros(1);
/// Consecutive frames not addressed to a radio alone before it falls asleep.
const OVERHEARD: u32 = 2;
/// Margin of all signals of a loud cluster above the energy threshold, because sums of powers
/// round.
const LOUD: f64 = 1.01;

impl Radio {
    /// True if it is in no exchange and receives nothing, so that a cluster can represent it.
    pub(super) fn is_bystander(&self) -> bool {
        self.overheard >= OVERHEARD
            && self.lanes.len() == 1
            && !self.settings.as_ns3
            && self.switched_on
            && self.stage == Stage::Free
            && self.answer.is_none()
            && !(self.busy || self.transmitting || self.away)
            && self.signals == 0
            && self.counting
            && !self.stopped_self
            && self.scan.is_none()
            && self.ordered.is_none()
    }

    /// Applies a past event on the air. Returns when a request-to-send reserved the channel by it:
    /// that reservation may have to be undone.
    fn replay(&mut self, turn: &Turn, ear: &Heard, decoders: &[Decoder]) -> Option<Instant> {
        let mut requested = None;
        match turn {
            Turn::Begins(signal) => {
                self.hear(signal, ear, decoders);
                self.sense_anew(Signal::arrival(ear, signal.start));
            }
            Turn::Ends(signal) => {
                let at = Signal::arrival(ear, signal.end);
                if let Some(lock) = self.depart(at, signal.number, ear.power, decoders) {
                    let whole = self.survives(&lock);
                    self.account.turn(at, Doing::Receiving, !whole);
                    if whole {
                        (self.extended, self.broken_at) = (false, None);
                        let until = at + signal.duration;
                        let longer = until > self.reserved_until;
                        requested = (longer && signal.kind == Kind::Rts).then_some(at);
                        self.reserved_until = self.reserved_until.max(until);
                    } else {
                        self.counts.broken += 1;
                        (self.extended, self.broken_at) = (true, Some(at));
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
    pub(super) fn audience(
        &mut self,
        now: Instant,
        signal: &Signal,
        to: To,
        out: &mut Vec<Heard>,
    ) -> Option<ClusterId> {
        let from = signal.from as usize;
        self.settled = self.settled.saturating_add(1);
        if self.radios[from].cluster.is_none() {
            self.gather(from, now);
        }
        let Some((number, own)) = self.radios[from].cluster else {
            self.reach.receivers(from, now, out);
            if out.iter().any(|ear| self.radios[ear.radio as usize].asleep) {
                // A radio reaches a cluster that does not reach it: so it is none.
                self.dissolve();
                self.set_apart(out);
            }
            return None;
        };
        if self.clusters[number].asleep() {
            self.hush(number, now, signal, to);
        }
        let cluster = &mut self.clusters[number];
        cluster.turns.push(Turn::Begins(*signal));
        cluster.on_air += 1;
        out.clear();
        let others = cluster.awake.iter().filter(|&&rank| rank != own);
        out.extend(others.map(|&rank| self.reach.ear(signal.from, cluster.radios[rank], rank)));
        self.look_ahead(number);
        Some((self.generation, number))
    }

    /// Prepares for the start of a frame: wakes radios that must process it individually.
    fn hush(&mut self, number: usize, now: Instant, signal: &Signal, to: To) {
        let cluster = &self.clusters[number];
        let Common { detect, spread, loud, .. } = cluster.common;
        let Some(gap) = cluster.gap else { return };
        let silent = cluster.turns.is_empty();
        // A request's reservation may be undone; an earlier reservation must not be.
        let entangled = signal.kind == Kind::Rts && cluster.outlasts(now);
        let at_once = silent && now < gap.last.end + spread * 2;
        if to == To::Group || at_once || entangled || !(silent || loud) {
            return self.wake_all(number);
        }
        if silent && cluster.next < now + detect + spread {
            self.rise(number, now);
        }
        if let To::Radio(receiver) = to {
            self.wake(receiver.index());
        }
    }

    /// Wakes the radios whose backoff may end at about `now`.
    pub(super) fn rise(&mut self, number: usize, now: Instant) {
        let mut ranks = core::mem::take(&mut self.rising);
        self.clusters[number].rising(now, &mut ranks);
        for &rank in &ranks {
            self.wake(self.clusters[number].radios[rank] as usize);
        }
        self.rising = ranks;
        let next = self.clusters[number].next;
        self.rises.set(number, next);
    }

    fn look_ahead(&mut self, number: usize) {
        let cluster = &mut self.clusters[number];
        cluster.look_ahead();
        self.rises.set(number, cluster.next);
    }

    fn alive(&self, id: Option<ClusterId>) -> Option<usize> {
        id.filter(|&(generation, _)| generation == self.generation).map(|(_, number)| number)
    }

    /// Processes the end of a frame for the sleeping radios.
    pub(super) fn pass_by(&mut self, frame: u32, id: Option<ClusterId>) {
        let Some(number) = self.alive(id) else { return };
        let cluster = &mut self.clusters[number];
        let begun = cluster.turns.iter().rev().find_map(|turn| match turn {
            Turn::Begins(signal) if signal.number == frame => Some(*signal),
            _ => None,
        });
        let Some(signal) = begun else { return };
        cluster.turns.push(Turn::Ends(signal));
        cluster.on_air -= 1;
        if cluster.on_air == 0 {
            self.close(number);
        }
    }

    /// Ends the busy time of a cluster's channel.
    fn close(&mut self, number: usize) {
        let Self { clusters, radios, reach, decoders, .. } = self;
        let cluster = &mut clusters[number];
        let (Some(&Turn::Begins(first)), Some(&Turn::Ends(last))) =
            (cluster.turns.first(), cluster.turns.last())
        else {
            return;
        };
        let (_, rank) = radios[first.from as usize].cluster.unwrap_or_default();
        let alone = cluster.turns.len() == 2;
        if alone && first.is_certain(cluster.members[rank].weakest, decoders) {
            cluster.passed_by(first, &|from, radio, rank| reach.ear(from, radio, rank));
            if first.kind == Kind::Rts && cluster.asleep() {
                let at = first.end + radios[first.from as usize].unanswered_after(first.rate);
                let event = Event::Unheard { cluster: (self.generation, number), since: first.end };
                self.calendar.push(at, Class::Timer, first.from, event);
            }
            return self.look_ahead(number);
        }
        let mut told = core::mem::take(&mut self.rising);
        told.clear();
        let Common { detect, spread, loud, .. } = cluster.common;
        let turns = core::mem::take(&mut cluster.turns);
        let clash = Clash::of(&turns, detect, spread, reach, decoders).filter(|_| loud);
        for rank in 0..cluster.radios.len() {
            let (own, member) = (cluster.radios[rank], &cluster.members[rank]);
            if !member.asleep {
                continue;
            }
            let ratios = (member.noise, member.preamble_ratio);
            let dice = &mut radios[own as usize].dice;
            let left = clash.as_ref().and_then(|clash| clash.at((own, rank), ratios, dice));
            match left {
                Some(left) => cluster.leave(rank, &left),
                None => told.push(rank),
            }
        }
        self.told += told.len() as u64;
        for &rank in &told {
            let own = cluster.radios[rank];
            let ear = |from: u32| reach.ear(from, own, rank);
            let radio = &mut radios[own as usize];
            cluster.restore(rank, radio, &ear);
            radio.overheard = OVERHEARD;
            for turn in &turns {
                let (Turn::Begins(signal) | Turn::Ends(signal)) = turn;
                let Some(since) = radio.replay(turn, &ear(signal.from), decoders) else { continue };
                radio.overheard = 0;
                let at = since + radio.unanswered_after(signal.rate);
                if at >= self.now {
                    self.calendar.push(at, Class::Timer, own, Event::Unclear { radio: own, since });
                }
            }
        }
        cluster.clashed(&first, &|from, radio, rank| reach.ear(from, radio, rank));
        cluster.turns = turns;
        cluster.turns.clear();
        cluster.open(Gap { first, last }, &[]);
        for &rank in &told {
            let own = cluster.radios[rank];
            let radio = &mut radios[own as usize];
            if !cluster.admit(rank, radio, &|from| reach.ear(from, own, rank)) {
                cluster.rouse(rank);
                self.timers.set(own as usize, radio.next_at());
            }
        }
        self.rising = told;
        self.look_ahead(number);
    }

    /// Processes the end of a frame: radios that processed it and have nothing to do fall asleep.
    pub(super) fn lull(&mut self, id: Option<ClusterId>, heard: &[Heard]) {
        let Some(number) = self.alive(id) else { return };
        let Self { clusters, radios, reach, timers, .. } = self;
        let cluster = &mut clusters[number];
        if !cluster.turns.is_empty() {
            return;
        }
        for ear in heard {
            let radio = &mut radios[ear.radio as usize];
            let Some((_, rank)) = radio.cluster.filter(|_| radio.overheard >= OVERHEARD) else { continue };
            if cluster.admit(rank, radio, &|from| reach.ear(from, ear.radio, rank)) {
                cluster.awake.retain(|&other| other != rank);
                timers.set(ear.radio as usize, Instant::NEVER);
            }
        }
        self.look_ahead(number);
    }

    /// Wakes a radio: it processes all frames individually from now on.
    pub(super) fn wake(&mut self, index: usize) {
        if !self.radios[index].asleep {
            return;
        }
        let Self { clusters, radios, reach, decoders, air, .. } = self;
        let Some((number, rank)) = radios[index].cluster else { return };
        let (cluster, radio) = (&mut clusters[number], &mut radios[index]);
        let own = cluster.radios[rank];
        let ear = |from: u32| reach.ear(from, own, rank);
        cluster.restore(rank, radio, &ear);
        cluster.rouse(rank);
        radio.overheard = 0;
        for (place, turn) in cluster.turns.iter().enumerate() {
            let (Turn::Begins(signal) | Turn::Ends(signal)) = turn;
            if let Some(since) = radio.replay(turn, &ear(signal.from), decoders) {
                let at = since + radio.unanswered_after(signal.rate);
                if at >= self.now {
                    self.calendar.push(at, Class::Timer, own, Event::Unclear { radio: own, since });
                }
            }
            let over = |other: &Turn| matches!(other, Turn::Ends(over) if over.number == signal.number);
            let begins = matches!(turn, Turn::Begins(_));
            if let (true, Some(Some(sending))) = (begins, air.get_mut(signal.number as usize)) {
                if !cluster.turns[place..].iter().any(over) {
                    let at = sending.heard.partition_point(|other| other.radio < own);
                    sending.heard.insert(at, ear(signal.from));
                }
            }
        }
        if let (Some(gap), true) = (cluster.gap, cluster.turns.is_empty()) {
            let since = Signal::arrival(&ear(gap.last.from), gap.last.end);
            let at = since + radio.unanswered_after(gap.last.rate);
            if gap.last.kind == Kind::Rts && at >= self.now {
                self.calendar.push(at, Class::Timer, own, Event::Unclear { radio: own, since });
            }
        }
        self.timers.set(index, self.radios[index].next_at());
    }

    fn wake_all(&mut self, number: usize) {
        for rank in 0..self.clusters[number].radios.len() {
            if self.clusters[number].members[rank].asleep {
                let index = self.clusters[number].radios[rank] as usize;
                self.wake(index);
                // It has nothing to do of its own, and may fall asleep again at once.
                self.radios[index].overheard = OVERHEARD - 1;
            }
        }
    }

    /// Handles the timer for a request-to-send that ended at `since` and may have had no answer.
    pub(super) fn unheard(&mut self, id: ClusterId, since: Instant) {
        let Some(number) = self.alive(Some(id)) else { return };
        let cluster = &self.clusters[number];
        if cluster.turns.is_empty() && cluster.gap.is_some_and(|gap| gap.last.end == since) {
            self.wake_all(number);
        }
    }

    /// Prepares for a change that clusters depend on: wakes all radios and dissolves all clusters.
    pub(super) fn dissolve(&mut self) {
        for number in 0..self.clusters.len() {
            self.wake_all(number);
            for &radio in &self.clusters[number].radios {
                self.radios[radio as usize].cluster = None;
            }
        }
        self.clusters.clear();
        self.rises = super::timers::Timers::default();
        self.generation += 1;
        self.settled = 0;
    }

    /// Marks radios that hear a radio outside every cluster: they form no cluster themselves.
    fn set_apart(&mut self, heard: &[Heard]) {
        for ear in heard {
            self.radios[ear.radio as usize].alone = self.generation;
        }
    }

    /// Forms the cluster of a radio.
    fn gather(&mut self, from: usize, now: Instant) {
        if self.settled < SETTLED || self.radios[from].alone == self.generation {
            return;
        }
        let plain = matches!(self.fading, Fading::None) && self.noises.is_empty();
        if !plain || self.sniffing || !self.frame_errors.is_empty() || self.reach.moves() {
            return;
        }
        let mut heard = self.spare.pop().unwrap_or_default();
        self.reach.receivers(from, now, &mut heard);
        let own = u32::try_from(from).unwrap_or(u32::MAX);
        let mut radios: Vec<u32> = heard.iter().map(|ear| ear.radio).collect();
        radios.insert(radios.partition_point(|&radio| radio < own), own);
        if self.air.iter().flatten().any(|sending| radios.binary_search(&sending.from).is_ok()) {
            self.spare.push(heard);
            return;
        }
        let around = heard.clone();
        let found = self.are_alike(&radios, now, &mut heard);
        self.spare.push(heard);
        let Some((members, common)) = found else {
            self.radios[from].alone = self.generation;
            return self.set_apart(&around);
        };
        for (rank, &radio) in radios.iter().enumerate() {
            self.radios[radio as usize].cluster = Some((self.clusters.len(), rank));
        }
        self.clusters.push(Cluster::new(radios, members, common));
        self.rises.add();
    }

    /// Common properties of these radios, if all are in range of each other and no others, with
    /// good signal.
    fn are_alike(
        &mut self,
        radios: &[u32],
        now: Instant,
        heard: &mut Vec<Heard>,
    ) -> Option<(Vec<Member>, Common)> {
        if !SIZES.contains(&radios.len()) {
            return None;
        }
        let model = &self.radios[radios[0] as usize];
        let (phy, slot) = (model.phy, model.slot);
        let mut common = Common {
            slot,
            aifs: phy.sifs + slot * 2,
            extension: model.extension,
            detect: phy.detect,
            spread: Span::ZERO,
            loud: true,
        };
        let mut members = Vec::with_capacity(radios.len());
        for (rank, &sender) in radios.iter().enumerate() {
            self.reach.receivers(sender as usize, now, heard);
            if heard.len() + 1 != radios.len() {
                return None;
            }
            let mut weakest = f64::INFINITY;
            for (place, ear) in heard.iter().enumerate() {
                let radio = &self.radios[ear.radio as usize];
                let same = ear.radio == radios[place + usize::from(place >= rank)]
                    && core::ptr::eq(radio.phy, phy)
                    && radio.slot == slot;
                let found = power_suffices(radio, ear);
                if !(same && ear.tuned && found) {
                    return None;
                }
                common.loud &= ear.power >= LOUD * radio.sense;
                common.spread = common.spread.max(Span::from_nanos(u64::from(ear.delay_ns)));
                weakest = weakest.min(ear.power / radio.noise);
            }
            let radio = &self.radios[sender as usize];
            let (noise, preamble_ratio) = (radio.noise, radio.preamble_ratio);
            members.push(Member { weakest, noise, preamble_ratio, ..Member::default() });
        }
        (common.spread <= SPREAD).then_some((members, common))
    }
}

/// True if the radio detects this signal in the absence of others.
fn power_suffices(radio: &Radio, ear: &Heard) -> bool {
    ear.power >= radio.sensitivity && ear.power >= radio.preamble_ratio * radio.noise
}
