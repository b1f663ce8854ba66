//! Settings of a radio, in plain numbers.

use serde::{Deserialize, Serialize};

use crate::medium::phy;
use crate::medium::phy::ht::MOST_FRAMES;
use crate::medium::phy::{Channel, Phy};
use crate::medium::settings::error::SettingsError;
use crate::medium::slices::codes::CodeSettings;
use crate::medium::slices::hops::HopSettings;
use crate::medium::slices::slots::SlotSettings;

/// A radio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RadioSettings {
    /// Hardware address.
    pub mac: [u8; 6],
    /// Physical layer by name: `802.11a`, `802.11g`, `802.11b`, `802.11b-short`, `802.11bg`,
    /// `802.11abg`, `802.11n`: with `802.11abg` the channel decides between `802.11bg` and `802.11a`, and
    /// the radio of an 802.11 stack has both. With `802.11n` it decides on the band.
    pub phy: String,
    /// Width of the channel in MHz: 20, or 40 with `802.11n`.
    pub width_mhz: u16,
    /// Guard interval in nanoseconds: 800, or 400 with `802.11n`.
    pub guard_interval_ns: u16,
    /// Most spatial streams that rate control uses with `802.11n`, 1 to 4; `None` for one.
    pub streams: Option<u8>,
    /// Channel number.
    pub channel: u16,
    /// Transmit power in dBm, -30 to 60.
    pub power_dbm: f64,
    /// Antenna gain in dBi, -20 to 60; applies to sending and receiving.
    pub gain_dbi: f64,
    /// Noise figure of the receiver in dB, 0 to 40.
    pub noise_figure_db: f64,
    /// Energy detection threshold: total power at and above which the channel counts as busy, dBm;
    /// `None` for that of the layer and the transmit power ([`Phy::energy_threshold_dbm`]).
    pub carrier_sense_dbm: Option<f64>,
    /// Minimum power of a frame that the receiver can detect, dBm (17.3.10.6: -82 dBm for 20 MHz;
    /// real radios do better).
    pub receive_dbm: f64,
    /// Minimum SINR during the preamble, dB, for the receiver to detect a frame. If `None`, it
    /// follows the strongest of several simultaneous preambles.
    pub preamble_db: Option<f64>,
    /// The receiver switches to a later frame that is stronger than all other signals by this many
    /// dB; `None` disables capture.
    pub capture_db: Option<f64>,
    /// Time from the first symbol of a frame within which capture is possible, in nanoseconds, up
    /// to 1 s; `None` for its whole length.
    pub capture_ns: Option<u64>,
    /// Rate control.
    pub rate: RateSettings,
    /// Rates of the basic set in bit/s; empty for the mandatory rates.
    pub basic_rates: Vec<u64>,
    /// Rate of broadcast and of request-to-send in bit/s; `None` for the lowest basic rate
    /// (broadcast), and the highest basic rate not above the data's (request-to-send).
    pub control_rate: Option<u64>,
    /// Transmissions of a frame not longer than the RTS threshold, or of its request-to-send,
    /// before it is given up (dot11ShortRetryLimit, 7).
    pub short_retries: u8,
    /// The same for frames longer than the RTS threshold (dot11LongRetryLimit, 4).
    pub long_retries: u8,
    /// Frames of more octets than this, on the air, use request-to-send.
    pub rts_octets: Option<u32>,
    /// Frames of more octets than this, on the air, are sent in fragments; even, at least 256.
    pub fragment_octets: Option<u32>,
    /// Transmit buffers of the driver, in frames (madwifi's TX-BUF, 40).
    pub transmit_buffers: u32,
    /// Maximum length of one hardware queue, in frames (madwifi's TAIL-DROP-COUNT, 50).
    pub tail_drop: u32,
    /// Four access categories (EDCA) instead of one queue (DCF).
    pub qos: bool,
    /// Most frames of an A-MPDU, 1 to 64; `None` for frames of their own with ordinary acknowledgments.
    pub aggregation: Option<u8>,
    /// Time added to slot and time-outs for long links, in units of 3 us (coverage class, 0 to 31).
    pub coverage_class: u8,
    /// Passes on every frame that the radio can decode, on all channels of its band, instead of those
    /// to its addresses and to groups; for radios of 802.11 stacks ([`super::wlan`]).
    pub monitor: bool,
    /// Reproduces deviations from the standard observed in ns-3.44: the window is reset after one failure
    /// more than the retry limit, not with the frame; a frame to be forwarded at the very end of a
    /// reception is sent without backoff; EIFS counts from the end of the corrupted frame.
    pub as_ns3: bool,
    /// The node of an access point bridges it to a wire, where stations are announced ([`super::bss`]).
    pub bridged: bool,
    /// Time slots in which it starts exchanges; `None` for any time.
    pub slots: Option<SlotSettings>,
    /// Hopping sequence, instead of `channel`; not for 802.11 stacks, which choose channels themselves.
    pub hops: Option<HopSettings>,
    /// Code by which its symbols are spread; `None` for no spreading.
    pub code: Option<CodeSettings>,
    /// BSS membership.
    pub membership: Membership,
}

