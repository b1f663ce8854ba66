//! A guest's device as a port: the back end of the vhost-user protocol.
//!
//! The guest (User Mode Linux, QEMU) connects to a listening socket and shares its memory; frames
//! are copied directly between that memory and the engine's pool, without the host's kernel. The
//! guest is not trusted: whatever it writes to its memory or its messages, in the worst case its
//! own port is disconnected with a [`DisconnectReason`]. A restarted guest connects again.

pub mod backlog;
pub mod call;
pub mod coalescing;
pub mod connection;
pub mod device;
pub(crate) mod disconnect;
mod fault;
mod handling;
mod logged;
pub mod memory;
pub mod message;
pub mod net;
pub mod notifier;
pub mod queue;
mod side;
pub mod translation;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use airloom_engine::drop_reason::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::time::{Instant, Span};
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use serde::Serialize;

pub use coalescing::Coalescing;
pub use device::Counts;
pub use disconnect::DisconnectReason;
pub use handling::Handling;
pub use net::DeviceConfig;
pub use translation::{IoTlb, Translation, Translations};

use crate::error::Error;
#[cfg(doc)]
use crate::port::Port;
use crate::port::{InBand, Report};
use crate::runtime::poller::Poller;
use crate::sys::set_nonblocking;
use call::Notice;
use connection::Connection;
use device::{Device, DeviceType, RECEIVE, SEND};
use message::Request;
use notifier::Notifier;

/// Poller numbers of the socket and the connection.
const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
/// Poller numbers of the queues.
const KICKS: [u64; 2] = [2, 3];
/// Number of frames after which the connection is polled even if more frames are available.
const FRAMES: u32 = 1024;
/// Maximum number of messages served in one turn.
const MESSAGES: u32 = 32;

/// State of the guest behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No guest has used the device yet.
    Awaited,
    /// A guest's driver uses it.
    Up,
    /// A guest is connected whose driver does not use the device at the moment. QEMU stops the
    /// device while its link is down.
    Stopped,
    /// The guest is disconnected.
    Gone,
}

impl Standing {
    /// The word used in ledgers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Awaited => "awaited",
            Self::Up => "up",
            Self::Stopped => "stopped",
            Self::Gone => "gone",
        }
    }
}

/// The back end of one device.
pub struct Vhost<T> {
    listener: OwnedFd,
    poller: Poller,
    connection: Option<Connection>,
    kicks: [Option<Notifier>; 2],
    /// Notifications of the guest's kick that the port itself made since the last read.
    own_kicks: u64,
    device: Device<T>,
    /// Frames received since the connection was last polled.
    frames: u32,
    was_up: bool,
    connections: u64,
    /// Features negotiated by the most recent guest.
    features: u64,
    /// The queue of an in-band notification that is not acknowledged yet.
    kicked: Option<usize>,
    reason: Option<DisconnectReason>,
}

impl<T: std::fmt::Debug> std::fmt::Debug for Vhost<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Vhost").field("listener", &self.listener).field("device", &self.device).finish()
    }
}

impl<T: DeviceType> Vhost<T> {
    /// Serves the guest that connects to `listener`, a listening Unix stream socket.
    ///
    /// # Errors
    /// [`Error::VhostSocket`] if it is not such a socket, [`Error::Loop`] if no descriptor is
    /// available.
    pub fn serve(listener: OwnedFd, kind: T, handling: Handling) -> Result<Self, Error> {
        check_listener(&listener)?;
        let poller = Poller::new()?;
        poller.add(listener.as_raw_fd(), LISTENER)?;
        Ok(Self {
            listener,
            poller,
            connection: None,
            kicks: [None, None],
            own_kicks: 0,
            device: Device::new(kind, handling),
            frames: 0,
            was_up: false,
            connections: 0,
            features: 0,
            kicked: None,
            reason: None,
        })
    }

