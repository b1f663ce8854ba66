//! A port whose frames the program that runs the engine reads from memory.

use std::sync::{Arc, Mutex, MutexGuard};

use airloom_engine::frame::segment;
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, HostLoss, PortId};

use crate::port::{Outgoing, Port};

/// Maximum number of queued frames while the wall clock runs. A stepped engine has no limit.
const LIMIT: usize = 65_536;

/// A frame that reached a memory port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The port.
    pub port: PortId,
    /// The arrival time.
    pub at: Instant,
    /// Its octets, checksums complete.
    pub octets: Box<[u8]>,
}

#[derive(Debug)]
struct Waiting {
    frames: Vec<Received>,
    limit: usize,
}

/// Frames received by the memory ports that share the inbox, in order of arrival.
#[derive(Clone, Debug)]
pub struct Inbox(Arc<Mutex<Waiting>>);

impl Default for Inbox {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting { frames: Vec::new(), limit: usize::MAX })))
    }
}

impl Inbox {
    /// Returns the queued frames and empties the inbox.
    #[must_use]
    pub fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.waiting().frames)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().expect("no holder panics")
    }
}

/// A memory port.
#[derive(Debug)]
pub struct Memory {
    inbox: Inbox,
}

impl Memory {
    /// A port whose frames are queued in `inbox`.
    #[must_use]
    pub fn new(inbox: &Inbox) -> Self {
        Self { inbox: inbox.clone() }
    }
}

impl Port for Memory {
    fn deliver(&mut self, outgoing: Outgoing<'_>) -> Delivery {
        let Outgoing { port, at, frame, pool, scratch, .. } = outgoing;
        let mut waiting = self.inbox.waiting();
        if waiting.frames.len().saturating_add(usize::from(frame.count)) > waiting.limit {
            return Delivery::Lost(HostLoss::RingFull);
        }
        for number in frame.first..frame.first + frame.count {
            let octets = segment::complete(frame, pool, number, scratch);
            waiting.frames.push(Received { port, at, octets: scratch[..octets].into() });
        }
        Delivery::Taken
    }

    fn start(&mut self) {
        self.inbox.waiting().limit = LIMIT;
    }
}
