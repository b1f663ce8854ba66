//! On which processor the loop's thread runs.
//!
//! The kernel moves an ordinary thread that has to wait to a processor that is idle. One that goes
//! before all others never waits, and wakes where it last ran: whoever is at work there stands still
//! until it sleeps again, for as long as the laboratory lives if he may run nowhere else, while
//! another processor has nothing to do. So a second thread looks twice a second which processor the
//! others leave most of, and puts the loop there if it finds the same one again.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// A move has to win a processor of which others left so many nanoseconds more between two looks, for caches go cold
/// with it. Little is enough: who stands still behind a loop that takes four fifths of a processor uses no
/// more than the fifth that it leaves.
const GAIN: u64 = 40_000_000;

/// Places the thread that made it until it is dropped.
#[derive(Debug)]
pub struct Placing {
    end: Option<mpsc::Sender<()>>,
    watcher: Option<JoinHandle<()>>,
}

impl Placing {
    /// Begins to place the calling thread. To be called before that takes precedence, which threads inherit.
    /// Where there is nothing to choose, or no account of processors, it stays where it is.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: no arguments.
        let thread = unsafe { libc::gettid() };
        let (end, ended) = mpsc::channel();
        let watch = move || {
            let (mut before, mut found) = (None, None);
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let now = Account::read(thread);
                let better = match (&before, &now) {
                    (Some(before), Some(now)) if goes_before_others(thread) => now.better(before),
                    _ => None,
                };
                if let Some(better) = better.filter(|_| better == found) {
                    place(thread, better);
                }
                (before, found) = (now, better);
            }
        };
        let watcher = thread::Builder::new().name("airloom-placing".into()).spawn(watch).ok();
        Self { end: Some(end), watcher }
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(watcher) = self.watcher.take() {
            // It cannot panic, and if it did the thread would stay where it is.
            let _ = watcher.join();
        }
    }
}

/// What processors and the thread have done so far.
#[derive(Debug, Default)]
struct Account {
    /// Number and idle nanoseconds of each processor that the thread may run on.
    idle: Vec<(usize, u64)>,
    /// Nanoseconds of processor that the thread has used.
    used: u64,
    /// Where it last ran.
    here: usize,
}

impl Account {
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

    /// The processor of which others leave more than of the one where the thread is.
    fn better(&self, before: &Self) -> Option<usize> {
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

fn goes_before_others(thread: i32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::sched_getscheduler(thread) == libc::SCHED_RR }
}

/// Moves the thread; it may still run wherever it might before, but has no reason to.
fn place(thread: i32, number: usize) {
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
    use crate::precedence::Precedence;

    const MS: u64 = 1_000_000;

    fn account(here: usize, used: u64, idle: &[u64]) -> Account {
        Account { idle: idle.iter().map(|ms| ms * MS).enumerate().collect(), used: used * MS, here }
    }

    #[test]
    fn it_reads_the_kernels_account() {
        let stat =
            "cpu  7 0 0 9 0 0\ncpu0 3 0 5 100 20 1 0 0\ncpu11 1 1 1 7 0 0 0\nintr 5 6\ncpu9 0 0 0 1 1\n";
        assert_eq!(idle_ticks(stat), [(0, 120), (11, 7)]);
        // SAFETY: no arguments.
        let own = Account::read(unsafe { libc::gettid() }).expect("an account");
        assert!(own.idle.iter().any(|&(number, _)| number == own.here));
    }

    #[test]
    fn it_goes_where_others_leave_more() {
        let before = account(1, 50, &[0, 0, 0]);
        // Others use 150 ms of its own processor, 25 and 450 of the others.
        let crowded = account(1, 350, &[475, 50, 50]);
        assert_eq!(crowded.better(&before), Some(0));
        // One who never rests gets what it leaves, a fifth.
        assert_eq!(account(1, 440, &[475, 20, 0]).better(&before), Some(0));
        // Alone on its own, it stays, whatever it uses of that.
        assert_eq!(account(1, 525, &[495, 25, 495]).better(&before), None);
        // Too little to gain.
        assert_eq!(account(1, 50, &[475, 450, 0]).better(&before), None);
        // It has just moved.
        assert_eq!(crowded.better(&account(0, 50, &[0, 0, 0])), None);
    }

    #[test]
    fn who_goes_before_others_leaves_the_processor_of_one_who_may_run_nowhere_else() {
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
        let _placing = Placing::begin();
        // SAFETY: no arguments.
        let thread = unsafe { libc::gettid() };
        let read = || Account::read(thread).expect("an account");
        if !Precedence::take().is_allowed() {
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
            chances = if now.better(&before).is_some() { chances + 1 } else { 0 };
            most = most.max(chances);
            before = now;
        }
        most < 5
    }
}
