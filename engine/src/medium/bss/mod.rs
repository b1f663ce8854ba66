//! Basic service sets: independent cells (IBSS), access points and their stations.
//!
//! An access point sends beacons. A station scans channel by channel, joins the strongest access
//! point of its network, and scans for a better one when the beacons become weak or cease (IEEE Std
//! 802.11-2020, 11.1 and 11.3). Authentication is open and needs no separate frames. A station that
//! joins an access point leaves all others: the distribution system is assumed to inform them. An
//! access point that bridges to a wire announces the station there.
//! A station that hops does not look on channels one after the other: it listens on its sequence.
//!
//! Independent cells with the same name are one cell; joining it takes no frames. At each beacon
//! time every member draws a delay, and the first to send cancels the beacons of the others
//! (11.1.3.5); their clocks are assumed to agree. A cell without a name sends no beacons.

pub(super) mod cell;
mod distribution;
pub(super) mod management;
pub(super) mod power_save;

use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::medium::bss::cell::{Cell, Course};
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::radio::scan_state::{Order, Sighting};
use crate::medium::settings::radio::Membership;
use crate::medium::signal::Sending;
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// Longest wait for an association response.
const ADMISSION: Span = Span::from_millis(100);
/// Weight of a new beacon in the mean power: one eighth, as for round-trip times.
const WEIGHT: f64 = 0.125;

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Medium {
    /// Receiver address on the air for a node's frame; `None` if the radio has no possible
    /// receiver.
    pub(super) fn address(&self, radio: RadioId, octets: &[u8]) -> Option<To> {
        let Some(Ok(address)) = octets.get(..6).map(<[u8; 6]>::try_from) else { return Some(To::Nobody) };
        let group = address[0] & 1 == 1;
        let known = self.addresses.get(&address).copied();
        match &self.core.radios[radio.index()].cell {
            _ if group && !matches!(self.core.radios[radio.index()].cell, Cell::Station(_)) => {
                Some(To::Group)
            }
            Cell::AdHoc(_) => Some(known.map_or(To::Nobody, To::Radio)),
            Cell::AccessPoint { stations, .. } => {
                known.filter(|station| stations.contains(&station.0)).map(To::Radio)
            }
            Cell::Station(station) => station.joined.map(To::Radio),
            Cell::Wlan => None,
        }
    }

    /// The access point of a station, or the radio itself if it is an access point.
    #[must_use]
    pub fn access_point(&self, radio: RadioId) -> Option<RadioId> {
        match &self.core.radios[radio.index()].cell {
            Cell::AdHoc(_) | Cell::Wlan => None,
            Cell::AccessPoint { .. } => Some(radio),
            Cell::Station(station) => station.joined,
        }
    }

    /// True if, by cell membership, one radio accepts data of the other.
    pub(super) fn belongs(&self, from: u32, to: u32) -> bool {
        let cell = |radio: u32| &self.core.radios[radio as usize].cell;
        match (cell(from), cell(to)) {
            (Cell::AdHoc(one), Cell::AdHoc(other)) => one.ssid == other.ssid,
            (Cell::AccessPoint { .. }, Cell::Station(station)) => station.joined == Some(RadioId(from)),
            (Cell::Station(_), Cell::AccessPoint { stations, .. }) => stations.contains(&from),
            (Cell::Wlan, Cell::Station(station)) => station.joined == Some(RadioId(from)),
            (Cell::Station(station), Cell::Wlan) => station.joined == Some(RadioId(to)),
            (Cell::Wlan, Cell::AccessPoint { stations, .. }) => stations.contains(&from),
            (Cell::AccessPoint { stations, .. }, Cell::Wlan) => stations.contains(&to),
            (Cell::Wlan, _) | (_, Cell::Wlan) => true,
            _ => false,
        }
    }

    /// Action for a data frame received by radio `index`.
    pub(super) fn course(&self, index: usize, sending: &Sending, octets: &[u8]) -> Course {
        if !self.belongs(sending.from, number(index)) {
            return Course::Ignore;
        }
        match &self.core.radios[index].cell {
            Cell::AdHoc(_) => Course::Deliver,
            Cell::Station(_) => {
                let own = octets.get(6..12) == Some(&self.core.radios[index].settings.mac[..]);
                if own { Course::Ignore } else { Course::Deliver }
            }
            Cell::AccessPoint { .. } => match self.address(RadioId(number(index)), octets) {
                Some(To::Group) => Course::Both,
                Some(to) => Course::Relay(to),
                None => Course::Deliver,
            },
            Cell::Wlan => Course::Ignore,
        }
    }

    /// Initialises a radio's membership of its cell.
    pub(super) fn enlist(&mut self, index: usize) {
        match &self.core.radios[index].cell {
            Cell::AdHoc(_) => self.take_turns(index),
            Cell::AccessPoint { beacon, .. } => {
                let interval = beacon.nanos();
                let phase = self.core.radios.awake(index).random.below(interval);
                self.next_beacon(index, self.core.now + Span::from_nanos(phase));
            }
            Cell::Station(_) => self.timer(index, Span::ZERO),
            Cell::Wlan => {}
        }
    }

    fn next_beacon(&mut self, index: usize, at: Instant) {
        let radio = number(index);
        self.core.calendar.push(at, Class::Timer, radio, Event::Beacon { radio });
    }

    /// Starts the beacons of a member of a named independent cell.
    fn take_turns(&mut self, index: usize) {
        let Cell::AdHoc(cell) = self.core.radios.cell(index) else { return };
        if !cell.ssid.is_empty() && !core::mem::replace(&mut cell.turns, true) {
            self.next_turn(index);
        }
    }

    /// Draws the delay after the next beacon time of the independent cell.
    fn next_turn(&mut self, index: usize) {
        let radio = self.core.radios.awake(index);
        let Cell::AdHoc(cell) = &radio.cell else { return };
        let beacon = cell.beacon.nanos();
        let due = Instant::from_nanos((self.core.now.nanos() / beacon + 1) * beacon);
        let slots = radio.random.below(2 * u64::from(radio.layer.phy.cw_min) + 1);
        let delay = radio.layer.slot * slots;
        self.next_beacon(index, due + delay);
    }

    /// Makes a station leave its network and look for another, or moves a member of an independent
    /// cell to another cell.
    pub(super) fn seek(&mut self, index: usize, name: &str) {
        let radio = self.core.radios.awake(index);
        match (&mut radio.settings.membership, &mut radio.cell) {
            (Membership::Station(roaming), Cell::Station(station)) => {
                name.clone_into(&mut roaming.ssid);
                name.clone_into(&mut station.roaming.ssid);
                station.leaving = true;
                self.timer(index, Span::ZERO);
            }
            (Membership::AdHoc { ssid, .. }, Cell::AdHoc(cell)) => {
                name.clone_into(ssid);
                name.clone_into(&mut cell.ssid);
                (cell.heard, cell.speaks) = (Instant::ZERO, false);
                self.withdraw(index, Kind::Beacon);
                self.take_turns(index);
            }
            _ => {}
        }
    }

    /// Handles a beacon timer.
    pub(super) fn beacon(&mut self, index: usize, outside: &mut impl Outside) {
        let now = self.core.now;
        self.wake(index);
        let radio = self.core.radios.awake(index);
        // A beacon that is still queued replaces the next one.
        let waits = radio.contention.lanes[0].queue.iter().any(|waiting| waiting.kind == Kind::Beacon);
        let fit = radio.switched_on && !radio.away && !waits;
        match &mut radio.cell {
            Cell::AccessPoint { beacon, .. } => {
                let at = now + *beacon;
                if fit {
                    self.manage(index, Kind::Beacon, To::Group, outside);
                }
                self.next_beacon(index, at);
            }
            Cell::AdHoc(cell) if cell.ssid.is_empty() => cell.turns = false,
            Cell::AdHoc(cell) => {
                let due = Instant::from_nanos(now.nanos() / cell.beacon.nanos() * cell.beacon.nanos());
                if fit && cell.heard < due {
                    cell.speaks = true;
                    self.manage(index, Kind::Beacon, To::Group, outside);
                }
                self.next_turn(index);
            }
            Cell::Station(_) | Cell::Wlan => {}
        }
    }

    /// Returns true once for a station that was told to look for another network.
    pub(super) fn leaves(&mut self, index: usize) -> bool {
        let Cell::Station(station) = self.core.radios.cell(index) else { return false };
        core::mem::take(&mut station.leaving)
    }

    /// True for a station that awaits an association response.
    pub(super) fn is_asking(&self, index: usize) -> bool {
        matches!(&self.core.radios[index].cell, Cell::Station(station) if station.asking.is_some())
    }

    /// Disassociates a station and starts a scan.
    pub(super) fn start_over(&mut self, index: usize, outside: &mut impl Outside) {
        self.abandon(index, outside);
        self.look_for_network(index, outside);
    }

    fn look_for_network(&mut self, index: usize, outside: &mut impl Outside) {
        let now = self.core.now;
        let radio = self.core.radios.awake(index);
        let hopping = radio.hops.as_ref().map(|hops| vec![hops.channel(now)]);
        let Cell::Station(station) = &mut radio.cell else { return };
        station.asking = None;
        let order = Order {
            // A station that hops listens where its sequence leads it.
            channels: hopping.unwrap_or_else(|| station.channels.clone()),
            dwell: Span::from_nanos(station.roaming.dwell_ns),
            active: station.roaming.active,
            ssid: station.roaming.ssid.clone(),
            asked: false,
        };
        self.look(index, order, outside);
    }

    /// Decides whether a station that is not scanning should start to scan.
    pub(super) fn roam(&mut self, index: usize, outside: &mut impl Outside) {
        let Cell::Station(station) = &self.core.radios[index].cell else { return };
        if station.asking.is_some() {
            // No response: it has left its old access point and found no new one.
            return self.start_over(index, outside);
        }
        let lost = Span::from_nanos(station.roaming.lost_ns) + self.absence(index);
        let silent = self.core.now.since(station.beacon_at);
        let faint = station.power_dbm < station.roaming.leave_dbm;
        if station.joined.is_some() && !faint && silent < lost {
            return self.timer(index, lost.saturating_sub(silent));
        }
        self.look_for_network(index, outside);
    }

    /// Resumes normal operation after a scan that the node requested.
    pub(super) fn go_on(&mut self, index: usize) {
        let Cell::Station(station) = self.core.radios.cell(index) else { return };
        // No beacon could be received during the scan.
        station.beacon_at = self.core.now;
        let pause = if station.joined.is_some() { station.roaming.lost_ns } else { 0 };
        self.timer(index, Span::from_nanos(pause));
    }

    /// Selects an access point after a station's scan.
    pub(super) fn decide(&mut self, index: usize, found: &[Sighting], outside: &mut impl Outside) {
        let Cell::Station(station) = self.core.radios.cell(index) else { return };
        let fits = |seen: &&Sighting| seen.access_point && seen.ssid == station.roaming.ssid;
        let silent = self.core.now.since(station.beacon_at) >= Span::from_nanos(station.roaming.lost_ns);
        let seen = |old: &RadioId| !silent || found.iter().filter(fits).any(|seen| seen.radio == *old);
        let old = station.joined.filter(seen);
        let best = found.iter().filter(fits).max_by(|a, b| a.signal_dbm.total_cmp(&b.signal_dbm));
        let home = old.and_then(|old| found.iter().find(|seen| seen.radio == old));
        let stays = match (home, best) {
            (Some(home), Some(best)) => best.signal_dbm < home.signal_dbm + station.roaming.better_db,
            _ => best.is_none() && old.is_some(),
        };
        if let (true, Some(old)) = (stays, old) {
            let channel = self.core.reach.places[old.index()].channel;
            let power_dbm = home.map(|seen| seen.signal_dbm);
            return self.settle_with(index, old, channel, power_dbm, outside);
        }
        let Some(best) = best else {
            self.abandon(index, outside);
            return self.timer(index, Span::ZERO);
        };
        (station.asking, station.asked_network) = (Some(best.radio), best.network);
        self.retune(index, best.channel);
        self.timer(index, ADMISSION + self.absence(index));
        let stack = self.receiver_at(best.radio, best.network);
        let first = if stack.is_some() { Kind::Authentication } else { Kind::AssociationRequest };
        self.manage_to(index, first, To::Radio(best.radio), stack, outside);
    }

    /// Drops the queued frames of a station without an access point.
    fn abandon(&mut self, index: usize, outside: &mut impl Outside) {
        let id = RadioId(number(index));
        for other in 0..self.core.radios.len() {
            if let Cell::AccessPoint { stations, .. } = self.core.radios.cell(other) {
                stations.remove(&id.0);
                self.station_returns(other, id, false, outside);
            }
        }
        let radio = self.core.radios.awake(index);
        if let Cell::Station(station) = &mut radio.cell {
            station.joined = None;
        }
        for lane in &mut radio.contention.lanes {
            for waiting in core::mem::take(&mut lane.queue) {
                if waiting.kind == Kind::Data {
                    radio.waiting -= 1;
                    waiting.discard(id, self.core.now, Why::NotAssociated, outside);
                } else {
                    lane.queue.push_back(waiting);
                }
            }
        }
        radio.set_access();
        self.core.arm(index);
        self.move_windows(index, outside);
    }

    /// Associates a station with an access point; queued frames go there.
    fn settle_with(
        &mut self,
        index: usize,
        home: RadioId,
        channel: Channel,
        power_dbm: Option<f64>,
        outside: &mut impl Outside,
    ) {
        self.retune(index, channel);
        let radio = self.core.radios.awake(index);
        let Cell::Station(station) = &mut radio.cell else { return };
        if station.asking.take().is_some() {
            station.network = station.asked_network;
        }
        station.joined = Some(home);
        station.beacon_at = self.core.now;
        station.power_dbm = power_dbm.unwrap_or(station.power_dbm);
        let pause = Span::from_nanos(station.roaming.lost_ns);
        // After a scan, do not scan again at once.
        station.content_until = self.core.now + pause;
        radio.number_for(home);
        for waiting in radio.contention.lanes.iter_mut().flat_map(|lane| &mut lane.queue) {
            if waiting.kind == Kind::Data {
                waiting.to = To::Radio(home);
            }
        }
        let next = if radio.ordered.is_some() { Span::ZERO } else { pause };
        self.move_windows(index, outside);
        self.come_back(index);
        self.timer(index, next);
    }
}
