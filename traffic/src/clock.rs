//! The machine's clocks: `CLOCK_MONOTONIC` in ns for all times, and its offset from
//! `CLOCK_REALTIME`.
//!
//! The kernel stamps arriving packets with `CLOCK_REALTIME`. A stamp is converted to
//! `CLOCK_MONOTONIC` by the difference of the two clocks, measured right after the packet was read:
//! the monotonic clock is read before and after the other, and half of the time between is the
//! error (typically below 100 ns). Both clocks are slewed alike, so while a packet waits to be read
//! only a *step* of `CLOCK_REALTIME` changes their difference. A step is detected by the next
//! measurement, and by packets from the future or from long ago; such stamps are not used (see
//! [`Offset::agrees`] and [`Offset::to_monotonic`]).

use airloom_engine::time::{Instant, Span};

use crate::stop;

/// The time of `CLOCK_MONOTONIC`.
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanos(&time)
}

/// Converts a kernel time to nanoseconds; both fields are never negative for the clocks used here.
#[must_use]
pub fn nanos(time: &libc::timespec) -> u64 {
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// Converts nanoseconds to a kernel time.
#[must_use]
pub fn timespec(nanos: u64) -> libc::timespec {
    libc::timespec { tv_sec: signed(nanos / 1_000_000_000), tv_nsec: signed(nanos % 1_000_000_000) }
}

/// Kernel times stay below 2^63 ns (the year 2262); a forged one saturates.
fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub struct Offset {
    /// The difference in ns.
    pub nanos: i64,
    /// Maximum error: half of the time that the measurement took, in ns.
    pub error: u64,
}

/// Error in ns below which a measurement is not repeated.
const CLOSE: u64 = 1_000;

/// Maximum age of a kernel stamp when it is read; an older one indicates a clock step.
const OLDEST: Span = Span::from_secs(10);

impl Offset {
    /// Measures the difference; repeats this if the thread was preempted meanwhile.
    #[must_use]
    pub fn measure() -> Self {
        let mut best = Self::once();
        for _ in 1..5 {
            if best.error <= CLOSE {
                break;
            }
            let again = Self::once();
            if again.error < best.error {
                best = again;
            }
        }
        best
    }

    fn once() -> Self {
        let before = read(libc::CLOCK_MONOTONIC);
        let real = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_MONOTONIC);
        let error = (after - before).div_ceil(2);
        Self { nanos: signed(real) - signed(before + error), error }
    }

    /// Measures five times and keeps the measurement with the smallest error: for a
    /// value that is stored once.
    #[must_use]
    pub fn measure_well() -> Self {
        (0..5).map(|_| Self::once()).min_by_key(|offset| offset.error).unwrap_or_else(Self::measure)
    }

    /// Whether `CLOCK_REALTIME` was not stepped between two measurements: both clocks are slewed
    /// alike, so only a step changes their difference.
    #[must_use]
    pub fn agrees(self, earlier: Self) -> bool {
        self.nanos.abs_diff(earlier.nanos) <= self.error + earlier.error
    }

    /// The monotonic time of a `CLOCK_REALTIME` stamp that was read at `now`, or `None` if the
    /// clock was stepped in between.
    #[must_use]
    pub fn to_monotonic(self, real: u64, now: Instant) -> Option<Instant> {
        let time = u64::try_from(signed(real).checked_sub(self.nanos)?).ok()?;
        let latest = now.nanos() + self.error;
        let earliest = now.nanos().saturating_sub(OLDEST.nanos());
        (earliest..=latest).contains(&time).then(|| Instant::from_nanos(time))
    }
}

/// Sets the timer slack of this thread to its minimum; the default is 50 us.
pub fn minimize_timer_slack() {
    // SAFETY: this option takes a plain number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Shortest time slice that the kernel grants.
const SLICE: Span = Span::from_micros(100);

/// Requests short time slices. A task that needs the processor briefly then gets it at once,
/// instead of after the slice of a computing program: without this, one of 80 packets waited for a
/// slice of a millisecond (Linux 6.12 and later, `sched_setattr(2)`; no effect before).
pub fn request_short_slices() {
    // SAFETY: plain integers, of which all zero is a valid value.
    let mut now: libc::sched_attr = unsafe { std::mem::zeroed() };
    #[allow(clippy::cast_possible_truncation)] // 48
    let size = size_of_val(&now) as u32;
    // SAFETY: the kernel writes at most `size` octets, and reads as many; both calls are about this
    // thread.
    unsafe {
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut now, size, 0) == 0
            && i32::try_from(now.sched_policy) == Ok(libc::SCHED_OTHER)
        {
            now.sched_runtime = SLICE.nanos();
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const now, 0);
        }
    }
}

