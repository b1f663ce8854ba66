//! Captured frames, written with a radiotap header.
//!
//! Layouts: radiotap.org (version 0, the fields TSFT, Flags, Rate, Channel, antenna signal and
//! noise, TX flags, MCS, A-MPDU status), IEEE Std 802.11-2020 clause 9 for the frames. The frame check
//! sequence is written; it is inverted for corrupted frames, as the flags indicate.

use std::ops::Range;

use crate::frame::Frame;
use crate::medium::mac::priority;
use crate::medium::phy::{Channel, Ht, Phy, Rate};
use crate::medium::types::{Kind, RadioId};
use crate::medium::wlan::header::flag;
use crate::time::{Instant, Span};

/// A captured frame, seen at one receiver, at its sender, or by an ideal monitor of the channel.
#[derive(Clone, Copy, Debug)]
pub struct Sniffed<'a> {
    /// The capturing radio; `None` for the channel as a whole.
    pub radio: Option<RadioId>,
    /// The radio that sent it.
    pub sender: RadioId,
    /// When its first symbol was sent, or arrived.
    pub at: Instant,
    /// Channel of the transmission.
    pub channel: Channel,
    /// Rate in bit/s.
    pub bits_per_second: u32,
    /// True for OFDM; false for DSSS or CCK.
    pub ofdm: bool,
    /// Present at a rate of 802.11n.
    pub ht: Option<Ht>,
    /// Signal at the receiver in dBm; `None` at the sender and for the channel as a whole.
    pub signal_dbm: Option<f64>,
    /// Noise at the receiver in dBm.
    pub noise_dbm: Option<f64>,
    /// Received with errors; for the channel as a whole, a receiver lost it to interference.
    pub broken: bool,
    /// Frame type.
    pub kind: Kind,
    /// True for a QoS frame.
    pub qos: bool,
    /// Octets of the body, and their offset in the whole body (fragments).
    pub body: (u32, u32),
    /// Duration field: how long the frame reserves the channel.
    pub duration: Span,
    /// Sequence and fragment number.
    pub sequence: (u16, u8),
    /// More fragments follow.
    pub more: bool,
    /// Retry flag.
    pub retry: bool,
    /// To or from an access point (To DS, From DS).
    pub direction: Direction,
    /// Receiver address, transmitter address, BSSID.
    pub addresses: [[u8; 6]; 3],
    /// SSID, for management frames.
    pub ssid: &'a str,
    /// Beacon interval.
    pub beacon: Span,
    /// The physical layer of the sender, and the bit set of its basic rates.
    pub rates: (&'static Phy, u32),
    /// The node's frame, for data frames.
    pub frame: Option<Frame>,
    /// Of an MPDU of an A-MPDU: the number of the A-MPDU, and whether it is the last.
    pub subframe: Option<(u32, bool)>,
    /// Of a block ack: traffic identifier, first sequence number, and the MPDUs that arrived from there on.
    pub block: (u8, u16, u64),
}

impl Sniffed<'_> {
    /// The same frame as its sender captures it: no signal, and no knowledge of its reception.
    #[must_use]
    pub fn at_sender(&self) -> Self {
        Self { radio: Some(self.sender), signal_dbm: None, noise_dbm: None, broken: false, ..*self }
    }

    /// True in the view of the sender.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.radio == Some(self.sender)
    }
}

/// Direction of data relative to an access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Without an access point.
    Direct,
    /// To the access point.
    ToAccessPoint,
    /// From the access point.
    FromAccessPoint,
}

/// Rates of a supported rates element.
const MOST_RATES: usize = 8;

/// Link type of such captures (LINKTYPE_IEEE802_11_RADIOTAP).
pub const LINK_TYPE: u16 = 127;

/// Appends the radiotap header and the frame to `out`. `ethernet` holds the complete octets of the
/// node's frame, Ethernet header first, or those of an 802.11 frame without frame check sequence; it is unused if there is no such frame.
pub fn write(sniffed: &Sniffed, ethernet: &[u8], out: &mut Vec<u8>) {
    radiotap(sniffed, out);
    let start = out.len();
    frame(sniffed, ethernet, out);
    let check = if sniffed.broken { !crc32(&out[start..]) } else { crc32(&out[start..]) };
    out.extend_from_slice(&check.to_le_bytes());
}

