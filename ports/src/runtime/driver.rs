//! The loop: one thread that reads frames from ports, advances the engine's time by the wall clock,
//! and sends frames to ports, until it is stopped.
//!
//! Frames of ready ports are read in batches that adapt to the size of the previous one. Each frame
//! is offered at the time of its read, and due events follow at once, so that a busy port delays no
//! event. All other actions arrive as commands, which are executed between two frames.
//!
//! While the engine is behind, ports wait, and commands do not.

use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use airloom_engine::time::{Instant, Span};
use airloom_engine::{Clock, PortId};
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::set_current_timer_slack;

use crate::error::Error;
use crate::port::Port;
use crate::runtime::affinity::Affinity;
use crate::runtime::background::Pending;
use crate::runtime::coalescing::Coalescing;
use crate::runtime::host_load::HostLoad;
use crate::runtime::idle_poll::IdlePoll;
use crate::runtime::idle_time::Polled;
use crate::runtime::lateness::Histogram;
use crate::runtime::poller::Poller;
use crate::runtime::priority::Priority;
use crate::runtime::spin_policy::SpinPolicy;
use crate::runtime::status::Status;
use crate::runtime::timer::Timer;
use crate::runtime::wall_clock::{self, WallClock};
use crate::runtime::{pm_qos, signals};
use crate::world::stalls::Stalls;
use crate::world::{Taken, World};

/// Maximum number of frames read from one port in one turn.
const BATCH: u32 = 64;
/// Maximum number of octets read from one port in one turn.
const BATCH_OCTETS: u32 = 512 * 1024;
/// While the loop spins for an instant, it does not poll the ports during this time before it. A
/// poll takes up to a microsecond, and the read of a frame some more, by which the event would be
/// late. If links slip, that is lost for good, and frames rather wait in their ports.
const LAST: (Span, Span) = (Span::from_micros(1), Span::from_micros(6));
/// Length of a period of the loop's status.
const SECOND: Span = Span::from_secs(1);
/// Number of sleeps measured at the start to estimate the cost of one; a few milliseconds in total.
const TRIALS: u64 = 32;
/// Poller number of the commands' eventfd.
const COMMANDS: u64 = u64::MAX;
/// Poller number of the timer for repeated notifications of peers.
const TIMER: u64 = u64::MAX - 1;

/// A world that is being driven, with statistics of the loop.
pub struct Driven {
    /// The engine and its edge.
    pub world: World,
    /// Its clock.
    pub clock: WallClock,
    /// How long frames may have waited in their ports: for each frame the time between the loop's
    /// last poll of the port, or its wake-up, and the read; an upper bound.
    pub ingress: Histogram,
    /// Lateness of the loop's wake-ups by the clock.
    pub wakes: Histogram,
    /// Status, second by second.
    pub status: Status,
    /// Whether the loop's thread may be real-time.
    pub preferred: bool,
    poller: Poller,
}

impl Driven {
    /// Replaces a port while the loop runs. Returns what is left of closing the old one.
    ///
    /// # Errors
    /// [`Error::Loop`] if the descriptor cannot be watched.
    pub fn exchange(&mut self, id: PortId, port: Box<dyn Port>) -> Result<Option<Pending>, Error> {
        if let Some(fd) = self.world.edge.ports[id.index()].port.fd() {
            self.poller.remove(fd);
        }
        let closing = self.world.exchange(id, port);
        self.watch(id)?;
        Ok(closing)
    }

    /// Watches a port that was added while the loop runs.
    ///
    /// # Errors
    /// [`Error::Loop`] if the descriptor cannot be watched.
    pub fn watch(&mut self, port: PortId) -> Result<(), Error> {
        match (u64::try_from(port.index()), self.world.edge.ports[port.index()].port.fd()) {
            (Ok(number), Some(fd)) => self.poller.add(fd, number),
            _ => Ok(()),
        }
    }
}

type Command = Box<dyn FnOnce(&mut Driven) + Send>;

/// The driven world, with the error that ended the loop, if any.
type Ended = (Driven, Option<Error>);

/// The handle of a running loop; dropping it ends the loop.
pub struct Driver {
    /// Taken to end the loop: the loop ends when the channel is closed.
    commands: Option<Sender<Command>>,
    eventfd: Arc<OwnedFd>,
    thread: Option<JoinHandle<Ended>>,
    clock: WallClock,
    idle_poll: IdlePoll,
}

