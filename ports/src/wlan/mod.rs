//! Radios that are wireless devices of guests: each is a port of the engine, and all radios of a
//! guest share one device (virtio id 29), by which the guest's `mac80211_hwsim` sends and receives
//! 802.11 frames.

pub mod device;
pub mod hwsim;
pub mod rates;

use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};

use airloom_engine::frame::Pool;
use airloom_engine::medium::phy::Phy;
use airloom_engine::medium::wlan::{RxStatus, TxStatus};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, HostLoss, PortId};

use crate::error::Error;
use crate::port::{Incoming, Outgoing, Port, Report};
use crate::rx::RxBuffers;
use crate::vhost::Vhost;
use device::{MOST_RADIOS, Taken, Wlan};

/// A guest's wireless device. All its ports belong to one engine, whose thread alone uses it.
#[derive(Clone, Debug)]
pub struct WlanDevice(Arc<Mutex<Vhost<Wlan>>>);

impl WlanDevice {
    /// Serves the guest that connects to `listener`, a listening Unix stream socket.
    ///
    /// # Errors
    /// [`Error::VhostSocket`] if it is not such a socket, [`Error::Loop`] if no descriptor is
    /// available.
    pub fn serve(listener: OwnedFd) -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(Vhost::serve(listener, Wlan::default())?))))
    }

    /// The port of the radio with this number in the guest, at most [`MOST_RADIOS`]. Radio 0 must
    /// have a port: it is the one that the engine polls.
    #[must_use]
    pub fn port(&self, number: usize, phy: &'static Phy) -> Option<WlanPort> {
        (number < MOST_RADIOS).then(|| WlanPort { device: self.clone(), number, phy })
    }

    /// The back end, for inspection.
    pub fn vhost(&self) -> MutexGuard<'_, Vhost<Wlan>> {
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
        self.serves().then(|| self.device.vhost().descriptor())
    }

    fn attached(&mut self, port: PortId) {
        self.device.vhost().device_mut().kind.assign(self.number, port, self.phy);
    }

    /// Receives one frame from any radio of the guest, or the addresses of one.
    fn receive(&mut self, _: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        let mut vhost = self.device.vhost();
        loop {
            if let Some((port, addresses)) = vhost.device_mut().kind.take_changed() {
                return Incoming::Addresses(port, addresses);
            }
            match vhost.next(|device| device.take(pool)) {
                Some(Taken::Transmit(port, buffer, octets, request)) => {
                    return Incoming::Transmit(port, buffer, octets, request);
                }
                Some(Taken::Nothing) => {}
                None if vhost.device().kind.has_changed() => {}
                None => return Incoming::Empty,
            }
        }
    }

    fn has_peer(&self) -> bool {
        self.serves()
    }

    fn negotiate(&mut self) -> bool {
        self.device.vhost().serve_messages()
    }

    /// Ethernet frames do not reach the port of a radio that carries 802.11 frames.
    fn deliver(&mut self, _: Outgoing<'_>) -> Delivery {
        Delivery::Lost(HostLoss::Refused)
    }

    fn receive_wlan(&mut self, outgoing: &Outgoing<'_>, status: &RxStatus) -> Delivery {
        let number = self.number;
        self.device.vhost().put(|device| device.put(number, outgoing.frame, outgoing.pool, status))
    }

    fn transmitted(&mut self, status: &TxStatus) {
        let number = self.number;
        self.device.vhost().put(|device| device.report(number, status).map(|()| Delivery::Taken));
    }

    fn notify(&mut self, now: Instant) -> Instant {
        self.device.vhost().notify_guest(now)
    }

    fn is_gone(&self) -> bool {
        self.device.vhost().is_gone()
    }

    fn report(&self) -> Option<Report> {
        self.serves().then(|| self.device.vhost().figures())
    }
}
