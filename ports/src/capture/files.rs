//! The files of a capture: one for all ports, or one for each.
//!
//! Blocks arrive in the order in which the engine reports frames, which is not quite that of time.
//! A frame waits here until no earlier one can come, so that every file is in order of time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::stream::Stream;
use crate::pcapng::{self, Block};

/// The block of a frame that waits.
struct Waiting {
    at: u64,
    interface: u32,
    start: usize,
    end: usize,
}

/// One file of several.
struct Part {
    path: PathBuf,
    /// Blocks before the first frame; empty once they are written.
    begin: Vec<u8>,
}

enum Target {
    /// One file, or a stream to a reader.
    Merged(Box<dyn Write + Send>),
    /// A folder with a file for each interface.
    Apart(PathBuf, Vec<Part>),
}

/// Files that are being written.
pub(super) struct Files {
    target: Target,
    /// Octets of the waiting blocks.
    held: Vec<u8>,
    waiting: Vec<Waiting>,
    /// Counters of interfaces, which follow the last frame.
    statistics: Vec<(u32, Vec<u8>)>,
    /// Blocks for one file.
    out: Vec<u8>,
}

impl Files {
    /// Creates the file, or the folder if the ports are kept `apart`.
    pub fn create(path: &Path, apart: bool) -> io::Result<Self> {
        if apart {
            fs::create_dir_all(path)?;
            return Ok(Self::of(Target::Apart(path.to_owned(), Vec::new())));
        }
        Self::merged(Box::new(File::create(path)?))
    }

    /// One file that somebody reads while it is written.
    pub fn stream(stream: Stream) -> io::Result<Self> {
        Self::merged(Box::new(stream))
    }

    fn merged(mut file: Box<dyn Write + Send>) -> io::Result<Self> {
        let mut begin = Vec::new();
        pcapng::section(&mut begin);
        file.write_all(&begin)?;
        Ok(Self::of(Target::Merged(file)))
    }

    fn of(target: Target) -> Self {
        let (held, waiting, statistics, out) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { target, held, waiting, statistics, out }
    }

    /// Takes blocks, and writes all frames up to `horizon`, in ns since 1970.
    pub fn take(&mut self, mut blocks: &[u8], horizon: u64) -> io::Result<()> {
        while !blocks.is_empty() {
            let (kind, length) = pcapng::first(blocks);
            let (block, rest) = blocks.split_at(length);
            match (kind, &mut self.target) {
                (Block::Interface(_), Target::Merged(file)) => file.write_all(block)?,
                (Block::Interface(name), Target::Apart(folder, parts)) => {
                    let mut begin = Vec::new();
                    pcapng::section(&mut begin);
                    begin.extend_from_slice(block);
                    parts.push(Part { path: folder.join(file_name(name)), begin });
                }
                (Block::Packet(interface, at), _) => {
                    let start = self.held.len();
                    self.held.extend_from_slice(block);
                    self.waiting.push(Waiting { at, interface, start, end: self.held.len() });
                }
                (Block::Statistics(interface), _) => self.statistics.push((interface, block.to_vec())),
            }
            blocks = rest;
        }
        self.write_until(horizon)
    }

    /// Writes all frames up to `horizon`, in ns since 1970.
    pub fn write_until(&mut self, horizon: u64) -> io::Result<()> {
        let Self { target, held, waiting, out, .. } = self;
        waiting.sort_by_key(|frame| frame.at);
        let due = waiting.partition_point(|frame| frame.at <= horizon);
        match target {
            Target::Merged(file) => {
                out.clear();
                waiting[..due].iter().for_each(|frame| out.extend_from_slice(&held[frame.start..frame.end]));
                file.write_all(out)?;
            }
            Target::Apart(_, parts) => {
                // The sort is stable: times stay in order within an interface.
                waiting[..due].sort_by_key(|frame| frame.interface);
                for frames in waiting[..due].chunk_by(|a, b| a.interface == b.interface) {
                    let part = &mut parts[frames[0].interface as usize];
                    out.clear();
                    for frame in frames {
                        let start = out.len();
                        out.extend_from_slice(&held[frame.start..frame.end]);
                        pcapng::renumber(&mut out[start..], 0);
                    }
                    part.append(out)?;
                }
            }
        }
        // What stays moves to the beginning.
        out.clear();
        waiting.drain(..due);
        for frame in &mut *waiting {
            let start = out.len();
            out.extend_from_slice(&held[frame.start..frame.end]);
            (frame.start, frame.end) = (start, out.len());
        }
        std::mem::swap(held, out);
        Ok(())
    }

