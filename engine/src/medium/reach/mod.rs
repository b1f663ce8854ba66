//! Reachability: which radios receive a transmission, and at what power.
//!
//! Each sender has a list of the radios in range, with the received power. For radios at rest the
//! list is computed once; near moving radios the list of candidates is valid as long as no radio
//! can have moved more than its slack. If one of two radios moves, the power between them is
//! recomputed for each frame, at the exact positions of its start.

mod index;
pub(super) mod leakage;

use crate::math::linear;
use crate::medium::mobility::{Mobility, Position};
use crate::medium::phy::Channel;
use crate::medium::phy::channel::Band;
use crate::medium::propagation::{LIGHT, PathLoss, Site};
use crate::medium::reach::index::{Index, travel};
use crate::medium::reach::leakage::Leakage;
use crate::medium::signal::Heard;
use crate::medium::slices::codes::CodeSettings;
use crate::time::Instant;

/// Position and radio parameters of a radio.
pub(in crate::medium) struct Place {
    pub(in crate::medium) mobility: Box<dyn Mobility>,
    /// Transmit power and antenna gain, dBm.
    pub(in crate::medium) eirp_dbm: f64,
    pub(in crate::medium) gain_dbi: f64,
    pub(in crate::medium) channel: Channel,
    /// True if it occupies 40 MHz: its channel and the other half.
    pub(in crate::medium) wide: bool,
    pub(in crate::medium) up: bool,
    /// The bands on all of whose channels it receives; none if it receives on its channel alone.
    pub(in crate::medium) wideband: &'static [Band],
    /// The card that it shares with other radios, from 1; 0 for none.
    pub(in crate::medium) card: u32,
    pub(in crate::medium) code: Option<CodeSettings>,
}

#[derive(Default)]
struct List {
    /// All radios in physical range, on any channel.
    near: Vec<Candidate>,
    near_until: Option<Instant>,
    /// Those of them that receive the sender's channel; valid for one value of `tuning`.
    heard: Vec<Heard>,
    tuning: u64,
    /// True if a radio in `near`, or the sender, moves.
    moving: bool,
}

#[derive(Clone, Copy)]
struct Candidate {
    radio: u32,
    delay_ns: u32,
    power: f64,
    /// True if it or the sender moves: delay and power are stale.
    moves: bool,
}

/// Reachability of all radios.
pub(in crate::medium) struct Reach {
    loss: Box<dyn PathLoss>,
    /// Power at the receiver in dBm below which signals are ignored.
    floor_dbm: f64,
    margin_db: f64,
    pub(in crate::medium) leakage: Leakage,
    /// Loss in dB between radios at one place.
    antenna_isolation_db: Option<f64>,
    pub(in crate::medium) places: Vec<Place>,
    lists: Vec<List>,
    index: Index,
    /// Result of a spatial search; kept to reuse the allocation.
    nearby: Vec<u32>,
    /// The highest speed in m/s and the highest antenna gain in dBi of all; `None` if not computed.
    extremes: Option<(f64, f64)>,
    /// Number of position queries and loss computations so far.
    work: u64,
    /// Number of channel changes; identifies stale lists.
    tuning: u64,
}

impl Reach {
    pub(in crate::medium) fn new(loss: Box<dyn PathLoss>, floor_dbm: f64) -> Self {
        Self {
            loss,
            floor_dbm,
            margin_db: 0.0,
            leakage: Leakage::default(),
            antenna_isolation_db: None,
            places: Vec::new(),
            lists: Vec::new(),
            index: Index::default(),
            nearby: Vec::new(),
            extremes: None,
            work: 0,
            tuning: 1,
        }
    }

    /// Takes over the laws of another one; the places stay.
    pub(in crate::medium) fn follow(&mut self, other: Self) {
        self.loss = other.loss;
        self.floor_dbm = other.floor_dbm;
        self.margin_db = other.margin_db;
        self.leakage = other.leakage;
        self.antenna_isolation_db = other.antenna_isolation_db;
        self.changed();
    }

    pub(in crate::medium) fn add(&mut self, place: Place) {
        self.places.push(place);
        self.lists.push(List::default());
        self.changed();
    }

    /// Invalidates all computed values after a change of a position, a gain or a model.
    pub(in crate::medium) fn changed(&mut self) {
        self.tuning += 1;
        self.forget_places();
        for list in &mut self.lists {
            list.near_until = None;
        }
    }

    fn forget_places(&mut self) {
        self.index.forget();
        self.extremes = None;
    }

