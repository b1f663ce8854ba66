//! The node init's side of a guest: starts its machine, or joins a part of a guest that another
//! node init has started, and forwards orders, reports and streams.
//!
//! Messages from the guest are not trusted: only valid reports are forwarded, and a guest that
//! sends anything else loses its machine. Octets of connections to the control socket are forwarded
//! unchanged to the controller.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::frame::Kind;
use crate::guest_channel::{Arrived, GuestChannel};
use crate::message::{Host, Join, Order, PROTOCOL, Report, Start, World};
use crate::processes::Processes;
use crate::system::{self, Ended};
use crate::{control_socket, cpu_time, sandbox, terminal};

/// Maximum number of octets of its console that are kept.
const MOST_LOG: usize = 16 << 20;
/// Poll period for the size of a terminal: SIGWINCH goes to the terminal's foreground process
/// group, not to this process.
const LOOK: Duration = Duration::from_millis(250);
/// Exit code of a node that closed its part of a guest.
const PART_CLOSED: i32 = 3;
/// Time that a guest may take to end, beyond the grace period of its programs.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// A guest, or a part of one, and the data in transit.
#[derive(Debug)]
pub struct Relay {
    /// None for a part of a guest whose machine another node init has started.
    machine: Option<Machine>,
    channel: GuestChannel,
    /// Whether the channel is served only by [`Relay::settle`].
    stepped: bool,
    /// Whether an order was passed on since it was last settled.
    passed: bool,
    /// The node's exit code, once it has left a guest that it shares.
    exit_code: Option<i32>,
    /// Number of the order that started it, until the order is answered.
    asked: Option<u64>,
    world: Option<World>,
    /// Deadline for being ready, and later for having ended.
    until: Option<Instant>,
    /// End reports of programs whose output has not been written yet.
    held: Vec<(u64, Report)>,
    terminals: Vec<(u64, terminal::Borrowed)>,
    /// Host time of the last clock query to the guest.
    clock_asked: u64,
    /// How the processes of its machine are found.
    processes: Processes,
}

impl Relay {
    /// Starts a guest's machine; `descriptors` are its log and those passed to it.
    pub fn start(host: Host, descriptors: Vec<OwnedFd>, processes: Processes) -> Result<Self, String> {
        let fail = |error: io::Error| error.to_string();
        let mut descriptors = VecDeque::from(descriptors);
        let stepped = host.virtual_time;
        let (near, far) = if stepped {
            let nothing = std::fs::File::open("/dev/null").map_err(fail)?;
            (descriptors.pop_back().ok_or("a guest without a channel")?, OwnedFd::from(nothing))
        } else {
            let (near, far) = std::os::unix::net::UnixStream::pair().map_err(fail)?;
            (near.into(), far.into())
        };
        let (console, voice) = system::pipe().map_err(fail)?;
        let log = descriptors.pop_front().ok_or("a guest without a log")?;
        let nothing = std::fs::File::open("/dev/null").map_err(fail)?;
        let mut streams = vec![OwnedFd::from(nothing), voice.try_clone().map_err(fail)?, voice, far];
        streams.extend(descriptors);
        let pid =
            sandbox::start(&host, &streams, processes).map_err(|(what, error)| format!("{what}: {error}"))?;
        let machine = Machine { pid, console: Console { from: Some(console), log, left: MOST_LOG } };
        // A console in virtual time loses no signal that input is available.
        let open = if stepped { GuestChannel::to_part } else { GuestChannel::to_machine };
        let channel = open(near).map_err(fail)?;
        let relay = Self::new(Some(machine), channel, host.id, host.world, host.timeout_ms);
        Ok(Self { stepped, processes, ..relay })
    }

    /// Joins a part of a guest at the other end of a channel.
    pub fn join(join: Join, channel: OwnedFd) -> io::Result<Self> {
        let relay = Self::new(None, GuestChannel::to_part(channel)?, join.id, join.world, join.timeout_ms);
        Ok(Self { stepped: join.virtual_time, ..relay })
    }

    fn new(machine: Option<Machine>, channel: GuestChannel, id: u64, world: World, timeout_ms: u64) -> Self {
        Self {
            machine,
            channel,
            stepped: false,
            passed: false,
            exit_code: None,
            asked: Some(id),
            world: Some(world),
            until: Some(Instant::now() + Duration::from_millis(timeout_ms)),
            held: Vec::new(),
            terminals: Vec::new(),
            clock_asked: 0,
            processes: Processes::Namespace,
        }
    }

