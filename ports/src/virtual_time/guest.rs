//! A guest of the calendar, and the wait for it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant as Wall;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::client::Client;
use super::console::Console;
use crate::error::Error;
use crate::vhost::Vhost;

/// Octets read from a controller at once.
const PIECE: usize = 1 << 16;

/// A guest with its devices.
pub(super) struct Guest {
    pub client: Client,
    pub console: Vhost<Console>,
    /// The controller's end of the console.
    pub wire: OwnedFd,
    /// Octets of the controller that came before the guest's console was up.
    pub early: Vec<u8>,
    /// Octets of the guest that the controller has no room for yet.
    pub unread: Vec<u8>,
    /// Messages that notify it, and their channels, which wait for its turn.
    pub held: Vec<(OwnedFd, Vec<u8>)>,
    /// Numbers of the ports that are its devices.
    pub ports: Vec<usize>,
    /// Whether it may not act until it is resumed.
    pub paused: bool,
    /// Number of the processor on which it works, and its place there.
    pub processor: Option<(usize, usize)>,
}

impl Guest {
    /// Reads what the controller has written.
    pub fn hear(&mut self) {
        let mut octets = vec![0; PIECE];
        while let Ok(got) = rustix::io::read(&self.wire, &mut octets) {
            if got == 0 {
                return;
            }
            self.early.extend(&octets[..got]);
        }
    }

    /// Hands to the controller what the guest has written.
    pub fn flush(&mut self) {
        while !self.unread.is_empty() {
            match rustix::net::send(&self.wire, &self.unread, rustix::net::SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.unread.drain(..sent)),
                Err(Errno::AGAIN | Errno::INTR) => return,
                // Without a controller nobody reads it.
                Err(_) => self.unread.clear(),
            }
        }
    }
}

/// Waits until one of the descriptors is readable, or for the deadline; returns which are.
pub(super) fn wait(descriptors: &[impl AsFd], deadline: Wall) -> Result<Vec<bool>, Error> {
    let mut entries: Vec<PollFd<'_>> =
        descriptors.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
    loop {
        let left = deadline.saturating_duration_since(Wall::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut entries, Some(&left)) {
            Ok(_) => return Ok(entries.iter().map(|one| !one.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::Loop { what: "a wait for a guest", source: error.into() }),
        }
    }
}