    /// State of its guest.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match (self.device.is_up(), self.was_up) {
            (true, _) => Standing::Up,
            (false, false) => Standing::Awaited,
            (false, true) if self.connection.is_some() => Standing::Stopped,
            (false, true) => Standing::Gone,
        }
    }

    /// Why the most recent connection ended.
    #[must_use]
    pub fn disconnect_reason(&self) -> Option<&DisconnectReason> {
        self.reason.as_ref()
    }

    /// Number of connections so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Virtio features negotiated by the most recent guest.
    #[must_use]
    pub fn features(&self) -> u64 {
        self.features
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device<T> {
        &self.device
    }

    pub(crate) fn device_mut(&mut self) -> &mut Device<T> {
        &mut self.device
    }

    /// The descriptor that becomes readable when the guest has a frame or a message.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.poller.as_raw_fd()
    }

    /// Takes one entry from the guest by `take`, and serves its other requests.
    pub(crate) fn next<R>(
        &mut self,
        mut take: impl FnMut(&mut Device<T>) -> Result<Option<R>, DisconnectReason>,
    ) -> Option<R> {
        if self.frames == FRAMES {
            self.frames = 0;
            self.look(true);
        }
        for _ in 0..MESSAGES {
            match take(&mut self.device) {
                Ok(Some(taken)) => {
                    self.frames += 1;
                    return Some(taken);
                }
                Ok(None) => {}
                Err(reason) => self.disconnect(reason),
            }
            self.frames = 0;
            if !self.look(true) {
                break;
            }
        }
        None
    }

    /// Hands something to the guest by `put`, if its driver is up.
    pub(crate) fn put(
        &mut self,
        put: impl FnOnce(&mut Device<T>) -> Result<Delivery, DisconnectReason>,
    ) -> Delivery {
        match self.standing() {
            Standing::Awaited | Standing::Stopped => return Delivery::NotUp,
            Standing::Gone => return Delivery::Lost(HostLoss::NodeGone),
            Standing::Up => {}
        }
        put(&mut self.device).unwrap_or_else(|reason| {
            self.disconnect(reason);
            Delivery::Lost(HostLoss::NodeGone)
        })
    }

    /// Serves the control messages of the guest and leaves its frames queued ([`Port::negotiate`]).
    pub(crate) fn serve_messages(&mut self) -> bool {
        self.look(false)
    }

    /// Notifies the guest ([`Port::notify`]).
    pub(crate) fn notify_guest(&mut self, now: Instant) -> Instant {
        if self.device.memory_is_lost() {
            self.disconnect(DisconnectReason::MemoryLost);
        } else if !self.device.notify_guest(now) {
            self.disconnect(DisconnectReason::Closed);
        }
        self.device.reminder().unwrap_or(Instant::NEVER)
    }

    /// True if its guest was up and is disconnected.
    pub(crate) fn is_gone(&self) -> bool {
        self.standing() == Standing::Gone
    }

    /// Its published figures.
    pub(crate) fn figures(&self) -> Report {
        let device = &self.device;
        let (counts, translations) = (device.counts, device.translations());
        let reason = self.reason.as_ref();
        let unserved = device.kind.unserved();
        figures(self.standing(), reason, self.connections, self.features, counts, translations, unserved)
    }

    /// Serves control messages, and notifications about `frames` if asked for. Returns true if
    /// there may be more to serve.
    fn look(&mut self, frames: bool) -> bool {
        let Ok(ready) = self.poller.wait(Some(Span::ZERO)) else { return false };
        let mut more = false;
        for index in 0..ready {
            let done = match self.poller.ready(index) {
                LISTENER => self.accept(),
                CONNECTION => self.message(),
                _ if !frames => continue,
                kick if kick == KICKS[SEND] => self.take_count(),
                _ => self.buffers_offered(),
            };
            match done {
                Ok(there) => more |= there,
                Err(reason) => {
                    self.disconnect(reason);
                    // Other events belonged to the closed connection.
                    return true;
                }
            }
        }
        more
    }

    /// Handles a notification about frames. Returns true if there are more of them.
    fn take_count(&mut self) -> Result<bool, DisconnectReason> {
        let Some(notifier) = &self.kicks[SEND] else { return Ok(false) };
        let kicks = notifier.take_count().map_err(DisconnectReason::Notifier)?;
        self.device.counts.kicks += kicks.saturating_sub(std::mem::take(&mut self.own_kicks));
        self.listen()
    }

    /// Handles a notification about buffers.
    fn buffers_offered(&mut self) -> Result<bool, DisconnectReason> {
        if let Some(notifier) = &self.kicks[RECEIVE] {
            notifier.take_count().map_err(DisconnectReason::Notifier)?;
        }
        self.device.catch_up().map(|()| false)
    }

    /// Enables the guest's notification of its next frame. If a frame is already available, the
    /// port stays ready, because other ports may be served first.
    fn listen(&mut self) -> Result<bool, DisconnectReason> {
        let more = self.device.listen()?;
        if let (true, Some(notifier)) = (more, &self.kicks[SEND]) {
            self.own_kicks += u64::from(notifier.notify());
        }
        Ok(more)
    }

    /// Accepts a guest's connection.
    fn accept(&mut self) -> Result<bool, DisconnectReason> {
        let Some(connection) = Connection::accept(&self.listener) else { return Ok(false) };
        self.poller.add(connection.as_raw_fd(), CONNECTION).map_err(|_| DisconnectReason::Closed)?;
        // Further connections wait until this one ends.
        self.poller.remove(self.listener.as_raw_fd());
        self.connection = Some(connection);
        self.connections += 1;
        Ok(true)
    }

    /// Serves one message.
    fn message(&mut self) -> Result<bool, DisconnectReason> {
        let Some(connection) = &mut self.connection else { return Ok(false) };
        let Some(message) = connection.receive()? else { return Ok(false) };
        let number = message.header.request;
        let waits = message.header.needs_reply;
        let flaw = |flaw| DisconnectReason::Message { request: number, flaw };
        let request = Request::read(number, message.body).map_err(flaw)?;
        let outcome = self.device.serve(&request, message.files)?;
        for (queue, kick) in outcome.kicks.into_iter().enumerate() {
            if let Some(kick) = kick {
                self.watch(queue, kick)?;
            }
        }
        let Some(connection) = &self.connection else { return Ok(false) };
        if let Some(queue) = outcome.kicked {
            self.device.counts.kicks += u64::from(queue == SEND);
            self.kicked = Some(queue);
        } else if let Some(reply) = outcome.reply {
            connection.send(&message::answer(number, &reply))?;
        } else if waits && self.device.acknowledges() {
            connection.send(&message::answer(number, &0u64.to_ne_bytes()))?;
        }
        if self.device.is_up() {
            (self.was_up, self.features) = (true, self.device.features());
            self.listen()?;
        }
        Ok(true)
    }

    /// Serves messages up to the next in-band notification ([`Port::serve_in_band`]).
    pub(crate) fn serve_in_band(&mut self) -> InBand {
        let mut served = InBand::Nothing;
        while self.kicked.is_none() && self.look(true) {
            served = InBand::Served;
        }
        match self.kicked {
            None => served,
            Some(SEND) => InBand::Frames,
            Some(_) => {
                if let Err(reason) = self.device.catch_up() {
                    self.disconnect(reason);
                }
                InBand::Buffers
            }
        }
    }

    /// Enables the guest's next in-band notification, and acknowledges the last, if it is not yet, so that
    /// the guest goes on ([`Port::acknowledge`]).
    pub(crate) fn acknowledge(&mut self) {
        let kicked = self.kicked.take().is_some();
        let answered = self.device.listen().and_then(|_| match &self.connection {
            Some(connection) if kicked && self.device.acknowledges() => {
                connection.send(&message::answer(message::QUEUE_KICK, &0u64.to_ne_bytes()))
            }
            _ => Ok(()),
        });
        if let Err(reason) = answered {
            self.disconnect(reason);
        }
    }

    /// Passes the next message to the guest to `send` ([`Port::call`]).
    pub(crate) fn call(&mut self, send: &mut dyn FnMut(BorrowedFd<'_>, Notice)) -> bool {
        let call = self.device.take_call();
        if let Some((channel, notice)) = &call {
            send(*channel, *notice);
        }
        call.is_some()
    }

    /// Gives the device a number ([`Port::join`]).
    pub(crate) fn join(&mut self, number: u16) {
        self.device.join(number);
    }

    /// Replaces the notifier of one of the guest's queues, or removes it.
    fn watch(&mut self, queue: usize, kick: Option<Notifier>) -> Result<(), DisconnectReason> {
        if let Some(notifier) = self.kicks[queue].take() {
            // Closing is not enough: the guest holds the same eventfd.
            self.poller.remove(notifier.as_raw_fd());
        }
        if let Some(notifier) = &kick {
            self.poller
                .add(notifier.as_raw_fd(), KICKS[queue])
                .map_err(|_| DisconnectReason::NoDescriptor)?;
        }
        self.kicks[queue] = kick;
        if queue == SEND {
            self.own_kicks = 0;
        }
        Ok(())
    }

    /// Disconnects the guest and accepts connections again.
    fn disconnect(&mut self, reason: DisconnectReason) {
        for notifier in self.kicks.iter_mut().filter_map(Option::take) {
            self.poller.remove(notifier.as_raw_fd());
        }
        if let Some(connection) = self.connection.take() {
            self.poller.remove(connection.as_raw_fd());
            // It was removed before: this cannot fail for lack of memory.
            let _ = self.poller.add(self.listener.as_raw_fd(), LISTENER);
        }
        // Later errors are consequences of the empty memory.
        let reason = if self.device.memory_is_lost() { DisconnectReason::MemoryLost } else { reason };
        self.device.reset();
        self.kicked = None;
        self.reason = Some(reason);
    }
}

