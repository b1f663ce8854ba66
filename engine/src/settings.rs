//! What a scenario can say about links, queues and switches, in plain numbers.
//!
//! The same words stand in the scenario's YAML and in Python; units are in the names. Everything
//! is checked once, by [`LinkSettings::check`] and its like, before it reaches an engine; the
//! ranges stand there.

use serde::{Deserialize, Serialize};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSettings {
    /// How fast bits leave.
    pub rate: Rate,
    /// Propagation delay in nanoseconds.
    pub delay_ns: u64,
    /// Variation of the delay. It comes after the wire and stands for a path whose length
    /// varies, so frames may arrive closer together than the rate alone would let them.
    pub jitter: Jitter,
    /// Whether jitter may let a later frame overtake an earlier one.
    pub jitter_reorders: bool,
    /// Random loss.
    pub loss: Loss,
    /// Probability that a frame that is not lost is sent twice; the second copy takes its own
    /// time on the wire.
    pub duplicate: f64,
    /// Probability that one bit of a frame, its Ethernet header included, is flipped. It is
    /// delivered all the same: there is no frame check sequence to find it out.
    pub corrupt: f64,
    /// Probability that a frame skips the propagation delay and so overtakes those before it.
    pub reorder: f64,
    /// Largest layer-3 packet in octets (68 to 9216); a larger one is dropped.
    pub mtu: u32,
    /// Octets charged on the wire for each frame beside the frame itself: preamble 8, frame check sequence 4,
    /// inter-frame gap 12 on Ethernet.
    pub overhead: u32,
    /// Frames shorter than this, without frame check sequence, are charged as padded (60 on Ethernet).
    pub shortest: u32,
    /// Where frames wait for the wire.
    pub queue: QueueSettings,
    /// Whether the frames of a super-frame are timed one by one or carried together.
    pub segments: Segments,
    /// What becomes of time that the host was late.
    pub late: Late,
    /// How long the sender's adapter rests after each frame, in nanoseconds: it fetches the next
    /// one's description meanwhile. Back to back it sends `octets * 8 / rate + gap`.
    pub gap_ns: u64,
    /// What the equipment at the far end adds.
    pub receiver: Receiver,
}

/// What a wire does when the host hands its frames over late, on the wall clock; a stepped engine
/// is never late. The mechanism is in `link/pacing.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// Lateness of up to 60 us is made up for at once, up to 1 ms at 0.25 %: the mean rate
    /// is kept, single frames may follow each other faster than the wire.
    #[default]
    CatchUp,
    /// A frame is never handed over sooner behind the one before it than its own octets take: what
    /// was lost stays lost, but for what fits into half of the overhead (12 of 24 octets on Ethernet, its
    /// gap), up to 0.3 ms.
    Slip,
}

/// A model of the equipment that a wire ends in, beyond the wire itself. All of it is off by
/// default. A frame is seen at `ceil(m + s)`: `m` is the interrupt that brings it, `s` the host's
/// service and `ceil` its clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Receiver {
    /// Forwarding latency of a store-and-forward switch, from the last bit in to the first bit
    /// out (RFC 1242, section 3.8), in nanoseconds; some microseconds in wire-speed switches. It may
    /// stand for any constant latency of an endpoint too.
    pub latency_ns: u64,
    /// Interrupt moderation: the least time between two receive interrupts, in nanoseconds. A
    /// frame that comes later than that after an interrupt raises one at once; earlier ones wait and come
    /// together: `m = max(arrival, last interrupt + moderation)`. So works the throttling register of Intel's
    /// gigabit adapters (82574 data sheet, 7.4.4: steps of 256 ns; e1000e's `InterruptThrottleRate`, 4000 to 20000
    /// interrupts/s by default, which are 250 to 50 us).
    pub moderation_ns: u64,
    /// How long the host takes from the interrupt to the program, drawn for each frame; draws
    /// below zero count as zero, and frames keep their order.
    pub service: Jitter,
    /// Granularity of the host's clock, in nanoseconds: nothing is seen between its ticks. 1 ms to
    /// 15.625 ms where stamps come from a timer interrupt.
    pub tick_ns: u64,
}

/// How fast bits leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rate {
    /// No serialization time at all.
    Unlimited,
    /// Constant, in bit/s.
    BitsPerSecond(u64),
    /// A trace in mahimahi's manner: each entry is an instant, in nanoseconds after the start of
    /// the period, at which `octets` octets may leave; after `period_ns` it starts again.
    Trace {
        /// Instants in nanoseconds, ascending.
        opportunities_ns: Vec<u64>,
        /// Length of the trace; at least the last instant.
        period_ns: u64,
        /// Octets that one opportunity carries. A frame is charged as on any other link, with
        /// its overhead; it leaves with the opportunity that carries its last octet, and what an
        /// opportunity has over goes to the next frame only if that is already waiting. One
        /// 1500-octet packet an opportunity, which is what mahimahi means by its 1504, is
        /// 1514 octets and the overhead here.
        octets: u32,
    },
}

