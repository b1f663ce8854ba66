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
    /// Indices into `frames`, and the ends of these frames, ns.
    ends: Vec<(usize, u64)>,
    decoders: &'a [Decoder],
}

struct CollidingFrame<'a> {
    signal: &'a Signal,
    from: u32,
    /// Its start, ns.
    start: u64,
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

/// Effect of collisions on a radio; wait and airtime ahead are those of the last busy time.
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
            from: signal.from,
            start: signal.start.nanos(),
            heard: reach.heard(signal.from),
            lost_ratio: signal.lost_ratio(first_end.since(signal.start).saturating_sub(max_delay), decoders),
        };
        let ends = ends.into_iter().map(|(index, end)| (index, end.nanos())).collect();
        Some(Self { frames: signals.iter().map(frame).collect(), ends, decoders })
    }

    /// Adds the effect on the radio of this number and rank, with this noise and preamble threshold,
    /// to `sums`. False, without effect or draw, if it may have received a request-to-send: that
    /// reservation may be undone.
    ///
    /// The radio detects each of the frames in the absence of the others.
    #[inline(never)] // Fewer live variables: they fit in registers.
    pub(super) fn add_to(
        &self,
        sums: &mut Outcome,
        listener: (u32, usize),
        (noise, preamble_ratio): (f64, f64),
        random: &mut Stream,
    ) -> bool {
        let [first, others @ ..] = &self.frames[..] else { return false };
        let heard = first.heard(listener);
        let mut delays = [0; MAX_FRAMES];
        delays[0] = heard.delay_ns;
        let arrived = first.start + u64::from(heard.delay_ns);
        // The frame that it follows, with what power (0: none), and since when it does what it does.
        let (mut followed, mut old, mut energy) = (0, heard.power, heard.power);
        let (mut began, mut latest) = (arrived, arrived);
        let (mut broken, mut receiving, mut collided) = (0, 0, 0);
        for (index, frame) in (1..).zip(others) {
            let &Heard { power, delay_ns, .. } = frame.heard(listener);
            delays[index % MAX_FRAMES] = delay_ns;
            let before = latest;
            latest = latest.max(frame.start + u64::from(delay_ns));
            let others = noise + energy - old;
            energy += power;
            if old >= power && old >= preamble_ratio * (others + power) {
                continue;
            }
            if old > 0.0 {
                broken += 1;
                receiving += before - began;
                collided += latest - before;
            }
            began = latest;
            let stronger = power > old && power >= preamble_ratio * (others + old);
            (followed, old) = (index, if stronger { power } else { 0.0 });
        }
        // The ends of the frames, and of the one that it follows.
        let (mut last, mut over) = (latest, (latest, latest));
        for &(index, end) in &self.ends {
            last = end + u64::from(delays[index % MAX_FRAMES]);
            let before = latest;
            latest = latest.max(last);
            if index == followed {
                over = (before, latest);
            }
        }
        let mut wait = Wait::AIFS;
        if old > 0.0 {
            let frame = &self.frames[followed];
            let mut received = false;
            if old > frame.lost_ratio * ((energy - old).max(0.0) + noise) {
                if frame.signal.kind == Kind::Rts {
                    return false;
                }
                received = self.is_received(followed, listener, energy, noise, random);
            }
            receiving += over.0 - began;
            if received {
                receiving += over.1 - over.0;
                wait = Wait::nav(followed);
            } else {
                collided += over.1 - over.0;
                broken += 1;
                wait = Wait::EIFS;
            }
        }
        sums.broken += broken;
        sums.receiving += Span::from_nanos(receiving);
        sums.collided += Span::from_nanos(collided);
        sums.busy += Span::from_nanos(latest - arrived - receiving - collided);
        (sums.wait, sums.ahead) = (wait, Span::from_nanos(latest - last));
        true
    }

    /// True if the followed frame is received despite the others.
    #[inline(never)]
    fn is_received(
        &self,
        followed: usize,
        listener: (u32, usize),
        mut energy: f64,
        noise: f64,
        random: &mut Stream,
    ) -> bool {
        let frame = &self.frames[followed];
        let heard = frame.heard(listener);
        let ratio = |energy: f64| heard.power / ((energy - heard.power).max(0.0) + noise);
        let mut lock = frame.signal.lock(heard.power, Signal::arrival(heard, frame.signal.start));
        for &(index, end) in &self.ends {
            let other = self.frames[index].heard(listener);
            lock.settle(Signal::arrival(other, Instant::from_nanos(end)), ratio(energy), self.decoders);
            if index == followed {
                break;
            }
            energy = (energy - other.power).max(0.0);
        }
        lock.survives(random)
    }
}

impl CollidingFrame<'_> {
    /// The path to the radio of this number and rank.
    #[inline]
    fn heard(&self, (own, rank): (u32, usize)) -> &Heard {
        &self.heard[rank - usize::from(own > self.from)]
    }
}
