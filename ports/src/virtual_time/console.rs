//! The control channel of a guest in virtual time: a console device (virtio id 3, virtio 1.2, section
//! 5.3) that the calendar serves, so that octets reach the guest at an instant of its time.

use crate::vhost::Vhost;
use crate::vhost::device::{Device, DeviceType, feature};
use crate::vhost::disconnect::DisconnectReason;
use crate::vhost::message::CONFIG;

/// Octets per buffer to the guest: less than the page that its driver offers for each.
const PIECE: usize = 2048;

/// The type of the device. Without features of its own it has one port and no size.
#[derive(Debug, Default)]
pub struct Console;

impl DeviceType for Console {
    const SENDS_ON: u32 = 1;
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
}

impl Device<Console> {
    /// Takes the octets of one entry of the guest.
    fn take_octets(&mut self) -> Result<Option<Vec<u8>>, DisconnectReason> {
        self.take_entry(|_, buffers, memory| {
            // The driver's buffer is a page; a longer one is of another driver, and is cut.
            let mut octets = vec![0; buffers.octets().min(1 << 16)];
            buffers.read(memory, 0, &mut octets);
            let count = octets.len();
            (octets, count)
        })
    }
}

impl Vhost<Console> {
    /// Takes all that the guest has written.
    pub(super) fn take_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(octets) = self.next(Device::<Console>::take_octets) {
            all.extend(octets);
        }
        all
    }

    /// Hands octets to the guest; what it has no buffers for waits.
    pub(super) fn put_all(&mut self, octets: &[u8]) {
        for piece in octets.chunks(PIECE) {
            self.put(|device| {
                let lost = device.put_entry([piece, &[], &[]])?;
                Ok(lost.map_or(airloom_engine::Delivery::Taken, airloom_engine::Delivery::Lost))
            });
        }
    }
}
