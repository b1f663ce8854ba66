//! Radios that are wireless devices of a kernel: each is a port of the engine, and all radios of a
//! kernel share one transport, by which its `mac80211_hwsim` sends and receives 802.11 frames. The
//! kernel is that of a guest, or this machine's.
//!
//! | transport | connected to |
//! | --- | --- |
//! | [`virtio`] | the driver of a guest's kernel, by a virtio device |
//! | [`stream`] | the generic netlink family of a guest's kernel, by `airloom-init` in the guest |
//! | [`netlink`] | the generic netlink family of this machine's kernel |

pub mod device;
pub mod hwsim;
mod netlink;
pub mod rates;
pub mod stream;
mod virtio;

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};

use airloom_engine::frame::Pool;
use airloom_engine::medium::phy::Phy;
use airloom_engine::medium::wlan::{RxStatus, TxStatus};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, HostLoss, PortId};
use airloom_netns::hwsim::Radios;

use crate::error::Error;
use crate::port::{InBand, Incoming, Outgoing, Port, Report};
use crate::rx::RxBuffers;
use crate::vhost::call::Notice;
use crate::vhost::{DisconnectReason, Handling, Vhost};
use device::{Changed, MOST_RADIOS, Taken, Wlan};
use netlink::Netlink;
use stream::Stream;

/// How the messages of a guest's driver reach the engine, and those of the engine the driver.
pub trait Transport: std::fmt::Debug + Send {
    /// The guest's radios.
    fn wlan(&mut self) -> &mut Wlan;

    /// The descriptor that becomes readable when there is something to [`Transport::take`].
    fn descriptor(&self) -> RawFd;

    /// Executes one message of the guest; None if there is none.
    fn take(&mut self, pool: &mut Pool) -> Option<Taken>;

    /// Sends a message, given in parts, to the guest.
    fn put(&mut self, message: [&[u8]; 3]) -> Delivery;

    /// As [`Port::negotiate`].
    fn negotiate(&mut self) -> bool;

    /// As [`Port::notify`].
    fn notify(&mut self, now: Instant) -> Instant;

    /// As [`Port::serve_in_band`].
    fn serve_in_band(&mut self) -> InBand {
        InBand::Nothing
    }

    /// As [`Port::acknowledge`].
    fn acknowledge(&mut self) {}

    /// As [`Port::call`].
    fn call(&mut self, send: &mut dyn FnMut(BorrowedFd<'_>, Notice)) -> bool {
        let _ = send;
        false
    }

    /// As [`Port::join`].
    fn join(&mut self, number: u16) {
        let _ = number;
    }

    /// As [`Port::missed`].
    fn missed(&mut self) -> u64 {
        0
    }

    /// As [`Port::is_gone`].
    fn is_gone(&self) -> bool;

    /// Why the most recent connection ended.
    fn disconnect_reason(&self) -> Option<&DisconnectReason>;

    /// Its published figures.
    fn figures(&self) -> Report;
}

/// A guest's wireless device. All its ports belong to one engine, whose thread alone uses it.
#[derive(Clone, Debug)]
pub struct WlanDevice(Arc<Mutex<dyn Transport>>);

impl WlanDevice {
    /// Serves the virtio device of the guest that connects to `listener`, a listening Unix stream
    /// socket.
    ///
    /// # Errors
    /// [`Error::VhostSocket`] if it is not such a socket, [`Error::Loop`] if no descriptor is
    /// available.
    pub fn serve(listener: OwnedFd, handling: Handling) -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(Vhost::serve(listener, Wlan::default(), handling)?))))
    }

    /// Serves the guest that connects to `listener`, a listening Unix stream socket, and sends the
    /// messages of its kernel there.
    ///
    /// # Errors
    /// As [`WlanDevice::serve`].
    pub fn serve_stream(listener: OwnedFd) -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(Stream::serve(listener)?))))
    }

    /// Is the medium of radios of this machine's kernel.
    #[must_use]
    pub fn of_kernel(radios: Radios) -> Self {
        Self(Arc::new(Mutex::new(Netlink::serve(radios))))
    }

    /// The port of the radio with this number in the guest, at most [`MOST_RADIOS`]. Radio 0 must
    /// have a port: it is the one that the engine polls.
    #[must_use]
    pub fn port(&self, number: usize, phy: &'static Phy) -> Option<WlanPort> {
        (number < MOST_RADIOS).then(|| WlanPort { device: self.clone(), number, phy })
    }

    /// The transport, for inspection.
    pub fn transport(&self) -> MutexGuard<'_, dyn Transport + 'static> {
        self.0.lock().expect("no holder panics")
    }
}