impl Driver {
    /// Starts the clock at zero and the loop on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel refuses a resource of the loop; the world is lost then.
    pub fn start(mut world: World) -> Result<Self, Error> {
        let eventfd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|source| Error::Loop { what: "an eventfd", source: source.into() })?;
        let eventfd = Arc::new(eventfd);
        let poller = Poller::new()?;
        poller.add(eventfd.as_raw_fd(), COMMANDS)?;
        for (number, attached) in (0u64..).zip(&world.edge.ports) {
            if let Some(fd) = attached.port.fd() {
                poller.add(fd, number)?;
            }
        }
        let timer = Timer::new()?;
        poller.add(timer.as_raw_fd(), TIMER)?;
        let (commands, orders) = channel();
        world.reserve();
        let idle_poll = IdlePoll::start(&world.idle_poll)?;
        let clock = WallClock::start();
        world.start(clock)?;
        let driven = Driven {
            world,
            clock,
            ingress: Histogram::default(),
            wakes: Histogram::default(),
            status: Status::default(),
            preferred: false,
            poller,
        };
        let (last, polled) = (LAST.0, true);
        let idle_polled = idle_poll.polled();
        let (behind, idle, wake) = (false, idle_polled, Arc::clone(&eventfd));
        let looper = Loop { driven, orders, eventfd: wake, timer, last, polled, behind, idle_polled: idle };
        let thread = std::thread::Builder::new()
            .name("airloom-engine".into())
            .spawn(move || looper.run())
            .map_err(|source| Error::Loop { what: "a thread", source })?;
        Ok(Self { commands: Some(commands), eventfd, thread: Some(thread), clock, idle_poll })
    }

    /// The clock that drives the engine.
    #[must_use]
    pub fn clock(&self) -> WallClock {
        self.clock
    }

    /// Processor time of the threads that keep processors from halting.
    #[must_use]
    pub fn idle_polled(&self) -> Span {
        self.idle_poll.polled().total()
    }

    /// Runs a closure in the loop, after at most a turn of due events, and returns its result.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the loop has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Driven) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = channel();
        let command = move |driven: &mut Driven| {
            // The caller may have given up and dropped the receiver.
            let _ = reply.send(question(driven));
        };
        let commands = self.commands.as_ref().ok_or(Error::Stopped)?;
        commands.send(Box::new(command)).map_err(|_| Error::Stopped)?;
        notify(&self.eventfd);
        answer.recv().map_err(|_| Error::Stopped)
    }

    /// Ends the loop and returns the driven world, with an error of the loop itself, if any.
    ///
    /// # Errors
    /// [`Error::Panicked`] if the loop panicked; the driven world is lost then.
    pub fn stop(mut self) -> Result<(Driven, Option<Error>), Error> {
        self.end().unwrap_or(Err(Error::Stopped))
    }

    fn end(&mut self) -> Option<Result<Ended, Error>> {
        let thread = self.thread.take()?;
        self.commands = None;
        notify(&self.eventfd);
        Some(thread.join().map_err(|panic| Error::panicked(&*panic)))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end();
    }
}