    /// True if the process is its machine.
    pub fn is_machine(&self, pid: i32) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.pid == pid)
    }

    /// The node's exit code, once it has left a guest that it shares.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// The poll entries; pass them to [`Relay::serve`] with their results.
    pub fn interests(&self) -> Vec<libc::pollfd> {
        let console = self.machine.as_ref().and_then(|machine| machine.console.from.as_ref());
        let console = console.map_or(-1, AsRawFd::as_raw_fd);
        let channel = if self.stepped { Vec::new() } else { self.channel.interests() };
        std::iter::once(system::to_read(console)).chain(channel).collect()
    }

    /// Passes on all that there is, in both directions, without waiting; returns the reports to send,
    /// and whether there was anything. Nothing in a virtual world moves meanwhile, so that the order is
    /// the same in every run.
    pub fn settle(&mut self) -> (Vec<Report>, bool) {
        let (mut reports, mut moved) = (Vec::new(), std::mem::take(&mut self.passed));
        loop {
            let mut entries = vec![system::to_read(-1)];
            entries.extend(self.channel.interests());
            if system::poll(&mut entries, Some(Duration::ZERO)).is_err()
                || entries.iter().all(|entry| entry.revents == 0)
            {
                return (reports, moved);
            }
            moved = true;
            reports.extend(self.serve(&entries));
            // A channel that has ended stays readable.
            if self.exit_code.is_some() || entries[1].revents & libc::POLLHUP != 0 {
                return (reports, moved);
            }
        }
    }

    /// Maximum time to wait.
    pub fn left(&self) -> Option<Duration> {
        let look = (!self.terminals.is_empty()).then_some(LOOK);
        let until = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        [look, until, self.channel.left()].into_iter().flatten().min()
    }

    /// Performs all possible input and output; returns the reports to send.
    pub fn serve(&mut self, ready: &[libc::pollfd]) -> Vec<Report> {
        let Some((console, channel)) = ready.split_first() else { return Vec::new() };
        if let Some(machine) = self.machine.as_mut().filter(|_| console.revents != 0) {
            machine.console.read();
        }
        let mut reports = match self.channel.serve(channel) {
            Ok(true) => self.receive(),
            Ok(false) => self.channel_closed(),
            Err(error) => self.give_up(format!("its guest does not speak as agreed: {error}")),
        };
        for (program, terminal) in &mut self.terminals {
            if let Some(size) = terminal.new_size() {
                // If this fails, the guest has ended, which is reported elsewhere.
                let _ = self.channel.send_size(*program, size);
            }
        }
        if self.until.is_some_and(|until| until <= Instant::now()) {
            self.until = None;
            if self.asked.is_some() {
                reports.extend(self.give_up("its guest does not come up in time".to_owned()));
            } else {
                self.kill();
            }
        }
        reports.extend(self.release());
        reports
    }

    /// Starts a program in the guest on three descriptors.
    pub fn begin(&mut self, mut start: Start, [input, output, error]: [OwnedFd; 3]) -> Option<Report> {
        let id = start.id;
        if start.tty {
            match terminal::Borrowed::new(&input) {
                Ok(terminal) => {
                    start.size = Some(terminal.size());
                    self.terminals.push((id, terminal));
                }
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EIO);
                    return Some(Report::Refused { id, what: "terminal".to_owned(), errno });
                }
            }
        }
        start.merged = start.tty || system::is_same_file(&output, &error);
        self.channel.source(Kind::Input, id, input);
        self.channel.sink(Kind::Output, id, output);
        if !start.merged {
            self.channel.sink(Kind::Error, id, error);
        }
        self.pass(&Order::Start(start))
    }

    /// Forwards an order.
    pub fn pass(&mut self, order: &Order) -> Option<Report> {
        match (order, &self.machine) {
            // On this side the node consists of the machine only, with its kernel. A signal to its
            // first process suffices: the processes that it traces wait for it.
            (Order::SignalAll { signal }, Some(machine)) => {
                let _ = system::kill(machine.pid, *signal);
                return None;
            }
            (Order::Cpu { id }, Some(_)) => {
                let (user_ns, system_ns) = cpu_time::of(self.processes);
                return Some(Report::Cpu { id: *id, user_ns, system_ns });
            }
            (Order::Stop { grace_ms }, _) => {
                self.until = Some(Instant::now() + Duration::from_millis(*grace_ms) + STOP_MARGIN);
            }
            _ => {}
        }
        self.clock_asked = system::monotonic();
        self.passed = true;
        // If this fails, the guest has ended, which is reported elsewhere.
        let _ = self.channel.send(order);
        None
    }

    /// Returns the last reports, after its machine has ended.
    pub fn close(&mut self, ended: Ended) -> Vec<Report> {
        if let Some(machine) = &mut self.machine {
            machine.console.read();
        }
        self.terminals.clear();
        match self.asked.take() {
            Some(id) => {
                let how = match (ended.code, ended.signal) {
                    (_, Some(signal)) => format!("was killed by signal {signal}"),
                    (code, None) => format!("ended with exit code {}", code.unwrap_or(0)),
                };
                vec![Report::Unhosted { id, why: format!("its machine {how} before it was ready") }]
            }
            None => Vec::new(),
        }
    }

    fn receive(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        let broken = loop {
            let body = match self.channel.next() {
                Ok(Some(Arrived::Message(body))) => body,
                Ok(Some(Arrived::Size(..))) => continue,
                Ok(None) => return reports,
                Err(error) => break error,
            };
            match serde_json::from_slice(&body) {
                Ok(report) => reports.extend(self.reported(report)),
                Err(error) => break error.into(),
            }
        };
        reports.extend(self.give_up(format!("its guest does not speak as agreed: {broken}")));
        reports
    }

    fn reported(&mut self, report: Report) -> Vec<Report> {
        match (report, self.asked) {
            (Report::Hello { protocol }, Some(_)) => match self.world.take() {
                Some(world) if protocol == PROTOCOL => {
                    self.pass(&Order::World(Box::new(world))).into_iter().collect()
                }
                _ => self.give_up("its guest runs another version of airloom-init".to_owned()),
            },
            (Report::Ready { notes }, Some(id)) => {
                (self.asked, self.until) = (None, None);
                vec![Report::Hosted { id, notes }]
            }
            (Report::Broken { why }, Some(_)) => self.give_up(why),
            (Report::Refused { id, what, errno }, None) => {
                self.channel.forget(id);
                self.terminals.retain(|(program, _)| *program != id);
                vec![Report::Refused { id, what, errno }]
            }
            (report @ Report::Exited { .. }, None) => {
                let Report::Exited { id, .. } = report else { return Vec::new() };
                self.channel.forget_input(id);
                self.held.push((id, report));
                Vec::new()
            }
            (Report::Connection { id }, None)
                if id >= control_socket::FIRST && self.channel.connections() < control_socket::MOST =>
            {
                // In virtual time the controller's answer would come at no instant of the node's.
                let connected = if self.stepped { None } else { control_socket::connect().ok() };
                if let Some((reader, writer)) = connected {
                    self.channel.connect(id, (Kind::Answer, reader), (Kind::Request, writer));
                } else {
                    // If this fails, the guest has ended, which is reported elsewhere.
                    let _ = self.channel.refuse(id);
                }
                Vec::new()
            }
            (Report::Clock { id, inside_ns, .. }, None) => {
                let (before_ns, after_ns) = (self.clock_asked, system::monotonic());
                vec![Report::Clock { id, before_ns, inside_ns, after_ns }]
            }
            (report @ (Report::Started { .. } | Report::Content { .. }), None) => vec![report],
            (report @ Report::Cpu { .. }, None) if self.machine.is_none() => vec![report],
            _ => self.give_up("its guest does not speak as agreed".to_owned()),
        }
    }

    /// Returns the end reports of programs whose output has all been written.
    fn release(&mut self) -> Vec<Report> {
        let (now, later) =
            std::mem::take(&mut self.held).into_iter().partition(|(id, _)| self.channel.is_flushed(*id));
        self.held = later;
        let now: Vec<(u64, Report)> = now;
        for (id, _) in &now {
            self.terminals.retain(|(program, _)| program != id);
        }
        now.into_iter().map(|(_, report)| report).collect()
    }

    /// Handles the end of the channel. The end of a machine is reported when its process has been
    /// reaped.
    fn channel_closed(&mut self) -> Vec<Report> {
        if self.machine.is_some() {
            self.kill();
            return Vec::new();
        }
        self.exit_code.get_or_insert(0);
        let why = "its part of the guest ended before it was ready".to_owned();
        self.asked.take().map(|id| Report::Unhosted { id, why }).into_iter().collect()
    }

    fn give_up(&mut self, why: String) -> Vec<Report> {
        if let Some(machine) = &self.machine {
            machine.console.note(&why);
        }
        self.kill();
        self.asked.take().map(|id| Report::Unhosted { id, why }).into_iter().collect()
    }

    fn kill(&mut self) {
        match &self.machine {
            Some(machine) => drop(system::kill(machine.pid, libc::SIGKILL)),
            // A part ends with its channel.
            None => self.exit_code = Some(PART_CLOSED),
        }
    }
}

