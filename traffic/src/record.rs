//! The record file: the packets of a flow as observed at one end.
//!
//! Fixed sizes, little-endian, version 2. A header of 64 octets:
//!
//! | octets | type | what |
//! | --- | --- | --- |
//! | 0..8 | | magic `AIRLTRAF` |
//! | 8..10 | u16 | version, 2 |
//! | 10..12 | u16 | length of this header, 64 |
//! | 12..14 | u16 | length of a record, 32 |
//! | 14 | u8 | end: 0 sender, 1 receiver |
//! | 15 | u8 | protocol: 0 UDP, 1 TCP, 2 RTP |
//! | 16..18 | u16 | flow |
//! | 18 | u8 | receive stamps: 0 taken in user space, 1 the kernel's |
//! | 19 | u8 | 4 or 6, the Internet Protocol's version; 0 if not known |
//! | 20..24 | u32 | RTP clock in Hz, or 0 |
//! | 24..32 | u64 | seed of the pattern |
//! | 32..40 | u64 | when the file was begun: `CLOCK_MONOTONIC` ns |
//! | 40..48 | i64 | `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` at that moment, ns |
//! | 48..52 | u32 | largest error of that difference, ns |
//! | 52..56 | u32 | payload in octets if all are alike, or 0 |
//! | 56..64 | u64 | sender: start of the flow, from which the schedule counts; receiver: 0 |
//!
//! Then records of 32 octets, in the order of events:
//!
//! | octets | type | sender | receiver |
//! | --- | --- | --- | --- |
//! | 0..8 | u64 | sequence number; TCP: offset of the write's first octet | the same; TCP: offset of the chunk |
//! | 8..16 | u64 | when it was scheduled | when it was sent, as the packet says; TCP: 0 |
//! | 16..24 | u64 | when it was handed to the socket | when it arrived |
//! | 24..28 | u32 | payload in octets; TCP: octets written | payload; TCP: octets read |
//! | 28..32 | u32 | flags | flags |
//!
//! All times are `CLOCK_MONOTONIC` ns. Flags: bit 0, the packet was *not* sent (the socket refused
//! it); bit 1, a TCP write that was cut short; bit 2, this arrival's time was taken in user space
//! although the file's are the kernel's; bits 3 and 4, a boundary (see [`crate::stages::Stage`]):
//! the record has only the packet's number and, in octets 16..24, when it passed there; bits 8 to
//! 15, the received traffic class (DSCP and ECN); bit 31, the last record.
//!
//! The last record, written only when the program ends in order, has other fields: the number of
//! records before it; the number of packets (TCP: octets) that the sender reports as sent, or
//! `u64::MAX` if unknown; the time; the number of packets dropped by the receiving socket because
//! its buffer was full (its 32-bit field saturates). A file without it was truncated and is still
//! valid up to its last whole record.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use airloom_engine::time::Instant;

use crate::clock::Offset;
use crate::frame::Family;
use crate::stages::Stage;

/// Octets of the header.
pub const HEADER: usize = 64;
/// Octets of a record.
pub const RECORD: usize = 32;

/// The socket refused the packet.
pub const NOT_SENT: u32 = 1;
/// The TCP write was incomplete.
pub const CUT: u32 = 1 << 1;
/// The arrival's time was taken in user space although the file's are the kernel's.
pub const USER_STAMP: u32 = 1 << 2;
/// Position of the boundary.
pub const STAGE_SHIFT: u32 = 3;
/// Position of the traffic class.
pub const CLASS_SHIFT: u32 = 8;
/// The last record.
pub const LAST: u32 = 1 << 31;

const BUFFER: usize = 1 << 20;

/// End of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender.
    Sender,
    /// The receiver.
    Receiver,
}

/// Transport protocol of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// UDP datagrams.
    Udp,
    /// A TCP byte stream.
    Tcp,
    /// RTP over UDP.
    Rtp,
}

/// The header's fields that differ from flow to flow.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// End of the flow.
    pub end: End,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Number of the flow.
    pub flow: u16,
    /// Arrivals are stamped by the kernel.
    pub kernel_stamps: bool,
    /// Version of the Internet Protocol, if known.
    pub family: Option<Family>,
    /// RTP clock in Hz, or 0.
    pub rtp_clock: u32,
    /// Seed of the pattern.
    pub seed: u64,
    /// When the file was begun.
    pub begun: Instant,
    /// Offset of the clocks.
    pub offset: Offset,
    /// Payload in octets if all packets are equal, or 0.
    pub size: u32,
    /// Start of the flow (sender).
    pub start: Instant,
}

impl Header {
    fn octets(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0..8].copy_from_slice(b"AIRLTRAF");
        out[8..10].copy_from_slice(&2_u16.to_le_bytes());
        out[10..12].copy_from_slice(&64_u16.to_le_bytes());
        out[12..14].copy_from_slice(&32_u16.to_le_bytes());
        out[14] = u8::from(self.end == End::Receiver);
        out[15] = match self.protocol {
            Protocol::Udp => 0,
            Protocol::Tcp => 1,
            Protocol::Rtp => 2,
        };
        out[16..18].copy_from_slice(&self.flow.to_le_bytes());
        out[18] = u8::from(self.kernel_stamps);
        out[19] = match self.family {
            None => 0,
            Some(Family::V4) => 4,
            Some(Family::V6) => 6,
        };
        out[20..24].copy_from_slice(&self.rtp_clock.to_le_bytes());
        out[24..32].copy_from_slice(&self.seed.to_le_bytes());
        out[32..40].copy_from_slice(&self.begun.nanos().to_le_bytes());
        out[40..48].copy_from_slice(&self.offset.nanos.to_le_bytes());
        out[48..52].copy_from_slice(&saturated(self.offset.error).to_le_bytes());
        out[52..56].copy_from_slice(&self.size.to_le_bytes());
        out[56..64].copy_from_slice(&self.start.nanos().to_le_bytes());
        out
    }
}

