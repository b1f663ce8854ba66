//! Who hears whom, and how strongly.
//!
//! Each sender has a list of those whom its signal can reach, with the power that arrives. Between
//! radios at rest the list is computed once; near moving ones the list of candidates is kept as
//! long as nobody can have come closer than its slack, and the power is computed anew for each
//! frame, at the exact positions of its start.

use super::mobility::{Mobility, Position};
use super::phy::Channel;
use super::propagation::{LIGHT, PathLoss, Site};
use crate::time::{Instant, Span};

/// A receiver of one transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Who.
    pub(super) radio: u32,
    /// Propagation delay in nanoseconds.
    pub(super) delay_ns: u32,
    /// Power at the receiver in mW, before fading.
    pub(super) power: f64,
    /// Tuned to the sender's channel, so that it could be understood.
    pub(super) tuned: bool,
}

/// What the medium knows about a radio's place.
pub(super) struct Place {
    pub(super) mobility: Box<dyn Mobility>,
    /// Transmit power and antenna gain, dBm.
    pub(super) eirp_dbm: f64,
    pub(super) gain_dbi: f64,
    pub(super) channel: Channel,
    pub(super) up: bool,
}

#[derive(Default)]
struct List {
    /// Everybody in physical reach, on whatever channel.
    near: Vec<Candidate>,
    near_until: Option<Instant>,
    /// Those of them who hear the sender's channel; valid for one state of tuning.
    heard: Vec<Heard>,
    tuning: u64,
    /// Somebody in `near`, or the sender, moves.
    moving: bool,
}

#[derive(Clone, Copy)]
struct Candidate {
    radio: u32,
    delay_ns: u32,
    power: f64,
}

/// Who hears whom.
pub(super) struct Reach {
    loss: Box<dyn PathLoss>,
    /// Signals weaker than this at the receiver do not exist, dBm.
    floor_dbm: f64,
    margin_db: f64,
    pub(super) places: Vec<Place>,
    lists: Vec<List>,
    /// Counts changes of channels, so that lists know when they are old.
    tuning: u64,
}

