//! Writes frames to descriptors: with a header in front, without copying the payload.

use std::os::fd::RawFd;

use airloom_engine::drop_reason::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::frame::segment;
use airloom_engine::frame::{Frame, Pool};

use crate::sys::write_pieces;
use crate::vnet;

/// Writes a frame, or a run of segments of one, with the first `vnet_octets` of its virtio-net
/// header in front, in one system call.
pub(crate) fn write(fd: RawFd, vnet_octets: usize, frame: &Frame, pool: &Pool) -> Delivery {
    let mut head = [0u8; segment::HEADER_MAX];
    let cut = segment::header(frame, pool, frame.first, frame.count, &mut head);
    let payload = &pool.octets(frame.buffer)[cut.payload];
    let (head, rest) = if cut.header == 0 { (payload, &[][..]) } else { (&head[..cut.header], payload) };
    let header = vnet::write(cut.segmentation, cut.checksum, head);
    let piece =
        |octets: &[u8]| libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
    let pieces = [piece(&header[..vnet_octets]), piece(head), piece(rest)];
    let pieces = if rest.is_empty() { &pieces[..2] } else { &pieces[..] };
    loop {
        // SAFETY: the pieces refer to slices that outlive the call.
        let Err(error) = (unsafe { write_pieces(fd, pieces) }) else { return Delivery::Taken };
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => {
                return Delivery::Lost(HostLoss::RingFull);
            }
            // EBADFD: the TAP ended with its namespace. EIO, ENETDOWN: the interface is down.
            Some(libc::EBADFD | libc::EIO | libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => {
                return Delivery::Lost(HostLoss::NodeGone);
            }
            _ => return Delivery::Lost(HostLoss::Refused),
        }
    }
}
