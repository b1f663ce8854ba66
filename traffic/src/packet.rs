//! Content of a data packet: an optional RTP header and a header of 18 octets.
//!
//! The 18 octets are the minimum for these fields; a frame of 64 octets over IPv4 holds them. All
//! numbers are big-endian (network byte order):
//!
//! | octets | what |
//! | --- | --- |
//! | 0..2 | magic `0xA17A` |
//! | 2 | version, 1 |
//! | 3 | kind: 0 data, 1 the end of the flow |
//! | 4..6 | flow |
//! | 6..10 | sequence number, low 32 bits; in an end packet the number of data packets that were sent |
//! | 10..18 | when it was handed to the socket: ns of the sender's `CLOCK_MONOTONIC` |
//!
//! The rest of the payload is zero. With RTP (RFC 3550, section 5.1) a header of 12 octets
//! precedes: version 2, no padding, extension or contributing sources; payload type as chosen;
//! sequence number, timestamp (the moment for which the packet was *scheduled*, in units of the RTP
//! clock) and synchronization source.

/// Length of the header in octets.
pub const HEADER: usize = 18;
/// Length of an RTP header without contributing sources, in octets.
pub const RTP_HEADER: usize = 12;

const MAGIC: u16 = 0xA17A;
const VERSION: u8 = 1;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One packet of the flow.
    Data,
    /// End of the flow.
    End,
}

/// The fields of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Data or end.
    pub kind: Kind,
    /// The flow that it belongs to.
    pub flow: u16,
    /// Low 32 bits of the sequence number.
    pub sequence: u32,
    /// Nanoseconds of the sender's `CLOCK_MONOTONIC`.
    pub sent: u64,
}

impl Header {
    /// Writes the header into the first [`HEADER`] octets.
    pub fn write(&self, out: &mut [u8; HEADER]) {
        out[0..2].copy_from_slice(&MAGIC.to_be_bytes());
        out[2] = VERSION;
        out[3] = match self.kind {
            Kind::Data => 0,
            Kind::End => 1,
        };
        out[4..6].copy_from_slice(&self.flow.to_be_bytes());
        out[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        out[10..18].copy_from_slice(&self.sent.to_be_bytes());
    }

    /// Decodes a header from the start of a payload; `None` if it is not valid.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let octets: &[u8; HEADER] = payload.first_chunk()?;
        let [m0, m1, version, kind, f0, f1, s0, s1, s2, s3, time @ ..] = *octets;
        if u16::from_be_bytes([m0, m1]) != MAGIC || version != VERSION {
            return None;
        }
        let kind = match kind {
            0 => Kind::Data,
            1 => Kind::End,
            _ => return None,
        };
        Some(Self {
            kind,
            flow: u16::from_be_bytes([f0, f1]),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            sent: u64::from_be_bytes(time),
        })
    }
}

/// The constant fields of all RTP headers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp {
    /// Payload type, 7 bits; 33 is an MPEG transport stream with a clock of 90 kHz (RFC 3551).
    pub payload_type: u8,
    /// Clock rate of the timestamp in Hz.
    pub clock: u32,
    /// Synchronization source.
    pub source: u32,
    /// Added to the sequence number and the timestamp, as RFC 3550 requires (both begin at random
    /// values).
    pub offset: u32,
}

impl Rtp {
    /// Writes the RTP header of packet `sequence`, scheduled `nanos` after the start of the flow.
    #[allow(clippy::cast_possible_truncation)] // RTP counts modulo 2^16 and 2^32
    pub fn write(&self, sequence: u64, nanos: u64, out: &mut [u8; RTP_HEADER]) {
        let number = (sequence as u16).wrapping_add(self.offset as u16);
        let ticks = u128::from(nanos) * u128::from(self.clock) / 1_000_000_000;
        let timestamp = (ticks as u32).wrapping_add(self.offset);
        out[0] = 2 << 6;
        out[1] = self.payload_type & 0x7f;
        out[2..4].copy_from_slice(&number.to_be_bytes());
        out[4..8].copy_from_slice(&timestamp.to_be_bytes());
        out[8..12].copy_from_slice(&self.source.to_be_bytes());
    }
}

