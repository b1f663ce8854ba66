//! Automatic rate fallback: up after consecutive successes, down after failures.

use std::collections::BTreeMap;

use super::RateControl;
use crate::medium::phy::Phy;
use crate::random::Stream;
use crate::time::Instant;

/// Automatic rate fallback, plain or adaptive.
///
/// Plain (ARF): one rate up after 10 consecutive acknowledgments or 15 frames, one down after 2
/// consecutive failures, or if the first frame at the new rate fails. Source: Kamerman and
/// Monteban, "`WaveLAN`-II: a high-performance wireless LAN for the unlicensed band", Bell Labs
/// Technical Journal 2(3), 1997.
///
/// Adaptive (AARF): each time the first frame at the new rate fails, the number of successes needed
/// doubles (10 to 50); after 2 consecutive failures it is 10 again. Source: Lacage, Manshaei and
/// Turletti, "IEEE 802.11 rate adaptation: a practical approach", MSWiM 2004.
pub struct Fallback {
    highest: u8,
    adaptive: bool,
    peers: BTreeMap<u32, Peer>,
}

struct Peer {
    rate: u8,
    successes: u32,
    failures: u32,
    frames: u32,
    needed: u32,
    /// True if the next frame is the first at a higher rate.
    first: bool,
}

const NEEDED: u32 = 10;
const MOST_NEEDED: u32 = 50;
const FRAMES: u32 = 15;

impl Fallback {
    /// A controller for the rates of `phy`; every receiver starts at the lowest.
    #[must_use]
    pub fn new(phy: &Phy, adaptive: bool) -> Self {
        let highest = u8::try_from(phy.rates.len() - 1).unwrap_or(u8::MAX);
        Self { highest, adaptive, peers: BTreeMap::new() }
    }

    fn peer(&mut self, peer: u32) -> &mut Peer {
        self.peers.entry(peer).or_insert(Peer {
            rate: 0,
            successes: 0,
            failures: 0,
            frames: 0,
            needed: NEEDED,
            first: false,
        })
    }
}

impl RateControl for Fallback {
    fn choose(&mut self, peer: u32, _tries: u32, _now: Instant, _dice: &mut Stream) -> u8 {
        self.peer(peer).rate
    }

    fn report(&mut self, peer: u32, _rate: u8, _tries: u32, acknowledged: bool, _now: Instant) {
        let (highest, adaptive) = (self.highest, self.adaptive);
        let peer = self.peer(peer);
        peer.frames += 1;
        let first = core::mem::replace(&mut peer.first, false);
        if acknowledged {
            peer.failures = 0;
            peer.successes += 1;
            let frames = if adaptive { peer.needed + FRAMES - NEEDED } else { FRAMES };
            if (peer.successes >= peer.needed || peer.frames >= frames) && peer.rate < highest {
                peer.rate += 1;
                (peer.successes, peer.frames, peer.first) = (0, 0, true);
            }
            return;
        }
        peer.successes = 0;
        peer.failures += 1;
        if !first && peer.failures < 2 {
            return;
        }
        if adaptive {
            peer.needed = if first { (peer.needed * 2).min(MOST_NEEDED) } else { NEEDED };
        }
        peer.rate = peer.rate.saturating_sub(1);
        (peer.failures, peer.frames) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::phy::tables::A;

    fn rate(control: &mut Fallback) -> u8 {
        control.choose(1, 0, Instant::ZERO, &mut Stream::named(0, ""))
    }

    fn report(control: &mut Fallback, acknowledged: bool, times: u32) {
        (0..times).for_each(|_| control.report(1, 0, 1, acknowledged, Instant::ZERO));
    }

    #[test]
    fn ten_successes_up_two_failures_down() {
        let mut control = Fallback::new(&A, false);
        report(&mut control, true, 9);
        assert_eq!(rate(&mut control), 0);
        report(&mut control, true, 1);
        assert_eq!(rate(&mut control), 1);
        report(&mut control, false, 1);
        assert_eq!(rate(&mut control), 0, "the first frame at a new rate decides");
        report(&mut control, true, 11);
        report(&mut control, false, 1);
        assert_eq!(rate(&mut control), 1);
        report(&mut control, false, 1);
        assert_eq!(rate(&mut control), 0);
        report(&mut control, true, 1000);
        assert_eq!(rate(&mut control), 7);
        assert_eq!(control.choose(2, 0, Instant::ZERO, &mut Stream::named(0, "")), 0, "for each receiver");
    }

    #[test]
    fn the_adaptive_form_tries_less_and_less_often() {
        let mut control = Fallback::new(&A, true);
        report(&mut control, true, 10);
        report(&mut control, false, 1);
        report(&mut control, true, 19);
        assert_eq!(rate(&mut control), 0);
        report(&mut control, true, 1);
        assert_eq!(rate(&mut control), 1);
        report(&mut control, false, 1);
        report(&mut control, true, 39);
        assert_eq!(rate(&mut control), 0);
        report(&mut control, true, 1);
        assert_eq!(rate(&mut control), 1);
    }
}
