//! Writes frames to descriptors: with a header in front, without copying the payload.

use std::os::fd::RawFd;

use airloom_engine::drop_reason::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::frame::segment;
use airloom_engine::frame::{Frame, Pool};

use crate::sys::write_pieces;
use crate::vnet;

/// Writes a frame, or a run of segments of one, with the first `vnet_octets` of its virtio-net
/// header in front, in one system call. With `complete` it computes the transport checksum of a
/// frame that is not segmented further, which otherwise the receiver of the header does.
pub(crate) fn write(fd: RawFd, vnet_octets: usize, complete: bool, frame: &Frame, pool: &Pool) -> Delivery {
    let mut head = [0u8; segment::HEADER_MAX];
    let cut = segment::header(frame, pool, frame.first, frame.count, &mut head);
    let payload = &pool.octets(frame.buffer)[cut.payload];
    let (head, rest) = if cut.header == 0 { (payload, &[][..]) } else { (&head[..cut.header], payload) };
    let completed = cut
        .checksum
        .filter(|_| complete && cut.segmentation.is_none())
        .and_then(|checksum| Some((checksum, segment::completed_checksum([head, rest], checksum)?)));
    let header = vnet::write(cut.segmentation, cut.checksum.filter(|_| completed.is_none()), head);
    let piece =
        |octets: &[u8]| libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
    let vnet = piece(&header[..vnet_octets]);
    let sum = completed.map_or([0; 2], |(_, sum)| sum.to_be_bytes());
    // The frame may belong to several ports: a completed checksum is written beside it, not into it.
    let pieces = if let Some((checksum, _)) = completed {
        let at = usize::from(checksum.start) + usize::from(checksum.offset);
        [vnet, piece(&head[..at]), piece(&sum), piece(&head[at + 2..]), piece(rest)]
    } else {
        [vnet, piece(head), piece(rest), piece(&[]), piece(&[])]
    };
    let pieces = match (completed.is_some(), rest.is_empty()) {
        (false, true) => &pieces[..2],
        (false, false) => &pieces[..3],
        (true, _) => &pieces[..],
    };
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
