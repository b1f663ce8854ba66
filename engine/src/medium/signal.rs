//! Frames on the air, and what their receivers need to know of them.

use crate::frame::Frame;
use crate::medium::error::Decoder;
use crate::medium::mac::ampdu::Part;
use crate::medium::phy::{Channel, Ht, Rate};
use crate::medium::types::{Kind, To};
use crate::time::{Instant, Span};

/// A frame on the air.
#[derive(Clone, Debug)]
pub(in crate::medium) struct Sending {
    pub(in crate::medium) from: u32,
    pub(in crate::medium) to: To,
    pub(in crate::medium) kind: Kind,
    pub(in crate::medium) lane: u8,
    pub(in crate::medium) rate: u8,
    pub(in crate::medium) decoder: u8,
    /// Octets on the air, frame check sequence included.
    pub(in crate::medium) octets: u32,
    /// Octets of the body, and their offset in the whole body.
    pub(in crate::medium) body: u32,
    pub(in crate::medium) offset: u32,
    pub(in crate::medium) channel: Channel,
    /// How long the channel is reserved after its end.
    pub(in crate::medium) duration: Span,
    pub(in crate::medium) sequence: u16,
    pub(in crate::medium) fragment: u8,
    pub(in crate::medium) more: bool,
    pub(in crate::medium) retry: bool,
    /// Its receivers do not acknowledge it, although it has a unicast address.
    pub(in crate::medium) no_ack: bool,
    /// Receiver and transmitter address, if a stack chose them.
    pub(in crate::medium) addresses: Option<[[u8; 6]; 2]>,
    pub(in crate::medium) frame: Option<Frame>,
    /// The MPDUs of an A-MPDU; empty for any other frame.
    pub(in crate::medium) parts: Vec<Part>,
    /// Of one MPDU of an A-MPDU: true for the last.
    pub(in crate::medium) subframe: Option<bool>,
    /// Of a frame numbered for a block ack: the oldest number to its receiver that is not acknowledged.
    pub(in crate::medium) window: u16,
    /// Of a block ack: the MPDUs that arrived, from the oldest on.
    pub(in crate::medium) bits: u64,
    pub(in crate::medium) start: Instant,
    pub(in crate::medium) end: Instant,
    pub(in crate::medium) heard: Vec<Heard>,
    /// Receivers that received it, or lost it to interference.
    pub(in crate::medium) taken: u32,
    pub(in crate::medium) interfered: u32,
    /// The cluster of its sender at its start.
    pub(in crate::medium) cluster: Option<ClusterId>,
}

/// The properties of a frame on the air that a receiver needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Signal {
    pub(in crate::medium) number: u32,
    pub(in crate::medium) from: u32,
    pub(in crate::medium) kind: Kind,
    pub(in crate::medium) start: Instant,
    pub(in crate::medium) end: Instant,
    pub(in crate::medium) duration: Span,
    pub(in crate::medium) rate: u8,
    pub(super) decoder: u8,
    /// From its start: the end of its preamble, the start of its header, the end of its signal.
    pub(super) preamble: Span,
    pub(super) header: Span,
    pub(super) quiet: Span,
    pub(super) bits_per_nano: f64,
    pub(super) header_bits_per_nano: f64,
    pub(super) spread: bool,
    /// An A-MPDU, whose errors are those of its MPDUs: it has no payload bits itself.
    pub(super) aggregate: bool,
    /// Present at a rate of 802.11n.
    pub(super) ht: Option<Ht>,
}

impl Signal {
    pub(super) fn new(number: u32, sending: &Sending, form: &Rate) -> Self {
        let preamble = Span::from_nanos(u64::from(form.preamble_ns));
        let header = Span::from_nanos(u64::from(form.header_ns));
        let length = sending.end.since(sending.start);
        let quiet = length.saturating_sub(Span::from_nanos(u64::from(form.extension_ns)));
        let payload = quiet.saturating_sub(preamble).nanos();
        let aggregate = !sending.parts.is_empty();
        let bits = if aggregate { 0 } else { sending.octets * 8 };
        #[allow(clippy::cast_precision_loss)] // short times
        let bits_per_nano = f64::from(bits) / payload.max(1) as f64;
        Self {
            number,
            from: sending.from,
            kind: sending.kind,
            start: sending.start,
            end: sending.end,
            duration: sending.duration,
            rate: sending.rate,
            decoder: sending.decoder,
            preamble,
            header: preamble.saturating_sub(header),
            quiet,
            bits_per_nano,
            header_bits_per_nano: f64::from(form.header_bits) / f64::from(form.header_ns.max(1)),
            spread: form.modulation.is_spread(),
            aggregate,
            ht: form.ht,
        }
    }

    /// When a symbol sent at `instant` arrives.
    pub(in crate::medium) fn arrival(ear: &Heard, instant: Instant) -> Instant {
        instant + Span::from_nanos(u64::from(ear.delay_ns))
    }

    /// Up to this ratio the frame is certainly lost at a receiver that has it for so long.
    pub(in crate::medium) fn lost_ratio(&self, length: Span, decoders: &[Decoder]) -> f64 {
        #[allow(clippy::cast_precision_loss)] // frames are short
        let nanos = length.min(self.quiet).saturating_sub(self.preamble).nanos() as f64;
        decoders[usize::from(self.decoder)].lost(self.rate, nanos * self.bits_per_nano)
    }

    /// True if a receiver without interference certainly receives it at this ratio.
    pub(in crate::medium) fn is_certain(&self, ratio: f64, decoders: &[Decoder]) -> bool {
        let decoder = &decoders[usize::from(self.decoder)];
        ratio >= decoder.certain(self.rate) && ratio >= decoder.header_certain(self.rate)
    }
}

/// A receiver of one transmission.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Heard {
    /// Number of the radio.
    pub(in crate::medium) radio: u32,
    /// Propagation delay in nanoseconds.
    pub(in crate::medium) delay_ns: u32,
    /// Power at the receiver in mW, before fading.
    pub(in crate::medium) power: f64,
    /// True if it is tuned to the sender's channel, so that it can decode the frame.
    pub(in crate::medium) tuned: bool,
}

/// Identifier of a cluster: the generation of clusters, and its number in that generation.
pub(in crate::medium) type ClusterId = (u64, usize);

/// An event on the air of a cluster.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) enum AirEvent {
    Start(Signal),
    End(Signal),
}
