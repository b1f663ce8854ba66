//! Sampling rate control: measures every rate now and then and uses the one with most throughput.

use std::collections::BTreeMap;

use super::RateControl;
use crate::medium::mac::ampdu;
use crate::medium::phy::Phy;
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Sampling in the style of Minstrel.
///
/// Every 100 ms the share of acknowledged transmissions of each rate enters a moving average (a
/// quarter new). The throughput of a rate is that average over the airtime of a 1200-octet frame.
/// One frame in ten tries another rate at random; a slower one only after the best failed once. A
/// frame's transmissions use a retry chain: best throughput (2), second best (2), most reliable
/// (2), lowest. If no second rate has any throughput, at the edge of range, the most reliable
/// replaces it.
///
/// With 802.11n the rates are the schemes of so many streams, and the airtime is that of one of the
/// frames of the longest A-MPDU. Each of its MPDUs counts. A sample is sent first and alone, not as an
/// A-MPDU, if its rate would have more throughput than the best one without any failure; others are skipped.
///
/// Source: the design notes of the Minstrel controller in the Linux kernel's mac80211 (Smithies
/// and Fietkau 2008); Yin, Kwon, et al., "Performance of mac80211 rate control mechanisms", MSWiM
/// 2011; the notes of its successor for 802.11n, `minstrel_ht`, there. Simplified: no sampling queue
/// per rate, no groups of rates, and no limit on time spent in retries.
pub struct Sampling {
    /// Index of the first rate in the table of the layer.
    first: u8,
    /// Airtime of a 1200-octet frame at each rate in seconds.
    airtime: Vec<f64>,
    /// Samples are frames of their own.
    alone: bool,
    peers: BTreeMap<u32, Peer>,
}

#[derive(Clone, Default)]
struct Measured {
    tried: u32,
    acknowledged: u32,
    /// Moving average; `None` before the first measurement.
    average: Option<f64>,
}

struct Peer {
    rates: Vec<Measured>,
    updated: Instant,
    best: [u8; 3],
    /// Throughput of the best rate, in frames a second.
    worth: f64,
    chain: [u8; 4],
    frames: u32,
    samples: u32,
    /// The frame under way begins with a sample.
    sampling: bool,
}

/// Octets of the frame whose airtime a rate is judged by.
const FRAME: u32 = 1200;
const WINDOW: Span = Span::from_millis(100);
const TRIES_EACH: u32 = 2;
const NEW_SHARE: f64 = 0.25;
/// Share of acknowledged transmissions above which the average is mostly noise.
const MOST_SHARE: f64 = 0.9;
const FRAMES_PER_SAMPLE: u32 = 10;

impl Sampling {
    /// A controller for the rates of `phy`; every receiver starts at the lowest and soon samples.
    #[must_use]
    pub fn new(phy: &Phy) -> Self {
        let airtime = phy.rates.iter().map(|rate| seconds(rate.airtime(FRAME))).collect();
        Self { first: 0, airtime, alone: false, peers: BTreeMap::new() }
    }

    /// A controller for the schemes of 802.11n with 1 to `streams` streams, in A-MPDUs of up to so many
    /// frames; every receiver starts at the lowest.
    #[must_use]
    pub fn of_schemes(phy: &Phy, streams: u8, frames: u8) -> Self {
        let first = phy.scheme(0).unwrap_or(0);
        let rates = phy.rates.iter().filter(|rate| rate.ht.is_some_and(|ht| ht.streams() <= streams));
        let airtime = rates.map(|rate| {
            let (count, octets) = ampdu::most(rate, FRAME, frames);
            seconds(rate.airtime(octets)) / f64::from(count)
        });
        Self { first, airtime: airtime.collect(), alone: true, peers: BTreeMap::new() }
    }
}

#[allow(clippy::cast_precision_loss)] // milliseconds
fn seconds(span: Span) -> f64 {
    span.nanos() as f64 * 1e-9
}

