//! Interface between the engine and a port: frames in, frames out, and little else.
//!
//! | kind | connected to |
//! | --- | --- |
//! | [`Tap`](crate::tap::Tap) | a node's kernel, by a TAP interface |
//! | [`Interface`](crate::interface::Interface) | a real network, by an interface of the host |
//! | [`Vhost`](crate::vhost::Vhost) | a guest's device (vhost-user) |
//! | [`WlanPort`](crate::wlan::WlanPort) | a guest's radio: frames of 802.11 |
//! | [`Tunnel`](crate::tunnel::Tunnel) | another laboratory, or a kernel's tunnel |
//! | [`Memory`](crate::memory::Memory) | the program that steps the engine |
//! | [`Detached`](crate::detached::Detached) | nothing: frames to it are lost |
//!
//! A new kind is one implementation of [`Port`] in a file of its own. Captures are independent of
//! ports: [`Recorder`](crate::capture::Recorder) wraps the engine's egress.

use std::any::Any;
use std::os::fd::{BorrowedFd, RawFd};

use airloom_engine::frame::{BufferId, CLASSES, Frame, Pool};
use airloom_engine::medium::wlan::{Listening, RxStatus, TxRequest, TxStatus};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, Gathers, HostLoss, PortId};

use crate::carrier_drops::Unsent;
use crate::rx::RxBuffers;
use crate::vhost::call::Notice;
use crate::vnet::Meaning;

/// Length in octets of the largest frame that the engine's buffers hold.
pub const LARGEST_FRAME: usize = CLASSES[2];

/// Result of a read from a port.
#[derive(Debug)]
pub enum Incoming {
    /// A frame of so many octets, in a buffer that the caller now owns.
    Frame(BufferId, u32, Meaning),
    /// An 802.11 frame of so many octets, to be sent by the radio at a port.
    Transmit(PortId, BufferId, u32, TxRequest),
    /// The radio at a port now receives frames to these addresses.
    Addresses(PortId, Vec<[u8; 6]>),
    /// The stack of the radio at a port now listens there.
    Listening(PortId, Listening),
    /// No frame is available at the moment.
    Empty,
    /// No frame will arrive any more: the other side is closed.
    Closed,
}

/// Result of serving the messages of a guest whose notifications are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InBand {
    /// There was none.
    Nothing,
    /// Messages that need nothing more.
    Served,
    /// The guest has frames, and waits for [`Port::acknowledge`].
    Frames,
    /// The guest has buffers, and waits for [`Port::acknowledge`].
    Buffers,
}

/// A frame, or a run of segments of one, to be delivered to a port.
pub struct Outgoing<'a> {
    /// The port's number.
    pub port: PortId,
    /// When it was due, in engine time.
    pub at: Instant,
    /// The frame.
    pub frame: &'a Frame,
    /// The pool with the frame's octets.
    pub pool: &'a Pool,
    /// Buffer to complete one segment in: [`LARGEST_FRAME`] octets.
    pub scratch: &'a mut [u8],
    /// Reply frames of the ports, in order.
    pub(crate) answers: &'a mut Vec<(PortId, Vec<u8>)>,
}

impl Outgoing<'_> {
    /// Queues a reply of the port itself: a frame that enters the engine at this port.
    pub fn answer(&mut self, octets: Vec<u8>) {
        self.answers.push((self.port, octets));
    }
}

/// Counters of a kind of port beside the engine's ledger, ready to be serialized.
pub struct Report {
    /// Name of the kind of counters.
    pub kind: &'static str,
    /// The counters.
    pub figures: Box<dyn erased_serde::Serialize + Send>,
}

/// Work that may block, such as a system call that waits for the kernel's RTNL lock.
pub type Blocking = Box<dyn FnOnce() + Send>;

/// One attachment of the engine to the outside. No method may block, and [`Port::receive`] and
/// [`Port::deliver`] do not allocate.
pub trait Port: AsAny + Send {
    /// The descriptor that becomes readable when [`Port::receive`] has a frame; None if
    /// the port is never polled.
    fn fd(&self) -> Option<RawFd> {
        None
    }

    /// Called once when the port has its number.
    fn attached(&mut self, port: PortId) {
        let _ = port;
    }

