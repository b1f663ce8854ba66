//! State of a radio: reception, contention, exchanges and queues.

use std::collections::{BTreeMap, VecDeque};

use super::airtime::Account;
use super::bss::Cell;
use super::card::SleepAccount;
use super::hops::Sequence;
use super::mac::Mpdu;
use super::peers::PeerCounts;
use super::phy::Phy;
use super::police::Policer;
use super::rate::RateControl;
use super::scan::{Order, Scan, Scanned};
use super::settings::RadioSettings;
use super::shares::Share;
use super::wideband::Wideband;
use super::windows::{Table, Windows};
use crate::frame::Frame;
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Identifier of a radio in its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RadioId(pub(crate) u32);

impl RadioId {
    /// The radio with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number, from 0 in the order in which radios were added.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Receiver of a frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One radio.
    Radio(RadioId),
    /// All radios (group address).
    Group,
    /// An address that no radio has; frames to it are sent and never acknowledged.
    Nobody,
}

/// Type of a frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data of a node.
    Data,
    /// A frame of a node's own 802.11 stack, of any type.
    Wlan,
    /// Acknowledgment.
    Ack,
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Beacon of an access point or an independent cell.
    Beacon,
    /// Probe request.
    ProbeRequest,
    /// Probe response.
    ProbeResponse,
    /// Association request.
    AssociationRequest,
    /// Association response.
    AssociationResponse,
    /// Authentication.
    Authentication,
    /// Deauthentication; for receivers also disassociation.
    Deauthentication,
    /// Null data: a station announces that it dozes.
    Doze,
    /// Null data: a station announces that it is awake.
    Wake,
}

/// A queued frame.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) kind: Kind,
    /// The node's frame, for data frames.
    pub(super) frame: Option<Frame>,
    pub(super) to: To,
    /// Octets of the frame body: LLC and payload of data, elements of management frames.
    pub(super) body: u32,
    /// Failed transmissions that count to the short and to the long retry limit.
    pub(super) short_tries: u8,
    pub(super) long_tries: u8,
    /// Total number of transmissions of the frame.
    pub(super) tries: u32,
    /// Rate of its last transmission, or of the one announced.
    pub(super) rate: Option<u8>,
    /// Sequence number, assigned at its first transmission.
    pub(super) sequence: Option<u16>,
    /// Octets of the body acknowledged so far, and the number of the next fragment.
    pub(super) done: u32,
    pub(super) fragment: u8,
    /// True if the receiver has received it, even if no acknowledgment arrived.
    pub(super) arrived: bool,
    /// True if a receiver was in range of the last transmission.
    pub(super) reached: bool,
    /// Receiver address of a management frame to a stack.
    pub(super) receiver: Option<[u8; 6]>,
    /// Present for a frame of the node's 802.11 stack.
    pub(super) mpdu: Option<Mpdu>,
}

/// One queue and its contention state.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<Waiting>,
    /// Inter-frame space (AIFS) before slots are counted.
    pub(super) aifs: Span,
    pub(super) cw_min: u16,
    pub(super) cw_max: u16,
    /// Transmission opportunity limit; zero for one frame.
    pub(super) txop: Span,
    pub(super) cw: u16,
    /// Consecutive failures, counted only for [`RadioSettings::as_ns3`].
    pub(super) failures: u8,
    /// True while a backoff is in progress.
    pub(super) backing_off: bool,
    /// Slots left when counting (re)started.
    pub(super) slots: u32,
    /// When counting of slots (re)starts; NEVER while the channel is busy.
    pub(super) from: Instant,
    /// True while its first frame waits for the radio's next window, or for other slices.
    pub(super) deferred: bool,
}

impl Lane {
    /// True if its first frame may be sent, also by a radio that is `away` from its cell.
    pub(super) fn wants(&self, away: bool) -> bool {
        self.queue.front().is_some_and(|first| !away || first.kind != Kind::Data)
    }

    /// True if its first frame may be sent in this window.
    pub(super) fn contends(&self, away: bool) -> bool {
        self.backing_off && !self.deferred && self.wants(away)
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
    /// Time up to which the success probability is computed.
    pub(super) settled: Instant,
    pub(super) ln_survival: f64,
    /// True if another signal was on the air during the reception.
    pub(super) disturbed: bool,
    pub(super) rate: u8,
    pub(super) decoder: u8,
    pub(super) bits_per_nano: f64,
    pub(super) header_bits_per_nano: f64,
}

/// Stage of a radio in a frame exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// In no exchange.
    Free,
    /// Transmits a frame that starts or continues an exchange of this lane.
    Sending(u8),
    /// Transmits a response.
    Answering,
    /// Awaits a clear-to-send or an acknowledgment for this lane, up to an instant; if a reception
    /// has begun by then, until its end.
    Awaiting(u8, Kind, Instant, bool),
}