/// One event of a flow; the table above defines the fields at each end.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Number of the packet, or offset in the stream.
    pub sequence: u64,
    /// Scheduled (sender) or sent (receiver).
    pub first: Instant,
    /// Sent (sender) or arrived (receiver).
    pub second: Instant,
    /// Octets of payload.
    pub size: u32,
    /// Bits as in the table above.
    pub flags: u32,
}

impl Record {
    fn octets(&self) -> [u8; RECORD] {
        let mut out = [0; RECORD];
        out[0..8].copy_from_slice(&self.sequence.to_le_bytes());
        out[8..16].copy_from_slice(&self.first.nanos().to_le_bytes());
        out[16..24].copy_from_slice(&self.second.nanos().to_le_bytes());
        out[24..28].copy_from_slice(&self.size.to_le_bytes());
        out[28..32].copy_from_slice(&self.flags.to_le_bytes());
        out
    }
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Writes a record file through a buffer of 1 MiB. After the first error (a full disk) it stops
/// writing and keeps the error, so that the flow itself continues.
pub struct Writer<W: Write> {
    out: Option<BufWriter<W>>,
    records: u64,
    error: Option<io::Error>,
}

/// Opens the file of the records; `-` is standard output.
pub fn open(path: &str) -> io::Result<File> {
    if path == "-" { io::stdout().as_fd().try_clone_to_owned().map(File::from) } else { File::create(path) }
}

impl<W: Write> Writer<W> {
    /// Creates a writer and writes the header; without a file it only counts.
    pub fn new(out: Option<W>, header: &Header) -> Self {
        let mut writer =
            Self { out: out.map(|out| BufWriter::with_capacity(BUFFER, out)), records: 0, error: None };
        writer.write(&header.octets());
        // Even a file that is truncated early then has a header.
        writer.flush();
        writer
    }

    /// Adds one record.
    pub fn push(&mut self, record: &Record) {
        self.records += 1;
        self.write(&record.octets());
    }

    /// Adds the time at which a packet passed a boundary.
    pub fn passed(&mut self, stage: Stage, sequence: u64, at: Instant) {
        let flags = (stage as u32) << STAGE_SHIFT;
        self.push(&Record { sequence, first: Instant::ZERO, second: at, size: 0, flags });
    }

    /// Writes the buffered records; called while the flow is idle.
    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.out.as_mut().map(Write::flush) {
            self.fail(error);
        }
    }

    /// Adds the last record and returns the first write error.
    pub fn finish(mut self, announced: Option<u64>, at: Instant, overflowed: u64) -> io::Result<()> {
        let last = Record {
            sequence: self.records,
            first: Instant::from_nanos(announced.unwrap_or(u64::MAX)),
            second: at,
            size: saturated(overflowed),
            flags: LAST,
        };
        self.write(&last.octets());
        self.flush();
        self.error.map_or(Ok(()), Err)
    }

    fn write(&mut self, octets: &[u8]) {
        if let Some(Err(error)) = self.out.as_mut().map(|out| out.write_all(octets)) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        // The buffered records cannot be written either, and must not be retried on drop.
        if let Some(out) = self.out.take() {
            let _ = out.into_parts();
        }
        self.error.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            end: End::Receiver,
            protocol: Protocol::Rtp,
            flow: 0x0201,
            kernel_stamps: true,
            family: Some(Family::V6),
            rtp_clock: 90_000,
            seed: 7,
            begun: Instant::from_nanos(8),
            offset: Offset { nanos: -9, error: 10 },
            size: 11,
            start: Instant::from_nanos(12),
        }
    }

    #[test]
    fn octets_are_where_the_documentation_says() {
        let mut file = Vec::new();
        let mut writer = Writer::new(Some(&mut file), &header());
        let record = Record {
            sequence: 1,
            first: Instant::from_nanos(2),
            second: Instant::from_nanos(3),
            size: 4,
            flags: NOT_SENT,
        };
        writer.push(&record);
        writer.finish(Some(5), Instant::from_nanos(6), 1 << 40).unwrap();
        assert_eq!(&file[..20], b"AIRLTRAF\x02\0\x40\0\x20\0\x01\x02\x01\x02\x01\x06");
        assert_eq!(&file[40..48], &(-9_i64).to_le_bytes());
        assert_eq!(file[56], 12);
        assert_eq!(file.len(), HEADER + 2 * RECORD);
        assert_eq!([file[64], file[72], file[80], file[88], file[92]], [1, 2, 3, 4, 1]);
        assert_eq!([file[96], file[104], file[112]], [1, 5, 6]);
        assert_eq!(&file[120..128], &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80]);
    }

    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= 1;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut writer = Writer::new(Some(Full(1)), &header());
        let zero = Instant::ZERO;
        for sequence in 0..100_000 {
            writer.push(&Record { sequence, first: zero, second: zero, size: 0, flags: 0 });
        }
        assert_eq!(writer.finish(None, zero, 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
