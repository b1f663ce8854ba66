//! Who belongs together: independent cells, access points and their stations.
//!
//! An access point sends beacons; a station scans channel by channel, joins the strongest access
//! point of its network, and looks for a better one when the beacons' power falls or they stay
//! away (IEEE Std 802.11-2020, 11.1 and 11.3). Authentication is open and takes no frames of its
//! own. A station that joins an access point leaves all others: their distribution system is
//! taken to tell them.

use std::collections::BTreeSet;

use super::air::Sending;
use super::phy::Channel;
use super::radio::{Kind, RadioId, To, Waiting};
use super::reach::Heard;
use super::settings::{Membership, Roaming};
use super::{Event, Medium, Outside};
use crate::calendar::Class;
use crate::fate::Why;
use crate::time::{Instant, Span};

/// Longest wait for the answer to an association request.
const ADMISSION: Span = Span::from_millis(100);
/// Weight of a new beacon in the mean power: as for round-trip times, an eighth.
const WEIGHT: f64 = 0.125;

/// How a radio belongs to others.
#[derive(Debug)]
pub(super) enum Cell {
    /// To everybody in range.
    AdHoc,
    /// Stations belong to it.
    AccessPoint { ssid: String, beacon: Span, stations: BTreeSet<u32> },
    /// To an access point, or to nobody yet.
    Station(Box<Station>),
}

/// A station's search and membership.
#[derive(Debug)]
pub(super) struct Station {
    roaming: Roaming,
    channels: Vec<Channel>,
    joined: Option<RadioId>,
    /// Mean power of its access point's beacons, dBm.
    power_dbm: f64,
    beacon_at: Instant,
    /// Until then faint beacons are put up with.
    content_until: Instant,
    doing: Search,
    /// It was told to look for another network.
    leaving: bool,
    /// Counts steps, so that timers of earlier ones are known as old.
    step: u32,
}

#[derive(Debug)]
enum Search {
    /// Content where it is.
    None,
    /// On a channel of the list, with what was found so far.
    Scanning { at: usize, found: Vec<(RadioId, Channel, f64)> },
    /// Has asked this access point.
    Asking(RadioId),
}

/// What becomes of a data frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// To the node.
    Deliver,
    /// On the air again, to these.
    Relay(To),
    /// To the node, and on the air to everybody.
    Both,
    /// Nothing: it is another cell's, or the radio's own come back.
    Ignore,
}

impl Station {
    /// Its access point.
    pub(super) fn home(&self) -> Option<RadioId> {
        self.joined
    }

    /// Name of its network.
    pub(super) fn ssid(&self) -> &str {
        &self.roaming.ssid
    }
}

