//! Which MPDUs of an A-MPDU a listener has, and what its receiver answers.

use crate::medium::Medium;
use crate::medium::error::Decoder;
use crate::medium::mac::ampdu::{DELIMITER, Part};
use crate::medium::outside::Outside;
use crate::medium::radio::Radio;
use crate::medium::radio::reception::Lock;
use crate::medium::signal::{Heard, Sending};
use crate::time::{Instant, Span};

impl Radio {
    /// Draws which MPDUs of an A-MPDU of so many octets this receiver has without error.
    ///
    /// Octet k of n is on the air from k / n of the payload's time on. An MPDU has no error with probability
    /// exp(sum of ln(1 - p) * b) over the times of constant interference, p being the error probability of a
    /// bit there and b the number of its bits, delimiter included, in that time.
    fn draw_parts(&mut self, lock: &Lock, parts: &mut [Part], octets: u32, decoder: &Decoder) {
        #[allow(clippy::cast_precision_loss)] // short times
        let payload = lock.end.since(lock.header.1).nanos() as f64;
        let instant = |octet: u32| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the frame
            let nanos = (payload * f64::from(octet) / f64::from(octets.max(1))) as u64;
            lock.header.1 + Span::from_nanos(nanos)
        };
        for part in parts {
            let (from, until) = (instant(part.at), instant(part.at + DELIMITER + part.octets));
            let bits = f64::from((DELIMITER + part.octets) * 8);
            let ln_survival = self.reception.ln_between(from, until, bits, lock.rate, decoder);
            part.whole = self.survives(&Lock { ln_survival, ..*lock });
        }
    }
}

impl Medium {
    /// Draws which MPDUs a listener received; true if it has one.
    pub(in crate::medium) fn receives_parts(
        &mut self,
        sending: &mut Sending,
        ear: &Heard,
        lock: &Lock,
    ) -> bool {
        let Self { core, errors, .. } = self;
        let radio = core.radios.awake(ear.radio as usize);
        sending.parts.iter_mut().for_each(|part| part.whole = false);
        if !radio.survives(lock) {
            return false;
        }
        let decoder = &errors.decoders()[usize::from(lock.decoder)];
        let octets = sending.octets;
        radio.draw_parts(lock, &mut sending.parts, octets, decoder);
        if let Some(rate) = errors.of_pair(sending.from, ear.radio) {
            for part in sending.parts.iter_mut().filter(|part| part.whole) {
                part.whole = !radio.random.chance(rate);
            }
        }
        sending.parts.iter().any(|part| part.whole)
    }

    /// Takes the MPDUs that have arrived; the bits of their block ack.
    pub(in crate::medium::mac) fn take_parts(
        &mut self,
        at: Instant,
        sending: &Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) -> u64 {
        let mut others = 0;
        for (number, part) in sending.parts.iter().filter(|part| part.whole).enumerate() {
            others = number as u64;
            self.take_numbered(at, &sending.alone(part), ear, outside);
        }
        self.core.radios.awake(ear.radio as usize).counts.received += others;
        self.bitmap(ear.radio as usize, sending)
    }
}

impl Sending {
    /// One MPDU of it as a frame of its own.
    pub(in crate::medium) fn alone(&self, part: &Part) -> Self {
        Self {
            sequence: part.sequence,
            octets: part.octets,
            body: part.body,
            retry: part.retry,
            frame: part.frame,
            parts: Vec::new(),
            subframe: Some(self.parts.last().is_some_and(|last| last.sequence == part.sequence)),
            heard: Vec::new(),
            ..*self
        }
    }
}
