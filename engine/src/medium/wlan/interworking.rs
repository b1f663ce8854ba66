//! Frames between radios with and without an 802.11 stack of their node.
//!
//! An Ethernet radio sends to a stack the frame that a capture of the medium shows. It reads the
//! management frames of a stack like those of its own kind, and translates data. Authentication
//! frames are exchanged only with stacks; among Ethernet radios association implies it.

use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::Medium;
use crate::medium::bss::cell::{Cell, Course};
use crate::medium::bss::management::Notice;
use crate::medium::monitor::capture;
use crate::medium::outside::Outside;
use crate::medium::signal::{Heard, Sending};
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::wlan::header::{Header, Type, flag};
use crate::medium::wlan::management::Management;
use crate::medium::wlan::status::dbm;
use crate::medium::wlan::translation;
use crate::medium::wlan::translation::Body;
use crate::time::Instant;

impl Medium {
    /// The 802.11 frame of an Ethernet radio, as its receivers see it.
    pub(in crate::medium) fn as_mpdu(&mut self, sending: &Sending, outside: &mut impl Outside) -> Frame {
        let (mut ethernet, mut octets) = core::mem::take(&mut self.scratch);
        ethernet.clear();
        octets.clear();
        if let Some(frame) = &sending.frame {
            outside.complete(frame, &mut ethernet);
        }
        capture::frame(&self.view(sending, None, outside), &ethernet, &mut octets);
        let made = outside.make(&octets);
        self.scratch = (ethernet, octets);
        let origin = Frame { origin: outside.origin(RadioId(sending.from)), entered: sending.start, ..made };
        sending.frame.map_or(origin, |frame| Frame { origin: frame.origin, entered: frame.entered, ..made })
    }

    /// Handles a frame of a stack that an Ethernet radio received.
    pub(in crate::medium) fn take_from_stack(
        &mut self,
        at: Instant,
        sending: &mut Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        let Some(frame) = sending.frame else { return };
        let index = ear.radio as usize;
        let octets = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
        let Some(header) = Header::parse(octets) else { return };
        let mut notice = None;
        let mut ethernet = None;
        let mut refused = None;
        match header.kind() {
            Some(Type::Management) => notice = self.notice(&header, octets, sending, ear),
            Some(Type::Data) => match translation::body(&header, octets) {
                Body::Nothing => {}
                Body::Frame if self.accepts(index, sending.from, &header) => {
                    let (_, out) = &mut self.scratch;
                    out.clear();
                    ethernet = translation::to_ethernet(octets, out).then_some(());
                }
                Body::Frame => refused = Some(Why::NotAssociated),
                Body::Unreadable => refused = Some(Why::Malformed),
            },
            _ => {}
        }
        let unicast = !(sending.to == To::Group || sending.no_ack);
        if unicast {
            self.mark_arrived(sending);
        } else if refused.is_none() {
            sending.taken += 1;
        } else {
            return;
        }
        outside.share(&frame);
        if let Some(why) = refused {
            outside.dropped(RadioId(ear.radio), at, frame, why);
            let home = matches!(self.core.radios[index].cell, Cell::AccessPoint { .. });
            if home && header.control[1] & (flag::TO_DS | flag::FROM_DS) == flag::TO_DS {
                let to = To::Radio(RadioId(sending.from));
                self.manage_to(index, Kind::Deauthentication, to, Some(header.transmitter), outside);
            }
            return;
        }
        if ethernet.is_none() {
            outside.consumed(RadioId(ear.radio), at, frame);
        } else {
            let (_, octets) = &self.scratch;
            let made = outside.make(octets);
            let made = Frame { origin: frame.origin, entered: frame.entered, ..made };
            outside.resized(&frame, &made);
            outside.release(frame);
            let course = self.course_of(index, outside.octets(&made));
            self.carry_on(index, at, course, made, outside);
        }
        if let Some(notice) = notice {
            self.noticed(index, &notice, outside);
        }
    }