impl Cell {
    /// The membership that the settings ask for, on channels that were checked.
    pub(super) fn new(membership: &Membership, channels: Vec<Channel>) -> Self {
        match membership {
            Membership::AdHoc => Self::AdHoc,
            Membership::AccessPoint { ssid, beacon_ns } => Self::AccessPoint {
                ssid: ssid.clone(),
                beacon: Span::from_nanos(*beacon_ns),
                stations: BTreeSet::new(),
            },
            Membership::Station(roaming) => Self::Station(Box::new(Station {
                roaming: roaming.clone(),
                channels,
                joined: None,
                power_dbm: f64::NEG_INFINITY,
                beacon_at: Instant::ZERO,
                content_until: Instant::ZERO,
                doing: Search::None,
                leaving: false,
                step: 0,
            })),
        }
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Medium {
    /// Whom a node's frame is for on the air; none if the radio has nobody to give it to.
    pub(super) fn address(&self, radio: RadioId, octets: &[u8]) -> Option<To> {
        let Some(Ok(address)) = octets.get(..6).map(<[u8; 6]>::try_from) else { return Some(To::Nobody) };
        let group = address[0] & 1 == 1;
        let known = self.addresses.get(&address).copied();
        match &self.radios[radio.index()].cell {
            _ if group && !matches!(self.radios[radio.index()].cell, Cell::Station(_)) => Some(To::Group),
            Cell::AdHoc => Some(known.map_or(To::Nobody, To::Radio)),
            Cell::AccessPoint { stations, .. } => {
                known.filter(|station| stations.contains(&station.0)).map(To::Radio)
            }
            Cell::Station(station) => station.joined.map(To::Radio),
        }
    }

    /// The access point that a station has joined, or the radio itself if it is one.
    #[must_use]
    pub fn access_point(&self, radio: RadioId) -> Option<RadioId> {
        match &self.radios[radio.index()].cell {
            Cell::AdHoc => None,
            Cell::AccessPoint { .. } => Some(radio),
            Cell::Station(station) => station.joined,
        }
    }

    /// True if data of one radio is meant for the other, as cells go.
    pub(super) fn belongs(&self, from: u32, to: u32) -> bool {
        let cell = |radio: u32| &self.radios[radio as usize].cell;
        match (cell(from), cell(to)) {
            (Cell::AdHoc, Cell::AdHoc) => true,
            (Cell::AccessPoint { .. }, Cell::Station(station)) => station.joined == Some(RadioId(from)),
            (Cell::Station(_), Cell::AccessPoint { stations, .. }) => stations.contains(&from),
            _ => false,
        }
    }

    /// What becomes of a data frame that arrived at radio `index`.
    pub(super) fn course(&self, index: usize, sending: &Sending, octets: &[u8]) -> Course {
        if !self.belongs(sending.from, number(index)) {
            return Course::Ignore;
        }
        match &self.radios[index].cell {
            Cell::AdHoc => Course::Deliver,
            Cell::Station(_) => {
                let own = octets.get(6..12) == Some(&self.radios[index].settings.mac[..]);
                if own { Course::Ignore } else { Course::Deliver }
            }
            Cell::AccessPoint { .. } => match self.address(RadioId(number(index)), octets) {
                Some(To::Group) => Course::Both,
                Some(to) => Course::Relay(to),
                None => Course::Deliver,
            },
        }
    }

    /// A radio begins its life in its cell.
    pub(super) fn enlist(&mut self, index: usize) {
        let radio = number(index);
        match &self.radios[index].cell {
            Cell::AdHoc => {}
            Cell::AccessPoint { beacon, .. } => {
                let interval = beacon.nanos();
                let phase = self.radios[index].dice.below(interval);
                let at = self.now + Span::from_nanos(phase);
                self.calendar.push(at, Class::Timer, radio, Event::Beacon { radio });
            }
            Cell::Station(_) => self.timer(index, Span::ZERO),
        }
    }

    /// Wakes a station after `span`, unless something else happens to it before.
    fn timer(&mut self, index: usize, span: Span) {
        let Cell::Station(station) = &mut self.radios[index].cell else { return };
        station.step = station.step.wrapping_add(1);
        let event = Event::Roam { radio: number(index), step: station.step };
        self.calendar.push(self.now + span, Class::Timer, number(index), event);
    }

    /// A station is to leave its network and look for another.
    pub(super) fn seek(&mut self, index: usize, ssid: &str) {
        let radio = &mut self.radios[index];
        if let Membership::Station(roaming) = &mut radio.settings.membership {
            ssid.clone_into(&mut roaming.ssid);
        }
        let Cell::Station(station) = &mut radio.cell else { return };
        ssid.clone_into(&mut station.roaming.ssid);
        station.leaving = true;
        self.timer(index, Span::ZERO);
    }

    /// Time for a beacon.
    pub(super) fn beacon(&mut self, index: usize, outside: &mut impl Outside) {
        let Cell::AccessPoint { beacon, .. } = &self.radios[index].cell else { return };
        let at = self.now + *beacon;
        // A beacon that still waits takes the next one's place.
        let waits = self.radios[index].lanes[0].queue.iter().any(|waiting| waiting.kind == Kind::Beacon);
        if self.radios[index].switched_on && !waits {
            self.manage(index, Kind::Beacon, To::Group, outside);
        }
        self.calendar.push(at, Class::Timer, number(index), Event::Beacon { radio: number(index) });
    }

    /// Queues a management frame before everything that is not under way.
    fn manage(&mut self, index: usize, kind: Kind, to: To, outside: &mut impl Outside) {
        // Elements: fixed fields 12, name 2 and up to 32, rates 10, channel 3, traffic map 6.
        let body = match kind {
            Kind::Beacon | Kind::ProbeResponse => 12 + 2 + 10 + 3 + 6,
            Kind::ProbeRequest => 2 + 10,
            Kind::AssociationRequest => 4 + 2 + 10,
            _ => 6 + 10,
        };
        let name = match &self.radios[index].cell {
            Cell::AccessPoint { ssid, .. } => ssid.len(),
            Cell::Station(station) => station.roaming.ssid.len(),
            Cell::AdHoc => 0,
        };
        let name = if kind == Kind::AssociationResponse { 0 } else { name };
        let waiting = Waiting::new(kind, to, body + number(name));
        self.enqueue(index, 0, self.now, waiting, outside);
    }

    /// A station's timer has come.
    pub(super) fn roam(&mut self, index: usize, step: u32, outside: &mut impl Outside) {
        let engaged = self.radios[index].engaged();
        let Cell::Station(station) = &mut self.radios[index].cell else { return };
        if station.step != step {
            return;
        }
        if engaged {
            // Not in the middle of an exchange.
            return self.timer(index, Span::from_millis(1));
        }
        if core::mem::take(&mut station.leaving) {
            station.doing = Search::Scanning { at: 0, found: Vec::new() };
            self.abandon(index, outside);
            return self.scan(index, outside);
        }
        match &mut station.doing {
            Search::None => {
                let lost = Span::from_nanos(station.roaming.lost_ns);
                let silent = self.now.since(station.beacon_at);
                let faint = station.power_dbm < station.roaming.leave_dbm;
                if station.joined.is_some() && !faint && silent < lost {
                    let left = lost.saturating_sub(silent);
                    return self.timer(index, left);
                }
                station.doing = Search::Scanning { at: 0, found: Vec::new() };
            }
            Search::Scanning { at, .. } => *at += 1,
            Search::Asking(_) => {
                // No answer: it has left its old access point and found no new one.
                station.doing = Search::Scanning { at: 0, found: Vec::new() };
                self.abandon(index, outside);
            }
        }
        self.scan(index, outside);
    }

    /// Listens on the next channel, or decides.
    fn scan(&mut self, index: usize, outside: &mut impl Outside) {
        let Cell::Station(station) = &mut self.radios[index].cell else { return };
        let Search::Scanning { at, found } = &mut station.doing else { return };
        if let Some(&channel) = station.channels.get(*at) {
            let (dwell, active) = (Span::from_nanos(station.roaming.dwell_ns), station.roaming.active);
            self.radios[index].away = true;
            self.retune(index, channel);
            self.timer(index, dwell);
            if active {
                self.manage(index, Kind::ProbeRequest, To::Group, outside);
            }
            return;
        }
        let found = core::mem::take(found);
        let silent = self.now.since(station.beacon_at) >= Span::from_nanos(station.roaming.lost_ns);
        let seen = |old: &RadioId| !silent || found.iter().any(|seen| seen.0 == *old);
        let old = station.joined.filter(seen);
        let best = found.iter().copied().max_by(|a, b| a.2.total_cmp(&b.2));
        let home = old.and_then(|old| found.iter().copied().find(|seen| seen.0 == old));
        let stays = match (home, best) {
            (Some(home), Some(best)) => best.2 < home.2 + station.roaming.better_db,
            _ => best.is_none() && old.is_some(),
        };
        if let (true, Some(old)) = (stays, old) {
            let channel = self.reach.places[old.index()].channel;
            return self.settle_with(index, old, channel, home.map(|seen| seen.2));
        }
        let Some((access_point, channel, _)) = best else {
            self.abandon(index, outside);
            let Cell::Station(station) = &mut self.radios[index].cell else { return };
            station.doing = Search::Scanning { at: 0, found: Vec::new() };
            return self.scan(index, outside);
        };
        station.doing = Search::Asking(access_point);
        self.retune(index, channel);
        self.timer(index, ADMISSION);
        self.manage(index, Kind::AssociationRequest, To::Radio(access_point), outside);
    }

    /// A station has nobody to send to any more: what waits is dropped.
    fn abandon(&mut self, index: usize, outside: &mut impl Outside) {
        let id = RadioId(number(index));
        for other in &mut self.radios {
            if let Cell::AccessPoint { stations, .. } = &mut other.cell {
                stations.remove(&id.0);
            }
        }
        let radio = &mut self.radios[index];
        if let Cell::Station(station) = &mut radio.cell {
            station.joined = None;
        }
        for lane in &mut radio.lanes {
            for waiting in core::mem::take(&mut lane.queue) {
                if waiting.kind == Kind::Data {
                    radio.waiting -= 1;
                    waiting.discard(id, self.now, Why::NotAssociated, outside);
                } else {
                    lane.queue.push_back(waiting);
                }
            }
        }
        radio.set_access();
        self.timers.set(index, self.radios[index].next_at());
    }

    /// A station is at home with an access point; what waits goes there.
    fn settle_with(&mut self, index: usize, home: RadioId, channel: Channel, power_dbm: Option<f64>) {
        self.retune(index, channel);
        let radio = &mut self.radios[index];
        radio.away = false;
        let Cell::Station(station) = &mut radio.cell else { return };
        station.doing = Search::None;
        station.joined = Some(home);
        station.beacon_at = self.now;
        station.power_dbm = power_dbm.unwrap_or(station.power_dbm);
        let pause = Span::from_nanos(station.roaming.lost_ns);
        // Having looked around, it does not do so again at once.
        station.content_until = self.now + pause;
        for waiting in radio.lanes.iter_mut().flat_map(|lane| &mut lane.queue) {
            if waiting.kind == Kind::Data {
                waiting.to = To::Radio(home);
            }
        }
        radio.resume(self.now);
        self.timers.set(index, self.radios[index].next_at());
        self.timer(index, pause);
    }

    /// A management frame has arrived.
    pub(super) fn managed(
        &mut self,
        index: usize,
        sending: &Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        let (from, own) = (RadioId(sending.from), ear.radio);
        let dbm = 10.0 * ear.power.log10();
        let theirs = match &self.radios[from.index()].cell {
            Cell::AccessPoint { ssid, .. } => ssid.clone(),
            Cell::Station(station) => station.roaming.ssid.clone(),
            Cell::AdHoc => return,
        };
        let channel = self.reach.places[from.index()].channel;
        match (&mut self.radios[index].cell, sending.kind) {
            (Cell::Station(station), Kind::Beacon | Kind::ProbeResponse)
                if station.roaming.ssid == theirs =>
            {
                if let Search::Scanning { found, .. } = &mut station.doing {
                    match found.iter_mut().find(|seen| seen.0 == from) {
                        Some(seen) => seen.2 = seen.2.max(dbm),
                        None => found.push((from, channel, dbm)),
                    }
                }
                if station.joined == Some(from) {
                    station.beacon_at = self.now;
                    station.power_dbm += WEIGHT * (dbm - station.power_dbm);
                    let faint = station.power_dbm < station.roaming.leave_dbm;
                    if faint && matches!(station.doing, Search::None) && self.now >= station.content_until {
                        self.timer(index, Span::ZERO);
                    }
                }
            }
            (Cell::Station(station), Kind::AssociationResponse) => {
                if matches!(station.doing, Search::Asking(asked) if asked == from) {
                    self.settle_with(index, from, channel, Some(dbm));
                }
            }
            (Cell::AccessPoint { ssid, .. }, Kind::ProbeRequest) if *ssid == theirs => {
                self.manage(index, Kind::ProbeResponse, To::Radio(from), outside);
            }
            (Cell::AccessPoint { .. }, Kind::AssociationRequest) => {
                for (other, radio) in (0u32..).zip(&mut self.radios) {
                    if let Cell::AccessPoint { stations, .. } = &mut radio.cell {
                        if other == own {
                            stations.insert(from.0)
                        } else {
                            stations.remove(&from.0)
                        };
                    }
                }
                self.manage(index, Kind::AssociationResponse, To::Radio(from), outside);
            }
            _ => {}
        }
    }
}
