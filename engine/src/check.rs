//! The allowed ranges of all settings. Settings that pass these checks cannot make an engine fail.

use core::fmt::Display;

use crate::error::Error;
use crate::settings::{Class, Discipline, Jitter, LinkSettings, Loss, QueueSettings, Rate, SwitchSettings};

/// Longest delay, jitter or queueing time: one day, in nanoseconds.
pub const LONGEST_NS: u64 = 86_400 * 1_000_000_000;
/// Highest rate in bit/s: 1 Tbit/s.
pub const HIGHEST_RATE: u64 = 1_000_000_000_000;
/// Longest time for which segments gather at a port: 10 ms, in nanoseconds.
pub const LONGEST_COALESCE: u64 = 10_000_000;
/// Largest MTU of a link: octets of a layer-3 packet.
pub const LARGEST_MTU: u32 = 9_216;
/// Smallest MTU: the minimum for every IPv4 link (RFC 791).
pub const SMALLEST_MTU: u32 = 68;
/// Largest overhead of a frame, in octets.
pub const HIGHEST_OVERHEAD: u32 = 1_024;
/// Largest number of entries in a rate trace or a jitter table.
pub const LONGEST_TABLE: usize = 10_000_000;
/// Shortest time between two updates of PIE: 0.1 ms, in nanoseconds.
pub const SHORTEST_UPDATE: u64 = 100_000;
/// Largest number of octets of a token bucket: 1 GiB.
pub const LARGEST_BURST: u64 = 1 << 30;
/// Largest number of classes of a queue.
pub const MOST_CLASSES: usize = 64;
/// Largest number of flow queues.
pub const MOST_FLOWS: u32 = 65_536;

fn ensure(
    holds: bool,
    code: &'static str,
    field: &'static str,
    value: &dyn Display,
    allowed: &'static str,
) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Range { code, field, value: value.to_string(), allowed }) }
}

fn probability(value: f64, code: &'static str, field: &'static str) -> Result<(), Error> {
    ensure((0.0..=1.0).contains(&value), code, field, &value, "a probability is from 0 to 1")
}

fn span(value: u64, code: &'static str, field: &'static str) -> Result<(), Error> {
    ensure(value <= LONGEST_NS, code, field, &value, "at most one day")
}

impl LinkSettings {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// Names the first value that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        self.rate.check()?;
        span(self.delay_ns, "link.delay", "delay_ns")?;
        self.jitter.check()?;
        self.loss.check()?;
        probability(self.duplicate, "link.duplicate", "duplicate")?;
        probability(self.corrupt, "link.corrupt", "corrupt")?;
        probability(self.reorder, "link.reorder", "reorder")?;
        let mtu = (SMALLEST_MTU..=LARGEST_MTU).contains(&self.mtu);
        ensure(mtu, "link.mtu", "mtu", &self.mtu, "an MTU is from 68 to 9216 octets")?;
        let overhead = self.overhead <= HIGHEST_OVERHEAD;
        ensure(overhead, "link.overhead", "overhead", &self.overhead, "at most 1024 octets")?;
        let shortest = self.shortest <= LARGEST_MTU;
        ensure(shortest, "link.shortest", "shortest", &self.shortest, "at most 9216 octets")?;
        span(self.gap_ns, "link.gap", "gap_ns")?;
        let coalesce = self.coalesce_ns <= LONGEST_COALESCE;
        ensure(coalesce, "link.coalesce", "coalesce_ns", &self.coalesce_ns, "at most 10 ms")?;
        span(self.receiver.latency_ns, "link.receiver.latency", "receiver.latency_ns")?;
        span(self.receiver.moderation_ns, "link.receiver.moderation", "receiver.moderation_ns")?;
        self.receiver.service.check()?;
        span(self.receiver.tick_ns, "link.receiver.tick", "receiver.tick_ns")?;
        if let Some(policer) = &self.policer {
            let holds = (1..=HIGHEST_RATE).contains(&policer.bits_per_second);
            let (code, field) = ("link.policer.rate", "policer.bits_per_second");
            ensure(holds, code, field, &policer.bits_per_second, "from 1 bit/s to 1 Tbit/s")?;
            let holds = (1..=LARGEST_BURST).contains(&policer.burst_octets);
            let (code, field) = ("link.policer.burst", "policer.burst_octets");
            ensure(holds, code, field, &policer.burst_octets, "from 1 octet to 1 GiB")?;
        }
        self.queue.check()
    }
}

