//! What is left of frames that began together, at a radio that only listened.
//!
//! The commonest event of a busy cell next to a single frame: some begin in the same slot and
//! everybody hears all of them. What becomes of them at a receiver follows the steps of
//! [`super::hearing`] in the same order and with the same sums, without its state: which preamble is
//! followed, whether the frame is lost, where the time goes. Where it arrives well after all, the
//! receiver has to go through it step by step.

use super::air::Signal;
use super::cluster::Turn;
use super::error::Decoder;
use super::reach::{Heard, Reach};
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Most frames that are looked at in this way.
const MOST: usize = 8;

/// Frames that began together, in the order of their begin and of their end.
pub(super) struct Clash<'a> {
    begun: Vec<Signal>,
    /// How others hear each of them.
    heard: Vec<&'a [Heard]>,
    /// Places in `begun`.
    ended: Vec<usize>,
}

/// What a radio is left with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// Frames that it followed and that broke.
    pub(super) broken: u64,
    /// It followed one to its end: the extended space holds.
    pub(super) extended: bool,
    pub(super) receiving: Span,
    pub(super) collided: Span,
    pub(super) busy: Span,
    /// How long after the last end its account goes on: arrivals may change their order.
    pub(super) ahead: Span,
}

impl<'a> Clash<'a> {
    /// The frames of a busy time, if all began within `together` of the first at every receiver and
    /// none ended before.
    pub(super) fn of(turns: &[Turn], together: Span, spread: Span, reach: &'a Reach) -> Option<Self> {
        let count = turns.len() / 2;
        let (begins, ends) = turns.split_at(count);
        let begun: Vec<Signal> = begins
            .iter()
            .map_while(|turn| if let Turn::Begins(signal) = turn { Some(*signal) } else { None })
            .collect();
        let fit = (2..=MOST).contains(&count) && begun.len() == count;
        if !fit || begun[count - 1].start + spread >= begun[0].start + together {
            return None;
        }
        let place = |signal: &Signal| begun.iter().position(|begun| begun.number == signal.number);
        let ended: Option<Vec<usize>> = ends
            .iter()
            .map(|turn| if let Turn::Ends(signal) = turn { place(signal) } else { None })
            .collect();
        let heard = begun.iter().map(|signal| reach.heard(signal.from)).collect();
        Some(Self { ended: ended?, heard, begun })
    }

    /// What the radio of this number and rank is left with, if it has this noise and needs this ratio
    /// for a preamble; none if a frame arrives well, and nothing is drawn then.
    pub(super) fn at(
        &self,
        (own, rank): (u32, usize),
        (noise, preamble_ratio): (f64, f64),
        dice: &mut Stream,
        decoders: &[Decoder],
    ) -> Option<Left> {
        let mut left = Left::default();
        let mut ears = [(0.0, Span::ZERO); MOST];
        let (mut energy, mut lock, mut since) = (0.0, None, Instant::ZERO);
        let step = |at: Instant, since: &mut Instant, part: &mut Span| {
            *part += at.since(*since);
            *since = at.max(*since);
        };
        for (place, signal) in self.begun.iter().enumerate() {
            let heard = &self.heard[place][rank - usize::from(own > signal.from)];
            let power = heard.power;
            let delay = Span::from_nanos(u64::from(heard.delay_ns));
            ears[place] = (power, delay);
            let at = signal.start + delay;
            let rest = noise + energy;
            energy += power;
            if place == 0 {
                since = at;
            }
            match lock {
                None => {
                    step(at, &mut since, &mut left.busy);
                    lock = (power >= preamble_ratio * rest).then_some(place);
                }
                Some(followed) => {
                    let old: f64 = ears[followed].0;
                    let others = rest - old;
                    if old >= power && old >= preamble_ratio * (others + power) {
                        step(at, &mut since, &mut left.receiving);
                        continue;
                    }
                    left.broken += 1;
                    step(at, &mut since, &mut left.collided);
                    let stronger = power > old && power >= preamble_ratio * (others + old);
                    lock = stronger.then_some(place);
                }
            }
        }
        if let Some(followed) = lock {
            if self.arrives(followed, &ears, energy, noise, dice, decoders) {
                return None;
            }
        }
        let mut at = since;
        for &place in &self.ended {
            at = self.begun[place].end + ears[place].1;
            if lock == Some(place) {
                left.broken += 1;
                left.extended = true;
                step(at, &mut since, &mut left.collided);
                lock = None;
            } else if lock.is_some() {
                step(at, &mut since, &mut left.receiving);
            } else {
                step(at, &mut since, &mut left.busy);
            }
        }
        left.ahead = since.since(at);
        Some(left)
    }

    /// Whether the frame that is followed arrives well among all the others.
    fn arrives(
        &self,
        followed: usize,
        ears: &[(f64, Span); MOST],
        mut energy: f64,
        noise: f64,
        dice: &mut Stream,
        decoders: &[Decoder],
    ) -> bool {
        let (signal, (power, delay)) = (&self.begun[followed], ears[followed]);
        let at = signal.start + delay;
        let ratio = |energy: f64| power / ((energy - power).max(0.0) + noise);
        let first = self.ended[0];
        if signal.is_hopeless(at, self.begun[first].end + ears[first].1, ratio(energy), decoders) {
            return false;
        }
        let mut lock = signal.lock(power, at);
        for &place in &self.ended {
            let (power, delay) = ears[place];
            lock.settle(self.begun[place].end + delay, ratio(energy), decoders);
            if place == followed {
                break;
            }
            energy = (energy - power).max(0.0);
        }
        let before = dice.clone();
        let well = lock.survives(dice);
        if well {
            *dice = before;
        }
        well
    }
}
