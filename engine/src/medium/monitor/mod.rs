//! Monitoring: reports frames on the air to sniffers, and measures the use of each channel.

pub mod capture;

use std::collections::BTreeMap;

use crate::math;
use crate::medium::Medium;
use crate::medium::bss::cell::Cell;
use crate::medium::mac::PRIORITIES;
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::signal::{Heard, Sending};
use crate::medium::types::{Kind, RadioId, To};
use crate::time::{Instant, Span};
use capture::{Direction, Sniffed};

/// Time for which a channel was in use, anywhere on the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelAirtime {
    /// At least one radio was transmitting.
    pub busy: Span,
    /// At least two radios were transmitting: a collision at any receiver in range of both.
    pub overlapped: Span,
    /// Sum of the lengths of all frames; more than `busy` if frames overlapped.
    pub sent: Span,
    /// Frames sent.
    pub frames: u64,
}

/// Usage counters of all channels, and whether frames are reported.
#[derive(Default)]
pub(in crate::medium) struct Monitor {
    channels: BTreeMap<Channel, Use>,
    sniffing: bool,
}

#[derive(Default)]
struct Use {
    total: ChannelAirtime,
    sending: u32,
    since: Instant,
}

impl Use {
    fn turn(&mut self, at: Instant) {
        let span = at.since(self.since);
        if self.sending > 0 {
            self.total.busy += span;
        }
        if self.sending > 1 {
            self.total.overlapped += span;
        }
        self.since = at;
    }
}

impl Monitor {
    /// True if frames are reported.
    pub(in crate::medium) fn is_sniffing(&self) -> bool {
        self.sniffing
    }

    /// Records the start of a frame.
    pub(in crate::medium) fn begin(&mut self, channel: Channel, at: Instant, length: Span) {
        let used = self.channels.entry(channel).or_default();
        used.turn(at);
        used.sending += 1;
        used.total.frames += 1;
        used.total.sent += length;
    }

    /// Records the end of a frame.
    pub(in crate::medium) fn end(&mut self, channel: Channel, at: Instant) {
        let used = self.channels.entry(channel).or_default();
        used.turn(at);
        used.sending -= 1;
    }
}

impl Medium {
    /// Usage of a channel up to the present instant of the medium; frames on the air count up to
    /// there, but with their whole length in `sent`.
    #[must_use]
    pub fn channel_airtime(&self, channel: Channel) -> ChannelAirtime {
        let Some(used) = self.monitor.channels.get(&channel) else { return ChannelAirtime::default() };
        let mut copy = Use { ..*used };
        copy.turn(self.core.now);
        copy.total
    }

    /// Channels that have been used, ascending.
    pub fn channels(&self) -> impl Iterator<Item = Channel> {
        self.monitor.channels.keys().copied()
    }

    /// Turns on or off calls of [`Outside::sniffed`] for every frame.
    pub fn set_sniffing(&mut self, sniffing: bool) {
        self.dissolve_clusters();
        self.monitor.sniffing = sniffing;
    }

    /// Reports a frame: as received at `ear`, or as seen on the channel.
    fn sniff(&self, sending: &Sending, ear: Option<(&Heard, bool)>, outside: &mut impl Outside) {
        let seen = self.view(sending, ear, outside);
        outside.sniffed(&seen);
    }

    /// The same for a frame, or for each MPDU of an A-MPDU as it was received itself.
    pub(in crate::medium) fn sniff_all(
        &self,
        sending: &Sending,
        ear: Option<(&Heard, bool)>,
        outside: &mut impl Outside,
    ) {
        if sending.parts.is_empty() {
            return self.sniff(sending, ear, outside);
        }
        for part in &sending.parts {
            self.sniff(&sending.alone(part), ear.map(|(ear, _)| (ear, part.whole)), outside);
        }
    }

    /// A frame as received at `ear`, or as seen on the channel.
    pub(in crate::medium) fn view(
        &self,
        sending: &Sending,
        ear: Option<(&Heard, bool)>,
        outside: &impl Outside,
    ) -> Sniffed<'_> {
        let sender = &self.core.radios[sending.from as usize];
        let rate = &sender.layer.phy.rates[usize::from(sending.rate)];
        let own = sender.settings.mac;
        let receiver = match (sending.to, sending.frame) {
            _ if sending.addresses.is_some() => sending.addresses.map_or([0; 6], |[receiver, _]| receiver),
            (To::Radio(radio), frame) if self.core.radios[radio.index()].wideband.is_some() => {
                let octets = frame.as_ref().map(|frame| outside.octets(frame));
                self.address_at_stack(sending, octets).unwrap_or([0; 6])
            }
            (To::Radio(radio), _) => self.core.radios[radio.index()].settings.mac,
            (To::Nobody, Some(frame)) => {
                outside.octets(&frame).get(..6).and_then(|a| a.try_into().ok()).unwrap_or([0; 6])
            }
            (To::Group, Some(frame)) => {
                outside.octets(&frame).get(..6).and_then(|a| a.try_into().ok()).unwrap_or([0xff; 6])
            }
            _ => [0xff; 6],
        };
        let joined = |radio: RadioId| self.core.radios[radio.index()].settings.mac;
        let (direction, network, beacon) = match &sender.cell {
            Cell::AdHoc(cell) => (Direction::Direct, capture::cell_address(&cell.ssid), cell.beacon),
            Cell::AccessPoint { beacon, .. } => (Direction::FromAccessPoint, own, *beacon),
            Cell::Station(station) => {
                let stack = self.is_stack(station.peer()) && sending.kind != Kind::ProbeRequest;
                let home = if stack { station.network() } else { station.home().map_or([0xff; 6], joined) };
                (Direction::ToAccessPoint, home, Span::ZERO)
            }
            Cell::Wlan => (Direction::Direct, own, Span::ZERO),
        };
        let dbm = |milliwatts: f64| 10.0 * math::log10(milliwatts);
        Sniffed {
            radio: ear.map(|(ear, _)| RadioId(ear.radio)),
            sender: RadioId(sending.from),
            at: ear
                .map_or(sending.start, |(ear, _)| sending.start + Span::from_nanos(u64::from(ear.delay_ns))),
            channel: sending.channel,
            bits_per_second: rate.bits_per_second,
            ofdm: !rate.modulation.is_spread(),
            ht: rate.ht,
            signal_dbm: ear.map(|(ear, _)| dbm(ear.power)),
            noise_dbm: ear.map(|(ear, _)| {
                let radio = &self.core.radios[ear.radio as usize];
                dbm(radio.receiver.noise + radio.reception.ambient())
            }),
            broken: ear.map_or(sending.interfered > 0, |(_, whole)| !whole),
            kind: sending.kind,
            qos: sender.settings.qos && sending.kind == Kind::Data,
            body: (sending.body, sending.offset),
            duration: sending.duration,
            sequence: (sending.sequence, sending.fragment),
            more: sending.more,
            retry: sending.retry,
            direction,
            addresses: [receiver, sending.addresses.map_or(own, |[_, transmitter]| transmitter), network],
            ssid: self.network_name(sending.from as usize, sending.kind),
            beacon,
            rates: (sender.layer.phy, sender.layer.basic),
            frame: sending.frame,
            subframe: sending.subframe.map(|last| {
                // One number for the MPDUs of one A-MPDU, and another for the next one.
                #[allow(clippy::cast_possible_truncation)] // its low bits
                let number = (sending.start.nanos() / 1_000) as u32;
                (number, last)
            }),
            block: (PRIORITIES[usize::from(sending.lane & 3)], sending.window, sending.bits),
        }
    }
}