impl Rate {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Unlimited => Ok(()),
            Self::BitsPerSecond(rate) => {
                let holds = (1..=HIGHEST_RATE).contains(rate);
                ensure(holds, "link.rate", "rate", rate, "a rate is from 1 bit/s to 1 Tbit/s")
            }
            Self::TokenBucket { bits_per_second, burst_octets, peak_bits_per_second } => {
                let holds = (1..=HIGHEST_RATE).contains(bits_per_second);
                ensure(holds, "link.rate", "rate", bits_per_second, "a rate is from 1 bit/s to 1 Tbit/s")?;
                let holds = (1..=LARGEST_BURST).contains(burst_octets);
                let (code, field) = ("link.burst", "rate.token-bucket.burst_octets");
                ensure(holds, code, field, burst_octets, "a burst is from 1 octet to 1 GiB")?;
                let peak = peak_bits_per_second.unwrap_or(HIGHEST_RATE);
                let holds = (*bits_per_second..=HIGHEST_RATE).contains(&peak);
                let (code, field) = ("link.peak", "rate.token-bucket.peak_bits_per_second");
                ensure(holds, code, field, &peak, "a peak rate is at least the rate, at most 1 Tbit/s")
            }
            Self::Trace { opportunities_ns, period_ns, octets } => {
                let length = opportunities_ns.len();
                let holds = (1..=LONGEST_TABLE).contains(&length);
                let allowed = "a trace has from 1 to 10000000 opportunities";
                ensure(holds, "link.rate.trace.length", "rate.trace.opportunities_ns", &length, allowed)?;
                if let Some(pair) = opportunities_ns.windows(2).find(|pair| pair[0] > pair[1]) {
                    let allowed = "opportunities must ascend; this one is earlier than its predecessor";
                    let field = "rate.trace.opportunities_ns";
                    return ensure(false, "link.rate.trace.order", field, &pair[1], allowed);
                }
                let last = opportunities_ns.last().copied().unwrap_or(0);
                let holds = *period_ns > 0 && *period_ns <= LONGEST_NS && *period_ns >= last;
                let allowed = "a period is above 0, at most a day, and not before the last opportunity";
                ensure(holds, "link.rate.trace.period", "rate.trace.period_ns", period_ns, allowed)?;
                let holds = (1..=1 << 24).contains(octets);
                let allowed = "an opportunity carries from 1 to 16777216 octets";
                ensure(holds, "link.rate.trace.octets", "rate.trace.octets", octets, allowed)
            }
        }
    }
}

impl Jitter {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::None => Ok(()),
            Self::Uniform { spread_ns } => {
                span(*spread_ns, "link.jitter.uniform.spread", "jitter.uniform.spread_ns")
            }
            Self::Normal { sigma_ns } => {
                span(*sigma_ns, "link.jitter.normal.sigma", "jitter.normal.sigma_ns")
            }
            Self::Pareto { scale_ns, shape } => {
                span(*scale_ns, "link.jitter.pareto.scale", "jitter.pareto.scale_ns")?;
                let holds = *shape > 1.0 && shape.is_finite();
                let allowed = "a shape is above 1, so that the mean exists";
                ensure(holds, "link.jitter.pareto.shape", "jitter.pareto.shape", shape, allowed)
            }
            Self::Exponential { mean_ns } => {
                span(*mean_ns, "link.jitter.exponential.mean", "jitter.exponential.mean_ns")
            }
            Self::Table { values_ns } => {
                let holds = (1..=LONGEST_TABLE).contains(&values_ns.len());
                let allowed = "a table has from 1 to 10000000 values";
                let field = "jitter.table.values_ns";
                ensure(holds, "link.jitter.table.length", field, &values_ns.len(), allowed)?;
                values_ns
                    .iter()
                    .try_for_each(|value| span(value.unsigned_abs(), "link.jitter.table.value", field))
            }
        }
    }
}

