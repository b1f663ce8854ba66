//! Pcapng capture that never delays the data path.
//!
//! Blocks are written into large chunks; full chunks go to a thread that sorts them into files
//! and returns empty ones. If that thread is too slow, frames are missing from the
//! capture (and counted), not from the network. A stepped engine waits instead, so that
//! its captures are complete.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use airloom_engine::frame::segment;
use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::capture::{self as radiotap, LINK_TYPE, Sniffed};
use airloom_engine::time::Instant;

use self::files::Files;
use crate::error::Error;
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
    /// Frames omitted because the file was too slow or could not be written any more.
    pub skipped: u64,
    /// Octets of the files without the header that begins each, including those that wait to be
    /// written.
    pub octets: u64,
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
    path: PathBuf,
    /// Names of the ports to capture; None for all.
    wanted: Option<BTreeSet<String>>,
    /// Octets to keep of each frame.
    snap: usize,
    /// State of every port, by number.
    parts: Vec<Part>,
    /// Interface numbers of sniffers in the file; None for one that is not captured.
    sources: BTreeMap<Source, Option<u32>>,
    interfaces: u32,
    chunk: Vec<u8>,
    full: SyncSender<Chunk>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
    when_full: WhenFull,
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
        let mut files = Files::create(path, choice.apart).map_err(fail)?;
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
                files.write_until(u64::MAX)
            })
            .map_err(|source| Error::Loop { what: "a thread for the capture", source })?;
        Ok(Self {
            path: path.to_owned(),
            wanted: choice.wanted,
            snap: choice.snap.map_or(usize::MAX, |snap| snap as usize),
            parts: Vec::new(),
            sources: BTreeMap::new(),
            interfaces: 0,
            chunk: Vec::with_capacity(CHUNK),
            full,
            empty,
            writer,
            when_full: WhenFull::Wait,
            zero: 0,
            latest: 0,
            counts: Counts::default(),
            scratch: vec![0; LARGEST_FRAME].into_boxed_slice(),
            air: Vec::with_capacity(4096),
            comment: String::with_capacity(256),
        })
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
            let kept = length.min(self.snap);
            if !self.reserve(pcapng::longest(kept)) {
                self.counts.skipped += 1;
                continue;
            }
            let at = self.zero.saturating_add(at.nanos());
            let (octets, comment) = (&self.scratch[..kept], &self.comment);
            let packet = Packet { interface, at, octets, length, direction, comment };
            pcapng::packet(&mut self.chunk, &packet);
            self.latest = self.latest.max(at);
            self.counts.written += 1;
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
                self.interfaces += 1;
                self.interfaces - 1
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
        let kept = length.min(self.snap);
        if !self.reserve(pcapng::longest(kept)) {
            self.counts.skipped += 1;
            return;
        }
        let at = self.zero.saturating_add(sniffed.at.nanos());
        let octets = &self.air[..kept];
        let packet = Packet { interface, at, octets, length, direction: None, comment: "" };
        pcapng::packet(&mut self.chunk, &packet);
        self.latest = self.latest.max(at);
        self.counts.written += 1;
    }

    /// Passes the current chunk to the writer if the writer is idle, so that the files are up to
    /// date. `now` is the engine's time.
    pub fn push(&mut self, now: Instant) {
        self.next_chunk(self.zero.saturating_add(now.nanos()));
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

    /// Writes the remaining frames and closes the file.
    ///
    /// # Errors
    /// [`Error::Capture`] if not all of it could be written.
    pub fn finish(mut self) -> Result<Counts, Error> {
        self.when_full = WhenFull::Wait;
        self.next_chunk(self.latest);
        // The writer ends when it has written all chunks; there is room for all chunks that it
        // returns.
        drop(self.full);
        let end = self.writer.join().unwrap_or_else(|_| Err(io::Error::other("writer panicked")));
        let counts = self.counts;
        end.map(|()| counts).map_err(|source| Error::Capture { path: self.path, source })
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
                let number = self.interfaces;
                self.interfaces += 1;
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
