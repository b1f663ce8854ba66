//! The programs of one place: a node, or a guest that is the node's own machine.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::bounds::Rights;
use crate::message::{Order, Report, Start};
use crate::{accounts, program, system};

/// Most octets of a file that are told.
const MOST_TEXT: u64 = 4 << 20;

/// All programs that were started, and when the place ends.
#[derive(Debug, Default)]
pub struct Programs {
    /// Process number: the controller's number of the program.
    numbers: HashMap<i32, u64>,
    rights: Rights,
    end: Option<Instant>,
}

impl Programs {
    /// Holds all that are started from now on to what they may do.
    pub fn bound(&mut self, rights: Rights) {
        self.rights = rights;
    }

    /// Starts a program on its streams; tells how that went.
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

    /// The reports on those that have ended.
    pub fn reap(&mut self) -> Vec<(u64, Report)> {
        let mut reports = Vec::new();
        while let Some(ended) = system::reap() {
            // Others were orphans: nobody waits for them but the kernel.
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

    /// Obeys an order that is about what is there; the answer, if it wants one.
    pub fn obey(&mut self, order: &Order) -> Option<Report> {
        match order {
            Order::Signal { id, signal } => {
                if let Some((&pid, _)) = self.numbers.iter().find(|(_, known)| *known == id) {
                    // It may have ended just now.
                    let _ = system::kill(-pid, *signal);
                }
                None
            }
            Order::SignalAll { signal } => {
                let _ = system::kill(-1, *signal);
                None
            }
            Order::Cpu { id } => {
                let (user_ns, system_ns) = accounts::processor_time();
                Some(Report::Cpu { id: *id, user_ns, system_ns })
            }
            Order::Read { id, path } => Some(Report::Content { id: *id, text: text_of(path) }),
            Order::Clock { id } => {
                let now = system::monotonic();
                Some(Report::Clock { id: *id, before_ns: now, inside_ns: now, after_ns: now })
            }
            Order::Stop { grace_ms } => {
                let _ = system::kill(-1, libc::SIGTERM);
                let _ = system::kill(-1, libc::SIGCONT);
                self.end = Some(Instant::now() + Duration::from_millis(*grace_ms));
                None
            }
            Order::Start(_) | Order::Host(_) | Order::Join(_) | Order::World(_) => None,
        }
    }

    /// How long until the end that was asked for.
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
