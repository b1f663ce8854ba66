//! Effect of a collision on all members of a cluster, computed for several at a time.
//!
//! One array for each quantity, with one element for each member in the order of ranks: the loops
//! have no branches, so that the compiler processes several members with one instruction. They
//! follow the steps of [`crate::medium::radio::reception`] in the same order and with the same sums: which preamble
//! is followed, whether the frame is lost, how the airtime is counted. Values of members that are
//! awake are computed too, and have no meaning. Each loop is compiled twice, for any processor and
//! with AVX2, which is chosen at run time: both use the same operations on single values, so their
//! results are equal.
//!
//! Instants are nanoseconds since the start of the first frame of the collision.

use multiversion::multiversion;

use crate::medium::signal::Heard;
use crate::time::Span;

/// All bits if the condition holds, else none: in the loops below, conditions must not become
/// branches.
fn mask(condition: bool) -> i32 {
    -i32::from(condition)
}

fn select(mask: i32, yes: i32, no: i32) -> i32 {
    (yes & mask) | (no & !mask)
}

/// Effect of collisions on one listener.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::medium) struct Effect {
    /// Frames that it followed and lost.
    pub(in crate::medium) broken: u64,
    pub(in crate::medium) receiving: Span,
    pub(in crate::medium) collided: Span,
    pub(in crate::medium) busy: Span,
    /// How far its airtime extends beyond the end of the last busy time: propagation delays may
    /// change the order of arrivals.
    pub(in crate::medium) ahead: Span,
}

/// The members of a cluster as listeners.
#[derive(Debug)]
pub(in crate::medium) struct Listeners {
    /// Noise in mW, and the ratio that a preamble needs.
    noise: Vec<f64>,
    preamble_ratio: Vec<f64>,
    /// Power in mW and delay in ns of the path from each member, a row for each sender; 0 at the
    /// sender itself.
    powers: Vec<f64>,
    delays: Vec<i32>,

    // The present collision.
    /// Power of all frames, and of the frame that is followed: 0 if none is.
    energy: Vec<f64>,
    power: Vec<f64>,
    /// Its index; -1 if none is.
    followed: Vec<i32>,
    /// Masks of those who keep to their frame, and of those who lose it, when another begins.
    keeps: Vec<i32>,
    loses: Vec<i32>,
    /// When the listener began what it does, and the latest arrival of a start or an end.
    began: Vec<i32>,
    latest: Vec<i32>,
    broken: Vec<i32>,
    receiving: Vec<i32>,
    collided: Vec<i32>,
    /// Airtime from the event before the end of the frame that is followed to that end.
    last: Vec<i32>,

    // Sums over collisions, and the airtime ahead after the last one.
    all_broken: Vec<i64>,
    all_receiving: Vec<i64>,
    all_collided: Vec<i64>,
    all_busy: Vec<i64>,
    ahead: Vec<i32>,
}

impl Listeners {
    /// For so many listeners, which [`Self::add`] adds.
    pub(in crate::medium) fn new(count: usize) -> Self {
        let (values, numbers, sums) = (vec![0.0; count], vec![0; count], vec![0; count]);
        Self {
            noise: Vec::with_capacity(count),
            preamble_ratio: Vec::with_capacity(count),
            powers: Vec::with_capacity(count * count),
            delays: Vec::with_capacity(count * count),
            energy: values.clone(),
            power: values,
            followed: numbers.clone(),
            keeps: numbers.clone(),
            loses: numbers.clone(),
            began: numbers.clone(),
            latest: numbers.clone(),
            broken: numbers.clone(),
            receiving: numbers.clone(),
            collided: numbers.clone(),
            last: numbers.clone(),
            ahead: numbers,
            all_broken: sums.clone(),
            all_receiving: sums.clone(),
            all_collided: sums.clone(),
            all_busy: sums,
        }
    }

    /// Adds a listener with this noise in mW, preamble threshold and rank, and its paths to the
    /// others.
    pub(in crate::medium) fn add(&mut self, noise: f64, preamble_ratio: f64, rank: usize, heard: &[Heard]) {
        self.noise.push(noise);
        self.preamble_ratio.push(preamble_ratio);
        let (before, after) = heard.split_at(rank);
        let own = Heard { power: 0.0, delay_ns: 0, radio: u32::MAX, tuned: true };
        let paths = before.iter().chain([&own]).chain(after);
        self.powers.extend(paths.clone().map(|path| path.power));
        self.delays.extend(paths.map(|path| i32::try_from(path.delay_ns).unwrap_or(i32::MAX)));
    }

