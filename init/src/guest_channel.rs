//! One end of a guest's channel: messages, and streams of programs and of connections to the
//! control socket. They are carried as frames, because the channel cannot pass descriptors.
//!
//! Both ends are alike. A **source** is a descriptor that is read here and whose octets are sent
//! over the channel; a **sink** is a descriptor to which received octets are written. At most
//! [`WINDOW`] octets of a stream are in flight: a program whose output is not read blocks, and
//! the other streams continue.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::frame::{self, Decoder, Frame, Kind, WINDOW};
use crate::system;

/// Maximum number of octets read from a descriptor at once.
const PIECE: usize = 16 << 10;
/// Number of octets that a writable descriptor accepts without blocking (`pipe(7)`).
const ATOMIC: usize = libc::PIPE_BUF;
/// Octets in flight to a guest that it has not read. A guest's serial line buffers
/// 4096 for a reader (the kernel's `N_TTY_BUF_SIZE`), and the line of User Mode Linux
/// loses octets beyond that.
const LINE: usize = 2048;
/// Octets of [`LINE`] that are reserved for wake-up frames.
const KEPT: usize = 128;
/// Delays after which a machine that has not read its input gets a wake-up frame: the first and the
/// last. User Mode Linux may miss the signal that input is available, but not the next one.
const AGAIN: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(512)];
/// Maximum number of octets queued for a guest that does not read them.
const MAX_QUEUED: usize = 64 << 20;

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
    /// None if the octets have no reader any more.
    fd: Option<OwnedFd>,
    pending: Vec<u8>,
    ended: bool,
}

/// A machine that has not read all of its input.
#[derive(Debug)]
struct Unread {
    /// Time of the next wake-up frame; None after the last one.
    at: Option<Instant>,
    /// Current delay before a wake-up frame.
    wait: Duration,
}

/// A channel and the streams on it.
#[derive(Debug)]
pub struct GuestChannel {
    /// Descriptors for reading and writing; for a device both are the same.
    from: OwnedFd,
    to: OwnedFd,
    decoder: Decoder,
    out: Vec<u8>,
    /// Octets that the guest can still receive; None at the guest's end, which sends the credits.
    window: Option<usize>,
    /// Octets of `window` that are reserved for wake-up frames.
    kept: usize,
    unread: Option<Unread>,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
}

/// Received items other than stream octets.
#[derive(Debug)]
pub enum Arrived {
    /// A message.
    Message(Vec<u8>),
    /// New size of a program's terminal: rows and columns.
    Size(u64, [u16; 2]),
}

