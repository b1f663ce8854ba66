//! Features and configuration of a guest's network device.

use super::message::CONFIG;

/// Features of a network device (virtio 1.2, section 5.1.3), by number.
pub(super) mod feature {
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
    pub const INDIRECT_DESC: u64 = 1 << 28;
    pub const EVENT_IDX: u64 = 1 << 29;
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    pub const VERSION_1: u64 = 1 << 32;
    pub const GUEST_USO4: u64 = 1 << 54;
    pub const GUEST_USO6: u64 = 1 << 55;
    pub const HOST_USO: u64 = 1 << 56;
}

/// Features that a device can offer.
pub const FEATURES: u64 = feature::CSUM
    | feature::GUEST_CSUM
    | feature::MTU
    | feature::MAC
    | feature::GUEST_TSO4
    | feature::GUEST_TSO6
    | feature::GUEST_ECN
    | feature::HOST_TSO4
    | feature::HOST_TSO6
    | feature::HOST_ECN
    | feature::MRG_RXBUF
    | feature::STATUS
    | feature::INDIRECT_DESC
    | feature::EVENT_IDX
    | feature::PROTOCOL_FEATURES
    | feature::VERSION_1
    | feature::GUEST_USO4
    | feature::GUEST_USO6
    | feature::HOST_USO;

/// Protocol features: an answer to every message, the MTU, a back-end channel, the configuration, a
/// reset. The channel tells of changes of the configuration, and User Mode Linux requests no interrupt
/// without it.
pub(super) const REPLY_ACK: u64 = 1 << 3;
pub(super) const PROTOCOL: u64 = REPLY_ACK | 1 << 4 | 1 << 5 | 1 << 9 | 1 << 13;

/// The configuration space of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// MTU: octets of the longest packet without its Ethernet header.
    pub mtu: u16,
}

impl DeviceConfig {
    /// The configuration as the guest reads it: address, status, queue pairs, MTU. The status has
    /// one bit, VIRTIO_NET_S_LINK_UP.
    pub(super) fn octets(self, carrier: bool) -> [u8; CONFIG] {
        let mut octets = [0; CONFIG];
        octets[..6].copy_from_slice(&self.mac);
        octets[6..8].copy_from_slice(&u16::from(carrier).to_le_bytes());
        octets[8..10].copy_from_slice(&1u16.to_le_bytes());
        octets[10..12].copy_from_slice(&self.mtu.to_le_bytes());
        octets
    }
}
