//! Programs that call the kernel over and over without waiting: what a guest's kernel says about them.
//!
//! `kernel/patches/spin.patch` charges them time, and lists them in a page that it shares with the
//! calendar (`struct spin_page`): a version, the number of entries, the program that runs with its
//! process number, and for each program its calls that were charged and the nanoseconds.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{Errno, pread, pwrite};
use serde::Serialize;

use super::Calendar;

/// Octets of the page.
const PAGE: usize = 4096;
/// The version in the page, `UM_TIMETRAVEL_SPIN_VERSION`, by which the kernel knows that it is no calendar.
const VERSION: u32 = 0x5350_494e;
/// Octets of a program's name, `TASK_COMM_LEN`.
const NAME: usize = 16;
/// Offset of the name of the program that runs; its process number is behind it.
const RUNNING: usize = 8;
/// Offset of the entries.
const ENTRIES: usize = RUNNING + NAME + 8;
/// Octets of an entry.
const ENTRY: usize = NAME + 16;

/// A program that was charged time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spun {
    /// The guest.
    pub guest: String,
    /// The program's name, at most 15 octets; empty for all others in a list that is full.
    pub program: String,
    /// Calls that were charged.
    pub calls: u64,
    /// What they cost.
    pub nanoseconds: u64,
}

impl Calendar {
    /// Programs that were charged time because they called their kernel over and over without waiting.
    #[must_use]
    pub fn spun(&self) -> Vec<Spun> {
        let clients = self.guests.iter().map(|guest| &guest.client);
        let known = clients.filter_map(|client| Some((client.spin.as_ref()?, &client.name)));
        known.flat_map(|(spin, name)| spin.spun(name)).collect()
    }
}

/// The page of one guest.
#[derive(Debug)]
pub(super) struct SpinPage {
    file: OwnedFd,
    /// Where it is in the file.
    offset: u64,
}

impl SpinPage {
    pub fn new() -> Result<Self, Errno> {
        let page = memfd_create(c"spin", MemfdFlags::CLOEXEC)?;
        ftruncate(&page, PAGE as u64)?;
        pwrite(&page, &VERSION.to_ne_bytes(), 0)?;
        Ok(Self::at(page, 0))
    }

    /// The page at an offset of a file.
    pub fn at(file: OwnedFd, offset: u64) -> Self {
        Self { file, offset }
    }

    /// The program that runs in user space, or did last, and its process number in the guest.
    pub fn running(&self) -> Option<(String, u64)> {
        let page = self.read()?;
        let program = name(&page[RUNNING..RUNNING + NAME]);
        (!program.is_empty()).then(|| (program, number(&page[RUNNING + NAME..])))
    }

    /// All programs that were charged.
    fn spun(&self, guest: &str) -> Vec<Spun> {
        let Some(page) = self.read() else { return Vec::new() };
        let count = u32::from_ne_bytes(std::array::from_fn(|octet| page[4 + octet])) as usize;
        let entry = |octets: &[u8]| Spun {
            guest: guest.to_owned(),
            program: name(&octets[..NAME]),
            calls: number(&octets[NAME..]),
            nanoseconds: number(&octets[NAME + 8..]),
        };
        page[ENTRIES..].chunks_exact(ENTRY).take(count).map(entry).collect()
    }

    fn read(&self) -> Option<[u8; PAGE]> {
        let mut page = [0; PAGE];
        (pread(&self.file, &mut page, self.offset) == Ok(PAGE)).then_some(page)
    }
}

impl AsFd for SpinPage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The guest may write anything into its page.
fn name(octets: &[u8]) -> String {
    let end = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    let shown = |character: char| if character.is_control() { '?' } else { character };
    String::from_utf8_lossy(&octets[..end]).chars().map(shown).collect()
}

fn number(octets: &[u8]) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|octet| octets[octet]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(program: &[u8], calls: u64, nanoseconds: u64) -> Vec<u8> {
        let mut octets = program.to_vec();
        octets.resize(NAME, 0);
        [octets, calls.to_ne_bytes().to_vec(), nanoseconds.to_ne_bytes().to_vec()].concat()
    }

    #[test]
    fn the_page_is_read_as_the_kernel_writes_it() {
        let page = SpinPage::new().expect("memory");
        assert_eq!((page.running(), page.spun("h1")), (None, vec![]));
        pwrite(&page, &2u32.to_ne_bytes(), 4).expect("room");
        pwrite(&page, &[b"sh\0".as_slice(), &[0; 13], &43u64.to_ne_bytes()].concat(), 8).expect("room");
        pwrite(&page, &[entry(b"iperf3", 7, 9000), entry(b"a\nb", 1, 1)].concat(), 32).expect("room");
        assert_eq!(page.running(), Some(("sh".to_owned(), 43)));
        let spun = page.spun("h1");
        assert_eq!(spun.len(), 2);
        assert_eq!((spun[0].program.as_str(), spun[0].calls, spun[0].nanoseconds), ("iperf3", 7, 9000));
        assert_eq!(spun[1].program, "a?b", "nothing that moves a terminal's cursor");
    }

    #[test]
    fn a_page_with_garbage_has_no_more_than_its_entries() {
        let page = SpinPage::new().expect("memory");
        pwrite(&page, &[0xff; PAGE], 0).expect("room");
        assert_eq!(page.spun("h1").len(), (PAGE - ENTRIES) / ENTRY);
    }
}