/// Variation of the propagation delay, added to it; the sum is never below zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Jitter {
    /// None.
    None,
    /// Uniform in plus or minus `spread_ns`.
    Uniform {
        /// Half width in nanoseconds.
        spread_ns: u64,
    },
    /// Normal with mean 0 and standard deviation `sigma_ns`.
    Normal {
        /// Standard deviation in nanoseconds.
        sigma_ns: u64,
    },
    /// Pareto: `scale_ns * (u^(-1/shape) - 1)` with `u` uniform in (0, 1]; mean
    /// `scale_ns / (shape - 1)`.
    Pareto {
        /// Scale in nanoseconds.
        scale_ns: u64,
        /// Shape, above 1 so that the mean exists.
        shape: f64,
    },
    /// Exponential with mean `mean_ns`: what independent causes of delay that come at random make.
    Exponential {
        /// Mean in nanoseconds.
        mean_ns: u64,
    },
    /// Drawn from measured values, linear between neighbours of the sorted table.
    Table {
        /// Values in nanoseconds, may be negative.
        values_ns: Vec<i64>,
    },
}

/// Random loss of frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// None.
    None,
    /// Each frame for itself.
    Bernoulli {
        /// Probability of loss.
        probability: f64,
    },
    /// Gilbert (1960) and Elliott (1963): a good and a bad state with a loss probability each;
    /// the state may change before each frame.
    GilbertElliott {
        /// Probability to go from good to bad.
        good_to_bad: f64,
        /// Probability to go from bad to good.
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

/// A queue: its limits and the discipline that manages it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSettings {
    /// Most frames that may wait; none is no limit.
    pub packets: Option<u32>,
    /// Most octets that may wait.
    pub octets: Option<u64>,
    /// Longest time that the frames in it may take to leave at the present rate, in nanoseconds.
    pub time_ns: Option<u64>,
    /// What is dropped or marked, and when.
    pub discipline: Discipline,
    /// Mark packets of ECN-capable flows (RFC 3168) where the discipline would drop early; for
    /// drop-tail, mark when the queue is more than half full. RED still drops from `max_octets`
    /// on, as RFC 3168 section 7 wants it.
    pub ecn: bool,
}

/// Queue management.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Discipline {
    /// Drop what does not fit.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993), in octets.
    Red {
        /// Mean queue in octets below which nothing is dropped.
        min_octets: u64,
        /// Mean queue in octets from which everything is dropped.
        max_octets: u64,
        /// Drop probability just below `max_octets`.
        probability: f64,
        /// Weight of the newest sample in the mean (0.002 in the paper).
        weight: f64,
    },
    /// Controlled delay (RFC 8289).
    #[serde(rename = "codel")]
    CoDel {
        /// Acceptable standing delay in nanoseconds (5 ms in the RFC).
        target_ns: u64,
        /// Sliding window in nanoseconds (100 ms in the RFC).
        interval_ns: u64,
    },
    /// Flow queues with `CoDel` in each (RFC 8290).
    #[serde(rename = "fq-codel")]
    FqCoDel {
        /// As in `CoDel`.
        target_ns: u64,
        /// As in `CoDel`.
        interval_ns: u64,
        /// Octets a flow may send in its turn (1514 in the RFC).
        quantum: u32,
        /// Number of flow queues (1024 in the RFC).
        flows: u32,
    },
}

/// What becomes of super-frames on a link with a rate. A link without one keeps them together
/// either way, as long as their frames meet one fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segments {
    /// Every segment is timed and delivered on its own.
    Timed,
    /// They stay together, at one event for all: a switch or a transit port gets the whole when
    /// its first segment has arrived, an end port when its last one has. The wire is charged for
    /// each segment, and loss, corruption, duplication, marks and queue limits still fall on
    /// single segments; jitter is drawn once for the whole.
    ///
    /// The error in time is at most the serialization time of the super-frame on the slowest link
    /// of its path: a router may pass its later segments on that much too early, an end gets its
    /// earlier ones that much too late, and a frame behind it waits for the whole rather than for
    /// its turn. 64 kB at 100 Mbit/s are 5.4 ms.
    Carried,
}

/// A switch or hub inside the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SwitchSettings {
    /// IEEE 802.1D learning switch.
    Switch {
        /// How long an address is remembered without being seen, in nanoseconds (300 s in the standard).
        ageing_ns: u64,
        /// Most addresses remembered.
        addresses: u32,
    },
    /// Repeats every frame on every other link.
    Hub,
}

/// Which virtual LANs (IEEE 802.1Q) a link carries at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum VlanSettings {
    /// One, without tags.
    Access {
        /// Its number, from 1 to 4094.
        vlan: u16,
    },
    /// Several, with tags.
    Trunk {
        /// Their numbers.
        allowed: Vec<u16>,
        /// The one that has no tags, if there is one; it need not be among the others.
        native: Option<u16>,
    },
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            rate: Rate::Unlimited,
            delay_ns: 0,
            jitter: Jitter::None,
            jitter_reorders: false,
            loss: Loss::None,
            duplicate: 0.0,
            corrupt: 0.0,
            reorder: 0.0,
            mtu: 9216,
            overhead: 24,
            shortest: 60,
            queue: QueueSettings::default(),
            segments: Segments::Timed,
            late: Late::default(),
            gap_ns: 0,
            receiver: Receiver::default(),
        }
    }
}

impl Default for Receiver {
    fn default() -> Self {
        Self { latency_ns: 0, moderation_ns: 0, service: Jitter::None, tick_ns: 0 }
    }
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            packets: Some(1000),
            octets: None,
            time_ns: None,
            discipline: Discipline::DropTail,
            ecn: false,
        }
    }
}
