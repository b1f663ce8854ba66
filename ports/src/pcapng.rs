//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng), written into memory.
//!
//! Nanosecond timestamps (`if_tsresol` 9), one interface for each port, the direction in
//! `epb_flags`, and the fate of a frame as a comment. Host byte order, as the format allows.

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Link type of frames that begin with an Ethernet header.
pub const ETHERNET: u16 = 1;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Maximum length of a comment in octets; a longer one is truncated.
pub const COMMENT: usize = 200;

/// Direction of a frame, seen from the node of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The node receives it.
    Inbound,
    /// The node sends it.
    Outbound,
}

/// Appends the block that begins a file.
pub fn section(out: &mut Vec<u8>) {
    block(out, SECTION_HEADER, |out| {
        put32(out, BYTE_ORDER_MAGIC);
        put16(out, 1);
        put16(out, 0);
        out.extend_from_slice(&u64::MAX.to_ne_bytes()); // length of the section not stated
        option(out, SHB_USERAPPL, b"airloom");
        option(out, OPT_END, b"");
    });
}

/// Appends the block that describes an interface; the first one is number 0.
///
/// `snap` is the number of octets that are kept of each frame; 0 means all.
pub fn interface(out: &mut Vec<u8>, name: &str, link_type: u16, snap: u32) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        put16(out, link_type);
        put16(out, 0);
        put32(out, snap);
        option(out, IF_NAME, &name.as_bytes()[..name.len().min(usize::from(u16::MAX))]);
        option(out, IF_TSRESOL, &[9]);
        option(out, OPT_END, b"");
    });
}

/// Appends the block of an interface's counters at nanoseconds since 1970: frames that are in the
/// capture, and frames that are missing because their copies were dropped.
pub fn statistics(out: &mut Vec<u8>, interface: u32, at: u64, written: u64, missing: u64) {
    block(out, INTERFACE_STATISTICS, |out| {
        put32(out, interface);
        put_time(out, at);
        option(out, ISB_IFRECV, &(written + missing).to_ne_bytes());
        option(out, ISB_IFDROP, &missing.to_ne_bytes());
        option(out, OPT_END, b"");
    });
}

/// One frame, as it goes into a file.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Number of the interface.
    pub interface: u32,
    /// Timestamp in nanoseconds since 1970.
    pub at: u64,
    /// The octets that are kept of the frame.
    pub octets: &'a [u8],
    /// Octets of the whole frame.
    pub length: usize,
    /// Its direction; None for a frame that was dropped.
    pub direction: Option<Direction>,
    /// Comment; empty for none.
    pub comment: &'a str,
}

/// Maximum number of octets that [`packet`] appends for a frame of `octets`.
#[must_use]
pub const fn longest(octets: usize) -> usize {
    octets + COMMENT + 64
}

/// Appends the block of one frame.
pub fn packet(out: &mut Vec<u8>, packet: &Packet) {
    let octets = |count: usize| u32::try_from(count).expect("a frame is shorter than 4 GB");
    let (kept, length) = (octets(packet.octets.len()), octets(packet.length));
    block(out, ENHANCED_PACKET, |out| {
        put32(out, packet.interface);
        put_time(out, packet.at);
        put32(out, kept);
        put32(out, length);
        out.extend_from_slice(packet.octets);
        pad(out);
        let flags = packet.direction.map(|direction| match direction {
            Direction::Inbound => 1u32,
            Direction::Outbound => 2,
        });
        if let Some(flags) = flags {
            option(out, EPB_FLAGS, &flags.to_ne_bytes());
        }
        let mut comment = packet.comment;
        if comment.len() > COMMENT {
            let cut = (0..=COMMENT).rev().find(|&at| comment.is_char_boundary(at));
            comment = &comment[..cut.unwrap_or(0)];
        }
        if !comment.is_empty() {
            option(out, OPT_COMMENT, comment.as_bytes());
        }
        if flags.is_some() || !comment.is_empty() {
            option(out, OPT_END, b"");
        }
    });
}

/// A block of a capture, as the functions above append it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// An interface with its name.
    Interface(&'a str),
    /// A frame of an interface, at nanoseconds since 1970.
    Packet(u32, u64),
    /// Counters of an interface.
    Statistics(u32),
}