/// Waits for successive instants: first sleeps, then spins on the clock.
///
/// The spinning time follows the observed wake-up latency, because spinning takes CPU
/// time from other tasks: the mean plus four times the mean deviation, as for
/// retransmission timers (RFC 6298).
pub struct Alarm {
    longest: Span,
    mean: f64,
    deviation: f64,
}

/// Weight of a new latency in the mean, and in the deviation (RFC 6298).
const WEIGHTS: (f64, f64) = (0.125, 0.25);

impl Alarm {
    /// An alarm that spins for at most `longest` before an instant; this is also the initial value.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // microseconds
    pub fn new(longest: Span) -> Self {
        Self { longest, mean: longest.nanos() as f64, deviation: 0.0 }
    }

    /// Waits for an instant. Returns early with `false` if the program is asked to stop.
    #[must_use]
    pub fn wait_until(&mut self, moment: Instant) -> bool {
        loop {
            if stop::asked() {
                return false;
            }
            let left = moment.since(now());
            if left == Span::ZERO {
                return true;
            }
            let watch = self.watch();
            if left > watch {
                let wake = moment - watch;
                sleep_until(wake);
                self.learn(now().since(wake));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, and is never negative
    fn watch(&self) -> Span {
        Span::from_nanos((self.mean + 4.0 * self.deviation) as u64).min(self.longest)
    }

    /// Records a wake-up latency. Values above the maximum spinning time are limited to it.
    #[allow(clippy::cast_precision_loss)] // microseconds
    fn learn(&mut self, late: Span) {
        let error = late.min(self.longest).nanos() as f64 - self.mean;
        self.mean += WEIGHTS.0 * error;
        self.deviation += WEIGHTS.1 * (error.abs() - self.deviation);
    }
}

/// Sleeps until an instant, or until a signal arrives.
pub fn sleep_until(moment: Instant) {
    let time = timespec(moment.nanos());
    // SAFETY: `time` is a valid timespec, and no remaining time is asked for. A signal ends the
    // sleep early, which the caller's loop expects.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_calendar_shows() {
        let before = Offset { nanos: 1_000_000, error: 40 };
        assert!(Offset { nanos: 1_000_090, error: 50 }.agrees(before));
        assert!(!Offset { nanos: 1_000_091, error: 50 }.agrees(before));
        assert!(!Offset { nanos: -5_000_000, error: 50 }.agrees(before));
        assert!(Offset::measure_well().agrees(Offset::measure_well()), "two at one time");
    }

    #[test]
    fn stamps_are_moved_between_the_clocks() {
        let offset = Offset { nanos: 1_000_000_000_000, error: 50 };
        let now = Instant::from_nanos(20_000_000_000);
        let moved = |real| offset.to_monotonic(real, now).map(Instant::nanos);
        assert_eq!(moved(1_019_999_999_000), Some(19_999_999_000));
        assert_eq!(moved(1_020_000_000_050), Some(20_000_000_050), "within the error");
        assert_eq!(moved(1_020_000_000_051), None, "from the future: the clock was set back");
        assert_eq!(moved(1_009_999_999_999), None, "too old: the clock was set forward");
        assert_eq!(moved(0), None);
        assert_eq!(moved(u64::MAX), None);
    }

    #[test]
    fn the_measured_offset_moves_the_realtime_clock() {
        let real = read(libc::CLOCK_REALTIME);
        let offset = Offset::measure_well();
        assert!(offset.to_monotonic(real, now()).is_some());
    }

    #[test]
    fn waiting_ends_not_before_its_moment() {
        let moment = now() + Span::from_millis(2);
        assert!(Alarm::new(Span::from_micros(100)).wait_until(moment));
        assert!(now() >= moment);
    }

    #[test]
    fn the_clock_is_watched_as_long_as_waking_takes() {
        let mut alarm = Alarm::new(Span::from_micros(30));
        assert_eq!(alarm.watch(), Span::from_micros(30));
        (0..100).for_each(|turn| alarm.learn(Span::from_micros(4 + turn % 2)));
        assert!((5..9).contains(&(alarm.watch().nanos() / 1_000)), "{:?}", alarm.watch());
        (0..100).for_each(|_| alarm.learn(Span::from_millis(3)));
        assert!((29..=30).contains(&(alarm.watch().nanos() / 1_000)), "{:?}", alarm.watch());
        let mut sleeper = Alarm::new(Span::ZERO);
        sleeper.learn(Span::from_millis(3));
        assert_eq!(sleeper.watch(), Span::ZERO);
    }
}
