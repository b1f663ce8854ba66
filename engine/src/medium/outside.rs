//! What a medium needs from its environment.

use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::monitor::capture;
use crate::medium::types::RadioId;
use crate::medium::wlan::status::{RxStatus, TxStatus};
use crate::time::Instant;

/// Environment of a medium: buffers, and the receiver of its frames.
///
/// A frame passed by value transfers one reference to its buffer to the called method.
pub trait Outside {
    /// The octets of a frame, Ethernet header first (of the whole frame for a super-frame).
    fn octets(&self, frame: &Frame) -> &[u8];
    /// Appends the octets of one frame, of a super-frame's segment too, with all checksums.
    fn complete(&self, frame: &Frame, out: &mut Vec<u8>) {
        let length = frame.segment_octets(frame.first) as usize;
        out.extend_from_slice(&self.octets(frame)[..length]);
    }
    /// Puts octets into a buffer of their own.
    fn make(&mut self, octets: &[u8]) -> Frame;
    /// Number of the port of `radio`, the origin of the frames that the radio makes.
    fn origin(&self, radio: RadioId) -> u32 {
        radio.0
    }
    /// Reports that a frame was translated into another one, and goes on as that.
    fn resized(&mut self, _before: &Frame, _after: &Frame) {}
    /// Reports that `radio` itself was the destination of a frame: nothing reaches its node.
    fn consumed(&mut self, _radio: RadioId, _at: Instant, frame: Frame) {
        self.release(frame);
    }
    /// Increments the reference count of the frame's buffer.
    fn share(&mut self, frame: &Frame);
    /// Releases one reference.
    fn release(&mut self, frame: Frame);
    /// Delivers a frame to the node of `radio`.
    fn deliver(&mut self, radio: RadioId, at: Instant, frame: Frame);
    /// Delivers a frame that the medium itself made, for `station`, to the node of `access_point`.
    fn announce(&mut self, _station: RadioId, access_point: RadioId, at: Instant, frame: Frame) {
        self.deliver(access_point, at, frame);
    }
    /// Delivers an 802.11 frame to the node of `radio`.
    fn deliver_wlan(&mut self, radio: RadioId, at: Instant, frame: Frame, _status: &RxStatus) {
        self.deliver(radio, at, frame);
    }
    /// Reports the outcome of a request of `radio`'s node ([`Medium::offer_wlan`]).
    fn transmitted(&mut self, _radio: RadioId, _at: Instant, _status: &TxStatus) {}
    /// Reports that a frame of `radio` was dropped.
    fn dropped(&mut self, radio: RadioId, at: Instant, frame: Frame, why: Why);
    /// Reports that a broadcast was delivered to so many radios beyond the first.
    fn copied(&mut self, frame: &Frame, copies: u32);
    /// Reports that a frame has left the queue of `radio`, which may now have room.
    fn finished(&mut self, _radio: RadioId, _at: Instant) {}
    /// Reports that a frame was on the air, or reached a radio; only after
    /// [`Medium::set_sniffing`]. Calls are made when frames end, so their times ascend only for
    /// frames that do not overlap.
    fn sniffed(&mut self, _sniffed: &capture::Sniffed) {}
}
