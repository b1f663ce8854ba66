//! Batches of packets (`sendmmsg`, `recvmmsg`), in memory that is reused.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::clock;
use crate::packet::{HEADER, RTP_HEADER};

/// Maximum number of packets in one `sendmmsg`. Small, because all get the time of the call: a
/// packet costs the kernel about 1 us.
pub const SEND: usize = 32;
/// Maximum number of packets in one `recvmmsg`.
pub const RECEIVE: usize = 64;

/// Length in octets of both headers.
pub const HEADERS: usize = RTP_HEADER + HEADER;
/// Octets of a received packet that are kept: both headers, with optional RTP fields in between.
const KEPT: usize = 128;
/// 64-bit words for control messages: stamp 32 octets, class 24 for each family, and some reserve.
const CONTROL: usize = 16;

/// Packets to be sent: each with its own headers, followed by zeros from a shared block.
pub struct Outgoing {
    headers: Box<[[u8; HEADERS]; SEND]>,
    vectors: Box<[[libc::iovec; 2]; SEND]>,
    messages: Box<[libc::mmsghdr; SEND]>,
    zeros: Box<[u8]>,
}

impl Default for Outgoing {
    fn default() -> Self {
        // SAFETY: null pointers with zero lengths are valid iovecs and mmsghdrs.
        let (vectors, messages) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            headers: Box::new([[0; HEADERS]; SEND]),
            vectors: Box::new(vectors),
            messages: Box::new(messages),
            zeros: vec![0; 1 << 16].into_boxed_slice(),
        }
    }
}

impl Outgoing {
    /// The header octets of packet `index`, for writing.
    pub fn header(&mut self, index: usize) -> &mut [u8; HEADERS] {
        &mut self.headers[index]
    }

    /// Sends the packets `from..sizes.len()` (at most [`SEND`]), whose headers take the
    /// first `header` octets; returns how many the socket accepted. An error means that the
    /// first of them was refused.
    pub fn send(
        &mut self,
        socket: &UdpSocket,
        header: usize,
        from: usize,
        sizes: &[u32],
    ) -> io::Result<usize> {
        let header = header.min(HEADERS);
        let until = sizes.len().min(SEND);
        for (index, size) in sizes.iter().enumerate().take(until).skip(from) {
            let rest = (*size as usize).saturating_sub(header).min(self.zeros.len());
            self.vectors[index] = [
                libc::iovec { iov_base: self.headers[index].as_mut_ptr().cast(), iov_len: header },
                libc::iovec { iov_base: self.zeros.as_mut_ptr().cast(), iov_len: rest },
            ];
            self.messages[index].msg_hdr.msg_iov = self.vectors[index].as_mut_ptr();
            self.messages[index].msg_hdr.msg_iovlen = 2;
        }
        let messages = &mut self.messages[from..until];
        // SAFETY: these messages point to vectors, headers and zeros that `self` owns and that do
        // not move during the call; all lengths are within them.
        let done =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count(messages.len()), 0) };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }
}

/// A received packet.
pub struct Arrived<'a> {
    /// Its first octets.
    pub octets: &'a [u8],
    /// The whole payload's length.
    pub length: u32,
    /// The kernel's stamp: `CLOCK_REALTIME` ns.
    pub stamp: Option<u64>,
    /// Traffic class of the IP header.
    pub class: u8,
}

/// Received packets.
pub struct Incoming {
    octets: Box<[[u8; KEPT]; RECEIVE]>,
    control: Box<[[u64; CONTROL]; RECEIVE]>,
    vectors: Box<[libc::iovec; RECEIVE]>,
    messages: Box<[libc::mmsghdr; RECEIVE]>,
}

impl Default for Incoming {
    fn default() -> Self {
        // SAFETY: null pointers with zero lengths are valid iovecs and mmsghdrs.
        let (vectors, messages) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            octets: Box::new([[0; KEPT]; RECEIVE]),
            control: Box::new([[0; CONTROL]; RECEIVE]),
            vectors: Box::new(vectors),
            messages: Box::new(messages),
        }
    }
}

impl Incoming {
    /// Receives all available packets, up to [`RECEIVE`]; an error of kind
    /// `WouldBlock` if there is none.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        for index in 0..RECEIVE {
            self.vectors[index] =
                libc::iovec { iov_base: self.octets[index].as_mut_ptr().cast(), iov_len: KEPT };
            let header = &mut self.messages[index].msg_hdr;
            header.msg_iov = &raw mut self.vectors[index];
            header.msg_iovlen = 1;
            header.msg_control = self.control[index].as_mut_ptr().cast();
            header.msg_controllen = (CONTROL * 8) as _;
        }
        // With MSG_TRUNC the lengths are those of the whole packets, not of the kept octets.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: every message points to buffers that `self` owns and that do not move during the
        // call; all lengths are theirs. A call that does not wait needs no time-out.
        let done = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count(RECEIVE),
                flags as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }

    /// Packet `index` of the latest call, which must have returned more than `index` packets.
    #[must_use]
    pub fn packet(&self, index: usize) -> Arrived<'_> {
        let message = &self.messages[index];
        let kept = (message.msg_len as usize).min(KEPT);
        let mut arrived =
            Arrived { octets: &self.octets[index][..kept], length: message.msg_len, stamp: None, class: 0 };
        // SAFETY: the header and its control buffer are as the kernel left them; CMSG_FIRSTHDR and
        // CMSG_NXTHDR stay inside `msg_controllen`, and each type has the payload that is read
        // (linux/socket.h, ip(7), ipv6(7)). Unaligned reads because control data need not be
        // aligned for the type.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(&raw const message.msg_hdr);
            while let Some(control) = next.as_ref() {
                let data = libc::CMSG_DATA(control);
                match (control.cmsg_level, control.cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        arrived.stamp = Some(clock::nanos(&data.cast::<libc::timespec>().read_unaligned()));
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => arrived.class = data.read(),
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        let class = data.cast::<libc::c_int>().read_unaligned();
                        arrived.class = u8::try_from(class).unwrap_or(0);
                    }
                    _ => {}
                }
                next = libc::CMSG_NXTHDR(&raw const message.msg_hdr, control);
            }
        }
        arrived
    }
}

#[allow(clippy::cast_possible_truncation)] // a few dozen
const fn count(n: usize) -> libc::c_uint {
    n as libc::c_uint
}
