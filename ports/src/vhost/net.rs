//! A guest's network device (virtio id 1): its features, its configuration, and its frames.

use std::os::fd::{BorrowedFd, RawFd};

use airloom_engine::egress::Delivery;
use airloom_engine::frame::segment;
use airloom_engine::frame::{BufferId, Frame, Pool, Protocol};
use airloom_engine::time::Instant;

use super::Vhost;
use super::call::Notice;
use super::device::{self, Device, DeviceType};
use super::disconnect::DisconnectReason;
use super::message::CONFIG;
use crate::offloads::Offloads;
use crate::port::{Blocking, InBand, Incoming, LARGEST_FRAME, Outgoing, Port, Report};
use crate::rx::RxBuffers;
use crate::vnet::{self, Meaning};

/// Features of a network device (virtio 1.2, section 5.1.3), by number.
mod feature {
    pub const CSUM: u64 = 1 << 0;
    pub const GUEST_CSUM: u64 = 1 << 1;
    pub const MTU: u64 = 1 << 3;
    pub const MAC: u64 = 1 << 5;
    pub const GUEST_TSO4: u64 = 1 << 7;
    pub const GUEST_TSO6: u64 = 1 << 8;
    pub const GUEST_ECN: u64 = 1 << 9;
    pub const HOST_TSO4: u64 = 1 << 11;
    pub const HOST_TSO6: u64 = 1 << 12;
    pub const HOST_ECN: u64 = 1 << 13;
    pub const MRG_RXBUF: u64 = 1 << 15;
    pub const STATUS: u64 = 1 << 16;
    pub const GUEST_USO4: u64 = 1 << 54;
    pub const GUEST_USO6: u64 = 1 << 55;
    pub const HOST_USO: u64 = 1 << 56;
}

/// Features that leave work on frames from the guest to the device.
const TRANSMIT: u64 =
    feature::CSUM | feature::HOST_TSO4 | feature::HOST_TSO6 | feature::HOST_ECN | feature::HOST_USO;
/// Features that leave work on frames to the guest to the guest.
const RECEIVE: u64 = feature::GUEST_CSUM
    | feature::GUEST_TSO4
    | feature::GUEST_TSO6
    | feature::GUEST_ECN
    | feature::GUEST_USO4
    | feature::GUEST_USO6;

/// Features that a device can offer.
pub const FEATURES: u64 = TRANSMIT
    | RECEIVE
    | feature::MTU
    | feature::MAC
    | feature::MRG_RXBUF
    | feature::STATUS
    | device::feature::ALL;

/// The configuration space of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// MTU: octets of the longest packet without its Ethernet header.
    pub mtu: u16,
    /// Offloads that it offers.
    pub offloads: Offloads,
}

impl DeviceType for DeviceConfig {
    const SENDS_ON: u32 = 1;
    const HEADER: usize = vnet::OCTETS;

    fn features(&self) -> u64 {
        let without = |offered: bool, features: u64| if offered { 0 } else { features };
        FEATURES & !without(self.offloads.transmit, TRANSMIT) & !without(self.offloads.receive, RECEIVE)
    }

    /// Address, status, queue pairs, MTU. The status has one bit, VIRTIO_NET_S_LINK_UP.
    fn config(&self, carrier: bool) -> [u8; CONFIG] {
        let mut octets = [0; CONFIG];
        octets[..6].copy_from_slice(&self.mac);
        octets[6..8].copy_from_slice(&u16::from(carrier).to_le_bytes());
        octets[8..10].copy_from_slice(&1u16.to_le_bytes());
        octets[10..12].copy_from_slice(&self.mtu.to_le_bytes());
        octets
    }

    fn merges(features: u64) -> bool {
        features & feature::MRG_RXBUF != 0
    }

    fn has_status(features: u64) -> bool {
        features & feature::STATUS != 0
    }
}

