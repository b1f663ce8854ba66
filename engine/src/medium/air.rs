//! Frames on the air: their receivers, their start and end.

use super::airtime::Doing;
use super::cluster::ClusterId;
use super::error::Decoder;
use super::hearing::Arrived;
use super::phy::{Channel, Rate};
use super::radio::{Kind, Lock, Radio, RadioId, Stage, To};
use super::reach::Heard;
use super::{Event, Medium, Outside};
use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::time::{Instant, Span};

/// A frame on the air.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    pub(super) from: u32,
    pub(super) to: To,
    pub(super) kind: Kind,
    pub(super) lane: u8,
    pub(super) rate: u8,
    pub(super) decoder: u8,
    /// Octets on the air, frame check sequence included.
    pub(super) octets: u32,
    /// Octets of the body, and their offset in the whole body.
    pub(super) body: u32,
    pub(super) offset: u32,
    pub(super) channel: Channel,
    /// How long the channel is reserved after its end.
    pub(super) duration: Span,
    pub(super) sequence: u16,
    pub(super) fragment: u8,
    pub(super) more: bool,
    pub(super) retry: bool,
    /// Its receivers do not acknowledge it, although it has a unicast address.
    pub(super) no_ack: bool,
    /// Receiver and transmitter address, if a stack chose them.
    pub(super) addresses: Option<[[u8; 6]; 2]>,
    pub(super) frame: Option<Frame>,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) heard: Vec<Heard>,
    /// Receivers that received it, or lost it to interference.
    pub(super) taken: u32,
    pub(super) interfered: u32,
    /// The cluster of its sender at its start.
    pub(super) cluster: Option<ClusterId>,
}

/// The properties of a frame on the air that a receiver needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    pub(super) number: u32,
    pub(super) from: u32,
    pub(super) kind: Kind,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) duration: Span,
    pub(super) rate: u8,
    decoder: u8,
    /// From its start: the end of its preamble, the start of its header, the end of its signal.
    preamble: Span,
    header: Span,
    quiet: Span,
    bits_per_nano: f64,
    header_bits_per_nano: f64,
    spread: bool,
}

impl Signal {
    fn new(number: u32, sending: &Sending, form: &Rate) -> Self {
        let preamble = Span::from_nanos(u64::from(form.preamble_ns));
        let header = Span::from_nanos(u64::from(form.header_ns));
        let length = sending.end.since(sending.start);
        let quiet = length.saturating_sub(Span::from_nanos(u64::from(form.extension_ns)));
        let payload = quiet.saturating_sub(preamble).nanos();
        #[allow(clippy::cast_precision_loss)] // short times
        let bits_per_nano = f64::from(sending.octets * 8) / payload.max(1) as f64;
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
        }
    }

    /// When a symbol sent at `instant` arrives.
    pub(super) fn arrival(ear: &Heard, instant: Instant) -> Instant {
        instant + Span::from_nanos(u64::from(ear.delay_ns))
    }

    /// The reception of this frame, whose first symbol arrives at `at`.
    pub(super) fn lock(&self, power: f64, at: Instant) -> Lock {
        Lock {
            sending: self.number,
            power,
            at,
            header: (at + self.header, at + self.preamble),
            end: at + self.quiet,
            settled: at,
            ln_survival: 0.0,
            disturbed: false,
            rate: self.rate,
            decoder: self.decoder,
            bits_per_nano: self.bits_per_nano,
            header_bits_per_nano: self.header_bits_per_nano,
        }
    }

    /// Up to this ratio the frame is certainly lost at a receiver that has it for so long.
    pub(super) fn lost_ratio(&self, length: Span, decoders: &[Decoder]) -> f64 {
        #[allow(clippy::cast_precision_loss)] // frames are short
        let nanos = length.min(self.quiet).saturating_sub(self.preamble).nanos() as f64;
        decoders[usize::from(self.decoder)].lost(self.rate, nanos * self.bits_per_nano)
    }

    /// True if a receiver without interference certainly receives it at this ratio.
    pub(super) fn is_certain(&self, ratio: f64, decoders: &[Decoder]) -> bool {
        let decoder = &decoders[usize::from(self.decoder)];
        ratio >= decoder.certain(self.rate) && ratio >= decoder.header_certain(self.rate)
    }
}

