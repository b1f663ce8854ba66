//! Channels: numbers, frequencies, and overlap.

/// A range of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// 2.4 GHz: channels 1 to 13 every 5 MHz from 2412 MHz, 14 at 2484 MHz.
    Two,
    /// 5 GHz: 20 MHz channels at 5000 MHz + 5 MHz * number.
    Five,
}

/// 20 MHz channels at 5 GHz (802.11-2020 annex E, operating class 128 and its like).
pub const FIVE: [u16; 28] = [
    36, 40, 44, 48, 52, 56, 60, 64, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144, 149, 153,
    157, 161, 165, 169, 173, 177,
];

/// A channel that radios are tuned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel {
    /// Its number.
    pub number: u16,
    /// Its centre in MHz.
    pub mhz: u16,
}

impl Channel {
    /// The channel with this number in one of the bands.
    #[must_use]
    pub fn numbered(bands: &[Band], number: u16) -> Option<Self> {
        bands.iter().find_map(|band| match band {
            Band::Two if (1..=13).contains(&number) => Some(Self { number, mhz: 2407 + 5 * number }),
            Band::Two if number == 14 => Some(Self { number, mhz: 2484 }),
            Band::Five if FIVE.contains(&number) => Some(Self { number, mhz: 5000 + 5 * number }),
            _ => None,
        })
    }

    /// All channels of the bands, ascending in each.
    pub fn all(bands: &[Band]) -> impl Iterator<Item = Self> {
        let numbers = bands.iter().flat_map(|band| match band {
            Band::Two => (1..=14).collect(),
            Band::Five => FIVE.to_vec(),
        });
        numbers.filter_map(move |number| Self::numbered(bands, number))
    }

    /// Share of the power sent on `self` that a receiver on channel `other` receives, 0 to 1.
    ///
    /// Same channel 1; channels 1 to 4 numbers apart at 2.4 GHz overlap by the factors of Mishra,
    /// Shrivastava, Banerjee and Arbaugh, "Partially overlapped channels not considered harmful",
    /// SIGMETRICS 2006 (sender's spectrum times receiver's filter, integrated). Centres 20 MHz
    /// apart or more at 5 GHz, 25 MHz at 2.4 GHz, count as orthogonal: leakage through real
    /// filters is a setting of the medium.
    #[must_use]
    pub fn overlap(self, other: Self) -> f64 {
        const FACTORS: [f64; 5] = [1.0, 0.7272, 0.2714, 0.0375, 0.0054];
        let apart = self.mhz.abs_diff(other.mhz);
        if apart == 0 {
            return 1.0;
        }
        if self.mhz >= 3000 || other.mhz >= 3000 {
            return 0.0;
        }
        // Channel 14 is 12 MHz above 13; interpolate between whole numbers of channels.
        let below = usize::from(apart / 5);
        let share = f64::from(apart % 5) / 5.0;
        let factor = |at: usize| FACTORS.get(at).copied().unwrap_or(0.0);
        factor(below) * (1.0 - share) + factor(below + 1) * share
    }

    /// The other half of a channel of 40 MHz whose primary half is this one; `None` where there is
    /// none.
    ///
    /// At 5 GHz the pairs of 802.11-2020 annex E: 36 and 40, 44 and 48, and so on. At 2.4 GHz four
    /// channels above for channels 1 to 7, and four below for 8 to 13.
    #[must_use]
    pub fn secondary(self) -> Option<Self> {
        let (band, number) = (self.band(), self.number);
        let other = match band {
            Band::Two if number <= 7 => number + 4,
            Band::Two if number <= 13 => number - 4,
            Band::Two => return None,
            Band::Five => {
                let first = if number < 149 { 36 } else { 149 };
                if (number - first) % 8 == 0 { number + 4 } else { number - 4 }
            }
        };
        Self::numbered(&[band], other)
    }

    /// The channels of 20 MHz that it occupies: itself, and with 40 MHz its other half too.
    pub fn halves(self, wide: bool) -> impl Iterator<Item = Self> + Clone {
        core::iter::once(self).chain(self.secondary().filter(|_| wide))
    }

    /// Centre frequency in Hz of what it occupies at 20 or 40 MHz.
    #[must_use]
    pub fn middle_hertz(self, wide: bool) -> f64 {
        let other = if wide { self.secondary() } else { None };
        other.map_or(self.hertz(), |other| f64::midpoint(self.hertz(), other.hertz()))
    }

    /// True for the band at 2.4 GHz.
    #[must_use]
    pub fn is_two(self) -> bool {
        self.mhz < 3000
    }

    /// Its band.
    #[must_use]
    pub fn band(self) -> Band {
        if self.is_two() { Band::Two } else { Band::Five }
    }

    /// The channel of these bands with this centre in MHz.
    #[must_use]
    pub fn centred(bands: &[Band], mhz: u16) -> Option<Self> {
        Self::all(bands).find(|channel| channel.mhz == mhz)
    }

    /// Centre frequency in Hz.
    #[must_use]
    pub fn hertz(self) -> f64 {
        f64::from(self.mhz) * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_frequencies() {
        let mhz = |band, number| Channel::numbered(&[band], number).map(|channel| channel.mhz);
        assert_eq!(mhz(Band::Two, 1), Some(2412));
        assert_eq!(mhz(Band::Two, 13), Some(2472));
        assert_eq!(mhz(Band::Two, 14), Some(2484));
        assert_eq!(mhz(Band::Five, 36), Some(5180));
        assert_eq!(mhz(Band::Five, 165), Some(5825));
        assert_eq!(mhz(Band::Two, 0), None);
        assert_eq!(mhz(Band::Two, 36), None);
        assert_eq!(mhz(Band::Five, 38), None);
    }

    #[test]
    fn channels_of_40_mhz_are_pairs() {
        let pair = |band, number| {
            let channel = Channel::numbered(&[band], number).expect("a channel");
            channel.secondary().map(|other| other.number)
        };
        for number in FIVE {
            let other = pair(Band::Five, number).expect("a pair");
            assert_eq!(number.abs_diff(other), 4);
            assert_eq!(pair(Band::Five, other), Some(number));
        }
        for (low, high) in [(36, 40), (60, 64), (100, 104), (140, 144), (149, 153), (157, 161)] {
            assert_eq!(pair(Band::Five, low), Some(high));
        }
        assert_eq!([1, 7, 8, 13].map(|number| pair(Band::Two, number)), [5, 11, 4, 9].map(Some));
        assert_eq!(pair(Band::Two, 14), None);
        let middle = |number, wide| {
            Channel::numbered(&[Band::Five], number).expect("a channel").middle_hertz(wide) / 1e6
        };
        // Channel 38, the centre of 36 and 40.
        assert!((middle(40, true) - 5190.0).abs() < 1e-6 && (middle(40, false) - 5200.0).abs() < 1e-6);
    }

    #[test]
    fn overlap_falls_with_distance_and_ends() {
        let channel = |number| Channel::numbered(&[Band::Two, Band::Five], number).expect("a channel");
        let overlap = |other| channel(1).overlap(channel(other));
        assert_eq!(overlap(1).to_bits(), 1.0f64.to_bits());
        for other in 2..=5 {
            assert!(overlap(other) < overlap(other - 1));
        }
        assert_eq!(overlap(6).to_bits(), 0.0f64.to_bits());
        assert_eq!(channel(36).overlap(channel(40)).to_bits(), 0.0f64.to_bits());
    }
}
