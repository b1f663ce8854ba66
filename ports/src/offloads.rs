//! The offloads of a network interface: work that its kernel leaves to the device, and the other
//! way round.

/// Which offloads a port offers to the kernel behind it. Without them every frame that passes is
/// what a wire carries: no longer than its MTU allows, and with its own checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Of frames that the node sends: checksums (`tx-checksumming` of ethtool(8)) and with them
    /// segmentation (TSO, USO).
    pub transmit: bool,
    /// Of frames that the node receives: checksums that its kernel need not verify
    /// (`rx-checksumming`) and with them super-frames (GRO, LRO).
    pub receive: bool,
}

impl Default for Offloads {
    /// All.
    fn default() -> Self {
        Self { transmit: true, receive: true }
    }
}
