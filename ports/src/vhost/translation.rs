//! Translation of the addresses of a guest's buffers, from guest-physical to the engine's own.
//!
//! A card that reads and writes a guest's buffers by itself needs a translation in its IOMMU. The
//! engine has the translation of every region of the memory all the time ([`Translation::Direct`]);
//! the other modes do what an IOMMU's driver does in its modes, with real mappings of the host's
//! memory, so that their cost can be measured. The rings stay mapped in every mode, as coherent
//! memory of a driver does.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::param::page_size;

use super::memory::Mapping;
use crate::port::LARGEST_FRAME;

/// How the address of a buffer is translated.
#[derive(Clone, Debug, Default)]
pub enum Translation {
    /// The whole memory is mapped once; an address is translated by an addition.
    #[default]
    Direct,
    /// Likewise, and each buffer is copied once more, by way of memory of the engine.
    Bounce,
    /// The pages of each buffer are mapped before its use and unmapped after it.
    Strict,
    /// Mapped pages stay in a cache.
    Cached(IoTlb),
}

/// Octets of one entry of a queue that are translated. No more of them are accessed.
const REACH: usize = 2 * LARGEST_FRAME;
/// Entries of a cache that one page may be in.
const WAYS: usize = 4;
/// Entries of the smallest and of the largest cache.
pub const ENTRIES: std::ops::RangeInclusive<usize> = WAYS..=1024;

/// Counters of a translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Translations {
    /// Mappings of buffers or pages that were made.
    pub mapped: u64,
    /// Pages found in the cache.
    pub cache_hits: u64,
    /// Pages not found there.
    pub cache_misses: u64,
    /// Octets copied once more.
    pub bounced_octets: u64,
}

/// A cache of mapped pages, of one guest or common to several: a page is of one memory (domain).
/// Four entries form a set; the least recently used one of the page's set makes room.
#[derive(Clone, Debug)]
pub struct IoTlb(Arc<Mutex<Cache>>);

/// What the cache holds, and which entries are in use.
#[derive(Debug)]
struct Cache {
    entries: Vec<Entry>,
    /// Number of the present entry of a queue; cache entries of that number are in use.
    turn: u64,
}

#[derive(Debug, Default)]
struct Entry {
    page: Option<(Page, Mapping)>,
    /// Number of the entry of a queue that used it last.
    used: u64,
}

/// A page of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    domain: u64,
    region: usize,
    /// Its number in the region's file.
    number: u64,
}

impl IoTlb {
    /// An empty cache of so many pages, a multiple of four in [`ENTRIES`]; None for other numbers.
    #[must_use]
    pub fn new(entries: usize) -> Option<Self> {
        let fits = ENTRIES.contains(&entries) && entries % WAYS == 0;
        let cache = || Cache { entries: (0..entries).map(|_| Entry::default()).collect(), turn: 1 };
        fits.then(|| Self(Arc::new(Mutex::new(cache()))))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().expect("no holder panics")
    }
}

impl Cache {
    /// The entry of a page, which `map` maps if it is not there, and whether it was. None if the page
    /// cannot be mapped, or if all entries of its set are in use.
    fn find(&mut self, page: Page, map: impl FnOnce() -> Option<Mapping>) -> Option<(usize, bool)> {
        let sets = self.entries.len() / WAYS;
        let set = page.number.wrapping_add(page.domain).wrapping_add(page.region as u64) % sets as u64;
        let first = WAYS * usize::try_from(set).expect("less than the sets");
        let is_it = |entry: &Entry| entry.page.as_ref().is_some_and(|(known, _)| *known == page);
        let turn = self.turn;
        let set = &mut self.entries[first..first + WAYS];
        if let Some(at) = set.iter().position(is_it) {
            set[at].used = turn;
            return Some((first + at, true));
        }
        let (at, oldest) = set.iter_mut().enumerate().min_by_key(|(_, entry)| entry.used)?;
        if oldest.used == turn {
            return None;
        }
        *oldest = Entry { page: Some((page, map()?)), used: turn };
        Some((first + at, false))
    }

    fn is_lost(&self, at: usize) -> bool {
        self.entries[at].page.as_ref().is_some_and(|(_, mapping)| mapping.is_lost())
    }

    fn mapping(&self, at: usize) -> &Mapping {
        let (_, mapping) = self.entries[at].page.as_ref().expect("it is in use");
        mapping
    }
}

/// Memory by way of which octets are copied.
#[derive(Debug)]
pub struct Staging {
    octets: RefCell<Box<[u8]>>,
    copied: Cell<u64>,
}

impl Staging {
    /// Fills `to` with what `fetch` reads from an offset on.
    pub fn read(&self, to: &mut [u8], mut fetch: impl FnMut(usize, &mut [u8])) {
        let mut octets = self.octets.borrow_mut();
        self.copied.set(self.copied.get() + to.len() as u64);
        let most = octets.len();
        for (number, part) in to.chunks_mut(most).enumerate() {
            fetch(number * most, &mut octets[..part.len()]);
            part.copy_from_slice(&octets[..part.len()]);
        }
    }

    /// Hands `from` to `store`, which writes from an offset on.
    pub fn write(&self, from: &[u8], mut store: impl FnMut(usize, &[u8])) {
        let mut octets = self.octets.borrow_mut();
        self.copied.set(self.copied.get() + from.len() as u64);
        let most = octets.len();
        for (number, part) in from.chunks(most).enumerate() {
            octets[..part.len()].copy_from_slice(part);
            store(number * most, &octets[..part.len()]);
        }
    }
}