/// Makes a listening Unix stream socket non-blocking.
pub(crate) fn check_listener(listener: &OwnedFd) -> Result<(), Error> {
    let raw = listener.as_raw_fd();
    let fail = |why: String| Error::VhostSocket { fd: raw, why };
    for (is_so, what) in [
        (socket_domain(listener).map(|domain| domain == AddressFamily::UNIX), "a Unix socket"),
        (socket_type(listener).map(|kind| kind == SocketType::STREAM), "a stream socket"),
        (socket_acceptconn(listener), "listening"),
    ] {
        match is_so.map_err(io::Error::from) {
            Ok(true) => {}
            Ok(false) => return Err(fail(format!("it is not {what}"))),
            Err(error) => return Err(fail(format!("it is not {what}: {error}"))),
        }
    }
    set_nonblocking(listener).map_err(|source| fail(format!("O_NONBLOCK: {source}")))
}

/// Published figures of a guest's connection.
pub(crate) fn figures(
    standing: Standing,
    reason: Option<&DisconnectReason>,
    connections: u64,
    features: u64,
    counts: Counts,
    translations: Translations,
    unserved: Vec<String>,
) -> Report {
    let cause = reason.map(ToString::to_string);
    let standing = standing.name();
    let figures = Figures { standing, cause, connections, features, counts, translations, unserved };
    Report { kind: REPORT, figures: Box::new(figures) }
}

/// [`Report::kind`] of guests.
pub const REPORT: &str = "guest";

/// Published figures of a guest.
#[derive(Serialize)]
struct Figures {
    standing: &'static str,
    cause: Option<String>,
    connections: u64,
    features: u64,
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    translations: Translations,
    unserved: Vec<String>,
}
