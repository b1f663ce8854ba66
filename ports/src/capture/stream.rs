//! A stream of a capture to a reader that may be slow, or go.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Octets that a pipe takes without blocking once it is writable (`PIPE_BUF`, pipe(7)).
const PIECE: usize = 4096;
/// Longest time that a reader may read nothing after the end of the capture.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time in ns between two looks whether the capture has ended.
const LOOK: i64 = 50_000_000;

/// Whether a capture has ended, and its reader should come to an end too.
#[derive(Clone, Debug, Default)]
pub(super) struct Closing(Arc<OnceLock<Instant>>);

impl Closing {
    /// Marks the end.
    pub fn set(&self) {
        self.0.get_or_init(Instant::now);
    }

    fn has_lasted(&self, duration: Duration) -> bool {
        self.0.get().is_some_and(|at| at.elapsed() >= duration)
    }
}

/// A descriptor that is written to from a thread that may wait. The descriptor's other users keep its
/// flags, so that it is asked before each write whether it blocks.
pub(super) struct Stream {
    file: File,
    /// Most octets of a write.
    piece: usize,
    closing: Closing,
}

impl Stream {
    /// Of an open descriptor.
    pub fn new(file: File, closing: Closing) -> io::Result<Self> {
        let piece = if file.metadata()?.is_file() { usize::MAX } else { PIECE };
        Ok(Self { file, piece, closing })
    }

    /// Waits until a piece can be written, or the reader is gone, which the write then says.
    fn wait(&self) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK };
        loop {
            let mut asked = [PollFd::new(&self.file, PollFlags::OUT)];
            match poll(&mut asked, Some(&timeout)) {
                Ok(0) if self.closing.has_lasted(PATIENCE) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        loop {
            self.wait()?;
            match self.file.write(&octets[..octets.len().min(self.piece)]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_reader_gets_all_octets() {
        let (mut read, write) = pipe().expect("a pipe");
        let mut stream = Stream::new(File::from(OwnedFd::from(write)), Closing::default()).expect("a stream");
        let sent: Vec<u8> = (0..300_000_u32).map(|octet| octet.to_le_bytes()[0]).collect();
        let expected = sent.clone();
        let writer = std::thread::spawn(move || stream.write_all(&sent));
        let mut got = Vec::new();
        read.read_to_end(&mut got).expect("read");
        writer.join().expect("no panic").expect("written");
        assert_eq!(got, expected);
    }

    #[test]
    fn a_reader_that_does_not_read_holds_nobody_up_after_the_end() {
        let (_read, write) = pipe().expect("a pipe");
        let closing = Closing::default();
        let mut stream = Stream::new(File::from(OwnedFd::from(write)), closing.clone()).expect("a stream");
        closing.set();
        let error = stream.write_all(&[0; 1 << 20]).expect_err("the pipe is full");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error() {
        let (read, write) = pipe().expect("a pipe");
        let mut stream = Stream::new(File::from(OwnedFd::from(write)), Closing::default()).expect("a stream");
        drop(read);
        let error = stream.write_all(&[0; 10]).expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
