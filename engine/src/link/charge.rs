//! Cost of a frame on the wire.

use crate::frame::{ETHERNET_HEADER, Frame};
use crate::ledger::Tally;
use crate::link::queue::Totals;
use crate::settings::{Counts, LinkSettings};

/// Octets of overhead charged per frame, and the minimum charge of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    overhead: u64,
    shortest: u64,
    /// Octets of a frame that are not charged.
    free: u64,
}

impl Charge {
    pub fn new(settings: &LinkSettings) -> Self {
        let (free, shortest) = match settings.counts {
            Counts::Frame => (0, settings.shortest),
            Counts::Packet => (u64::from(ETHERNET_HEADER), 0),
        };
        Self { overhead: settings.overhead.into(), shortest: shortest.into(), free }
    }

    /// Octets charged for one frame of so many octets.
    pub fn of_frame(self, octets: u32) -> u64 {
        u64::from(octets).max(self.shortest).saturating_sub(self.free) + self.overhead
    }

    /// Octets of a frame's charge that may be saved without the frame being faster than the wire:
    /// the 12 of Ethernet's inter-frame gap, and the same share of any other overhead.
    pub fn spare(self) -> u64 {
        self.overhead / 2
    }

    /// Number of frames of a run, their octets, and the octets charged for them.
    pub fn totals(self, frame: &Frame) -> Totals {
        let frames = u64::from(frame.count);
        let sizes = frame.sizes();
        let octets = sizes.sum(u64::from);
        let charged = sizes.sum(|octets| self.of_frame(octets));
        Totals { tally: Tally { frames, octets }, charged }
    }

    /// Octets charged for a frame, or for all frames of a run.
    pub fn of(self, frame: &Frame) -> u64 {
        frame.sizes().sum(|octets| self.of_frame(octets))
    }
}
