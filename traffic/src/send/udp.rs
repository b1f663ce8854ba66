//! UDP and RTP: scheduled packets, several per system call only when they are due together.

use std::io;
use std::net::UdpSocket;

use airloom_engine::random::Stream;
use airloom_engine::time::{Instant, Span};

use super::Window;
use crate::clock::{self, Alarm};
use crate::net::batch::{Outgoing, SEND};
use crate::net::{self, family};
use crate::options::Send;
use crate::pacing::Pacing;
use crate::packet::{HEADER, Header, Kind, RTP_HEADER, Rtp};
use crate::pattern::{Due, Pattern};
use crate::record::{NOT_SENT, Protocol, Record, Writer};
use crate::stages::{Stamps, system_call};
use crate::stop;
use crate::summary::{Ended, Failure, Summary};

/// Number and interval of end marks: an end mark can be lost like any packet.
const END_MARKS: u32 = 5;
const BETWEEN_MARKS: Span = Span::from_millis(20);

struct Sender<'a> {
    options: &'a Send,
    socket: UdpSocket,
    out: Outgoing,
    rtp: Option<Rtp>,
    flow: u16,
    window: Window,
    writer: Writer<std::fs::File>,
    stamps: Option<Stamps>,
    pacing: Pacing,
    sequence: u64,
    refused: u64,
    not_sent: u64,
}

pub(super) fn run(options: &Send, summary: &mut Summary) -> Result<(), Failure> {
    let to = options.to;
    let cannot = || Failure::begin(format!("cannot send to {to}"));
    let socket = net::udp_to(to).map_err(cannot())?;
    if options.class != 0 {
        net::set_class(&socket, family(to.ip()), options.class).map_err(cannot())?;
    }
    if options.dont_fragment {
        net::dont_fragment(&socket, family(to.ip())).map_err(cannot())?;
    }
    let stamps = if options.common.stages {
        summary.system_call_ns = Some(system_call().nanos());
        Some(Stamps::ask(&socket).map_err(Failure::begin("the kernel does not stamp what is sent"))?)
    } else {
        None
    };
    let window = Window::open(options);
    let mut sender = Sender {
        options,
        socket,
        out: Outgoing::default(),
        rtp: (options.common.protocol == Protocol::Rtp).then(|| rtp(options)),
        flow: options.common.flow.unwrap_or(1),
        window,
        writer: super::writer(options, window)?,
        stamps,
        pacing: Pacing::default(),
        sequence: 0,
        refused: 0,
        not_sent: 0,
    };
    let outcome = sender.send_all(summary);
    if outcome.is_ok() {
        sender.mark_end();
    }
    sender.fetch_stamps();
    summary.not_sent = Some(sender.not_sent);
    summary.refused = Some(sender.refused);
    summary.pacing = sender.pacing.summary();
    let recorded = sender.writer.finish(Some(summary.packets), clock::now(), 0);
    outcome.and(recorded.map_err(Failure::Record))
}

#[allow(clippy::cast_possible_truncation)] // random bits: any 32 do
fn rtp(options: &Send) -> Rtp {
    let mut stream = Stream::named(options.seed, "rtp");
    Rtp {
        payload_type: options.rtp_type,
        clock: options.rtp_clock,
        source: stream.bits() as u32,
        offset: stream.bits() as u32,
    }
}

