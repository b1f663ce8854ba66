//! A simulator of one cell in which all hear all, written from the standard and apart from the engine.
//!
//! IEEE Std 802.11-2020 10.3.4 (DCF) and 10.23.2 (EDCA): saturated stations count slots after the channel
//! has been idle for AIFS. A station that is about to send sends if the channel became busy less than the
//! detection time ago. All who send then collide. There are no other errors, unless the powers are given.

#![allow(dead_code)] // each test uses its part

use airloom_engine::medium::phy::Modulation;

/// Nanoseconds.
pub type Nanos = u64;

/// How a lane contends.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Slots after SIFS.
    pub aifsn: u64,
    pub cw_min: u32,
    pub cw_max: u32,
    /// EDCA: a slot boundary at the end of AIFS decrements the counter; DCF: each idle slot after it.
    pub at_boundaries: bool,
}

/// The exchange that a lane repeats.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// What is lost in a collision: the frame, its first fragment, or the request to send.
    pub first: Nanos,
    /// From the end of that to the time-out of its response.
    pub timeout: Nanos,
    /// From the end of that to the end of the exchange.
    pub rest: Nanos,
    /// Each further frame of a transmission opportunity, from the end of the one before.
    pub further: Nanos,
    /// Frames in one opportunity.
    pub frames: u64,
}

/// Properties of the cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub slot: Nanos,
    pub sifs: Nanos,
    /// Time in which a station detects that the channel is busy.
    pub detect: Nanos,
    /// EIFS less DIFS, if all who see a collision wait for it.
    pub extension: Option<Nanos>,
    /// Failures at which a frame is given up.
    pub limit: u32,
    /// An internal collision counts to that limit.
    pub internal_counts: bool,
}

/// A lane of a station, and what became of its frames.
#[derive(Clone, Debug)]
pub struct Lane {
    pub access: Access,
    pub exchange: Exchange,
    pub delivered: u64,
    pub attempts: u64,
    pub failed: u64,
    counter: u64,
    cw: u32,
    failures: u32,
    from: Nanos,
}

impl Lane {
    pub fn new(access: Access, exchange: Exchange) -> Self {
        let (delivered, attempts, failed) = (0, 0, 0);
        Self {
            access,
            exchange,
            delivered,
            attempts,
            failed,
            counter: 0,
            cw: access.cw_min,
            failures: 0,
            from: 0,
        }
    }

    fn due(&self, slot: Nanos) -> Nanos {
        self.from + self.counter * slot
    }

    fn count_to(&mut self, until: Nanos, slot: Nanos) {
        if self.from <= until {
            let slots = (until - self.from) / slot + u64::from(self.access.at_boundaries);
            self.counter -= slots.min(self.counter);
        }
    }

    /// After a success, or a frame that was given up.
    fn renew(&mut self, dice: &mut Dice) {
        (self.failures, self.cw) = (0, self.access.cw_min);
        self.counter = dice.below(self.cw);
    }

    fn fail(&mut self, cell: &Cell, internal: bool, dice: &mut Dice) {
        self.failures += u32::from(!internal || cell.internal_counts);
        if self.failures == cell.limit {
            return self.renew(dice);
        }
        self.cw = (2 * self.cw + 1).min(self.access.cw_max);
        self.counter = dice.below(self.cw);
    }
}