/// Appends the frame without frame check sequence.
pub(in crate::medium) fn frame(sniffed: &Sniffed, ethernet: &[u8], out: &mut Vec<u8>) {
    if sniffed.kind == Kind::Wlan {
        mpdu(sniffed, ethernet, out);
    } else {
        header(sniffed, ethernet, out);
        body(sniffed, ethernet, out);
    }
}

fn radiotap(sniffed: &Sniffed, out: &mut Vec<u8>) {
    let start = out.len();
    // A rate of 802.11n is in the field MCS, whatever its bit/s.
    let mut present = if sniffed.ht.is_some() { 0b1011_u32 } else { 0b1111 };
    out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&(sniffed.at.nanos() / 1_000).to_le_bytes());
    // Frame check sequence at the end; bad FCS if corrupted.
    out.push(0x10 | if sniffed.broken { 0x40 } else { 0 });
    // Without a rate the octet aligns the field that follows.
    let units = u8::try_from(sniffed.bits_per_second / 500_000).unwrap_or(0);
    out.push(if sniffed.ht.is_some() { 0 } else { units });
    out.extend_from_slice(&sniffed.channel.mhz.to_le_bytes());
    let band: u16 = if sniffed.channel.mhz < 3000 { 0x0080 } else { 0x0100 };
    let form: u16 = if sniffed.ofdm { 0x0040 } else { 0x0020 };
    out.extend_from_slice(&(band | form).to_le_bytes());
    for (bit, dbm) in [(5, sniffed.signal_dbm), (6, sniffed.noise_dbm)] {
        if let Some(dbm) = dbm {
            present |= 1 << bit;
            #[allow(clippy::cast_possible_truncation)] // within range
            let dbm = dbm.clamp(-128.0, 127.0).round() as i8;
            out.extend_from_slice(&dbm.to_le_bytes());
        }
    }
    if sniffed.is_own() {
        // TX flags mark a frame of the capturing radio itself.
        present |= 1 << 15;
        // A field of 16 bits is aligned to an even offset of the header.
        if (out.len() - start) % 2 == 1 {
            out.push(0);
        }
        out.extend_from_slice(&[0, 0]);
    }
    if let Some(Ht { mcs, wide, short }) = sniffed.ht {
        present |= 1 << 19;
        // Known: bandwidth, scheme, guard interval, format (mixed), code (BCC).
        out.extend_from_slice(&[0x1f, u8::from(wide) | u8::from(short) << 2, mcs]);
    }
    if let Some((number, last)) = sniffed.subframe {
        present |= 1 << 20;
        while (out.len() - start) % 4 != 0 {
            out.push(0);
        }
        out.extend_from_slice(&number.to_le_bytes());
        // Known: which is the last subframe.
        out.extend_from_slice(&[0x04 | if last { 0x08 } else { 0 }, 0, 0, 0]);
    }
    let length = u16::try_from(out.len() - start).unwrap_or(0);
    out[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&present.to_le_bytes());
}