/// A guest's machine: a process of the host.
#[derive(Debug)]
struct Machine {
    pid: i32,
    console: Console,
}

/// Output of the guest's machine and kernel, and its log file.
#[derive(Debug)]
struct Console {
    from: Option<OwnedFd>,
    log: OwnedFd,
    /// Number of octets that may still be added to the log.
    left: usize,
}

impl Console {
    fn read(&mut self) {
        let mut buffer = [0; 16 << 10];
        while let Some(from) = self.from.as_ref().filter(|from| system::readable(from)) {
            match system::read(from, &mut buffer) {
                Ok(got) if got > 0 => {
                    let kept = got.min(self.left);
                    self.keep(&buffer[..kept]);
                    self.left -= kept;
                    if self.left == 0 && kept > 0 {
                        self.note("the console said more, which is not kept");
                    }
                    if got < buffer.len() {
                        return;
                    }
                }
                _ => self.from = None,
            }
        }
    }

    fn note(&self, words: &str) {
        self.keep(format!("airloom: {words}\n").as_bytes());
    }

    fn keep(&self, mut octets: &[u8]) {
        while !octets.is_empty() {
            // A full disk truncates the log and does not affect the guest.
            let Ok(written) = system::write(&self.log, octets) else { return };
            octets = &octets[written..];
        }
    }
}
