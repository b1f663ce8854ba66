//! Pcapng capture that never delays the data path.
//!
//! Blocks are written into large chunks; full chunks go to a thread that sorts them into files
//! and returns empty ones. If that thread is too slow, frames are missing from the
//! capture (and counted), not from the network. A stepped engine waits instead, so that
//! its captures are complete; for a reader that follows a capture live it never waits.

mod files;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use airloom_engine::frame::segment;
use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::capture::{self as radiotap, LINK_TYPE, Sniffed};
use airloom_engine::time::Instant;

use self::files::Files;
use self::stream::{Closing, Stream};
use crate::error::Error;
use crate::filter::Filter;
use crate::pcapng::{self, Direction, Packet};
use crate::port::LARGEST_FRAME;

/// Longest time in ns between the time of a frame and its report: a frame of a radio has the time
/// of its first symbol, and is reported after its last one.
const DISORDER: u64 = 100_000_000;
const CHUNK: usize = 512 * 1024;
const CHUNKS: usize = 16;

/// Behaviour when the file is slower than the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenFull {
    /// Omit frames from the capture and count them.
    Skip,
    /// Wait for the file.
    Wait,
}

/// What a capture contains, and how it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Names of the ports and media to capture; None for all. A medium stands for the sniffer's
    /// view of its channels.
    pub wanted: Option<BTreeSet<String>>,
    /// Octets to keep of each frame; None for all. The radiotap header counts.
    pub snap: Option<u32>,
    /// One file for each port, in a folder; otherwise one file with all of them.
    pub apart: bool,
    /// A filter for each link type, by its number; None captures all frames. Frames of a link type
    /// without a filter do not pass then.
    pub filters: Option<BTreeMap<u16, Filter>>,
}

/// A chunk of blocks for the thread that writes them.
struct Chunk {
    octets: Vec<u8>,
    /// Every later frame has a later time, in ns since 1970.
    horizon: u64,
}

/// Counters of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames in the capture; every segment counts as one.
    pub written: u64,
    /// Frames omitted because the file or the reader was too slow or could not be written to any more.
    pub skipped: u64,
    /// Octets of the files without the header that begins each, including those that wait to be
    /// written.
    pub octets: u64,
}

/// Counters of a capture, and whether it could not be written to any more.
pub type Account = (Counts, bool);

/// Frames of one interface of a capture.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    written: u64,
    skipped: u64,
}

/// State of a port in a capture.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// No frame of the port has been captured yet.
    New,
    /// The port is not captured.
    Left,
    /// The port has this interface number in the file.
    Interface(u32),
}

/// Source of frames from a medium: one radio, or a whole channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Medium and radio.
    Radio(u32, u32),
    /// Medium and centre in MHz.
    Channel(u32, u16),
}

/// A capture that is being written.
#[derive(Debug)]
pub struct Capture {
    /// Its number in the world; 0 for that of the run.
    pub(crate) number: u32,
    path: PathBuf,
    /// Names of the ports to capture; None for all.
    wanted: Option<BTreeSet<String>>,
    /// Octets to keep of each frame.
    snap: usize,
    /// By link type; None lets all frames pass.
    filters: Option<BTreeMap<u16, Filter>>,
    /// State of every port, by number.
    parts: Vec<Part>,
    /// Interface numbers of sniffers in the file; None for one that is not captured.
    sources: BTreeMap<Source, Option<u32>>,
    /// By number of the interface.
    tallies: Vec<Tally>,
    chunk: Vec<u8>,
    full: SyncSender<Chunk>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
    when_full: WhenFull,
    /// Set at the end, when a reader is given little more time.
    closing: Closing,
    zero: u64,
    /// Latest time of a frame, in ns since 1970.
    latest: u64,
    counts: Counts,
    /// Buffer to complete one segment in; segments are shorter than the longest frame.
    scratch: Box<[u8]>,
    /// A frame of a radio after its radiotap header.
    air: Vec<u8>,
    comment: String,
}

impl Capture {
    /// Creates the file or folder, for a stepped engine whose time zero is 1970.
    ///
    /// # Errors
    /// [`Error::Capture`] if it cannot be created.
    pub fn create(path: &Path, choice: Choice) -> Result<Self, Error> {
        let fail = |source| Error::Capture { path: path.to_owned(), source };
        let files = Files::create(path, choice.apart).map_err(fail)?;
        Self::begin(path.to_owned(), files, choice, WhenFull::Wait, Closing::default())
    }

    /// Writes to a descriptor that somebody reads meanwhile: a pipe, or a file. Nothing waits for the
    /// reader.
    ///
    /// # Errors
    /// [`Error::Capture`] if it cannot be written to.
    pub fn stream(descriptor: OwnedFd, choice: Choice) -> Result<Self, Error> {
        let path = PathBuf::from(format!("/dev/fd/{}", descriptor.as_raw_fd()));
        let closing = Closing::default();
        let stream = Stream::new(File::from(descriptor), closing.clone());
        let fail = |source| Error::Capture { path: path.clone(), source };
        let files = stream.and_then(Files::stream).map_err(fail)?;
        Self::begin(path, files, choice, WhenFull::Skip, closing)
    }