impl Radio {
    /// Handles the start of a frame at this radio.
    pub(super) fn hear(&mut self, signal: &Signal, ear: &Heard, decoders: &[Decoder]) -> Arrived {
        let at = Signal::arrival(ear, signal.start);
        let arrived = self.arrive(at, ear.power, self.lock_offered(signal, ear), decoders);
        if let Arrived::Left(_) | Arrived::Both(_) = arrived {
            self.counts.broken += 1;
            self.account.turn(at, Doing::Receiving, true);
        }
        arrived
    }

    /// The lock to take if the receiver follows this frame; `None` if it cannot decode it.
    pub(super) fn lock_offered(&self, signal: &Signal, ear: &Heard) -> Option<Lock> {
        let kindred = ear.tuned && self.phy.decodes(signal.spread);
        kindred.then(|| signal.lock(ear.power, Signal::arrival(ear, signal.start)))
    }

    /// Updates carrier sense; true if its state has changed.
    pub(super) fn sense_anew(&mut self, at: Instant) -> bool {
        let busy = self.senses();
        let changed = busy != self.busy;
        if changed {
            self.busy = busy;
            if !busy {
                self.idle_since = at;
            }
            self.recount(at);
        }
        self.book(at, false);
        changed
    }
}

impl Medium {
    /// Transmits a frame from radio `from` at `now`; all radios in range begin to receive it.
    pub(super) fn transmit(&mut self, now: Instant, mut sending: Sending) {
        let from = sending.from as usize;
        let radio = &mut self.radios[from];
        radio.overheard = 0;
        sending.decoder = radio.decoder;
        let form = &radio.phy.rates[usize::from(sending.rate)];
        sending.start = now;
        sending.channel = self.reach.places[from].channel;
        sending.end = now + form.airtime(sending.octets);
        if let Some(policer) = &mut radio.policer {
            policer.use_channel(sending.channel, sending.end.since(now));
        }
        if let Some(share) = radio.share {
            self.charge(share, now, sending.end.since(now));
        }
        let number = self.free.pop().unwrap_or_else(|| u32::try_from(self.air.len()).unwrap_or(u32::MAX));
        let signal = Signal::new(number, &sending, form);
        let mut heard = self.spare.pop().unwrap_or_default();
        sending.cluster = self.start_in_cluster(now, &signal, sending.to, &mut heard);

        // A frame that the sender was receiving is lost.
        let radio = &mut self.radios[from];
        radio.transmitting = true;
        if radio.lock.take().is_some() {
            radio.counts.broken += 1;
        }
        radio.lose_others();
        radio.book(now, true);
        self.listen(from, now);
        let end = sending.end;
        self.channels.begin(sending.channel, now, end.since(now));
        self.individual_receptions += heard.len() as u64;
        for ear in &mut heard {
            let listener = &mut self.radios[ear.radio as usize];
            ear.power *= self.fading.gain(&mut listener.random);
            match listener.hear_on(&signal, ear, sending.channel, &self.decoders) {
                Arrived::Left(old) => self.count_interfered(old),
                Arrived::Both(old) => {
                    self.count_interfered(old);
                    sending.interfered += 1;
                }
                Arrived::Missed => sending.interfered += 1,
                Arrived::Followed | Arrived::Unheard => {}
            }
            self.listen(ear.radio as usize, Signal::arrival(ear, now));
        }
        sending.heard = heard;
        self.put(number, sending);
        self.calendar.push(end, Class::Release, number, Event::End(number));
    }

    fn put(&mut self, number: u32, sending: Sending) {
        let index = number as usize;
        if index == self.air.len() {
            self.air.push(Some(sending));
        } else {
            self.air[index] = Some(sending);
        }
    }

    /// Counts one more receiver that lost this frame to interference.
    fn count_interfered(&mut self, number: u32) {
        if let Some(Some(sending)) = self.air.get_mut(number as usize) {
            sending.interfered += 1;
        }
    }