/// dB to a linear ratio.
pub(super) fn linear(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

impl Reach {
    pub(super) fn new(loss: Box<dyn PathLoss>, floor_dbm: f64) -> Self {
        Self { loss, floor_dbm, margin_db: 0.0, places: Vec::new(), lists: Vec::new(), tuning: 1 }
    }

    pub(super) fn add(&mut self, place: Place) {
        self.places.push(place);
        self.lists.push(List::default());
        self.changed();
    }

    /// Forgets everything computed: a position was set, a gain or a law changed.
    pub(super) fn changed(&mut self) {
        self.tuning += 1;
        for list in &mut self.lists {
            list.near_until = None;
        }
    }

    /// Radio `radio` was put somewhere else. If it rests there, as all others do, lists that are
    /// known are corrected one by one; else everything is computed anew.
    pub(super) fn moved(&mut self, radio: usize, at: Instant) {
        if self.moves() {
            return self.changed();
        }
        self.tuning += 1;
        self.lists[radio].near_until = None;
        let number = u32::try_from(radio).unwrap_or(u32::MAX);
        for from in (0..self.places.len()).filter(|&from| from != radio) {
            if self.lists[from].near_until.is_none() || self.lists[from].moving {
                self.lists[from].near_until = None;
                continue;
            }
            let (dbm, delay_ns) = self.path(from, radio, at);
            let least = self.least();
            let near = &mut self.lists[from].near;
            // Ascending numbers, as a search finds them: results don't depend on what came first.
            let place = near.binary_search_by_key(&number, |candidate| candidate.radio);
            let candidate = Candidate { radio: number, delay_ns, power: linear(dbm) };
            match (place, dbm >= least) {
                (Ok(place), true) => near[place] = candidate,
                (Ok(place), false) => {
                    near.remove(place);
                }
                (Err(place), true) => near.insert(place, candidate),
                (Err(_), false) => {}
            }
        }
    }

    /// Radio `radio` changed its power: only what it sends differs.
    pub(super) fn power_changed(&mut self, radio: usize) {
        self.lists[radio].near_until = None;
    }

    /// Somebody is tuned to another channel, or was switched on or off.
    pub(super) fn retuned(&mut self) {
        self.tuning += 1;
    }

    /// Signals weaker than this at the receiver do not exist from now on, dBm.
    pub(super) fn set_floor(&mut self, floor_dbm: f64) {
        self.floor_dbm = floor_dbm;
        self.changed();
    }

    /// Signals may become stronger than their mean by so many dB.
    pub(super) fn set_margin(&mut self, margin_db: f64) {
        self.margin_db = margin_db;
        self.changed();
    }

    pub(super) fn set_loss(&mut self, loss: Box<dyn PathLoss>) {
        self.loss = loss;
        self.changed();
    }

    /// Power in dBm that reaches `to` when `from` sends, and the delay in nanoseconds.
    pub(super) fn path(&mut self, from: usize, to: usize, at: Instant) -> (f64, u32) {
        let here = self.places[from].mobility.position(at);
        let there = self.places[to].mobility.position(at);
        let site =
            |radio: usize, position| Site { radio: u32::try_from(radio).unwrap_or(u32::MAX), position };
        let hertz = self.places[from].channel.hertz();
        let loss = self.loss.loss_db(site(from, here), site(to, there), hertz);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates: 1.2e9 m
        let delay = (here.distance(there) / LIGHT * 1e9).round() as u32;
        (self.places[from].eirp_dbm + self.places[to].gain_dbi - loss, delay)
    }

    /// Loss in dB from a place that is no radio's to a radio.
    pub(super) fn loss_from(&mut self, place: Position, hertz: f64, to: usize, at: Instant) -> f64 {
        let there = self.places[to].mobility.position(at);
        let from = Site { radio: u32::MAX, position: place };
        let to_site = Site { radio: u32::try_from(to).unwrap_or(u32::MAX), position: there };
        self.loss.loss_db(from, to_site, hertz) - self.places[to].gain_dbi
    }

    /// True if any radio moves.
    pub(super) fn moves(&self) -> bool {
        self.places.iter().any(|place| place.mobility.top_speed() > 0.0)
    }

    /// Writes into `out` all who hear `from` when it starts to send at `at`.
    pub(super) fn receivers(&mut self, from: usize, at: Instant, out: &mut Vec<Heard>) {
        out.clear();
        if self.lists[from].near_until.is_none_or(|until| at > until) {
            self.search(from, at);
        }
        if self.lists[from].moving {
            let list = core::mem::take(&mut self.lists[from]);
            for candidate in &list.near {
                let to = candidate.radio as usize;
                let Some((overlap, tuned)) = self.audible(from, to) else { continue };
                let (dbm, delay_ns) = self.path(from, to, at);
                if dbm >= self.least() {
                    out.push(Heard { radio: candidate.radio, delay_ns, power: linear(dbm) * overlap, tuned });
                }
            }
            self.lists[from] = list;
            return;
        }
        if self.lists[from].tuning != self.tuning {
            let mut list = core::mem::take(&mut self.lists[from]);
            list.tuning = self.tuning;
            list.heard.clear();
            for &Candidate { radio, delay_ns, power } in &list.near {
                if let Some((overlap, tuned)) = self.audible(from, radio as usize) {
                    list.heard.push(Heard { radio, delay_ns, power: power * overlap, tuned });
                }
            }
            self.lists[from] = list;
        }
        out.extend_from_slice(&self.lists[from].heard);
    }

    /// The weakest mean power that counts.
    fn least(&self) -> f64 {
        self.floor_dbm - self.margin_db
    }

    /// Share of the sender's power inside the receiver's channel, and whether that is the same.
    fn audible(&self, from: usize, to: usize) -> Option<(f64, bool)> {
        let (sender, receiver) = (&self.places[from], &self.places[to]);
        if !receiver.up {
            return None;
        }
        if sender.channel == receiver.channel {
            return Some((1.0, true));
        }
        let overlap = sender.channel.overlap(receiver.channel);
        (overlap > 0.0).then_some((overlap, false))
    }

    /// Finds everybody in physical reach of `from`.
    fn search(&mut self, from: usize, at: Instant) {
        let mut list = core::mem::take(&mut self.lists[from]);
        list.near.clear();
        list.tuning = 0;
        let own_speed = self.places[from].mobility.top_speed();
        let (mut fastest, mut gain) = (0f64, f64::NEG_INFINITY);
        let others = self.places.iter().enumerate().filter(|(index, _)| *index != from);
        for (_, place) in others {
            fastest = fastest.max(place.mobility.top_speed());
            gain = gain.max(place.gain_dbi);
        }
        let budget = self.places[from].eirp_dbm + gain - self.least();
        let hertz = self.places[from].channel.hertz();
        let reach = self.loss.reach_m(budget, hertz);
        let speed = own_speed + fastest;
        // A tenth of the reach as slack: fewer searches against a few candidates too many.
        let slack = reach.map_or(f64::INFINITY, |reach| (reach * 0.1).max(1.0));
        let here = self.places[from].mobility.position(at);
        list.moving = own_speed > 0.0;
        for to in (0..self.places.len()).filter(|&to| to != from) {
            let moves = speed > 0.0 && (own_speed > 0.0 || self.places[to].mobility.top_speed() > 0.0);
            if let Some(reach) = reach {
                let apart = here.distance(self.places[to].mobility.position(at));
                if apart > reach + if moves { slack } else { 0.0 } {
                    continue;
                }
            }
            let (dbm, delay_ns) = self.path(from, to, at);
            if !moves && dbm < self.least() {
                continue;
            }
            list.moving |= moves;
            list.near.push(Candidate {
                radio: u32::try_from(to).unwrap_or(u32::MAX),
                delay_ns,
                power: linear(dbm),
            });
        }
        list.near_until = Some(if speed > 0.0 && slack.is_finite() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
            let nanos = (slack / speed * 1e9) as u64;
            at + Span::from_nanos(nanos)
        } else {
            Instant::NEVER
        });
        self.lists[from] = list;
    }
}
