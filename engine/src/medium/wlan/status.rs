//! Requests of a stack for its frames, and what became of them.

use crate::math;

/// Steps of a retry chain.
pub const MAX_STEPS: usize = 4;

/// One step of a multi-rate retry chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Index in the rates of the radio's physical layer on the channel ([`crate::medium::phy::Phy::rates`]).
    pub rate: u8,
    /// Number of transmissions at this rate.
    pub tries: u8,
    /// A request-to-send precedes each of them.
    pub rts: bool,
}

/// What a driver asks for one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxRequest {
    /// Centre frequency of the channel in MHz; the radio tunes to it.
    pub mhz: u16,
    /// The retry chain; steps after the first `None` are ignored. Without any step, the frame is
    /// sent once at the lowest basic rate.
    pub attempts: [Option<Attempt>; MAX_STEPS],
    /// The receiver does not acknowledge the frame. Frames to group addresses never are.
    pub no_ack: bool,
    /// Returned in the status.
    pub cookie: u64,
}

/// Outcome of a request, reported once for each frame, when its exchange has ended or the frame was
/// dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxStatus {
    /// Cookie of the request.
    pub cookie: u64,
    /// Transmissions made at each step; `None` for steps without one. A request-to-send without an
    /// answer counts as a transmission of its frame.
    pub attempts: [Option<Attempt>; MAX_STEPS],
    /// An acknowledgment arrived.
    pub acknowledged: bool,
    /// Signal of the acknowledgment in dBm; 0 without one.
    pub ack_dbm: i8,
}

/// How a frame was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxStatus {
    /// Centre frequency of the channel in MHz.
    pub mhz: u16,
    /// Index in the rates of the receiver's physical layer on the channel.
    pub rate: u8,
    /// Signal in dBm.
    pub signal_dbm: i8,
    /// When its first symbol arrived, in microseconds of the engine's time (TSF).
    pub tsf_us: u64,
    /// The transmission was a repetition: the Retry bit of the frame control field, which the
    /// octets of the frame do not show.
    pub retry: bool,
}

/// Where a stack listens, as its driver says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listening {
    /// The driver does not say.
    #[default]
    Unsaid,
    /// On no channel: the stack is idle, or down.
    Nowhere,
    /// On the channel with this centre in MHz.
    On(u16),
}

/// Power in dBm, rounded.
pub(in crate::medium) fn dbm(milliwatts: f64) -> i8 {
    #[allow(clippy::cast_possible_truncation)] // within range
    let dbm = (10.0 * math::log10(milliwatts)).round().clamp(-128.0, 127.0) as i8;
    dbm
}