/// A frame to be sent a SIFS after another one, independent of the state of the channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) at: Instant,
    pub(super) kind: Kind,
    pub(super) to: u32,
    /// The address that it answers, if a stack chose it.
    pub(super) address: Option<[u8; 6]>,
    pub(super) rate: u8,
    pub(super) duration: Span,
    /// For data after a clear-to-send, the next fragment, or the next frame of a transmission
    /// opportunity.
    pub(super) lane: u8,
}

/// Counters of a radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RadioCounts {
    /// Transmissions of data and management frames, retries included.
    pub sent: u64,
    /// Of these, unicast transmissions, which require an acknowledgment.
    pub expected: u64,
    /// Missing acknowledgments.
    pub unanswered: u64,
    /// Requests to send.
    pub requests: u64,
    /// Requests to send without a response.
    pub requests_unanswered: u64,
    /// Frames given up at the retry limit.
    pub given_up: u64,
    /// Frames refused because the queue was full.
    pub refused: u64,
    /// Frames received without error, addressed to this radio or to all.
    pub received: u64,
    /// Frames discarded as duplicates.
    pub duplicates: u64,
    /// Receptions that ended with an error.
    pub broken: u64,
}

/// The state of a radio.
pub(super) struct Radio {
    pub(super) name: String,
    pub(super) settings: RadioSettings,
    pub(super) phy: &'static Phy,
    pub(super) slot: Span,
    /// Difference between EIFS and DIFS.
    pub(super) extension: Span,
    pub(super) basic: u32,
    /// Rate of broadcast and requests-to-send, if set.
    pub(super) control: Option<u8>,
    /// Number of the decoder for its transmissions.
    pub(super) decoder: u8,
    pub(super) random: Stream,
    pub(super) rate: Box<dyn RateControl>,
    /// Linear, in mW: noise of the receiver, thresholds.
    pub(super) noise: f64,
    /// Noise from other sources.
    pub(super) ambient: f64,
    pub(super) sense: f64,
    pub(super) sensitivity: f64,
    pub(super) preamble_ratio: f64,
    pub(super) capture_ratio: f64,
    /// Time after the first symbol of a frame within which the receiver can capture another one.
    pub(super) capture_window: Span,
    /// What its node, or an event, last set.
    pub(super) wanted_on: bool,
    /// The same, if its slice has the radio.
    pub(super) switched_on: bool,
    pub(super) cell: Cell,
    /// Time in which its stack dozed.
    pub(super) dozing: SleepAccount,
    /// True while it scans, or awaits association: data is held.
    pub(super) away: bool,
    pub(super) scan: Option<Scan>,
    /// A scan requested by its node that has not started.
    pub(super) ordered: Option<Order>,
    pub(super) scanned: Scanned,
    /// Number of scan steps; identifies timers of earlier scans as obsolete.
    pub(super) step: u32,

    // Reception.
    pub(super) energy: f64,
    pub(super) signals: u32,
    pub(super) lock: Option<Lock>,
    pub(super) transmitting: bool,
    pub(super) busy: bool,
    pub(super) idle_since: Instant,
    pub(super) account: Account,
    /// Consecutive frames received that were not addressed to it alone.
    pub(super) overheard: u32,
    /// Its cluster, its rank there; and whether the cluster holds its state.
    pub(super) cluster: Option<(usize, usize)>,
    pub(super) asleep: bool,
    /// The generation of clusters in which it was found to belong to none.
    pub(super) unclustered: u64,

    // Contention.
    pub(super) lanes: Vec<Lane>,
    pub(super) counting: bool,
    /// When counting stopped because the channel became busy.
    pub(super) stopped: Instant,
    /// True if the stop was caused by the radio itself, and so needs no detection time.
    pub(super) stopped_self: bool,
    pub(super) free_since: Instant,
    pub(super) reserved_until: Instant,
    pub(super) extended: bool,
    /// End of the last frame received with errors.
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
    /// Reception on other channels, of a radio for 802.11 frames; and whether it passes on all
    /// frames.
    pub(super) wideband: Option<Box<Wideband>>,
    pub(super) monitor: bool,
    /// The card that it shares with others, and whether that keeps it from contending.
    pub(super) card: Option<u32>,
    pub(super) held: bool,
    pub(super) counts: RadioCounts,
    pub(super) peers: BTreeMap<u32, PeerCounts>,
    /// Checks the transmissions of a slice's radio.
    pub(super) policer: Option<Box<Policer>>,
    /// Its part in the weighted airtime of its slice.
    pub(super) share: Option<Share>,
    /// Transmission windows, and whether it is in one; true without windows.
    pub(super) windows: Option<Box<Windows>>,
    pub(super) in_window: bool,
    /// The sequence of its channels, if it hops.
    pub(super) hops: Option<Box<Sequence>>,
    /// Counts changes of its windows; identifies edges of earlier ones as obsolete.
    pub(super) window_epoch: u32,
    /// The windows of slots that it does not wait for.
    pub(super) watched: Option<Table>,
}

/// Duplicate detection state of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) sequence: u16,
    pub(super) fragment: u8,
}

impl Radio {
    /// True if the radio is in an exchange and does not contend.
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
