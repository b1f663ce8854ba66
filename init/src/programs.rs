//! The programs of a node, or of a guest.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::credentials::Rights;
use crate::message::{Order, Report, Start};
use crate::processes::Processes;
use crate::{cpu_time, program, system};

/// Maximum number of octets returned of a file.
const MOST_TEXT: u64 = 4 << 20;

/// All started programs, and the time at which the node or guest ends.
#[derive(Debug, Default)]
pub struct Programs {
    /// By process number: the controller's number of the program.
    numbers: HashMap<i32, u64>,
    rights: Rights,
    /// What signals to all processes reach.
    processes: Processes,
    end: Option<Instant>,
}

impl Programs {
    /// No programs yet, of a node whose processes are found in this way.
    pub fn of(processes: Processes) -> Self {
        Self { processes, ..Self::default() }
    }

    /// Sets the privileges of all programs started later.
    pub fn bound(&mut self, rights: Rights) {
        self.rights = rights;
    }

    /// Starts a program on its streams; returns the report.
    pub fn start(&mut self, start: &Start, streams: &[OwnedFd]) -> Report {
        match program::start(start, streams, &self.rights) {
            Ok(pid) => {
                self.numbers.insert(pid, start.id);
                Report::Started { id: start.id, pid }
            }
            Err((what, error)) => {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                Report::Refused { id: start.id, what, errno }
            }
        }
    }

    /// Returns the reports of ended programs.
    pub fn reap(&mut self) -> Vec<(u64, Report)> {
        let mut reports = Vec::new();
        while let Some(ended) = system::reap() {
            // Other processes are orphans: init only reaps them.
            if let Some(id) = self.numbers.remove(&ended.pid) {
                let report = Report::Exited {
                    id,
                    code: ended.code,
                    signal: ended.signal,
                    user_ns: ended.user_ns,
                    system_ns: ended.system_ns,
                };
                reports.push((id, report));
            }
        }
        reports
    }

    /// Executes an order on the programs; returns the answer, if the order has one.
    pub fn execute(&mut self, order: &Order) -> Option<Report> {
        match order {
            Order::Signal { id, signal } => {
                if let Some((&pid, _)) = self.numbers.iter().find(|(_, known)| *known == id) {
                    // The program may have ended just now.
                    let _ = system::kill(-pid, *signal);
                }
                None
            }
            Order::SignalAll { signal } => {
                self.processes.signal(*signal);
                None
            }
            Order::Cpu { id } => {
                let (user_ns, system_ns) = cpu_time::of(self.processes);
                Some(Report::Cpu { id: *id, user_ns, system_ns })
            }
            Order::Read { id, path } => Some(Report::Content { id: *id, text: text_of(path) }),
            Order::Clock { id } => {
                let now = system::monotonic();
                Some(Report::Clock { id: *id, before_ns: now, inside_ns: now, after_ns: now })
            }
            Order::Stop { grace_ms } => {
                self.processes.signal(libc::SIGTERM);
                self.processes.signal(libc::SIGCONT);
                self.end = Some(Instant::now() + Duration::from_millis(*grace_ms));
                None
            }
            Order::Settle { id } => Some(Report::Settled { id: *id, moved: false }),
            Order::Start(_) | Order::Host(_) | Order::Join(_) | Order::World(_) => None,
        }
    }

    /// Time until the requested end.
    pub fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }
}

fn text_of(path: &str) -> Option<String> {
    use std::io::Read;
    let mut octets = Vec::new();
    std::fs::File::open(path).ok()?.take(MOST_TEXT).read_to_end(&mut octets).ok()?;
    Some(String::from_utf8_lossy(&octets).into_owned())
}
