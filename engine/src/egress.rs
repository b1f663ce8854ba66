//! Egress: the interface through which frames leave the engine, and its wall clock.

use crate::drop_reason::{DropReason, HostLoss};
use crate::element::{MediumId, Place, PortId};
use crate::frame::{Frame, Pool};
use crate::medium::capture::Sniffed;
use crate::medium::wlan::{RxStatus, TxStatus};
use crate::time::Instant;

/// A wall clock in engine time.
pub trait Clock {
    /// The present instant; monotonic.
    fn now(&self) -> Instant;

    /// Returns at `until`, which is at most 20 us ahead, or as soon after it as possible.
    fn wait(&self, until: Instant);
}

/// Outcome of the delivery of a frame to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The node received it.
    Taken,
    /// The node received so many segments of a run; the host lost the rest.
    Partly(u16, HostLoss),
    /// The host lost it.
    Lost(HostLoss),
    /// The node is not up yet: the emulated network treats it as absent.
    NotUp,
}

/// Receiver of frames that leave the engine. The engine releases the buffer after each call.
pub trait Egress {
    /// A frame, or a run of segments of a super-frame, reached its port at `at`.
    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery;

    /// Consecutive segments of a super-frame reached their port one after the other, at `arrivals`,
    /// and are handed over together; or one frame is handed over later than it arrived.
    fn deliver_run(&mut self, port: PortId, arrivals: &[Instant], frame: &Frame, pool: &Pool) -> Delivery {
        let at = arrivals.last().copied().unwrap_or_default();
        self.deliver(port, at, frame, pool)
    }

    /// An 802.11 frame reached a radio that carries such frames ([`crate::medium::wlan`]).
    fn receive_wlan(
        &mut self,
        port: PortId,
        at: Instant,
        frame: &Frame,
        pool: &Pool,
        status: &RxStatus,
    ) -> Delivery {
        let _ = status;
        self.deliver(port, at, frame, pool)
    }

    /// The transmission that the node behind a port asked for has ended
    /// ([`crate::medium::wlan::TxRequest`]).
    fn transmitted(&mut self, port: PortId, at: Instant, status: &TxStatus) {
        let _ = (port, at, status);
    }

    /// A frame entered at a port, in the form the engine admitted. This is the first call about the
    /// frame.
    fn entered(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) {
        let _ = (port, at, frame, pool);
    }

    /// The link at a port came up or went down, and the carrier of the interface behind the port
    /// follows it ([`crate::settings::Carrier`]).
    fn carrier(&mut self, port: PortId, up: bool) {
        let _ = (port, up);
    }

    /// The emulated network dropped a frame, or a run of segments of a super-frame.
    fn dropped(&mut self, place: Place, at: Instant, frame: &Frame, why: DropReason, pool: &Pool) {
        let _ = (place, at, frame, why, pool);
    }

    /// A frame was on the air of a medium, or reached one of its radios. Called only while sniffing
    /// is on (see [`crate::medium::Medium::set_sniffing`]).
    fn sniffed(&mut self, medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        let _ = (medium, sniffed, pool);
    }
}
