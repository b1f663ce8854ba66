//! CPU affinity of the loop's thread.
//!
//! The kernel does not migrate a real-time thread that can run. A task pinned to the processor
//! where the loop wakes would starve for the whole run, even with other processors idle. A helper
//! thread therefore determines twice a second which processor the other tasks leave most idle. If
//! the result is the same twice in a row, it moves the loop there.

use std::fs;
use std::time::Duration;

use rustix::io;
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

use crate::runtime::idle_time::{self, Polled};
use crate::runtime::periodic::Periodic;

/// Period of the observation.
const LOOK: Duration = Duration::from_millis(500);
/// Minimum gain of a move, in idle nanoseconds per period, because a move loses warm caches. A
/// small value suffices: if the loop uses four fifths of a processor, a starving task uses at
/// most the remaining fifth.
const GAIN: u64 = 40_000_000;

/// Migrates the thread that created it, until it is dropped.
#[derive(Debug)]
pub struct Affinity {
    /// None without a thread: the loop's thread then stays on its processor.
    _watcher: Option<Periodic>,
}

impl Affinity {
    /// Starts to observe the calling thread. Must be called before the thread becomes
    /// real-time, because threads inherit that. If there is only one processor, or no CPU
    /// accounting, the thread is not moved.
    ///
    /// Time in which a processor polled counts as idle.
    #[must_use]
    pub fn begin(polled: Polled) -> Self {
        let thread = gettid();
        let (mut before, mut found) = (None, None);
        let watch = move || {
            let now = Usage::read(thread, &polled);
            let better = match (&before, &now) {
                (Some(before), Some(now)) if is_realtime(thread) => now.less_busy(before),
                _ => None,
            };
            if let Some(better) = better.filter(|_| better == found) {
                migrate(thread, better);
            }
            (before, found) = (now, better);
        };
        Self { _watcher: Periodic::start("airloom-affinity", LOOK, watch).ok() }
    }
}

/// CPU time so far.
#[derive(Debug, Default)]
struct Usage {
    /// Number and idle nanoseconds of each processor that the thread may run on.
    idle: Vec<(usize, u64)>,
    /// CPU time that the thread has used, in nanoseconds.
    used: u64,
    /// Processor on which it last ran.
    here: usize,
}

impl Usage {
    fn read(thread: Pid, polled: &Polled) -> Option<Self> {
        let own = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
        let place = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
        let allowed = sched_getaffinity(Some(thread)).ok()?;
        let mut idle = idle_time::of_processors(polled)?;
        idle.retain(|&(number, _)| number < CpuSet::MAX_CPU && allowed.is_set(number));
        Some(Self {
            idle,
            used: own.split_ascii_whitespace().next()?.parse().ok()?,
            // Field 39. A name may contain blanks; field 2 ends at the last parenthesis.
            here: place.rsplit(')').next()?.split_ascii_whitespace().nth(36)?.parse().ok()?,
        })
    }

    /// The processor that other tasks leave more idle than the current one.
    fn less_busy(&self, before: &Self) -> Option<usize> {
        if self.here != before.here {
            return None; // some of its usage was on another processor
        }
        let mut left = self.idle.iter().filter_map(|&(number, idle)| {
            let (_, then) = before.idle.iter().find(|&&(other, _)| other == number)?;
            let own = if number == self.here { self.used.saturating_sub(before.used) } else { 0 };
            Some((idle.saturating_sub(*then) + own, number))
        });
        let here = left.clone().find(|&(_, number)| number == self.here)?.0;
        let (most, number) = left.by_ref().max()?;
        (number != self.here && most > here + GAIN).then_some(number)
    }
}

fn is_realtime(thread: Pid) -> bool {
    // SAFETY: no pointers.
    let policy = unsafe { libc::sched_getscheduler(thread.as_raw_pid()) };
    matches!(policy, libc::SCHED_RR | libc::SCHED_FIFO)
}

/// Migrates the thread. All processors stay allowed, but the kernel has no reason to move it again.
/// A thread that cannot be migrated stays where it is.
fn migrate(thread: Pid, number: usize) {
    let Ok(before) = sched_getaffinity(Some(thread)) else { return };
    let _ = bind(thread, number);
    let _ = sched_setaffinity(Some(thread), &before);
}

/// Allows a thread one processor only.
///
/// # Errors
/// If this machine has no such processor, or the thread may not use it.
pub fn bind(thread: Pid, number: usize) -> io::Result<()> {
    if number >= CpuSet::MAX_CPU {
        return Err(io::Errno::INVAL);
    }
    let mut only = CpuSet::new();
    only.set(number);
    sched_setaffinity(Some(thread), &only)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::runtime::priority::Priority;

    const MS: u64 = 1_000_000;

    fn usage(here: usize, used: u64, idle: &[u64]) -> Usage {
        Usage { idle: idle.iter().map(|ms| ms * MS).enumerate().collect(), used: used * MS, here }
    }

    #[test]
    fn it_reads_the_kernels_account() {
        let own = Usage::read(gettid(), &Polled::default()).expect("the kernel keeps it");
        assert!(own.idle.iter().any(|&(number, _)| number == own.here));
    }

    #[test]
    fn it_goes_where_others_leave_more() {
        let before = usage(1, 50, &[0, 0, 0]);
        // Other tasks use 150 ms of its own processor, 25 and 450 of the others.
        let crowded = usage(1, 350, &[475, 50, 50]);
        assert_eq!(crowded.less_busy(&before), Some(0));
        // A task that never sleeps gets the remaining fifth.
        assert_eq!(usage(1, 440, &[475, 20, 0]).less_busy(&before), Some(0));
        // Alone on its processor, it stays, whatever its usage.
        assert_eq!(usage(1, 525, &[495, 25, 495]).less_busy(&before), None);
        // The gain is too small.
        assert_eq!(usage(1, 50, &[475, 450, 0]).less_busy(&before), None);
        // It has just moved.
        assert_eq!(crowded.less_busy(&usage(0, 50, &[0, 0, 0])), None);
    }

    #[test]
    fn a_realtime_thread_leaves_the_processor_of_a_pinned_task() {
        let (told, hears) = mpsc::channel();
        let ended = &AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(move || {
                let Ok(number) = hears.recv() else { return };
                bind(gettid(), number).expect("this thread may use all that it was given");
                while !ended.load(Ordering::Relaxed) {}
            });
            scope.spawn(move || {
                let moves = asked_to_move(told);
                ended.store(true, Ordering::Relaxed);
                assert!(moves, "another processor had more to give for seconds, and it stayed");
            });
        });
    }

    /// Works and sleeps in turn like the loop, beside a busy thread that gets the
    /// processor's number. Returns false if it is never moved although a better processor
    /// existed for some periods in a row.
    fn asked_to_move(told: mpsc::Sender<usize>) -> bool {
        let _placing = Affinity::begin(Polled::default());
        let thread = gettid();
        let read = || Usage::read(thread, &Polled::default()).expect("the kernel keeps it");
        if !Priority::take().is_allowed() {
            return true;
        }
        let mut before = read();
        let began = before.here;
        told.send(began).expect("it listens");
        let (mut chances, mut most) = (0, 0);
        for _ in 0..20 {
            let look = Instant::now();
            while look.elapsed() < LOOK {
                let work = Instant::now();
                while work.elapsed() < Duration::from_micros(300) {}
                thread::sleep(Duration::from_micros(200));
            }
            let now = read();
            if now.here != began {
                return true;
            }
            chances = if now.less_busy(&before).is_some() { chances + 1 } else { 0 };
            most = most.max(chances);
            before = now;
        }
        most < 5
    }
}
