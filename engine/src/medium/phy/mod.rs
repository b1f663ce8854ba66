//! Physical layers as data: rates, timing, and the resulting airtime.
//!
//! A [`Phy`] is a table. A [`Rate`] contains all parameters of a transmission's length (preamble,
//! symbol, bits per symbol, service and tail bits), so that a newer layer, or a mix of old and new
//! rates, is one more table and no new code.
//!
//! Source: IEEE Std 802.11-2020, clauses 15 (DSSS), 16 (HR/DSSS), 17 (OFDM), 18 (ERP), 19 (HT).

pub mod channel;
pub mod ht;
mod spread;
pub mod tables;

pub use channel::Channel;
pub use spread::spread;

use crate::math;
use crate::time::Span;

/// Modulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// Differential binary phase shift keying, spread by the 11-chip Barker code.
    Dbpsk,
    /// Differential quadrature phase shift keying, spread by the 11-chip Barker code.
    Dqpsk,
    /// Complementary code keying, 4 bits in 8 chips.
    Cck4,
    /// Complementary code keying, 8 bits in 8 chips.
    Cck8,
    /// OFDM, binary phase shift keying.
    Bpsk,
    /// OFDM, quadrature phase shift keying.
    Qpsk,
    /// OFDM, 16 points.
    Qam16,
    /// OFDM, 64 points.
    Qam64,
}

impl Modulation {
    /// True for the modulations of clauses 15 and 16, whose rates respond to one another.
    #[must_use]
    pub const fn is_spread(self) -> bool {
        matches!(self, Self::Dbpsk | Self::Dqpsk | Self::Cck4 | Self::Cck8)
    }

    /// Bandwidth of the noise that its error models count: 22 MHz with DSSS and CCK, 20 MHz with OFDM.
    #[must_use]
    pub const fn bandwidth_hz(self) -> u32 {
        if self.is_spread() { 22_000_000 } else { 20_000_000 }
    }
}

/// Rate of the convolutional code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// None.
    None,
    /// One in two.
    Half,
    /// Two in three, punctured.
    TwoThirds,
    /// Three in four, punctured.
    ThreeQuarters,
    /// Five in six, punctured.
    FiveSixths,
}

/// What a rate of 802.11n (HT) has beyond those of clause 17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ht {
    /// Modulation and coding scheme, 0 to 31.
    pub mcs: u8,
    /// True for 40 MHz, false for 20 MHz.
    pub wide: bool,
    /// True for a guard interval of 400 ns, false for 800 ns.
    pub short: bool,
}

impl Ht {
    /// Spatial streams, 1 to 4.
    #[must_use]
    pub const fn streams(self) -> u8 {
        self.mcs / 8 + 1
    }
}

/// A transmission rate, with all parameters of its airtime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Payload rate in bit/s, without spreading.
    pub bits_per_second: u32,
    /// Modulation.
    pub modulation: Modulation,
    /// Rate of the convolutional code.
    pub coding: Coding,
    /// Preamble and header before the payload, in nanoseconds.
    pub preamble_ns: u32,
    /// The final part of `preamble_ns` that carries the header's bits.
    pub header_ns: u32,
    /// Bits of the header.
    pub header_bits: u16,
    /// Modulation and code of the header.
    pub header: (Modulation, Coding),
    /// Length of a symbol in nanoseconds; zero if payload bits are not grouped into symbols.
    pub symbol_ns: u32,
    /// Data bits in a symbol.
    pub symbol_bits: u16,
    /// Service and tail bits sent with the payload.
    pub extra_bits: u16,
    /// Silence that counts as part of the frame (signal extension of clause 18).
    pub extension_ns: u32,
    /// Mandatory in its clause, so in the basic set unless the scenario specifies another.
    pub mandatory: bool,
    /// Spreading factor, contained in the times above; 1 without spreading.
    pub spreading: u16,
    /// Present for a rate of 802.11n.
    pub ht: Option<Ht>,
}

impl Rate {
    /// Time from the start of a frame to the indication of its start (aRxPHYStartDelay): preamble and
    /// header, 20 us with OFDM, 192 us or 96 us with DSSS and CCK.
    #[must_use]
    pub const fn start_delay(&self) -> Span {
        Span::from_nanos(self.preamble_ns as u64)
    }