    /// The path between the members of these ranks: power in mW, and delay.
    pub(in crate::medium) fn path(&self, from: usize, to: usize) -> (f64, Span) {
        let place = from * self.noise.len() + to;
        let delay = u64::try_from(self.delays[place]).unwrap_or(0);
        (self.powers[place], Span::from_nanos(delay))
    }

    /// The listener's noise, and the power of all frames of the collision, in mW.
    pub(in crate::medium) fn levels(&self, rank: usize) -> (f64, f64) {
        (self.noise[rank], self.energy[rank])
    }

    /// Begins a collision with the frame of the member of rank `from`, which all follow.
    pub(in crate::medium) fn begin(&mut self, from: usize) {
        let count = self.noise.len();
        let row = from * count..(from + 1) * count;
        self.energy.copy_from_slice(&self.powers[row.clone()]);
        self.power.copy_from_slice(&self.powers[row.clone()]);
        self.began.copy_from_slice(&self.delays[row.clone()]);
        self.latest.copy_from_slice(&self.delays[row]);
        let Self { followed, broken, receiving, collided, .. } = self;
        [followed, broken, receiving, collided].into_iter().for_each(|values| values.fill(0));
    }

    /// The frame of this index, from the member of rank `from`, begins at `start`.
    pub(in crate::medium) fn start(&mut self, index: usize, from: usize, start: i32) {
        let count = self.noise.len();
        let row = from * count..(from + 1) * count;
        let Self { powers, noise, preamble_ratio, energy, power, followed, keeps, loses, .. } = self;
        let powers = &powers[row.clone()];
        follow(number(index), powers, noise, preamble_ratio, energy, power, followed, keeps, loses);
        let Self { delays, began, latest, broken, receiving, collided, .. } = self;
        book_start(start, &delays[row], keeps, loses, began, latest, broken, receiving, collided);
    }

    /// The frame of this index, from the member of rank `from`, ends at `end`. Its followers lose
    /// it, unless [`Self::receive`] corrects that.
    pub(in crate::medium) fn end(&mut self, index: usize, from: usize, end: i32) {
        let delays = &self.delays[from * self.noise.len()..];
        let Self { followed, began, latest, broken, receiving, collided, last, .. } = self;
        let index = number(index);
        book_end(index, end, delays, followed, began, latest, broken, receiving, collided, last);
    }

    /// The frame that this listener follows, if any: its index, its power, and that of the other
    /// frames with noise.
    pub(in crate::medium) fn follows(&self, rank: usize) -> Option<(usize, f64, f64)> {
        let (power, energy) = (self.power[rank], self.energy[rank]);
        let index = usize::try_from(self.followed[rank]).ok()?;
        Some((index, power, (energy - power).max(0.0) + self.noise[rank]))
    }

    /// The listener receives the frame that it follows.
    pub(in crate::medium) fn receive(&mut self, rank: usize) {
        let last = self.last[rank];
        self.broken[rank] -= 1;
        self.collided[rank] -= last;
        self.receiving[rank] += last;
    }

    /// Adds the present collision to the sums. The first frame was from the member of rank `first`,
    /// the last to end was from that of rank `last` and ended at `end`.
    pub(in crate::medium) fn sum_up(&mut self, first: usize, last: usize, end: i32) {
        let count = self.noise.len();
        let Self { delays, latest, broken, receiving, collided, ahead, .. } = self;
        lead(end, latest, &delays[last * count..], ahead);
        let busy = &mut self.all_busy;
        add_busy(&delays[first * count..], latest, receiving, collided, busy);
        add(broken, &mut self.all_broken);
        add(receiving, &mut self.all_receiving);
        add(collided, &mut self.all_collided);
    }

    /// Forgets the airtime ahead: a busy time without a collision ends.
    pub(in crate::medium) fn catch_up(&mut self) {
        self.ahead.fill(0);
    }

    /// Forgets the sums of one listener.
    pub(in crate::medium) fn reset(&mut self, rank: usize) {
        let Self { all_broken, all_receiving, all_collided, all_busy, .. } = self;
        for sums in [all_broken, all_receiving, all_collided, all_busy] {
            sums[rank] = 0;
        }
        self.ahead[rank] = 0;
    }

    /// The sums of one listener.
    pub(in crate::medium) fn effect(&self, rank: usize) -> Effect {
        let count = |sum: i64| u64::try_from(sum).unwrap_or(0);
        let span = |sums: &[i64]| Span::from_nanos(count(sums[rank]));
        Effect {
            broken: count(self.all_broken[rank]),
            receiving: span(&self.all_receiving),
            collided: span(&self.all_collided),
            busy: span(&self.all_busy),
            ahead: Span::from_nanos(count(i64::from(self.ahead[rank]))),
        }
    }
}

