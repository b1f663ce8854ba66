//! Entries of a queue that a guest in virtual time logs itself ([`crate::virtual_time`]).
//!
//! Its driver copies them, and returns them to itself, in the place of the device.

use super::coalescing::Coalescing;
use super::device::{Device, DeviceType, SEND};

impl<T: DeviceType> Device<T> {
    /// Gives it a number among the devices of its guest.
    pub(crate) fn join(&mut self, number: u16) {
        self.number = Some(number);
    }

    /// The queue of which the guest may log what it sends. One whose notifications are held may not: the
    /// device decides when they come.
    pub(crate) fn logs(&self) -> Option<u32> {
        let may = self.is_up() && self.is_in_band() && self.coalescing == Coalescing::Off;
        may.then_some(T::SENDS_ON)
    }

    /// Counts an entry of so many octets that the guest has logged.
    pub(crate) fn count_logged(&mut self, octets: usize) {
        self.counts.taken += 1;
        self.counts.taken_octets += octets as u64;
        self.logged += 1;
    }

    /// Ends the entries that the guest has logged at one notification, all or a part of them.
    pub(crate) fn end_logged(&mut self, partly: bool, called: bool) {
        let any = std::mem::take(&mut self.logged) > 0;
        self.counts.kicks += u64::from(!partly);
        self.counts.calls += u64::from(called);
        self.counts.spared += u64::from(any && !partly && !called);
        if let Some(queue) = &mut self.sides[SEND].queue {
            queue.resume();
        }
    }
}