    /// True if an Ethernet radio accepts this data frame of a stack.
    fn accepts(&self, index: usize, from: u32, header: &Header) -> bool {
        let Some([_, source, network]) = translation::addresses(header) else { return false };
        let own = self.core.radios[index].settings.mac;
        let way = header.control[1] & (flag::TO_DS | flag::FROM_DS);
        match &self.core.radios[index].cell {
            Cell::AccessPoint { stations, .. } => {
                way == flag::TO_DS && network == own && stations.contains(&from)
            }
            Cell::Station(station) => {
                way == flag::FROM_DS && station.is_at(RadioId(from), network) && source != own
            }
            Cell::AdHoc(cell) => way == 0 && network == capture::cell_address(&cell.ssid),
            Cell::Wlan => false,
        }
    }

    /// What a management frame of a stack says to an Ethernet radio.
    fn notice(&self, header: &Header, octets: &[u8], sending: &Sending, ear: &Heard) -> Option<Notice> {
        let body = octets.get(header.length..)?;
        if header.control[1] & flag::PROTECTED != 0 {
            return None;
        }
        let text = |ssid: &[u8]| String::from_utf8_lossy(ssid).into_owned();
        let mut notice = Notice {
            from: RadioId(sending.from),
            address: header.transmitter,
            kind: Kind::Wlan,
            ssid: String::new(),
            access_point: false,
            refused: false,
            channel: sending.channel,
            dbm: f64::from(dbm(ear.power)),
        };
        match Management::parse(header.subtype(), body)? {
            Management::Beacon(said) | Management::ProbeResponse(said) => {
                let beacon = header.subtype() == 8;
                notice.kind = if beacon { Kind::Beacon } else { Kind::ProbeResponse };
                notice.ssid = text(said.ssid);
                notice.access_point = said.is_access_point();
                // An Ethernet radio has no keys: such a network is none that it could join.
                notice.refused = said.is_private();
            }
            Management::ProbeRequest(ssid) => (notice.kind, notice.ssid) = (Kind::ProbeRequest, text(ssid)),
            Management::Authentication { algorithm, transaction, status } => {
                let answer = transaction == 2;
                let access_point =
                    matches!(self.core.radios[ear.radio as usize].cell, Cell::AccessPoint { .. });
                if answer == access_point {
                    return None;
                }
                notice.kind = Kind::Authentication;
                notice.refused = algorithm != 0 || status != 0;
            }
            Management::AssociationRequest(ssid) => {
                (notice.kind, notice.ssid) = (Kind::AssociationRequest, text(ssid));
            }
            Management::AssociationResponse { status, .. } => {
                notice.kind = Kind::AssociationResponse;
                notice.refused = status != 0;
            }
            Management::Leave(_) => notice.kind = Kind::Deauthentication,
            Management::Other => return None,
        }
        Some(notice)
    }

    /// True if the radio belongs to a stack.
    pub(in crate::medium) fn is_stack(&self, radio: Option<RadioId>) -> bool {
        radio.is_some_and(|radio| self.core.radios[radio.index()].wideband.is_some())
    }

    /// Records that the first frame of the sender's queue has arrived; true if it had before.
    pub(in crate::medium) fn mark_arrived(&mut self, sending: &Sending) -> bool {
        let queue = &mut self.core.radios.awake(sending.from as usize).contention.lanes
            [usize::from(sending.lane)]
        .queue;
        queue.front_mut().is_some_and(|first| core::mem::replace(&mut first.arrived, true))
    }

    /// Receiver address of a frame to a radio of a stack: the one that the frame, or the cell,
    /// names.
    pub(in crate::medium) fn address_at_stack(
        &self,
        sending: &Sending,
        octets: Option<&[u8]>,
    ) -> Option<[u8; 6]> {
        if let Cell::Station(station) = &self.core.radios[sending.from as usize].cell {
            return Some(station.network());
        }
        octets?.get(..6)?.try_into().ok()
    }

    /// Action for a frame that an Ethernet radio has accepted from a stack.
    fn course_of(&self, index: usize, octets: &[u8]) -> Course {
        let own = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        match &self.core.radios[index].cell {
            Cell::AccessPoint { .. } => match self.address(own, octets) {
                Some(To::Group) => Course::Both,
                Some(to) => Course::Relay(to),
                None => Course::Deliver,
            },
            _ => Course::Deliver,
        }
    }
}
