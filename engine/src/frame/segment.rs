//! Conversion of a run of segments of a super-frame into octets.
//!
//! A super-frame holds one set of headers and the payload of many frames. [`header`] writes the
//! headers of any run of its segments, so that a port can send `[headers][slice of the payload]`
//! without a copy of the payload: a single frame, or a shorter super-frame. [`complete`] writes one
//! whole frame.
//!
//! The rules are those of segmentation offload: RFC 9293 for the sequence number, FIN and PSH
//! (last segment only), RFC 3168 section 6.1.2 for CWR (first segment only), RFC 791 for
//! identification (it counts up), total length and header checksum, RFC 8200 for the payload
//! length, RFC 768 for the length of a datagram.

use core::ops::Range;

use crate::frame::{CLASSES, Checksum, ETHERNET_HEADER, Frame, Pool, Protocol, Segmentation};

/// Maximum octets of a super-frame's headers, Ethernet to transport.
pub const HEADER_MAX: usize = 256;

/// A run of segments, ready to be written: `header` octets written by [`header`], then the
/// `payload` range of the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Octets of `out` to write first; 0 if `payload` includes the headers.
    pub header: usize,
    /// The octets of the frame's buffer to write next.
    pub payload: Range<usize>,
    /// Present if this is still a super-frame.
    pub segmentation: Option<Segmentation>,
    /// Present if the transport checksum is still to be computed.
    pub checksum: Option<Checksum>,
}

const ETHERNET: usize = ETHERNET_HEADER as usize;
const VLAN: usize = 4;
/// Octets of an 802.11 control frame with two addresses (802.11-2020 9.3.1), without frame check
/// sequence.
const MIN_MPDU: u32 = 16;
/// Octets of the two Ethernet addresses, which precede a VLAN tag.
const ADDRESSES: usize = 12;

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;
const TCP: u8 = 6;
const UDP: u8 = 17;

