//! Collisions of simultaneous frames, evaluated at a radio that only listened.
//!
//! In a busy cell the most frequent event after a single frame: several frames begin in the same
//! slot and all radios receive all of them. The result at a receiver follows the steps of
//! [`super::hearing`] in the same order and with the same sums, without its state: which preamble
//! is followed, whether the frame is lost, how the airtime is counted. If the frame is received
//! after all, the receiver has to process it step by step.

use super::air::Signal;
use super::cluster::Turn;
use super::error::Decoder;
use super::reach::{Heard, Reach};
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Maximum number of frames evaluated in this way.
const MOST: usize = 8;

/// Simultaneous frames, in the order of their start and of their end.
pub(super) struct Clash<'a> {
    begun: Vec<Part<'a>>,
    /// Indices into `begun`.
    ended: Vec<usize>,
    decoders: &'a [Decoder],
}

/// One of the frames.
struct Part<'a> {
    signal: &'a Signal,
    start: Instant,
    end: Instant,
    from: u32,
    /// Receivers of the frame.
    heard: &'a [Heard],
    /// Up to this ratio to the others it is certainly lost before the first of them ends.
    lost: f64,
}

/// Effect of a collision on a radio.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// Frames that it followed and lost.
    pub(super) broken: u64,
    /// It followed a frame to its end: EIFS applies.
    pub(super) extended: bool,
    pub(super) receiving: Span,
    pub(super) collided: Span,
    pub(super) busy: Span,
    /// How far its airtime extends beyond the last end: propagation delays may change the order.
    pub(super) ahead: Span,
}

impl<'a> Clash<'a> {
    /// The frames of a busy time, if all began within `together` of the first at every receiver and
    /// none ended before.
    pub(super) fn of(
        turns: &'a [Turn],
        together: Span,
        spread: Span,
        reach: &'a Reach,
        decoders: &'a [Decoder],
    ) -> Option<Self> {
        let count = turns.len() / 2;
        let (begins, ends) = turns.split_at(count);
        if !(2..=MOST).contains(&count) {
            return None;
        }
        let begun =
            begins.iter().map(|turn| if let Turn::Begins(signal) = turn { Some(signal) } else { None });
        let begun: Vec<&Signal> = begun.collect::<Option<_>>()?;
        if begun[count - 1].start + spread >= begun[0].start + together {
            return None;
        }
        let place = |turn: &Turn| {
            let Turn::Ends(signal) = turn else { return None };
            begun.iter().position(|begun| begun.number == signal.number)
        };
        let ended: Vec<usize> = ends.iter().map(place).collect::<Option<_>>()?;
        let first = begun[*ended.first()?].end;
        let part = |signal: &&'a Signal| Part {
            signal,
            start: signal.start,
            end: signal.end,
            from: signal.from,
            heard: reach.heard(signal.from),
            lost: signal.lost_ratio(first.since(signal.start).saturating_sub(spread), decoders),
        };
        Some(Self { begun: begun.iter().map(part).collect(), ended, decoders })
    }

    /// Effect on the radio of this number and rank with this noise and preamble threshold; `None`,
    /// without a draw, if a frame is received.
    pub(super) fn at(
        &self,
        (own, rank): (u32, usize),
        (noise, preamble_ratio): (f64, f64),
        dice: &mut Stream,
    ) -> Option<Left> {
        let mut left = Left::default();
        let mut ears = [(0.0, Span::ZERO); MOST];
        let (mut energy, mut lock, mut since) = (0.0, None, Instant::ZERO);
        let step = |at: Instant, since: &mut Instant, part: &mut Span| {
            *part += at.since(*since);
            *since = at.max(*since);
        };
        for (place, part) in self.begun.iter().enumerate() {
            let heard = &part.heard[rank - usize::from(own > part.from)];
            let power = heard.power;
            let delay = Span::from_nanos(u64::from(heard.delay_ns));
            ears[place] = (power, delay);
            let at = part.start + delay;
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
            let power: f64 = ears[followed].0;
            let lost = power <= self.begun[followed].lost * ((energy - power).max(0.0) + noise);
            if !lost && self.arrives(followed, &ears, energy, noise, dice) {
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

    /// True if the followed frame is received despite the others.
    fn arrives(
        &self,
        followed: usize,
        ears: &[(f64, Span); MOST],
        mut energy: f64,
        noise: f64,
        dice: &mut Stream,
    ) -> bool {
        let (signal, (power, delay)) = (self.begun[followed].signal, ears[followed]);
        let ratio = |energy: f64| power / ((energy - power).max(0.0) + noise);
        let mut lock = signal.lock(power, signal.start + delay);
        for &place in &self.ended {
            let (power, delay) = ears[place];
            lock.settle(self.begun[place].end + delay, ratio(energy), self.decoders);
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
