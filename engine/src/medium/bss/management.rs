//! Management frames of Ethernet radios: what they send, and how they react to received ones.

use crate::math;
use crate::medium::Medium;
use crate::medium::bss::cell::Cell;
use crate::medium::bss::{WEIGHT, number};
use crate::medium::mac::waiting::Waiting;
use crate::medium::monitor::capture;
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::radio::scan_state::Sighting;
use crate::medium::signal::{Heard, Sending};
use crate::medium::types::{Kind, RadioId, To};
use crate::time::Span;

/// What a received management frame says, whichever kind of radio sent it.
pub(in crate::medium) struct Notice {
    pub(in crate::medium) from: RadioId,
    /// Transmitter address.
    pub(in crate::medium) address: [u8; 6],
    pub(in crate::medium) kind: Kind,
    pub(in crate::medium) ssid: String,
    /// An access point announces itself.
    pub(in crate::medium) access_point: bool,
    /// The answer is no, or the network can't be joined.
    pub(in crate::medium) refused: bool,
    pub(in crate::medium) channel: Channel,
    pub(in crate::medium) dbm: f64,
}

impl Medium {
    /// Queues a management frame before all frames except one in transmission.
    pub(in crate::medium) fn manage(&mut self, index: usize, kind: Kind, to: To, outside: &mut impl Outside) {
        self.manage_to(index, kind, to, None, outside);
    }

    /// The same, with a receiver address of a stack.
    pub(in crate::medium) fn manage_to(
        &mut self,
        index: usize,
        kind: Kind,
        to: To,
        receiver: Option<[u8; 6]>,
        outside: &mut impl Outside,
    ) {
        if !self.core.radios[index].switched_on {
            return;
        }
        // Elements: fixed fields 12, name 2 and up to 32, rates, channel 3; traffic map 6, or parameters
        // of an independent cell 4.
        let rates = capture::rate_octets(self.core.radios[index].layer.phy);
        let last = if matches!(self.core.radios[index].cell, Cell::AdHoc(_)) { 4 } else { 6 };
        let body = match kind {
            Kind::Beacon | Kind::ProbeResponse => 12 + 2 + rates + 3 + last,
            Kind::ProbeRequest => 2 + rates,
            Kind::AssociationRequest => 4 + 2 + rates,
            Kind::Authentication => 6,
            Kind::Deauthentication => 2,
            _ => 6 + rates,
        };
        let named = match kind {
            Kind::AssociationResponse | Kind::Authentication | Kind::Deauthentication => 0,
            _ => self.network_name(index, kind).len(),
        };
        let waiting = Waiting { receiver, ..Waiting::new(kind, to, body + number(named)) };
        self.enqueue(index, 0, self.core.now, waiting, outside);
    }

    /// The SSID in a management frame of this radio.
    pub(in crate::medium) fn network_name(&self, index: usize, kind: Kind) -> &str {
        let radio = &self.core.radios[index];
        match (&radio.cell, &radio.scan) {
            (_, scan) if kind == Kind::ProbeRequest => scan.as_ref().map_or("", |scan| scan.ssid()),
            (Cell::AdHoc(cell), _) => &cell.ssid,
            (Cell::AccessPoint { ssid, .. }, _) => ssid,
            (Cell::Station(station), _) => &station.roaming.ssid,
            (Cell::Wlan, _) => "",
        }
    }

    /// The address to write into a frame to `radio`, if it belongs to a stack: the radio's own would
    /// not do.
    pub(super) fn receiver_at(&self, radio: RadioId, address: [u8; 6]) -> Option<[u8; 6]> {
        self.core.radios[radio.index()].wideband.as_ref().map(|_| address)
    }

    /// Handles a received management frame of an Ethernet radio.
    pub(in crate::medium) fn managed(&mut self, sending: &Sending, ear: &Heard, outside: &mut impl Outside) {
        let from = RadioId(sending.from);
        let sender = &self.core.radios[from.index()];
        let notice = Notice {
            from,
            address: sender.settings.mac,
            kind: sending.kind,
            ssid: self.network_name(from.index(), sending.kind).to_owned(),
            access_point: matches!(sender.cell, Cell::AccessPoint { .. }),
            refused: false,
            channel: sending.channel,
            dbm: 10.0 * math::log10(ear.power),
        };
        self.noticed(ear.radio as usize, &notice, outside);
    }

