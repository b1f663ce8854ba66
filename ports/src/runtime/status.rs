//! How the loop itself fared, second by second: the evidence that it had the machine to itself.

use airloom_engine::time::{Instant, Span};

use crate::runtime::wall_clock;

/// Fewer sleeps than this in a second say nothing of what one costs.
const FEW: u64 = 100;

/// One second of the loop's life. The sums of time are within the second, to a turn's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// When it began.
    pub start: Instant,
    /// When it ended; about a second later, or more if the loop could not run.
    pub end: Instant,
    /// Time in which the loop did not wait: worked, or was not let run.
    pub busy: Span,
    /// Time in which it waited without giving up its processor.
    pub spun: Span,
    /// Processor time that the loop used.
    pub cpu: Span,
    /// Time in which it was ready to run and had no processor; zero where the kernel keeps no
    /// such account.
    pub waited: Span,
    /// The longest time between two looks at the ports.
    pub stall: Span,
    /// How late the most belated event was when its turn came.
    pub backlog: Span,
    /// Frames taken in; a super-frame is one here.
    pub taken_in: u64,
    /// Turns of the loop.
    pub turns: u64,
    /// Times that it went to sleep.
    pub sleeps: u64,
    /// Time in which the machine's processors were idle, all together.
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
    /// The seconds that are complete.
    #[must_use]
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// Processor time that a sleep took in the last complete second: what was used beside work and
    /// waiting awake. None if there were few sleeps, or the thread was kept from its processor, so
    /// that the figure would mean nothing.
    #[must_use]
    pub fn cost_of_sleep(&self) -> Option<Span> {
        let last = self.seconds.last()?;
        if last.sleeps < FEW || last.waited.nanos() * 20 > last.busy.nanos() {
            return None;
        }
        let rest = last.cpu.saturating_sub(last.busy + last.spun);
        Some(Span::from_nanos(rest.nanos() / last.sleeps))
    }

    /// Whether in the last complete second the machine had a processor to spare: idle, or kept awake by
    /// the loop for nothing but to be on time.
    #[must_use]
    pub fn spare(&self) -> bool {
        self.seconds.last().is_some_and(|last| last.idle + last.spun >= last.end.since(last.start))
    }

    /// The second that is running, to be added to.
    pub(crate) fn current(&mut self) -> &mut Second {
        &mut self.current
    }

    /// Begins the first second; to be called on the loop's own thread.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.cpu = wall_clock::thread_cpu();
        self.waited = wall_clock::thread_waited(&mut self.text).unwrap_or(0);
        self.idle = wall_clock::idle(&mut self.text).unwrap_or(0);
        self.current = Second { start: now, ..Second::default() };
    }

    /// Closes the running second if it is over; true if it was.
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