    /// Writes what waits, and the counters of every interface that has a file.
    pub fn finish(&mut self) -> io::Result<()> {
        self.write_until(u64::MAX)?;
        for (interface, mut block) in self.statistics.drain(..) {
            match &mut self.target {
                Target::Merged(file) => file.write_all(&block)?,
                Target::Apart(_, parts) => {
                    let part = &mut parts[interface as usize];
                    if part.begin.is_empty() {
                        pcapng::renumber(&mut block, 0);
                        part.append(&block)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Part {
    /// Opens the file for this write alone: a large network has more ports than a process may have
    /// open files.
    fn append(&mut self, blocks: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        if self.begin.is_empty() {
            options.append(true);
        } else {
            options.write(true).create(true).truncate(true);
        }
        let mut file = options.open(&self.path)?;
        file.write_all(&std::mem::take(&mut self.begin))?;
        file.write_all(blocks)
    }
}

/// The file of an interface: `h1:eth0` is in `h1.eth0.pcapng`, `air, channel 36` in
/// `air.channel.36.pcapng`.
fn file_name(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let words: Vec<&str> = name.split(|letter| !plain(letter)).filter(|word| !word.is_empty()).collect();
    format!("{}.pcapng", words.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng::{ETHERNET, Packet};

    fn frame(blocks: &mut Vec<u8>, interface: u32, at: u64) {
        let packet = Packet { interface, at, octets: &[7], length: 1, direction: None, comment: "" };
        pcapng::packet(blocks, &packet);
    }

    /// Names of interfaces, and interface and time of each frame, in order of the file.
    fn read(path: &Path) -> (Vec<String>, Vec<(u32, u64)>) {
        let octets = fs::read(path).expect("the file is there");
        let mut begin = Vec::new();
        pcapng::section(&mut begin);
        let mut rest = octets.strip_prefix(&begin[..]).expect("a section begins the file");
        let (mut names, mut frames) = (Vec::new(), Vec::new());
        while !rest.is_empty() {
            let (block, length) = pcapng::first(rest);
            match block {
                Block::Interface(name) => names.push(name.to_owned()),
                Block::Packet(interface, at) => frames.push((interface, at)),
                Block::Statistics(_) => {}
            }
            rest = &rest[length..];
        }
        (names, frames)
    }

    fn blocks(times: &[(u32, u64)]) -> Vec<u8> {
        let mut blocks = Vec::new();
        times.iter().for_each(|&(interface, at)| frame(&mut blocks, interface, at));
        blocks
    }

    fn described() -> Vec<u8> {
        let mut blocks = Vec::new();
        pcapng::interface(&mut blocks, "a:eth0", ETHERNET, 0);
        pcapng::interface(&mut blocks, "air, channel 36", ETHERNET, 0);
        blocks
    }

    /// Interfaces of the counters in a file, with its frames before them.
    fn counters(path: &Path) -> (usize, Vec<u32>) {
        let octets = fs::read(path).expect("the file is there");
        let mut begin = Vec::new();
        pcapng::section(&mut begin);
        let mut rest = octets.strip_prefix(&begin[..]).expect("a section begins the file");
        let (mut frames, mut found) = (0, Vec::new());
        while !rest.is_empty() {
            let (block, length) = pcapng::first(rest);
            match block {
                Block::Packet(..) => {
                    assert!(found.is_empty(), "counters follow the last frame");
                    frames += 1;
                }
                Block::Statistics(interface) => found.push(interface),
                Block::Interface(_) => {}
            }
            rest = &rest[length..];
        }
        (frames, found)
    }

    #[test]
    fn counters_of_interfaces_end_each_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = [described(), blocks(&[(1, 5), (0, 3)])].concat();
        for interface in 0..2 {
            pcapng::statistics(&mut all, interface, 9, 1, 0);
        }
        let one = folder.path().join("all.pcapng");
        let mut files = Files::create(&one, false).expect("the file is new");
        files.take(&all, 0).expect("written");
        files.finish().expect("written");
        assert_eq!(counters(&one), (2, vec![0, 1]));
        let mut files = Files::create(folder.path(), true).expect("the folder is there");
        files.take(&all, 0).expect("written");
        files.finish().expect("written");
        assert_eq!(counters(&folder.path().join("a.eth0.pcapng")), (1, vec![0]));
        assert_eq!(counters(&folder.path().join("air.channel.36.pcapng")), (1, vec![0]));
    }

    #[test]
    fn one_file_is_in_order_of_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.pcapng");
        let mut files = Files::create(&path, false).expect("the file is new");
        files.take(&described(), 0).expect("written");
        files.take(&blocks(&[(0, 5), (1, 3), (0, 9)]), 4).expect("written");
        assert_eq!(read(&path).1, [(1, 3)]);
        files.take(&blocks(&[(1, 8), (0, 8), (1, 20)]), 10).expect("written");
        assert_eq!(read(&path).1, [(1, 3), (0, 5), (1, 8), (0, 8), (0, 9)]);
        files.write_until(u64::MAX).expect("written");
        assert_eq!(read(&path).1.last(), Some(&(1, 20)));
        assert_eq!(read(&path).0, ["a:eth0", "air, channel 36"]);
    }

    #[test]
    fn every_interface_has_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("captures");
        let mut files = Files::create(&path, true).expect("the folder is new");
        files.take(&described(), 0).expect("written");
        files.take(&blocks(&[(1, 5), (0, 3), (1, 2)]), 4).expect("written");
        files.take(&blocks(&[(1, 4)]), u64::MAX).expect("written");
        assert_eq!(read(&path.join("a.eth0.pcapng")), (vec!["a:eth0".to_owned()], vec![(0, 3)]));
        let (names, frames) = read(&path.join("air.channel.36.pcapng"));
        assert_eq!(names, ["air, channel 36"]);
        assert_eq!(frames, [(0, 2), (0, 4), (0, 5)]);
        assert_eq!(fs::read_dir(&path).expect("a folder").count(), 2);
    }

    #[test]
    fn an_interface_without_frames_has_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = Files::create(folder.path(), true).expect("the folder is there");
        files.take(&described(), u64::MAX).expect("written");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
