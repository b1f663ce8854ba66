//! What the engine needs of a port: frames in, frames out, and little else.
//!
//! | kind | what is behind it |
//! | --- | --- |
//! | [`Tap`](crate::tap::Tap) | a node's kernel, by a TAP interface |
//! | [`Interface`](crate::interface::Interface) | a real network, by an interface of the host |
//! | [`Vhost`](crate::vhost::Vhost) | a guest's network device (vhost-user) |
//! | [`Tunnel`](crate::tunnel::Tunnel) | another laboratory, or a kernel's tunnel |
//! | [`Memory`](crate::memory::Memory) | the program that steps the engine |
//! | [`Detached`](crate::detached::Detached) | nothing: frames to it are lost |
//!
//! A new kind is one implementation of [`Port`] in a file of its own. Captures do not concern ports:
//! [`Recorder`](crate::capture::Recorder) wraps the engine's egress.

use std::any::Any;
use std::os::fd::RawFd;

use airloom_engine::frame::{BufferId, CLASSES, Frame, Pool};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, PortId};

use crate::rx::RxBuffers;
use crate::vnet::Meaning;

/// Octets of the largest frame that the engine's buffers hold.
pub const LARGEST_FRAME: usize = CLASSES[2];

/// What a read from a port brought.
#[derive(Debug)]
pub enum Incoming {
    /// A frame of so many octets in a buffer that now belongs to the caller.
    Frame(BufferId, u32, Meaning),
    /// Nothing is there at the moment.
    Empty,
    /// The port will never bring anything again: the other side is gone.
    Closed,
}

/// A frame, or a run of segments of one, for a port.
pub struct Outgoing<'a> {
    /// The port's number.
    pub port: PortId,
    /// When it was due, in engine time.
    pub at: Instant,
    /// The frame.
    pub frame: &'a Frame,
    /// Holds the frame's octets.
    pub pool: &'a Pool,
    /// Memory to complete one segment in: [`LARGEST_FRAME`] octets.
    pub scratch: &'a mut [u8],
    /// Frames with which ports answer, in the order of the answers.
    pub(crate) answers: &'a mut Vec<(PortId, Vec<u8>)>,
}

impl Outgoing<'_> {
    /// Has the port itself answer: a frame that enters the engine at this port.
    pub fn answer(&mut self, octets: Vec<u8>) {
        self.answers.push((self.port, octets));
    }
}

/// What a kind of port counts beside the engine's ledger, ready to be serialized.
pub struct Report {
    /// Names the kind of figures.
    pub kind: &'static str,
    /// The figures.
    pub figures: Box<dyn erased_serde::Serialize + Send>,
}

/// One attachment of the engine to something outside. No method may block, and [`Port::receive`] and
/// [`Port::deliver`] allocate nothing.
pub trait Port: AsAny + Send {
    /// The descriptor that becomes readable when [`Port::receive`] has something; none if the port
    /// is never to be waited for.
    fn fd(&self) -> Option<RawFd> {
        None
    }

    /// Octets of the longest frame that it carries. The engine's edge loses longer ones as too big.
    fn longest_frame(&self) -> usize {
        LARGEST_FRAME
    }

    /// Takes one frame that came from outside.
    fn receive(&mut self, buffers: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        let _ = (buffers, pool);
        Incoming::Empty
    }

    /// True if frames are left that were read from the descriptor already, so that it no longer
    /// becomes readable for them.
    fn has_more(&self) -> bool {
        false
    }

    /// Hands a frame to the outside, all of its segments or as many as go.
    fn deliver(&mut self, outgoing: Outgoing<'_>) -> Delivery;

    /// True if the port has a peer that has to be served beside its frames, by [`Port::negotiate`]
    /// and [`Port::notify`]. Asked once, when the port is attached.
    fn has_peer(&self) -> bool {
        false
    }

    /// Serves what the peer wants to agree upon, and leaves its frames where they are. False if there
    /// was nothing to do.
    fn negotiate(&mut self) -> bool {
        false
    }

    /// Tells the peer of the frames that were delivered since the last call; `now` is engine time.
    /// Returns when it may have to be told again, [`Instant::NEVER`] if not.
    fn notify(&mut self, now: Instant) -> Instant {
        let _ = now;
        Instant::NEVER
    }

    /// Called before the wall clock starts to drive the engine.
    fn start(&mut self) {}

    /// Frames that the kernel has dropped since the last call because the engine came too late.
    /// Asked once a second. A TAP's kernel keeps this count itself, as drops of its transmit side.
    fn missed(&mut self) -> u64 {
        0
    }

    /// True if nothing is behind the port any more, for now or for ever.
    fn is_gone(&self) -> bool {
        false
    }

    /// What it counted.
    fn report(&self) -> Option<Report> {
        None
    }
}

/// Access to the type behind a trait object.
pub trait AsAny: Any {
    /// The value as one of any type.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