impl Loss {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::None => Ok(()),
            Self::Bernoulli { probability: p } => {
                probability(*p, "link.loss.probability", "loss.bernoulli.probability")
            }
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                probability(*good_to_bad, "link.loss.good_to_bad", "loss.gilbert-elliott.good_to_bad")?;
                probability(*bad_to_good, "link.loss.bad_to_good", "loss.gilbert-elliott.bad_to_good")?;
                probability(*loss_good, "link.loss.loss_good", "loss.gilbert-elliott.loss_good")?;
                probability(*loss_bad, "link.loss.loss_bad", "loss.gilbert-elliott.loss_bad")
            }
        }
    }
}

impl QueueSettings {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// Names the first value that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(time) = self.time_ns {
            span(time, "link.queue.time", "queue.time_ns")?;
        }
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::Red { min_octets, max_octets, probability, weight, packet_octets, .. } => {
                let holds = *min_octets > 0;
                ensure(holds, "link.queue.red.min", "queue.red.min_octets", min_octets, "at least 1 octet")?;
                let holds = max_octets > min_octets && *max_octets <= 1 << 40;
                let allowed = "above min_octets, at most 2^40";
                ensure(holds, "link.queue.red.max", "queue.red.max_octets", max_octets, allowed)?;
                let allowed = "above 0, at most 1";
                let unit = |value: f64| value > 0.0 && value <= 1.0;
                let holds = (1..=1 << 20).contains(packet_octets);
                let (code, field) = ("link.queue.red.packet", "queue.red.packet_octets");
                ensure(holds, code, field, packet_octets, "from 1 octet to 1 MiB")?;
                let (code, field) = ("link.queue.red.probability", "queue.red.probability");
                ensure(unit(*probability), code, field, probability, allowed)?;
                ensure(unit(*weight), "link.queue.red.weight", "queue.red.weight", weight, allowed)
            }
            Discipline::CoDel { target_ns, interval_ns }
            | Discipline::Cake { target_ns, interval_ns, .. } => check_codel(*target_ns, *interval_ns),
            Discipline::FqCoDel { target_ns, interval_ns, quantum, flows } => {
                check_codel(*target_ns, *interval_ns)?;
                let holds = (64..=1 << 20).contains(quantum);
                let allowed = "a quantum is from 64 to 1048576 octets";
                ensure(holds, "link.queue.fq-codel.quantum", "queue.fq-codel.quantum", quantum, allowed)?;
                let holds = (1..=MOST_FLOWS).contains(flows);
                let allowed = "from 1 to 65536 flow queues";
                ensure(holds, "link.queue.fq-codel.flows", "queue.fq-codel.flows", flows, allowed)
            }
            Discipline::Pie { target_ns, update_ns, burst_ns, alpha, beta } => {
                let holds = (1..=LONGEST_NS).contains(target_ns);
                let (code, field) = ("link.queue.pie.target", "queue.pie.target_ns");
                ensure(holds, code, field, target_ns, "a target is above 0 ns, at most a day")?;
                let holds = (SHORTEST_UPDATE..=LONGEST_NS).contains(update_ns);
                let (code, field) = ("link.queue.pie.update", "queue.pie.update_ns");
                ensure(holds, code, field, update_ns, "from 0.1 ms to a day")?;
                span(*burst_ns, "link.queue.pie.burst", "queue.pie.burst_ns")?;
                for (value, code, field) in [
                    (alpha, "link.queue.pie.alpha", "queue.pie.alpha"),
                    (beta, "link.queue.pie.beta", "queue.pie.beta"),
                ] {
                    ensure((0.0..=1000.0).contains(value), code, field, value, "from 0 to 1000 per second")?;
                }
                Ok(())
            }
            dual @ Discipline::DualPi2 { .. } => check_dualpi2(dual),
            Discipline::Step { time_ns, .. } => {
                span(time_ns.unwrap_or(0), "link.queue.step.time", "queue.step.time_ns")
            }
            Discipline::Priority { classes } | Discipline::Drr { classes } => check_classes(classes),
        }
    }
}

