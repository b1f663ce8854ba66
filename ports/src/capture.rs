//! Pcapng capture that never delays the data path.
//!
//! Blocks are written into large chunks; full chunks go to a thread that writes the file
//! and returns empty ones. If that thread is too slow, frames are missing from the
//! capture (and counted), not from the network. A stepped engine waits instead, so that
//! its captures are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use airloom_engine::frame::segment;
use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::capture::{self as radiotap, LINK_TYPE, Sniffed};
use airloom_engine::time::Instant;

use crate::error::Error;
use crate::pcapng::{self, Direction, Packet};
use crate::port::LARGEST_FRAME;

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

/// Counters of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames in the capture; every segment counts as one.
    pub written: u64,
    /// Frames omitted because the file was too slow or could not be written any more.
    pub skipped: u64,
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
    /// State of every port, by number.
    parts: Vec<Part>,
    /// Interface numbers of sniffers in the file; None for one that is not captured.
    sources: BTreeMap<Source, Option<u32>>,
    interfaces: u32,
    chunk: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
    when_full: WhenFull,
    zero: u64,
    counts: Counts,
    /// Buffer to complete one segment in; segments are shorter than the longest frame.
    scratch: Box<[u8]>,
    /// A frame of a radio after its radiotap header.
    air: Vec<u8>,
    comment: String,
}

impl Capture {
    /// Creates the file and writes its beginning, for a stepped engine whose time zero is 1970.
    /// `wanted` names the ports; None means all.
    ///
    /// # Errors
    /// [`Error::Capture`] if the file cannot be created.
    pub fn create(path: &Path, wanted: Option<BTreeSet<String>>) -> Result<Self, Error> {
        let fail = |source| Error::Capture { path: path.to_owned(), source };
        let mut file = File::create(path).map_err(fail)?;
        let mut begin = Vec::new();
        pcapng::section(&mut begin);
        file.write_all(&begin).map_err(fail)?;
        let (full, to_write) = sync_channel::<Vec<u8>>(CHUNKS);
        let (give_back, empty) = sync_channel(CHUNKS);
        for _ in 1..CHUNKS {
            give_back.send(Vec::with_capacity(CHUNK)).expect("the other end is in this function");
        }
        let writer = std::thread::Builder::new()
            .name("airloom-capture".into())
            .spawn(move || {
                for mut chunk in to_write {
                    // On return both channels are dropped: the data path notices at its next chunk.
                    file.write_all(&chunk)?;
                    chunk.clear();
                    if give_back.send(chunk).is_err() {
                        break;
                    }
                }
                file.flush()
            })
            .map_err(|source| Error::Loop { what: "a thread for the capture", source })?;
        Ok(Self {
            path: path.to_owned(),
            wanted,
            parts: Vec::new(),
            sources: BTreeMap::new(),
            interfaces: 0,
            chunk: Vec::with_capacity(CHUNK),
            full,
            empty,
            writer,
            when_full: WhenFull::Wait,
            zero: 0,
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
            let octets = segment::complete(frame, pool, number, &mut self.scratch);
            if !self.reserve(pcapng::longest(octets)) {
                self.counts.skipped += 1;
                continue;
            }
            let octets = [&self.scratch[..octets], &[]];
            let at = self.zero.saturating_add(at.nanos());
            let comment = &self.comment;
            pcapng::packet(&mut self.chunk, &Packet { interface, at, octets, direction, comment });
            self.counts.written += 1;
        }
    }

    /// Adds a frame with its radiotap header, as received by `source`. `port` is the port of a radio.
    /// A channel has no port; its frames are kept if all ports are captured.
    pub fn sniffed(
        &mut self,
        source: Source,
        port: Option<&str>,
        sniffed: &Sniffed,
        pool: &Pool,
        name: impl FnOnce() -> String,
    ) {
        let known = self.sources.get(&source).copied();
        let interface = known.unwrap_or_else(|| {
            let wanted = |wanted: &BTreeSet<String>| port.is_some_and(|port| wanted.contains(port));
            let name = self.wanted.as_ref().is_none_or(wanted).then(name);
            let number = name.map(|name| {
                // The writer's channel may be full for a moment; a description is never omitted.
                pcapng::interface(&mut self.chunk, &name, LINK_TYPE);
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
        if !self.reserve(pcapng::longest(self.air.len())) {
            self.counts.skipped += 1;
            return;
        }
        let at = self.zero.saturating_add(sniffed.at.nanos());
        let octets = [&self.air[..], &[]];
        pcapng::packet(&mut self.chunk, &Packet { interface, at, octets, direction: None, comment: "" });
        self.counts.written += 1;
    }

    /// Passes the current chunk to the writer if the writer is idle, so that the file is up to
    /// date.
    pub fn push(&mut self) {
        if !self.chunk.is_empty() {
            self.next_chunk();
        }
    }

    /// True once writing the file has failed; [`Capture::finish`] returns the error.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.writer.is_finished()
    }

    /// The counters so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Writes the remaining frames and closes the file.
    ///
    /// # Errors
    /// [`Error::Capture`] if not all of it could be written.
    pub fn finish(mut self) -> Result<Counts, Error> {
        self.when_full = WhenFull::Wait;
        self.push();
        // The writer ends when it has written all chunks; there is room for all chunks that it
        // returns.
        drop(self.full);
        let end = self.writer.join().unwrap_or_else(|_| Err(io::Error::other("writer panicked")));
        end.map(|()| self.counts).map_err(|source| Error::Capture { path: self.path, source })
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
                pcapng::interface(&mut self.chunk, name, pcapng::ETHERNET);
                let number = self.interfaces;
                self.interfaces += 1;
                self.parts[port] = Part::Interface(number);
                Some(number)
            }
        }
    }

    /// Reserves so many octets in a chunk; returns false if no chunk is free.
    fn reserve(&mut self, octets: usize) -> bool {
        self.chunk.len() + octets <= CHUNK || self.next_chunk()
    }

    /// Exchanges the chunk for an empty one; returns false if there is none.
    fn next_chunk(&mut self) -> bool {
        let next = match self.when_full {
            WhenFull::Wait => self.empty.recv().ok(),
            WhenFull::Skip => self.empty.try_recv().ok(),
        };
        let Some(next) = next else { return false };
        // There are as many chunks as places: the channel is never full.
        self.full.try_send(std::mem::replace(&mut self.chunk, next)).is_ok()
    }
}