fn header(sniffed: &Sniffed, ethernet: &[u8], out: &mut Vec<u8>) {
    let control = match sniffed.kind {
        Kind::Data if sniffed.qos => 0x88,
        Kind::Data | Kind::Wlan => 0x08,
        Kind::Ack => 0xd4,
        Kind::BlockAck => 0x94,
        Kind::Rts => 0xb4,
        Kind::Cts => 0xc4,
        Kind::Beacon => 0x80,
        Kind::ProbeRequest => 0x40,
        Kind::ProbeResponse => 0x50,
        Kind::AssociationRequest => 0x00,
        Kind::AssociationResponse => 0x10,
        Kind::Authentication => 0xb0,
        Kind::Deauthentication => 0xc0,
        Kind::Doze | Kind::Wake => 0x48,
    };
    let data = sniffed.kind == Kind::Data;
    let way = match sniffed.direction {
        Direction::ToAccessPoint if data => 0x01,
        Direction::FromAccessPoint if data => 0x02,
        _ if sniffed.kind == Kind::Doze => flag::TO_DS | flag::POWER,
        _ if sniffed.kind == Kind::Wake => flag::TO_DS,
        _ => 0x00,
    };
    let more = if sniffed.more { 0x04 } else { 0 };
    let retry = if sniffed.retry { 0x08 } else { 0 };
    out.extend_from_slice(&[control, way | more | retry]);
    out.extend_from_slice(&duration(sniffed));
    let [receiver, transmitter, network] = sniffed.addresses;
    out.extend_from_slice(&receiver);
    if matches!(sniffed.kind, Kind::Ack | Kind::Cts) {
        return;
    }
    out.extend_from_slice(&transmitter);
    if sniffed.kind == Kind::Rts {
        return;
    }
    if sniffed.kind == Kind::BlockAck {
        // Compressed, 9.3.1.8.
        let (identifier, first, arrived) = sniffed.block;
        out.extend_from_slice(&(u16::from(identifier) << 12 | 2 << 1).to_le_bytes());
        out.extend_from_slice(&(first << 4).to_le_bytes());
        out.extend_from_slice(&arrived.to_le_bytes());
        return;
    }
    let ends = |range: core::ops::Range<usize>| ethernet.get(range).and_then(|a| <[u8; 6]>::try_from(a).ok());
    let third = match sniffed.direction {
        Direction::ToAccessPoint if data => ends(0..6).unwrap_or(network),
        Direction::FromAccessPoint if data => ends(6..12).unwrap_or(network),
        _ if matches!(sniffed.kind, Kind::Doze | Kind::Wake) => receiver,
        _ => network,
    };
    out.extend_from_slice(&third);
    let (sequence, fragment) = sniffed.sequence;
    out.extend_from_slice(&(sequence << 4 | u16::from(fragment & 15)).to_le_bytes());
    if data && sniffed.qos {
        out.extend_from_slice(&[priority(ethernet), 0]);
    }
}

/// A frame of a node's 802.11 stack, with what the radio writes into it: Retry bit and duration.
fn mpdu(sniffed: &Sniffed, octets: &[u8], out: &mut Vec<u8>) {
    /// Power save poll: its duration field holds an association identifier.
    const PS_POLL: u8 = 0xa4;
    let start = out.len();
    out.extend_from_slice(octets);
    let Some([kind, flags, low, high]) = out.get_mut(start..).and_then(|out| out.first_chunk_mut()) else {
        return;
    };
    if sniffed.retry {
        *flags |= flag::RETRY;
    }
    if *kind != PS_POLL {
        [*low, *high] = duration(sniffed);
    }
}

/// Duration field: whole microseconds, rounded up.
fn duration(sniffed: &Sniffed) -> [u8; 2] {
    let micros = sniffed.duration.nanos().div_ceil(1_000).min(32_767);
    u16::try_from(micros).unwrap_or(32_767).to_le_bytes()
}