    /// Time from the first symbol of the preamble to the end of the frame.
    ///
    /// OFDM (17.4.3): preamble + symbol * ceil((16 + 8 octets + 6) / bits per symbol) + extension.
    /// HT (19.4.3): the same, with the symbols of the short guard interval filled up to a multiple of
    /// 4 us.
    /// DSSS and CCK (15.3.2, 16.2.2.4): preamble + 8 octets / rate, rounded up to microseconds
    /// because the header's LENGTH field counts them.
    #[must_use]
    pub fn airtime(&self, octets: u32) -> Span {
        let bits = u64::from(octets) * 8 + u64::from(self.extra_bits);
        let payload = if self.symbol_ns == 0 {
            let spread = bits * u64::from(self.spreading);
            (spread * 1_000_000).div_ceil(u64::from(self.bits_per_second)) * 1_000
        } else {
            let symbols = bits.div_ceil(u64::from(self.symbol_bits)) * u64::from(self.symbol_ns);
            if self.ht.is_some_and(|ht| ht.short) { symbols.next_multiple_of(4_000) } else { symbols }
        };
        Span::from_nanos(u64::from(self.preamble_ns) + payload + u64::from(self.extension_ns))
    }
}

/// A physical layer.
#[derive(Clone, Copy, Debug)]
pub struct Phy {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Slot of the backoff.
    pub slot: Span,
    /// Short inter-frame space.
    pub sifs: Span,
    /// Time to detect a signal and a busy channel (upper bound of aCCATime).
    pub detect: Span,
    /// Smallest contention window.
    pub cw_min: u16,
    /// Largest contention window.
    pub cw_max: u16,
    /// Noise bandwidth, Hz.
    pub bandwidth_hz: u32,
    /// Energy detection thresholds in dBm at transmit powers up to 50 mW, up to 100 mW, and above.
    pub energy_dbm: [f64; 3],
    /// Bands of its channels.
    pub bands: &'static [channel::Band],
    /// The layers of its bands, if it has several bands, each with a layer of its own; else empty.
    pub layers: &'static [&'static Phy],
    /// Its rates, ascending; with 802.11n those of clause 17, and then those of clause 19 by scheme.
    pub rates: &'static [Rate],
}

/// Octets of an acknowledgment or clear-to-send.
pub const ACK_OCTETS: u32 = 14;
/// Octets of a request-to-send.
pub const RTS_OCTETS: u32 = 20;

impl Phy {
    /// The layer that it has on a channel: itself, unless it has several bands.
    #[must_use]
    pub fn on(&'static self, channel: Channel) -> &'static Self {
        let band = channel.band();
        self.layers.iter().find(|layer| layer.bands.contains(&band)).copied().unwrap_or(self)
    }

    /// DCF inter-frame space: SIFS + 2 slots (10.3.7).
    #[must_use]
    pub fn difs(&self) -> Span {
        self.sifs + self.slot * 2
    }

    /// Total power in dBm at and above which a radio with this transmit power in dBm finds the channel
    /// busy although it detected no preamble.
    ///
    /// 802.11-2020: OFDM at 20 MHz -62 dBm, 20 dB above the sensitivity at the lowest rate
    /// (17.3.10.6); the same for ERP, whose clause (18.4.6) asks for carrier sense alone. HR/DSSS
    /// (16.3.8.5) -70 dBm up to 50 mW, -73 dBm up to 100 mW, and -76 dBm above. The standard gives
    /// the highest values allowed.
    #[must_use]
    pub fn energy_threshold_dbm(&self, power_dbm: f64) -> f64 {
        let milliwatts = math::linear(power_dbm);
        let [low, middle, high] = self.energy_dbm;
        if milliwatts <= 50.0 {
            low
        } else if milliwatts <= 100.0 * (1.0 + 1e-12) {
            middle
        } else {
            high
        }
    }

    /// Extended inter-frame space: SIFS + DIFS + an acknowledgment at the lowest mandatory rate
    /// (10.3.2.3.7).
    #[must_use]
    pub fn eifs(&self) -> Span {
        let lowest = self.rates.iter().find(|rate| rate.mandatory).unwrap_or(&self.rates[0]);
        self.sifs + self.difs() + lowest.airtime(ACK_OCTETS)
    }

    /// True if it has rates of clauses 15 and 16, or of OFDM, as asked.
    #[must_use]
    pub fn decodes(&self, spread: bool) -> bool {
        // Rates ascend: a table of both kinds begins with DSSS and ends with OFDM.
        let ends = [self.rates.first(), self.rates.last()];
        ends.into_iter().flatten().any(|rate| rate.modulation.is_spread() == spread)
    }

    /// Its rates without those of 802.11n.
    #[must_use]
    pub fn plain_rates(&self) -> &'static [Rate] {
        let plain = self.rates.iter().position(|rate| rate.ht.is_some());
        &self.rates[..plain.unwrap_or(self.rates.len())]
    }

