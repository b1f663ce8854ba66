//! Statistics of the loop, second by second: evidence that it got the processor time it needed.

use airloom_engine::time::{Instant, Span};

use crate::runtime::wall_clock;

/// With fewer sleeps than this in a second, the cost of a sleep is unknown.
const FEW: u64 = 100;

/// One second of the loop. Sums of time cover the second, up to the length of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Begin of the second.
    pub start: Instant,
    /// Its end; about a second later, or more if the loop could not run.
    pub end: Instant,
    /// Time in which the loop did not wait: it worked, or was preempted.
    pub busy: Span,
    /// Time in which it waited without releasing its processor.
    pub spun: Span,
    /// CPU time of the loop.
    pub cpu: Span,
    /// Time in which it was runnable but had no processor; zero if the kernel does not account for
    /// it.
    pub waited: Span,
    /// The longest time between two polls of the ports.
    pub stall: Span,
    /// Maximum lateness of an event when it was processed.
    pub backlog: Span,
    /// Frames read; a super-frame counts as one.
    pub taken_in: u64,
    /// Iterations of the loop.
    pub turns: u64,
    /// Number of sleeps.
    pub sleeps: u64,
    /// Sum of the idle time of the machine's processors.
    pub idle: Span,
}

/// The seconds so far.
#[derive(Debug, Default)]
pub struct Status {
    seconds: Vec<Second>,
    current: Second,
    cpu: u64,
    waited: u64,
    idle: u64,
    text: String,
}

impl Status {
    /// The complete seconds.
    #[must_use]
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// CPU time of one sleep in the last complete second: CPU time beside work and
    /// spinning. None if there were few sleeps, or if the thread waited for its processor,
    /// so that the figure is meaningless.
    #[must_use]
    pub fn cost_of_sleep(&self) -> Option<Span> {
        let last = self.seconds.last()?;
        if last.sleeps < FEW || last.waited.nanos() * 20 > last.busy.nanos() {
            return None;
        }
        let rest = last.cpu.saturating_sub(last.busy + last.spun);
        Some(Span::from_nanos(rest.nanos() / last.sleeps))
    }

    /// Whether the machine had a spare processor in the last complete second: one that was idle, or
    /// used by the loop only for spinning.
    #[must_use]
    pub fn spare(&self) -> bool {
        self.seconds.last().is_some_and(|last| last.idle + last.spun >= last.end.since(last.start))
    }

    /// The current second, to be updated.
    pub(crate) fn current(&mut self) -> &mut Second {
        &mut self.current
    }

    /// Begins the first second; must be called on the loop's thread.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.cpu = wall_clock::thread_cpu();
        self.waited = wall_clock::thread_waited(&mut self.text).unwrap_or(0);
        self.idle = wall_clock::idle(&mut self.text).unwrap_or(0);
        self.current = Second { start: now, ..Second::default() };
    }

    /// Closes the current second if it is over; returns true if it was.
    pub(crate) fn close(&mut self, now: Instant, length: Span) -> bool {
        let over = now.since(self.current.start) >= length;
        if over {
            let cpu = wall_clock::thread_cpu();
            let waited = wall_clock::thread_waited(&mut self.text).unwrap_or(0);
            let idle = wall_clock::idle(&mut self.text).unwrap_or(0);
            self.current.end = now;
            self.current.cpu = Span::from_nanos(cpu.saturating_sub(self.cpu));
            self.current.waited = Span::from_nanos(waited.saturating_sub(self.waited));
            self.current.idle = Span::from_nanos(idle.saturating_sub(self.idle));
            self.seconds.push(self.current);
            (self.cpu, self.waited, self.idle) = (cpu, waited, idle);
            self.current = Second { start: now, ..Second::default() };
        }
        over
    }
}
