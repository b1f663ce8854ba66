//! Scans that the virtual MACs of a card share.
//!
//! The card remembers beacons and probe responses that its virtual MACs received. A request for a
//! scan is answered in one of three ways:
//!
//! * **From the cache**, if the channel was scanned, or the network that the request names was
//!   heard, at most [`CardSettings::scan_age_ns`] ago. The card does not leave its channel, and
//!   nothing is sent. The age of each answer is counted, and stated: in [`Sighting::age`], and for
//!   a stack in [`RxStatus::tsf_us`], which is the time of the original reception.
//! * **Merged**, if another virtual MAC has asked the same on the same channel, and its answers
//!   are not complete: they are passed to both.
//! * **By a visit** to the channel ([`super::schedule`]), otherwise.
//!
//! A stack that scans in software shows its device a probe request on a channel, and nothing else.
//! So a passive scan of a stack is no request, and results can reach it only while it listens
//! there: those of the cache at once, and those of another virtual MAC when they are received. A
//! probe response is passed on with the address of the virtual MAC as its receiver, because a stack
//! ignores those to other addresses. Answers to virtual MACs of Ethernet radios are the entries of
//! their scan results.

use crate::calendar::Class;
use crate::frame::Frame;
use crate::math;
use crate::medium::card::state::{Found, PENDING, Probe, VISIT};
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::radio::scan_state::Sighting;
use crate::medium::signal::{Heard, Sending};
use crate::medium::types::{Kind, RadioId};
use crate::medium::wlan::header::{Header, Type, flag};
use crate::medium::wlan::management::Management;
use crate::medium::wlan::status::{Attempt, RxStatus, TxRequest, TxStatus, dbm};
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// Most frames that a card remembers; the oldest makes room.
const MAX_FOUND: usize = 256;

/// First octet of a probe request.
const PROBE_REQUEST: u8 = 0x40;

impl Medium {
    /// Answers a probe request of a stack without sending it, if possible; false if it has to be
    /// sent.
    pub(in crate::medium) fn consolidates(
        &mut self,
        index: usize,
        frame: Frame,
        channel: Channel,
        request: &TxRequest,
        outside: &mut impl Outside,
    ) -> bool {
        let Some(card) = self.card_of(index) else { return false };
        let octets = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
        let Some(header) = Header::parse(octets) else { return false };
        if header.kind() != Some(Type::Management) || header.control[1] & flag::PROTECTED != 0 {
            return false;
        }
        let body = octets.get(header.length..).unwrap_or(&[]);
        let Some(Management::ProbeRequest(ssid)) = Management::parse(header.subtype(), body) else {
            return false;
        };
        let (now, ssid) = (self.core.now, ssid.to_vec());
        let state = &mut self.cards[card];
        state.counts.scans_asked += 1;
        let known = state.knows(channel, &ssid, now);
        let same = |probe: &Probe| {
            probe.channel == channel && probe.ssid == ssid && !probe.shared && probe.is_open(now)
        };
        let others = state.members.iter().filter(|member| member.radio as usize != index);
        let merged = state.settings.merge_scans && others.filter_map(|m| m.probe.as_ref()).any(same);
        let shared = merged && !known;
        let address = header.transmitter;
        if let Some(member) = state.members.iter_mut().find(|member| member.radio as usize == index) {
            let probe = Probe { channel, ssid, address, asked: now, sent: None, shared };
            member.probe = (!known).then_some(probe);
        }
        if !known && !merged {
            return false;
        }
        // Of an unfinished scan, what has been received so far.
        let limit = if known { state.scan_age() } else { PENDING };
        state.counts.scans_cached += u64::from(known);
        state.counts.scans_merged += u64::from(shared);
        for place in 0..self.cards[card].results.found.len() {
            let one = &self.cards[card].results.found[place];
            if one.sighting.channel == channel && now.since(one.at) <= limit {
                let age = now.since(one.at);
                self.cards[card].count_answer(age);
                self.pass_result(card, place, index, address, now, outside);
            }
        }
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        outside.consumed(id, now, frame);
        let mut status = TxStatus { cookie: request.cookie, ..TxStatus::default() };
        status.attempts[0] = request.attempts[0].map(|step| Attempt { tries: 1, ..step });
        outside.transmitted(id, now, &status);
        true
    }

    /// Passes a remembered frame to the stack of a virtual MAC.
    fn pass_result(
        &mut self,
        card: usize,
        place: usize,
        index: usize,
        address: [u8; 6],
        at: Instant,
        outside: &mut impl Outside,
    ) {
        let one = &mut self.cards[card].results.found[place];
        if !one.beacon {
            one.octets[4..10].copy_from_slice(&address);
        }
        let made = outside.make(&one.octets);
        let made = Frame { origin: outside.origin(one.sighting.radio), entered: at, ..made };
        outside.copied(&made, 1);
        let radio = u32::try_from(index).unwrap_or(u32::MAX);
        let event = Event::DeliverWlan { radio, frame: made, status: one.status };
        self.core.calendar.push(at, Class::Arrival, radio, event);
    }

