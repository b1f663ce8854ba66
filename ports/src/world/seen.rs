//! Frames that entered at ports and that were delivered there, for one who follows them step by step.

use airloom_engine::PortId;
use airloom_engine::frame::Frame;
use airloom_engine::time::Instant;

/// One frame, or several segments of a super-frame that pass together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When the last octet of it did.
    pub at: Instant,
    /// Where.
    pub port: PortId,
    /// True if the node behind the port has sent it, false if it was delivered to that node.
    pub sent: bool,
    /// Its octets, without the frame check sequence; those of all segments, each with its header.
    pub octets: u64,
}

/// Collects frames while somebody follows them.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// None while nobody does.
    seen: Option<Vec<Seen>>,
}

impl Follower {
    /// Begins to collect frames, or ends it.
    pub fn follow(&mut self, follows: bool) {
        if follows != self.seen.is_some() {
            self.seen = follows.then(Vec::new);
        }
    }

    /// Notes a frame.
    pub fn note(&mut self, port: PortId, at: Instant, sent: bool, frame: &Frame) {
        if let Some(seen) = &mut self.seen {
            seen.push(Seen { at, port, sent, octets: frame.octets() });
        }
    }

    /// Takes what was collected, in its order.
    pub fn take(&mut self) -> Vec<Seen> {
        self.seen.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