    fn begin(
        path: PathBuf,
        mut files: Files,
        choice: Choice,
        when_full: WhenFull,
        closing: Closing,
    ) -> Result<Self, Error> {
        let (full, to_write) = sync_channel::<Chunk>(CHUNKS);
        let (give_back, empty) = sync_channel(CHUNKS);
        for _ in 1..CHUNKS {
            give_back.send(Vec::with_capacity(CHUNK)).expect("the other end is in this function");
        }
        let writer = std::thread::Builder::new()
            .name("airloom-capture".into())
            .spawn(move || {
                for Chunk { mut octets, horizon } in to_write {
                    // On return both channels are dropped: the data path notices at its next chunk.
                    files.take(&octets, horizon)?;
                    octets.clear();
                    if give_back.send(octets).is_err() {
                        break;
                    }
                }
                files.finish()
            })
            .map_err(|source| Error::Loop { what: "a thread for the capture", source })?;
        Ok(Self {
            number: 0,
            path,
            wanted: choice.wanted,
            snap: choice.snap.map_or(usize::MAX, |snap| snap as usize),
            filters: choice.filters,
            parts: Vec::new(),
            sources: BTreeMap::new(),
            tallies: Vec::new(),
            chunk: Vec::with_capacity(CHUNK),
            full,
            empty,
            writer,
            when_full,
            closing,
            zero: 0,
            latest: 0,
            counts: Counts::default(),
            scratch: vec![0; LARGEST_FRAME].into_boxed_slice(),
            air: Vec::with_capacity(4096),
            comment: String::with_capacity(256),
        })
    }

    /// Sets the instant of time zero, in nanoseconds after 1970. Every frame is written, however long
    /// that takes.
    pub fn start_at(&mut self, zero: u64) {
        self.zero = zero;
    }

    /// Switches to a clock whose zero is `zero` nanoseconds after 1970; from now on the capture
    /// does not wait for the file.
    pub fn follow(&mut self, zero: u64) {
        self.zero = zero;
        self.when_full = WhenFull::Skip;
    }

    /// Adds a frame at the port with this number and name, each segment of a super-frame
    /// separately. The pieces of `comment` are joined.
    pub fn frame(
        &mut self,
        (port, name): (usize, &str),
        at: Instant,
        (frame, pool): (&Frame, &Pool),
        direction: Option<Direction>,
        comment: &[&str],
    ) {
        let Some(interface) = self.interface(port, name) else { return };
        self.comment.clear();
        comment.iter().for_each(|piece| self.comment.push_str(piece));
        for number in frame.first..frame.first + frame.count {
            let length = segment::complete(frame, pool, number, &mut self.scratch);
            if !admits(self.filters.as_ref(), pcapng::ETHERNET, &self.scratch[..length]) {
                continue;
            }
            let kept = length.min(self.snap);
            if !self.reserve(pcapng::longest(kept)) {
                self.skip(interface);
                continue;
            }
            let at = self.zero.saturating_add(at.nanos());
            let (octets, comment) = (&self.scratch[..kept], &self.comment);
            let packet = Packet { interface, at, octets, length, direction, comment };
            pcapng::packet(&mut self.chunk, &packet);
            self.wrote(interface, at);
        }
    }

    /// Adds a frame with its radiotap header, as received by `source`. `place` is the port of a radio,
    /// or the medium of a channel.
    pub fn sniffed(
        &mut self,
        source: Source,
        place: &str,
        sniffed: &Sniffed,
        pool: &Pool,
        name: impl FnOnce() -> String,
    ) {
        let known = self.sources.get(&source).copied();
        let snap = self.interface_snap();
        let interface = known.unwrap_or_else(|| {
            let name = self.wanted.as_ref().is_none_or(|wanted| wanted.contains(place)).then(name);
            let number = name.map(|name| {
                // The writer's channel may be full for a moment; a description is never omitted.
                pcapng::interface(&mut self.chunk, &name, LINK_TYPE, snap);
                self.tallies.push(Tally::default());
                self.newest()
            });
            self.sources.insert(source, number);
            number
        });
        let Some(interface) = interface else { return };
        let scratch = &mut self.scratch;
        let octets = sniffed.frame.map_or(0, |frame| segment::complete(&frame, pool, frame.first, scratch));
        self.air.clear();
        radiotap::write(sniffed, &self.scratch[..octets], &mut self.air);
        let length = self.air.len();
        if !admits(self.filters.as_ref(), LINK_TYPE, &self.air) {
            return;
        }
        let kept = length.min(self.snap);
        if !self.reserve(pcapng::longest(kept)) {
            self.skip(interface);
            return;
        }
        let at = self.zero.saturating_add(sniffed.at.nanos());
        let octets = &self.air[..kept];
        let packet = Packet { interface, at, octets, length, direction: None, comment: "" };
        pcapng::packet(&mut self.chunk, &packet);
        self.wrote(interface, at);
    }

