//! Frames that a node's kernel dropped because their interface had no carrier.
//!
//! The kernel counts them as transmit drops of the TAP, like frames for which its ring was full. The
//! former are losses of the emulated link, the latter of this machine. The counter is therefore read
//! before the carrier is taken away, and when the kernel has noticed that it is back.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use airloom_netns::TapLink;

/// Interval and maximum number of readings until the kernel has noticed a carrier: 0.1 s in all. It
/// handles the news at once, unless another process has the RTNL lock.
const INTERVAL: Duration = Duration::from_micros(500);
const READINGS: u32 = 200;

/// Frames dropped for want of a carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// Frames dropped in the times that are over.
    pub frames: u64,
    /// Without carrier at present: the transmit drops when it was lost, above which all are of this
    /// kind.
    pub since: Option<u64>,
}

/// Measures [`Unsent`] of one TAP.
#[derive(Debug, Default)]
pub struct CarrierDrops {
    link: Mutex<Option<TapLink>>,
    unsent: Mutex<Measured>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    unsent: Unsent,
    /// The counter could not be read.
    unknown: bool,
}

impl CarrierDrops {
    /// Changes the carrier by `change`, and reads the counter around it. It may block.
    pub(crate) fn around(&self, tap: &Arc<OwnedFd>, up: bool, change: impl FnOnce()) {
        // Only one thread changes carriers; a panic in it ends the run.
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if link.is_none() {
            *link = TapLink::of(tap).ok();
        }
        if !up {
            // Before the change, after which frames are dropped.
            self.lost(link.as_ref().and_then(|link| Some(link.state().ok()?.tx_dropped)));
        }
        change();
        if up {
            self.back(link.as_ref().and_then(noticed));
        }
    }

    /// The frames so far; None if the counter could not be read.
    pub(crate) fn unsent(&self) -> Option<Unsent> {
        let measured = *self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        (!measured.unknown).then_some(measured.unsent)
    }

    fn lost(&self, at: Option<u64>) {
        let mut measured = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        measured.unknown |= at.is_none();
        if measured.unsent.since.is_none() {
            measured.unsent.since = at;
        }
    }

    fn back(&self, at: Option<u64>) {
        let mut measured = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = measured.unsent.since.take() {
            measured.unknown |= at.is_none();
            measured.unsent.frames += at.unwrap_or(since).saturating_sub(since);
        }
    }
}

/// The transmit drops once the kernel has noticed the carrier, or when it is not expected to any
/// more: the node took the interface down.
fn noticed(link: &TapLink) -> Option<u64> {
    let mut state = link.state().ok()?;
    for _ in 1..READINGS {
        if state.running || !state.up {
            break;
        }
        thread::sleep(INTERVAL);
        state = link.state().ok()?;
    }
    Some(state.tx_dropped)
}

#[cfg(test)]
mod tests {
    use super::{CarrierDrops, Unsent};

    #[test]
    fn what_is_dropped_between_loss_and_return_is_unsent() {
        let drops = CarrierDrops::default();
        drops.lost(Some(7));
        assert_eq!(drops.unsent(), Some(Unsent { frames: 0, since: Some(7) }));
        drops.lost(Some(9));
        drops.back(Some(12));
        drops.back(Some(99));
        assert_eq!(drops.unsent(), Some(Unsent { frames: 5, since: None }));
    }

    #[test]
    fn a_counter_that_cannot_be_read_tells_nothing() {
        let drops = CarrierDrops::default();
        drops.lost(None);
        drops.back(Some(12));
        assert_eq!(drops.unsent(), None);
    }
}
