//! Reception of arriving signals.
//!
//! A receiver follows one frame at a time, the lock, and treats all other signals as interference.
//! While the interference is constant, the probability of success is a power of one number, so it
//! is updated only when a signal begins or ends.

use crate::math;
use crate::medium::error::Decoder;
use crate::medium::phy::Phy;
use crate::medium::radio::carrier::Carrier;
use crate::medium::signal::{Heard, Signal};
use crate::random::Stream;
use crate::time::{Instant, Span};

/// A frame whose logarithm of the success probability is below this is lost.
const HOPELESS: f64 = -60.0;

/// What a receiver can do; powers in mW.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Receiver {
    /// Its own noise.
    pub(in crate::medium) noise: f64,
    /// Energy at and above which the channel counts as busy.
    pub(in crate::medium) sense: f64,
    /// Power of the weakest frame that it can detect.
    pub(in crate::medium) sensitivity: f64,
    /// Least ratio of a preamble to everything else.
    pub(in crate::medium) preamble_ratio: f64,
    /// Least ratio of a later frame to everything else that captures the receiver.
    pub(in crate::medium) capture_ratio: f64,
    /// Time after the first symbol of a frame within which the receiver can capture another one.
    pub(in crate::medium) capture_window: Span,
}

/// Reception of one channel; powers in mW.
#[derive(Debug, Default)]
pub(in crate::medium) struct Reception {
    /// Sum of all signals, and their number.
    energy: f64,
    signals: u32,
    /// The frame that the receiver follows.
    lock: Option<Lock>,
    /// The interference that an A-MPDU has met.
    segments: Vec<Segment>,
    carrier: Carrier,
    /// Noise from other sources.
    ambient: f64,
}

/// A time of constant ratio of signal to interference and noise, of an A-MPDU that is followed.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: Instant,
    until: Instant,
    ratio: f64,
}

/// Reception of the frame that the receiver follows.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Lock {
    /// Number of the transmission.
    pub(in crate::medium) sending: u32,
    pub(in crate::medium) power: f64,
    /// When its first symbol arrived.
    pub(in crate::medium) at: Instant,
    /// When its header begins and ends.
    pub(in crate::medium) header: (Instant, Instant),
    pub(in crate::medium) end: Instant,
    /// Time up to which the success probability is computed.
    pub(in crate::medium) settled: Instant,
    pub(in crate::medium) ln_survival: f64,
    /// True if another signal was on the air during the reception.
    pub(in crate::medium) disturbed: bool,
    pub(in crate::medium) rate: u8,
    pub(in crate::medium) decoder: u8,
    pub(in crate::medium) bits_per_nano: f64,
    pub(in crate::medium) header_bits_per_nano: f64,
    /// It is an A-MPDU: the success probability is that of its header, and the MPDUs have theirs.
    pub(in crate::medium) aggregate: bool,
}

/// Outcome of an arriving frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Arrived {
    /// The receiver follows the frame.
    Followed,
    /// The receiver follows this frame; the frame it followed before is lost.
    Left(u32),
    /// Two simultaneous preambles: the receiver follows neither.
    Both(u32),
    /// Missed because of another signal.
    Missed,
    /// Too weak, or of another physical layer.
    Unheard,
}

impl Lock {
    /// Updates the success probability up to `until` at this ratio of signal to interference and
    /// noise.
    pub(in crate::medium) fn settle(&mut self, until: Instant, ratio: f64, decoders: &[Decoder]) {
        let from = self.settled;
        if until <= from || self.ln_survival <= HOPELESS {
            return;
        }
        self.settled = until;
        let decoder = &decoders[usize::from(self.decoder)];
        if ratio >= decoder.certain(self.rate) && from >= self.header.1 {
            return;
        }
        #[allow(clippy::cast_precision_loss)] // frames are short
        let overlap = |low: Instant, high: Instant| until.min(high).since(from.max(low)).nanos() as f64;
        let header = overlap(self.header.0, self.header.1) * self.header_bits_per_nano;
        let payload = overlap(self.header.1, self.end) * self.bits_per_nano;
        self.ln_survival += decoder.payload(self.rate, ratio, payload);
        if self.ln_survival > HOPELESS {
            self.ln_survival += decoder.header(self.rate, ratio, header);
        }
    }