    /// Index of the rate with this many bit/s. Those of 802.11n are known by their scheme, because
    /// several have the same rate in bit/s.
    #[must_use]
    pub fn rate_index(&self, bits_per_second: u64) -> Option<u8> {
        let plain = self.plain_rates();
        let at = plain.iter().position(|rate| u64::from(rate.bits_per_second) == bits_per_second)?;
        u8::try_from(at).ok()
    }

    /// Index of the rate with this modulation and coding scheme of 802.11n.
    #[must_use]
    pub fn scheme(&self, mcs: u8) -> Option<u8> {
        let at = self.rates.iter().position(|rate| rate.ht.is_some_and(|ht| ht.mcs == mcs))?;
        u8::try_from(at).ok()
    }

    /// True if it has rates of 802.11n.
    #[must_use]
    pub fn is_ht(&self) -> bool {
        self.rates.last().is_some_and(|rate| rate.ht.is_some())
    }

    /// True for channels of 40 MHz.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.bandwidth_hz == 40_000_000
    }

    /// True if a receiver of this layer can decode the frames of a rate of 802.11n.
    #[must_use]
    pub fn understands(&self, ht: Ht) -> bool {
        self.is_ht() && (self.is_wide() || !ht.wide)
    }

    /// Index of the rate that another layer has at `index`; that of the lowest one if there is none.
    #[must_use]
    pub fn same_rate(&self, other: &Self, index: u8) -> u8 {
        if core::ptr::eq(self.rates, other.rates) {
            return index;
        }
        let rate = &other.rates[usize::from(index)];
        let same = match rate.ht {
            Some(ht) => self.scheme(ht.mcs),
            None => self.rate_index(u64::from(rate.bits_per_second)),
        };
        same.unwrap_or(0)
    }

    /// Bit set of the mandatory rates, by index.
    #[must_use]
    pub fn mandatory(&self) -> u32 {
        self.rates
            .iter()
            .enumerate()
            .filter(|(_, rate)| rate.mandatory)
            .fold(0, |set, (index, _)| set | 1 << index)
    }

    /// Rate of the response to a frame sent at `index`: the highest rate of the basic set that is
    /// not higher and of the same family; if there is none, the highest such mandatory rate
    /// (10.6.6.5.2). A rate of 802.11n counts as its reference rate of clause 17.
    #[must_use]
    pub fn response(&self, index: u8, basic: u32) -> u8 {
        let ht = self.rates[usize::from(index)].ht;
        let index = ht.map_or(index, |ht| ht::REFERENCE[usize::from(ht.mcs % 8)]);
        let family = |at: &u8| {
            self.rates[usize::from(*at)].modulation.is_spread()
                == self.rates[usize::from(index)].modulation.is_spread()
        };
        let highest = |set: u32| (0..=index).rev().filter(family).find(|&at| set >> at & 1 == 1);
        highest(basic).or_else(|| highest(self.mandatory())).unwrap_or(index)
    }

    /// The lowest rate of a set of rates, used for broadcast; the lowest of all if the set is
    /// empty.
    #[must_use]
    pub fn lowest(&self, basic: u32) -> u8 {
        #[allow(clippy::cast_possible_truncation)] // at most 32
        let index = basic.trailing_zeros() as u8;
        if usize::from(index) < self.rates.len() { index } else { 0 }
    }
}
