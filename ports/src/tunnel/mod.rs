//! A tunnel as a port: frames go to another laboratory, or to a kernel's tunnel, in IP packets.
//!
//! GRE ([`gre`]) uses a raw IP socket, VXLAN ([`vxlan`]) one UDP socket that receives at its port
//! and another that sends. The caller creates both, in the network namespace whose interfaces are
//! the underlay. Super-frames are segmented before encapsulation, and the segments of one are sent
//! with one system call. The delay of the underlay is not modelled: the engine charges only the
//! link to this port, without the headers of the tunnel. Plain IP over GRE ([`plain`]) has no
//! Ethernet beyond the tunnel, so the tunnel itself answers address resolution.

mod batch;
pub mod encapsulation;
pub mod gre;
pub mod plain;
mod refusal;
pub mod vxlan;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use airloom_engine::drop_reason::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::frame::segment;
use airloom_engine::frame::{CLASSES, Pool};
use serde::{Serialize, Serializer};

use self::batch::{RxBatch, TxBatch};
pub use self::encapsulation::Encapsulation;
use self::plain::{ETHERNET, Sent};
use self::refusal::Refusal;
use crate::port::{Incoming, Outgoing, Port, Report};
use crate::rx::RxBuffers;
use crate::vnet::Meaning;

/// Length in octets of the longest frame of a tunnel.
pub const FRAME: usize = CLASSES[1];

/// Counters of a tunnel beside the engine's ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Received packets that were refused, by reason.
    refused: [u64; Refusal::ALL.len()],
    /// Times that the underlay reported an earlier packet as undeliverable: the peer, or
    /// its port, is unreachable.
    unreachable: u64,
}

impl Serialize for Counts {
    /// The counters that are not zero, by name.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let refused = Refusal::ALL.map(|why| (why.name(), self.refused[why as usize]));
        let all = refused.into_iter().chain([("unreachable", self.unreachable)]);
        to.collect_map(all.filter(|(_, count)| *count > 0))
    }
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    receive: OwnedFd,
    send: OwnedFd,
    remote: IpAddr,
    encapsulation: Encapsulation,
    /// Sequence number of the next packet.
    next: u32,
    /// Highest sequence number received so far.
    last: Option<u32>,
    rx: RxBatch,
    tx: TxBatch,
    counts: Counts,
    dropped: u32,
}

/// A received frame: the Ethernet header that it needs, if any, and the rest.
struct Received<'a> {
    head: Option<[u8; ETHERNET]>,
    rest: &'a [u8],
}

impl Tunnel {
    /// A tunnel to `remote`: `receive` gets its packets, `send` is connected to
    /// it. Both are non-blocking.
    #[must_use]
    pub fn new(receive: OwnedFd, send: OwnedFd, remote: IpAddr, encapsulation: Encapsulation) -> Self {
        Self {
            receive,
            send,
            remote,
            encapsulation,
            next: 0,
            last: None,
            rx: RxBatch::default(),
            tx: TxBatch::default(),
            counts: Counts::default(),
            dropped: 0,
        }
    }

    /// Receives the next frame, if any.
    fn next_frame(&mut self) -> io::Result<Received<'_>> {
        loop {
            let packet = match self.rx.next(&self.receive) {
                Ok(packet) => packet,
                Err(error) if is_icmp_error(&error) => {
                    self.counts.unreachable += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let slot = packet.slot;
            match open(&self.encapsulation, self.remote, &packet, &mut self.last) {
                Ok((head, frame)) => return Ok(Received { head, rest: self.rx.octets(slot, frame) }),
                Err(why) => self.counts.refused[why as usize] += 1,
            }
        }
    }

    /// Sends the packets in slots `from` up to `to`; returns how many were sent.
    fn post(&mut self, from: u16, to: u16) -> Result<u16, HostLoss> {
        let mut told = false;
        loop {
            let error = match self.tx.send(&self.send, from, to) {
                Ok(count) => return Ok(count),
                Err(error) => error,
            };
            // The error of an earlier packet is reported once, by the next send.
            if is_icmp_error(&error) && !told {
                self.counts.unreachable += 1;
                told = true;
                continue;
            }
            return Err(match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => HostLoss::RingFull,
                Some(libc::EMSGSIZE) => HostLoss::TooBig,
                Some(libc::ENETDOWN | libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENODEV) => {
                    HostLoss::NodeGone
                }
                _ => HostLoss::Refused,
            });
        }
    }
}

