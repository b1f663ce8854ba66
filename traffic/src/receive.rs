//! The receiving end.

mod gather;
mod tcp;
mod udp;

use std::net::SocketAddr;

use airloom_engine::time::{Instant, Span};

use crate::clock::{self, Offset};
use crate::frame::Family;
use crate::options;
use crate::record::{self, End, Header, Protocol, Writer};
use crate::stop;
use crate::summary::{Ended, Failure, Summary};

/// The records are written out after this time without a packet.
const LOOK: Span = Span::from_millis(50);

/// Receives a flow. The summary is also valid after an error.
pub fn run(options: &options::Receive, summary: &mut Summary) -> Result<(), Failure> {
    match options.common.protocol {
        Protocol::Udp | Protocol::Rtp => udp::run(options, summary),
        Protocol::Tcp => tcp::run(options, summary),
    }
}

fn writer(options: &options::Receive, kernel_stamps: bool) -> Result<Writer<std::fs::File>, Failure> {
    let file = match &options.common.record {
        Some(path) => Some(record::open(path).map_err(Failure::begin(path))?),
        None => None,
    };
    let header = Header {
        end: End::Receiver,
        protocol: options.common.protocol,
        flow: options.common.flow.unwrap_or(0),
        kernel_stamps,
        family: match options.at {
            SocketAddr::V4(_) => Some(Family::V4),
            SocketAddr::V6(v6) if !v6.ip().is_unspecified() => Some(Family::V6),
            SocketAddr::V6(_) => None,
        },
        rtp_clock: 0,
        seed: 0,
        begun: clock::now(),
        offset: Offset::measure_well(),
        size: 0,
        start: Instant::ZERO,
    };
    Ok(Writer::new(file, &header))
}

/// Time-outs of a receiver.
struct Timeouts {
    began: Instant,
    latest: Option<Instant>,
    ending: bool,
    wait: Span,
    idle: Span,
    linger: Span,
}

impl Timeouts {
    fn new(options: &options::Receive) -> Self {
        let options::Receive { wait, idle, linger, .. } = *options;
        Self { began: clock::now(), latest: None, ending: false, wait, idle, linger }
    }

    /// Records the arrival of a packet.
    fn arrived(&mut self, now: Instant) {
        self.latest = Some(now);
    }

    /// When the flow ends if no further packet arrives.
    fn until(&self) -> Instant {
        match self.latest {
            None => self.began + self.wait,
            Some(latest) => latest + if self.ending { self.linger } else { self.idle },
        }
    }

    /// Why the flow has ended at `now`, if it has.
    fn over(&self, now: Instant) -> Option<Ended> {
        if stop::asked() {
            return Some(Ended::Signal);
        }
        let ended = if self.ending { Ended::Done } else { Ended::Idle };
        (now >= self.until()).then_some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_limit_depends_on_what_has_arrived() {
        let at = |nanos| Instant::from_nanos(nanos);
        let mut timeouts = Timeouts {
            began: at(100),
            latest: None,
            ending: false,
            wait: Span::from_nanos(50),
            idle: Span::from_nanos(20),
            linger: Span::from_nanos(5),
        };
        assert_eq!(timeouts.over(at(149)), None);
        assert_eq!(timeouts.over(at(150)), Some(Ended::Idle));
        timeouts.arrived(at(120));
        assert_eq!(timeouts.over(at(139)), None);
        assert_eq!(timeouts.over(at(140)), Some(Ended::Idle));
        timeouts.ending = true;
        assert_eq!(timeouts.over(at(124)), None);
        assert_eq!(timeouts.over(at(125)), Some(Ended::Done));
    }
}
