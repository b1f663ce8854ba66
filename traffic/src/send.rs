//! The sending end.

mod tcp;
mod udp;

use airloom_engine::time::{Instant, Span};

use crate::clock::{self, Offset};
use crate::net;
use crate::options;
use crate::pattern::Pattern;
use crate::record::{self, End, Header, Protocol, Writer};
use crate::summary::{Failure, Summary};

/// Time from the end of preparation to the first packet: enough to warm the caches and open the
/// file.
const LEAD: Span = Span::from_millis(5);

/// A sender that is late by more than this at the end of its time stops instead of sending the
/// rest.
const GRACE: Span = Span::from_millis(100);

/// Sends a flow. The summary is also valid after an error.
pub fn run(options: &options::Send, summary: &mut Summary) -> Result<(), Failure> {
    match options.common.protocol {
        Protocol::Udp | Protocol::Rtp => udp::run(options, summary),
        Protocol::Tcp => tcp::run(options, summary),
    }
}

/// Begin of a flow, and its latest end.
#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    end: Instant,
}

impl Window {
    fn open(options: &options::Send) -> Self {
        let start = clock::now() + LEAD;
        let grace = if matches!(options.pattern, Pattern::Flood) { Span::ZERO } else { GRACE };
        Self { start, end: start + options.duration + grace }
    }
}

fn writer(options: &options::Send, window: Window) -> Result<Writer<std::fs::File>, Failure> {
    let file = match &options.common.record {
        Some(path) => Some(record::open(path).map_err(Failure::begin(path))?),
        None => None,
    };
    let header = Header {
        end: End::Sender,
        protocol: options.common.protocol,
        flow: options.common.flow.unwrap_or(1),
        kernel_stamps: false,
        family: Some(net::family(options.to.ip())),
        rtp_clock: if options.common.protocol == Protocol::Rtp { options.rtp_clock } else { 0 },
        seed: options.seed,
        begun: clock::now(),
        offset: Offset::measure_well(),
        size: if matches!(options.pattern, Pattern::Trace(_)) { 0 } else { options.size },
        start: window.start,
    };
    Ok(Writer::new(file, &header))
}