impl Sender<'_> {
    fn send_all(&mut self, summary: &mut Summary) -> Result<(), Failure> {
        let Send { duration, spin, .. } = *self.options;
        let mut alarm = Alarm::new(spin);
        let Window { start, end } = self.window;
        let flood = matches!(self.options.pattern, Pattern::Flood);
        if !flood {
            clock::request_short_slices();
        }
        let mut schedule = self
            .options
            .pattern
            .clone()
            .schedule(self.options.size, self.options.seed)
            .take_while(|due| due.at < duration)
            .take(usize::try_from(self.options.count).unwrap_or(usize::MAX))
            .peekable();
        let mut dues = Vec::with_capacity(SEND);
        while let Some(due) = schedule.next() {
            if !alarm.wait_until(start + due.at) {
                summary.ended_by = Ended::Signal;
                break;
            }
            let now = clock::now();
            if now >= end {
                summary.ended_by = if flood { Ended::Done } else { Ended::Overrun };
                break;
            }
            dues.clear();
            dues.push(due);
            dues.extend(std::iter::from_fn(|| schedule.next_if(|due| start + due.at <= now)).take(SEND - 1));
            if flood {
                dues.iter_mut().for_each(|due| due.at = now.since(start));
            }
            self.send_now(&dues, now, summary)?;
            self.fetch_stamps();
        }
        Ok(())
    }

    fn header_length(&self) -> usize {
        if self.rtp.is_some() { RTP_HEADER + HEADER } else { HEADER }
    }

    /// Writes the headers of packet `index` of the next system call.
    #[allow(clippy::cast_possible_truncation)] // the packet carries the low 32 bits
    fn prepare(&mut self, index: usize, kind: Kind, sequence: u64, at: Span, now: Instant) {
        let header = Header { kind, flow: self.flow, sequence: sequence as u32, sent: now.nanos() };
        let octets = self.out.header(index);
        let own = match &self.rtp {
            None => octets.first_chunk_mut(),
            Some(rtp) => {
                if let Some(front) = octets.first_chunk_mut() {
                    rtp.write(sequence, at.nanos(), front);
                }
                octets.last_chunk_mut()
            }
        };
        if let Some(own) = own {
            header.write(own);
        }
    }

    /// Sends and records the due packets.
    fn send_now(&mut self, dues: &[Due], now: Instant, summary: &mut Summary) -> Result<(), Failure> {
        let mut sizes = [0; SEND];
        for (index, due) in dues.iter().enumerate() {
            self.prepare(index, Kind::Data, self.sequence + index as u64, due.at, now);
            sizes[index] = due.size;
        }
        let mut from = 0;
        while from < dues.len() {
            let length = self.header_length();
            let (done, flags) = match self.out.send(&self.socket, length, from, &sizes[..dues.len()]) {
                Ok(done) => (done, 0),
                Err(error) => (self.refuse(error, summary)?, NOT_SENT),
            };
            for due in &dues[from..from + done] {
                let scheduled = self.window.start + due.at;
                let record =
                    Record { sequence: self.sequence, first: scheduled, second: now, size: due.size, flags };
                self.writer.push(&record);
                if flags == 0 {
                    if let Some(stamps) = &mut self.stamps {
                        stamps.took(self.sequence);
                    }
                    self.pacing.add(now.since(scheduled));
                    summary.add(now, due.size);
                }
                self.sequence += 1;
            }
            from += done;
        }
        Ok(())
    }

    /// Records the kernel's stamps that are available by now.
    fn fetch_stamps(&mut self) {
        if let Some(stamps) = &mut self.stamps {
            stamps.fetch(&self.socket, |stage, number, at| self.writer.passed(stage, number, at));
        }
    }

    /// Handles a packet that the socket refused: returns 1 to continue with the next, 0 to retry
    /// it.
    fn refuse(&mut self, error: io::Error, summary: &Summary) -> Result<usize, Failure> {
        let what = || format!("cannot send to {}", self.options.to);
        match error.raw_os_error() {
            // An ICMP error of an earlier packet; this one was not sent.
            Some(libc::ECONNREFUSED) => {
                self.refused += 1;
                if self.options.refusals != 0 && self.refused >= self.options.refusals {
                    return Err(Failure::Absent(self.options.to.to_string()));
                }
                Ok(0)
            }
            Some(libc::EINTR) if stop::asked() => Ok(1),
            Some(libc::EINTR) => Ok(0),
            // Links and routes may fail during an experiment and recover later.
            Some(
                libc::ENETUNREACH
                | libc::EHOSTUNREACH
                | libc::ENETDOWN
                | libc::EMSGSIZE
                | libc::ENOBUFS
                | libc::EPERM,
            ) if summary.packets > 0 => {
                self.not_sent += 1;
                Ok(1)
            }
            _ if summary.packets == 0 => Err(Failure::Begin { what: what(), cause: error }),
            _ => Err(Failure::Socket { what: what(), cause: error }),
        }
    }

    fn mark_end(&mut self) {
        let length = self.header_length();
        #[allow(clippy::cast_possible_truncation)] // 30
        let size = length as u32;
        for _ in 0..END_MARKS {
            let now = clock::now();
            self.prepare(0, Kind::End, self.sequence, now.since(self.window.start), now);
            // An error, even of an absent receiver, has no consequence here.
            let _ = self.out.send(&self.socket, length, 0, &[size]);
            if !Alarm::new(Span::ZERO).wait_until(now + BETWEEN_MARKS) {
                return;
            }
        }
    }
}
