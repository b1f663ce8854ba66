//! A radio: what it hears, what it waits for, what it has to send.

use std::collections::{BTreeMap, VecDeque};

use super::airtime::Account;
use super::bss::Cell;
use super::peers::PeerCounts;
use super::phy::Phy;
use super::rate::RateControl;
use super::scan::{Order, Scan, Scanned};
use super::settings::RadioSettings;
use crate::frame::Frame;
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Names a radio of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RadioId(pub(crate) u32);

impl RadioId {
    /// Its number: radios are counted in the order in which they were added.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whom a frame on the air is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One radio.
    Radio(RadioId),
    /// Everybody.
    Group,
    /// An address that no radio has; it is sent, and nobody answers.
    Nobody,
}

/// What a frame on the air is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Carries a frame of a node.
    Data,
    /// Acknowledgment.
    Ack,
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Says that an access point is there.
    Beacon,
    /// Asks for access points.
    ProbeRequest,
    /// Answers a probe request.
    ProbeResponse,
    /// Asks to join.
    AssociationRequest,
    /// Admits a station.
    AssociationResponse,
}

/// A frame that waits to be sent.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) kind: Kind,
    /// The node's frame, for data.
    pub(super) frame: Option<Frame>,
    pub(super) to: To,
    /// Octets of the frame body: LLC and payload of data, elements of management.
    pub(super) body: u32,
    /// Failed transmissions that count to the short and to the long retry limit.
    pub(super) short_tries: u8,
    pub(super) long_tries: u8,
    /// Transmissions of the frame itself, all in all.
    pub(super) tries: u32,
    /// Rate of its last transmission, or of the one announced.
    pub(super) rate: Option<u8>,
    /// Assigned at its first transmission.
    pub(super) sequence: Option<u16>,
    /// Octets of the body acknowledged so far, and the number of the next fragment.
    pub(super) done: u32,
    pub(super) fragment: u8,
    /// The receiver has it, whatever becomes of acknowledgments.
    pub(super) arrived: bool,
    /// Somebody could have heard the last transmission.
    pub(super) reached: bool,
}

/// One queue and its contention for the channel.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<Waiting>,
    /// Inter-frame space after an idle channel.
    pub(super) aifs: Span,
    pub(super) cw_min: u16,
    pub(super) cw_max: u16,
    /// Longest time to go on sending after winning the channel; zero for one frame.
    pub(super) txop: Span,
    pub(super) cw: u16,
    /// Failures in a row, counted only for [`RadioSettings::as_ns3`].
    pub(super) failures: u8,
    /// A backoff is under way.
    pub(super) backing_off: bool,
    /// Slots left when counting (re)started.
    pub(super) slots: u32,
    /// When counting of slots (re)starts; NEVER while the channel is busy.
    pub(super) from: Instant,
}

impl Lane {
    /// True if its first frame may be sent, also by a radio that is `away` from its cell.
    pub(super) fn wants(&self, away: bool) -> bool {
        self.queue.front().is_some_and(|first| !away || first.kind != Kind::Data)
    }

    /// When the backoff ends if the channel stays idle.
    pub(super) fn due(&self, slot: Span) -> Instant {
        self.from + slot * u64::from(self.slots)
    }
}

/// Reception of the frame that the receiver follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    /// Number of the transmission.
    pub(super) sending: u32,
    pub(super) power: f64,
    /// When its first symbol arrived.
    pub(super) at: Instant,
    /// When its header begins and ends.
    pub(super) header: (Instant, Instant),
    pub(super) end: Instant,
    /// Up to here the probability of survival is accounted for.
    pub(super) settled: Instant,
    pub(super) ln_survival: f64,
    /// Something else was on the air meanwhile.
    pub(super) disturbed: bool,
    pub(super) rate: u8,
    pub(super) decoder: u8,
    pub(super) bits_per_nano: f64,
    pub(super) header_bits_per_nano: f64,
}

/// Where a radio stands in an exchange of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// In none.
    Free,
    /// Sends what opens or continues an exchange of this lane.
    Sending(u8),
    /// Sends an answer.
    Answering,
    /// Waits for a clear-to-send or an acknowledgment for this lane, up to an instant; if a frame
    /// has begun by then, until its end.
    Awaiting(u8, Kind, Instant, bool),
}

/// A frame to be sent a SIFS after another, whatever the channel is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) at: Instant,
    pub(super) kind: Kind,
    pub(super) to: u32,
    pub(super) rate: u8,
    pub(super) duration: Span,
    /// For data after a clear-to-send, the next fragment, or the next frame of an opportunity.
    pub(super) lane: u8,
}