fn word(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn put_word(octets: &mut [u8], at: usize, value: u16) {
    octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The offset of the layer-3 header and its `EtherType`, after up to two VLAN tags.
pub(crate) fn network(octets: &[u8]) -> Option<(usize, u16)> {
    let mut at = ETHERNET;
    for _ in 0..3 {
        let kind = u16::from_be_bytes([*octets.get(at - 2)?, *octets.get(at - 1)?]);
        if kind != 0x8100 && kind != 0x88a8 {
            return Some((at, kind));
        }
        at += VLAN;
    }
    None
}

/// The frame as the engine admits it, with all its segments. `None` if it is too short or its
/// offload description does not fit its octets.
pub(crate) fn admit(frame: &Frame, pool: &Pool) -> Option<Frame> {
    let length = frame.length as usize;
    let octets = pool.octets(frame.buffer).get(..length)?;
    if length < ETHERNET {
        return None;
    }
    if let Some(Checksum { start, offset }) = frame.checksum {
        if usize::from(start) < ETHERNET || usize::from(start) + usize::from(offset) + 2 > length {
            return None;
        }
    }
    if let Some(cut) = frame.segmentation {
        check_cut(octets, cut, frame.checksum?)?;
    }
    let count = u16::try_from(frame.segments()).ok()?;
    Some(Frame { first: 0, count, ..*frame })
}

/// The frame as the engine admits it from an 802.11 stack. `None` if it is shorter than a control
/// frame with two addresses, or has an offload description.
pub(crate) fn admit_wlan(frame: &Frame, pool: &Pool) -> Option<Frame> {
    pool.octets(frame.buffer).get(..frame.length as usize)?;
    let whole = frame.segmentation.is_none() && frame.checksum.is_none();
    (whole && frame.length >= MIN_MPDU).then_some(Frame { first: 0, count: 1, ..*frame })
}

/// Checks that the headers match the offload description.
fn check_cut(octets: &[u8], cut: Segmentation, checksum: Checksum) -> Option<()> {
    let header = usize::from(cut.header);
    let transport = usize::from(checksum.start);
    if cut.size == 0 || header >= octets.len() || header > HEADER_MAX {
        return None;
    }
    let (at, kind) = network(octets)?;
    match kind {
        0x0800 if cut.protocol != Protocol::Tcp6 => {
            let first = *octets.get(at)?;
            let here = at + usize::from(first & 0xf) * 4;
            let fragment = word(octets.get(at..at + 20)?, 6) & 0x3fff;
            let wanted = if cut.protocol == Protocol::Udp { UDP } else { TCP };
            if first >> 4 != 4 || here < at + 20 || here != transport || fragment != 0 {
                return None;
            }
            if octets[at + 9] != wanted {
                return None;
            }
        }
        // Extension headers may precede the transport header; the description gives their end.
        0x86dd if cut.protocol != Protocol::Tcp4 => {
            if octets.get(at)? >> 4 != 6 || transport < at + 40 {
                return None;
            }
        }
        _ => return None,
    }
    let (size, offset) = match cut.protocol {
        Protocol::Udp => (8, Checksum::UDP),
        Protocol::Tcp4 | Protocol::Tcp6 => (usize::from(octets.get(transport + 12)? >> 4) * 4, Checksum::TCP),
    };
    let minimum = if cut.protocol == Protocol::Udp { 8 } else { 20 };
    let fits = size >= minimum && transport + size == header && checksum.offset == offset;
    // The longest packet that the length fields can express.
    (fits && octets.len() - at <= 65_535).then_some(())
}

/// Describes the segments `first..first + count` of a frame (counted from the start of the
/// super-frame) and writes their headers into `out`.
///
/// # Panics
/// If `out` is shorter than [`HEADER_MAX`], or the frame did not come from an engine.
pub fn header(frame: &Frame, pool: &Pool, first: u16, count: u16, out: &mut [u8]) -> Piece {
    piece(frame, pool.octets(frame.buffer), first, count, out)
}

fn piece(frame: &Frame, octets: &[u8], first: u16, count: u16, out: &mut [u8]) -> Piece {
    let octets = &octets[..frame.length as usize];
    let whole = u32::from(count) == frame.segments() && first == 0;
    let (Some(cut), Some(checksum), false) = (frame.segmentation, frame.checksum, whole) else {
        let segmentation = if count > 1 { frame.segmentation } else { None };
        return Piece { header: 0, payload: 0..octets.len(), segmentation, checksum: frame.checksum };
    };
    let header = usize::from(cut.header);
    let size = usize::from(cut.size);
    let start = header + usize::from(first) * size;
    let end = (start + usize::from(count) * size).min(octets.len());
    let head = &mut out[..header];
    head.copy_from_slice(&octets[..header]);
    rewrite(head, cut, checksum, first, end - start, end == octets.len());
    let segmentation = (count > 1).then_some(cut);
    Piece { header, payload: start..end, segmentation, checksum: Some(checksum) }
}

/// Rewrites the headers of a super-frame into those of a run of its segments with `payload` octets;
/// the run begins with segment number `first`.
fn rewrite(head: &mut [u8], cut: Segmentation, checksum: Checksum, first: u16, payload: usize, ends: bool) {
    let Some((at, kind)) = network(head) else { return };
    let transport = usize::from(checksum.start);
    let length = |from: usize| u16::try_from(head.len() - from + payload).unwrap_or(u16::MAX);
    let (total, upper) = (length(at), length(transport));
    if kind == 0x0800 {
        put_word(head, at + 2, total);
        let identification = word(head, at + 4).wrapping_add(first);
        put_word(head, at + 4, identification);
        put_word(head, at + 10, 0);
        let sum = !fold(add(0, &head[at..transport]));
        put_word(head, at + 10, sum);
    } else {
        put_word(head, at + 4, total - 40);
    }
    let protocol = if cut.protocol == Protocol::Udp {
        put_word(head, transport + 4, upper);
        UDP
    } else {
        let sequence = u32::from_be_bytes([0, 1, 2, 3].map(|i| head[transport + 4 + i]));
        let sequence = sequence.wrapping_add(u32::from(first) * u32::from(cut.size));
        head[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
        if !ends {
            head[transport + 13] &= !FIN_PSH;
        }
        if first > 0 {
            head[transport + 13] &= !CWR;
        }
        TCP
    };
    let addresses = if kind == 0x0800 { at + 12..at + 20 } else { at + 8..at + 40 };
    let pseudo = add(u64::from(upper) + u64::from(protocol), &head[addresses]);
    put_word(head, transport + usize::from(checksum.offset), fold(pseudo));
}

/// Writes one whole segment of a frame, with its checksum completed, and returns its length in
/// octets. `segment` counts from the start of the super-frame; it is 0 for an ordinary frame.
///
/// # Panics
/// If `out` is too short, or the frame did not come from an engine.
pub fn complete(frame: &Frame, pool: &Pool, segment: u16, out: &mut [u8]) -> usize {
    let mut head = [0; HEADER_MAX];
    let piece = header(frame, pool, segment, 1, &mut head);
    let length = piece.header + piece.payload.len();
    out[..piece.header].copy_from_slice(&head[..piece.header]);
    out[piece.header..length].copy_from_slice(&pool.octets(frame.buffer)[piece.payload]);
    if let Some(checksum) = piece.checksum {
        complete_checksum(&mut out[..length], checksum);
    }
    length
}

/// Copies a frame, or a run of segments, into its own buffer with its own headers. The copy keeps
/// its offload description.
pub(crate) fn detach(frame: &Frame, pool: &mut Pool) -> Frame {
    let target = pool.take(usize::try_from(frame.octets()).unwrap_or(usize::MAX).min(frame.length as usize));
    let mut head = [0; HEADER_MAX];
    let (octets, out) = pool.pair(frame.buffer, target);
    let piece = piece(frame, octets, frame.first, frame.count, &mut head);
    let length = piece.header + piece.payload.len();
    out[..piece.header].copy_from_slice(&head[..piece.header]);
    out[piece.header..length].copy_from_slice(&octets[piece.payload]);
    pool.release(frame.buffer);
    #[allow(clippy::cast_possible_truncation)] // no longer than the frame that it comes from
    let length = length as u32;
    Frame {
        buffer: target,
        length,
        first: 0,
        segmentation: piece.segmentation,
        checksum: piece.checksum,
        ..*frame
    }
}

/// Replaces the `bare` octets of VLAN tag after the addresses of a frame, or of a run of segments,
/// with `tag`. The result has its own buffer and keeps its offload description. Returns
/// `None`, with nothing changed, if the headers leave no room.
pub(crate) fn retag(frame: &Frame, pool: &mut Pool, bare: usize, tag: Option<[u8; VLAN]>) -> Option<Frame> {
    let added = if tag.is_some() { VLAN } else { 0 };
    // Header lengths are u16 and headers are short: all sums stay within range.
    let move_by = |at: u16| u16::try_from(usize::from(at) + added - bare).ok();
    let segmentation = match frame.segmentation {
        None => None,
        Some(cut) => Some(Segmentation { header: move_by(cut.header)?, ..cut }),
    };
    let checksum = match frame.checksum {
        None => None,
        Some(sum) => Some(Checksum { start: move_by(sum.start)?, ..sum }),
    };
    if segmentation.is_some_and(|cut| usize::from(cut.header) > HEADER_MAX) {
        return None;
    }
    let most = usize::try_from(frame.octets()).unwrap_or(usize::MAX).min(frame.length as usize);
    if most + added > CLASSES[CLASSES.len() - 1] {
        return None;
    }
    let target = pool.take(most + added);
    let mut head = [0; HEADER_MAX];
    let (octets, out) = pool.pair(frame.buffer, target);
    let piece = piece(frame, octets, frame.first, frame.count, &mut head);
    let payload = &octets[piece.payload];
    let (front, rest) = if piece.header == 0 { (payload, &[][..]) } else { (&head[..piece.header], payload) };
    let mut length = 0;
    for part in
        [&front[..ADDRESSES], tag.as_ref().map_or(&[][..], |tag| &tag[..]), &front[ADDRESSES + bare..], rest]
    {
        out[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    pool.release(frame.buffer);
    #[allow(clippy::cast_possible_truncation)] // checked above to fit a buffer
    let length = length as u32;
    let segmentation = segmentation.filter(|_| piece.segmentation.is_some());
    Some(Frame { buffer: target, length, first: 0, segmentation, checksum, ..*frame })
}

/// Computes the transport checksum that the sender left to the device (RFC 1071). Does nothing if
/// the description does not fit the octets.
pub fn complete_checksum(octets: &mut [u8], checksum: Checksum) {
    let at = usize::from(checksum.start) + usize::from(checksum.offset);
    if let Some(sum) = completed_checksum([octets, &[]], checksum) {
        put_word(octets, at, sum);
    }
}

/// The transport checksum that the sender of a frame left to the device (RFC 1071). `frame` is its
/// octets in two pieces, the first with the headers and of even length unless the second is
/// empty. `None` if the description does not fit the first piece.
#[must_use]
pub fn completed_checksum(frame: [&[u8]; 2], checksum: Checksum) -> Option<u16> {
    let start = usize::from(checksum.start);
    let at = start + usize::from(checksum.offset);
    if at + 2 > frame[0].len() {
        return None;
    }
    let sum = !fold(add(add(0, &frame[0][start..]), frame[1]));
    // A UDP checksum of zero means no checksum (RFC 768); the offset identifies UDP.
    let none = sum == 0 && checksum.offset == 6;
    Some(if none { 0xffff } else { sum })
}

/// The Internet checksum (RFC 1071) of two pieces, the first of even length. The result is 0 for
/// octets that include a valid checksum.
#[must_use]
pub fn checksum(pieces: [&[u8]; 2]) -> u16 {
    !fold(pieces.iter().fold(0, |sum, piece| add(sum, piece)))
}

/// Adds octets to a ones' complement sum, as 16-bit words in network order.
pub(crate) fn add(sum: u64, octets: &[u8]) -> u64 {
    // 32-bit words: their sum folds to the same 16 bits, and a frame is too short for an overflow.
    let words = octets.chunks_exact(4);
    let pairs = words.remainder().chunks_exact(2);
    let rest = pairs.remainder();
    let mut sum = words
        .fold(sum, |sum, word| sum + u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])));
    for pair in pairs {
        sum += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    if let [last] = rest {
        sum += u64::from(*last) << 8;
    }
    sum
}

/// Folds a ones' complement sum into 16 bits.
pub(crate) fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    #[allow(clippy::cast_possible_truncation)] // folded below 2^16
    let folded = ((sum >> 16) + (sum & 0xffff)) as u16;
    folded
}