/// The number of a frame.
fn number(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// Another frame begins: which frame each listener follows.
#[multiversion(targets("x86_64+avx2"))]
#[allow(clippy::too_many_arguments)] // separate arrays that cannot overlap, for vector instructions
fn follow(
    index: i32,
    powers: &[f64],
    noise: &[f64],
    preamble_ratio: &[f64],
    energy: &mut [f64],
    followed_power: &mut [f64],
    followed: &mut [i32],
    keeps: &mut [i32],
    loses: &mut [i32],
) {
    let count = powers.len();
    let (noise, preamble_ratio) = (&noise[..count], &preamble_ratio[..count]);
    let (energy, followed_power) = (&mut energy[..count], &mut followed_power[..count]);
    let followed = &mut followed[..count];
    let (keeps, loses) = (&mut keeps[..count], &mut loses[..count]);
    for rank in 0..count {
        let (power, old, ratio) = (powers[rank], followed_power[rank], preamble_ratio[rank]);
        let others = noise[rank] + energy[rank] - old;
        energy[rank] += power;
        let kept = (old >= power) & (old >= ratio * (others + power));
        let stronger = (power > old) & (power >= ratio * (others + old));
        let turned = if stronger { power } else { 0.0 };
        followed_power[rank] = if kept { old } else { turned };
        let kept = mask(kept);
        followed[rank] = select(kept, followed[rank], index | !mask(stronger));
        keeps[rank] = kept;
        loses[rank] = mask(old > 0.0) & !kept;
    }
}

/// The frame begins at `start`: the airtime before its arrival.
#[multiversion(targets("x86_64+avx2"))]
#[allow(clippy::too_many_arguments)] // as above
fn book_start(
    start: i32,
    delays: &[i32],
    keeps: &[i32],
    loses: &[i32],
    began: &mut [i32],
    latest: &mut [i32],
    broken: &mut [i32],
    receiving: &mut [i32],
    collided: &mut [i32],
) {
    let count = delays.len();
    let (keeps, loses) = (&keeps[..count], &loses[..count]);
    let (began, latest) = (&mut began[..count], &mut latest[..count]);
    let (broken, receiving) = (&mut broken[..count], &mut receiving[..count]);
    let collided = &mut collided[..count];
    for rank in 0..count {
        let before = latest[rank];
        let now = before.max(start + delays[rank]);
        latest[rank] = now;
        broken[rank] -= loses[rank];
        receiving[rank] += (before - began[rank]) & loses[rank];
        collided[rank] += (now - before) & loses[rank];
        began[rank] = select(keeps[rank], began[rank], now);
    }
}

/// A frame ends at `end`: the airtime of those that follow it, as if they lost it.
#[multiversion(targets("x86_64+avx2"))]
#[allow(clippy::too_many_arguments)] // as above
fn book_end(
    index: i32,
    end: i32,
    delays: &[i32],
    followed: &[i32],
    began: &[i32],
    latest: &mut [i32],
    broken: &mut [i32],
    receiving: &mut [i32],
    collided: &mut [i32],
    last: &mut [i32],
) {
    let count = latest.len();
    let (delays, followed, began) = (&delays[..count], &followed[..count], &began[..count]);
    let (broken, receiving) = (&mut broken[..count], &mut receiving[..count]);
    let (collided, last) = (&mut collided[..count], &mut last[..count]);
    for rank in 0..count {
        let before = latest[rank];
        let now = before.max(end + delays[rank]);
        latest[rank] = now;
        let ends = mask(followed[rank] == index);
        broken[rank] -= ends;
        receiving[rank] += (before - began[rank]) & ends;
        collided[rank] += (now - before) & ends;
        last[rank] = select(ends, now - before, last[rank]);
    }
}

/// How far the latest arrival at each listener is after that of the frame that ends at `end`.
#[multiversion(targets("x86_64+avx2"))]
fn lead(end: i32, latest: &[i32], delays: &[i32], ahead: &mut [i32]) {
    for ((ahead, latest), delay) in ahead.iter_mut().zip(latest).zip(delays) {
        *ahead = latest - (end + delay);
    }
}

/// Adds the airtime since the first arrival that was spent otherwise than with a frame.
#[multiversion(targets("x86_64+avx2"))]
fn add_busy(arrived: &[i32], latest: &[i32], receiving: &[i32], collided: &[i32], sums: &mut [i64]) {
    let parts = receiving.iter().zip(collided);
    for (((sum, latest), arrived), (receiving, collided)) in
        sums.iter_mut().zip(latest).zip(arrived).zip(parts)
    {
        *sum += i64::from(latest - arrived - receiving - collided);
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn add(parts: &[i32], sums: &mut [i64]) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum += i64::from(*part);
    }
}
