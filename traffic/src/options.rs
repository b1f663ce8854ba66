//! The command line.

use std::fs::File;
use std::io::BufReader;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use airloom_engine::time::Span;
use lexopt::prelude::*;

use crate::frame::{self, Counted, Family};
use crate::hosts;
use crate::net;
use crate::packet::{HEADER, RTP_HEADER};
use crate::pattern::{Gap, Pattern, Periods, trace};
use crate::quantity;
use crate::record::Protocol;

/// Output of `--help`.
pub const HELP: &str = include_str!("help.txt");

/// The requested action.
pub enum Request {
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Send a flow.
    Send(Box<Send>),
    /// Receive a flow.
    Receive(Receive),
}

/// Options of both ends.
#[derive(Clone, Debug)]
pub struct Common {
    /// Transport protocol of the flow.
    pub protocol: Protocol,
    /// Number of the flow; a receiver without one accepts the first flow that arrives.
    pub flow: Option<u16>,
    /// File of the records; `-` is standard output.
    pub record: Option<String>,
    /// Print the summary as JSON instead of as a sentence.
    pub json: bool,
    /// Record when packets passed the kernel's boundaries.
    pub stages: bool,
}

/// A flow to send.
#[derive(Clone, Debug)]
pub struct Send {
    /// Options of both ends.
    pub common: Common,
    /// Destination.
    pub to: SocketAddr,
    /// Times and sizes of the packets.
    pub pattern: Pattern,
    /// Payload in octets (not used by a trace).
    pub size: u32,
    /// Maximum number of packets.
    pub count: u64,
    /// Maximum duration.
    pub duration: Span,
    /// Seed of random patterns.
    pub seed: u64,
    /// DSCP and ECN.
    pub class: u8,
    /// Forbid fragments.
    pub dont_fragment: bool,
    /// Maximum time before a packet's deadline during which the sender spins instead of sleeping.
    pub spin: Span,
    /// Give up after this number of ICMP refusals; 0 is never.
    pub refusals: u64,
    /// TCP's congestion control.
    pub congestion: Option<String>,
    /// Time-out of a TCP connection attempt.
    pub connect_within: Span,
    /// Units of RTP timestamps in a second.
    pub rtp_clock: u32,
    /// RTP payload type.
    pub rtp_type: u8,
}

/// A flow to receive.
#[derive(Clone, Debug)]
pub struct Receive {
    /// Options of both ends.
    pub common: Common,
    /// Local address.
    pub at: SocketAddr,
    /// How long to wait for the first packet.
    pub wait: Span,
    /// End when no packet arrived for this time after the first one.
    pub idle: Span,
    /// Time to wait for late packets after the end packet.
    pub linger: Span,
    /// Stamp arrivals in user space.
    pub user_stamps: bool,
    /// Socket buffer in octets.
    pub buffer: usize,
}

