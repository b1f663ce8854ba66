//! One end of a guest's channel: messages, and streams of programs and of visits at the node's door,
//! which are carried as frames because no descriptor can pass.
//!
//! Both ends are alike. A **source** is a descriptor that is read here and whose octets go over;
//! a **sink** is one that gets what came. No more than [`WINDOW`] octets of a stream are under way,
//! so that a program whose output nobody takes waits, and the others do not.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::frame::{self, Decoder, Frame, Kind, WINDOW};
use crate::system;

/// Octets that are read from a descriptor at once.
const PIECE: usize = 16 << 10;
/// Octets that a descriptor which is ready to be written takes without blocking (`pipe(7)`).
const ATOMIC: usize = libc::PIPE_BUF;
/// Octets under way to a guest that it has not read. A guest's serial line keeps 4096 for a reader
/// (the kernel's `N_TTY_BUF_SIZE`), and that of User Mode Linux loses what comes beyond.
const LINE: usize = 2048;
/// Octets of them that are kept free for telling it again.
const KEPT: usize = 128;
/// When a machine that has not read what it was told is told again, for the first and the last time. User
/// Mode Linux may sleep through the signal that it has something to read, but not through the next one.
const AGAIN: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(512)];
/// Octets that may wait for a guest that does not read them.
const PATIENCE: usize = 64 << 20;

#[derive(Debug)]
struct Source {
    kind: Kind,
    program: u64,
    fd: OwnedFd,
    credit: usize,
}

#[derive(Debug)]
struct Sink {
    kind: Kind,
    program: u64,
    /// None when nobody takes it any more.
    fd: Option<OwnedFd>,
    pending: Vec<u8>,
    ended: bool,
}

/// A machine that has not read all that it was told.
#[derive(Debug)]
struct Unread {
    /// When it is told again; None once that was tried often enough.
    at: Option<Instant>,
    /// How long it was waited for this time.
    wait: Duration,
}

/// A channel and what goes over it.
#[derive(Debug)]
pub struct Link {
    /// Where the other end is heard, and where it is told; for a device both are the same.
    from: OwnedFd,
    to: OwnedFd,
    decoder: Decoder,
    out: Vec<u8>,
    /// Octets that the guest has room for; None at the guest's end, which tells what it has read.
    room: Option<usize>,
    /// Octets of the room that are kept for telling a machine again.
    kept: usize,
    unread: Option<Unread>,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
}

/// What came over, beside streams.
#[derive(Debug)]
pub enum Arrived {
    /// A message.
    Message(Vec<u8>),
    /// A program's terminal has a new size: rows and columns.
    Size(u64, [u16; 2]),
}

