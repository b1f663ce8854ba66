//! On which processor the loop's thread runs.
//!
//! The kernel does not migrate a real-time thread that can run. A task pinned to the processor where
//! the loop wakes would starve for the whole run, even with other processors idle. So a helper thread
//! looks twice a second which processor the other tasks leave most idle, and moves the loop there if
//! it finds the same one twice.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// A move has to win so many idle nanoseconds between two looks, because it costs warm caches. Little is
/// enough: a task that starves behind a loop that takes four fifths of a processor uses at most the
/// fifth that the loop leaves.
const GAIN: u64 = 40_000_000;

/// Moves the thread that made it, until it is dropped.
#[derive(Debug)]
pub struct Affinity {
    end: Option<mpsc::Sender<()>>,
    watcher: Option<JoinHandle<()>>,
}

impl Affinity {
    /// Begins to watch the calling thread. Has to be called before that becomes real-time, which threads
    /// inherit. Without a choice of processors, or without the kernel's accounts, the thread is not moved.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: no arguments.
        let thread = unsafe { libc::gettid() };
        let (end, ended) = mpsc::channel();
        let watch = move || {
            let (mut before, mut found) = (None, None);
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let now = Usage::read(thread);
                let better = match (&before, &now) {
                    (Some(before), Some(now)) if is_realtime(thread) => now.idler(before),
                    _ => None,
                };
                if let Some(better) = better.filter(|_| better == found) {
                    migrate(thread, better);
                }
                (before, found) = (now, better);
            }
        };
        let watcher = thread::Builder::new().name("airloom-affinity".into()).spawn(watch).ok();
        Self { end: Some(end), watcher }
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(watcher) = self.watcher.take() {
            // It cannot panic, and if it did the thread would stay where it is.
            let _ = watcher.join();
        }
    }
}

/// Processor time so far.
#[derive(Debug, Default)]
struct Usage {
    /// Number and idle nanoseconds of each processor that the thread may run on.
    idle: Vec<(usize, u64)>,
    /// Nanoseconds of processor that the thread has used.
    used: u64,
    /// Where it last ran.
    here: usize,
}

impl Usage {
    fn read(thread: i32) -> Option<Self> {
        let own = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
        let place = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
        let allowed = allowed(thread)?;
        // SAFETY: no pointers.
        let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
        let mut idle = idle_ticks(&fs::read_to_string("/proc/stat").ok()?);
        idle.retain(|&(number, _)| number < 8 * size_of_val(&allowed) && is_in(&allowed, number));
        for (_, time) in &mut idle {
            *time = *time * 1_000_000_000 / ticks;
        }
        Some(Self {
            idle,
            used: own.split_ascii_whitespace().next()?.parse().ok()?,
            // The 39th field; names may have blanks, and end in the last parenthesis after field 2.
            here: place.rsplit(')').next()?.split_ascii_whitespace().nth(36)?.parse().ok()?,
        })
    }

    /// The processor that other tasks leave more idle than the one where the thread is.
    fn idler(&self, before: &Self) -> Option<usize> {
        if self.here != before.here {
            return None; // what it used was not all here
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

/// Number of each processor and the ticks that it has been idle, or idle and waiting for a disk, by `/proc/stat`.
fn idle_ticks(stat: &str) -> Vec<(usize, u64)> {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut times = words.skip(3).map(|word| word.parse::<u64>().ok());
        Some((number, times.next()?? + times.next()??))
    };
    stat.lines().filter(|line| !line.starts_with("cpu ")).map_while(of_line).collect()
}

fn allowed(thread: i32) -> Option<libc::cpu_set_t> {
    // SAFETY: a set of no processors is all zeros; the call fills it within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(thread, size_of_val(&set), &raw mut set) == 0).then_some(set)
    }
}

fn is_in(set: &libc::cpu_set_t, number: usize) -> bool {
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_ISSET(number, set) }
}

fn is_realtime(thread: i32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::sched_getscheduler(thread) == libc::SCHED_RR }
}

/// Moves the thread. It stays allowed everywhere, but the kernel has no reason to move it again.
fn migrate(thread: i32, number: usize) {
    let Some(before) = allowed(thread) else { return };
    bind(thread, number);
    // SAFETY: the set outlives the call.
    unsafe { libc::sched_setaffinity(thread, size_of_val(&before), &raw const before) };
}

fn bind(thread: i32, number: usize) {
    // SAFETY: a set of no processors is all zeros; it outlives the call, and the number is below its size.
    unsafe {
        let mut only: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(number, &mut only);
        libc::sched_setaffinity(thread, size_of_val(&only), &raw const only);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::runtime::priority::Priority;

    const MS: u64 = 1_000_000;

    fn usage(here: usize, used: u64, idle: &[u64]) -> Usage {
        Usage { idle: idle.iter().map(|ms| ms * MS).enumerate().collect(), used: used * MS, here }
    }

    #[test]
    fn it_reads_the_kernels_account() {
        let stat =
            "cpu  7 0 0 9 0 0\ncpu0 3 0 5 100 20 1 0 0\ncpu11 1 1 1 7 0 0 0\nintr 5 6\ncpu9 0 0 0 1 1\n";
        assert_eq!(idle_ticks(stat), [(0, 120), (11, 7)]);
        // SAFETY: no arguments.
        let own = Usage::read(unsafe { libc::gettid() }).expect("the kernel keeps it");
        assert!(own.idle.iter().any(|&(number, _)| number == own.here));
    }

    #[test]
    fn it_goes_where_others_leave_more() {
        let before = usage(1, 50, &[0, 0, 0]);
        // Others use 150 ms of its own processor, 25 and 450 of the others.
        let crowded = usage(1, 350, &[475, 50, 50]);
        assert_eq!(crowded.idler(&before), Some(0));
        // One who never rests gets what it leaves, a fifth.
        assert_eq!(usage(1, 440, &[475, 20, 0]).idler(&before), Some(0));
        // Alone on its own, it stays, whatever it uses of that.
        assert_eq!(usage(1, 525, &[495, 25, 495]).idler(&before), None);
        // Too little to gain.
        assert_eq!(usage(1, 50, &[475, 450, 0]).idler(&before), None);
        // It has just moved.
        assert_eq!(crowded.idler(&usage(0, 50, &[0, 0, 0])), None);
    }

    #[test]
    fn who_is_realtime_leaves_the_processor_of_one_who_may_run_nowhere_else() {
        let (told, hears) = mpsc::channel();
        let ended = &AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(move || {
                let Ok(number) = hears.recv() else { return };
                // SAFETY: no arguments.
                bind(unsafe { libc::gettid() }, number);
                while !ended.load(Ordering::Relaxed) {}
            });
            scope.spawn(move || {
                let moves = told_to_move(told);
                ended.store(true, Ordering::Relaxed);
                assert!(moves, "another processor had more to give for seconds, and it stayed");
            });
        });
    }

    /// Works and sleeps by turns as the loop does, beside whoever is told where; false if it is never moved although
    /// there was a better place for some looks in a row.
    fn told_to_move(told: mpsc::Sender<usize>) -> bool {
        let _placing = Affinity::begin();
        // SAFETY: no arguments.
        let thread = unsafe { libc::gettid() };
        let read = || Usage::read(thread).expect("the kernel keeps it");
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
            chances = if now.idler(&before).is_some() { chances + 1 } else { 0 };
            most = most.max(chances);
            before = now;
        }
        most < 5
    }
}
