//! Threads that keep idle processors from halting.
//!
//! An idle processor of a virtual machine without a driver for cpuidle executes HLT. The hypervisor
//! then has to schedule it again when an interrupt comes: 30 to 70 us on an idle host, milliseconds
//! where other machines wait for the same processor. With one thread of policy `SCHED_IDLE` on each
//! processor none is ever idle. Such a thread gives way to any other task at once, and has a weight
//! of 3 beside 1024 of one at nice 0 (`sched(7)`; Linux, `kernel/sched/sched.h`).
//!
//! While other tasks use more than half of all processors' time, none polls. A virtual machine that
//! wants all of its processors all of the time is preempted for longer by the hypervisor than one
//! that sleeps now and then.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use airloom_engine::time::Span;
use rustix::io;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::Error;
use crate::runtime::{idle_time, wall_clock};

/// Turns of the loop between two looks at the clocks and the orders: some 500 us.
const TURNS: u32 = 10_000;
/// Time over which the use of the processors by other tasks is judged.
const PERIOD: Duration = Duration::from_millis(500);
/// Time after which a thread looks whether it may poll again.
const REST: Duration = Duration::from_millis(50);

/// Processor time of each thread, in nanoseconds, by the number of its processor.
type Spent = Arc<[(usize, AtomicU64)]>;

/// The threads. They end when this is dropped, each as soon as it gets its processor.
#[derive(Debug)]
pub struct IdlePoll {
    orders: Arc<Orders>,
    spent: Spent,
    end: Option<Sender<()>>,
    observer: Option<JoinHandle<()>>,
}

/// What the threads are to do.
#[derive(Debug, Default)]
struct Orders {
    over: AtomicBool,
    rest: AtomicBool,
}

/// The processor time of the threads, also for other threads.
#[derive(Clone, Debug, Default)]
pub struct Account(Spent);

impl Account {
    /// Nanoseconds that a processor polled instead of being idle; 0 for one without a thread.
    #[must_use]
    pub fn of(&self, processor: usize) -> u64 {
        let found = self.0.iter().find(|(number, _)| *number == processor);
        found.map_or(0, |(_, spent)| spent.load(Ordering::Relaxed))
    }
}

impl IdlePoll {
    /// Starts a thread on each of these processors.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel refuses a thread, its policy or its processor.
    pub fn start(processors: &[usize]) -> Result<Self, Error> {
        let spent = processors.iter().map(|&number| (number, AtomicU64::new(0))).collect();
        let mut poll = Self { orders: Arc::default(), spent, end: None, observer: None };
        if processors.is_empty() {
            return Ok(poll);
        }
        let (ready, started) = channel();
        for place in 0..processors.len() {
            let (orders, spent) = (Arc::clone(&poll.orders), Arc::clone(&poll.spent));
            let ready = ready.clone();
            thread::Builder::new()
                .name("airloom-idle".into())
                .spawn(move || run(&orders, &spent[place], &ready))
                .map_err(|source| Error::Loop { what: "a thread that polls", source })?;
        }
        for prepared in started.iter().take(processors.len()) {
            prepared.map_err(|source| Error::Loop { what: "a thread that polls", source })?;
        }
        let (orders, account) = (Arc::clone(&poll.orders), poll.account());
        let (end, ended) = channel();
        let observer = thread::Builder::new()
            .name("airloom-idle-use".into())
            .spawn(move || observe(&orders, &account, &ended))
            .map_err(|source| Error::Loop { what: "a thread that observes processors", source })?;
        (poll.end, poll.observer) = (Some(end), Some(observer));
        Ok(poll)
    }

    /// Processor time of all threads so far, exact to some milliseconds.
    #[must_use]
    pub fn spent(&self) -> Span {
        Span::from_nanos(self.spent.iter().map(|(_, spent)| spent.load(Ordering::Relaxed)).sum())
    }

    /// The processor time by processor.
    #[must_use]
    pub fn account(&self) -> Account {
        Account(Arc::clone(&self.spent))
    }
}

impl Drop for IdlePoll {
    fn drop(&mut self) {
        // Nobody waits for the threads that poll: on a busy processor one may not run for seconds.
        self.orders.over.store(true, Ordering::Relaxed);
        drop(self.end.take());
        if let Some(observer) = self.observer.take() {
            // It cannot panic; if it did, the threads would poll on until the end.
            let _ = observer.join();
        }
    }
}

fn run(orders: &Orders, (processor, spent): &(usize, AtomicU64), ready: &Sender<std::io::Result<()>>) {
    let prepared = prepare(*processor);
    let failed = prepared.is_err();
    // The receiver is gone if another thread failed before.
    let _ = ready.send(prepared);
    // Without its policy it would take the processor from others.
    while !failed && !orders.over.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            spin_loop();
        }
        spent.store(wall_clock::thread_cpu(), Ordering::Relaxed);
        if orders.rest.load(Ordering::Relaxed) {
            thread::sleep(REST);
        }
    }
}

/// Lets the threads rest while others use more than half of all processors' time.
fn observe(orders: &Orders, polling: &Account, ended: &Receiver<()>) {
    let look = || Some((idle_time::of_processors(polling)?, Instant::now()));
    let mut before = look();
    while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        let now = look();
        if let (Some((idle, then)), Some((later, at))) = (&before, &now) {
            let total =
                |times: &[(usize, u64)]| times.iter().map(|(_, time)| u128::from(*time)).sum::<u128>();
            let all = at.duration_since(*then).as_nanos() * later.len() as u128;
            let used_by_others = all.saturating_sub(total(later).saturating_sub(total(idle)));
            orders.rest.store(2 * used_by_others > all, Ordering::Relaxed);
        }
        before = now;
    }
}

/// Gives the calling thread its policy and its processor, and leaves signals to other threads.
fn prepare(processor: usize) -> std::io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the signal set is filled before it is used, and all outlives the calls; 0 is this thread.
    let refused = unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) != 0
    };
    if refused {
        return Err(std::io::Error::last_os_error());
    }
    let mut only = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return Err(io::Errno::INVAL.into());
    }
    only.set(processor);
    Ok(sched_setaffinity(None, &only)?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::thread::sched_getaffinity;

    use super::*;

    fn first() -> usize {
        let allowed = sched_getaffinity(None).expect("Linux has it");
        (0..CpuSet::MAX_CPU).find(|&number| allowed.is_set(number)).expect("this thread runs on one")
    }

    #[test]
    fn a_processor_polls_until_the_end_and_not_beyond() {
        let poll = IdlePoll::start(&[first()]).expect("the kernel permits it");
        let (account, start) = (poll.account(), Instant::now());
        while poll.spent() == Span::ZERO {
            assert!(start.elapsed() < Duration::from_secs(60), "the thread got no processor time");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(account.of(first()), poll.spent().nanos());
        assert_eq!(account.of(CpuSet::MAX_CPU), 0);
        drop(poll);
        while Arc::strong_count(&account.0) > 1 {
            assert!(start.elapsed() < Duration::from_secs(60), "the thread goes on");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_processor_that_does_not_exist_is_refused() {
        assert!(IdlePoll::start(&[CpuSet::MAX_CPU]).is_err());
        assert!(IdlePoll::start(&[CpuSet::MAX_CPU - 1]).is_err(), "the kernel has no such processor here");
    }
}