impl Peer {
    fn update(&mut self, airtime: &[f64], now: Instant) {
        self.updated = now;
        for rate in &mut self.rates {
            if rate.tried > 0 {
                let share = f64::from(rate.acknowledged) / f64::from(rate.tried);
                let average = rate.average.map_or(share, |old| old + NEW_SHARE * (share - old));
                rate.average = Some(average);
                (rate.tried, rate.acknowledged) = (0, 0);
            }
        }
        // Below 10 % the throughput is useless.
        let probability = |index: usize| self.rates[index].average.unwrap_or(0.0);
        let worth = |index: usize| {
            let p = probability(index);
            if p < 0.1 { 0.0 } else { p.min(MOST_SHARE) / airtime[index] }
        };
        let mut order: Vec<usize> = (0..self.rates.len()).collect();
        order.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)));
        let reliable = (0..self.rates.len())
            .max_by(|&a, &b| {
                let key = |index: usize| (probability(index).min(0.95), worth(index));
                key(a).partial_cmp(&key(b)).unwrap_or(core::cmp::Ordering::Equal)
            })
            .unwrap_or(0);
        self.worth = worth(order[0]);
        let number = |index: usize| u8::try_from(index).unwrap_or(0);
        // A second rate without throughput would only waste retries.
        let second = order.get(1).copied().filter(|&second| worth(second) > 0.0).unwrap_or(reliable);
        self.best =
            if worth(order[0]) > 0.0 { [number(order[0]), number(second), number(reliable)] } else { [0; 3] };
    }
}

impl RateControl for Sampling {
    fn choose(&mut self, peer: u32, tries: u32, now: Instant, random: &mut Stream) -> u8 {
        let airtime = &self.airtime;
        let rates = airtime.len();
        let peer = self.peers.entry(peer).or_insert_with(|| Peer {
            rates: vec![Measured::default(); rates],
            updated: now,
            best: [0; 3],
            worth: 0.0,
            chain: [0; 4],
            frames: 0,
            samples: 0,
            sampling: false,
        });
        if now.since(peer.updated) >= WINDOW {
            peer.update(airtime, now);
        }
        if tries == 0 {
            peer.frames += 1;
            let [best, second, reliable] = peer.best;
            peer.chain = [best, second, reliable, 0];
            peer.sampling = false;
            if peer.samples * FRAMES_PER_SAMPLE < peer.frames {
                peer.samples += 1;
                let sample = u8::try_from(random.below(rates as u64)).unwrap_or(0);
                let at = airtime[usize::from(sample)];
                if self.alone {
                    if sample != best && MOST_SHARE / at > peer.worth {
                        peer.chain = [sample, best, reliable, 0];
                        peer.sampling = true;
                    }
                } else if at < airtime[usize::from(best)] {
                    peer.chain = [sample, best, reliable, 0];
                } else if sample != best {
                    peer.chain = [best, sample, reliable, 0];
                }
            }
        }
        let stage = usize::try_from(tries / TRIES_EACH).unwrap_or(3).min(3);
        peer.sampling &= stage == 0;
        self.first + peer.chain[stage]
    }

    fn samples(&self, peer: u32) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.sampling)
    }

    fn report(&mut self, peer: u32, rate: u8, _tries: u32, acknowledged: bool, _now: Instant) {
        // Before a change of the settings another rate was possible.
        let at = rate.checked_sub(self.first).map(usize::from);
        let peer = self.peers.get_mut(&peer);
        if let Some(measured) = peer.zip(at).and_then(|(peer, at)| peer.rates.get_mut(at)) {
            measured.tried += 1;
            measured.acknowledged += u32::from(acknowledged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::phy::tables::A;

    /// Share of frames first sent at each rate after a second, if rates up to `highest` work.
    fn shares(highest: u8) -> Vec<f64> {
        let mut control = Sampling::new(&A);
        let mut random = Stream::named(5, "sampling");
        let mut used = vec![0.0; 8];
        let mut now = Instant::ZERO;
        for frame in 0..4000 {
            let mut tries = 0;
            loop {
                let rate = control.choose(9, tries, now, &mut random);
                if tries == 0 && frame >= 2000 {
                    used[usize::from(rate)] += 1.0 / 2000.0;
                }
                tries += 1;
                now += Span::from_micros(500);
                let good = rate <= highest;
                control.report(9, rate, tries, good, now);
                if good || tries >= 7 {
                    break;
                }
            }
        }
        used
    }

    #[test]
    fn settles_on_the_best_working_rate() {
        for highest in [0, 3, 5, 7] {
            let used = shares(highest);
            assert!(used[usize::from(highest)] > 0.85, "highest {highest}: {used:?}");
        }
    }
}