fn check_dualpi2(discipline: &Discipline) -> Result<(), Error> {
    let Discipline::DualPi2 { target_ns, update_ns, alpha, beta, coupling, step_ns, ramp_ns, classic } =
        discipline
    else {
        return Ok(());
    };
    let holds = (1..=LONGEST_NS).contains(target_ns);
    let (code, field) = ("link.queue.dualpi2.target", "queue.dualpi2.target_ns");
    ensure(holds, code, field, target_ns, "a target is above 0 ns, at most a day")?;
    let holds = (SHORTEST_UPDATE..=LONGEST_NS).contains(update_ns);
    let (code, field) = ("link.queue.dualpi2.update", "queue.dualpi2.update_ns");
    ensure(holds, code, field, update_ns, "from 0.1 ms to a day")?;
    for (value, code, field) in [
        (alpha, "link.queue.dualpi2.alpha", "queue.dualpi2.alpha"),
        (beta, "link.queue.dualpi2.beta", "queue.dualpi2.beta"),
    ] {
        ensure((0.0..=1000.0).contains(value), code, field, value, "from 0 to 1000 per second")?;
    }
    let (code, field) = ("link.queue.dualpi2.coupling", "queue.dualpi2.coupling");
    ensure(
        (0.01..=100.0).contains(coupling),
        code,
        field,
        coupling,
        "a coupling factor is from 0.01 to 100",
    )?;
    span(*step_ns, "link.queue.dualpi2.step", "queue.dualpi2.step_ns")?;
    span(*ramp_ns, "link.queue.dualpi2.ramp", "queue.dualpi2.ramp_ns")?;
    let (code, field) = ("link.queue.dualpi2.classic", "queue.dualpi2.classic");
    ensure((0.0..1.0).contains(classic), code, field, classic, "a share is from 0 to below 1")
}

fn check_classes(classes: &[Class]) -> Result<(), Error> {
    let (code, field) = ("link.queue.classes", "queue.classes");
    let holds = (1..=MOST_CLASSES).contains(&classes.len());
    ensure(holds, code, field, &classes.len(), "a queue has from 1 to 64 classes")?;
    for class in classes {
        let highest = class.dscp.iter().copied().max().unwrap_or(0);
        ensure(highest < 64, "link.queue.classes.dscp", field, &highest, "a DSCP is from 0 to 63")?;
        let holds = (64..=1 << 20).contains(&class.quantum);
        let allowed = "a quantum is from 64 to 1048576 octets";
        ensure(holds, "link.queue.classes.quantum", field, &class.quantum, allowed)?;
    }
    Ok(())
}

fn check_codel(target: u64, interval: u64) -> Result<(), Error> {
    let holds = (1..=LONGEST_NS).contains(&interval);
    let allowed = "an interval is above 0 ns, at most a day";
    ensure(holds, "link.queue.codel.interval", "queue.codel.interval_ns", &interval, allowed)?;
    let holds = (1..=interval).contains(&target);
    let allowed = "a target is above 0 ns and at most the interval";
    ensure(holds, "link.queue.codel.target", "queue.codel.target_ns", &target, allowed)
}

impl SwitchSettings {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// Names the first value that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Hub => Ok(()),
            Self::ShortestPath { ageing_ns, addresses, convergence_ns } => {
                span(*convergence_ns, "switch.convergence", "switch.convergence_ns")?;
                Self::Switch { ageing_ns: *ageing_ns, addresses: *addresses }.check()
            }
            Self::Switch { ageing_ns, addresses } => {
                let holds = *ageing_ns > 0;
                ensure(holds, "switch.ageing", "switch.ageing_ns", ageing_ns, "above 0 ns")?;
                let holds = (1..=1 << 24).contains(addresses);
                let allowed = "from 1 to 16777216 addresses";
                ensure(holds, "switch.addresses", "switch.addresses", addresses, allowed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Policer;

    fn code(change: impl FnOnce(&mut LinkSettings)) -> &'static str {
        let mut settings = LinkSettings::default();
        settings.check().expect("the default is valid");
        change(&mut settings);
        settings.check().expect_err("out of range").code()
    }

    fn queue(discipline: Discipline) -> &'static str {
        code(|settings| settings.queue.discipline = discipline)
    }

