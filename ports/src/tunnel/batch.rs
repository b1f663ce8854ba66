//! Batches of packets: several per system call (`recvmmsg`, `sendmmsg`), in memory that is reused.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use super::encapsulation::HEAD_MOST;
use super::{FRAME, gre};

/// Maximum number of packets received or sent at once.
pub const BATCH: u16 = 32;
/// Length in octets of the longest packet that is received whole.
const PACKET: usize = HEAD_MOST + FRAME;
/// Index of the drop counter in `SO_MEMINFO`.
const MEMINFO_DROPS: usize = 8;
const MEMINFO_WORDS: usize = 9;

/// A received packet.
pub struct Packet<'a> {
    /// Its slot.
    pub slot: usize,
    /// The received octets.
    pub octets: &'a [u8],
    /// Source address.
    pub from: Option<IpAddr>,
    /// True if the packet was truncated.
    pub cut: bool,
}

/// A batch of received packets.
#[derive(Debug)]
pub struct RxBatch {
    octets: Box<[u8]>,
    found: Vec<(usize, Option<IpAddr>, bool)>,
    next: usize,
}

impl Default for RxBatch {
    fn default() -> Self {
        let slots = usize::from(BATCH);
        Self { octets: vec![0; slots * PACKET].into_boxed_slice(), found: Vec::with_capacity(slots), next: 0 }
    }
}

impl RxBatch {
    /// True if received packets are left.
    pub fn has_more(&self) -> bool {
        self.next < self.found.len()
    }

    /// Returns the next packet; calls the kernel if none is left.
    pub fn next(&mut self, socket: &OwnedFd) -> io::Result<Packet<'_>> {
        if !self.has_more() {
            self.fill(socket)?;
        }
        let slot = self.next;
        self.next += 1;
        let (length, from, cut) = self.found[slot];
        Ok(Packet { slot, octets: self.octets(slot, 0..length), from, cut })
    }

    /// A range of octets of a packet.
    pub fn octets(&self, slot: usize, range: Range<usize>) -> &[u8] {
        &self.octets[slot * PACKET..(slot + 1) * PACKET][range]
    }

    fn fill(&mut self, socket: &OwnedFd) -> io::Result<()> {
        const SLOTS: usize = BATCH as usize;
        self.found.clear();
        self.next = 0;
        // SAFETY: all three are plain integers and pointers, for which zero is a value.
        let (mut messages, mut pieces, mut names) = unsafe {
            (
                std::mem::zeroed::<[libc::mmsghdr; SLOTS]>(),
                std::mem::zeroed::<[libc::iovec; SLOTS]>(),
                std::mem::zeroed::<[libc::sockaddr_in6; SLOTS]>(),
            )
        };
        let slots = messages.iter_mut().zip(&mut pieces).zip(&mut names);
        for (((message, piece), name), octets) in slots.zip(self.octets.chunks_exact_mut(PACKET)) {
            piece.iov_base = octets.as_mut_ptr().cast();
            piece.iov_len = octets.len();
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
            message.msg_hdr.msg_namelen = libc::socklen_t::try_from(size_of_val(name)).unwrap_or(0);
        }
        // SAFETY: the messages refer to memory that outlives the call and is not touched during it.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                u32::from(BATCH),
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        for (message, name) in messages.iter().zip(&names).take(got) {
            let cut = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let length = (message.msg_len as usize).min(PACKET);
            self.found.push((length, address(name), cut));
        }
        Ok(())
    }
}

/// The address in a socket address of either family.
fn address(name: &libc::sockaddr_in6) -> Option<IpAddr> {
    match i32::from(name.sin6_family) {
        libc::AF_INET6 => Some(IpAddr::V6(Ipv6Addr::from(name.sin6_addr.s6_addr))),
        libc::AF_INET => {
            // SAFETY: a sockaddr_in is shorter than a sockaddr_in6, is not aligned more strictly,
            // and its family says that this is one.
            let name = unsafe { &*std::ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            Some(IpAddr::V4(Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes())))
        }
        _ => None,
    }
}

/// A batch of packets to be sent.
#[derive(Debug)]
pub struct TxBatch {
    heads: Box<[[u8; gre::MOST]]>,
    bodies: Box<[u8]>,
    /// Length of the header, and begin and end of the body, in octets.
    lengths: [(usize, usize, usize); BATCH as usize],
}

impl Default for TxBatch {
    fn default() -> Self {
        let slots = usize::from(BATCH);
        Self {
            heads: vec![[0; gre::MOST]; slots].into_boxed_slice(),
            bodies: vec![0; slots * FRAME].into_boxed_slice(),
            lengths: [(0, 0, 0); BATCH as usize],
        }
    }
}

impl TxBatch {
    /// The buffers for the header and the frame of a packet.
    pub fn slot(&mut self, slot: u16) -> (&mut [u8; gre::MOST], &mut [u8]) {
        let slot = usize::from(slot);
        (&mut self.heads[slot], &mut self.bodies[slot * FRAME..(slot + 1) * FRAME])
    }

    /// Sets the length of the header, and the part of the frame to send.
    pub fn set(&mut self, slot: u16, head: usize, body: Range<usize>) {
        self.lengths[usize::from(slot)] = (head, body.start, body.end);
    }

    /// Sends the packets of slots `from` up to `to`; returns how many were sent.
    pub fn send(&self, socket: &OwnedFd, from: u16, to: u16) -> io::Result<u16> {
        // SAFETY: both are plain integers and pointers, for which zero is a value.
        let (mut messages, mut pieces) = unsafe {
            (
                std::mem::zeroed::<[libc::mmsghdr; BATCH as usize]>(),
                std::mem::zeroed::<[[libc::iovec; 2]; BATCH as usize]>(),
            )
        };
        for slot in usize::from(from)..usize::from(to) {
            let (head, from, to) = self.lengths[slot];
            let octets = [&self.heads[slot][..head], &self.bodies[slot * FRAME..][from..to]];
            pieces[slot] = octets.map(|octets| libc::iovec {
                iov_base: octets.as_ptr().cast_mut().cast(),
                iov_len: octets.len(),
            });
            messages[slot].msg_hdr.msg_iov = pieces[slot].as_mut_ptr();
            messages[slot].msg_hdr.msg_iovlen = 2;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let first = messages[usize::from(from)..].as_mut_ptr();
        // SAFETY: so many messages stand from there on; what they refer to outlives the call.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), first, u32::from(to - from), flags) };
        u16::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Packets that the kernel dropped because the socket's buffer was full; zero if unknown.
pub fn drops(socket: &OwnedFd) -> u32 {
    let mut words = [0u32; MEMINFO_WORDS];
    let mut octets = libc::socklen_t::try_from(size_of_val(&words)).unwrap_or(0);
    // SAFETY: the array and its length outlive the call.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut octets,
        )
    };
    if answer < 0 { 0 } else { words[MEMINFO_DROPS] }
}