    /// The highest speed and the highest antenna gain of all.
    fn extremes(&mut self) -> (f64, f64) {
        let places = &self.places;
        *self.extremes.get_or_insert_with(|| {
            places.iter().fold((0.0, f64::NEG_INFINITY), |(speed, gain), place| {
                (place.mobility.top_speed().max(speed), place.gain_dbi.max(gain))
            })
        })
    }

    /// Number of position queries and loss computations so far: the work that depends on the number
    /// of radios.
    pub(in crate::medium) fn work(&self) -> u64 {
        self.work
    }

    /// Handles a move of radio `radio`. If all radios are at rest, existing lists are updated;
    /// otherwise all are recomputed.
    pub(in crate::medium) fn moved(&mut self, radio: usize, at: Instant) {
        self.forget_places();
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
            // Ascending numbers, as in a search: results don't depend on the order of changes.
            let place = near.binary_search_by_key(&number, |candidate| candidate.radio);
            let candidate = Candidate { radio: number, delay_ns, power: linear(dbm), moves: false };
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

    /// Handles a change of power of radio `radio`: only its own transmissions are affected.
    pub(in crate::medium) fn power_changed(&mut self, radio: usize) {
        self.lists[radio].near_until = None;
    }

    /// Handles a change of a radio's channel or of its on/off state.
    pub(in crate::medium) fn retuned(&mut self) {
        self.tuning += 1;
    }

    /// Sets the power at the receiver in dBm below which signals are ignored.
    pub(in crate::medium) fn set_floor(&mut self, floor_dbm: f64) {
        self.floor_dbm = floor_dbm;
        self.changed();
    }

    /// Sets by how many dB signals may exceed their mean.
    pub(in crate::medium) fn set_margin(&mut self, margin_db: f64) {
        self.margin_db = margin_db;
        self.changed();
    }

    /// Sets the leakage between channels.
    pub(in crate::medium) fn set_leakage(&mut self, leakage: Leakage) {
        self.leakage = leakage;
        self.changed();
    }

    /// Sets the loss in dB between radios at one place.
    pub(in crate::medium) fn set_antenna_isolation(&mut self, loss_db: Option<f64>) {
        self.antenna_isolation_db = loss_db;
        self.changed();
    }

    pub(in crate::medium) fn set_loss(&mut self, loss: Box<dyn PathLoss>) {
        self.loss = loss;
        self.changed();
    }

    /// Power in dBm that reaches `to` when `from` sends, and the delay in nanoseconds.
    pub(in crate::medium) fn path(&mut self, from: usize, to: usize, at: Instant) -> (f64, u32) {
        self.work += 1;
        let here = self.places[from].mobility.position(at);
        let there = self.places[to].mobility.position(at);
        let site =
            |radio: usize, position| Site { radio: u32::try_from(radio).unwrap_or(u32::MAX), position };
        let hertz = self.places[from].channel.hertz();
        let apart = here.distance(there);
        let loss = match self.antenna_isolation_db {
            Some(loss) if apart <= 0.0 => loss,
            _ => self.loss.loss_db(site(from, here), site(to, there), hertz),
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates: 1.2e9 m
        let delay = (apart / LIGHT * 1e9).round() as u32;
        (self.places[from].eirp_dbm + self.places[to].gain_dbi - loss, delay)
    }

    /// Loss in dB from an arbitrary place to a radio.
    pub(in crate::medium) fn loss_from(
        &mut self,
        place: Position,
        hertz: f64,
        to: usize,
        at: Instant,
    ) -> f64 {
        let there = self.places[to].mobility.position(at);
        let from = Site { radio: u32::MAX, position: place };
        let to_site = Site { radio: u32::try_from(to).unwrap_or(u32::MAX), position: there };
        self.loss.loss_db(from, to_site, hertz) - self.places[to].gain_dbi
    }

    /// True if any radio moves.
    pub(in crate::medium) fn moves(&mut self) -> bool {
        self.extremes().0 > 0.0
    }

    /// Writes to `out` all radios that receive a transmission of `from` that starts at `at`.
    pub(in crate::medium) fn receivers(&mut self, from: usize, at: Instant, out: &mut Vec<Heard>) {
        out.clear();
        if self.lists[from].near_until.is_none_or(|until| at > until) {
            self.search(from, at);
        }
        if self.lists[from].moving {
            let list = core::mem::take(&mut self.lists[from]);
            for &Candidate { radio, mut delay_ns, mut power, moves } in &list.near {
                let Some((overlap, tuned)) = self.audible(from, radio as usize) else { continue };
                if moves {
                    let (dbm, delay) = self.path(from, radio as usize, at);
                    if dbm < self.least() {
                        continue;
                    }
                    (delay_ns, power) = (delay, linear(dbm));
                }
                if self.is_lost(power * overlap) {
                    continue;
                }
                out.push(Heard { radio, delay_ns, power: power * overlap, tuned });
            }
            self.lists[from] = list;
            return;
        }
        if self.lists[from].tuning != self.tuning {
            let mut list = core::mem::take(&mut self.lists[from]);
            list.tuning = self.tuning;
            list.heard.clear();
            for &Candidate { radio, delay_ns, power, .. } in &list.near {
                if let Some((overlap, tuned)) = self.audible(from, radio as usize)
                    && !self.is_lost(power * overlap)
                {
                    list.heard.push(Heard { radio, delay_ns, power: power * overlap, tuned });
                }
            }
            self.lists[from] = list;
        }
        out.extend_from_slice(&self.lists[from].heard);
    }

    /// The list that [`Self::receivers`] wrote last for `from`; valid if no radio moves.
    pub(in crate::medium) fn heard(&self, from: u32) -> &[Heard] {
        &self.lists[from as usize].heard
    }

    /// Path from `from` to `radio`, which is the `rank`-th of the radios that are all in range of
    /// each other.
    pub(in crate::medium) fn member_path(&self, from: u32, radio: u32, rank: usize) -> Heard {
        self.heard(from)[rank - usize::from(radio > from)]
    }

    /// The weakest mean power that is received, in dBm.
    fn least(&self) -> f64 {
        self.floor_dbm - self.margin_db
    }

    /// True if what leaks from another channel is too weak to be received.
    fn is_lost(&self, power: f64) -> bool {
        self.leakage.is_some() && power < linear(self.least())
    }

    /// Share of the sender's power that the receiver's channel (1 for a receiver of the whole band)
    /// and its code pass, and whether it can decode the signal: channels and codes are the same.
    fn audible(&self, from: usize, to: usize) -> Option<(f64, bool)> {
        let (sender, receiver) = (&self.places[from], &self.places[to]);
        if !receiver.up || (sender.card > 0 && sender.card == receiver.card) {
            return None;
        }
        let (overlap, tuned) = if sender.channel == receiver.channel {
            // A receiver of 20 MHz receives half the power of 40 MHz.
            (if sender.wide && !receiver.wide { 0.5 } else { 1.0 }, true)
        } else if receiver.wideband.contains(&sender.channel.band()) {
            (1.0, false)
        } else if sender.wide || receiver.wide {
            let (sent, heard) = ((sender.channel, sender.wide), (receiver.channel, receiver.wide));
            (self.leakage.share_of_halves(sent, heard), false)
        } else {
            (self.leakage.share(sender.channel, receiver.channel), false)
        };
        let (share, decodes) =
            receiver.code.map_or((1.0, sender.code.is_none()), |code| code.share(sender.code));
        let passed = overlap * share;
        (passed > 0.0).then_some((passed, tuned && decodes))
    }

    /// Finds all radios in physical range of `from`.
    fn search(&mut self, from: usize, at: Instant) {
        let mut list = core::mem::take(&mut self.lists[from]);
        list.near.clear();
        list.tuning = 0;
        let own_speed = self.places[from].mobility.top_speed();
        let (fastest, gain) = self.extremes();
        let budget = self.places[from].eirp_dbm + gain - self.least();
        let hertz = self.places[from].channel.hertz();
        let reach = self.loss.reach_m(budget, hertz);
        let speed = own_speed + fastest;
        // A tenth of the range as slack: fewer searches, slightly more candidates.
        let slack = reach.map_or(f64::INFINITY, |reach| (reach * 0.1).max(1.0));
        let here = self.places[from].mobility.position(at);
        let mut nearby = core::mem::take(&mut self.nearby);
        nearby.clear();
        let some = reach.is_some_and(|reach| {
            let places = self.places.iter_mut().map(|place| place.mobility.position(at));
            self.work += self.index.refresh(at, reach, fastest, places);
            self.index.near(here, reach + slack, &mut nearby)
        });
        if !some {
            nearby.extend(0..u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        }
        list.moving = own_speed > 0.0;
        for &radio in nearby.iter().filter(|&&radio| radio as usize != from) {
            let to = radio as usize;
            let moves = own_speed > 0.0 || self.places[to].mobility.top_speed() > 0.0;
            if let Some(reach) = reach {
                self.work += 1;
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
            list.near.push(Candidate { radio, delay_ns, power: linear(dbm), moves });
        }
        self.nearby = nearby;
        list.near_until = Some(travel(slack, speed).map_or(Instant::NEVER, |span| at + span));
        self.lists[from] = list;
    }
}