/// The port of one radio of a guest.
#[derive(Debug)]
pub struct WlanPort {
    device: WlanDevice,
    number: usize,
    phy: &'static Phy,
}

impl WlanPort {
    /// Whether this is the port by which the device is served.
    fn serves(&self) -> bool {
        self.number == 0
    }
}

impl Port for WlanPort {
    fn fd(&self) -> Option<RawFd> {
        self.serves().then(|| self.device.transport().descriptor())
    }

    fn attached(&mut self, port: PortId) {
        self.device.transport().wlan().assign(self.number, port, self.phy);
    }

    /// Receives one frame from any radio of the guest, or the addresses of one.
    fn receive(&mut self, _: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        let mut transport = self.device.transport();
        loop {
            match transport.wlan().take_changed() {
                Some(Changed::Addresses(port, addresses)) => return Incoming::Addresses(port, addresses),
                Some(Changed::Listening(port, listening)) => return Incoming::Listening(port, listening),
                None => {}
            }
            match transport.take(pool) {
                Some(Taken::Transmit(port, buffer, octets, request)) => {
                    return Incoming::Transmit(port, buffer, octets, request);
                }
                Some(Taken::Nothing) => {}
                None if transport.wlan().has_changed() => {}
                None => return Incoming::Empty,
            }
        }
    }

    fn has_peer(&self) -> bool {
        self.serves()
    }

    fn negotiate(&mut self) -> bool {
        self.device.transport().negotiate()
    }

    /// Ethernet frames do not reach the port of a radio that carries 802.11 frames.
    fn deliver(&mut self, _: Outgoing<'_>) -> Delivery {
        Delivery::Lost(HostLoss::Refused)
    }

    fn receive_wlan(&mut self, outgoing: &Outgoing<'_>, status: &RxStatus) -> Delivery {
        let mut transport = self.device.transport();
        match transport.wlan().received(self.number, outgoing.frame, outgoing.pool, status) {
            Some((head, rest, padding)) => transport.put([&head, rest, padding]),
            None => Delivery::Lost(HostLoss::TooBig),
        }
    }

    fn transmitted(&mut self, status: &TxStatus) {
        let mut transport = self.device.transport();
        if let Some(message) = transport.wlan().transmitted(self.number, status) {
            // A guest without room for it drops the oldest frames that wait for their status.
            transport.put([&message, &[], &[]]);
        }
    }

    fn notify(&mut self, now: Instant) -> Instant {
        self.device.transport().notify(now)
    }

    fn serve_in_band(&mut self) -> InBand {
        if self.serves() { self.device.transport().serve_in_band() } else { InBand::Nothing }
    }

    fn acknowledge(&mut self) {
        self.device.transport().acknowledge();
    }

    fn call(&mut self, send: &mut dyn FnMut(BorrowedFd<'_>, Notice)) -> bool {
        self.device.transport().call(send)
    }

    fn join(&mut self, number: u16) {
        if self.serves() {
            self.device.transport().join(number);
        }
    }

    fn missed(&mut self) -> u64 {
        if self.serves() { self.device.transport().missed() } else { 0 }
    }

    fn is_gone(&self) -> bool {
        self.device.transport().is_gone()
    }

    fn report(&self) -> Option<Report> {
        self.serves().then(|| self.device.transport().figures())
    }
}
