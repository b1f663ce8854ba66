//! Radios that carry IEEE 802.11 frames of their node's own stack (`device: wlan`).
//!
//! The radio does what hardware does: it contends for the channel, sends at the rates of a
//! multi-rate retry chain, acknowledges frames to the addresses of its node, repeats frames without
//! an acknowledgment, and removes duplicates. The node's stack does the rest. A frame of such a
//! radio is an 802.11 MPDU without frame check sequence in an ordinary [`crate::frame::Frame`].
//!
//! | direction | call |
//! | --- | --- |
//! | node to radio | [`crate::Engine::transmit`], [`crate::Engine::set_wlan_addresses`], [`crate::Engine::set_wlan_monitor`] |
//! | radio to node | [`crate::Egress::receive_wlan`], [`crate::Egress::transmitted`] |

use super::radio::RadioId;
use super::{Medium, Outside};
use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::time::Instant;

/// Steps of a retry chain.
pub const MAX_STEPS: usize = 4;

/// One step of a multi-rate retry chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Index in the rates of the radio's physical layer ([`super::phy::Phy::rates`]).
    pub rate: u8,
    /// Number of transmissions at this rate.
    pub tries: u8,
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
    /// Index in the rates of the receiver's physical layer.
    pub rate: u8,
    /// Signal in dBm.
    pub signal_dbm: i8,
    /// When its first symbol arrived, in microseconds of the engine's time (TSF).
    pub tsf_us: u64,
    /// The transmission was a repetition: the Retry bit of the frame control field, which the
    /// octets of the frame do not show.
    pub retry: bool,
}

impl Medium {
    /// Offers an 802.11 frame of a node to its radio at `now`. The medium takes over the caller's
    /// reference to the buffer, and reports one [`TxStatus`].
    pub fn offer_wlan(
        &mut self,
        id: RadioId,
        now: Instant,
        frame: Frame,
        request: TxRequest,
        outside: &mut impl Outside,
    ) {
        self.pass(now);
        outside.dropped(id, now, frame, Why::RadioOff);
        outside.transmitted(id, now, &TxStatus { cookie: request.cookie, ..TxStatus::default() });
    }

    /// Sets the addresses to which a radio acknowledges frames; false if another radio uses one of
    /// them, and keeps it.
    pub fn set_wlan_addresses(&mut self, id: RadioId, addresses: &[[u8; 6]]) -> bool {
        let own = self.radios[id.index()].settings.mac;
        self.addresses.retain(|address, radio| *radio != id || *address == own);
        addresses.iter().all(|&address| *self.addresses.entry(address).or_insert(id) == id)
    }

    /// Lets a radio pass on every frame that it can decode.
    pub fn set_wlan_monitor(&mut self, id: RadioId, monitor: bool) {
        let _ = (id, monitor);
    }
}
