//! Settings of links, queues and switches, in plain numbers.
//!
//! Scenario YAML and Python use the same names; names include the unit. [`LinkSettings::check`] and
//! its counterparts check every value once before it reaches an engine, and define the ranges.

use serde::{Deserialize, Serialize};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSettings {
    /// Transmission rate.
    pub rate: Rate,
    /// Propagation delay in nanoseconds.
    pub delay_ns: u64,
    /// Variation of the delay. It is applied after serialization and represents a path of varying
    /// length, so frames may arrive closer together than the rate alone would allow.
    pub jitter: Jitter,
    /// Whether jitter may reorder frames.
    pub jitter_reorders: bool,
    /// Random loss.
    pub loss: Loss,
    /// Probability that a frame that is not lost is sent twice; the second copy takes its own time
    /// on the wire.
    pub duplicate: f64,
    /// Probability that one bit of a frame, its Ethernet header included, is flipped. The frame is
    /// still delivered: no frame check sequence detects the error.
    pub corrupt: f64,
    /// Probability that a frame skips the propagation delay and so overtakes the frames before it.
    pub reorder: f64,
    /// Largest layer-3 packet in octets (68 to 9216); a larger one is dropped.
    pub mtu: u32,
    /// Layer whose octets the rate counts.
    pub counts: Counts,
    /// Octets charged on the wire for each frame in addition to the frame: preamble 8, frame check
    /// sequence 4, inter-frame gap 12 on Ethernet. If the rate counts packets, in addition to the packet.
    pub overhead: u32,
    /// Frames shorter than this, without frame check sequence, are charged as padded (60 on
    /// Ethernet).
    pub shortest: u32,
    /// The transmit queue.
    pub queue: QueueSettings,
    /// Drops frames beyond a rate before they reach the queue.
    pub policer: Option<Policer>,
    /// Whether the frames of a super-frame are timed one by one or carried together.
    pub segments: Segments,
    /// Whether time lost by a late host is recovered.
    pub late: Late,
    /// Pause of the sender's adapter after each frame, in nanoseconds, in which it fetches the next
    /// descriptor. Back to back, one frame takes `octets * 8 / rate + gap`.
    pub gap_ns: u64,
    /// Latency added by the equipment at the far end.
    pub receiver: Receiver,
    /// Maximum time in nanoseconds for which consecutive segments of a super-frame are gathered at
    /// a port, to be handed over together; each keeps its own arrival time. Up to five times as
    /// long, or ten times on a busy host ([`crate::Engine::set_host_busy`]), but at most an eighth of
    /// the time for which the link has been busy. 0 hands each one over alone.
    pub coalesce_ns: u64,
    /// Carrier of the interface at the far end while the link is down.
    pub carrier: Carrier,
}

/// Layer whose octets a rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// The frame, padded to [`LinkSettings::shortest`].
    #[default]
    Frame,
    /// The packet of layer 3: the frame without the 14 octets of its Ethernet header and without padding
    /// (a VLAN tag counts).
    Packet,
}

/// A token bucket that drops what does not conform (RFC 2697 with one rate and two colours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate in bit/s, of frames without the overhead of the wire.
    pub bits_per_second: u64,
    /// Octets of the bucket.
    pub burst_octets: u64,
}

/// Carrier of a wire's receiving interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// The interface loses its carrier while the link is down.
    #[default]
    Follow,
    /// The interface keeps its carrier: the link fails beyond the equipment that it is connected
    /// to.
    Keep,
}

/// Behaviour of a wire when the host delivers its frames late, on the wall clock; a stepped engine
/// is never late. The mechanism is in `link/pacing.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// Lateness of up to 60 us is recovered at once, up to 1 ms at 0.25 %: the mean rate is kept,
    /// but single frames may follow each other faster than the wire allows.
    #[default]
    CatchUp,
    /// The interval between two frames is never shorter than the time of the frame's own octets.
    /// Lost time is not recovered, except for up to half of the overhead (12 of 24 octets on
    /// Ethernet, its gap), up to 0.3 ms.
    Slip,
}

/// A model of the equipment at the end of a wire. All parts are off by default. A frame is seen at
/// `ceil(m + s)`: `m` is the interrupt that signals it, `s` the host's service time and `ceil` its
/// clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Receiver {
    /// Forwarding latency of a store-and-forward switch, from the last bit in to the first bit out
    /// (RFC 1242, section 3.8), in nanoseconds; a few microseconds in wire-speed switches. It can
    /// also represent any constant latency of an endpoint.
    pub latency_ns: u64,
    /// Interrupt moderation: the minimum time between two receive interrupts, in nanoseconds. A
    /// frame that arrives later than that after an interrupt raises one at once; earlier frames
    /// wait for one common interrupt: `m = max(arrival, last interrupt + moderation)`. The
    /// throttling register of Intel's gigabit adapters works like this (82574 data sheet, 7.4.4:
    /// steps of 256 ns; e1000e's `InterruptThrottleRate`, 4000 to 20000 interrupts/s by default,
    /// which are 250 to 50 us).
    pub moderation_ns: u64,
    /// Time from the interrupt to the program, drawn for each frame; negative draws count as zero,
    /// and frames keep their order.
    pub service: Jitter,
    /// Granularity of the host's clock, in nanoseconds: arrivals are seen at its ticks only. 1 ms
    /// to 15.625 ms where time stamps come from a timer interrupt.
    pub tick_ns: u64,
}

