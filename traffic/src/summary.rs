//! Summary of a flow, and its errors.

use std::io;

use airloom_engine::time::Instant;
use serde::Serialize;

use crate::pacing::PacingSummary;
use crate::record::{End, Protocol};

/// Error of the program; each has an exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The socket failed during the flow.
    #[error("{what}: {cause}")]
    Socket {
        /// The attempted operation.
        what: String,
        /// The system's answer.
        cause: io::Error,
    },
    /// The flow could not be started.
    #[error("{what}: {cause}")]
    Begin {
        /// The attempted operation.
        what: String,
        /// The system's answer.
        cause: io::Error,
    },
    /// The receiver is absent.
    #[error("no receiver at {0}: start `airloom-traffic receive` there first")]
    Absent(String),
    /// Nothing was received.
    #[error("nothing came")]
    Nothing,
    /// The records are incomplete.
    #[error("the record file is incomplete: {0}")]
    Record(io::Error),
}

impl Failure {
    /// The program's exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Socket { .. } => 1,
            Self::Begin { .. } => 3,
            Self::Absent(_) => 4,
            Self::Nothing => 5,
            Self::Record(_) => 6,
        }
    }

    /// For `map_err` during the set-up.
    pub fn begin(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |cause| Self::Begin { what, cause }
    }

    /// For `map_err` during the flow.
    pub fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |cause| Self::Socket { what, cause }
    }
}

/// Why a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All requested packets were sent; at the receiver, the end mark arrived.
    Done,
    /// The sender could not keep its schedule, and its time ended before all was sent.
    Overrun,
    /// No packet arrived for the idle time.
    Idle,
    /// SIGTERM or SIGINT.
    Signal,
    /// An error occurred.
    Failure,
}

/// The summary; times in ns of `CLOCK_MONOTONIC`.
#[derive(Debug, Serialize)]
pub struct Summary {
    schema: u32,
    end: &'static str,
    protocol: Protocol,
    /// Number of the flow.
    pub flow: Option<u16>,
    /// Data packets sent or received, duplicates counted; TCP: writes or chunks.
    pub packets: u64,
    /// Payload of those, in octets.
    pub octets: u64,
    /// Time of the first packet.
    pub started_ns: Option<u64>,
    /// Time of the last packet.
    pub ended_ns: Option<u64>,
    /// Why it ended.
    pub ended_by: Ended,
    /// Sender: packets that the socket refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_sent: Option<u64>,
    /// Sender: ICMP refusals that came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Sender with `--stages`: cost of entering and leaving the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_call_ns: Option<u64>,
    /// TCP sender: retransmitted segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u32>,
    /// Sender: lateness of packets against the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<PacingSummary>,
    /// Receiver: number of data packets that the sender reports as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced: Option<u64>,
    /// Receiver: packets of other flows, or of no flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<u64>,
    /// Receiver: packets dropped because the socket's buffer was full: a limit of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// The error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Summary {
    /// Creates an empty summary.
    #[must_use]
    pub fn new(end: End, protocol: Protocol, flow: Option<u16>) -> Self {
        Self {
            schema: 1,
            end: match end {
                End::Sender => "sender",
                End::Receiver => "receiver",
            },
            protocol,
            flow,
            packets: 0,
            octets: 0,
            started_ns: None,
            ended_ns: None,
            ended_by: Ended::Done,
            not_sent: None,
            refused: None,
            retransmits: None,
            system_call_ns: None,
            pacing: None,
            announced: None,
            foreign: None,
            socket_drops: None,
            error: None,
        }
    }

    /// Counts a packet.
    pub fn add(&mut self, at: Instant, octets: u32) {
        self.packets += 1;
        self.octets += u64::from(octets);
        self.started_ns.get_or_insert(at.nanos());
        self.ended_ns = Some(at.nanos());
    }

    /// The summary as one sentence.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // rounded for people anyway
    pub fn sentence(&self) -> String {
        let nanos = self.ended_ns.unwrap_or(0).saturating_sub(self.started_ns.unwrap_or(0));
        let rate = if nanos == 0 { 0.0 } else { self.octets as f64 * 8e3 / nanos as f64 };
        let mut said = format!(
            "{}: {} packets, {} octets in {:.3} s ({rate:.3} Mbit/s)",
            self.end,
            self.packets,
            self.octets,
            nanos as f64 / 1e9
        );
        if let Some(announced) = self.announced {
            said += &format!(", {announced} were sent");
        }
        if let Some(drops @ 1..) = self.socket_drops {
            said += &format!(", {drops} lost for want of socket buffer");
        }
        if let Some(pacing) = &self.pacing {
            said += &format!(", late by {} ns (median), {} ns (at most)", pacing.p50_ns, pacing.max_ns);
        }
        said
    }
}