fn notify(eventfd: &OwnedFd) {
    // A full counter has notified already.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

/// Result of a wait.
struct Look {
    /// Number of ready descriptors.
    ready: usize,
    /// Last time at which the ready descriptors were known to be empty, or the wake-up by them.
    since: Instant,
    /// False if descriptors were looked at, or the next event was due, at once.
    waited: bool,
}

struct Loop {
    driven: Driven,
    orders: Receiver<Command>,
    eventfd: Arc<OwnedFd>,
    timer: Timer,
    /// Time before an instant in which no port is polled: see [`LAST`].
    last: Span,
    /// Whether the ports were polled in this turn. Otherwise they are in the next.
    polled: bool,
    /// Whether events were left at the end of the last advance.
    behind: bool,
    /// Processor time that is idle but for the threads that poll.
    idle_polled: Polled,
}

impl Loop {
    fn run(mut self) -> Ended {
        // The default timer slack lets the kernel be 50 us late.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        signals::leave_to_others();
        // The helper thread inherits this thread's signal mask, but not its priority.
        let _affinity = Affinity::begin(self.idle_polled.clone());
        let priority = match self.driven.world.scheduling.map(Priority::fix) {
            None => Priority::take(),
            Some(Ok(fixed)) => fixed,
            Some(Err(source)) => {
                return (self.driven, Some(Error::Loop { what: "its scheduling", source }));
            }
        };
        self.driven.preferred = priority.is_allowed();
        let _latency = pm_qos::request();
        let error = self.run_loop(priority).err();
        (self.driven, error)
    }

    fn run_loop(&mut self, mut priority: Priority) -> Result<(), Error> {
        let clock = self.driven.clock;
        let mut looked = clock.now();
        let mut spin_policy = SpinPolicy::new(self.cost_of_sleep()?);
        self.set_policy(&mut spin_policy);
        let mut coalescing = Coalescing::default();
        let mut woken = looked;
        let mut host_load = HostLoad::default();
        let mut ended = looked;
        self.driven.status.begin(looked);
        loop {
            let look = self.look(looked, &mut spin_policy, coalescing.wait())?;
            let start = clock.now();
            let stalls = &mut self.driven.world.edge.stalls;
            let passed = if look.waited { Stalls::waited } else { Stalls::worked };
            passed(stalls, start);
            let mut taken = (0, 0);
            // If the list is full, further descriptors may be ready.
            if look.ready == 0 {
                looked = look.since;
            } else if !self.driven.poller.is_full(look.ready) {
                looked = start;
            }
            let mut stopped = false;
            for index in 0..look.ready {
                match self.driven.poller.ready(index) {
                    COMMANDS => stopped = !self.execute(),
                    TIMER => self.timer.expired(),
                    // Frames that came in now would wait in the engine, without a limit.
                    _ if self.behind => {}
                    number => {
                        let (frames, octets) = self.take_in(usize::try_from(number).unwrap_or(0), look.since);
                        taken = (taken.0 + frames, taken.1 + octets);
                    }
                }
            }
            if look.ready > 0 {
                coalescing.woke(taken.0, taken.1, start.since(woken));
                woken = start;
            }
            let now = clock.now();
            self.note_backlog(now);
            self.behind = !self.driven.world.advance(now);
            let again = self.driven.world.edge.notify(now);
            if again < Instant::NEVER {
                self.timer.arm(again, now);
            }
            let end = clock.now();
            self.driven.world.edge.stalls.worked(end);
            let second = self.driven.status.current();
            let busy = end.since(start);
            second.busy += busy;
            second.stall = second.stall.max(busy);
            second.turns += 1;
            self.driven.world.engine.set_host_busy(host_load.turn(busy, end.since(ended)));
            ended = end;
            if self.driven.status.close(end, SECOND) {
                self.driven.world.each_second();
                self.set_policy(&mut spin_policy);
                priority.used(self.driven.status.seconds().last().map_or(Span::ZERO, |second| second.cpu));
                if let Some(cost) = self.driven.status.cost_of_sleep() {
                    spin_policy.learn(cost);
                }
            }
            if stopped {
                return Ok(());
            }
        }
    }

    fn set_policy(&mut self, spin_policy: &mut SpinPolicy) {
        let slips = self.driven.world.engine.slips();
        spin_policy.set_allowance(slips, self.driven.status.spare());
        self.last = if slips { LAST.1 } else { LAST.0 };
    }

    fn note_backlog(&mut self, now: Instant) {
        if let Some(due) = self.driven.world.engine.wake_at() {
            let second = self.driven.status.current();
            second.backlog = second.backlog.max(now.since(due));
        }
    }

    /// CPU time of one short sleep, as the mean of a few.
    fn cost_of_sleep(&mut self) -> Result<Span, Error> {
        let before = wall_clock::thread_cpu();
        for _ in 0..TRIALS {
            self.driven.poller.wait(Some(Span::from_micros(1)))?;
        }
        Ok(Span::from_nanos(wall_clock::thread_cpu().saturating_sub(before) / TRIALS))
    }

    /// When the next event is due.
    fn due(&self) -> Instant {
        self.driven.world.engine.wake_at().unwrap_or(Instant::NEVER)
    }

    /// Waits until a port is ready, a command arrives, or the next event is due.
    fn look(
        &mut self,
        looked: Instant,
        spin_policy: &mut SpinPolicy,
        gather: Option<Span>,
    ) -> Result<Look, Error> {
        let clock = self.driven.clock;
        let mut waited = false;
        if let Some(wait) = gather {
            let now = clock.now();
            let due = self.due();
            let (advance, awake) = spin_policy.before(due.since(now));
            if due > now + awake + wait {
                wall_clock::sleep(wait.min(due.since(now).saturating_sub(advance)));
                self.driven.status.current().sleeps += 1;
                spin_policy.slept(clock.now().since(now));
                waited = true;
            }
        }
        if self.polled && self.last > LAST.0 {
            let now = clock.now();
            let due = self.due();
            if due <= now + self.last {
                self.polled = false;
                let look = self.spin(now, due, spin_policy)?;
                return Ok(Look { since: looked, waited, ..look });
            }
        }
        self.polled = true;
        // First without a wait: a ready port may have been ready since the last poll.
        let ready = self.driven.poller.wait(Some(Span::ZERO))?;
        if ready > 0 {
            return Ok(Look { ready, since: looked, waited });
        }
        let now = clock.now();
        let due = self.due();
        let (advance, awake) = spin_policy.before(due.since(now));
        if due <= now + awake {
            return self.spin(now, due, spin_policy);
        }
        let early = due - advance;
        let second_ends = self.driven.status.current().start + SECOND;
        let wake = early.min(second_ends);
        let ready = self.driven.poller.wait(Some(wake.since(now)))?;
        let woken = clock.now();
        self.driven.status.current().sleeps += 1;
        spin_policy.slept(woken.since(now));
        // Woken by a frame, by a signal, or only to close the second.
        if ready > 0 || woken < wake || wake < early {
            return Ok(Look { ready, since: woken, waited: true });
        }
        let late = woken.since(wake);
        spin_policy.woke(late);
        self.driven.wakes.record(late, woken, 0);
        self.spin(woken, due, spin_policy)
    }

    /// Spins until a descriptor is ready or until `until`, an instant too close for a sleep. At the
    /// end it only reads the clock.
    fn spin(&mut self, now: Instant, until: Instant, spin_policy: &mut SpinPolicy) -> Result<Look, Error> {
        let clock = self.driven.clock;
        let mut look = Look { ready: 0, since: now, waited: true };
        let mut at = now;
        while look.ready == 0 && at < until {
            if until.since(at) > self.last {
                look.ready = self.driven.poller.wait(Some(Span::ZERO))?;
                at = clock.now();
                if look.ready == 0 {
                    look.since = at;
                }
            } else {
                clock.wait(until);
                at = clock.now();
            }
        }
        spin_policy.spend(at.since(now));
        self.driven.status.current().spun += at.since(now);
        Ok(look)
    }

    /// Reads frames of a port, at most one batch; returns the number of frames and octets.
    fn take_in(&mut self, index: usize, since: Instant) -> (u64, u64) {
        let Driven { world, clock, ingress, status, .. } = &mut self.driven;
        let batch = world.edge.ports[index].batch;
        let mut octets = 0;
        let mut frames = 0;
        let mut seen = since.max(world.edge.ports[index].looked);
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let mut closed = false;
        let emptied = loop {
            let enough = frames >= batch || octets > BATCH_OCTETS;
            if enough && !world.edge.ports[index].port.has_more() {
                break false;
            }
            let (now, length) = match world.take_in(index, clock) {
                Taken::Frame(now, length) => (now, length),
                Taken::Nothing => break true,
                Taken::Closed => {
                    closed = true;
                    break true;
                }
            };
            ingress.record(now.since(seen), now, number);
            self.behind = !world.advance(now);
            frames += 1;
            octets += length;
            if self.behind {
                break false;
            }
        };
        world.edge.notify(clock.now());
        status.current().taken_in += u64::from(frames);
        let attached = &mut world.edge.ports[index];
        if emptied {
            // The next batch stops at this number, which avoids a read that finds no frame.
            attached.batch = frames.max(1);
            seen = clock.now();
            attached.looked = seen;
        } else {
            attached.batch = (batch * 2).min(BATCH);
        }
        if let (true, Some(fd)) = (closed, attached.port.fd()) {
            self.driven.poller.remove(fd);
        }
        (u64::from(frames), u64::from(octets))
    }

    /// Executes the pending commands; returns false once the command channel is closed.
    fn execute(&mut self) -> bool {
        // An empty counter was read before.
        let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
        loop {
            match self.orders.try_recv() {
                Ok(command) => {
                    let now = self.driven.clock.now();
                    self.behind = !self.driven.world.advance(now);
                    command(&mut self.driven);
                }
                Err(std::sync::mpsc::TryRecvError::Empty) => return true,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return false,
            }
        }
    }
}