/// Transmission rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rate {
    /// Serialization takes no time.
    Unlimited,
    /// Constant, in bit/s.
    BitsPerSecond(u64),
    /// A token bucket: bursts leave at the peak rate, the rest at the mean rate.
    TokenBucket {
        /// Rate in bit/s at which tokens come.
        bits_per_second: u64,
        /// Octets of the bucket. A frame takes as many as it is charged on the wire.
        burst_octets: u64,
        /// Rate in bit/s of a burst; without it a burst leaves at once.
        peak_bits_per_second: Option<u64>,
    },
    /// A trace as in mahimahi: each entry is an instant, in nanoseconds after the start of the
    /// period, at which `octets` octets may leave; after `period_ns` the trace repeats.
    Trace {
        /// Instants in nanoseconds, ascending.
        opportunities_ns: Vec<u64>,
        /// Length of the trace; at least the last instant.
        period_ns: u64,
        /// Octets that one opportunity carries. A frame is charged as on any other link; it leaves
        /// with the opportunity that carries its last octet. The unused part of an opportunity goes to
        /// the next frame only if that frame is already waiting. Mahimahi's 1504 are a packet of 1500
        /// and 4 of the header of its tunnel: [`Counts::Packet`] with an overhead of 4.
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
    /// Exponential with mean `mean_ns`: the sum of independent random causes of delay.
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
    /// Independent for each frame.
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
    /// Maximum number of queued frames; `None` is no limit.
    pub packets: Option<u32>,
    /// Maximum number of queued octets.
    pub octets: Option<u64>,
    /// Maximum time to send the queued frames at the present rate, in nanoseconds.
    pub time_ns: Option<u64>,
    /// Queue management: decides which frames are dropped or marked, and when.
    pub discipline: Discipline,
    /// Mark packets of ECN-capable flows (RFC 3168) where the discipline would drop early; for
    /// drop-tail, mark when the queue is more than half full. RED drops from `max_octets` on, as
    /// RFC 3168 section 7 recommends, unless its `marks_above` is set.
    pub ecn: bool,
}

fn typical_packet() -> u64 {
    500
}

/// Queue management.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Discipline {
    /// Drop frames that do not fit.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993), in octets.
    Red {
        /// Mean queue in octets below which nothing is dropped.
        min_octets: u64,
        /// Mean queue in octets from which everything is dropped, or marked if `marks_above`.
        max_octets: u64,
        /// Drop probability just below `max_octets`.
        probability: f64,
        /// Weight of the newest sample in the mean (0.002 in the paper).
        weight: f64,
        /// Octets of the typical packet, by which idle time is measured (500 in the paper).
        #[serde(default = "typical_packet")]
        packet_octets: u64,
        /// Mark ECN-capable packets from `max_octets` on too, as Linux does unless told to drop
        /// (`harddrop` of tc-red(8)). Without effect unless `ecn` is set.
        #[serde(default)]
        marks_above: bool,
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
    /// Proportional integral controller enhanced (RFC 8033).
    Pie {
        /// Delay to be reached in nanoseconds (15 ms in the RFC).
        target_ns: u64,
        /// Time between two updates of the probability in nanoseconds (15 ms in the RFC).
        update_ns: u64,
        /// Time in nanoseconds for which a burst passes (150 ms in the RFC).
        burst_ns: u64,
        /// Weight of the deviation from the target, per second (0.125 in the RFC).
        alpha: f64,
        /// Weight of the trend, per second (1.25 in the RFC).
        beta: f64,
    },
    /// Step marking: ECN-capable packets that would make the queue longer than a threshold are marked,
    /// by its present length, as in DCTCP (RFC 8257, section 3.1). Others are queued up to the limits.
    Step {
        /// Threshold in frames.
        packets: Option<u64>,
        /// Threshold in octets.
        octets: Option<u64>,
        /// Threshold in time at the present rate, in nanoseconds.
        time_ns: Option<u64>,
    },
    /// Dual-queue coupled active queue management (RFC 9332): packets with ECT(1) or CE have a queue of
    /// their own. ECN-capable packets are marked, whatever `ecn` says.
    #[serde(rename = "dualpi2")]
    DualPi2 {
        /// Delay of the classic queue to be reached, in nanoseconds (15 ms in the RFC).
        target_ns: u64,
        /// Time between two updates of the probability, in nanoseconds (15 ms in the RFC).
        update_ns: u64,
        /// Weight of the deviation from the target, per second (0.15 in the RFC).
        alpha: f64,
        /// Weight of the trend, per second (3 in the RFC).
        beta: f64,
        /// Coupling factor k from the base probability to the low-latency queue (2 in the RFC).
        coupling: f64,
        /// Time in the low-latency queue from which packets are marked, in nanoseconds (800 us in the RFC).
        step_ns: u64,
        /// Further time up to which the share of marked ones grows to 1, in nanoseconds (400 us in the RFC).
        ramp_ns: u64,
        /// Least share of the octets of the classic queue while both wait (1/16 in the RFC).
        classic: f64,
    },
    /// Common Applications Kept Enhanced (Høiland-Jørgensen, Täht and Morton 2018). ECN-capable packets are
    /// marked, whatever `ecn` says.
    Cake {
        /// Acceptable standing delay in nanoseconds (5 ms in Linux); at least 1.5 full frames.
        target_ns: u64,
        /// Sliding window in nanoseconds, the usual round-trip time (100 ms in Linux).
        interval_ns: u64,
        /// What shares the wire alike before flows do.
        isolation: CakeIsolation,
        /// Classes by DSCP.
        tins: CakeTins,
    },
    /// Classes by DSCP, served by strict priority in this order.
    Priority {
        /// The classes; the last one has all packets that no other names.
        classes: Vec<Class>,
    },
    /// Classes by DSCP, served by deficit round robin (Shreedhar and Varghese 1996).
    Drr {
        /// The classes; the last one has all packets that no other names.
        classes: Vec<Class>,
    },
}

