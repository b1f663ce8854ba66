//! Reception of arriving signals.
//!
//! A receiver follows one frame at a time, the lock, and treats all other signals as interference.
//! While the interference is constant, the probability of success is a power of one number, so it
//! is updated only when a signal begins or ends.

use super::airtime::Doing;
use super::error::Decoder;
use super::radio::{Lock, Radio};
use crate::math;
use crate::random::Stream;
use crate::time::Instant;

/// A frame whose logarithm of the success probability is below this is lost.
const HOPELESS: f64 = -60.0;

/// Outcome of an arriving frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
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
    pub(super) fn settle(&mut self, until: Instant, ratio: f64, decoders: &[Decoder]) {
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

    /// True if the frame was received without error; draws only if the outcome is uncertain.
    pub(super) fn survives(&self, random: &mut Stream) -> bool {
        self.ln_survival >= -1e-9
            || (self.ln_survival > HOPELESS && random.chance(math::exp(self.ln_survival)))
    }
}

impl Radio {
    /// Updates the lock up to `until` under the present interference.
    pub(super) fn settle(&mut self, until: Instant, decoders: &[Decoder]) {
        let Some(lock) = &mut self.lock else { return };
        let ratio = lock.power / ((self.energy - lock.power).max(0.0) + self.noise + self.ambient);
        lock.settle(until, ratio, decoders);
    }

    /// Handles the start of a signal. `offered` is the lock to take if the receiver follows it;
    /// `None` for signals that it cannot decode.
    pub(super) fn arrive(
        &mut self,
        at: Instant,
        power: f64,
        offered: Option<Lock>,
        decoders: &[Decoder],
    ) -> Arrived {
        self.settle(at, decoders);
        let rest = self.noise + self.ambient + self.energy;
        self.energy += power;
        self.signals += 1;
        let good = offered.filter(|_| power >= self.sensitivity && !self.transmitting);
        if let Some(lock) = &mut self.lock {
            let Some(new) = good else {
                lock.disturbed = true;
                return Arrived::Unheard;
            };
            let others = rest - lock.power;
            // Preambles compete within the signal detection time of the receiver.
            let together = lock.at.since(at).max(at.since(lock.at)) < self.phy.detect;
            let old = lock.sending;
            lock.disturbed = true;
            if !together {
                if power >= self.capture_ratio * rest && at.since(lock.at) < self.capture_window {
                    self.lock = Some(Lock { disturbed: true, ..new });
                    return Arrived::Left(old);
                }
                return Arrived::Missed;
            }
            if lock.power >= power && lock.power >= self.preamble_ratio * (others + power) {
                return Arrived::Missed;
            }
            if power > lock.power && power >= self.preamble_ratio * (others + lock.power) {
                self.lock = Some(Lock { disturbed: true, ..new });
                return Arrived::Left(old);
            }
            self.lock = None;
            return Arrived::Both(old);
        }
        let Some(new) = good else { return Arrived::Unheard };
        if power >= self.preamble_ratio * rest {
            self.lock = Some(Lock { disturbed: self.signals > 1, ..new });
            Arrived::Followed
        } else {
            Arrived::Missed
        }
    }

    /// Handles the end of a signal; returns the updated lock if it was on this signal.
    pub(super) fn depart(
        &mut self,
        at: Instant,
        sending: u32,
        power: f64,
        decoders: &[Decoder],
    ) -> Option<Lock> {
        self.settle(at, decoders);
        self.signals -= 1;
        // Sums of many powers accumulate rounding errors; silence is exactly 0.
        self.energy = if self.signals == 0 { 0.0 } else { (self.energy - power).max(0.0) };
        self.lock.take_if(|lock| lock.sending == sending)
    }

    /// True if the frame of this lock was received without error.
    pub(super) fn survives(&mut self, lock: &Lock) -> bool {
        lock.survives(&mut self.random)
    }

    /// True if the channel is busy now, by carrier sense or energy detection.
    pub(super) fn senses(&self) -> bool {
        self.lock.is_some() || self.energy + self.ambient >= self.sense
    }

    /// Records the radio's state from `at` on in the airtime counters.
    pub(super) fn book(&mut self, at: Instant, failed: bool) {
        let doing = if self.transmitting {
            Doing::Transmitting
        } else if self.lock.is_some() {
            Doing::Receiving
        } else if self.busy {
            Doing::Busy
        } else {
            Doing::Idle
        };
        self.account.turn(at, doing, failed);
    }
}