/// The first block of `octets`, which begin with one, and its length.
#[must_use]
pub fn first(octets: &[u8]) -> (Block<'_>, usize) {
    let get16 = |at: usize| u16::from_ne_bytes([octets[at], octets[at + 1]]);
    let get32 = |at: usize| u32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
    let found = match get32(0) {
        ENHANCED_PACKET => Block::Packet(get32(8), u64::from(get32(12)) << 32 | u64::from(get32(16))),
        INTERFACE_STATISTICS => Block::Statistics(get32(8)),
        _ => {
            let name = 20..20 + usize::from(get16(18));
            Block::Interface(std::str::from_utf8(&octets[name]).unwrap_or("port"))
        }
    };
    (found, get32(4) as usize)
}

/// Replaces the interface number of a block of a packet or of counters.
pub fn renumber(block: &mut [u8], interface: u32) {
    block[8..12].copy_from_slice(&interface.to_ne_bytes());
}

/// A block: its kind and length, what `body` appends, and the length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put32(out, kind);
    put32(out, 0);
    body(out);
    let length = u32::try_from(out.len() + 4 - start).expect("a block is shorter than 4 GB");
    out[start + 4..start + 8].copy_from_slice(&length.to_ne_bytes());
    put32(out, length);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    put16(out, code);
    put16(out, u16::try_from(value.len()).expect("options are short"));
    out.extend_from_slice(value);
    pad(out);
}

/// Blocks and the fields in them are padded to multiples of four octets.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A time in nanoseconds: its upper half, then its lower one.
fn put_time(out: &mut Vec<u8>, at: u64) {
    #[allow(clippy::cast_possible_truncation)] // the two halves of 64 bits
    let (high, low) = ((at >> 32) as u32, at as u32);
    put32(out, high);
    put32(out, low);
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_ne_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn get32(file: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(file[at..at + 4].try_into().expect("four octets"))
    }

    /// Kind and body of every block, by a reader that relies only on the lengths.
    fn blocks(file: &[u8]) -> Vec<(u32, &[u8])> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < file.len() {
            let length = get32(file, at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(get32(file, at + length - 4) as usize, length);
            found.push((get32(file, at), &file[at + 8..at + length - 4]));
            at += length;
        }
        found
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(
            octets in proptest::collection::vec(any::<u8>(), 0..80),
            more in 0..100_usize,
            at in any::<u64>(),
            comment in "[a-zé]{0,300}",
        ) {
            let mut file = Vec::new();
            section(&mut file);
            let described = file.len();
            interface(&mut file, "h1:eth0", ETHERNET, 96);
            let before = file.len();
            prop_assert_eq!(first(&file[described..]), (Block::Interface("h1:eth0"), before - described));
            let direction = Some(Direction::Outbound);
            let length = octets.len() + more;
            packet(&mut file, &Packet { interface: 3, at, octets: &octets, length, direction, comment: &comment });
            prop_assert!(file.len() - before <= longest(octets.len()));
            prop_assert_eq!(first(&file[before..]), (Block::Packet(3, at), file.len() - before));
            renumber(&mut file[before..], 0);
            prop_assert_eq!(first(&file[before..]), (Block::Packet(0, at), file.len() - before));
            let packets = file.len();
            statistics(&mut file, 3, at, 5, 7);
            prop_assert_eq!(first(&file[packets..]), (Block::Statistics(3), file.len() - packets));
            let blocks = blocks(&file);
            prop_assert_eq!(blocks.len(), 4);
            prop_assert_eq!(blocks[0].0, SECTION_HEADER);
            prop_assert_eq!(blocks[1].0, INTERFACE_DESCRIPTION);
            let (kind, body) = blocks[2];
            prop_assert_eq!(kind, ENHANCED_PACKET);
            let stamp = u64::from(get32(body, 4)) << 32 | u64::from(get32(body, 8));
            prop_assert_eq!(stamp, at);
            let kept = get32(body, 12) as usize;
            prop_assert_eq!(&body[20..20 + kept], &octets);
            prop_assert_eq!(get32(body, 16) as usize, kept + more);
        }
    }
}