/// Whose number of busy flows divides a flow's quantum in a `Cake` queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CakeIsolation {
    /// Nobody's: flows share alike.
    Flows,
    /// The source host's.
    DualSrchost,
    /// The destination host's.
    DualDsthost,
    /// That of the two that has more.
    TripleIsolate,
}

/// The classes of a `Cake` queue by DSCP, as tc-cake(8) lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CakeTins {
    /// One for all.
    Besteffort,
    /// Best effort, bulk (1/16 of the rate), voice (1/4).
    Diffserv3,
    /// Best effort, bulk (1/16 of the rate), video (1/2), voice (1/4).
    Diffserv4,
}

/// A class of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its DSCPs, 0 to 63.
    #[serde(default)]
    pub dscp: Vec<u8>,
    /// Octets in each round; only deficit round robin reads it.
    #[serde(default = "full_frame")]
    pub quantum: u32,
    /// Maximum number of its frames in the queue, beside the limits of the whole queue.
    #[serde(default)]
    pub packets: Option<u32>,
}

fn full_frame() -> u32 {
    1514
}

/// Treatment of super-frames on a link with a rate. A link without one keeps them together in both
/// cases, as long as their frames are treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segments {
    /// Each segment is timed and delivered separately.
    Timed,
    /// Segments stay together, with one event for all: a switch or a transit port gets the
    /// super-frame when its first segment has arrived, an end port when its last one has. The wire
    /// is charged for each segment, and loss, corruption, duplication, marks and queue limits still
    /// apply to single segments; jitter is drawn once for the super-frame.
    ///
    /// The error in time is at most the serialization time of the super-frame on the slowest link
    /// of its path: a router may forward its later segments that much too early, an end receives
    /// its earlier ones that much too late, and a frame behind it waits for the whole super-frame
    /// instead of its turn. 64 kB at 100 Mbit/s are 5.4 ms.
    Carried,
}

/// A switch or hub inside the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SwitchSettings {
    /// IEEE 802.1D learning switch.
    Switch {
        /// Lifetime of an address that is not seen again, in nanoseconds (300 s in the standard).
        ageing_ns: u64,
        /// Maximum number of addresses in the table.
        addresses: u32,
    },
    /// Shortest path bridging with equal-cost paths (IEEE 802.1aq and 802.1Qbp): all such switches
    /// that links join form one area.
    ShortestPath {
        /// As for a learning switch; for addresses that entered the area at this switch.
        ageing_ns: u64,
        /// Maximum number of these addresses.
        addresses: u32,
        /// Time from a change of a link between two switches of the area to new paths, in
        /// nanoseconds: detection, IS-IS and the computation. The same in the whole area.
        convergence_ns: u64,
    },
    /// Repeats every frame on every other link.
    Hub,
}

/// The virtual LANs (IEEE 802.1Q) that a link carries at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum VlanSettings {
    /// One VLAN, untagged.
    Access {
        /// VLAN number, from 1 to 4094.
        vlan: u16,
    },
    /// Several VLANs, tagged.
    Trunk {
        /// VLAN numbers.
        allowed: Vec<u16>,
        /// The untagged (native) VLAN, if any; it need not be in `allowed`.
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
            counts: Counts::Frame,
            overhead: 24,
            shortest: 60,
            queue: QueueSettings::default(),
            policer: None,
            segments: Segments::Timed,
            late: Late::default(),
            gap_ns: 0,
            receiver: Receiver::default(),
            coalesce_ns: 200_000,
            carrier: Carrier::default(),
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
