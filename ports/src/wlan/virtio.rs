//! The wireless device of a guest (virtio id 29), which all its radios share.

use std::os::fd::{BorrowedFd, RawFd};

use airloom_engine::egress::Delivery;
use airloom_engine::frame::Pool;
use airloom_engine::time::Instant;

use super::Transport;
use super::device::{Taken, Wlan};
use super::hwsim::{Content, LONGEST};
use crate::port::{InBand, Report};
use crate::vhost::call::Notice;
use crate::vhost::device::{Device, DeviceType, feature};
use crate::vhost::memory::Memory;
use crate::vhost::message::CONFIG;
use crate::vhost::queue::Buffers;
use crate::vhost::{DisconnectReason, Vhost};

impl DeviceType for Wlan {
    const SENDS_ON: u32 = 0;
    const HEADER: usize = 0;

    fn features(&self) -> u64 {
        feature::ALL
    }

    fn config(&self, _: bool) -> [u8; CONFIG] {
        [0; CONFIG]
    }

    fn merges(_: u64) -> bool {
        false
    }

    fn has_status(_: u64) -> bool {
        false
    }

    fn unserved(&self) -> Vec<String> {
        self.strangers()
    }

    fn reset(&mut self) {
        self.forget_guest();
    }
}

/// A message in the buffers of the guest.
struct Entry<'a> {
    buffers: &'a Buffers,
    memory: &'a Memory,
}

impl Content for Entry<'_> {
    fn octets(&self) -> usize {
        self.buffers.octets().min(LONGEST)
    }

    fn copy(&self, at: usize, to: &mut [u8]) {
        self.buffers.read(self.memory, at, to);
    }
}

impl Device<Wlan> {
    /// Takes one message of the guest.
    fn take(&mut self, pool: &mut Pool) -> Result<Option<Taken>, DisconnectReason> {
        let taken = self.take_entry(|wlan, buffers, memory| {
            let taken = wlan.serve(&Entry { buffers, memory }, pool);
            let octets = if let Ok(Taken::Transmit(_, _, octets, _)) = taken { octets as usize } else { 0 };
            (taken, octets)
        })?;
        taken.transpose().map_err(DisconnectReason::Wlan)
    }
}

impl Transport for Vhost<Wlan> {
    fn wlan(&mut self) -> &mut Wlan {
        &mut self.device_mut().kind
    }

    fn descriptor(&self) -> RawFd {
        self.descriptor()
    }

    fn take(&mut self, pool: &mut Pool) -> Option<Taken> {
        self.next(|device| device.take(pool))
    }

    fn put(&mut self, message: [&[u8]; 3]) -> Delivery {
        self.put(|device| Ok(device.put_entry(message)?.map_or(Delivery::Taken, Delivery::Lost)))
    }

    fn negotiate(&mut self) -> bool {
        self.serve_messages()
    }

    fn notify(&mut self, now: Instant) -> Instant {
        self.notify_guest(now)
    }

    fn serve_in_band(&mut self) -> InBand {
        Vhost::serve_in_band(self)
    }

    fn acknowledge(&mut self) {
        Vhost::acknowledge(self);
    }

    fn call(&mut self, send: &mut dyn FnMut(BorrowedFd<'_>, Notice)) -> bool {
        Vhost::call(self, send)
    }

    fn join(&mut self, number: u16) {
        Vhost::join(self, number);
    }

    fn is_gone(&self) -> bool {
        self.is_gone()
    }

    fn disconnect_reason(&self) -> Option<&DisconnectReason> {
        self.disconnect_reason()
    }

    fn figures(&self) -> Report {
        self.figures()
    }
}
