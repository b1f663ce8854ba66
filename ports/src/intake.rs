//! Reading frames into the engine's pool, without copying what is small and without allocating.
//!
//! Nobody knows a frame's size before it is read. So a read scatters: the first 2 kB go to a
//! small buffer and the rest to the same place of a large one. An ordinary frame then is where
//! it belongs; of a super-frame only its first 2 kB have to follow the rest.

use std::os::fd::AsRawFd;

use airloom_engine::frame::{BufferId, CLASSES, Pool};

use crate::interface::{self, Interface};
use crate::tap::{Tap, read_pieces};
use crate::tunnel::{Came, Tunnel};
use crate::vnet::{self, Meaning};

const SMALL: usize = CLASSES[0];
const JUMBO: usize = CLASSES[1];
const LARGE: usize = CLASSES[2];

/// What a read brought.
#[derive(Debug)]
pub(crate) enum Read {
    /// A frame of so many octets in a buffer that now belongs to the caller.
    Frame(BufferId, u32, Meaning),
    /// Nothing is there.
    Empty,
    /// The other side is gone.
    Gone,
}

/// The two buffers that the next frame is read into.
#[derive(Debug)]
pub(crate) struct Intake {
    small: BufferId,
    large: BufferId,
}

impl Intake {
    /// Takes the buffers from the pool.
    #[must_use]
    pub fn new(pool: &mut Pool) -> Self {
        Self { small: pool.take(SMALL), large: pool.take(LARGE) }
    }

    /// Reads one frame from a TAP.
    pub fn tap(&mut self, tap: &Tap, pool: &mut Pool) -> Read {
        let mut header = [0u8; vnet::OCTETS];
        let mut pieces = self.pieces(&mut header, pool);
        let got = loop {
            // SAFETY: the pieces are memory of this function and of two buffers of the pool, none
            // of which is touched otherwise before the call returns.
            match unsafe { read_pieces(tap.as_raw_fd(), &mut pieces) } {
                Ok(got) => break got,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => return Read::Empty,
                    _ => return Read::Gone,
                },
            }
        };
        self.finish(&header, got.saturating_sub(vnet::OCTETS), pool)
    }

    /// Reads one frame from a real interface.
    pub fn interface(&mut self, interface: &Interface, pool: &mut Pool) -> Read {
        let mut header = [0u8; vnet::OCTETS];
        let mut pieces = self.pieces(&mut header[..interface::VNET_OCTETS], pool);
        let (got, tag) = loop {
            // SAFETY: as above.
            match unsafe { interface.receive(&mut pieces) } {
                Ok(got) => break got,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => return Read::Empty,
                    // The interface is down, perhaps only for now; the next read may find it up.
                    Some(libc::ENETDOWN) => return Read::Empty,
                    _ => return Read::Gone,
                },
            }
        };
        let mut length = got.saturating_sub(interface::VNET_OCTETS);
        if let Some(tag) = tag {
            // Rare: bring the frame together first, and make room in the large buffer.
            self.join(length, pool);
            length = interface::put_back(tag, pool.octets_mut(self.large), length).unwrap_or(length);
            vnet::shift(&mut header, interface::VLAN_TAG);
            let head = length.min(SMALL);
            copy(self.large, self.small, head, pool);
        }
        self.finish(&header, length, pool)
    }

    /// Where a read goes: header, small buffer, rest of the large buffer.
    fn pieces(&self, header: &mut [u8], pool: &mut Pool) -> [libc::iovec; 3] {
        let piece =
            |octets: &mut [u8]| libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: octets.len() };
        [
            piece(header),
            piece(&mut pool.octets_mut(self.small)[..SMALL]),
            piece(&mut pool.octets_mut(self.large)[SMALL..LARGE]),
        ]
    }

    /// Reads the header of the frame that was read and hands over the buffer that suits its length.
    fn finish(&mut self, header: &[u8; vnet::OCTETS], length: usize, pool: &mut Pool) -> Read {
        let octets = u32::try_from(length).expect("a buffer is shorter than 4 GB");
        let buffer = if length <= SMALL {
            self.small
        } else {
            self.join(length, pool);
            self.large
        };
        let meaning = vnet::read(header, &pool.octets(buffer)[..length]);
        if length <= SMALL {
            self.small = pool.take(SMALL);
        } else if length <= JUMBO {
            // It may wait long in a queue: not in seven times the memory that it needs.
            let jumbo = pool.take(JUMBO);
            copy(self.large, jumbo, length, pool);
            return Read::Frame(jumbo, octets, meaning);
        } else {
            self.large = pool.take(LARGE);
        }
        Read::Frame(buffer, octets, meaning)
    }

    /// Brings the beginning of a frame before its rest in the large buffer.
    fn join(&self, length: usize, pool: &mut Pool) {
        copy(self.small, self.large, length.min(SMALL), pool);
    }
}

/// Reads one frame from a tunnel, out of the packet that it came in.
pub(crate) fn tunnel(tunnel: &mut Tunnel, pool: &mut Pool) -> Read {
    match tunnel.receive() {
        Ok(Came { head, rest }) => {
            let head = head.as_ref().map_or(&[][..], |head| &head[..]);
            let length = head.len() + rest.len();
            let buffer = pool.take(length);
            pool.octets_mut(buffer)[..head.len()].copy_from_slice(head);
            pool.octets_mut(buffer)[head.len()..length].copy_from_slice(rest);
            let octets = u32::try_from(length).expect("a buffer is shorter than 4 GB");
            Read::Frame(buffer, octets, Meaning::default())
        }
        // Whatever else the socket has to say, the next packet may come all the same.
        Err(_) => Read::Empty,
    }
}

/// Copies the first `octets` of one buffer to another.
fn copy(from: BufferId, to: BufferId, octets: usize, pool: &mut Pool) {
    debug_assert_ne!(from, to);
    let source = pool.octets(from)[..octets].as_ptr();
    let target = pool.octets_mut(to)[..octets].as_mut_ptr();
    // SAFETY: two different buffers, each checked above to hold that many octets.
    unsafe { std::ptr::copy_nonoverlapping(source, target, octets) }
}