impl GuestChannel {
    /// Takes ownership of the host's end of a machine's channel.
    pub fn to_machine(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd.try_clone()?, fd, Some(LINE), KEPT)
    }

    /// Takes ownership of the host's end of the channel of a part of a guest, which is a stream
    /// inside the machine's channel.
    pub fn to_part(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd.try_clone()?, fd, Some(LINE), 0)
    }

    /// Takes ownership of the guest's end of the channel.
    pub fn to_host(from: OwnedFd, to: OwnedFd) -> io::Result<Self> {
        Self::new(from, to, None, 0)
    }

    fn new(from: OwnedFd, to: OwnedFd, window: Option<usize>, kept: usize) -> io::Result<Self> {
        system::set_nonblocking(&from)?;
        system::set_nonblocking(&to)?;
        let (decoder, out, unread) = (Decoder::default(), Vec::new(), None);
        Ok(Self { from, to, decoder, out, window, kept, unread, sources: Vec::new(), sinks: Vec::new() })
    }

    /// Number of octets that may be written now.
    fn may_write(&self) -> usize {
        self.window.map_or(usize::MAX, |window| window.saturating_sub(self.kept))
    }

    /// Time until the next wake-up frame may be due, if any.
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

    /// Starts to send the octets that are read from a descriptor.
    pub fn source(&mut self, kind: Kind, program: u64, fd: OwnedFd) {
        self.sources.push(Source { kind, program, fd, credit: WINDOW });
    }

    /// Starts to write the octets received for a stream to a descriptor.
    pub fn sink(&mut self, kind: Kind, program: u64, fd: OwnedFd) {
        self.sinks.push(Sink { kind, program, fd: Some(fd), pending: Vec::new(), ended: false });
    }

    /// Joins a connection to the control socket with the other end, in both directions.
    pub fn connect(&mut self, id: u64, reader: (Kind, OwnedFd), writer: (Kind, OwnedFd)) {
        self.source(reader.0, id, reader.1);
        self.sink(writer.0, id, writer.1);
    }

    /// Closes a connection that is not accepted.
    pub fn refuse(&mut self, id: u64) -> io::Result<()> {
        frame::put(&mut self.out, Kind::Answer, id, &[]);
        self.flush()
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        let sources = self.sources.iter().filter(|source| source.kind == Kind::Answer).count();
        sources + self.sinks.iter().filter(|sink| sink.kind == Kind::Answer).count()
    }

    /// Closes the standard input of a program.
    pub fn forget_input(&mut self, program: u64) {
        self.sources.retain(|source| source.program != program || source.kind != Kind::Input);
        self.sinks.retain(|sink| sink.program != program || sink.kind != Kind::Input);
    }

    /// Closes all streams of a program.
    pub fn forget(&mut self, program: u64) {
        self.sources.retain(|source| source.program != program);
        self.sinks.retain(|sink| sink.program != program);
    }

    /// Reads the remaining output of a program; returns false if there is more than may be sent
    /// now.
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

    /// True if all octets received for a program have been written.
    pub fn is_flushed(&self, program: u64) -> bool {
        self.sinks.iter().all(|sink| sink.program != program || sink.pending.is_empty())
    }

    /// The poll entries; pass them to [`GuestChannel::serve`] with their results.
    pub fn interests(&self) -> Vec<libc::pollfd> {
        let entry = |fd: i32, events| libc::pollfd { fd, events, revents: 0 };
        let writes = if self.out.is_empty() || self.may_write() == 0 { 0 } else { libc::POLLOUT };
        // poll(2) ignores a negative descriptor, so that the indices stay those of the lists.
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

    /// Performs all possible input and output; returns false at the end of the channel.
    /// [`GuestChannel::next`] returns the received items.
    pub fn serve(&mut self, ready: &[libc::pollfd]) -> io::Result<bool> {
        let Some(([from, _], streams)) = ready.split_first_chunk::<2>() else { return Ok(true) };
        let (sources, sinks) = streams.split_at(self.sources.len());
        for (index, _) in sinks.iter().enumerate().filter(|(_, entry)| entry.revents != 0) {
            self.write_sink(index);
        }
        // Backwards, because a stream that has ended is removed.
        for (index, _) in sources.iter().enumerate().rev().filter(|(_, entry)| entry.revents != 0) {
            self.read_source(index);
        }
        let more = from.revents == 0 || self.read()?;
        self.flush()?;
        self.tell_again()?;
        Ok(more)
    }

    /// Processes received frames up to the next message, which may concern the streams behind it;
    /// returns None when all are processed.
    pub fn next(&mut self) -> io::Result<Option<Arrived>> {
        while let Some(frame) = self.decoder.next().map_err(io::Error::other)? {
            if let Some(arrived) = self.take(frame)? {
                return Ok(Some(arrived));
            }
        }
        self.close_ended();
        self.flush()?;
        if self.window.is_some() && self.out.len() > MAX_QUEUED {
            return Err(io::Error::other("it does not read its channel"));
        }
        Ok(None)
    }

    /// Closes ended streams. A connection ends with the controller's side, even if the
    /// program could still send.
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
            .map(|(_, connection)| connection)
            .collect();
        self.sources.retain(|one| one.kind != Kind::Request || answers.contains(&one.program));
        self.sinks.retain(|one| one.kind != Kind::Request || answers.contains(&one.program));
    }

    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = vec![0; 4 * PIECE];
        match system::read(&self.from, &mut buffer) {
            Ok(0) => return Ok(false),
            Ok(got) => {
                self.unread = None;
                self.decoder.feed(&buffer[..got]);
                if self.window.is_none() {
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
                    self.window = self.window.map(|window| window.saturating_add(more).min(LINE));
                }
                let source = self.sources.iter_mut().find(|one| one.program == program && one.kind == kind);
                if let Some(source) = source {
                    source.credit = source.credit.saturating_add(more).min(WINDOW);
                }
            }
            kind => {
                // Octets for a program that has ended are dropped.
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
            // A terminal whose last user has closed it reports EIO.
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

    /// The stream has no reader any more: its octets are discarded, so that the program does not
    /// block.
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

    /// Writes up to `most` octets without blocking.
    fn write(&mut self, mut most: usize) -> io::Result<()> {
        while most > 0 && !self.out.is_empty() {
            match system::write(&self.to, &self.out[..self.out.len().min(most)]) {
                Ok(written) => {
                    self.out.drain(..written);
                    self.window = self.window.map(|window| window - written);
                    most -= written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Schedules wake-up frames until the machine has read everything.
    fn watch(&mut self) {
        if self.kept == 0 || self.window == Some(LINE) {
            self.unread = None;
        } else if self.unread.is_none() {
            self.unread = Some(Unread { at: Some(Instant::now() + AGAIN[0]), wait: AGAIN[0] });
        }
    }

    /// Repeats the signal that input is available: by the next queued octets, or by an empty frame.
    fn tell_again(&mut self) -> io::Result<()> {
        if self.unread.is_none() {
            // In virtual time each reading of the clock would cost time.
            return Ok(());
        }
        let now = Instant::now();
        let due = self.unread.as_ref().and_then(|one| one.at.filter(|at| *at <= now).map(|_| one.wait * 2));
        let Some(wait) = due else { return Ok(()) };
        self.unread = Some(Unread { at: (wait <= AGAIN[1]).then(|| now + wait), wait });
        if self.out.is_empty() {
            frame::put(&mut self.out, Kind::Credit, 0, &[]);
        }
        self.write(self.window.unwrap_or(0).min(frame::HEAD))
    }
}

#[cfg(test)]
mod tests;
