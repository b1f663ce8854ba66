//! Carrier sense: detection of preambles.
//!
//! A receiver that follows no frame correlates what it hears with the training sequence of a
//! preamble (802.11-2020 17.3.3, 15.2.3). All preambles have it in common, so those that arrive
//! together add up: although their frames disturb each other beyond recovery, the receiver detects
//! that frames begin, and the channel counts as busy until these frames end (17.3.10.6, 16.3.8.5).
//! Energy detection alone would count it as idle below a threshold that is 20 dB higher.
//!
//! The preambles that arrive within the detection time of the first are detected if
//! `sum(p) >= s (N + I)`: their powers, each of them at or above the receiver's sensitivity, the
//! least ratio of a detected preamble, noise, and all other signals. A receiver that follows a frame
//! does not look for preambles after that time, unless it captures a later one.
//!
//! No frame was received without the header, so EIFS does not follow; it follows a frame that the
//! receiver followed and that had errors (10.3.2.3.7).

use crate::time::{Instant, Span};

/// The preambles that a receiver has met whose frames have not ended; without that of the frame that it
/// follows, which keeps the channel busy anyway, unless another one has arrived since.
#[derive(Debug, Default)]
pub(in crate::medium) struct Carrier {
    preambles: Vec<Preamble>,
    /// Arrival of the first of those that arrive together, and their power in mW.
    since: Instant,
    power: f64,
}

#[derive(Clone, Copy, Debug)]
struct Preamble {
    /// Number of the transmission.
    sending: u32,
    detected: bool,
}

impl Carrier {
    /// True while a frame is on the air whose preamble was detected.
    pub(in crate::medium) fn is_sensed(&self) -> bool {
        self.preambles.iter().any(|preamble| preamble.detected)
    }

    /// True if a preamble that arrives at `at` adds up with those before.
    pub(in crate::medium) fn is_joined(&self, at: Instant, detect: Span) -> bool {
        self.since.since(at).max(at.since(self.since)) < detect
    }

    /// A preamble arrives that does not add up with those before; true if it is detected.
    pub(in crate::medium) fn begin(&mut self, at: Instant, power: f64, rest: f64, ratio: f64) -> bool {
        self.preambles.retain(|preamble| preamble.detected);
        (self.since, self.power) = (at, 0.0);
        self.join(power, rest, ratio)
    }

    /// A preamble arrives that adds up with those before; `rest` is the power of everything else,
    /// with theirs and with noise. True if all of them are detected.
    pub(in crate::medium) fn join(&mut self, power: f64, rest: f64, ratio: f64) -> bool {
        let others = (rest - self.power).max(0.0);
        self.power += power;
        let detected = self.power >= ratio * others;
        if detected {
            self.preambles.iter_mut().for_each(|preamble| preamble.detected = true);
        }
        detected
    }

    /// Records the preamble of a frame that the receiver does not follow, or not any more for certain.
    pub(in crate::medium) fn record(&mut self, sending: u32, detected: bool) {
        if !self.preambles.iter().any(|preamble| preamble.sending == sending) {
            self.preambles.push(Preamble { sending, detected });
        }
    }

    /// A frame ends.
    pub(in crate::medium) fn end(&mut self, sending: u32) {
        if let Some(place) = self.preambles.iter().position(|preamble| preamble.sending == sending) {
            self.preambles.swap_remove(place);
        }
    }

    /// The receiver stops listening, and forgets what it has met.
    pub(in crate::medium) fn lose(&mut self) {
        self.preambles.clear();
        self.power = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DETECT: Span = Span::from_micros(4);

    #[test]
    fn equal_preambles_add_up_until_the_last_frame_ends() {
        // Noise 1, ratio 2.5: each alone is too weak, two together are not.
        let mut carrier = Carrier::default();
        let at = Instant::from_nanos;
        let detected = carrier.begin(at(100_000), 2.0, 1.0, 2.5);
        carrier.record(7, detected);
        assert!(!carrier.is_sensed());
        assert!(carrier.is_joined(at(103_999), DETECT) && carrier.is_joined(at(99_000), DETECT));
        let detected = carrier.join(2.0, 3.0, 2.5);
        carrier.record(8, detected);
        assert!(carrier.is_sensed());
        carrier.end(7);
        assert!(carrier.is_sensed());
        carrier.end(8);
        assert!(!carrier.is_sensed());
    }

    #[test]
    fn a_later_preamble_has_all_others_against_it() {
        let mut carrier = Carrier::default();
        let at = Instant::from_nanos;
        let detected = carrier.begin(at(100_000), 10.0, 1.0, 2.5);
        carrier.record(1, detected);
        assert!(!carrier.is_joined(at(104_000), DETECT));
        let detected = carrier.begin(at(104_000), 20.0, 11.0, 2.5);
        carrier.record(2, detected);
        carrier.end(1);
        assert!(!carrier.is_sensed());
        carrier.lose();
        let detected = carrier.begin(at(200_000), 30.0, 11.0, 2.5);
        carrier.record(3, detected);
        assert!(carrier.is_sensed());
    }
}
