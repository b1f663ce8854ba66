//! Limits of a queue in frames, octets and time, and those above which it marks.

use super::Totals;
use crate::frame::Frame;
use crate::link::charge::Charge;
use crate::link::serializer::Serializer;
use crate::settings::{Discipline, QueueSettings};

/// Limits of the queue. The largest number means no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub frames: u64,
    pub octets: u64,
    pub charged: u64,
}

impl Limits {
    pub fn new(settings: &QueueSettings, serializer: &Serializer) -> Self {
        let charged = settings.time_ns.zip(serializer.mean()).map(|(time, rate)| {
            let octets = u128::from(time) * u128::from(rate) / 8_000_000_000;
            u64::try_from(octets).unwrap_or(u64::MAX)
        });
        Self {
            frames: settings.packets.map_or(u64::MAX, u64::from),
            octets: settings.octets.unwrap_or(u64::MAX),
            charged: charged.unwrap_or(u64::MAX),
        }
    }

    /// The limits above which a first-in first-out queue marks: the step, or half of its own.
    pub fn marks(self, discipline: &Discipline, serializer: &Serializer) -> Self {
        if let Discipline::Step { packets, octets, time_ns } = discipline {
            let step = QueueSettings { octets: *octets, time_ns: *time_ns, ..QueueSettings::default() };
            return Self { frames: packets.unwrap_or(u64::MAX), ..Self::new(&step, serializer) };
        }
        Self { frames: self.frames / 2, octets: self.octets / 2, charged: self.charged / 2 }
    }

    pub fn exceeded(&self, totals: &Totals) -> bool {
        let Totals { tally, charged } = totals;
        tally.frames > self.frames || tally.octets > self.octets || *charged > self.charged
    }

    /// Number of frames of a run that fit into the queue.
    pub fn free(&self, totals: &Totals, frame: &Frame, charge: Charge) -> u16 {
        let sizes = frame.sizes();
        let fit = |free: u64, cost: &dyn Fn(u32) -> u64| {
            let fulls = u64::from(sizes.fulls);
            let fit = free.checked_div(cost(sizes.full)).unwrap_or(fulls).min(fulls);
            let tail = sizes.tail > 0 && fit == fulls;
            fit + u64::from(tail && free - fit * cost(sizes.full) >= cost(sizes.tail))
        };
        let mut free = self.frames.saturating_sub(totals.tally.frames);
        if self.octets < u64::MAX {
            free = free.min(fit(self.octets.saturating_sub(totals.tally.octets), &u64::from));
        }
        if self.charged < u64::MAX {
            let one = |octets| charge.of_frame(octets);
            free = free.min(fit(self.charged.saturating_sub(totals.charged), &one));
        }
        u16::try_from(free).unwrap_or(u16::MAX).min(frame.count)
    }
}
