//! Collisions of simultaneous frames, evaluated at a radio that only listened.
//!
//! In a busy cell the most frequent event after a single frame: several frames begin in the same
//! slot and all radios receive all of them. The result at a receiver follows the steps of
//! [`super::hearing`] in the same order and with the same sums, without its state: which preamble
//! is followed, whether the frame is lost or captured, how the airtime is counted.

use super::air::Signal;
use super::cluster::AirEvent;
use super::error::Decoder;
use super::radio::Kind;
use super::reach::{Heard, Reach};
use crate::random::Stream;
use crate::time::{Instant, Span};

/// Maximum number of frames evaluated in this way.
pub(super) const MAX_FRAMES: usize = 8;

/// Simultaneous frames, in the order of their start and of their end.
pub(super) struct Collision<'a> {
    frames: Vec<CollidingFrame<'a>>,
    /// Indices into `frames`, and the ends of these frames.
    ends: Vec<(usize, Instant)>,
    decoders: &'a [Decoder],
}

struct CollidingFrame<'a> {
    signal: &'a Signal,
    start: Instant,
    from: u32,
    /// Receivers of the frame.
    heard: &'a [Heard],
    /// Up to this ratio to the others it is certainly lost before the first of them ends.
    lost_ratio: f64,
}

/// What a radio waits for before it counts slots, besides the reservations that all radios know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wait(u8);

impl Wait {
    /// Nothing but AIFS.
    pub(super) const AIFS: Self = Self(0);
    /// EIFS: the frame that it followed had errors.
    pub(super) const EIFS: Self = Self(1);
    const NAV: u8 = 2;
    /// Number of waits.
    pub(super) const COUNT: usize = Self::NAV as usize + MAX_FRAMES;

    /// The NAV of the frame of this index, which others may not have received.
    pub(super) fn nav(frame: usize) -> Self {
        Self(u8::try_from(frame).map_or(u8::MAX, |frame| Self::NAV.saturating_add(frame)))
    }

    /// The index of the frame whose NAV it is.
    pub(super) fn frame(self) -> Option<usize> {
        self.0.checked_sub(Self::NAV).map(usize::from)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Effect of a collision on a radio.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Frames that it followed and lost.
    pub(super) broken: u64,
    pub(super) wait: Wait,
    pub(super) receiving: Span,
    pub(super) collided: Span,
    pub(super) busy: Span,
    /// How far its airtime extends beyond the last end: propagation delays may change the order.
    pub(super) ahead: Span,
}

impl<'a> Collision<'a> {
    /// The frames of a busy time, if all began within `together` of the first at every receiver and
    /// none ended before.
    pub(super) fn of(
        events: &'a [AirEvent],
        together: Span,
        max_delay: Span,
        reach: &'a Reach,
        decoders: &'a [Decoder],
    ) -> Option<Self> {
        let count = events.len() / 2;
        let (starts, ends) = events.split_at(count);
        if !(2..=MAX_FRAMES).contains(&count) {
            return None;
        }
        let signals =
            starts.iter().map(|event| if let AirEvent::Start(signal) = event { Some(signal) } else { None });
        let signals: Vec<&Signal> = signals.collect::<Option<_>>()?;
        if signals[count - 1].start + max_delay >= signals[0].start + together {
            return None;
        }
        let ended = |event: &AirEvent| {
            let AirEvent::End(signal) = event else { return None };
            let index = signals.iter().position(|other| other.number == signal.number)?;
            Some((index, signal.end))
        };
        let ends: Vec<(usize, Instant)> = ends.iter().map(ended).collect::<Option<_>>()?;
        let first_end = ends.first()?.1;
        let frame = |signal: &&'a Signal| CollidingFrame {
            signal,
            start: signal.start,
            from: signal.from,
            heard: reach.heard(signal.from),
            lost_ratio: signal.lost_ratio(first_end.since(signal.start).saturating_sub(max_delay), decoders),
        };
        Some(Self { frames: signals.iter().map(frame).collect(), ends, decoders })
    }

    /// Effect on the radio of this number and rank with this noise and preamble threshold; `None`,
    /// without a draw, if it may have received a request-to-send: that reservation may be undone.
    pub(super) fn at(
        &self,
        (own, rank): (u32, usize),
        (noise, preamble_ratio): (f64, f64),
        random: &mut Stream,
    ) -> Option<Outcome> {
        let mut outcome = Outcome::default();
        let mut paths = [(0.0, Span::ZERO); MAX_FRAMES];
        // The frame that it follows, with what power (0: none), and since when it does what it does.
        let (mut followed, mut old, mut began) = (0, 0.0, Instant::ZERO);
        let (mut energy, mut latest) = (0.0, Instant::ZERO);
        for (index, frame) in self.frames.iter().enumerate() {
            let heard = &frame.heard[rank - usize::from(own > frame.from)];
            let power = heard.power;
            let delay = Span::from_nanos(u64::from(heard.delay_ns));
            paths[index % MAX_FRAMES] = (power, delay);
            let before = latest;
            latest = latest.max(frame.start + delay);
            let rest = noise + energy;
            energy += power;
            let others = rest - old;
            if old >= power && old >= preamble_ratio * (others + power) {
                continue;
            }
            if old > 0.0 {
                outcome.broken += 1;
                outcome.receiving += before.since(began);
                outcome.collided += latest.since(before);
            } else if index > 0 {
                outcome.busy += latest.since(began);
            }
            began = latest;
            let stronger = power > old && power >= preamble_ratio * (others + old);
            (followed, old) = (index, if stronger { power } else { 0.0 });
        }
        let follows = old > 0.0;
        let mut received = false;
        let frame = &self.frames[followed];
        if follows && old > frame.lost_ratio * ((energy - old).max(0.0) + noise) {
            if frame.signal.kind == Kind::Rts {
                return None;
            }
            received = self.is_received(followed, &paths, energy, noise, random);
        }
        let mut at = latest;
        for &(index, end) in &self.ends {
            at = end + paths[index % MAX_FRAMES].1;
            let before = latest;
            latest = latest.max(at);
            if follows && index == followed {
                outcome.receiving += before.since(began);
                began = latest;
                let last = latest.since(before);
                if received {
                    outcome.receiving += last;
                    outcome.wait = Wait::nav(index);
                } else {
                    outcome.collided += last;
                    outcome.broken += 1;
                    outcome.wait = Wait::EIFS;
                }
            }
        }
        outcome.busy += latest.since(began);
        outcome.ahead = latest.since(at);
        Some(outcome)
    }

    /// True if the followed frame is received despite the others.
    fn is_received(
        &self,
        followed: usize,
        paths: &[(f64, Span); MAX_FRAMES],
        mut energy: f64,
        noise: f64,
        random: &mut Stream,
    ) -> bool {
        let (frame, (power, delay)) = (&self.frames[followed], paths[followed]);
        let ratio = |energy: f64| power / ((energy - power).max(0.0) + noise);
        let mut lock = frame.signal.lock(power, frame.start + delay);
        for &(index, end) in &self.ends {
            let (power, delay) = paths[index];
            lock.settle(end + delay, ratio(energy), self.decoders);
            if index == followed {
                break;
            }
            energy = (energy - power).max(0.0);
        }
        lock.survives(random)
    }
}