    /// Records the ratio up to `until` that the MPDUs of an A-MPDU have met, if it can harm them.
    ///
    /// Out of line: most frames are none, and what settles them is called more often than anything else.
    #[cold]
    fn record(&self, segments: &mut Vec<Segment>, until: Instant, ratio: f64, decoders: &[Decoder]) {
        if until <= self.settled {
            return;
        }
        if self.settled == self.at {
            segments.clear();
        }
        if ratio < decoders[usize::from(self.decoder)].certain(self.rate) {
            segments.push(Segment { from: self.settled, until, ratio });
        }
    }

    /// True if the frame was received without error; draws only if the outcome is uncertain.
    pub(in crate::medium) fn survives(&self, random: &mut Stream) -> bool {
        self.ln_survival >= -1e-9
            || (self.ln_survival > HOPELESS && random.chance(math::exp(self.ln_survival)))
    }
}

impl Signal {
    /// The reception of this frame, whose first symbol arrives at `at`.
    pub(in crate::medium) fn lock(&self, power: f64, at: Instant) -> Lock {
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
            aggregate: self.aggregate,
        }
    }

    /// The lock of a receiver of this layer that follows the frame; `None` if it cannot decode it.
    ///
    /// A receiver that does not have its rate of 802.11n follows it to its end by L-SIG, and has it
    /// with errors.
    pub(in crate::medium) fn offered_to(&self, phy: &Phy, ear: &Heard) -> Option<Lock> {
        let kindred = ear.tuned && phy.decodes(self.spread);
        let legible = self.ht.is_none_or(|ht| phy.understands(ht));
        kindred.then(|| {
            let lock = self.lock(ear.power, Self::arrival(ear, self.start));
            if legible { lock } else { Lock { ln_survival: f64::NEG_INFINITY, ..lock } }
        })
    }
}

impl Reception {
    /// Updates the lock up to `until` under the present interference.
    pub(super) fn settle(&mut self, until: Instant, receiver: &Receiver, decoders: &[Decoder]) {
        let Some(lock) = &mut self.lock else { return };
        let ratio = lock.power / ((self.energy - lock.power).max(0.0) + receiver.noise + self.ambient);
        if lock.aggregate {
            lock.record(&mut self.segments, until, ratio, decoders);
        }
        lock.settle(until, ratio, decoders);
    }

    /// Logarithm of the probability that so many bits of the A-MPDU followed last, spread evenly between
    /// two instants, have no error.
    pub(in crate::medium) fn ln_between(
        &self,
        from: Instant,
        until: Instant,
        bits: f64,
        rate: u8,
        decoder: &Decoder,
    ) -> f64 {
        #[allow(clippy::cast_precision_loss)] // short times
        let nanos = |length: Span| length.nanos() as f64;
        let whole = nanos(until.since(from)).max(1.0);
        let harm = |segment: &Segment| {
            let common = segment.until.min(until).since(segment.from.max(from));
            decoder.payload(rate, segment.ratio, bits * nanos(common) / whole)
        };
        self.segments.iter().map(harm).sum()
    }

