//! Leakage between the 20 MHz channels of the 5 GHz band, and between the antennas of one place.
//!
//! A receiver tuned to another channel of the band receives the power `P - A` dBm of a signal that
//! reaches it with `P` dBm: `A` is [`Leakage::adjacent_db`] if the centres are 20 MHz apart, and
//! [`Leakage::alternate_db`] if they are further apart. It is interference and energy on the channel;
//! it is not decoded.
//!
//! The defaults describe a receiver that just conforms to 802.11-2020, table 17-18. The standard
//! tests it with a signal 3 dB above its sensitivity and a signal on the other channel that is
//! stronger by the rejection. With the noise that the standard assumes (-101 dBm in 20 MHz, noise
//! figure 10 dB, implementation margin 5 dB: -86 dBm), the interference that remains is as strong
//! as the noise at each of the eight rates if `A` is 23 dB for the adjacent and 39 dB for other
//! channels: sensitivity + 3 dB + rejection - A = -86 dBm.
//!
//! Through an ideal filter of 16.6 MHz, what remains is the transmitter's spectrum alone: the mask
//! of 17.3.9.3, integrated over the receiver's channel, gives 26.2 dB and 40.0 dB.
//!
//! At 2.4 GHz [`Channel::overlap`] decides.

use serde::{Deserialize, Serialize};

use crate::math;
use crate::medium::phy::Channel;
use crate::medium::settings::error::SettingsError;
use crate::medium::settings::range::within;

/// How much weaker a signal is on other channels, in dB, 0 to 200.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeakageSettings {
    /// On the two channels beside its own.
    pub adjacent_db: f64,
    /// On all others of the band.
    pub alternate_db: f64,
}

impl Default for LeakageSettings {
    fn default() -> Self {
        Self { adjacent_db: 23.0, alternate_db: 39.0 }
    }
}

impl LeakageSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Names the first one that is out of range.
    pub fn build(self) -> Result<Leakage, SettingsError> {
        within("leakage.adjacent_db", self.adjacent_db, 0.0, 200.0)?;
        within("leakage.alternate_db", self.alternate_db, 0.0, 200.0)?;
        Ok(Leakage { adjacent: math::linear(-self.adjacent_db), alternate: math::linear(-self.alternate_db) })
    }
}

/// Shares of a signal's power on other channels, 0 to 1. By default there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Leakage {
    adjacent: f64,
    alternate: f64,
}

impl Leakage {
    /// Whether there is any.
    pub(in crate::medium) fn is_some(self) -> bool {
        self.adjacent > 0.0
    }

    /// Share of the power sent on `sent` that a receiver on channel `tuned` receives, 0 to 1.
    pub(in crate::medium) fn share(self, sent: Channel, tuned: Channel) -> f64 {
        if sent.is_two() || tuned.is_two() || sent == tuned {
            return sent.overlap(tuned);
        }
        if sent.mhz.abs_diff(tuned.mhz) < 40 { self.adjacent } else { self.alternate }
    }

    /// The same for channels of 20 or 40 MHz, each given with whether it is `wide`: a wide sender
    /// divides its power evenly between its halves, and a wide receiver adds what its halves receive.
    pub(in crate::medium) fn share_of_halves(self, sent: (Channel, bool), tuned: (Channel, bool)) -> f64 {
        let (from, to) = (sent.0.halves(sent.1), tuned.0.halves(tuned.1));
        let power = if from.clone().nth(1).is_some() { 0.5 } else { 1.0 };
        let shares = from.flat_map(|half| to.clone().map(move |other| self.share(half, other)));
        (shares.sum::<f64>() * power).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::phy::channel::Band;

    /// 802.11-2020 table 17-18 by rate: sensitivity in dBm, adjacent and alternate rejection in dB.
    const TABLE: [(f64, f64, f64); 8] = [
        (-82.0, 16.0, 32.0),
        (-81.0, 15.0, 31.0),
        (-79.0, 13.0, 29.0),
        (-77.0, 11.0, 27.0),
        (-74.0, 8.0, 24.0),
        (-70.0, 4.0, 20.0),
        (-66.0, 0.0, 16.0),
        (-65.0, -1.0, 15.0),
    ];

    #[test]
    fn what_the_standard_lets_through_is_as_strong_as_its_noise() {
        let settings = LeakageSettings::default();
        for (sensitivity, adjacent, alternate) in TABLE {
            for (rejection, leakage) in [(adjacent, settings.adjacent_db), (alternate, settings.alternate_db)]
            {
                let left = sensitivity + 3.0 + rejection - leakage;
                assert!((left + 86.0).abs() < 1e-9, "{left}");
            }
        }
    }

    #[test]
    fn the_mask_through_an_ideal_filter() {
        // 17.3.9.3: dB relative to the highest density, linear between these offsets in MHz.
        let mask = [(0.0, 0.0), (9.0, 0.0), (11.0, -20.0), (20.0, -28.0), (30.0, -40.0), (1e3, -40.0)];
        let density = |mhz: f64| {
            let after = mask.iter().position(|point| point.0 > mhz.abs()).expect("within");
            let ((x, y), (next_x, next_y)) = (mask[after - 1], mask[after]);
            math::linear(y + (next_y - y) * (mhz.abs() - x) / (next_x - x))
        };
        let received = |offset: f64| {
            let steps = 16_600;
            let at = |step: i32| offset - 8.3 + (f64::from(step) + 0.5) * 0.001;
            (0..steps).map(|step| density(at(step))).sum::<f64>()
        };
        let share = |offset| -10.0 * math::log10(received(offset) / received(0.0));
        assert!((share(20.0) - 26.2).abs() < 0.1, "{}", share(20.0));
        assert!((share(40.0) - 40.0).abs() < 0.1, "{}", share(40.0));
    }

    #[test]
    fn it_depends_on_the_distance_of_the_channels() {
        let channel = |number| Channel::numbered(&[Band::Two, Band::Five], number).expect("a channel");
        let leakage = LeakageSettings::default().build().expect("in range");
        let db = |sent, tuned| -10.0 * math::log10(leakage.share(channel(sent), channel(tuned)));
        assert!((db(36, 40) - 23.0).abs() < 1e-9);
        assert!((db(40, 36) - 23.0).abs() < 1e-9);
        assert!((db(36, 44) - 39.0).abs() < 1e-9);
        assert!((db(36, 165) - 39.0).abs() < 1e-9);
        assert!(db(36, 36).abs() < 1e-9);
        let none = Leakage::default();
        for (sent, tuned) in [(36, 40), (36, 44), (1, 36), (36, 1), (1, 6)] {
            assert!(none.share(channel(sent), channel(tuned)).abs() < f64::MIN_POSITIVE);
        }
        let two = channel(1).overlap(channel(3)).to_bits();
        assert_eq!(leakage.share(channel(1), channel(3)).to_bits(), two);
    }
}