    /// Counts a frame of an interface that is in the capture, with its time in ns since 1970.
    fn wrote(&mut self, interface: u32, at: u64) {
        self.latest = self.latest.max(at);
        self.counts.written += 1;
        self.tallies[interface as usize].written += 1;
    }

    /// Counts a frame of an interface that is not in the capture.
    fn skip(&mut self, interface: u32) {
        self.counts.skipped += 1;
        self.tallies[interface as usize].skipped += 1;
    }

    /// The number of the interface that was described last.
    fn newest(&self) -> u32 {
        u32::try_from(self.tallies.len() - 1).expect("a world has fewer ports")
    }

    /// Passes the current chunk to the writer if the writer is idle, so that the files are up to
    /// date. `now` is the engine's time.
    pub fn push(&mut self, now: Instant) {
        self.next_chunk(self.zero.saturating_add(now.nanos()));
    }

    /// Names of the ports and media to capture; None for all.
    pub(crate) fn wanted(&self) -> Option<&BTreeSet<String>> {
        self.wanted.as_ref()
    }

    /// The snap length in the description of an interface; 0 is none.
    fn interface_snap(&self) -> u32 {
        u32::try_from(self.snap).unwrap_or(0)
    }

    /// True once writing the file has failed; [`Capture::finish`] returns the error.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.writer.is_finished()
    }

    /// The counters so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { octets: self.counts.octets + self.chunk.len() as u64, ..self.counts }
    }

    /// Writes the remaining frames and the counters of each interface, and closes the file. A reader
    /// has a short time for what it has not read.
    ///
    /// # Errors
    /// [`Error::Capture`] if not all of it could be written.
    pub fn finish(mut self) -> Result<Counts, Error> {
        self.when_full = WhenFull::Wait;
        self.closing.set();
        for (interface, tally) in (0u32..).zip(&self.tallies) {
            pcapng::statistics(&mut self.chunk, interface, self.latest, tally.written, tally.skipped);
        }
        self.next_chunk(self.latest);
        // The writer ends when it has written all chunks; there is room for all chunks that it
        // returns.
        drop(self.full);
        let end = self.writer.join().unwrap_or_else(|_| Err(io::Error::other("writer panicked")));
        let counts = self.counts;
        end.map(|()| counts).map_err(|source| Error::Capture { path: self.path, source })
    }

    /// As [`Capture::finish`], and returns the counters in any case.
    ///
    /// # Errors
    /// Those of [`Capture::finish`], beside the counters.
    pub fn account(self) -> (Account, Result<(), Error>) {
        let before = self.counts();
        match self.finish() {
            Ok(counts) => ((counts, false), Ok(())),
            Err(error) => ((before, true), Err(error)),
        }
    }

    /// The port's number in the file; None if it is not captured, or cannot be written yet.
    fn interface(&mut self, port: usize, name: &str) -> Option<u32> {
        if port >= self.parts.len() {
            self.parts.resize(port + 1, Part::New);
        }
        match self.parts[port] {
            Part::Interface(number) => Some(number),
            Part::Left => None,
            Part::New => {
                if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(name)) {
                    self.parts[port] = Part::Left;
                    return None;
                }
                // An interface may be described anywhere before its first frame.
                if !self.reserve(pcapng::longest(name.len())) {
                    self.counts.skipped += 1;
                    return None;
                }
                let snap = self.interface_snap();
                pcapng::interface(&mut self.chunk, name, pcapng::ETHERNET, snap);
                self.tallies.push(Tally::default());
                let number = self.newest();
                self.parts[port] = Part::Interface(number);
                Some(number)
            }
        }
    }

    /// Reserves so many octets in a chunk; returns false if no chunk is free.
    fn reserve(&mut self, octets: usize) -> bool {
        self.chunk.len() + octets <= CHUNK || self.next_chunk(self.latest)
    }

    /// Exchanges the chunk for an empty one; returns false if there is none. `until` is a time up to
    /// which all frames but those still on the air have been reported.
    fn next_chunk(&mut self, until: u64) -> bool {
        let next = match self.when_full {
            WhenFull::Wait => self.empty.recv().ok(),
            WhenFull::Skip => self.empty.try_recv().ok(),
        };
        let Some(next) = next else { return false };
        self.counts.octets += self.chunk.len() as u64;
        let octets = std::mem::replace(&mut self.chunk, next);
        // There are as many chunks as places: the channel is never full.
        self.full.try_send(Chunk { octets, horizon: until.saturating_sub(DISORDER) }).is_ok()
    }
}

/// Whether a whole frame of a link type passes the filters.
fn admits(filters: Option<&BTreeMap<u16, Filter>>, link_type: u16, octets: &[u8]) -> bool {
    let Some(filters) = filters else { return true };
    filters.get(&link_type).is_some_and(|filter| filter.admits(octets, octets.len()))
}