/// A mapping of the translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Made for the present entry of a queue.
    Own(usize),
    /// An entry of the cache.
    Cached(usize),
}

/// The translation of one guest's memory.
#[derive(Debug)]
pub(super) struct Translator {
    translation: Translation,
    page: usize,
    /// Number of the memory: another one each time that it is mapped.
    domain: u64,
    /// Mappings for the present entry of a queue, and the entries of the cache that it uses.
    own: Vec<Mapping>,
    cached: Vec<usize>,
    /// Octets of the present entry that may still be translated.
    reach: usize,
    staging: Option<Staging>,
    lost: bool,
    counts: Translations,
}

impl Translator {
    pub fn new(translation: Translation) -> Self {
        let octets = || RefCell::new(vec![0; page_size()].into_boxed_slice());
        let staging = matches!(translation, Translation::Bounce);
        Self {
            translation,
            page: page_size(),
            domain: next_domain(),
            own: Vec::new(),
            cached: Vec::new(),
            reach: REACH,
            staging: staging.then(|| Staging { octets: octets(), copied: Cell::new(0) }),
            lost: false,
            counts: Translations::default(),
        }
    }

    /// Whether it maps parts of the memory's files.
    pub fn needs_files(&self) -> bool {
        matches!(self.translation, Translation::Strict | Translation::Cached(_))
    }

    pub fn staging(&self) -> Option<&Staging> {
        self.staging.as_ref()
    }

    pub fn counts(&self) -> Translations {
        let bounced_octets = self.staging.as_ref().map_or(0, |staging| staging.copied.get());
        Translations { bounced_octets, ..self.counts }
    }

    /// Maps `octets` octets at an offset of a region's file. Returns the mapping, the offset in it,
    /// and how many of the octets it has. None if the mapping of the region serves: without
    /// translation, beyond what is accessed, or if there are too many mappings.
    pub fn map(
        &mut self,
        region: usize,
        file: &OwnedFd,
        offset: u64,
        octets: usize,
    ) -> Option<(Slot, usize, usize)> {
        if self.reach == 0 {
            return None;
        }
        let skip = usize::try_from(offset % self.page as u64).expect("less than a page");
        let start = offset - skip as u64;
        let (slot, octets) = match &self.translation {
            Translation::Direct | Translation::Bounce => return None,
            Translation::Strict => {
                let octets = octets.min(self.reach);
                (self.map_own(file, start, (skip + octets).next_multiple_of(self.page))?, octets)
            }
            Translation::Cached(tlb) => {
                let page = Page { domain: self.domain, region, number: start / self.page as u64 };
                let length = self.page;
                let found = tlb.cache().find(page, || Mapping::new(file, start, length).ok());
                let slot = match found {
                    Some((entry, hit)) => {
                        self.counts.cache_hits += u64::from(hit);
                        self.counts.cache_misses += u64::from(!hit);
                        self.counts.mapped += u64::from(!hit);
                        self.cached.push(entry);
                        Slot::Cached(entry)
                    }
                    // All entries that it may be in are in use by this very frame.
                    None => {
                        self.counts.cache_misses += 1;
                        self.map_own(file, start, length)?
                    }
                };
                (slot, octets.min(length - skip))
            }
        };
        self.reach -= octets.min(self.reach);
        Some((slot, skip, octets))
    }

    fn map_own(&mut self, file: &OwnedFd, start: u64, octets: usize) -> Option<Slot> {
        let mapping = Mapping::new(file, start, octets).ok()?;
        self.counts.mapped += 1;
        self.own.push(mapping);
        Some(Slot::Own(self.own.len() - 1))
    }

    /// Ends the use of the mappings of the present entry.
    pub fn release(&mut self) {
        self.reach = REACH;
        self.lost |= self.own.iter().any(Mapping::is_lost);
        self.own.clear();
        if let (Translation::Cached(tlb), false) = (&self.translation, self.cached.is_empty()) {
            let mut cache = tlb.cache();
            self.lost |= self.cached.iter().any(|&entry| cache.is_lost(entry));
            cache.turn += 1;
            self.cached.clear();
        }
    }

    /// Removes all mappings of the memory, which is about to vanish.
    pub fn clear(&mut self) {
        self.release();
        if let Translation::Cached(tlb) = &self.translation {
            for entry in &mut tlb.cache().entries {
                if entry.page.as_ref().is_some_and(|(page, _)| page.domain == self.domain) {
                    *entry = Entry::default();
                }
            }
        }
        (self.domain, self.lost) = (next_domain(), false);
    }

    pub fn is_lost(&self) -> bool {
        self.lost
    }

    pub fn read(&self, slot: Slot, at: usize, to: &mut [u8]) {
        match (slot, &self.translation) {
            (Slot::Cached(entry), Translation::Cached(tlb)) => tlb.cache().mapping(entry).read(at, to),
            (Slot::Cached(number) | Slot::Own(number), _) => self.own[number].read(at, to),
        }
    }

    pub fn write(&self, slot: Slot, at: usize, from: &[u8]) {
        match (slot, &self.translation) {
            (Slot::Cached(entry), Translation::Cached(tlb)) => tlb.cache().mapping(entry).write(at, from),
            (Slot::Cached(number) | Slot::Own(number), _) => self.own[number].write(at, from),
        }
    }
}

impl Drop for Translator {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A number that no other memory has.
fn next_domain() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
