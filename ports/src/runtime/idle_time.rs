//! How long each processor has been idle, by the kernel's account.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airloom_engine::time::Span;
use rustix::param::clock_ticks_per_second;

/// For how long processors have polled instead of being idle, shared by threads.
#[derive(Clone, Debug, Default)]
pub struct Polled(Arc<[(usize, AtomicU64)]>);

impl Polled {
    /// An account of these processors.
    #[must_use]
    pub fn new(processors: &[usize]) -> Self {
        Self(processors.iter().map(|&number| (number, AtomicU64::new(0))).collect())
    }

    /// Notes for how many nanoseconds a processor has polled so far.
    pub fn note(&self, processor: usize, nanos: u64) {
        if let Some(time) = self.find(processor) {
            time.store(nanos, Ordering::Relaxed);
        }
    }

    /// Nanoseconds of one processor; 0 for one without an account.
    #[must_use]
    pub fn of(&self, processor: usize) -> u64 {
        self.find(processor).map_or(0, |time| time.load(Ordering::Relaxed))
    }

    /// The sum over all processors.
    #[must_use]
    pub fn total(&self) -> Span {
        Span::from_nanos(self.0.iter().map(|(_, time)| time.load(Ordering::Relaxed)).sum())
    }

    fn find(&self, processor: usize) -> Option<&AtomicU64> {
        self.0.iter().find(|(number, _)| *number == processor).map(|(_, time)| time)
    }
}

/// Number of each processor and the nanoseconds that it has been idle, waited for I/O, or polled.
///
/// The kernel counts in ticks of usually 10 ms. None without its account.
#[must_use]
pub fn of_processors(polled: &Polled) -> Option<Vec<(usize, u64)>> {
    let ticks = clock_ticks_per_second();
    let mut idle = idle_ticks(&fs::read_to_string("/proc/stat").ok()?);
    for (number, time) in &mut idle {
        *time = *time * 1_000_000_000 / ticks + polled.of(*number);
    }
    Some(idle)
}

/// Number of each processor and the ticks that it has been idle, or idle and waiting
/// for I/O, from `/proc/stat`.
fn idle_ticks(stat: &str) -> Vec<(usize, u64)> {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut times = words.skip(3).map(|word| word.parse::<u64>().ok());
        Some((number, times.next()?? + times.next()??))
    };
    stat.lines().filter(|line| !line.starts_with("cpu ")).map_while(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_the_kernels_account() {
        let stat =
            "cpu  7 0 0 9 0 0\ncpu0 3 0 5 100 20 1 0 0\ncpu11 1 1 1 7 0 0 0\nintr 5 6\ncpu9 0 0 0 1 1\n";
        assert_eq!(idle_ticks(stat), [(0, 120), (11, 7)]);
        assert!(!of_processors(&Polled::default()).expect("the kernel keeps it").is_empty());
    }
}
