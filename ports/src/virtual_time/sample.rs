//! Instants at which the controller reads figures of the engine.

/// One series of instants.
#[derive(Clone, Copy, Debug)]
struct Sample {
    next: u64,
    period: u64,
    /// Whether it is left out while the engine does nothing.
    skips: bool,
    /// Turns of the engine at the last one.
    seen: Option<u64>,
}

/// All series of instants.
#[derive(Debug, Default)]
pub(super) struct Samples {
    all: Vec<Sample>,
    /// Turns of the engine.
    turns: u64,
}

impl Samples {
    /// Adds a series; returns its number.
    pub fn add(&mut self, now: u64, period: u64, skips: bool) -> usize {
        let period = period.max(1);
        self.all.push(Sample { next: now.saturating_add(period), period, skips, seen: None });
        self.all.len() - 1
    }

    /// When the next one is due.
    pub fn due(&self) -> u64 {
        self.all.iter().map(|sample| sample.next).min().unwrap_or(u64::MAX)
    }

    /// Notes that the engine has done something.
    pub fn worked(&mut self) {
        self.turns += 1;
    }

    /// The numbers of those that are due, less those that are left out; the next of each is later.
    pub fn take(&mut self, now: u64) -> Vec<usize> {
        let mut due = Vec::new();
        for (number, sample) in self.all.iter_mut().enumerate() {
            if sample.next > now {
                continue;
            }
            let periods = (now - sample.next) / sample.period + 1;
            sample.next = sample.next.saturating_add(periods.saturating_mul(sample.period));
            if !sample.skips || sample.seen != Some(self.turns) {
                due.push(number);
            }
            sample.seen = Some(self.turns);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_skip_are_due_only_after_the_engine_has_worked() {
        let mut samples = Samples::default();
        assert_eq!(samples.due(), u64::MAX);
        assert_eq!((samples.add(100, 10, true), samples.add(100, 25, false)), (0, 1));
        assert_eq!((samples.due(), samples.take(109)), (110, vec![]));
        assert_eq!(samples.take(110), vec![0], "the first one has none before it");
        assert_eq!((samples.due(), samples.take(120)), (120, vec![]));
        assert_eq!((samples.due(), samples.take(125)), (125, vec![1]));
        samples.worked();
        assert_eq!((samples.due(), samples.take(130)), (130, vec![0]));
        assert_eq!(samples.take(150), vec![1]);
        assert_eq!(samples.due(), 160);
    }
}
