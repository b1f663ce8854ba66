//! Statistics of a radio about its peers.

use crate::math;
use crate::medium::Medium;
use crate::medium::types::RadioId;

/// Statistics about one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerCounts {
    /// Transmissions to it that require an acknowledgment, retries included, and requests to send
    /// without a response.
    pub attempts: u64,
    /// Those of them without an acknowledgment, and these requests.
    pub unanswered: u64,
    /// Rate of the last transmission to it in bit/s; 0 before the first.
    pub bits_per_second: u32,
    /// Frames received from it, addressed to this radio or to all.
    pub received: u64,
    /// Power of the last of them in mW, before fading.
    pub power_mw: f64,
}

impl PeerCounts {
    /// Records the start of a transmission to it.
    pub(in crate::medium) fn attempt(&mut self, bits_per_second: u32) {
        self.attempts += 1;
        self.bits_per_second = bits_per_second;
    }

    /// Records a request to send without a response.
    pub(in crate::medium) fn request_failed(&mut self) {
        self.attempts += 1;
        self.unanswered += 1;
    }

    /// Records a frame received from it.
    pub(in crate::medium) fn heard(&mut self, power_mw: f64) {
        self.received += 1;
        self.power_mw = power_mw;
    }

    /// Power of the last frame received from it in dBm; `None` before the first.
    #[must_use]
    pub fn signal_dbm(&self) -> Option<f64> {
        (self.received > 0).then(|| 10.0 * math::log10(self.power_mw))
    }
}

impl Medium {
    /// The radios that a radio has sent to or received from, by number.
    pub fn peers(&self, radio: RadioId) -> impl Iterator<Item = (RadioId, PeerCounts)> {
        self.core.radios[radio.index()].peers.iter().map(|(&peer, &counts)| (RadioId(peer), counts))
    }
}