/// Error in the command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<quantity::QuantityError> for UsageError {
    fn from(error: quantity::QuantityError) -> Self {
        Self(error.to_string())
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, UsageError> {
    Err(UsageError(why.into()))
}

/// All options as given; which of them may be combined is checked afterwards.
#[derive(Default)]
struct Given {
    to: Option<String>,
    port: Option<u16>,
    bind: Option<String>,
    protocol: Option<String>,
    pattern: Option<String>,
    rate: Option<String>,
    counted: Counted,
    interval: Option<Span>,
    size: Option<u64>,
    frame: Option<u64>,
    count: Option<u64>,
    duration: Option<Span>,
    on: Option<Span>,
    off: Option<Span>,
    exponential: bool,
    trace: Option<String>,
    dscp: u8,
    ecn: u8,
    dont_fragment: bool,
    flow: Option<u16>,
    seed: u64,
    record: Option<String>,
    spin: Option<Span>,
    refusals: Option<u64>,
    congestion: Option<String>,
    connect_within: Option<Span>,
    rtp_clock: Option<u32>,
    rtp_type: Option<u8>,
    wait: Option<Span>,
    idle: Option<Span>,
    linger: Option<Span>,
    user_stamps: bool,
    buffer: Option<u64>,
    json: bool,
    stages: bool,
}

/// Parses a command line, without the program's name.
pub fn parse<I>(words: I) -> Result<Request, UsageError>
where
    I: IntoIterator,
    I::Item: Into<std::ffi::OsString>,
{
    let mut parser = lexopt::Parser::from_args(words);
    let sends = match parser.next()? {
        Some(Value(word)) if word == "send" => true,
        Some(Value(word)) if word == "receive" => false,
        Some(Short('h') | Long("help")) => return Ok(Request::Help),
        Some(Short('V') | Long("version")) => return Ok(Request::Version),
        Some(other) => return refuse(format!("expected `send` or `receive`: {}", other.unexpected())),
        None => return refuse("expected `send` or `receive`"),
    };
    let mut given = Given::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Long(word) => {
                let word = word.to_owned();
                let known = both(&word, &mut parser, &mut given)?
                    || if sends {
                        only_send(&word, &mut parser, &mut given)?
                    } else {
                        only_receive(&word, &mut parser, &mut given)?
                    };
                if !known {
                    let verb = if sends { "send" } else { "receive" };
                    return refuse(format!(
                        "`{verb}` has no option `--{word}`; see `airloom-traffic --help`"
                    ));
                }
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if sends {
        given.send().map(|send| Request::Send(Box::new(send)))
    } else {
        given.receive().map(Request::Receive)
    }
}

fn text(parser: &mut lexopt::Parser) -> Result<String, UsageError> {
    Ok(parser.value()?.string()?)
}

fn span(parser: &mut lexopt::Parser) -> Result<Span, UsageError> {
    Ok(quantity::span(&text(parser)?)?)
}

fn both(word: &str, parser: &mut lexopt::Parser, given: &mut Given) -> Result<bool, UsageError> {
    match word {
        "port" => given.port = Some(parser.value()?.parse()?),
        "protocol" => given.protocol = Some(text(parser)?),
        "flow" => given.flow = Some(parser.value()?.parse()?),
        "record" => given.record = Some(text(parser)?),
        "json" => given.json = true,
        "stages" => given.stages = true,
        _ => return Ok(false),
    }
    Ok(true)
}

fn only_send(word: &str, parser: &mut lexopt::Parser, given: &mut Given) -> Result<bool, UsageError> {
    match word {
        "to" => given.to = Some(text(parser)?),
        "pattern" => given.pattern = Some(text(parser)?),
        "rate" => given.rate = Some(text(parser)?),
        "rate-of" => {
            given.counted = match text(parser)?.as_str() {
                "payload" => Counted::Payload,
                "frame" => Counted::Frame,
                "wire" => Counted::Wire,
                other => return refuse(format!("--rate-of {other}: expected payload, frame or wire")),
            };
        }
        "interval" => given.interval = Some(span(parser)?),
        "size" => given.size = Some(quantity::size(&text(parser)?)?),
        "frame" => given.frame = Some(quantity::size(&text(parser)?)?),
        "count" => given.count = Some(parser.value()?.parse()?),
        "duration" => given.duration = Some(span(parser)?),
        "on" => given.on = Some(span(parser)?),
        "off" => given.off = Some(span(parser)?),
        "exponential" => given.exponential = true,
        "trace" => given.trace = Some(text(parser)?),
        "dscp" => given.dscp = parser.value()?.parse()?,
        "ecn" => given.ecn = parser.value()?.parse()?,
        "dont-fragment" => given.dont_fragment = true,
        "seed" => given.seed = parser.value()?.parse()?,
        "spin" => given.spin = Some(span(parser)?),
        "refusals" => given.refusals = Some(parser.value()?.parse()?),
        "congestion" => given.congestion = Some(text(parser)?),
        "connect-within" => given.connect_within = Some(span(parser)?),
        "rtp-clock" => given.rtp_clock = Some(parser.value()?.parse()?),
        "rtp-type" => given.rtp_type = Some(parser.value()?.parse()?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn only_receive(word: &str, parser: &mut lexopt::Parser, given: &mut Given) -> Result<bool, UsageError> {
    match word {
        "bind" => given.bind = Some(text(parser)?),
        "wait" => given.wait = Some(span(parser)?),
        "idle" => given.idle = Some(span(parser)?),
        "linger" => given.linger = Some(span(parser)?),
        "user-stamps" => given.user_stamps = true,
        "buffer" => given.buffer = Some(quantity::size(&text(parser)?)?),
        _ => return Ok(false),
    }
    Ok(true)
}

const LONG: Span = Span::from_nanos(u64::MAX / 4);

impl Given {
    fn common(&self) -> Result<Common, UsageError> {
        let protocol = match self.protocol.as_deref() {
            None | Some("udp") => Protocol::Udp,
            Some("tcp") => Protocol::Tcp,
            Some("rtp") => Protocol::Rtp,
            Some(other) => return refuse(format!("--protocol {other}: expected udp, tcp or rtp")),
        };
        if self.stages && protocol == Protocol::Tcp {
            return refuse("--stages needs packets: udp or rtp");
        }
        let Self { flow, json, stages, .. } = *self;
        Ok(Common { protocol, flow, record: self.record.clone(), json, stages })
    }

    fn port(&self) -> Result<u16, UsageError> {
        self.port.filter(|port| *port != 0).map_or_else(|| refuse("--port is needed, from 1 to 65535"), Ok)
    }

    fn receive(self) -> Result<Receive, UsageError> {
        let address = match &self.bind {
            None => default_bind(),
            Some(text) => hosts::address(text).map_err(UsageError)?,
        };
        Ok(Receive {
            common: self.common()?,
            at: SocketAddr::new(address, self.port()?),
            wait: self.wait.unwrap_or(LONG),
            idle: self.idle.unwrap_or(Span::from_secs(10)),
            linger: self.linger.unwrap_or(Span::from_millis(500)),
            user_stamps: self.user_stamps,
            buffer: usize::try_from(self.buffer.unwrap_or(32 << 20)).unwrap_or(usize::MAX),
        })
    }

    fn send(self) -> Result<Send, UsageError> {
        let common = self.common()?;
        let Some(to) = &self.to else { return refuse("--to is needed: an address or a name of /etc/hosts") };
        let address = hosts::address(to).map_err(UsageError)?;
        if self.dscp > 63 || self.ecn > 3 {
            return refuse("--dscp goes from 0 to 63 and --ecn from 0 to 3");
        }
        if self.rtp_type.is_some_and(|payload_type| payload_type > 127) || self.rtp_clock == Some(0) {
            return refuse("--rtp-type goes from 0 to 127, and --rtp-clock is not 0");
        }
        let family = net::family(address);
        let size = self.payload(common.protocol, family)?;
        let pattern = self.pattern(common.protocol, size, family)?;
        let bounded = self.count.is_some() || self.duration.is_some() || matches!(pattern, Pattern::Trace(_));
        if !bounded {
            return refuse("--count or --duration is needed");
        }
        Ok(Send {
            to: SocketAddr::new(address, self.port()?),
            pattern,
            size,
            count: self.count.unwrap_or(u64::MAX),
            duration: self.duration.unwrap_or(LONG),
            seed: self.seed,
            class: self.dscp << 2 | self.ecn,
            dont_fragment: self.dont_fragment,
            spin: self.spin.unwrap_or(Span::from_micros(30)),
            refusals: self.refusals.unwrap_or(3),
            congestion: self.congestion,
            connect_within: self.connect_within.unwrap_or(Span::from_secs(10)),
            rtp_clock: self.rtp_clock.unwrap_or(90_000),
            rtp_type: self.rtp_type.unwrap_or(33),
            common,
        })
    }

    fn payload(&self, protocol: Protocol, family: Family) -> Result<u32, UsageError> {
        let (least, most) = limits(protocol, family);
        let size = match (self.size, self.frame) {
            (Some(_), Some(_)) => return refuse("give --size or --frame, not both"),
            (None, Some(_)) if protocol == Protocol::Tcp => {
                return refuse("TCP makes its own frames: give --size, the octets of one write");
            }
            (None, Some(size)) => match frame::payload(size, family, least.into()) {
                Ok(payload) => payload,
                Err(least) => return refuse(format!("--frame must be {least} B or more here")),
            },
            (Some(size), None) => size,
            (None, None) if protocol == Protocol::Tcp => 128 << 10,
            (None, None) => 1470,
        };
        u32::try_from(size)
            .ok()
            .filter(|size| (least..=most).contains(size))
            .map_or_else(|| refuse(format!("the payload must have {least} to {most} octets, not {size}")), Ok)
    }

    fn pattern(&self, protocol: Protocol, size: u32, family: Family) -> Result<Pattern, UsageError> {
        let name = self.pattern.as_deref().unwrap_or("constant");
        if (self.trace.is_some()) != (name == "trace") {
            return refuse("--pattern trace and --trace FILE belong together");
        }
        if (self.on.is_some() || self.off.is_some() || self.exponential) && name != "on-off" {
            return refuse("--on, --off and --exponential belong to --pattern on-off");
        }
        if let Some(path) = &self.trace {
            if self.rate.is_some() || self.interval.is_some() {
                return refuse("a trace has its own times: leave out --rate and --interval");
            }
            let (least, most) = limits(protocol, family);
            let file = File::open(path).map_err(|error| UsageError(format!("{path}: {error}")))?;
            let dues = trace(BufReader::new(file), least, most)
                .map_err(|error| UsageError(format!("{path}: {error}")))?;
            return Ok(Pattern::Trace(dues));
        }
        let gap = match (self.rate.as_deref(), self.interval) {
            (Some("max"), None) if name == "constant" => return Ok(Pattern::Flood),
            (Some("max"), None) => return refuse("--rate max goes with --pattern constant only"),
            (Some(text), None) => match (quantity::rate(text)?, protocol) {
                (0, _) => return refuse("--rate must be above 0"),
                (rate, Protocol::Tcp) => Gap::at_rate(size.into(), rate),
                (rate, _) => Gap::at_rate(self.counted.octets(size.into(), family), rate),
            },
            (None, Some(Span::ZERO)) => {
                return refuse("--interval must be above 0; --rate max sends at once");
            }
            (None, Some(interval)) => Gap::every(interval),
            (None, None) => return refuse("--rate or --interval is needed"),
            (Some(_), Some(_)) => return refuse("give --rate or --interval, not both"),
        };
        match (name, self.on, self.off) {
            ("constant", ..) => Ok(Pattern::Constant(gap)),
            ("poisson", ..) => Ok(Pattern::Poisson(gap)),
            ("on-off", Some(on), Some(off)) if on > Span::ZERO => {
                let periods = if self.exponential { Periods::Exponential } else { Periods::Fixed };
                Ok(Pattern::OnOff { gap, on, off, periods })
            }
            ("on-off", ..) => refuse("--pattern on-off needs --on (above 0) and --off"),
            (other, ..) => refuse(format!("--pattern {other}: expected constant, poisson, on-off or trace")),
        }
    }
}

/// Smallest and largest payload (TCP: octets of one write).
fn limits(protocol: Protocol, family: Family) -> (u32, u32) {
    #[allow(clippy::cast_possible_truncation)] // headers and limits are small
    match protocol {
        Protocol::Udp => (HEADER as u32, family.most() as u32),
        Protocol::Rtp => ((RTP_HEADER + HEADER) as u32, family.most() as u32),
        Protocol::Tcp => (1, 16 << 20),
    }
}

/// The unspecified address: of both families, or of IPv4 if there is no IPv6.
fn default_bind() -> IpAddr {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    // SAFETY: plain calls on plain numbers.
    let fd = unsafe { libc::socket(libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return IpAddr::from([0, 0, 0, 0]);
    }
    // SAFETY: the descriptor is ours and used nowhere else.
    unsafe { libc::close(fd) };
    any
}

#[cfg(test)]
mod tests;