    fn trace(opportunities_ns: Vec<u64>, period_ns: u64, octets: u32) -> &'static str {
        code(|settings| settings.rate = Rate::Trace { opportunities_ns, period_ns, octets })
    }

    #[test]
    fn each_range_has_its_code() {
        assert_eq!(code(|s| s.rate = Rate::BitsPerSecond(0)), "link.rate");
        assert_eq!(code(|s| s.rate = Rate::BitsPerSecond(HIGHEST_RATE + 1)), "link.rate");
        let bucket = |bits_per_second, burst_octets, peak_bits_per_second| {
            code(|s| s.rate = Rate::TokenBucket { bits_per_second, burst_octets, peak_bits_per_second })
        };
        assert_eq!(bucket(0, 1, None), "link.rate");
        assert_eq!(bucket(1, 0, None), "link.burst");
        assert_eq!(bucket(2, 1, Some(1)), "link.peak");
        let policer = |bits_per_second, burst_octets| {
            code(|s| s.policer = Some(Policer { bits_per_second, burst_octets }))
        };
        assert_eq!(policer(0, 1), "link.policer.rate");
        assert_eq!(policer(1, LARGEST_BURST + 1), "link.policer.burst");
        assert_eq!(trace(vec![], 1, 1), "link.rate.trace.length");
        assert_eq!(trace(vec![2, 1], 3, 1), "link.rate.trace.order");
        assert_eq!(trace(vec![1, 2], 1, 1), "link.rate.trace.period");
        assert_eq!(trace(vec![1, 2], 2, 0), "link.rate.trace.octets");
        assert_eq!(code(|s| s.delay_ns = u64::MAX), "link.delay");
        assert_eq!(
            code(|s| s.jitter = Jitter::Uniform { spread_ns: u64::MAX }),
            "link.jitter.uniform.spread"
        );
        assert_eq!(code(|s| s.jitter = Jitter::Normal { sigma_ns: u64::MAX }), "link.jitter.normal.sigma");
        let pareto = |scale_ns, shape| code(|s| s.jitter = Jitter::Pareto { scale_ns, shape });
        assert_eq!(pareto(u64::MAX, 2.0), "link.jitter.pareto.scale");
        assert_eq!(pareto(1, 1.0), "link.jitter.pareto.shape");
        assert_eq!(pareto(1, f64::NAN), "link.jitter.pareto.shape");
        let table = |values_ns| code(|s| s.jitter = Jitter::Table { values_ns });
        assert_eq!(table(vec![]), "link.jitter.table.length");
        assert_eq!(table(vec![i64::MIN]), "link.jitter.table.value");
        assert_eq!(code(|s| s.loss = Loss::Bernoulli { probability: 1.5 }), "link.loss.probability");
        let elliott = |p: [f64; 4]| {
            let [good_to_bad, bad_to_good, loss_good, loss_bad] = p;
            code(|s| s.loss = Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad })
        };
        assert_eq!(elliott([-0.1, 0.0, 0.0, 0.0]), "link.loss.good_to_bad");
        assert_eq!(elliott([0.0, 2.0, 0.0, 0.0]), "link.loss.bad_to_good");
        assert_eq!(elliott([0.0, 0.0, f64::NAN, 0.0]), "link.loss.loss_good");
        assert_eq!(elliott([0.0, 0.0, 0.0, 1.1]), "link.loss.loss_bad");
        assert_eq!(code(|s| s.duplicate = f64::NAN), "link.duplicate");
        assert_eq!(code(|s| s.corrupt = -1.0), "link.corrupt");
        assert_eq!(code(|s| s.reorder = f64::INFINITY), "link.reorder");
        assert_eq!(code(|s| s.mtu = 67), "link.mtu");
        assert_eq!(code(|s| s.mtu = 9217), "link.mtu");
        assert_eq!(code(|s| s.overhead = 1025), "link.overhead");
        assert_eq!(code(|s| s.shortest = 9217), "link.shortest");
    }

    #[test]
    fn each_range_of_a_queue_has_its_code() {
        assert_eq!(code(|s| s.queue.time_ns = Some(u64::MAX)), "link.queue.time");
        let red = |min_octets, max_octets, probability, weight| {
            queue(Discipline::Red {
                min_octets,
                max_octets,
                probability,
                weight,
                packet_octets: 500,
                marks_above: false,
            })
        };
        assert_eq!(red(0, 1, 0.1, 0.1), "link.queue.red.min");
        assert_eq!(red(2, 2, 0.1, 0.1), "link.queue.red.max");
        assert_eq!(red(1, 2, 0.0, 0.1), "link.queue.red.probability");
        assert_eq!(red(1, 2, 0.1, 1.1), "link.queue.red.weight");
        let codel = |target_ns, interval_ns| queue(Discipline::CoDel { target_ns, interval_ns });
        assert_eq!(codel(1, 0), "link.queue.codel.interval");
        assert_eq!(codel(2, 1), "link.queue.codel.target");
        let flows =
            |quantum, flows| queue(Discipline::FqCoDel { target_ns: 1, interval_ns: 1, quantum, flows });
        assert_eq!(flows(1, 1), "link.queue.fq-codel.quantum");
        assert_eq!(flows(1514, 0), "link.queue.fq-codel.flows");
        let pie = |target_ns, update_ns, alpha| {
            queue(Discipline::Pie { target_ns, update_ns, burst_ns: u64::MAX, alpha, beta: 1001.0 })
        };
        assert_eq!(pie(0, SHORTEST_UPDATE, 0.1), "link.queue.pie.target");
        assert_eq!(pie(1, SHORTEST_UPDATE - 1, 0.1), "link.queue.pie.update");
        assert_eq!(pie(1, SHORTEST_UPDATE, 0.1), "link.queue.pie.burst");
        let gains = |alpha, beta| {
            queue(Discipline::Pie { target_ns: 1, update_ns: SHORTEST_UPDATE, burst_ns: 0, alpha, beta })
        };
        assert_eq!(gains(f64::NAN, 1.0), "link.queue.pie.alpha");
        assert_eq!(gains(0.0, -1.0), "link.queue.pie.beta");
        let dual = |target_ns, update_ns, [alpha, beta, coupling, classic]: [f64; 4], step_ns, ramp_ns| {
            queue(Discipline::DualPi2 {
                target_ns,
                update_ns,
                alpha,
                beta,
                coupling,
                step_ns,
                ramp_ns,
                classic,
            })
        };
        let good = [0.15, 3.0, 2.0, 0.0625];
        assert_eq!(dual(0, SHORTEST_UPDATE, good, 0, 0), "link.queue.dualpi2.target");
        assert_eq!(dual(1, SHORTEST_UPDATE - 1, good, 0, 0), "link.queue.dualpi2.update");
        assert_eq!(dual(1, SHORTEST_UPDATE, good, u64::MAX, 0), "link.queue.dualpi2.step");
        assert_eq!(dual(1, SHORTEST_UPDATE, good, 0, u64::MAX), "link.queue.dualpi2.ramp");
        for (at, bad, code) in [
            (0, -1.0, "link.queue.dualpi2.alpha"),
            (1, f64::NAN, "link.queue.dualpi2.beta"),
            (2, 0.0, "link.queue.dualpi2.coupling"),
            (3, 1.0, "link.queue.dualpi2.classic"),
        ] {
            let mut values = good;
            values[at] = bad;
            assert_eq!(dual(1, SHORTEST_UPDATE, values, 0, 0), code);
        }
        let step = Discipline::Step { packets: None, octets: None, time_ns: Some(u64::MAX) };
        assert_eq!(queue(step), "link.queue.step.time");
        assert_eq!(queue(Discipline::Drr { classes: vec![] }), "link.queue.classes");
        let class = |dscp, quantum| {
            queue(Discipline::Drr { classes: vec![Class { dscp: vec![dscp], quantum, packets: None }] })
        };
        assert_eq!(class(64, 1514), "link.queue.classes.dscp");
        assert_eq!(class(63, 1), "link.queue.classes.quantum");
        let switch = |ageing_ns, addresses| {
            SwitchSettings::Switch { ageing_ns, addresses }.check().expect_err("out of range").code()
        };
        assert_eq!(switch(0, 1), "switch.ageing");
        assert_eq!(switch(1, 0), "switch.addresses");
        let shortest = |ageing_ns, addresses, convergence_ns| {
            let settings = SwitchSettings::ShortestPath { ageing_ns, addresses, convergence_ns };
            settings.check().expect_err("out of range").code()
        };
        assert_eq!(shortest(0, 1, 0), "switch.ageing");
        assert_eq!(shortest(1, 0, 0), "switch.addresses");
        assert_eq!(shortest(1, 1, LONGEST_NS + 1), "switch.convergence");
        SwitchSettings::Hub.check().expect("nothing to check");
    }
}
