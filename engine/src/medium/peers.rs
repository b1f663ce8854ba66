//! What a radio knows of the others that it exchanges frames with.

use super::{Medium, RadioId};
use crate::math;

/// One other radio, as a radio has met it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerCounts {
    /// Transmissions to it that asked for an answer, repeated ones included.
    pub attempts: u64,
    /// Of these, without an answer.
    pub unanswered: u64,
    /// Rate of the last transmission to it in bit/s; 0 before the first.
    pub bits_per_second: u32,
    /// Frames received from it, for this radio or for all.
    pub received: u64,
    /// Power of the last of them in mW, before fading.
    pub power_mw: f64,
}

impl PeerCounts {
    /// A transmission to it begins.
    pub(super) fn attempt(&mut self, bits_per_second: u32) {
        self.attempts += 1;
        self.bits_per_second = bits_per_second;
    }

    /// A frame of it was received.
    pub(super) fn heard(&mut self, power_mw: f64) {
        self.received += 1;
        self.power_mw = power_mw;
    }

    /// Power of the last frame received from it in dBm; none before the first.
    #[must_use]
    pub fn signal_dbm(&self) -> Option<f64> {
        (self.received > 0).then(|| 10.0 * math::log10(self.power_mw))
    }
}

impl Medium {
    /// Whom a radio has sent to or heard, in the order of their numbers.
    pub fn peers(&self, radio: RadioId) -> impl Iterator<Item = (RadioId, PeerCounts)> {
        self.radios[radio.index()].peers.iter().map(|(&peer, &counts)| (RadioId(peer), counts))
    }
}
