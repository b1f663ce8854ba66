//! How long each processor has been idle, by the kernel's account.

use std::fs;

use rustix::param::clock_ticks_per_second;

use crate::runtime::idle_poll::Account;

/// Number of each processor and the nanoseconds that it has been idle, waited for I/O, or polled.
///
/// The kernel counts in ticks of usually 10 ms. None without its account.
#[must_use]
pub fn of_processors(polling: &Account) -> Option<Vec<(usize, u64)>> {
    let ticks = clock_ticks_per_second();
    let mut idle = idle_ticks(&fs::read_to_string("/proc/stat").ok()?);
    for (number, time) in &mut idle {
        *time = *time * 1_000_000_000 / ticks + polling.of(*number);
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
        assert!(!of_processors(&Account::default()).expect("the kernel keeps it").is_empty());
    }
}
