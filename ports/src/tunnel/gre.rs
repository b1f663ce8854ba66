//! Generic routing encapsulation: the header of RFC 2784 with the key and sequence number of RFC
//! 2890. Received packets are not trusted.

use core::ops::Range;

use airloom_engine::frame::segment::checksum;
use serde::{Deserialize, Serialize};

use super::Refusal;

/// Protocol number of GRE in an IP header.
pub const PROTOCOL: i32 = 47;
/// Payload type of an Ethernet frame (RFC 7637, section 3.2): transparent Ethernet bridging.
pub const ETHERNET: u16 = 0x6558;
/// Maximum length of a header in octets: four of flags and type, and four each of
/// checksum, key and sequence number.
pub const MOST: usize = 16;

const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Bits 1, 4 and 5 (of RFC 1701), which a receiver must refuse, and the version, which is 0.
const REFUSED: u16 = 0x4c07;

/// Fields in the header of a tunnel beside the payload's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gre {
    /// Distinguishes tunnels between the same two addresses.
    pub key: Option<u32>,
    /// Send a checksum over header and payload.
    pub checksum: bool,
    /// Send sequence numbers, and refuse packets that arrive out of order.
    pub sequence: bool,
}

/// A decoded packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Type of the payload, as an `EtherType`.
    pub protocol: u16,
    /// Its sequence number, if present.
    pub sequence: Option<u32>,
    /// Range of the payload in the packet.
    pub payload: Range<usize>,
}

impl Gre {
    /// Length in octets of the header that [`Gre::write`] writes.
    #[must_use]
    pub fn octets(&self) -> usize {
        4 + 4 * (usize::from(self.checksum) + usize::from(self.key.is_some()) + usize::from(self.sequence))
    }

    /// Writes the header for a payload to the beginning of `out` and returns its length in octets.
    pub fn write(&self, protocol: u16, sequence: u32, payload: &[u8], out: &mut [u8; MOST]) -> usize {
        let flag = |on: bool, flag: u16| if on { flag } else { 0 };
        let flags =
            flag(self.checksum, CHECKSUM) | flag(self.key.is_some(), KEY) | flag(self.sequence, SEQUENCE);
        out[..2].copy_from_slice(&flags.to_be_bytes());
        out[2..4].copy_from_slice(&protocol.to_be_bytes());
        let mut at = 4;
        let mut put = |word: Option<u32>| {
            if let Some(word) = word {
                out[at..at + 4].copy_from_slice(&word.to_be_bytes());
                at += 4;
            }
        };
        put(self.checksum.then_some(0));
        put(self.key);
        put(self.sequence.then_some(sequence));
        if self.checksum {
            let sum = checksum([&out[..at], payload]);
            out[4..6].copy_from_slice(&sum.to_be_bytes());
        }
        at
    }

    /// Decodes a packet, beginning at its GRE header.
    ///
    /// # Errors
    /// [`Refusal::Malformed`], [`Refusal::Checksum`], or [`Refusal::Foreign`] for another tunnel's
    /// key.
    pub fn read(&self, packet: &[u8]) -> Result<Opened, Refusal> {
        let word = |at: usize| {
            let octets = packet.get(at..at + 4).ok_or(Refusal::Malformed)?;
            Ok(u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]))
        };
        let [flags, protocol] = halves(word(0)?);
        if flags & REFUSED != 0 {
            return Err(Refusal::Malformed);
        }
        let mut at = 4;
        if flags & CHECKSUM != 0 {
            word(at)?;
            if checksum([packet, &[]]) != 0 {
                return Err(Refusal::Checksum);
            }
            at += 4;
        }
        let mut option = |flag: u16| {
            if flags & flag == 0 {
                return Ok(None);
            }
            let found = word(at)?;
            at += 4;
            Ok(Some(found))
        };
        if option(KEY)? != self.key {
            return Err(Refusal::Foreign);
        }
        let sequence = option(SEQUENCE)?;
        Ok(Opened { protocol, sequence, payload: at..packet.len() })
    }
}

fn halves(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_be_bytes();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

/// Whether sequence number `next` follows `last`, modulo 2^32 (RFC 2890, section 2.2).
#[must_use]
pub fn follows(last: u32, next: u32) -> bool {
    next != last && next.wrapping_sub(last) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_the_standard() {
        let mut out = [0; MOST];
        let plain = Gre::default();
        assert_eq!(plain.write(ETHERNET, 9, &[1, 2], &mut out), 4);
        assert_eq!(out[..4], [0, 0, 0x65, 0x58]);
        let keyed = Gre { key: Some(7), ..plain };
        assert_eq!(keyed.write(0x0800, 9, &[], &mut out), 8);
        assert_eq!(out[..8], [0x20, 0, 8, 0, 0, 0, 0, 7]);
        let all = Gre { key: Some(7), checksum: true, sequence: true };
        assert_eq!(all.write(0x0800, 9, &[0xff], &mut out), 16);
        // Words: b000 + 0800 + 0007 + 0009 + ff00 = 1b710, folded b711, complemented 48ee.
        assert_eq!(out, [0xb0, 0, 8, 0, 0x48, 0xee, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9]);
    }

    #[test]
    fn what_the_standard_refuses_is_refused() {
        let plain = Gre::default();
        let keyed = Gre { key: Some(7), ..plain };
        for flags in [0x4000u16, 0x0800, 0x0400, 1, 2, 4] {
            let [a, b] = flags.to_be_bytes();
            assert_eq!(plain.read(&[a, b, 8, 0, 1, 2, 3, 4]), Err(Refusal::Malformed), "{flags:x}");
        }
        for packet in [&[0, 0, 8][..], &[0x20, 0, 8, 0, 0, 0, 0], &[0x80, 0, 8, 0], &[0x10, 0, 8, 0, 1]] {
            assert_eq!(plain.read(packet), Err(Refusal::Malformed));
        }
        assert_eq!(keyed.read(&[0, 0, 8, 0]), Err(Refusal::Foreign));
        assert_eq!(plain.read(&[0x20, 0, 8, 0, 0, 0, 0, 7]), Err(Refusal::Foreign));
        assert_eq!(keyed.read(&[0x20, 0, 8, 0, 0, 0, 0, 8]), Err(Refusal::Foreign));
        assert_eq!(plain.read(&[0x80, 0, 8, 0, 1, 2, 0, 0, 5]), Err(Refusal::Checksum));
        // Reserved bits 6 to 12 are ignored on receipt.
        assert!(plain.read(&[0x03, 0xf8, 8, 0, 1]).is_ok());
    }

    #[test]
    fn sequence_numbers_go_round() {
        assert!(follows(1, 2) && follows(u32::MAX, 0) && follows(0, (1 << 31) - 1));
        assert!(!follows(2, 2) && !follows(2, 1) && !follows(0, u32::MAX) && !follows(0, 1 << 31));
    }
}