/// What a radio counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioCounts {
    /// Transmissions of data and management frames, repeats included.
    pub sent: u64,
    /// Of these, to one receiver, so that an acknowledgment was expected.
    pub expected: u64,
    /// Acknowledgments that did not come.
    pub unanswered: u64,
    /// Requests to send, and how many of them got no answer.
    pub requests: u64,
    /// Requests to send that got no answer.
    pub requests_unanswered: u64,
    /// Frames given up at the retry limit.
    pub given_up: u64,
    /// Frames that did not fit the queue.
    pub refused: u64,
    /// Frames received whole, for this radio or all.
    pub received: u64,
    /// Received a second time and thrown away.
    pub duplicates: u64,
    /// Receptions that ended broken.
    pub broken: u64,
}

/// The state of a radio.
pub(super) struct Radio {
    pub(super) name: String,
    pub(super) settings: RadioSettings,
    pub(super) phy: &'static Phy,
    pub(super) slot: Span,
    /// How much longer than the DCF space the extended space is.
    pub(super) extension: Span,
    pub(super) basic: u32,
    /// Rate of broadcast and requests, if set.
    pub(super) control: Option<u8>,
    /// Number of the decoder for what it sends.
    pub(super) decoder: u8,
    pub(super) dice: Stream,
    pub(super) rate: Box<dyn RateControl>,
    /// Linear, in mW: noise of the receiver, thresholds.
    pub(super) noise: f64,
    /// Noise of other sources.
    pub(super) ambient: f64,
    pub(super) sense: f64,
    pub(super) sensitivity: f64,
    pub(super) preamble_ratio: f64,
    pub(super) capture_ratio: f64,
    /// How long after the first symbol of a frame another one can be followed instead.
    pub(super) capture_window: Span,
    pub(super) switched_on: bool,
    pub(super) cell: Cell,
    /// Looks around on other channels, or asks to be admitted: data has to wait.
    pub(super) away: bool,
    pub(super) scan: Option<Scan>,
    /// Its node wants it to look around as soon as it can.
    pub(super) ordered: Option<Order>,
    pub(super) scanned: Scanned,
    /// Counts steps of its searches, so that timers of earlier ones are known as old.
    pub(super) step: u32,

    // What it hears.
    pub(super) energy: f64,
    pub(super) signals: u32,
    pub(super) lock: Option<Lock>,
    pub(super) transmitting: bool,
    pub(super) busy: bool,
    pub(super) idle_since: Instant,
    pub(super) account: Account,
    /// Frames in a row that it heard and that were not for it alone.
    pub(super) overheard: u32,
    /// Its cluster, its rank there, and whether the cluster keeps its state for it.
    pub(super) cluster: Option<(usize, usize)>,
    pub(super) asleep: bool,
    /// The generation of clusters in which it was found to be in none.
    pub(super) alone: u64,

    // Contention.
    pub(super) lanes: Vec<Lane>,
    pub(super) counting: bool,
    /// When counting stopped because the channel became busy.
    pub(super) stopped: Instant,
    /// The stop was noticed at once: it was the radio's own doing.
    pub(super) stopped_self: bool,
    pub(super) free_since: Instant,
    pub(super) reserved_until: Instant,
    pub(super) extended: bool,
    /// End of the last frame that arrived broken.
    pub(super) broken_at: Option<Instant>,
    pub(super) access_at: Instant,

    // Exchanges.
    pub(super) stage: Stage,
    pub(super) answer: Option<Answer>,
    pub(super) txop_until: Instant,
    pub(super) sequence: u16,
    /// Last sequence and fragment number from each sender and lane.
    pub(super) heard_from: BTreeMap<(u32, u8), Heard>,
    pub(super) waiting: u32,
    pub(super) counts: RadioCounts,
    pub(super) peers: BTreeMap<u32, PeerCounts>,
}

/// What is remembered of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) sequence: u16,
    pub(super) fragment: u8,
}

impl Radio {
    /// The radio takes part in an exchange and does not contend.
    pub(super) fn engaged(&self) -> bool {
        self.stage != Stage::Free || self.answer.is_some()
    }

    /// The radio's next timer.
    pub(super) fn next_at(&self) -> Instant {
        let mut next = self.access_at;
        if let Some(answer) = &self.answer {
            next = next.min(answer.at);
        }
        if let Stage::Awaiting(_, _, until, false) = self.stage {
            next = next.min(until);
        }
        next
    }
}