    /// Length in octets of the longest frame that it carries. The engine's edge drops
    /// longer frames as too big.
    fn longest_frame(&self) -> usize {
        LARGEST_FRAME
    }

    /// Super-frames whose segments, if they arrive one after the other, may be handed over together.
    /// Queried once, when the port is attached.
    fn gathers(&self) -> Gathers {
        Gathers::default()
    }

    /// Receives one frame from the outside.
    fn receive(&mut self, buffers: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        let _ = (buffers, pool);
        Incoming::Empty
    }

    /// True if frames remain that were already read from the descriptor, which therefore does not
    /// become readable for them.
    fn has_more(&self) -> bool {
        false
    }

    /// Sends a frame to the outside: all of its segments, or as many as possible.
    fn deliver(&mut self, outgoing: Outgoing<'_>) -> Delivery;

    /// Passes on an 802.11 frame that the port's radio received.
    fn receive_wlan(&mut self, outgoing: &Outgoing<'_>, status: &RxStatus) -> Delivery {
        let _ = (outgoing, status);
        Delivery::Lost(HostLoss::Refused)
    }

    /// Passes on the outcome of a transmission that came in by [`Incoming::Transmit`].
    fn transmitted(&mut self, status: &TxStatus) {
        let _ = status;
    }

    /// True if the port has a peer that needs service beside its frames, by [`Port::negotiate`] and
    /// [`Port::notify`]. Queried once, when the port is attached.
    fn has_peer(&self) -> bool {
        false
    }

    /// Serves the peer's control messages and leaves its frames queued. Returns false
    /// if there was nothing to do.
    fn negotiate(&mut self) -> bool {
        false
    }

    /// Notifies the peer of the frames that were delivered since the last call; `now` is engine
    /// time. Returns when the notification may have to be repeated, [`Instant::NEVER`] if not.
    fn notify(&mut self, now: Instant) -> Instant {
        let _ = now;
        Instant::NEVER
    }

    /// Serves the messages of a guest in virtual time, up to its next notification.
    fn serve_in_band(&mut self) -> InBand {
        InBand::Nothing
    }

    /// Lets a guest in virtual time go on after its notification.
    fn acknowledge(&mut self) {}

    /// Passes the next notice to a guest in virtual time to `send`, with the socket for its message and
    /// for the answer. Returns false if there is none.
    fn call(&mut self, send: &mut dyn FnMut(BorrowedFd<'_>, Notice)) -> bool {
        let _ = send;
        false
    }

    /// Gives the port a number among the devices of a guest that shares memory with its calendar.
    fn join(&mut self, number: u16) {
        let _ = number;
    }

    /// The queue of which a guest in virtual time may log what it sends, without notifying the port.
    fn logs(&self) -> Option<u32> {
        None
    }

    /// Receives one entry of such a queue.
    fn take_logged(&mut self, entry: &[u8], pool: &mut Pool) -> Incoming {
        let _ = (entry, pool);
        Incoming::Empty
    }

    /// Ends the entries of one notification: whether there are more, which the guest has not logged, and
    /// whether it was notified that these were returned.
    fn end_logged(&mut self, partly: bool, called: bool) {
        let _ = (partly, called);
    }

    /// Sets the carrier of the interface behind the port. Returns the part that may block, which
    /// then runs outside of the engine's thread.
    fn set_carrier(&mut self, up: bool) -> Option<Blocking> {
        let _ = up;
        None
    }

    /// Called before the wall clock starts to drive the engine.
    fn start(&mut self) {}

    /// Frames dropped by the kernel since the last call because the engine read too
    /// late. Queried once a second. For a TAP the kernel reports this count itself, as
    /// drops of its transmit side.
    fn missed(&mut self) -> u64 {
        0
    }

    /// Frames that the kernel behind the port dropped because their interface had no carrier; None if
    /// the port cannot tell. Asked only after [`Port::set_carrier`].
    fn unsent(&self) -> Option<Unsent> {
        None
    }

    /// True if the port is not connected any more, temporarily or permanently.
    fn is_gone(&self) -> bool {
        false
    }

    /// The counters of the port.
    fn report(&self) -> Option<Report> {
        None
    }
}

/// Access to the type behind a trait object.
pub trait AsAny: Any {
    /// The value as `Any`, for downcasts.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