impl Link {
    /// Takes over the host's end of the channel of a machine.
    pub fn to_machine(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd.try_clone()?, fd, Some(LINE), KEPT)
    }

    /// Takes over the host's end of the channel of a part of a guest, which is a stream in that of the machine.
    pub fn to_part(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd.try_clone()?, fd, Some(LINE), 0)
    }

    /// Takes over the guest's end of the channel.
    pub fn to_host(from: OwnedFd, to: OwnedFd) -> io::Result<Self> {
        Self::new(from, to, None, 0)
    }

    fn new(from: OwnedFd, to: OwnedFd, room: Option<usize>, kept: usize) -> io::Result<Self> {
        system::set_nonblocking(&from)?;
        system::set_nonblocking(&to)?;
        let (decoder, out, unread) = (Decoder::default(), Vec::new(), None);
        Ok(Self { from, to, decoder, out, room, kept, unread, sources: Vec::new(), sinks: Vec::new() })
    }

    /// How many octets may be written now.
    fn may_write(&self) -> usize {
        self.room.map_or(usize::MAX, |room| room.saturating_sub(self.kept))
    }

    /// The longest wait, if the other end may have to be told again.
    pub fn left(&self) -> Option<Duration> {
        let at = self.unread.as_ref()?.at?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Queues a message.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        frame::put(&mut self.out, Kind::Message, 0, &body);
        self.flush()
    }

    /// Queues a new size of a program's terminal.
    pub fn send_size(&mut self, program: u64, size: [u16; 2]) -> io::Result<()> {
        frame::put(&mut self.out, Kind::Size, program, &frame::size(size));
        self.flush()
    }

    /// From now on what can be read from a descriptor goes over.
    pub fn source(&mut self, kind: Kind, program: u64, fd: OwnedFd) {
        self.sources.push(Source { kind, program, fd, credit: WINDOW });
    }

    /// From now on what comes for a stream is written to a descriptor.
    pub fn sink(&mut self, kind: Kind, program: u64, fd: OwnedFd) {
        self.sinks.push(Sink { kind, program, fd: Some(fd), pending: Vec::new(), ended: false });
    }

    /// Joins a descriptor of the node's door, for hearing and for telling, with the other end's.
    pub fn visit(&mut self, id: u64, hear: (Kind, OwnedFd), tell: (Kind, OwnedFd)) {
        self.source(hear.0, id, hear.1);
        self.sink(tell.0, id, tell.1);
    }

    /// Ends a visit that nobody answers.
    pub fn turn_away(&mut self, id: u64) -> io::Result<()> {
        frame::put(&mut self.out, Kind::Answer, id, &[]);
        self.flush()
    }

    /// How many visits are under way.
    pub fn visits(&self) -> usize {
        let sources = self.sources.iter().filter(|source| source.kind == Kind::Answer).count();
        sources + self.sinks.iter().filter(|sink| sink.kind == Kind::Answer).count()
    }

    /// Closes what a program reads from.
    pub fn forget_input(&mut self, program: u64) {
        self.sources.retain(|source| source.program != program || source.kind != Kind::Input);
        self.sinks.retain(|sink| sink.program != program || sink.kind != Kind::Input);
    }

    /// Closes all streams of a program.
    pub fn forget(&mut self, program: u64) {
        self.sources.retain(|source| source.program != program);
        self.sinks.retain(|sink| sink.program != program);
    }

    /// Reads what a program has left in its streams; false if there is more than may go now.
    pub fn drain(&mut self, program: u64) -> io::Result<bool> {
        let mut index = 0;
        while index < self.sources.len() {
            let source = &self.sources[index];
            if source.program != program || !system::readable(&source.fd) {
                index += 1;
            } else if source.credit == 0 {
                return Ok(false);
            } else {
                self.read_source(index);
            }
        }
        self.flush()?;
        Ok(true)
    }

    /// Whether all that came for a program has been written.
    pub fn is_flushed(&self, program: u64) -> bool {
        self.sinks.iter().all(|sink| sink.program != program || sink.pending.is_empty())
    }

    /// What to wait for; give it to [`Link::serve`] with the answers.
    pub fn interests(&self) -> Vec<libc::pollfd> {
        let entry = |fd: i32, events| libc::pollfd { fd, events, revents: 0 };
        let writes = if self.out.is_empty() || self.may_write() == 0 { 0 } else { libc::POLLOUT };
        // A negative descriptor is passed over, so that the places stay those of the lists.
        let channel = [
            entry(self.from.as_raw_fd(), libc::POLLIN),
            entry(if writes == 0 { -1 } else { self.to.as_raw_fd() }, writes),
        ];
        let sources = self.sources.iter().map(|source| {
            let may = source.credit > 0 && self.out.len() < 2 * WINDOW;
            entry(if may { source.fd.as_raw_fd() } else { -1 }, libc::POLLIN)
        });
        let sinks = self.sinks.iter().map(|sink| {
            let fd = sink.fd.as_ref().filter(|_| !sink.pending.is_empty());
            entry(fd.map_or(-1, AsRawFd::as_raw_fd), libc::POLLOUT)
        });
        channel.into_iter().chain(sources).chain(sinks).collect()
    }

    /// Does what can be done now; false at the end of the channel. What came over is for [`Link::next`].
    pub fn serve(&mut self, ready: &[libc::pollfd]) -> io::Result<bool> {
        let Some(([from, _], streams)) = ready.split_first_chunk::<2>() else { return Ok(true) };
        let (sources, sinks) = streams.split_at(self.sources.len());
        for (index, _) in sinks.iter().enumerate().filter(|(_, entry)| entry.revents != 0) {
            self.write_sink(index);
        }
        // From behind, because one that has ended is removed.
        for (index, _) in sources.iter().enumerate().rev().filter(|(_, entry)| entry.revents != 0) {
            self.read_source(index);
        }
        let more = from.revents == 0 || self.read()?;
        self.flush()?;
        self.tell_again()?;
        Ok(more)
    }

    /// Takes what came over up to the next message, which may be about the streams behind it; None when
    /// all has been taken.
    pub fn next(&mut self) -> io::Result<Option<Arrived>> {
        while let Some(frame) = self.decoder.next().map_err(io::Error::other)? {
            if let Some(arrived) = self.take(frame)? {
                return Ok(Some(arrived));
            }
        }
        self.close_ended();
        self.flush()?;
        if self.room.is_some() && self.out.len() > PATIENCE {
            return Err(io::Error::other("it does not take what it is told"));
        }
        Ok(None)
    }

    /// Closes what has ended. A visit is over with its answer, whatever the visitor would still say.
    fn close_ended(&mut self) {
        self.sinks.retain(|sink| {
            let over = sink.ended && sink.pending.is_empty();
            if let (true, Some(fd)) = (over, &sink.fd) {
                system::end_writing(fd);
            }
            !over
        });
        let answers = self.sources.iter().map(|one| (one.kind, one.program));
        let answers: Vec<u64> = answers
            .chain(self.sinks.iter().map(|one| (one.kind, one.program)))
            .filter(|(kind, _)| *kind == Kind::Answer)
            .map(|(_, visit)| visit)
            .collect();
        self.sources.retain(|one| one.kind != Kind::Visit || answers.contains(&one.program));
        self.sinks.retain(|one| one.kind != Kind::Visit || answers.contains(&one.program));
    }

    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = vec![0; 4 * PIECE];
        match system::read(&self.from, &mut buffer) {
            Ok(0) => return Ok(false),
            Ok(got) => {
                self.unread = None;
                self.decoder.feed(&buffer[..got]);
                if self.room.is_none() {
                    let body = frame::credit(Kind::Message, got);
                    frame::put(&mut self.out, Kind::Credit, 0, &body);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn take(&mut self, frame: Frame) -> io::Result<Option<Arrived>> {
        match frame.kind {
            Kind::Message => return Ok(Some(Arrived::Message(frame.body))),
            Kind::Size => return Ok(frame.size().map(|size| Arrived::Size(frame.program, size))),
            Kind::Credit => {
                let Some((kind, more)) = frame.credit() else { return Ok(None) };
                let program = frame.program;
                if kind == Kind::Message {
                    self.room = self.room.map(|room| room.saturating_add(more).min(LINE));
                }
                let source = self.sources.iter_mut().find(|one| one.program == program && one.kind == kind);
                if let Some(source) = source {
                    source.credit = source.credit.saturating_add(more).min(WINDOW);
                }
            }
            kind => {
                // What comes for a program that is gone is nobody's.
                let found = self
                    .sinks
                    .iter()
                    .position(|one| one.program == frame.program && one.kind == kind && !one.ended);
                if let Some(index) = found {
                    let sink = &mut self.sinks[index];
                    sink.ended = frame.body.is_empty();
                    sink.pending.extend_from_slice(&frame.body);
                    if sink.pending.len() > WINDOW {
                        return Err(io::Error::other("more octets of a stream than were asked for"));
                    }
                    if sink.fd.is_none() {
                        self.discard(index);
                    }
                }
            }
        }
        Ok(None)
    }

    fn read_source(&mut self, index: usize) {
        let source = &mut self.sources[index];
        let mut buffer = [0; PIECE];
        let most = PIECE.min(source.credit);
        let got = match system::read(&source.fd, &mut buffer[..most]) {
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // A terminal whose last user has gone says EIO.
            Err(_) => 0,
        };
        source.credit -= got;
        frame::put(&mut self.out, source.kind, source.program, &buffer[..got]);
        if got == 0 {
            self.sources.remove(index);
        }
    }

    fn write_sink(&mut self, index: usize) {
        let sink = &mut self.sinks[index];
        let Some(fd) = &sink.fd else { return };
        let most = sink.pending.len().min(ATOMIC);
        match system::write(fd, &sink.pending[..most]) {
            Ok(written) => {
                sink.pending.drain(..written);
                let body = frame::credit(sink.kind, written);
                frame::put(&mut self.out, Kind::Credit, sink.program, &body);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.discard(index),
        }
    }

    /// Nobody takes this stream any more: its octets vanish, so that the program goes on.
    fn discard(&mut self, index: usize) {
        let sink = &mut self.sinks[index];
        sink.fd = None;
        let body = frame::credit(sink.kind, sink.pending.len());
        frame::put(&mut self.out, Kind::Credit, sink.program, &body);
        sink.pending.clear();
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write(self.may_write())?;
        self.watch();
        Ok(())
    }

    /// Writes what goes now, up to so many octets.
    fn write(&mut self, mut most: usize) -> io::Result<()> {
        while most > 0 && !self.out.is_empty() {
            match system::write(&self.to, &self.out[..self.out.len().min(most)]) {
                Ok(written) => {
                    self.out.drain(..written);
                    self.room = self.room.map(|room| room - written);
                    most -= written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Keeps an eye on a machine until it has read everything.
    fn watch(&mut self) {
        if self.kept == 0 || self.room == Some(LINE) {
            self.unread = None;
        } else if self.unread.is_none() {
            self.unread = Some(Unread { at: Some(Instant::now() + AGAIN[0]), wait: AGAIN[0] });
        }
    }

    /// Tells a machine again that there is something to read: by what comes next, or by a frame that says
    /// nothing.
    fn tell_again(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let due = self.unread.as_ref().and_then(|one| one.at.filter(|at| *at <= now).map(|_| one.wait * 2));
        let Some(wait) = due else { return Ok(()) };
        self.unread = Some(Unread { at: (wait <= AGAIN[1]).then(|| now + wait), wait });
        if self.out.is_empty() {
            frame::put(&mut self.out, Kind::Credit, 0, &[]);
        }
        self.write(self.room.unwrap_or(0).min(frame::HEAD))
    }
}

#[cfg(test)]
mod tests;
