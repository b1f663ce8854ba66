//! Virtual time: the engine is the calendar of guests whose kernels run in time-travel mode.
//!
//! Exactly one of the engine and the guests acts at any moment, the one with the earliest time; of
//! equal times the engine's events are first, then guests in their order. A guest may advance its time
//! without a message up to the moment at which anything else in the calendar is due; what it does by
//! then lowers that limit. In the plain mode it never may: each of its steps is a message, slow and
//! simple, and the results are the same.
//!
//! Otherwise a guest shares a [`window`] of memory with the calendar, if its kernel can: there are its
//! time, its limit and its requests, notifications of its devices, and a log of the frames that it sends.
//! So it goes on while it sends, up to the time at which something may come of that, and the messages
//! that remain are one to let it run and one when it waits.
//!
//! Notifications between a guest and its devices are messages with an answer, so that each takes place
//! at one instant of the calendar. A guest is controlled through a [`console`] device: the world stands
//! still while its controller reads what the guest has written, and acts.
//!
//! ```text
//!                   run at t, free until u
//!   calendar  ------------------------------->  guest    protocol:  time-travel, 16 octets
//!      |      <-------------------------------           client:    one guest's connection
//!      |         request t', wait                        clock:     the engine's time
//!      |
//!    engine   <===== frames, notifications ====>  its devices (crate::vhost)
//! ```

mod client;
pub mod clock;
pub mod console;
mod counts;
mod devices;
mod guest;
mod processors;
pub mod protocol;
mod sample;
mod spin;
mod turns;
mod watch;
mod window;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant as Wall};

use airloom_engine::time::Instant;

use crate::error::Error;
use crate::port::Port;
use crate::sys::set_nonblocking;
use crate::vhost::{Handling, Vhost};
use crate::world::World;
use crate::world::seen::Seen;
use client::{Client, Standing, Trouble};
use clock::CalendarClock;
use console::Console;
pub use counts::Counts;
use guest::{Guest, wait};
use processors::Working;
pub use processors::{Prices, Processor, Scheduler, Worked};
use protocol::{Message, Operation};
use sample::Samples;
pub use spin::Spun;
pub use turns::Turns;
use watch::Watch;

/// Time of day when a guest's clock shows zero, in nanoseconds since 1970: 2020-01-01 00:00:00 UTC.
pub const TIME_OF_DAY: u64 = 1_577_836_800_000_000_000;

/// Why the calendar stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It has reached the time.
    Reached,
    /// Guests with these numbers have written to their consoles.
    Spoke(Vec<usize>),
    /// Samples with these numbers are due.
    Sample(Vec<usize>),
    /// These frames have entered or were delivered, at this instant.
    Frames(Vec<Seen>),
    /// A guest has ended.
    Ended,
    /// The wall time is over.
    Later,
}

/// A world in virtual time.
pub struct Calendar {
    /// The engine and its edge.
    pub world: World,
    /// Counters.
    pub counts: Counts,
    /// Processor time that a guest may use at one instant; wall time for one that does not run.
    pub patience: Duration,
    /// Whether guests never advance their time without a message.
    pub plain: bool,
    /// Whether time stands still at each frame. No guest is then ahead of it.
    by_frame: bool,
    guests: Vec<Guest>,
    clock: CalendarClock,
    /// The calendar's time in nanoseconds.
    now: u64,
    /// The calendar's time at the engine's time zero; None before.
    zero: Option<u64>,
    /// When guests are to be notified of held buffers.
    reminder: Instant,
    /// The guest that runs, and since when it is at its instant.
    running: Option<(usize, Wall)>,
    /// Its time when it was last looked at, if it shares that.
    seen: u64,
    watch: Option<Watch>,
    /// Numbers of the guests that have written to their consoles since the last pause for that.
    spoke: Vec<usize>,
    ended: bool,
    /// The time of the guest that last spoke or ended.
    stands_at: u64,
    samples: Samples,
    /// Guests that take turns.
    turns: Vec<Turns>,
    /// Processors on which guests work.
    processors: Vec<Working>,
}

/// The number of a guest's console among its devices; its ports follow.
const CONSOLE: u16 = 0;

