//! State of a card and its virtual MACs.

use crate::medium::card::settings::{CardCounts, CardSettings};
use crate::medium::phy::Channel;
use crate::medium::radio::scan_state::Sighting;
use crate::medium::radio::sleep_account::SleepAccount;
use crate::medium::wlan::status::RxStatus;
use crate::time::{Instant, Span};

/// A card and its virtual MACs.
pub(in crate::medium) struct Card {
    pub(super) name: String,
    pub(super) settings: CardSettings,
    pub(super) members: Vec<Member>,
    /// The channel in force; `None` during a switch.
    pub(super) tuned: Option<Channel>,
    pub(super) phase: Phase,
    /// Since when the card is on its channel.
    pub(super) since: Instant,
    /// Identifies timers of earlier phases as obsolete.
    pub(super) epoch: u32,
    /// True if the present turn is a visit for a scan.
    pub(super) visiting: bool,
    /// True if the present turn follows a visit: no other visit interrupts it.
    pub(super) protected: bool,
    /// The member that was served last.
    pub(super) turn: usize,
    pub(super) results: Results,
    pub(super) asleep: SleepAccount,
    pub(super) counts: CardCounts,
}

/// A virtual MAC.
pub(super) struct Member {
    pub(super) radio: u32,
    /// Start of its last exchange.
    pub(super) sent: Instant,
    /// Its channel; `None` for a stack that has not sent a frame yet, except probe requests.
    pub(super) home: Option<Channel>,
    /// It is on another channel for a scan.
    pub(super) visits: bool,
    /// Time that it has listened on the channel of its present scan step.
    pub(super) listened: Span,
    /// When it began to listen there.
    pub(super) listens_from: Instant,
    pub(super) sleep: Sleep,
    /// Network (BSSID) of a stack that is a station, and the address that the stack uses there.
    pub(super) network: Option<[[u8; 6]; 2]>,
    /// Its last probe request that was not answered from the cache.
    pub(super) probe: Option<Probe>,
}

/// What a card does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Phase {
    /// Only its present channel is needed.
    Stays,
    /// Serves its channel until the end of the dwell time.
    Dwells,
    /// Leaves its channel at once: it is not needed any more, or a scan needs another one.
    Called,
    /// Leaves for this channel as soon as all stations have told their access points; after the
    /// limit of the wait, as soon as no exchange is under way.
    Leaves(Channel, Instant),
    /// Switches to this channel.
    Switches(Channel),
}

/// Time that a visit has at least: the answers to a probe request arrive within it.
pub(in crate::medium) const VISIT: Span = Span::from_millis(20);

/// What the access point knows about a station of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Sleep {
    /// It is there.
    Awake,
    /// The announcement that it dozes waits to be sent.
    Announcing,
    /// It has said that it dozes.
    Asleep,
}

/// How long a request of a stack is taken for unanswered. A visit begins within a dwell time and a
/// switch, 41 ms by default.
pub(super) const PENDING: Span = Span::from_millis(100);

/// What a card knows from scans.
#[derive(Default)]
pub(in crate::medium) struct Results {
    pub(super) found: Vec<Found>,
    pub(super) surveys: Vec<Survey>,
    /// Octets of the frame at hand.
    pub(super) scratch: Vec<u8>,
}

/// The last beacon or probe response of a network on a channel.
pub(super) struct Found {
    pub(super) octets: Vec<u8>,
    pub(super) sighting: Sighting,
    /// The network is encrypted: none that an Ethernet radio reports.
    pub(super) private: bool,
    pub(super) beacon: bool,
    pub(super) status: RxStatus,
    pub(super) at: Instant,
}

/// A scan of a channel for all networks.
pub(super) struct Survey {
    pub(super) channel: Channel,
    /// When its answers are complete.
    pub(super) ready: Instant,
}

/// A probe request of a stack.
pub(in crate::medium) struct Probe {
    pub(super) channel: Channel,
    /// The network that it names; empty for all.
    pub(super) ssid: Vec<u8>,
    /// The address that the stack uses.
    pub(super) address: [u8; 6],
    pub(super) asked: Instant,
    pub(super) sent: Option<Instant>,
    /// Merged: the answers to another virtual MAC are passed on.
    pub(super) shared: bool,
}

impl Probe {
    /// True if it has still to be sent.
    pub(in crate::medium) fn waits(&self, now: Instant) -> bool {
        self.sent.is_none() && !self.shared && self.is_open(now)
    }

    /// True if its answers may still come.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.sent.map_or(now.since(self.asked) < PENDING, |sent| now.since(sent) < VISIT)
    }
}

impl Card {
    pub(super) fn scan_age(&self) -> Span {
        Span::from_nanos(self.settings.scan_age_ns)
    }

    /// True if the cache answers a request for networks called `ssid`, or for all.
    pub(super) fn knows(&self, channel: Channel, ssid: &[u8], now: Instant) -> bool {
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
    pub(super) fn surveyed(&mut self, channel: Channel, ready: Instant) {
        let surveys = &mut self.results.surveys;
        surveys.retain(|survey| survey.channel != channel);
        surveys.push(Survey { channel, ready });
    }

    /// Handles the departure from the present channel: answers that were still to come are missed.
    pub(in crate::medium) fn ends_surveys(&mut self, now: Instant) {
        let Some(channel) = self.tuned else { return };
        self.results.surveys.retain(|survey| survey.channel != channel || survey.ready <= now);
    }

    pub(super) fn count_answer(&mut self, age: Span) {
        self.counts.scan_results += 1;
        self.counts.scan_age_ns += age.nanos();
        self.counts.scan_oldest_ns = self.counts.scan_oldest_ns.max(age.nanos());
    }
}

impl Results {
    /// Frames received on a channel at most `limit` ago.
    pub(super) fn fresh(&self, channel: Channel, now: Instant, limit: Span) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(move |one| one.sighting.channel == channel && now.since(one.at) <= limit)
    }
}
