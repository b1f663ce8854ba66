//! Random impairments of a wire: loss, duplication, corruption, reordering, jitter.
//!
//! Impairments apply after the queue, to each frame as it is sent: a lost frame has occupied the
//! wire like any other. The draws for each frame have a fixed order: loss; then, if it is not lost,
//! duplication, corruption, reordering, jitter. A disabled model draws nothing.

use crate::math::{self, float};
use crate::random::Stream;
use crate::settings::{Jitter, LinkSettings, Loss};

/// The random models of one direction of a link, and their random stream.
pub(crate) struct Impairments {
    stream: Stream,
    loss: Loss,
    /// State of the Gilbert-Elliott chain; the initial state is good.
    bad: bool,
    duplicate: f64,
    corrupt: f64,
    reorder: f64,
    jitter: Jitter,
    /// True if jitter may reorder frames.
    pub overtakes: bool,
    /// True if any model is enabled.
    pub any: bool,
}

/// Impairments of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub lost: bool,
    pub twice: bool,
    pub corrupt: bool,
    pub early: bool,
}

impl Fate {
    /// True if the frame is unimpaired.
    pub fn is_plain(self) -> bool {
        self == Self::default()
    }
}

impl Impairments {
    pub fn new(stream: Stream, settings: &LinkSettings) -> Self {
        let mut impairments = Self {
            stream,
            loss: Loss::None,
            bad: false,
            duplicate: 0.0,
            corrupt: 0.0,
            reorder: 0.0,
            jitter: Jitter::None,
            overtakes: false,
            any: false,
        };
        impairments.change(settings);
        impairments
    }

    /// Applies new settings. The random stream continues; the Gilbert-Elliott chain keeps its
    /// state.
    pub fn change(&mut self, settings: &LinkSettings) {
        self.loss = settings.loss.clone();
        self.bad &= matches!(self.loss, Loss::GilbertElliott { .. });
        self.duplicate = settings.duplicate;
        self.corrupt = settings.corrupt;
        self.reorder = settings.reorder;
        self.jitter = settings.jitter.prepared();
        self.overtakes = settings.jitter_reorders;
        let certain = self.duplicate == 0.0 && self.corrupt == 0.0 && self.reorder == 0.0;
        self.any = !(certain && self.loss == Loss::None && self.jitter == Jitter::None);
    }

    /// Draws the impairments of the next frame.
    pub fn fate(&mut self) -> Fate {
        if self.loses() {
            return Fate { lost: true, ..Fate::default() };
        }
        Fate {
            lost: false,
            twice: self.stream.chance(self.duplicate),
            corrupt: self.stream.chance(self.corrupt),
            early: self.stream.chance(self.reorder),
        }
    }

    /// Draws whether a duplicate is corrupted.
    pub fn corrupts(&mut self) -> bool {
        self.stream.chance(self.corrupt)
    }

    /// Draws the bit to flip in so many octets: index of the octet and mask.
    pub fn bit(&mut self, octets: u32) -> (usize, u8) {
        let bit = self.stream.below(u64::from(octets) * 8);
        #[allow(clippy::cast_possible_truncation)] // below the length of a buffer
        ((bit / 8) as usize, 1 << (bit % 8))
    }

    /// Draws from the loss model.
    ///
    /// Gilbert and Elliott: with `p` from good to bad and `r` from bad to good, the chain is bad
    /// for a share `p / (p + r)` of the frames, in bursts of `1 / r` frames in the mean, so that
    /// `(r * loss_good + p * loss_bad) / (p + r)` of all frames are lost (Gilbert, "Capacity of a
    /// burst-noise channel", 1960; Elliott, "Estimates of error rates for codes on burst-noise
    /// channels", 1963; both Bell System Technical Journal).
    fn loses(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Bernoulli { probability } => self.stream.chance(probability),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let change = if self.bad { bad_to_good } else { good_to_bad };
                self.bad ^= self.stream.chance(change);
                self.stream.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }

    /// Draws the jitter that is added to the delay, in nanoseconds; may be negative.
    pub fn variation(&mut self) -> i64 {
        self.jitter.draw(&mut self.stream)
    }
}

impl Jitter {
    /// The distribution with its table sorted, as [`Self::draw`] requires.
    pub(crate) fn prepared(&self) -> Self {
        let mut law = self.clone();
        if let Self::Table { values_ns } = &mut law {
            values_ns.sort_unstable();
        }
        law
    }

    /// Draws from the distribution, in nanoseconds; may be negative.
    ///
    /// The formulas are at [`Jitter`]. They use the mathematics library in Rust, not the machine's,
    /// so that the same seed gives the same nanoseconds everywhere.
    pub(crate) fn draw(&self, stream: &mut Stream) -> i64 {
        match self {
            Self::None => 0,
            Self::Uniform { spread_ns } => {
                let drawn = stream.below(2 * spread_ns + 1);
                signed(drawn) - signed(*spread_ns)
            }
            Self::Normal { sigma_ns } => nanos(stream.normal() * float(*sigma_ns)),
            Self::Pareto { scale_ns, shape } => {
                let u = 1.0 - stream.unit();
                nanos(float(*scale_ns) * (math::pow(u, -1.0 / shape) - 1.0))
            }
            Self::Exponential { mean_ns } => nanos(stream.exponential() * float(*mean_ns)),
            Self::Table { values_ns } => {
                let last = values_ns.len() - 1;
                let place = stream.unit() * float(last as u64);
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the table
                let index = place as usize;
                let (low, high) = (values_ns[index], values_ns[(index + 1).min(last)]);
                let share = place - float(index as u64);
                low + nanos(float(high.abs_diff(low)) * share)
            }
        }
    }
}

/// Rounds to whole nanoseconds; saturates at the limits of the type.
#[allow(clippy::cast_possible_truncation)] // the cast saturates
fn nanos(value: f64) -> i64 {
    value.round() as i64
}

#[allow(clippy::cast_possible_wrap)] // twice a day in nanoseconds is far below 2^63
fn signed(value: u64) -> i64 {
    value as i64
}
