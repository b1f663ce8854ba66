//! The wall clock of a run: `CLOCK_MONOTONIC`, counted from the run's start.

use std::io;

use airloom_engine::time::{Instant, Span};

/// Engine time by the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    zero: u64,
}

impl WallClock {
    /// Starts a clock at zero.
    #[must_use]
    pub fn start() -> Self {
        Self { zero: read(libc::CLOCK_MONOTONIC) }
    }

    /// Engine time now.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(libc::CLOCK_MONOTONIC).saturating_sub(self.zero))
    }

    /// `CLOCK_MONOTONIC` in nanoseconds at engine time zero.
    #[must_use]
    pub fn zero(&self) -> u64 {
        self.zero
    }

    /// Nanoseconds since 1970 (`CLOCK_REALTIME`) at engine time zero, by the present
    /// offset of the two clocks.
    #[must_use]
    pub fn zero_since_1970(&self) -> u64 {
        self.zero.saturating_add_signed(realtime_offset())
    }
}

impl airloom_engine::Clock for WallClock {
    fn now(&self) -> Instant {
        Self::now(self)
    }

    fn wait(&self, until: Instant) {
        while Self::now(self) < until {
            std::hint::spin_loop();
        }
    }
}

/// Readings of both clocks, of which [`realtime_offset`] takes the closest.
const READINGS: usize = 20;

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` in nanoseconds, at present.
///
/// A single reading is wrong by the time between the clocks' readings: microseconds if the thread is
/// interrupted there, which is more than the stages of a packet's path take.
#[must_use]
pub fn realtime_offset() -> i64 {
    let signed = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
    let reading = || {
        let before = read(libc::CLOCK_MONOTONIC);
        let realtime = read(libc::CLOCK_REALTIME);
        let between = read(libc::CLOCK_MONOTONIC).saturating_sub(before);
        (between, signed(realtime) - signed(before + between / 2))
    };
    (0..READINGS).map(|_| reading()).min().map_or(0, |(_, offset)| offset)
}

/// Sleeps for a span, or less if a signal arrives.
pub fn sleep(span: Span) {
    let (seconds, nanos) = (span.nanos() / 1_000_000_000, span.nanos() % 1_000_000_000);
    let time = libc::timespec {
        tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos).unwrap_or(0),
    };
    // SAFETY: the timespec outlives the call, and what is left of the sleep is not asked for.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const time, std::ptr::null_mut()) };
}

/// CPU time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills one timespec that outlives it.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(answer, 0, "these clocks exist on every Linux");
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// How long the calling thread has been runnable without a processor, in nanoseconds since it
/// began: the second figure of `/proc/thread-self/schedstat`.
///
/// # Errors
/// If the kernel does not account for it.
pub fn thread_waited(buffer: &mut String) -> io::Result<u64> {
    second_figure("/proc/thread-self/schedstat", buffer)?
        .parse()
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Sum of the idle time of all processors, in nanoseconds since boot: the second figure of
/// `/proc/uptime`, which has a resolution of 10 ms.
///
/// # Errors
/// If the file does not exist.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // centuries fit, and it is never negative
pub fn idle(buffer: &mut String) -> io::Result<u64> {
    second_figure("/proc/uptime", buffer)?
        .parse()
        .map(|seconds: f64| (seconds * 1e9) as u64)
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn second_figure<'a>(path: &str, buffer: &'a mut String) -> io::Result<&'a str> {
    use std::io::Read;
    buffer.clear();
    std::fs::File::open(path)?.read_to_string(buffer)?;
    buffer.split_ascii_whitespace().nth(1).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_from_zero() {
        let clock = WallClock::start();
        let first = clock.now();
        let second = clock.now();
        assert!(first <= second);
        assert!(clock.zero() > 0 && clock.zero_since_1970() > clock.zero());
    }

    #[test]
    fn readings_of_the_offset_of_both_clocks_agree() {
        let agree = |_| realtime_offset().abs_diff(realtime_offset()) < 1_000;
        assert!((0..100).any(agree), "unless the clock is stepped or the machine is busy each time");
    }

    #[test]
    fn a_thread_waits_and_processors_are_idle_for_some_time() {
        let mut buffer = String::new();
        let before = idle(&mut buffer).expect("a /proc");
        sleep(Span::from_millis(50));
        assert!(idle(&mut buffer).expect("a /proc") >= before);
        thread_waited(&mut buffer).expect("an account of it");
    }
}
