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
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::gettid;

use crate::error::Error;
use crate::runtime::idle_time::{self, Polled};
use crate::runtime::periodic::Periodic;
use crate::runtime::{affinity, priority, signals, wall_clock};

/// Turns of the loop between two looks at the clocks and the orders: some 500 us.
const TURNS: u32 = 10_000;
/// Time over which the use of the processors by other tasks is judged.
const PERIOD: Duration = Duration::from_millis(500);
/// Time after which a thread looks whether it may poll again.
const REST: Duration = Duration::from_millis(50);

/// The threads. They end when this is dropped, each as soon as it gets its processor.
#[derive(Debug)]
pub struct IdlePoll {
    orders: Arc<Orders>,
    polled: Polled,
    observer: Option<Periodic>,
}

/// What the threads are to do.
#[derive(Debug, Default)]
struct Orders {
    over: AtomicBool,
    rest: AtomicBool,
}

impl IdlePoll {
    /// Starts a thread on each of these processors.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel refuses a thread, its policy or its processor.
    pub fn start(processors: &[usize]) -> Result<Self, Error> {
        let refused = |source| Error::Loop { what: "a thread that polls", source };
        let mut poll = Self { orders: Arc::default(), polled: Polled::new(processors), observer: None };
        if processors.is_empty() {
            return Ok(poll);
        }
        let (ready, started) = channel();
        for &processor in processors {
            let (orders, polled) = (Arc::clone(&poll.orders), poll.polled());
            let ready = ready.clone();
            thread::Builder::new()
                .name("airloom-idle".into())
                .spawn(move || run(&orders, processor, &polled, &ready))
                .map_err(refused)?;
        }
        for prepared in started.iter().take(processors.len()) {
            prepared.map_err(refused)?;
        }
        let observe = observer(Arc::clone(&poll.orders), poll.polled());
        poll.observer = Some(Periodic::start("airloom-idle-use", PERIOD, observe).map_err(refused)?);
        Ok(poll)
    }

    /// The processor time of the threads, exact to a millisecond.
    #[must_use]
    pub fn polled(&self) -> Polled {
        self.polled.clone()
    }
}

impl Drop for IdlePoll {
    fn drop(&mut self) {
        // Nobody waits for the threads that poll: on a busy processor one may not run for seconds.
        self.orders.over.store(true, Ordering::Relaxed);
    }
}

fn run(orders: &Orders, processor: usize, polled: &Polled, ready: &Sender<io::Result<()>>) {
    let prepared = prepare(processor);
    let failed = prepared.is_err();
    // The receiver is gone if another thread failed before.
    let _ = ready.send(prepared);
    // Without its policy it would take the processor from others.
    while !failed && !orders.over.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            spin_loop();
        }
        polled.note(processor, wall_clock::thread_cpu());
        if orders.rest.load(Ordering::Relaxed) {
            thread::sleep(REST);
        }
    }
}

/// Lets the threads rest, at each call, if others used more than half of all processors' time since
/// the last one.
fn observer(orders: Arc<Orders>, polled: Polled) -> impl FnMut() + Send {
    let look = move || Some((idle_time::of_processors(&polled)?, Instant::now()));
    let mut before = look();
    move || {
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
fn prepare(processor: usize) -> io::Result<()> {
    signals::leave_to_others();
    priority::set_policy(libc::SCHED_IDLE, 0)?;
    Ok(affinity::bind(gettid(), processor)?)
}

#[cfg(test)]
mod tests {
    use airloom_engine::time::Span;
    use rustix::thread::{CpuSet, sched_getaffinity};

    use super::*;

    fn first() -> usize {
        let allowed = sched_getaffinity(None).expect("Linux has it");
        (0..CpuSet::MAX_CPU).find(|&number| allowed.is_set(number)).expect("this thread runs on one")
    }

    #[test]
    fn a_processor_polls_until_the_end_and_not_beyond() {
        let poll = IdlePoll::start(&[first()]).expect("the kernel permits it");
        let (polled, orders, start) = (poll.polled(), Arc::clone(&poll.orders), Instant::now());
        while polled.total() == Span::ZERO {
            assert!(start.elapsed() < Duration::from_secs(60), "the thread got no processor time");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(polled.of(CpuSet::MAX_CPU), 0);
        drop(poll);
        while Arc::strong_count(&orders) > 1 {
            assert!(start.elapsed() < Duration::from_secs(60), "the thread goes on");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(polled.of(first()), polled.total().nanos());
    }

    #[test]
    fn a_processor_that_does_not_exist_is_refused() {
        assert!(IdlePoll::start(&[CpuSet::MAX_CPU]).is_err());
        assert!(IdlePoll::start(&[CpuSet::MAX_CPU - 1]).is_err(), "the kernel has no such processor here");
    }
}
