//! One end of a guest's channel: messages, and streams of programs that are carried as frames
//! because no descriptor can pass.
//!
//! Both ends are alike. A **source** is a descriptor that is read here and whose octets go over;
//! a **sink** is one that gets what came. No more than [`WINDOW`] octets of a stream are under way,
//! so that a program whose output nobody takes waits, and the others do not.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

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

/// A channel and what goes over it.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
    decoder: Decoder,
    out: Vec<u8>,
    /// Octets that the guest has room for; None at the guest's end, which tells what it has read.
    room: Option<usize>,
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
    /// Takes over the host's end of the channel.
    pub fn to_guest(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Some(LINE))
    }

    /// Takes over the guest's end of the channel.
    pub fn to_host(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, None)
    }

    fn new(fd: OwnedFd, room: Option<usize>) -> io::Result<Self> {
        system::set_nonblocking(&fd)?;
        let (decoder, out) = (Decoder::default(), Vec::new());
        Ok(Self { fd, decoder, out, room, sources: Vec::new(), sinks: Vec::new() })
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
        let writes = if self.out.is_empty() || self.room == Some(0) { 0 } else { libc::POLLOUT };
        // A negative descriptor is passed over, so that the places stay those of the lists.
        let channel = entry(self.fd.as_raw_fd(), libc::POLLIN | writes);
        let sources = self.sources.iter().map(|source| {
            let may = source.credit > 0 && self.out.len() < 2 * WINDOW;
            entry(if may { source.fd.as_raw_fd() } else { -1 }, libc::POLLIN)
        });
        let sinks = self.sinks.iter().map(|sink| {
            let fd = sink.fd.as_ref().filter(|_| !sink.pending.is_empty());
            entry(fd.map_or(-1, AsRawFd::as_raw_fd), libc::POLLOUT)
        });
        std::iter::once(channel).chain(sources).chain(sinks).collect()
    }

    /// Does what can be done now; gives what came over, or None at the end of the channel.
    pub fn serve(&mut self, ready: &[libc::pollfd]) -> io::Result<Option<Vec<Arrived>>> {
        let Some((channel, streams)) = ready.split_first() else { return Ok(Some(Vec::new())) };
        let (sources, sinks) = streams.split_at(self.sources.len());
        for (index, _) in sinks.iter().enumerate().filter(|(_, entry)| entry.revents != 0) {
            self.write_sink(index);
        }
        // From behind, because one that has ended is removed.
        for (index, _) in sources.iter().enumerate().rev().filter(|(_, entry)| entry.revents != 0) {
            self.read_source(index);
        }
        self.sinks.retain(|sink| !(sink.ended && sink.pending.is_empty()));
        let arrived = if channel.revents & !libc::POLLOUT == 0 { Some(Vec::new()) } else { self.read()? };
        self.flush()?;
        Ok(arrived)
    }

    fn read(&mut self) -> io::Result<Option<Vec<Arrived>>> {
        let mut buffer = vec![0; 4 * PIECE];
        match system::read(&self.fd, &mut buffer) {
            Ok(0) => return Ok(None),
            Ok(got) => {
                self.decoder.feed(&buffer[..got]);
                if self.room.is_none() {
                    let body = frame::credit(Kind::Message, got);
                    frame::put(&mut self.out, Kind::Credit, 0, &body);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let mut arrived = Vec::new();
        while let Some(frame) = self.decoder.next().map_err(io::Error::other)? {
            arrived.extend(self.take(frame)?);
        }
        Ok(Some(arrived))
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
                    if self.sinks[index].ended && self.sinks[index].pending.is_empty() {
                        self.sinks.remove(index);
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
        while !self.out.is_empty() {
            let most = self.out.len().min(self.room.unwrap_or(usize::MAX));
            if most == 0 {
                break;
            }
            match system::write(&self.fd, &self.out[..most]) {
                Ok(written) => {
                    self.out.drain(..written);
                    self.room = self.room.map(|room| room - written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::{Arrived, Link};
    use crate::frame::{Kind, WINDOW};
    use crate::system;

    fn pair() -> (Link, Link) {
        let (near, far) = UnixStream::pair().unwrap();
        (Link::to_guest(OwnedFd::from(near)).unwrap(), Link::to_host(OwnedFd::from(far)).unwrap())
    }

    /// Lets both ends work until nothing is left to do.
    fn settle(ends: [&mut Link; 2]) -> Vec<Arrived> {
        let [a, b] = ends;
        let mut arrived = Vec::new();
        loop {
            let mut idle = true;
            for link in [&mut *a, &mut *b] {
                let mut entries = link.interests();
                system::poll(&mut entries, Some(std::time::Duration::ZERO)).unwrap();
                idle &= entries.iter().all(|entry| entry.revents == 0);
                arrived.extend(link.serve(&entries).unwrap().unwrap());
            }
            if idle {
                return arrived;
            }
        }
    }

    #[test]
    fn a_stream_goes_over_and_ends() {
        let (mut host, mut guest) = pair();
        let (mut program, output) = UnixStream::pair().unwrap();
        let (log, mut reader) = UnixStream::pair().unwrap();
        guest.source(Kind::Output, 3, output.into());
        host.sink(Kind::Output, 3, log.into());
        program.write_all(b"hello\n").unwrap();
        settle([&mut host, &mut guest]);
        drop(program);
        settle([&mut host, &mut guest]);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello\n");
    }

    #[test]
    fn a_program_that_nobody_reads_waits_and_others_do_not() {
        let (mut host, mut guest) = pair();
        let (program, output) = UnixStream::pair().unwrap();
        let (log, _reader) = UnixStream::pair().unwrap();
        program.set_nonblocking(true).unwrap();
        guest.source(Kind::Output, 1, output.into());
        host.sink(Kind::Output, 1, log.into());
        let mut total = 0;
        while total < 64 * WINDOW {
            match (&program).write(&[7; 4096]) {
                Ok(written) => total += written,
                Err(_) => {
                    let before = total;
                    settle([&mut host, &mut guest]);
                    total += (&program).write(&[7; 4096]).unwrap_or(0);
                    if total == before {
                        break;
                    }
                }
            }
        }
        assert!(total < 64 * WINDOW, "what nobody reads was taken");
        guest.send(&serde_json::json!({"still": "here"})).unwrap();
        assert!(matches!(settle([&mut host, &mut guest])[..], [Arrived::Message(_)]));
    }

    #[test]
    fn a_closed_reader_lets_the_program_go_on() {
        let (mut host, mut guest) = pair();
        let (mut program, output) = UnixStream::pair().unwrap();
        let (log, reader) = UnixStream::pair().unwrap();
        drop(reader);
        guest.source(Kind::Output, 1, output.into());
        host.sink(Kind::Output, 1, log.into());
        for _ in 0..40 {
            program.write_all(&[1; 4096]).unwrap();
            settle([&mut host, &mut guest]);
        }
        assert!(host.is_flushed(1));
    }
}