impl Device<DeviceConfig> {
    /// Receives one frame from the guest.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn take(&mut self, pool: &mut Pool) -> Result<Option<(BufferId, u32, Meaning)>, DisconnectReason> {
        self.take_entry(|_, buffers, memory| {
            frame(pool, buffers.octets(), |at, to| buffers.read(memory, at, to))
        })
    }

    /// Receives one frame that the guest has logged with its header.
    fn take_logged(&mut self, pool: &mut Pool, entry: &[u8]) -> (BufferId, u32, Meaning) {
        let (frame, octets) = frame(pool, entry.len(), |at, to| {
            let there = &entry[at.min(entry.len())..];
            let count = to.len().min(there.len());
            to[..count].copy_from_slice(&there[..count]);
        });
        self.count_logged(octets);
        frame
    }

    /// Delivers a frame, or a run of segments of one, to the guest, segmented as its features
    /// require.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn put(
        &mut self,
        frame: &Frame,
        pool: &Pool,
        scratch: &mut [u8],
    ) -> Result<Delivery, DisconnectReason> {
        let features = self.features();
        let has = |feature: u64| features & feature == feature;
        let whole = match frame.segmentation.map(|cut| cut.protocol) {
            _ if frame.count == 1 => true,
            None => true,
            Some(Protocol::Tcp4) => has(feature::GUEST_TSO4 | feature::GUEST_ECN),
            Some(Protocol::Tcp6) => has(feature::GUEST_TSO6 | feature::GUEST_ECN),
            Some(Protocol::Udp) => has(feature::GUEST_USO4 | feature::GUEST_USO6),
        };
        let open = frame.checksum.is_none() || has(feature::GUEST_CSUM);
        let (runs, count) = if whole && open { (1, frame.count) } else { (frame.count, 1) };
        for run in 0..runs {
            let first = frame.first + run;
            let handed = if open {
                let mut head = [0; segment::HEADER_MAX];
                let cut = segment::header(frame, pool, first, count, &mut head);
                let payload = &pool.octets(frame.buffer)[cut.payload];
                let (head, rest) =
                    if cut.header == 0 { (payload, &[][..]) } else { (&head[..cut.header], payload) };
                let header = vnet::write(cut.segmentation, cut.checksum, head);
                self.put_entry([&header, head, rest])?
            } else {
                let octets = segment::complete(frame, pool, first, scratch);
                self.put_entry([&vnet::write(None, None, &[]), &scratch[..octets], &[]])?
            };
            if let Some(loss) = handed {
                return Ok(if run == 0 { Delivery::Lost(loss) } else { Delivery::Partly(run, loss) });
            }
        }
        Ok(Delivery::Taken)
    }
}

/// Copies a frame with its header, of so many octets in all, to a buffer of the pool by `read`, which
/// copies from an offset on. Returns the frame and its octets without the header.
fn frame(pool: &mut Pool, all: usize, read: impl Fn(usize, &mut [u8])) -> ((BufferId, u32, Meaning), usize) {
    let mut header = [0; vnet::OCTETS];
    read(0, &mut header);
    let octets = all.saturating_sub(vnet::OCTETS);
    let length = octets.min(LARGEST_FRAME);
    let buffer = pool.take(length);
    read(vnet::OCTETS, &mut pool.octets_mut(buffer)[..length]);
    let meaning = match &pool.octets(buffer)[..length] {
        whole if length == octets => vnet::read(&header, whole),
        _ => Meaning::INVALID,
    };
    let length = u32::try_from(length).expect("a buffer is shorter than 4 GB");
    ((buffer, length, meaning), octets)
}

impl Port for Vhost<DeviceConfig> {
    fn fd(&self) -> Option<RawFd> {
        Some(self.descriptor())
    }

    /// Receives one frame from the guest, and serves its other requests.
    fn receive(&mut self, _: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        let taken = self.next(|device| device.take(pool));
        taken.map_or(Incoming::Empty, |(buffer, octets, meaning)| Incoming::Frame(buffer, octets, meaning))
    }

    fn has_peer(&self) -> bool {
        true
    }

    fn negotiate(&mut self) -> bool {
        self.serve_messages()
    }

    fn deliver(&mut self, outgoing: Outgoing<'_>) -> Delivery {
        self.put(|device| device.put(outgoing.frame, outgoing.pool, outgoing.scratch))
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

    fn logs(&self) -> Option<u32> {
        self.device().logs()
    }

    fn take_logged(&mut self, entry: &[u8], pool: &mut Pool) -> Incoming {
        let (buffer, octets, meaning) = self.device_mut().take_logged(pool, entry);
        Incoming::Frame(buffer, octets, meaning)
    }

    fn end_logged(&mut self, partly: bool, called: bool) {
        self.device_mut().end_logged(partly, called);
    }

    fn set_carrier(&mut self, up: bool) -> Option<Blocking> {
        self.device_mut().set_carrier(up);
        None
    }

    fn notify(&mut self, now: Instant) -> Instant {
        self.notify_guest(now)
    }

    fn is_gone(&self) -> bool {
        Vhost::is_gone(self)
    }

    fn report(&self) -> Option<Report> {
        Some(self.figures())
    }
}
