//! State of channel access: queues with their contention, and the stage of an exchange.

use std::collections::{BTreeMap, VecDeque};

use crate::medium::mac::ampdu::Reorder;
use crate::medium::mac::waiting::Waiting;
use crate::medium::types::Kind;
use crate::time::{Instant, Span};

/// When a backoff counter is decremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Countdown {
    /// After each idle slot (DCF, 802.11-2020 10.3.4.3).
    AfterSlots,
    /// At each slot boundary, the first of which is the end of AIFS (EDCA, 10.23.2.4).
    AtBoundaries,
}

/// One queue and its contention state.
#[derive(Debug)]
pub(in crate::medium) struct Lane {
    pub(in crate::medium) queue: VecDeque<Waiting>,
    /// Inter-frame space (AIFS) before slots are counted.
    pub(in crate::medium) aifs: Span,
    pub(in crate::medium) countdown: Countdown,
    pub(in crate::medium) cw_min: u16,
    pub(in crate::medium) cw_max: u16,
    /// Transmission opportunity limit; zero for one frame.
    pub(in crate::medium) txop: Span,
    pub(in crate::medium) cw: u16,
    /// Consecutive failures, counted only for [`RadioSettings::as_ns3`].
    pub(in crate::medium) failures: u8,
    /// Data frames and A-MPDUs without an answer since the last one with an answer, or given up.
    pub(in crate::medium) unanswered: u32,
    /// True while a backoff is in progress.
    pub(in crate::medium) backing_off: bool,
    /// Slots left when counting (re)started.
    pub(in crate::medium) slots: u32,
    /// When counting of slots (re)starts; NEVER while the channel is busy.
    pub(in crate::medium) from: Instant,
    /// True while its first frame waits for the radio's next window, or for other slices.
    pub(in crate::medium) deferred: bool,
}

impl Lane {
    /// True if its first frame may be sent, also by a radio that is `away` from its cell.
    pub(in crate::medium) fn wants(&self, away: bool) -> bool {
        self.queue.front().is_some_and(|first| !away || first.kind != Kind::Data)
    }

    /// True if its first frame may be sent in this window.
    pub(in crate::medium) fn contends(&self, away: bool) -> bool {
        self.backing_off && !self.deferred && self.wants(away)
    }

    /// When the backoff ends if the channel stays idle.
    pub(in crate::medium) fn due(&self, slot: Span) -> Instant {
        self.from + slot * u64::from(self.slots)
    }
}

/// Contention for the channel.
pub(in crate::medium) struct Contention {
    pub(in crate::medium) lanes: Vec<Lane>,
    pub(in crate::medium) counting: bool,
    /// When counting stopped because the channel became busy.
    pub(in crate::medium) stopped: Instant,
    /// True if the stop was caused by the radio itself, and so needs no detection time.
    pub(in crate::medium) stopped_self: bool,
    pub(in crate::medium) free_since: Instant,
    pub(in crate::medium) reserved_until: Instant,
    pub(in crate::medium) extended: bool,
    /// End of the last frame received with errors.
    pub(in crate::medium) broken_at: Option<Instant>,
    pub(in crate::medium) access_at: Instant,
}

impl Contention {
    /// On a channel that is idle from now on.
    pub(in crate::medium) fn new(lanes: Vec<Lane>, counting: bool, now: Instant) -> Self {
        Self {
            lanes,
            counting,
            stopped: Instant::ZERO,
            stopped_self: true,
            free_since: now,
            reserved_until: now,
            extended: false,
            broken_at: None,
            access_at: Instant::NEVER,
        }
    }
}

/// The frame exchange under way, and the numbers of frames.
pub(in crate::medium) struct Exchange {
    pub(in crate::medium) stage: Stage,
    pub(in crate::medium) answer: Option<Answer>,
    pub(in crate::medium) txop_until: Instant,
    pub(in crate::medium) sequence: u16,
    /// Last sequence and fragment number from each sender and lane.
    pub(in crate::medium) heard_from: BTreeMap<(u32, u8), FrameNumber>,
    /// The next number to each receiver and lane with a block ack, and the reorder buffers for senders.
    pub(in crate::medium) numbers: BTreeMap<(u32, u8), u16>,
    pub(in crate::medium) reorder: BTreeMap<(u32, u8), Reorder>,
}

impl Exchange {
    /// None is under way.
    pub(in crate::medium) fn new() -> Self {
        Self {
            stage: Stage::Free,
            answer: None,
            txop_until: Instant::ZERO,
            sequence: 0,
            heard_from: BTreeMap::new(),
            numbers: BTreeMap::new(),
            reorder: BTreeMap::new(),
        }
    }
}

/// Duplicate detection state of a sender.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct FrameNumber {
    pub(in crate::medium) sequence: u16,
    pub(in crate::medium) fragment: u8,
}

/// Stage of a radio in a frame exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Stage {
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
pub(in crate::medium) struct Answer {
    pub(in crate::medium) at: Instant,
    pub(in crate::medium) kind: Kind,
    pub(in crate::medium) to: u32,
    /// The address that it answers, if a stack chose it.
    pub(in crate::medium) address: Option<[u8; 6]>,
    pub(in crate::medium) rate: u8,
    pub(in crate::medium) duration: Span,
    /// For a block ack: the first number, and the MPDUs that arrived from there on.
    pub(in crate::medium) window: u16,
    pub(in crate::medium) bits: u64,
    /// For data after a clear-to-send, the next fragment, or the next frame of a transmission
    /// opportunity and its request-to-send; for a block ack the lane of the sender.
    pub(in crate::medium) lane: u8,
}

impl Answer {
    /// True if it goes on with an exchange of the radio's own lane, and responds to nobody.
    pub(in crate::medium) fn is_own(&self) -> bool {
        matches!(self.kind, Kind::Data | Kind::Rts)
    }
}

/// The access point of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) struct AccessPoint {
    pub(super) address: [u8; 6],
    /// The address of the station there.
    pub(super) station: [u8; 6],
    /// Its parameter set count; `None` without parameters.
    pub(super) count: Option<u8>,
}