/// The payload after an RTP header with its contributing sources and extension; `None`
/// if it is not RTP version 2.
#[must_use]
pub fn behind_rtp(payload: &[u8]) -> Option<&[u8]> {
    let first = *payload.first()?;
    if first >> 6 != 2 {
        return None;
    }
    let mut start = RTP_HEADER + 4 * usize::from(first & 0x0f);
    if first & 0x10 != 0 {
        let length = payload.get(start + 2..start + 4)?;
        start += 4 + 4 * usize::from(u16::from_be_bytes([length[0], length[1]]));
    }
    payload.get(start..)
}

/// Reconstructs 64-bit sequence numbers from their low 32 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwrap {
    latest: u64,
}

impl Unwrap {
    /// The number with these low bits that is nearest to the latest one (and not negative).
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)] // modulo 2^32 is the method
    pub fn next(&mut self, low: u32) -> u64 {
        let step = i64::from(low.wrapping_sub(self.latest as u32) as i32);
        let number = self.latest as i64 + step;
        self.latest = if number < 0 { (number + (1 << 32)) as u64 } else { number as u64 };
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn octets_are_where_the_documentation_says() {
        let header =
            Header { kind: Kind::End, flow: 0x0102, sequence: 0x0304_0506, sent: 0x0708_090a_0b0c_0d0e };
        let mut octets = [0; HEADER];
        header.write(&mut octets);
        assert_eq!(octets, [0xa1, 0x7a, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    }

    #[test]
    fn rtp_header_follows_rfc_3550() {
        let rtp = Rtp { payload_type: 33, clock: 90_000, source: 0x1122_3344, offset: 0xffff_fffe };
        let mut octets = [0; RTP_HEADER];
        rtp.write(3, 1_000_000_000, &mut octets);
        assert_eq!(octets, [0x80, 33, 0, 1, 0, 1, 0x5f, 0x8e, 0x11, 0x22, 0x33, 0x44]);
    }

    #[test]
    fn contributing_sources_and_extension_are_skipped() {
        let mut packet = vec![0x91, 33, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 2, 2, 2, 2];
        packet.push(7);
        assert_eq!(behind_rtp(&packet), Some(&[7][..]));
        assert_eq!(behind_rtp(&packet[..18]), None);
        assert_eq!(behind_rtp(&[0x40; 20]), None);
    }

    #[test]
    fn numbers_go_on_past_32_bits() {
        let mut unwrap = Unwrap { latest: (1 << 32) - 2 };
        assert_eq!(unwrap.next(u32::MAX), (1 << 32) - 1);
        assert_eq!(unwrap.next(1), (1 << 32) + 1);
        assert_eq!(unwrap.next(u32::MAX), (1 << 32) - 1, "late packets keep their number");
        assert_eq!(unwrap.next(5), (1 << 32) + 5);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(flow: u16, sequence: u32, sent: u64, end: bool) {
            let header = Header { kind: if end { Kind::End } else { Kind::Data }, flow, sequence, sent };
            let mut octets = [0; HEADER];
            header.write(&mut octets);
            prop_assert_eq!(Header::read(&octets), Some(header));
        }

        #[test]
        fn any_octets_are_read_or_refused(octets: Vec<u8>) {
            let _ = Header::read(&octets);
            let _ = behind_rtp(&octets);
        }

        #[test]
        fn neighbours_unwrap_to_themselves(start in 0_u64..1 << 40, steps in prop::collection::vec(-1000_i64..1000, 1..50)) {
            let mut unwrap = Unwrap { latest: start };
            let mut number = start;
            for step in steps {
                number = number.saturating_add_signed(step);
                prop_assert_eq!(unwrap.next((number & 0xffff_ffff) as u32), number);
            }
        }
    }
}