/// The number among a guest's devices of the port at a place in its list.
fn device_of(place: usize) -> u16 {
    u16::try_from(place + 1).unwrap_or(u16::MAX)
}

/// One descriptor of a guest's that is ready.
#[derive(Clone, Copy)]
enum Ready {
    Client,
    Console,
    Port(usize),
}

impl Calendar {
    /// Takes over a world that has not started.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self {
            world,
            counts: Counts::default(),
            patience: Duration::from_secs(60),
            plain: false,
            by_frame: false,
            guests: Vec::new(),
            clock: CalendarClock::default(),
            now: 0,
            zero: None,
            reminder: Instant::NEVER,
            running: None,
            seen: 0,
            watch: None,
            spoke: Vec::new(),
            ended: false,
            stands_at: 0,
            samples: Samples::default(),
            turns: Vec::new(),
            processors: Vec::new(),
        }
    }

    /// Adds a guest: the socket to which its kernel connects for the time, that of its console, and the
    /// controller's end of the console. Returns its number.
    ///
    /// # Errors
    /// [`Error::VhostSocket`] for a descriptor that is not a socket of that kind.
    pub fn add_guest(
        &mut self,
        name: &str,
        time: OwnedFd,
        console: OwnedFd,
        wire: OwnedFd,
    ) -> Result<usize, Error> {
        crate::vhost::check_listener(&time)?;
        set_nonblocking(&wire).map_err(|source| Error::Loop { what: "a controller's socket", source })?;
        let handling = Handling { in_band: true, ..Handling::default() };
        let mut console = Vhost::serve(console, Console, handling)?;
        if !self.plain {
            console.join(CONSOLE);
        }
        self.guests.push(Guest {
            client: Client::new(name.to_owned(), time),
            console,
            wire,
            early: Vec::new(),
            unread: Vec::new(),
            held: Vec::new(),
            ports: Vec::new(),
            paused: false,
            processor: None,
        });
        Ok(self.guests.len() - 1)
    }

    /// Adds a port of the engine that is a device of a guest.
    ///
    /// # Errors
    /// As [`World::add`]; [`Error::Unknown`] for a guest's number that there is not.
    pub fn add_port(
        &mut self,
        name: &str,
        transit: bool,
        port: Box<dyn Port>,
        guest: usize,
    ) -> Result<(), Error> {
        let id = self.world.add(name, transit, port)?;
        let missing = || Error::unknown("guest", &guest.to_string());
        let ports = &mut self.guests.get_mut(guest).ok_or_else(missing)?.ports;
        ports.push(id.index());
        if !self.plain {
            self.world.edge.ports[id.index()].port.join(device_of(ports.len() - 1));
        }
        Ok(())
    }

    /// Pauses a guest or resumes it at the present instant. What is due for a paused guest takes place
    /// when it is resumed.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a guest's number that there is not.
    pub fn pause(&mut self, guest: usize, paused: bool) -> Result<(), Error> {
        let missing = || Error::unknown("guest", &guest.to_string());
        self.guests.get_mut(guest).ok_or_else(missing)?.paused = paused;
        Ok(())
    }

    /// The calendar's time in nanoseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Has time stand still each `period`, from now on, for a sample. `skips`: not if the engine has done
    /// nothing since the sample before. Returns the sample's number.
    pub fn every(&mut self, period: u64, skips: bool) -> usize {
        self.samples.add(self.now, period, skips)
    }

    /// Names of the guests that have ended.
    #[must_use]
    pub fn gone(&self) -> Vec<String> {
        let gone = self.guests.iter().filter(|guest| guest.client.standing == Standing::Gone);
        gone.map(|guest| guest.client.name.clone()).collect()
    }

    /// Sets whether time stands still at each frame, from the next run on.
    pub fn stop_at_frames(&mut self, stops: bool) {
        self.by_frame = stops;
        self.world.edge.follower.follow(stops);
    }

    /// Has the engine do what is due at the present instant, so that what is asked of it next takes
    /// place there. Before time zero, and while a guest runs, it does nothing.
    ///
    /// # Errors
    /// As [`Calendar::run`].
    pub fn catch_up_engine(&mut self) -> Result<(), Error> {
        if self.zero.is_some() && self.running.is_none() {
            self.advance(self.now)?;
        }
        Ok(())
    }

    /// Sets the engine's time zero to the calendar's present time. What guests have sent before enters
    /// now.
    ///
    /// # Errors
    /// As [`Calendar::run`].
    pub fn begin(&mut self) -> Result<(), Error> {
        self.zero = Some(self.now);
        self.world.start_virtual(self.clock.clone(), TIME_OF_DAY + self.now);
        for index in 0..self.guests.len() {
            for port in self.guests[index].ports.clone() {
                self.take_in(port);
                self.world.edge.ports[port].port.acknowledge();
                self.call(index, Some(port))?;
            }
        }
        Ok(())
    }

    /// Lets time pass up to `until`, in nanoseconds of the calendar: events of the engine at `until` take
    /// place, guests that wish to run then do not yet. Returns earlier when there is something for the
    /// controller, or when `most` of wall time is over.
    ///
    /// # Errors
    /// [`Error::Guest`] if a guest violates the protocol, or sends nothing for too long.
    pub fn run(&mut self, until: u64, most: Duration) -> Result<Pause, Error> {
        let deadline = Wall::now() + most;
        for guest in &mut self.guests {
            guest.flush();
            guest.hear();
        }
        if self.running.is_none() && !self.boot(deadline)? {
            return Ok(self.interrupted());
        }
        loop {
            if let Some((index, since)) = self.running {
                if !self.step(index, since, deadline)? {
                    return Ok(Pause::Later);
                }
                continue;
            }
            let seen = self.world.edge.follower.take();
            if !seen.is_empty() {
                return Ok(Pause::Frames(seen));
            }
            // What a guest has sent before it spoke or ended comes first.
            if (self.ended || !self.spoke.is_empty()) && self.engine_due() < self.stands_at {
                self.advance(self.engine_due())?;
                continue;
            }
            if self.ended || !self.spoke.is_empty() {
                self.set_now(self.stands_at);
            }
            self.hand_over()?;
            if std::mem::take(&mut self.ended) {
                return Ok(Pause::Ended);
            }
            if !self.spoke.is_empty() {
                self.counts.pauses += 1;
                self.spoke.dedup();
                return Ok(Pause::Spoke(std::mem::take(&mut self.spoke)));
            }
            if Wall::now() >= deadline {
                return Ok(Pause::Later);
            }
            if self.guests.iter().any(|guest| matches!(guest.client.standing, Standing::Started(_))) {
                self.boot(deadline)?;
                continue;
            }
            let (engine, stop) = (self.engine_due(), self.samples.due().min(until));
            let next = self.next_guest();
            let guest = next.map_or(u64::MAX, |(at, _)| at);
            if engine <= guest && engine <= stop {
                self.advance(engine)?;
            } else if let Some((at, index)) = next.filter(|(at, _)| *at < stop) {
                if self.begin_work(index, at) {
                    continue;
                }
                let others = self.others(index).min(self.turn_ends(index, at));
                self.let_run(index, at, engine.min(others).min(stop))?;
            } else {
                self.set_now(stop);
                let due = self.samples.take(self.now);
                if !due.is_empty() {
                    return Ok(Pause::Sample(due));
                }
                if self.now >= until {
                    return Ok(Pause::Reached);
                }
            }
        }
    }

    fn interrupted(&mut self) -> Pause {
        if std::mem::take(&mut self.ended) { Pause::Ended } else { Pause::Later }
    }

    /// Accepts guests until all are there, and then starts them in their order, one at a time. Returns
    /// false if some are missing at the deadline.
    fn boot(&mut self, deadline: Wall) -> Result<bool, Error> {
        for index in 0..self.guests.len() {
            while self.guests[index].client.standing == Standing::Awaited {
                let client = &mut self.guests[index].client;
                if client.accept() {
                    match client.receive() {
                        Ok(Some(Message { operation: Operation::Start, sequence, .. })) => {
                            client.standing = Standing::Started(sequence);
                            continue;
                        }
                        Ok(Some(_)) => return Err(self.violates(index, "does not begin with its start")),
                        Ok(None) => {}
                        Err(trouble) => {
                            self.trouble(index, trouble)?;
                            continue;
                        }
                    }
                }
                if !wait(&[self.guests[index].client.descriptor()], deadline)?[0] {
                    return Ok(false);
                }
            }
        }
        for index in 0..self.guests.len() {
            if let Standing::Started(sequence) = self.guests[index].client.standing {
                let client = &mut self.guests[index].client;
                (client.time, client.free_until) = (self.now, self.now);
                match client.begin(sequence, self.plain) {
                    Ok(()) => self.running = Some((index, Wall::now())),
                    Err(trouble) => self.trouble(index, trouble)?,
                }
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Hands to the guests what their controller has written: at the instant at which it has, or at which
    /// the console of the guest is there. How often the controller looks must not matter.
    fn hand_over(&mut self) -> Result<(), Error> {
        for index in 0..self.guests.len() {
            let due = self.engine_due();
            let guest = &mut self.guests[index];
            // It may be ahead of what comes of its frames.
            let is_behind = due < guest.client.free_until.min(guest.client.request.unwrap_or(u64::MAX));
            if guest.client.standing == Standing::Waiting && !is_behind && !guest.early.is_empty() {
                let octets = std::mem::take(&mut guest.early);
                if guest.console.device().is_up() {
                    guest.console.put_all(&octets);
                    self.call(index, None)?;
                } else {
                    guest.early = octets;
                }
            }
        }
        Ok(())
    }

    /// When the engine has something to do.
    fn engine_due(&self) -> u64 {
        let Some(zero) = self.zero else { return u64::MAX };
        let due = self.world.engine.wake_at().unwrap_or(Instant::NEVER).min(self.reminder);
        if due == Instant::NEVER { u64::MAX } else { zero + due.nanos() }
    }

    /// The guest that wishes to run first, and when.
    fn next_guest(&self) -> Option<(u64, usize)> {
        self.requests().min()
    }

    /// When the first of the other guests wishes to run.
    fn others(&self, index: usize) -> u64 {
        self.requests().filter(|(_, other)| *other != index).min().map_or(u64::MAX, |(at, _)| at)
    }

    fn requests(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        let waiting = |guest: &Guest| {
            let client = &guest.client;
            if client.standing == Standing::Waiting { client.request } else { None }
        };
        // A request for a time that has passed meanwhile is one for now.
        self.guests.iter().enumerate().filter_map(move |(index, guest)| {
            Some((self.permitted(index, waiting(guest)?.max(self.now)), index))
        })
    }

    fn set_now(&mut self, now: u64) {
        self.now = self.now.max(now);
        if let Some(zero) = self.zero {
            self.clock.set(Instant::from_nanos(self.now.saturating_sub(zero)));
        }
    }

    /// Lets the engine do what is due at a time.
    fn advance(&mut self, at: u64) -> Result<(), Error> {
        self.set_now(at);
        self.samples.worked();
        let zero = self.zero.unwrap_or(at);
        self.world.advance(Instant::from_nanos(at - zero));
        self.reminder = Instant::NEVER;
        for index in 0..self.guests.len() {
            self.call(index, None)?;
        }
        Ok(())
    }

    /// Lets a guest run at a time, without messages up to a limit.
    fn let_run(&mut self, index: usize, at: u64, limit: u64) -> Result<(), Error> {
        self.set_now(at);
        self.send_held(index)?;
        self.counts.runs += 1;
        self.look_ahead(index);
        let client = &mut self.guests[index].client;
        (client.request, client.time, client.free_until) = (None, at, at);
        let mut told = Ok(0);
        if let Some(window) = client.window() {
            let limit = limit.max(at);
            window.run(at, limit);
            client.free_until = limit;
        } else if !self.plain && limit > at {
            client.free_until = limit;
            self.counts.messages += 1;
            told = client.tell(Operation::FreeUntil, limit);
        }
        self.counts.messages += 1;
        match told.and_then(|_| client.tell(Operation::Run, at)) {
            Ok(_) => {
                client.standing = Standing::Running;
                self.running = Some((index, Wall::now()));
                Ok(())
            }
            Err(trouble) => self.trouble(index, trouble),
        }
    }

    /// Serves the guest that runs, until it waits; returns false if it still runs at the deadline.
    fn step(&mut self, index: usize, since: Wall, deadline: Wall) -> Result<bool, Error> {
        let ready = self.ready(index, deadline)?;
        let client = &self.guests[index].client;
        let seen = client.window().map_or(self.seen, window::Window::time);
        let since = if seen == self.seen { since } else { Wall::now() };
        (self.seen, self.running) = (seen, Some((index, since)));
        self.stays(index, since, "does not reach the next instant")?;
        if ready.is_empty() {
            return Ok(false);
        }
        for one in ready {
            match one {
                Ready::Client => self.serve_client(index)?,
                Ready::Console => self.serve_console(index)?,
                Ready::Port(number) => self.serve_port(index, number)?,
            }
        }
        Ok(true)
    }

    /// The descriptors of a guest that are readable, at the deadline at the latest.
    fn ready(&self, index: usize, deadline: Wall) -> Result<Vec<Ready>, Error> {
        let guest = &self.guests[index];
        let mut kinds = vec![Ready::Client, Ready::Console];
        let mut descriptors = vec![guest.client.descriptor().as_fd()];
        // SAFETY: the ports and the console, which own the descriptors, outlive the wait.
        let borrow = |fd| unsafe { BorrowedFd::borrow_raw(fd) };
        descriptors.push(borrow(guest.console.descriptor()));
        for &number in &guest.ports {
            if let Some(fd) = self.world.edge.ports[number].port.fd() {
                kinds.push(Ready::Port(number));
                descriptors.push(borrow(fd));
            }
        }
        let found = wait(&descriptors, deadline)?;
        Ok(kinds.into_iter().zip(found).filter_map(|(kind, is)| is.then_some(kind)).collect())
    }

    /// Serves one message about the time.
    fn serve_client(&mut self, index: usize) -> Result<(), Error> {
        let message = match self.guests[index].client.receive() {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(()),
            Err(trouble) => return self.trouble(index, trouble),
        };
        self.counts.messages += 1;
        self.guests[index].client.see_window();
        self.catch_up(index)?;
        let now = self.now;
        let client = &mut self.guests[index].client;
        let is_running = client.standing == Standing::Running;
        // The time of a guest that waits is the calendar's.
        let time = if is_running { client.time } else { now };
        let mut answer = 0;
        match message.operation {
            Operation::Ack => {
                client.acknowledged = message.sequence;
                return Ok(());
            }
            Operation::Request => client.wish(message.time),
            Operation::Wait if is_running => {
                client.standing = Standing::Waiting;
                client.read_request();
                // It may have advanced up to its limit, and nothing else is due before, but for what comes
                // of what it has sent.
                let (limit, request) = (client.free_until, client.request.unwrap_or(u64::MAX));
                let is_answered = client.window().is_none();
                self.running = None;
                self.set_now(limit.min(request).min(self.engine_due()));
                self.end_work(index);
                if !is_answered {
                    return Ok(());
                }
            }
            Operation::Get => answer = time,
            Operation::Update if is_running => {
                if message.time < client.time || message.time > client.free_until.max(client.time) {
                    let words = format!("moves its time from {} to {} ns", client.time, message.time);
                    return Err(self.violates(index, &words));
                }
                client.time = message.time;
                self.running = Some((index, Wall::now()));
            }
            Operation::GetTimeOfDay => answer = TIME_OF_DAY + time,
            other => return Err(self.violates(index, &format!("sends {other:?} out of turn"))),
        }
        self.counts.messages += 1;
        match self.guests[index].client.acknowledge(message.sequence, answer) {
            Ok(()) => Ok(()),
            Err(trouble) => self.trouble(index, trouble),
        }
    }

    fn trouble(&mut self, index: usize, trouble: Trouble) -> Result<(), Error> {
        match trouble {
            Trouble::Violation(words) => Err(self.violates(index, &words)),
            Trouble::Ended => {
                self.catch_up(index)?;
                self.guests[index].client.end();
                self.end_work(index);
                self.guests[index].held.clear();
                if self.running.is_some_and(|(running, _)| running == index) {
                    self.running = None;
                }
                self.stands_at = self.guests[index].client.time;
                self.ended = true;
                Ok(())
            }
        }
    }

    fn violates(&self, index: usize, what: &str) -> Error {
        Error::Guest { name: self.guests[index].client.name.clone(), what: what.to_owned(), at: self.now }
    }
}
