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

use super::Card;
use super::schedule::VISIT;
use crate::calendar::Class;
use crate::frame::Frame;
use crate::math;
use crate::medium::air::Sending;
use crate::medium::header::{Header, Type, flag};
use crate::medium::management::Management;
use crate::medium::phy::Channel;
use crate::medium::radio::{Kind, RadioId};
use crate::medium::reach::Heard;
use crate::medium::scan::Sighting;
use crate::medium::wlan::{Attempt, RxStatus, TxRequest, TxStatus, dbm};
use crate::medium::{Event, Medium, Outside};
use crate::time::{Instant, Span};

/// Most frames that a card remembers; the oldest makes room.
const MAX_FOUND: usize = 256;

/// How long a request of a stack is taken for unanswered. A visit begins within a dwell time and a
/// switch, 41 ms by default.
const PENDING: Span = Span::from_millis(100);

/// First octet of a probe request.
const PROBE_REQUEST: u8 = 0x40;

/// What a card knows from scans.
#[derive(Default)]
pub(super) struct Results {
    found: Vec<Found>,
    surveys: Vec<Survey>,
    /// Octets of the frame at hand.
    scratch: Vec<u8>,
}

/// The last beacon or probe response of a network on a channel.
struct Found {
    octets: Vec<u8>,
    sighting: Sighting,
    /// The network is encrypted: none that an Ethernet radio reports.
    private: bool,
    beacon: bool,
    status: RxStatus,
    at: Instant,
}

/// A scan of a channel for all networks.
struct Survey {
    channel: Channel,
    /// When its answers are complete.
    ready: Instant,
}

/// A probe request of a stack.
pub(super) struct Probe {
    channel: Channel,
    /// The network that it names; empty for all.
    ssid: Vec<u8>,
    /// The address that the stack uses.
    address: [u8; 6],
    asked: Instant,
    sent: Option<Instant>,
    /// Merged: the answers to another virtual MAC are passed on.
    shared: bool,
}

impl Probe {
    /// True if it has still to be sent.
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.sent.is_none() && !self.shared && self.is_open(now)
    }

    /// True if its answers may still come.
    fn is_open(&self, now: Instant) -> bool {
        self.sent.map_or(now.since(self.asked) < PENDING, |sent| now.since(sent) < VISIT)
    }
}

impl Card {
    fn scan_age(&self) -> Span {
        Span::from_nanos(self.settings.scan_age_ns)
    }

    /// True if the cache answers a request for networks called `ssid`, or for all.
    fn knows(&self, channel: Channel, ssid: &[u8], now: Instant) -> bool {
        let limit = self.scan_age();
        if limit == Span::ZERO {
            return false;
        }
        if ssid.is_empty() {
            let fresh = |survey: &Survey| survey.ready <= now && now.since(survey.ready) <= limit;
            return self.results.surveys.iter().any(|one| one.channel == channel && fresh(one));
        }
        let named = |one: &&Found| one.sighting.ssid.as_bytes() == ssid;
        self.results.fresh(channel, now, limit).any(|one| named(&one))
    }

    /// Records that the answers to a scan of a channel for all networks are complete at `ready`.
    fn surveyed(&mut self, channel: Channel, ready: Instant) {
        let surveys = &mut self.results.surveys;
        surveys.retain(|survey| survey.channel != channel);
        surveys.push(Survey { channel, ready });
    }

    /// Handles the departure from the present channel: answers that were still to come are missed.
    pub(super) fn ends_surveys(&mut self, now: Instant) {
        let Some(channel) = self.tuned else { return };
        self.results.surveys.retain(|survey| survey.channel != channel || survey.ready <= now);
    }

    fn count_answer(&mut self, age: Span) {
        self.counts.scan_results += 1;
        self.counts.scan_age_ns += age.nanos();
        self.counts.scan_oldest_ns = self.counts.scan_oldest_ns.max(age.nanos());
    }
}

impl Results {
    /// Frames received on a channel at most `limit` ago.
    fn fresh(&self, channel: Channel, now: Instant, limit: Span) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(move |one| one.sighting.channel == channel && now.since(one.at) <= limit)
    }
}

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
        let (now, ssid) = (self.now, ssid.to_vec());
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
        self.calendar.push(at, Class::Arrival, radio, event);
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
        let sent = &self.radios[sending.from as usize].phy.rates[usize::from(sending.rate)];
        let phy = self.radios[ear.radio as usize].phy;
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
        let (now, state) = (self.now, &mut self.cards[card]);
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
        let now = self.now;
        let state = &self.cards[card];
        let known = state.knows(channel, ssid.as_bytes(), now);
        let merged = !known
            && self.siblings(index).any(|other| {
                let scan = self.radios[other].scan.as_ref();
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
            let now = self.now;
            self.cards[card].surveyed(channel, now);
        }
    }
}