/// Rate control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RateSettings {
    /// A constant rate of the physical layer, in bit/s.
    Constant(u64),
    /// A modulation and coding scheme of 802.11n, 0 to 31.
    Mcs(u8),
    /// Any rate in bit/s, 1 kbit/s to 1 Tbit/s; for media without channel access
    /// ([`super::AccessSettings::None`]) alone, where it is the only one.
    Unmodulated(u64),
    /// Automatic rate fallback.
    Arf,
    /// Adaptive automatic rate fallback.
    Aarf,
    /// Sampling in the style of Minstrel.
    Minstrel,
}

/// BSS membership of a radio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Membership {
    /// Member of an independent BSS: reaches all radios in range directly.
    AdHoc {
        /// Name of the cell; frames of other cells are ignored. A cell without a name sends no
        /// beacons.
        ssid: String,
        /// Time between beacons in nanoseconds (102.4 ms).
        beacon_ns: u64,
    },
    /// An access point.
    AccessPoint {
        /// Name of the network.
        ssid: String,
        /// Time between beacons in nanoseconds (102.4 ms).
        beacon_ns: u64,
    },
    /// A station that looks for an access point.
    Station(Roaming),
    /// The node's own 802.11 stack decides; the radio carries 802.11 frames ([`super::wlan`]).
    Wlan,
}

/// Time between beacons, 100 units of 1024 us.
pub const BEACON_NS: u64 = 102_400_000;

/// Scanning and roaming of a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Roaming {
    /// Name of the network.
    pub ssid: String,
    /// Channels to scan, in order; empty for the radio's own channel only.
    pub channels: Vec<u16>,
    /// Time on each channel while scanning, in nanoseconds.
    pub dwell_ns: u64,
    /// Send a probe request on each channel instead of only waiting for beacons.
    pub active: bool,
    /// Mean power of beacons, in dBm, below which it scans for a better access point.
    pub leave_dbm: f64,
    /// A new access point must be better than the old by this many dB.
    pub better_db: f64,
    /// Time without a beacon after which the access point counts as lost, in nanoseconds.
    pub lost_ns: u64,
}

impl Default for Roaming {
    fn default() -> Self {
        Self {
            ssid: String::new(),
            channels: Vec::new(),
            dwell_ns: 120_000_000,
            active: false,
            leave_dbm: -75.0,
            better_db: 6.0,
            lost_ns: 1_024_000_000,
        }
    }
}

impl Default for RadioSettings {
    fn default() -> Self {
        Self {
            mac: [0; 6],
            phy: "802.11a".to_owned(),
            width_mhz: 20,
            guard_interval_ns: 800,
            streams: None,
            channel: 36,
            power_dbm: 16.0,
            gain_dbi: 0.0,
            noise_figure_db: 7.0,
            carrier_sense_dbm: None,
            receive_dbm: -82.0,
            preamble_db: Some(4.0),
            capture_db: Some(10.0),
            capture_ns: None,
            rate: RateSettings::Constant(6_000_000),
            basic_rates: Vec::new(),
            control_rate: None,
            short_retries: 7,
            long_retries: 4,
            rts_octets: None,
            fragment_octets: None,
            transmit_buffers: 40,
            tail_drop: 50,
            qos: false,
            aggregation: None,
            coverage_class: 0,
            monitor: false,
            as_ns3: false,
            bridged: false,
            slots: None,
            hops: None,
            code: None,
            membership: Membership::AdHoc { ssid: String::new(), beacon_ns: BEACON_NS },
        }
    }
}