    /// Handles the start of a signal. `offered` is the lock to take if the receiver follows it;
    /// `None` for signals that it cannot decode, and while it transmits. Preambles that arrive within
    /// `detect` of each other compete.
    pub(in crate::medium) fn arrive(
        &mut self,
        at: Instant,
        power: f64,
        offered: Option<Lock>,
        detect: Span,
        receiver: &Receiver,
        decoders: &[Decoder],
    ) -> Arrived {
        self.settle(at, receiver, decoders);
        let rest = receiver.noise + self.ambient + self.energy;
        self.energy += power;
        self.signals += 1;
        let good = offered.filter(|_| power >= receiver.sensitivity);
        if let Some(lock) = &mut self.lock {
            let Some(new) = good else {
                lock.disturbed = true;
                return Arrived::Unheard;
            };
            let others = rest - lock.power;
            let together = lock.at.since(at).max(at.since(lock.at)) < detect;
            let old = lock.sending;
            lock.disturbed = true;
            if !together {
                if power >= receiver.capture_ratio * rest && at.since(lock.at) < receiver.capture_window {
                    self.carrier.record(old, true);
                    self.carrier.begin(at, power, rest, receiver.preamble_ratio);
                    self.lock = Some(Lock { disturbed: true, ..new });
                    return Arrived::Left(old);
                }
                return Arrived::Missed;
            }
            self.carrier.record(old, true);
            let detected = self.carrier.join(power, rest, receiver.preamble_ratio);
            self.carrier.record(new.sending, detected);
            if lock.power >= power && lock.power >= receiver.preamble_ratio * (others + power) {
                return Arrived::Missed;
            }
            if power > lock.power && power >= receiver.preamble_ratio * (others + lock.power) {
                self.lock = Some(Lock { disturbed: true, ..new });
                return Arrived::Left(old);
            }
            self.lock = None;
            return Arrived::Both(old);
        }
        let Some(new) = good else { return Arrived::Unheard };
        let detected = if self.carrier.is_joined(at, detect) {
            self.carrier.join(power, rest, receiver.preamble_ratio)
        } else {
            self.carrier.begin(at, power, rest, receiver.preamble_ratio)
        };
        if power >= receiver.preamble_ratio * rest {
            self.lock = Some(Lock { disturbed: self.signals > 1, ..new });
            Arrived::Followed
        } else {
            self.carrier.record(new.sending, detected);
            Arrived::Missed
        }
    }

    /// Handles the end of a signal; returns the updated lock if it was on this signal.
    #[inline]
    pub(in crate::medium) fn depart(
        &mut self,
        at: Instant,
        sending: u32,
        power: f64,
        receiver: &Receiver,
        decoders: &[Decoder],
    ) -> Option<Lock> {
        self.settle(at, receiver, decoders);
        self.signals -= 1;
        // Sums of many powers accumulate rounding errors; silence is exactly 0.
        self.energy = if self.signals == 0 { 0.0 } else { (self.energy - power).max(0.0) };
        self.carrier.end(sending);
        self.lock.take_if(|lock| lock.sending == sending)
    }

    /// Ends the reception of the frame that the receiver follows, and carrier sense; true if it
    /// followed one.
    pub(in crate::medium) fn lose(&mut self) -> bool {
        self.carrier.lose();
        self.lock.take().is_some()
    }

    /// Sets the noise from other sources from `now` on.
    pub(in crate::medium) fn set_ambient(
        &mut self,
        ambient: f64,
        now: Instant,
        receiver: &Receiver,
        decoders: &[Decoder],
    ) {
        self.settle(now, receiver, decoders);
        self.ambient = ambient;
    }

    /// Noise from other sources.
    pub(in crate::medium) fn ambient(&self) -> f64 {
        self.ambient
    }

    /// True if nothing can be received: noise from other sources is infinite.
    pub(in crate::medium) fn is_deaf(&self) -> bool {
        self.ambient.is_infinite()
    }

    /// True if no signal is on the air here.
    pub(in crate::medium) fn is_silent(&self) -> bool {
        self.signals == 0
    }

    /// The frame that the receiver follows.
    pub(in crate::medium) fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// True if the channel is busy now, by carrier sense or energy detection.
    pub(in crate::medium) fn is_busy(&self, receiver: &Receiver) -> bool {
        self.lock.is_some() || self.carrier.is_sensed() || self.energy + self.ambient >= receiver.sense
    }
}