    /// Handles what a management frame says.
    pub(in crate::medium) fn noticed(&mut self, index: usize, notice: &Notice, outside: &mut impl Outside) {
        let &Notice { from, address, kind, access_point, refused, channel, dbm, .. } = notice;
        let (theirs, own) = (&notice.ssid, number(index));
        let reply = self.receiver_at(from, address);
        let radio = self.core.radios.awake(index);
        if let (Some(scan), Kind::Beacon | Kind::ProbeResponse, false) = (&mut radio.scan, kind, refused) {
            let (ssid, network, signal_dbm) = (theirs.clone(), address, dbm);
            let age = Span::ZERO;
            scan.sees(Sighting { radio: from, network, ssid, access_point, channel, signal_dbm, age });
        }
        let is_content = radio.scan.is_none();
        match (&mut radio.cell, kind) {
            (Cell::Station(station), Kind::Beacon | Kind::ProbeResponse)
                if station.joined == Some(from) && station.network == address =>
            {
                station.beacon_at = self.core.now;
                station.power_dbm += WEIGHT * (dbm - station.power_dbm);
                let faint = station.power_dbm < station.roaming.leave_dbm;
                if faint && is_content && station.asking.is_none() && self.core.now >= station.content_until {
                    self.timer(index, Span::ZERO);
                }
            }
            (Cell::Station(station), Kind::Authentication) if station.asking == Some(from) && !refused => {
                self.manage_to(index, Kind::AssociationRequest, To::Radio(from), reply, outside);
            }
            (Cell::Station(station), Kind::AssociationResponse)
                if station.asking == Some(from) && !refused =>
            {
                self.settle_with(index, from, channel, Some(dbm), outside);
            }
            (Cell::Station(station), Kind::Deauthentication) if station.is_at(from, address) => {
                station.leaving = true;
                self.timer(index, Span::ZERO);
            }
            (Cell::AdHoc(cell), Kind::Beacon) if cell.ssid == *theirs && !access_point => {
                (cell.heard, cell.speaks) = (self.core.now, false);
                self.withdraw(index, Kind::Beacon);
            }
            (Cell::AccessPoint { ssid, .. }, Kind::ProbeRequest) if theirs.is_empty() || ssid == theirs => {
                self.manage_to(index, Kind::ProbeResponse, To::Radio(from), reply, outside);
            }
            (Cell::AdHoc(cell), Kind::ProbeRequest)
                if cell.speaks && (theirs.is_empty() || cell.ssid == *theirs) =>
            {
                self.manage_to(index, Kind::ProbeResponse, To::Radio(from), reply, outside);
            }
            (Cell::AccessPoint { .. }, Kind::Authentication) if !refused => {
                self.manage_to(index, Kind::Authentication, To::Radio(from), reply, outside);
            }
            (Cell::AccessPoint { .. }, Kind::AssociationRequest) => {
                for other in 0..self.core.radios.len() {
                    let here = number(other) == own;
                    if let Cell::AccessPoint { stations, .. } = self.core.radios.cell(other) {
                        if here {
                            stations.insert(from.0)
                        } else {
                            stations.remove(&from.0)
                        };
                        self.station_returns(other, from, here, outside);
                    }
                }
                self.manage_to(index, Kind::AssociationResponse, To::Radio(from), reply, outside);
                self.announce_station(index, from, address, outside);
            }
            (Cell::AccessPoint { stations, .. }, Kind::Deauthentication) => {
                stations.remove(&from.0);
                self.station_returns(index, from, false, outside);
            }
            (Cell::AccessPoint { .. }, Kind::Doze) => self.station_dozes(index, from),
            (Cell::AccessPoint { .. }, Kind::Wake) => self.station_returns(index, from, true, outside),
            _ => {}
        }
    }
}