/// Random numbers (Vigna, xorshift64*).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of a seed with few bits are alike.
        for _ in 0..8 {
            dice.next();
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A whole number from 0 to `most`.
    pub fn below(&mut self, most: u32) -> u64 {
        ((self.next() >> 32) * (u64::from(most) + 1)) >> 32
    }

    /// A number from 0 to 1.
    #[allow(clippy::cast_precision_loss)]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What stations and their sink make of a collision, by power.
pub struct Powers {
    /// mW at each listener from each station; the last listener is the sink.
    pub heard: Vec<Vec<f64>>,
    pub noise: f64,
    /// Least ratio of the strongest preamble to all other signals at which it is detected.
    pub preamble: f64,
    /// Modulation of the frames, and the probability that one is received at this ratio of signal to
    /// noise and interference.
    pub modulation: Modulation,
    pub success: fn(Modulation, f64) -> f64,
    /// From the end of a frame to the end of its acknowledgment.
    pub answer: Nanos,
    /// EIFS less DIFS, after a frame that was followed and lost.
    pub extension: Nanos,
}

/// What a listener makes of simultaneous frames.
enum Seen {
    Received(usize),
    Broken,
    Nothing,
}

impl Powers {
    fn see(&self, listener: usize, senders: &[usize], dice: &mut Dice) -> Seen {
        let heard = &self.heard[listener];
        let all: f64 = senders.iter().map(|&sender| heard[sender]).sum();
        let strongest = senders.iter().copied().max_by(|&a, &b| heard[a].total_cmp(&heard[b])).expect("some");
        let ratio = heard[strongest] / (all - heard[strongest] + self.noise);
        if ratio < self.preamble {
            Seen::Nothing
        } else if dice.unit() < (self.success)(self.modulation, ratio) {
            Seen::Received(strongest)
        } else {
            Seen::Broken
        }
    }
}

/// Runs the stations, each of which has its lanes in the order of their priority, for `length`.
pub fn run(cell: &Cell, stations: &mut [Vec<Lane>], powers: Option<&Powers>, length: Nanos, seed: u64) {
    let mut dice = Dice::new(seed);
    for lane in stations.iter_mut().flatten() {
        lane.counter = dice.below(lane.cw);
        lane.from = cell.sifs + lane.access.aifsn * cell.slot;
    }
    let mut resume = vec![0; stations.len()];
    let mut extended = vec![0; stations.len()];
    loop {
        let first = |lanes: &Vec<Lane>| lanes.iter().map(|lane| lane.due(cell.slot)).min().expect("a lane");
        let dues: Vec<Nanos> = stations.iter().map(first).collect();
        let start = *dues.iter().min().expect("a station");
        if start > length {
            return;
        }
        let mut senders: Vec<(usize, usize)> = Vec::new();
        for (station, (lanes, &due)) in stations.iter_mut().zip(&dues).enumerate() {
            let sends = due < start + cell.detect;
            let until = if sends { due } else { start + cell.detect - 1 };
            let mut winner = None;
            for (number, lane) in lanes.iter_mut().enumerate() {
                if sends && lane.due(cell.slot) == due {
                    if winner.is_some() {
                        lane.fail(cell, true, &mut dice);
                    } else {
                        winner = Some(number);
                    }
                } else {
                    lane.count_to(until, cell.slot);
                }
            }
            senders.extend(winner.map(|number| (station, number)));
        }
        extended.fill(0);
        if let &[(station, number)] = &senders[..] {
            let lane = &mut stations[station][number];
            let Exchange { first, rest, further, frames, .. } = lane.exchange;
            resume.fill(dues[station] + first + rest + (frames - 1) * further);
            lane.attempts += frames;
            lane.delivered += frames;
            lane.renew(&mut dice);
        } else {
            let end = |&(station, number): &(usize, usize)| {
                dues[station] + stations[station][number].exchange.first
            };
            let last = senders.iter().map(end).max().expect("some");
            resume.fill(last);
            extended.fill(cell.extension.unwrap_or(0));
            for sender in &senders {
                let timeout = stations[sender.0][sender.1].exchange.timeout;
                resume[sender.0] = last.max(end(sender) + timeout);
                extended[sender.0] = 0;
            }
            let names: Vec<usize> = senders.iter().map(|sender| sender.0).collect();
            let mut winner = None;
            if let Some(powers) = powers {
                if let Seen::Received(from) = powers.see(stations.len(), &names, &mut dice) {
                    winner = Some(from);
                    resume.fill(last + powers.answer);
                } else {
                    for station in (0..stations.len()).filter(|station| !names.contains(station)) {
                        match powers.see(station, &names, &mut dice) {
                            Seen::Received(_) => resume[station] = last + powers.answer,
                            Seen::Broken => extended[station] = powers.extension,
                            Seen::Nothing => {}
                        }
                    }
                }
            }
            for (station, number) in senders {
                let lane = &mut stations[station][number];
                lane.attempts += 1;
                if winner == Some(station) {
                    lane.delivered += 1;
                    lane.renew(&mut dice);
                } else {
                    lane.failed += 1;
                    lane.fail(cell, false, &mut dice);
                }
            }
        }
        for ((lanes, &resume), &extended) in stations.iter_mut().zip(&resume).zip(&extended) {
            for lane in lanes {
                lane.from = resume + extended + cell.sifs + lane.access.aifsn * cell.slot;
            }
        }
    }
}