    /// Remembers a received beacon or probe response, and passes it to virtual MACs whose scans
    /// were merged with the one that it answers.
    pub(in crate::medium) fn remember(
        &mut self,
        at: Instant,
        sending: &Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        let Some(card) = self.card_of(ear.radio as usize) else { return };
        let mut octets = core::mem::take(&mut self.cards[card].results.scratch);
        octets.clear();
        match (sending.kind, sending.frame) {
            (Kind::Wlan, Some(frame)) => {
                let all = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
                if matches!(all.first(), Some(0x50 | 0x80)) {
                    octets.extend_from_slice(all);
                }
            }
            (Kind::Beacon | Kind::ProbeResponse, _) => {
                let made = self.as_mpdu(sending, outside);
                octets.extend_from_slice(&outside.octets(&made)[..made.length as usize]);
                outside.release(made);
            }
            _ => {}
        }
        if let Some(place) = self.file(card, at, sending, ear, &octets) {
            for member in 0..self.cards[card].members.len() {
                let one = &self.cards[card].members[member];
                let wants =
                    |probe: &&Probe| probe.shared && probe.channel == sending.channel && probe.is_open(at);
                let Some(probe) = one.probe.as_ref().filter(wants) else { continue };
                let (index, address) = (one.radio as usize, probe.address);
                self.cards[card].count_answer(Span::ZERO);
                self.pass_result(card, place, index, address, at, outside);
            }
        }
        self.cards[card].results.scratch = octets;
    }

    /// Puts a beacon or probe response into the cache; its place there, unless another virtual MAC
    /// of the card has put the same one there.
    fn file(
        &mut self,
        card: usize,
        at: Instant,
        sending: &Sending,
        ear: &Heard,
        octets: &[u8],
    ) -> Option<usize> {
        let header = Header::parse(octets)?;
        let body = octets.get(header.length..)?;
        let (beacon, said) = match Management::parse(header.subtype(), body)? {
            Management::Beacon(said) => (true, said),
            Management::ProbeResponse(said) => (false, said),
            _ => return None,
        };
        let sighting = Sighting {
            radio: RadioId(sending.from),
            network: header.transmitter,
            ssid: String::from_utf8_lossy(said.ssid).into_owned(),
            access_point: said.is_access_point(),
            channel: sending.channel,
            signal_dbm: 10.0 * math::log10(ear.power),
            age: Span::ZERO,
        };
        let sent = &self.core.radios[sending.from as usize].layer.phy.rates[usize::from(sending.rate)];
        let phy = self.layer_on(ear.radio as usize, sending.channel);
        let status = RxStatus {
            mhz: sending.channel.mhz,
            rate: phy.rate_index(u64::from(sent.bits_per_second)).unwrap_or(0),
            signal_dbm: dbm(ear.power),
            tsf_us: at.nanos().saturating_sub(sending.end.since(sending.start).nanos()) / 1_000,
            retry: false,
        };
        let private = said.is_private();
        let found = &mut self.cards[card].results.found;
        let same = |one: &Found| {
            let known = &one.sighting;
            (known.network, known.channel, one.beacon) == (sighting.network, sighting.channel, beacon)
        };
        let place = found.iter().position(same);
        if place.is_some_and(|place| found[place].at == at) {
            return None;
        }
        let oldest = || found.iter().enumerate().min_by_key(|(_, one)| one.at).map(|(place, _)| place);
        let place = place.or_else(|| if found.len() < MAX_FOUND { None } else { oldest() });
        if let Some(place) = place {
            let one = &mut found[place];
            one.octets.clear();
            one.octets.extend_from_slice(octets);
            (one.sighting, one.private, one.beacon) = (sighting, private, beacon);
            (one.status, one.at) = (status, at);
            return Some(place);
        }
        found.push(Found { octets: octets.to_vec(), sighting, private, beacon, status, at });
        Some(found.len() - 1)
    }

    /// Records that a stack's probe request is on the air, at the end of its transmission.
    pub(super) fn probe_sent(&mut self, index: usize, sending: &Sending, outside: &impl Outside) {
        let (Some(card), Some(frame)) = (self.card_of(index), sending.frame) else { return };
        if sending.kind != Kind::Wlan || outside.octets(&frame).first() != Some(&PROBE_REQUEST) {
            return;
        }
        let channel = sending.channel;
        let (now, state) = (self.core.now, &mut self.cards[card]);
        let member = state.members.iter_mut().find(|member| member.radio as usize == index);
        let probe = member.and_then(|member| member.probe.as_mut());
        let Some(probe) = probe.filter(|probe| probe.channel == channel && !probe.shared) else { return };
        probe.sent = Some(now);
        if probe.ssid.is_empty() {
            state.surveyed(channel, now + VISIT);
        }
    }

    /// Answers a step of a scan that a node has requested; the networks found, or `None` if the
    /// radio has to go there.
    pub(in crate::medium) fn answer_step(
        &mut self,
        index: usize,
        channel: Channel,
        ssid: &str,
    ) -> Option<Vec<Sighting>> {
        let card = self.card_of(index)?;
        let now = self.core.now;
        let state = &self.cards[card];
        let known = state.knows(channel, ssid.as_bytes(), now);
        let merged = !known
            && self.siblings(index).any(|other| {
                let scan = self.core.radios[other].scan.as_ref();
                scan.is_some_and(|scan| scan.channel() == Some(channel))
            });
        let state = &mut self.cards[card];
        state.counts.scans_asked += 1;
        state.counts.scans_cached += u64::from(known);
        state.counts.scans_merged += u64::from(merged);
        if !known {
            return None;
        }
        let fresh = state.results.fresh(channel, now, state.scan_age()).filter(|one| !one.private);
        let found: Vec<_> =
            fresh.map(|one| Sighting { age: now.since(one.at), ..one.sighting.clone() }).collect();
        for one in &found {
            self.cards[card].count_answer(one.age);
        }
        Some(found)
    }

    /// Records that a radio's scan of a channel for all networks is complete.
    pub(in crate::medium) fn step_done(&mut self, index: usize, channel: Channel) {
        if let Some(card) = self.card_of(index) {
            let now = self.core.now;
            self.cards[card].surveyed(channel, now);
        }
    }
}