/// Checked settings, with names resolved.
pub(in crate::medium) struct Checked {
    /// The layer on its channel, and the one of all its bands.
    pub(in crate::medium) phy: &'static Phy,
    pub(in crate::medium) bands: &'static Phy,
    pub(in crate::medium) channel: Channel,
    /// Channels that a station scans.
    pub(in crate::medium) channels: Vec<Channel>,
    /// Channels of the hopping sequence.
    pub(in crate::medium) hops: Vec<Channel>,
}

impl RadioSettings {
    /// Checks every setting of the radio called `radio`.
    ///
    /// # Errors
    /// Names the first invalid setting.
    pub fn validate(&self, radio: &str) -> Result<(), SettingsError> {
        self.check(radio).map(|_| ())
    }

    /// The physical layer on a channel, with the settings that 802.11n alone has.
    fn layer(
        &self,
        radio: &str,
        named: &'static Phy,
        channel: Channel,
    ) -> Result<&'static Phy, SettingsError> {
        let refused = |setting, value: String, range| {
            Err(SettingsError::Range { radio: radio.to_owned(), setting, value, range })
        };
        let (width, guard) = (self.width_mhz, self.guard_interval_ns);
        let streams = self.streams.map_or(String::new(), |streams| format!("{streams}"));
        if let Some(frames) = self.aggregation {
            let told = |what: &str| format!("{frames} frames{what}");
            if named.name != phy::ht::NAME {
                return refused("aggregation", told(""), "the frames of 802.11n; use phy: 802.11n");
            }
            if !(1..=MOST_FRAMES).contains(&frames) {
                return refused("aggregation", told(""), "1 to 64 frames");
            }
            if !self.qos {
                return refused(
                    "aggregation",
                    told(" without access categories"),
                    "radios with access categories, which have a block ack each; use qos: true",
                );
            }
            if self.fragment_octets.is_some() {
                return refused("aggregation", told(" and fragments"), "whole frames; leave out one of them");
            }
            if self.as_ns3 {
                return refused(
                    "aggregation",
                    told(" as ns-3"),
                    "the standard's windows; leave out one of them",
                );
            }
            if self.slots.is_some() {
                return refused(
                    "aggregation",
                    told(" in slots"),
                    "radios without slots; leave out one of them",
                );
            }
        }
        if named.name != phy::ht::NAME {
            return match &self.rate {
                _ if width != 20 => refused(
                    "width_mhz",
                    format!("{width} MHz"),
                    "20 MHz, the width of 802.11a, b and g; use phy: 802.11n",
                ),
                _ if guard != 800 => refused(
                    "guard_interval_ns",
                    format!("{guard} ns"),
                    "800 ns, that of 802.11a and g; use phy: 802.11n",
                ),
                _ if self.streams.is_some() => {
                    refused("streams", streams, "1, that of 802.11a, b and g; use phy: 802.11n")
                }
                RateSettings::Mcs(mcs) => {
                    refused("rate", format!("MCS {mcs}"), "the rates of 802.11a, b and g; use phy: 802.11n")
                }
                _ => Ok(named.on(channel)),
            };
        }
        match &self.rate {
            _ if self.membership == Membership::Wlan => refused(
                "phy",
                phy::ht::NAME.to_owned(),
                "the layers of a wireless device, which has no HT rates; use 802.11a, 802.11bg or 802.11abg",
            ),
            _ if width != 20 && width != 40 => refused("width_mhz", format!("{width} MHz"), "20 MHz, 40 MHz"),
            _ if guard != 800 && guard != 400 => {
                refused("guard_interval_ns", format!("{guard} ns"), "800 ns, 400 ns")
            }
            RateSettings::Mcs(mcs) if *mcs > 31 => refused("rate", format!("MCS {mcs}"), "MCS 0 to MCS 31"),
            RateSettings::Arf | RateSettings::Aarf => refused(
                "rate",
                format!("{:?}", self.rate).to_lowercase(),
                "the rates and rate control of 802.11n; such as rate: MCS 7 or rate: minstrel",
            ),
            _ if self.streams.is_some_and(|streams| !(1..=4).contains(&streams)) => {
                refused("streams", streams, "1 to 4")
            }
            RateSettings::Mcs(mcs) if self.streams.is_some_and(|streams| mcs / 8 >= streams) => {
                refused("rate", format!("MCS {mcs} with streams: {streams}"), "MCS 0 to 7 for each stream")
            }
            _ if self.code.is_some() => {
                refused("code", "a code".to_owned(), "radios of 802.11a, b and g; leave it out")
            }
            _ => Ok(phy::ht::layer(channel.band(), width == 40, guard == 400)),
        }
    }

    /// Checks every setting and resolves names.
    ///
    /// # Errors
    /// Names the first invalid setting.
    pub(in crate::medium) fn check(&self, radio: &str) -> Result<Checked, SettingsError> {
        let radio_name = || radio.to_owned();
        let named = phy::tables::by_name(&self.phy).ok_or_else(|| SettingsError::Phy {
            radio: radio_name(),
            phy: self.phy.clone(),
            known: phy::tables::ALL.map(|phy| phy.name).join(", "),
        })?;
        let channel = tuned(radio, named, self.channel)?;
        let phy = self.layer(radio, named, channel)?;
        tuned(radio, phy, self.channel)?;
        let bands = if self.membership == Membership::Wlan { named } else { phy };
        let rate = |bits_per_second: u64| {
            let layers = bands.layers.iter().chain([&phy]);
            let index = layers.filter_map(|layer| layer.rate_index(bits_per_second)).next();
            index.map(|_| ()).ok_or_else(|| SettingsError::Rate {
                radio: radio_name(),
                phy: phy.name,
                rate: bits_per_second,
                known: phy
                    .plain_rates()
                    .iter()
                    .map(|r| r.bits_per_second.to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        if let RateSettings::Constant(bits_per_second) = self.rate {
            rate(bits_per_second)?;
        }
        let within = |setting, value: f64, low: f64, high: f64, range| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(SettingsError::Range { radio: radio_name(), setting, value: value.to_string(), range })
            }
        };
        #[allow(clippy::cast_precision_loss)] // only for the range
        if let RateSettings::Unmodulated(bits_per_second) = self.rate {
            within("rate", bits_per_second as f64, 1e3, 1e12, "1 kbit/s to 1 Tbit/s")?;
        }
        self.basic_rates.iter().copied().chain(self.control_rate).try_for_each(rate)?;
        within("power_dbm", self.power_dbm, -30.0, 60.0, "-30 to 60 dBm")?;
        within("gain_dbi", self.gain_dbi, -20.0, 60.0, "-20 to 60 dBi")?;
        within("noise_figure_db", self.noise_figure_db, 0.0, 40.0, "0 to 40 dB")?;
        within("carrier_sense_dbm", self.carrier_sense_dbm.unwrap_or(0.0), -110.0, 30.0, "-110 to 30 dBm")?;
        within("receive_dbm", self.receive_dbm, -110.0, 30.0, "-110 to 30 dBm")?;
        within("preamble_db", self.preamble_db.unwrap_or(0.0), -10.0, 60.0, "-10 to 60 dB")?;
        within("capture_db", self.capture_db.unwrap_or(10.0), 0.0, 60.0, "0 to 60 dB")?;
        #[allow(clippy::cast_precision_loss)] // only for the message
        let capture = self.capture_ns.unwrap_or(0) as f64;
        within("capture_ns", capture, 0.0, 1e9, "0 to 1 s, in nanoseconds")?;
        if let Some((setting, value, range)) = self.slots.as_ref().and_then(SlotSettings::flaw) {
            return Err(SettingsError::Range { radio: radio_name(), setting, value, range });
        }
        if let Some((setting, value, range)) = self.code.and_then(CodeSettings::flaw) {
            return Err(SettingsError::Range { radio: radio_name(), setting, value, range });
        }
        if self.code.is_some() && self.membership == Membership::Wlan {
            return Err(SettingsError::Range {
                radio: radio_name(),
                setting: "code",
                value: "a code".to_owned(),
                range: "radios without a stack of the node's own, which knows no spreading",
            });
        }
        let mut hops = Vec::new();
        if let Some(settings) = &self.hops {
            if let Some((setting, value, range)) = settings.flaw() {
                return Err(SettingsError::Range { radio: radio_name(), setting, value, range });
            }
            for &number in &settings.channels {
                hops.push(tuned(radio, phy, number)?);
            }
            if matches!(self.membership, Membership::Wlan) {
                return Err(SettingsError::Range {
                    radio: radio_name(),
                    setting: "hops",
                    value: "a sequence".to_owned(),
                    range: "radios without a stack of the node's own, which chooses the channel",
                });
            }
        }
        within("short_retries", f64::from(self.short_retries), 1.0, 255.0, "1 to 255")?;
        within("long_retries", f64::from(self.long_retries), 1.0, 255.0, "1 to 255")?;
        within("transmit_buffers", f64::from(self.transmit_buffers), 1.0, 1e6, "1 to 1000000")?;
        within("tail_drop", f64::from(self.tail_drop), 1.0, 1e6, "1 to 1000000")?;
        within("coverage_class", f64::from(self.coverage_class), 0.0, 31.0, "0 to 31")?;
        if let Some(octets) = self.fragment_octets {
            within("fragment_octets", f64::from(octets), 256.0, 2346.0, "256 to 2346")?;
        }
        let mut channels = Vec::new();
        match &self.membership {
            Membership::AdHoc { ssid, beacon_ns } | Membership::AccessPoint { ssid, beacon_ns } => {
                #[allow(clippy::cast_precision_loss)] // only for the message
                let (beacon, length) = (*beacon_ns as f64, ssid.len() as f64);
                within("beacon_ns", beacon, 1e6, 1e10, "1 ms to 10 s, in nanoseconds")?;
                let nameless = ssid.is_empty() && matches!(self.membership, Membership::AdHoc { .. });
                if !nameless {
                    within("ssid length", length, 1.0, 32.0, "1 to 32 octets")?;
                }
            }
            Membership::Station(roaming) => {
                #[allow(clippy::cast_precision_loss)] // only for the message
                let (dwell, lost) = (roaming.dwell_ns as f64, roaming.lost_ns as f64);
                within("dwell_ns", dwell, 1e6, 1e10, "1 ms to 10 s, in nanoseconds")?;
                within("lost_ns", lost, 1e6, 1e12, "1 ms to 1000 s, in nanoseconds")?;
                within("leave_dbm", roaming.leave_dbm, -110.0, 30.0, "-110 to 30 dBm")?;
                within("better_db", roaming.better_db, 0.0, 60.0, "0 to 60 dB")?;
                for &number in &roaming.channels {
                    channels.push(tuned(radio, phy, number)?);
                }
                if channels.is_empty() {
                    channels.push(channel);
                }
            }
            Membership::Wlan => {}
        }
        Ok(Checked {
            phy: self.code.map_or(phy, |code| phy::spread(phy, code.spreading)),
            bands,
            channel,
            channels,
            hops,
        })
    }
}

/// The channel with this number, if the physical layer supports it.
pub(in crate::medium) fn tuned(
    radio: &str,
    phy: &'static Phy,
    number: u16,
) -> Result<Channel, SettingsError> {
    let channel = Channel::numbered(phy.bands, number).ok_or_else(|| SettingsError::Channel {
        radio: radio.to_owned(),
        phy: phy.name,
        channel: number,
    })?;
    if phy.is_wide() && channel.secondary().is_none() {
        return Err(SettingsError::Range {
            radio: radio.to_owned(),
            setting: "width_mhz",
            value: format!("40 MHz on channel {number}"),
            range: "channels with another half; use another channel, or 20 MHz",
        });
    }
    Ok(channel)
}
