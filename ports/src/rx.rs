//! Reads frames into the engine's pool, without copying small frames and without allocating.
//!
//! The size of a frame is unknown before it is read. A read therefore scatters: the first 2 kB go
//! to a small buffer, the rest to the same offset of a large one. An ordinary frame is then in its
//! final buffer; of a super-frame only the first 2 kB are copied.

use std::io;
use std::os::fd::RawFd;

use airloom_engine::frame::{BufferId, CLASSES, Pool};

use crate::interface::{self, PacketSocket};
use crate::port::Incoming;
use crate::sys::read_pieces;
use crate::vnet;

const SMALL: usize = CLASSES[0];
const JUMBO: usize = CLASSES[1];
const LARGE: usize = CLASSES[2];

/// The two buffers for the next frame.
#[derive(Debug)]
pub struct RxBuffers {
    small: BufferId,
    large: BufferId,
}

impl RxBuffers {
    /// Takes the two buffers from the pool.
    #[must_use]
    pub fn new(pool: &mut Pool) -> Self {
        Self { small: pool.take(SMALL), large: pool.take(LARGE) }
    }

    /// Reads one frame from a descriptor whose frames have a 12-octet virtio-net header.
    pub(crate) fn read(&mut self, fd: RawFd, pool: &mut Pool) -> io::Result<Incoming> {
        let mut header = [0u8; vnet::OCTETS];
        let mut pieces = self.pieces(&mut header, pool);
        // SAFETY: the pieces are memory of this function and of two buffers of the pool, none of
        // which is touched otherwise before the call returns.
        let got = unsafe { read_pieces(fd, &mut pieces) }?;
        Ok(self.finish(&header, got.saturating_sub(vnet::OCTETS), pool))
    }

    /// Reads one frame from a packet socket.
    pub(crate) fn receive(&mut self, socket: &PacketSocket, pool: &mut Pool) -> io::Result<Incoming> {
        let mut header = [0u8; vnet::OCTETS];
        let mut pieces = self.pieces(&mut header[..interface::VNET_OCTETS], pool);
        // SAFETY: as above.
        let (got, tag) = unsafe { socket.receive(&mut pieces) }?;
        let mut length = got.saturating_sub(interface::VNET_OCTETS);
        if let Some(tag) = tag {
            // Rare: assemble the frame first, and insert the tag in the large buffer.
            self.join(length, pool);
            length = interface::put_back(tag, pool.octets_mut(self.large), length).unwrap_or(length);
            vnet::shift(&mut header, interface::VLAN_TAG);
            let head = length.min(SMALL);
            copy(self.large, self.small, head, pool);
        }
        Ok(self.finish(&header, length, pool))
    }

    /// The pieces of a read: header, small buffer, rest of the large buffer.
    fn pieces(&self, header: &mut [u8], pool: &mut Pool) -> [libc::iovec; 3] {
        let piece =
            |octets: &mut [u8]| libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: octets.len() };
        [
            piece(header),
            piece(&mut pool.octets_mut(self.small)[..SMALL]),
            piece(&mut pool.octets_mut(self.large)[SMALL..LARGE]),
        ]
    }

    /// Decodes the header of the frame and hands over the buffer that fits its length.
    fn finish(&mut self, header: &[u8; vnet::OCTETS], length: usize, pool: &mut Pool) -> Incoming {
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
            // The frame may wait long in a queue and should not occupy seven times the memory it
            // needs.
            let jumbo = pool.take(JUMBO);
            copy(self.large, jumbo, length, pool);
            return Incoming::Frame(jumbo, octets, meaning);
        } else {
            self.large = pool.take(LARGE);
        }
        Incoming::Frame(buffer, octets, meaning)
    }

    /// Copies the beginning of a frame to the front of its large buffer.
    fn join(&self, length: usize, pool: &mut Pool) {
        copy(self.small, self.large, length.min(SMALL), pool);
    }
}

/// Result of the next read that no signal interrupts. The port is closed after any error but an
/// empty queue and those of which `recovers` holds, after which a later read may succeed.
pub(crate) fn next(
    mut read: impl FnMut() -> io::Result<Incoming>,
    recovers: impl Fn(i32) -> bool,
) -> Incoming {
    loop {
        match read().map_err(|error| error.raw_os_error()) {
            Ok(frame) => return frame,
            Err(Some(libc::EINTR)) => {}
            Err(Some(libc::EAGAIN)) => return Incoming::Empty,
            Err(Some(error)) if recovers(error) => return Incoming::Empty,
            Err(_) => return Incoming::Closed,
        }
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
