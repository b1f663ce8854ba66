//! Where frames leave the engine, and the clock that may drive it.

use crate::drop_reason::{DropReason, HostLoss};
use crate::element::{MediumId, Place, PortId};
use crate::frame::{Frame, Pool};
use crate::medium::capture::Sniffed;
use crate::time::Instant;

/// A wall clock in engine time: how much of it has really passed.
pub trait Clock {
    /// The present instant; it never goes back.
    fn now(&self) -> Instant;
}

/// What a port did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The node has it.
    Taken,
    /// Of a run of segments the node has so many, and the host lost the rest.
    Partly(u16, HostLoss),
    /// The host lost it.
    Lost(HostLoss),
    /// The node has not come up yet: to the emulated network it is not there.
    NotUp,
}

/// Where frames leave the engine. The engine gives its buffer back after each call.
pub trait Egress {
    /// A frame, or a run of segments of one, has reached its port at `at`.
    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery;

    /// A frame has entered at a port, as the engine took it; the call comes before any other
    /// about this frame.
    fn entered(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) {
        let _ = (port, at, frame, pool);
    }

    /// The emulated network dropped a frame, or a run of segments of one.
    fn dropped(&mut self, place: Place, at: Instant, frame: &Frame, why: DropReason, pool: &Pool) {
        let _ = (place, at, frame, why, pool);
    }

    /// A frame was on the air of a medium, or reached one of its radios; only while the medium is
    /// told to say so (see [`crate::medium::Medium::set_sniffing`]).
    fn sniffed(&mut self, medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        let _ = (medium, sniffed, pool);
    }
}