/// The frame body: for data, LLC and SNAP header (RFC 1042) and the Ethernet payload.
fn body(sniffed: &Sniffed, ethernet: &[u8], out: &mut Vec<u8>) {
    let (length, offset) = (sniffed.body.0 as usize, sniffed.body.1 as usize);
    match sniffed.kind {
        Kind::Ack | Kind::BlockAck | Kind::Cts | Kind::Rts | Kind::Doze | Kind::Wake => {}
        Kind::Authentication => {
            // Open system; an access point answers with the second frame.
            let transaction = if sniffed.direction == Direction::FromAccessPoint { 2 } else { 1 };
            out.extend_from_slice(&[0, 0, transaction, 0, 0, 0]);
        }
        // Class 3 frame received from a station that is not associated.
        Kind::Deauthentication => out.extend_from_slice(&[7, 0]),
        Kind::Data => {
            let kind = ethernet.get(12..14).unwrap_or(&[0x08, 0x00]);
            let typed = u16::from_be_bytes([kind[0], kind[1]]) >= 0x0600;
            let llc = [0xaa, 0xaa, 0x03, 0, 0, 0, kind[0], kind[1]];
            let llc = if typed { &llc[..] } else { &[] };
            let payload = ethernet.get(14..).unwrap_or(&[]);
            let whole = llc.iter().chain(payload).copied().chain(core::iter::repeat(0));
            out.extend(whole.skip(offset).take(length));
        }
        kind => {
            let start = out.len();
            let independent = sniffed.direction == Direction::Direct;
            let capability: [u8; 2] = [if independent { 0x02 } else { 0x01 }, 0x00];
            let name = |out: &mut Vec<u8>| {
                let octets = sniffed.ssid.as_bytes();
                out.extend_from_slice(&[0, u8::try_from(octets.len()).unwrap_or(0)]);
                out.extend_from_slice(octets);
            };
            match kind {
                Kind::Beacon | Kind::ProbeResponse => {
                    out.extend_from_slice(&(sniffed.at.nanos() / 1_000).to_le_bytes());
                    // Time units of 1024 us.
                    let units = u16::try_from(sniffed.beacon.nanos() / 1_024_000).unwrap_or(u16::MAX);
                    out.extend_from_slice(&units.to_le_bytes());
                    out.extend_from_slice(&capability);
                    name(out);
                }
                Kind::ProbeRequest => name(out),
                Kind::AssociationRequest => {
                    out.extend_from_slice(&[capability[0], capability[1], 10, 0]);
                    name(out);
                }
                _ => out.extend_from_slice(&[capability[0], capability[1], 0, 0, 1, 0xc0]),
            }
            let (phy, basic) = sniffed.rates;
            let [supported, extended] = rate_elements(phy, basic);
            out.extend(supported);
            if matches!(kind, Kind::Beacon | Kind::ProbeResponse) {
                out.extend_from_slice(&[3, 1, u8::try_from(sniffed.channel.number).unwrap_or(0)]);
                let last: &[u8] = if independent { &[6, 2, 0, 0] } else { &[5, 4, 0, 1, 0, 0] };
                out.extend_from_slice(last);
            }
            out.extend(extended);
            // The SSID may have been changed while the frame was queued; the frame keeps its
            // length.
            out.resize(start + length, 0);
        }
    }
}

/// Octets of the elements of [`rate_elements`].
pub(in crate::medium) fn rate_octets(phy: &Phy) -> u32 {
    let rates = phy.plain_rates().len();
    let elements = if rates > MOST_RATES { 2 } else { 1 };
    u32::try_from(2 * elements + rates).unwrap_or(u32::MAX)
}

/// Supported rates, at most eight, and extended supported rates for the rest, in units of 500 kbit/s;
/// the highest bit marks a basic rate (802.11-2020 9.4.2.3, 9.4.2.13).
fn rate_elements(phy: &Phy, basic: u32) -> [impl Iterator<Item = u8> + '_; 2] {
    let all = phy.plain_rates();
    let element = move |identifier: u8, range: Range<usize>| {
        let rates = &all[range.clone()];
        let head = [identifier, u8::try_from(rates.len()).unwrap_or(0)];
        let octet = move |(rate, index): (&Rate, usize)| {
            let units = u8::try_from(rate.bits_per_second / 500_000).unwrap_or(0x7f);
            if basic >> index & 1 == 1 { units | 0x80 } else { units }
        };
        let shown = if rates.is_empty() { 0 } else { head.len() };
        head.into_iter().take(shown).chain(rates.iter().zip(range).map(octet))
    };
    let first = all.len().min(MOST_RATES);
    [element(1, 0..first), element(50, first..all.len())]
}

/// The BSSID of an independent cell. It derives from the cell's name, so members agree without
/// frames; the local bit is set.
pub(in crate::medium) fn cell_address(ssid: &str) -> [u8; 6] {
    let [a, b, c, d] = if ssid.is_empty() { [0; 4] } else { crc32(ssid.as_bytes()).to_be_bytes() };
    [2, 0, a, b, c, d]
}

/// CRC-32 of IEEE 802 (polynomial 0x04c11db7, reflected).
fn crc32(octets: &[u8]) -> u32 {
    !octets.iter().fold(!0u32, |crc, &octet| {
        (0..8).fold(crc ^ u32::from(octet), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_sequence_is_the_well_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
