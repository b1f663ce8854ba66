//! Connection to a guest's front end: receives complete messages with their descriptors, and sends
//! answers. No function blocks.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with};

use super::disconnect::DisconnectReason;
use super::message::{HEADER, Header, LONGEST, REGIONS};

/// Buffer for the descriptors of one message, in 64-bit words for the alignment of a cmsghdr.
const CONTROL: usize = 2 + REGIONS.div_ceil(2) + 2;

/// A connected stream socket, and the partly received message.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    octets: Box<[u8; HEADER + LONGEST]>,
    filled: usize,
    header: Option<Header>,
    files: Vec<OwnedFd>,
}

/// A complete message.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its header.
    pub header: Header,
    /// Its body.
    pub body: &'a [u8],
    /// Its descriptors.
    pub files: Vec<OwnedFd>,
}

impl Connection {
    /// Accepts a connection from a listening socket; None if there is none.
    #[must_use]
    pub fn accept(listener: &OwnedFd) -> Option<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        accept_with(listener, flags).ok().map(Self::new)
    }

    /// Wraps a non-blocking socket.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        let octets = Box::new([0; HEADER + LONGEST]);
        Self { socket, octets, filled: 0, header: None, files: Vec::new() }
    }

    /// Returns the next message, if it is complete.
    ///
    /// # Errors
    /// The reason if the connection has ended.
    pub fn receive(&mut self) -> Result<Option<Message<'_>>, DisconnectReason> {
        let header = match self.header {
            Some(header) => header,
            None => {
                if !self.fill(HEADER)? {
                    return Ok(None);
                }
                let octets = self.octets.first_chunk().copied().unwrap_or([0; HEADER]);
                let request = u32::from_ne_bytes(octets.first_chunk().copied().unwrap_or_default());
                let header =
                    Header::read(octets).map_err(|flaw| DisconnectReason::Message { request, flaw })?;
                *self.header.insert(header)
            }
        };
        if !self.fill(HEADER + header.size)? {
            return Ok(None);
        }
        (self.filled, self.header) = (0, None);
        let files = std::mem::take(&mut self.files);
        Ok(Some(Message { header, body: &self.octets[HEADER..HEADER + header.size], files }))
    }

    /// Sends an answer.
    ///
    /// # Errors
    /// [`DisconnectReason::Deaf`] if the other side does not read, or [`DisconnectReason::Socket`].
    pub fn send(&self, octets: &[u8]) -> Result<(), DisconnectReason> {
        send(&self.socket, octets)
    }

    /// Receives until `until` octets are present; returns false if more have to arrive.
    fn fill(&mut self, until: usize) -> Result<bool, DisconnectReason> {
        while self.filled < until {
            let got = match self.more(until) {
                Ok(0) => return Err(DisconnectReason::Closed),
                Ok(got) => got,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(false),
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(gone(error)),
                },
            };
            self.filled += got;
        }
        Ok(true)
    }

    fn more(&mut self, until: usize) -> io::Result<usize> {
        let free = &mut self.octets[self.filled..until];
        let mut piece = libc::iovec { iov_base: free.as_mut_ptr().cast(), iov_len: free.len() };
        let mut control = [0u64; CONTROL];
        // SAFETY: a msghdr is integers and pointers, for which zero is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the message refers to memory that outlives the call.
        let got = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel has filled the control buffer, the macros stay inside it, and every
        // descriptor in it is new and has no other owner.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(&raw const message);
            while let Some(head) = header.as_ref() {
                if head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_RIGHTS {
                    let data: *const RawFd = libc::CMSG_DATA(header).cast();
                    let before = data as usize - header as usize;
                    let octets = head.cmsg_len.saturating_sub(before);
                    for number in 0..octets / size_of::<RawFd>() {
                        let file = std::ptr::read_unaligned(data.add(number));
                        self.files.push(OwnedFd::from_raw_fd(file));
                    }
                }
                header = libc::CMSG_NXTHDR(&raw const message, header);
            }
        }
        // More than any message has: a front end must not accumulate descriptors.
        self.files.truncate(REGIONS);
        Ok(got)
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Sends a message on a stream socket.
///
/// # Errors
/// [`DisconnectReason::Deaf`] if the other side does not read, or [`DisconnectReason::Socket`].
pub(super) fn send(socket: &OwnedFd, octets: &[u8]) -> Result<(), DisconnectReason> {
    match rustix::net::send(socket, octets, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(sent) if sent == octets.len() => Ok(()),
        Ok(_) | Err(Errno::AGAIN) => Err(DisconnectReason::Deaf),
        Err(error) => Err(gone(error.into())),
    }
}

fn gone(error: io::Error) -> DisconnectReason {
    match error.raw_os_error() {
        Some(libc::EPIPE | libc::ECONNRESET) => DisconnectReason::Closed,
        _ => DisconnectReason::Socket(error),
    }
}