impl Port for Tunnel {
    fn fd(&self) -> Option<RawFd> {
        Some(self.receive.as_raw_fd())
    }

    fn longest_frame(&self) -> usize {
        FRAME
    }

    fn receive(&mut self, _: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        // After any error of the socket the next packet may still arrive.
        let Ok(Received { head, rest }) = self.next_frame() else { return Incoming::Empty };
        let head = head.as_ref().map_or(&[][..], |head| &head[..]);
        let length = head.len() + rest.len();
        let buffer = pool.take(length);
        pool.octets_mut(buffer)[..head.len()].copy_from_slice(head);
        pool.octets_mut(buffer)[head.len()..length].copy_from_slice(rest);
        let octets = u32::try_from(length).expect("a buffer is shorter than 4 GB");
        Incoming::Frame(buffer, octets, Meaning::default())
    }

    fn has_more(&self) -> bool {
        self.rx.has_more()
    }

    /// Sends a frame, or the segments of a run one by one.
    fn deliver(&mut self, mut outgoing: Outgoing<'_>) -> Delivery {
        let (frame, pool) = (outgoing.frame, outgoing.pool);
        let mut kind = gre::ETHERNET;
        if let Encapsulation::Gre { .. } = self.encapsulation {
            match plain::look(&pool.octets(frame.buffer)[..frame.length as usize]) {
                Sent::Packet(protocol) => kind = protocol,
                Sent::Question(answer) => {
                    outgoing.answer(answer);
                    return Delivery::Taken;
                }
                Sent::Other => return Delivery::Taken,
            }
        }
        let strips = self.encapsulation.strips();
        let mut sent = 0;
        while sent < frame.count {
            let mut filled = 0;
            while filled < batch::BATCH && sent + filled < frame.count {
                let segment = frame.first + sent + filled;
                let (head, body) = self.tx.slot(filled);
                let octets = segment::complete(frame, pool, segment, body);
                let head = self.encapsulation.wrap(kind, self.next, &body[strips..octets], head);
                self.tx.set(filled, head, strips..octets);
                self.next = self.next.wrapping_add(1);
                filled += 1;
            }
            let mut gone = 0;
            while gone < filled {
                match self.post(gone, filled) {
                    Ok(count) => gone += count,
                    Err(loss) => return partly(sent + gone, loss),
                }
            }
            sent += filled;
        }
        Delivery::Taken
    }

    fn missed(&mut self) -> u64 {
        let now = batch::drops(&self.receive);
        let new = now.wrapping_sub(self.dropped);
        self.dropped = now;
        u64::from(new)
    }

    fn report(&self) -> Option<Report> {
        Some(Report { kind: REPORT, figures: Box::new(self.counts) })
    }
}

/// [`Report::kind`] of tunnels.
pub const REPORT: &str = "tunnel";

/// Finds the frame in a packet.
fn open(
    encapsulation: &Encapsulation,
    remote: IpAddr,
    packet: &batch::Packet,
    last: &mut Option<u32>,
) -> Result<(Option<[u8; ETHERNET]>, core::ops::Range<usize>), Refusal> {
    let octets = packet.octets;
    if packet.cut {
        return Err(Refusal::TooBig);
    }
    if packet.from != Some(remote) {
        return Err(Refusal::Foreign);
    }
    let start = match (encapsulation.gre(), remote) {
        (Some(_), IpAddr::V4(_)) => encapsulation::behind_ipv4(octets)?.start,
        _ => 0,
    };
    let found = encapsulation.unwrap(&octets[start..])?;
    if let (true, Some(next)) = (encapsulation.is_sequenced(), found.sequence) {
        if last.is_some_and(|last| !gre::follows(last, next)) {
            return Err(Refusal::OutOfOrder);
        }
        *last = Some(next);
    }
    if found.frame.len() + encapsulation.strips() > FRAME {
        return Err(Refusal::TooBig);
    }
    let head = match (encapsulation, found.bare) {
        (Encapsulation::Gre { node, .. }, Some(protocol)) => Some(plain::header(protocol, *node)?),
        _ => None,
    };
    Ok((head, start + found.frame.start..start + found.frame.end))
}

/// True for an ICMP error about an earlier packet, rather than an error of this one.
fn is_icmp_error(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENOPROTOOPT | libc::EPROTO | libc::ENETUNREACH)
    )
}

fn partly(sent: u16, loss: HostLoss) -> Delivery {
    if sent == 0 { Delivery::Lost(loss) } else { Delivery::Partly(sent, loss) }
}
