//! Collisions of simultaneous frames, evaluated for radios that only listened.
//!
//! In a busy cell the most frequent event after a single frame: several frames begin in the same
//! slot and all radios receive all of them. [`super::listeners`] computes which frame each of them
//! follows, and for how long; here is decided whether that frame survives.

use crate::medium::cluster::gap::{Common, MAX_FRAMES, Wait};
use crate::medium::cluster::listeners::Listeners;
use crate::medium::error::Decoder;
use crate::medium::radio::Radio;
use crate::medium::signal::{AirEvent, Signal};
use crate::medium::types::Kind;
use crate::random::Stream;
use crate::time::Instant;

/// Longest collision in nanoseconds, with its propagation delays far below the range of an `i32`.
const LONGEST: i32 = 1_000_000_000;

/// Simultaneous frames, in the order of their start and of their end.
pub(in crate::medium) struct Collision<'a> {
    frames: Vec<CollidingFrame<'a>>,
    /// Indices into `frames`, and the ends of these frames.
    ends: Vec<(usize, Instant)>,
    decoders: &'a [Decoder],
}

struct CollidingFrame<'a> {
    signal: &'a Signal,
    /// Rank of its sender.
    from: usize,
    /// Up to this ratio to the others it is certainly lost before the first of them ends.
    lost_ratio: f64,
}

impl Signal {
    /// True if this frame begins within the detection time of an earlier one at every member.
    pub(in crate::medium) fn joins(&self, first: &Self, common: &Common) -> bool {
        self.start + common.max_delay < first.start + common.detect
    }
}

impl<'a> Collision<'a> {
    /// The frames of a busy time, if all began together with the first and none ended before. So
    /// every member detects all preambles, and finds the channel busy until the last frame ends.
    /// `rank` returns the rank of a radio.
    pub(in crate::medium) fn of(
        events: &'a [AirEvent],
        common: &Common,
        rank: impl Fn(u32) -> usize,
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
        if !signals[count - 1].joins(signals[0], common) {
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
            from: rank(signal.from),
            lost_ratio: signal
                .lost_ratio(first_end.since(signal.start).saturating_sub(common.max_delay), decoders),
        };
        let collision = Self { frames: signals.iter().map(frame).collect(), ends, decoders };
        let short = collision.ends.iter().all(|&(_, end)| collision.since_start(end) < LONGEST);
        short.then_some(collision)
    }

    /// Nanoseconds since the first frame began.
    fn since_start(&self, at: Instant) -> i32 {
        i32::try_from(at.since(self.frames[0].signal.start).nanos()).unwrap_or(i32::MAX)
    }

    /// Computes what the listeners follow, and their airtime.
    pub(in crate::medium) fn evaluate(&self, listeners: &mut Listeners) {
        listeners.begin(self.frames[0].from);
        for (index, frame) in (0..).zip(&self.frames).skip(1) {
            listeners.start(index, frame.from, self.since_start(frame.signal.start));
        }
        for &(index, end) in &self.ends {
            listeners.end(index, self.frames[index].from, self.since_start(end));
        }
    }

    /// What the listener of this rank waits for afterwards; `None`, without a draw from the stream
    /// of `radio`, if it may have received a request-to-send: that reservation may be undone.
    pub(in crate::medium) fn wait(
        &self,
        rank: usize,
        listeners: &mut Listeners,
        radio: &mut Radio,
    ) -> Option<Wait> {
        let Some((followed, power, others)) = listeners.follows(rank) else { return Some(Wait::AIFS) };
        let frame = &self.frames[followed];
        if power <= frame.lost_ratio * others {
            return Some(Wait::EIFS);
        }
        if frame.signal.kind == Kind::Rts {
            return None;
        }
        Some(self.outcome(followed, rank, listeners, &mut radio.random))
    }

    /// What the listener waits for after the frame that it follows and may have received.
    #[cold]
    fn outcome(&self, followed: usize, rank: usize, listeners: &mut Listeners, random: &mut Stream) -> Wait {
        let frame = &self.frames[followed];
        let (noise, mut energy) = listeners.levels(rank);
        let (power, delay) = listeners.path(frame.from, rank);
        let ratio = |energy: f64| power / ((energy - power).max(0.0) + noise);
        let mut lock = frame.signal.lock(power, frame.signal.start + delay);
        // The ratio rises with each end.
        let certain = frame.signal.is_certain(ratio(energy), self.decoders);
        for &(index, end) in self.ends.iter().filter(|_| !certain) {
            let (power, delay) = listeners.path(self.frames[index].from, rank);
            lock.settle(end + delay, ratio(energy), self.decoders);
            if index == followed {
                break;
            }
            energy = (energy - power).max(0.0);
        }
        if !lock.survives(random) {
            return Wait::EIFS;
        }
        listeners.receive(rank);
        Wait::nav(followed)
    }

    /// Adds the airtime to the listeners' sums.
    pub(in crate::medium) fn sum_up(&self, listeners: &mut Listeners) {
        let Some(&(last, end)) = self.ends.last() else { return };
        listeners.sum_up(self.frames[0].from, self.frames[last].from, self.since_start(end));
    }
}