    /// Ends reception of all frames on the air: the radio was retuned.
    pub(super) fn end_receptions(&mut self, index: usize) {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let radio = &mut self.radios[index];
        for (sending, on_air) in (0u32..).zip(&mut self.air) {
            let Some(on_air) = on_air else { continue };
            if let Some(at) = on_air.heard.iter().position(|ear| ear.radio == number) {
                let ear = on_air.heard.remove(at);
                radio.depart_on(self.now, sending, ear.power, on_air.channel, &self.decoders);
            }
        }
        radio.book(self.now, true);
        if let Stage::Awaiting(lane, what, _, true) = radio.stage {
            // The frame whose end it awaited will not end on this channel.
            radio.stage = Stage::Awaiting(lane, what, self.now, false);
        }
        self.listen(index, self.now);
        self.timers.set(index, self.radios[index].next_at());
    }

    /// Updates the carrier sense of a radio.
    pub(super) fn listen(&mut self, index: usize, at: Instant) {
        let radio = &mut self.radios[index];
        debug_assert!(!radio.asleep, "{} has to be woken first", radio.name);
        if radio.sense_anew(at) {
            self.timers.set(index, radio.next_at());
        }
    }

    /// Ends a transmission; its last symbol propagates to all receivers.
    pub(super) fn end(&mut self, now: Instant, number: u32, outside: &mut impl Outside) {
        let Some(mut sending) = self.air[number as usize].take() else { return };
        let heard = core::mem::take(&mut sending.heard);
        let from = sending.from as usize;
        self.channels.end(sending.channel, now);
        self.radios[from].transmitting = false;
        self.radios[from].book(now, false);
        self.transmission_ended(from, &sending, outside);
        self.end_in_cluster(number, sending.cluster);
        for ear in &heard {
            let index = ear.radio as usize;
            let at = Signal::arrival(ear, now);
            let radio = &mut self.radios[index];
            radio.overheard =
                if sending.to == To::Radio(RadioId(ear.radio)) { 0 } else { radio.overheard + 1 };
            let (lock, tuned) = radio.depart_on(at, number, ear.power, sending.channel, &self.decoders);
            if let Some(lock) = lock {
                let whole = radio.survives(&lock) && !self.fails(sending.from, ear.radio);
                let radio = &mut self.radios[index];
                if tuned {
                    radio.account.turn(at, Doing::Receiving, !whole);
                }
                if self.sniffing && tuned {
                    self.sniff(&sending, Some((ear, whole)), outside);
                }
                if whole && tuned {
                    self.received(at, &mut sending, ear, outside);
                } else if whole {
                    self.pass_on(at, &mut sending, ear, outside);
                } else {
                    if lock.disturbed {
                        sending.interfered += 1;
                    }
                    if tuned {
                        self.broken(index, at, outside);
                    }
                }
            }
            self.listen(index, at);
            self.timers.set(index, self.radios[index].next_at());
        }
        let reached = heard.iter().any(|ear| {
            let meant = match sending.to {
                To::Radio(radio) => radio.number() == ear.radio,
                To::Group => self.belongs(sending.from, ear.radio),
                To::Nobody => false,
            };
            ear.tuned && meant
        });
        if self.sniffing {
            self.sniff(&sending, None, outside);
        }
        self.sleep_after_frame(sending.cluster, &heard);
        self.spare.push(heard);
        self.free.push(number);
        self.sent(now, &sending, reached, outside);
        self.timers.set(from, self.radios[from].next_at());
    }

    /// Draws from the frame error rate of a pair, if one is set.
    fn fails(&mut self, from: u32, to: u32) -> bool {
        let Some(&rate) = self.frame_errors.get(&(from, to)) else { return false };
        self.radios[to as usize].random.chance(rate)
    }

    /// Drop reason of a broadcast that no radio received, or of a frame that was given up.
    pub(super) fn reason(sending: &Sending, reached: bool) -> Why {
        if sending.interfered > 0 {
            Why::Collision
        } else if reached {
            Why::Noise
        } else {
            Why::OutOfRange
        }
    }
}
