//! Shared memory of a guest, with every address checked.
//!
//! The guest may change any octet at any time from other processors. Data are therefore copied, or
//! read and written as whole words, and no reference to them is ever created. Addresses given by
//! the guest are resolved by [`Memory::find`], which checks the bounds.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use rustix::fs::fstat;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::param::page_size;

use super::fault::Watch;
use super::message::RegionSpec;
use super::translation::{Slot, Translation, Translations, Translator};

/// Why a guest's memory cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The number of files differs from the number of regions.
    #[error("{regions} regions of memory came with {files} descriptors")]
    Files {
        /// Regions in the message.
        regions: usize,
        /// Descriptors beside it.
        files: usize,
    },
    /// An empty region, or one that exceeds its address space.
    #[error("a region of {0:#x} octets is none")]
    Bounds(u64),
    /// Not a file in memory, or a file shorter than its region.
    #[error("the file of a region of memory {0}")]
    File(&'static str),
    /// Too many guests to watch.
    #[error("there are too many regions of guests' memory")]
    Many,
    /// The kernel refused.
    #[error("a region of memory cannot be mapped: {0}")]
    Map(#[source] io::Error),
}

/// A mapped range of one file.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    octets: usize,
    watch: Option<Watch>,
}

impl Mapping {
    /// Maps a range of a file that begins at a page.
    pub fn new(file: &OwnedFd, at: u64, octets: usize) -> Result<Self, MemoryError> {
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes it.
        let start = unsafe { mmap(std::ptr::null_mut(), octets, both, MapFlags::SHARED, file, at) };
        let start = start.map_err(|error| MemoryError::Map(error.into()))?;
        let start = NonNull::new(start.cast()).ok_or(MemoryError::Bounds(octets as u64))?;
        let mut mapping = Self { start, octets, watch: None };
        mapping.watch = Some(Watch::over(start.as_ptr() as usize, octets).ok_or(MemoryError::Many)?);
        Ok(mapping)
    }

    /// True once a part of it was inaccessible.
    pub fn is_lost(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::is_lost)
    }

    fn pointer(&self, at: usize, octets: usize) -> *mut u8 {
        assert!(at <= self.octets && octets <= self.octets - at, "within the mapping");
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// Copies the octets from offset `at` on.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        let from = self.pointer(at, to.len());
        // SAFETY: both hold that many octets and do not overlap; whatever the guest writes
        // meanwhile, octets are copied.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
    }

    /// Copies octets to offset `at`.
    pub fn write(&self, at: usize, from: &[u8]) {
        let to = self.pointer(at, from.len());
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    }
}

// SAFETY: the mapping belongs to this value alone, and all access goes by copies and atomic words.
unsafe impl Send for Mapping {}
// SAFETY: likewise; others write there at the same time anyway, being other processes.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // First, because the address range may be reused at once.
        self.watch = None;
        // SAFETY: made by mmap with this length, and no reference to it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.octets) };
    }
}

/// A contiguous range of a guest's memory that stays mapped until it is dropped.
#[derive(Clone, Debug)]
pub struct Area {
    mapping: Arc<Mapping>,
    offset: usize,
    octets: usize,
}

impl Area {
    /// The sub-range that begins at `at` and is `octets` long.
    fn part(&self, at: usize, octets: usize) -> Option<Self> {
        let end = at.checked_add(octets)?;
        (end <= self.octets).then(|| Self {
            mapping: Arc::clone(&self.mapping),
            offset: self.offset + at,
            octets,
        })
    }

    /// True if its address is aligned.
    fn is_aligned(&self, to: usize) -> bool {
        (self.mapping.start.as_ptr() as usize + self.offset) % to == 0
    }

    /// Offset in the mapping of `octets` octets at `at`.
    fn within(&self, at: usize, octets: usize) -> usize {
        assert!(at <= self.octets && octets <= self.octets - at, "within the area");
        self.offset + at
    }

    /// Copies the octets from offset `at` on.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        self.mapping.read(self.within(at, to.len()), to);
    }

    /// Copies octets to offset `at`.
    pub fn write(&self, at: usize, from: &[u8]) {
        self.mapping.write(self.within(at, from.len()), from);
    }

    /// The 16-bit word at `at`, little-endian, with acquire ordering: earlier writes
    /// of the guest are visible.
    #[must_use]
    pub fn load(&self, at: usize) -> u16 {
        u16::from_le(self.word(at).load(Ordering::Acquire))
    }

    /// Stores the word at `at` with release ordering: earlier writes are visible to a reader of the
    /// word.
    pub fn store(&self, at: usize, value: u16) {
        self.word(at).store(value.to_le(), Ordering::Release);
    }

    fn word(&self, at: usize) -> &AtomicU16 {
        let pointer = self.mapping.pointer(self.within(at, 2), 2);
        assert!((pointer as usize) % 2 == 0, "words are aligned");
        // SAFETY: two aligned octets of memory that stays mapped, accessed as a word only.
        unsafe { AtomicU16::from_ptr(pointer.cast()) }
    }
}

/// One region: its addresses in the guest and in the front end.
#[derive(Debug)]
struct Region {
    guest: u64,
    user: u64,
    area: Area,
    /// Its file, if buffers in it are mapped, and its offset there.
    file: Option<OwnedFd>,
    offset: u64,
}

/// A valid address range in a guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    whose: Mapped,
    at: usize,
    /// Number of the requested octets that lie in the same mapping.
    pub octets: usize,
}

/// The mapping in which a place lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mapped {
    /// That of its region.
    Region(usize),
    /// One of the translator's.
    Translated(Slot),
}

/// All of a guest's memory.
#[derive(Debug)]
pub struct Memory {
    regions: Vec<Region>,
    translator: Translator,
}

impl Memory {
    /// No memory. Addresses of buffers will be translated by `translation`.
    #[must_use]
    pub fn new(translation: Translation) -> Self {
        Self { regions: Vec::new(), translator: Translator::new(translation) }
    }

    /// Maps the regions from their files, in place of those that it had.
    ///
    /// # Errors
    /// If the regions are invalid, or the kernel refuses the mapping.
    pub fn map(&mut self, specs: &[RegionSpec], files: Vec<OwnedFd>) -> Result<(), MemoryError> {
        self.clear();
        if specs.len() != files.len() {
            return Err(MemoryError::Files { regions: specs.len(), files: files.len() });
        }
        let keep = self.translator.needs_files();
        let regions = specs.iter().zip(files).map(|(spec, file)| region(spec, file, keep));
        self.regions = regions.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Removes all regions.
    pub fn clear(&mut self) {
        self.translator.clear();
        self.regions.clear();
    }

    /// True if it has regions.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        !self.regions.is_empty()
    }

    /// Counters of the translation since the memory was created.
    #[must_use]
    pub fn translations(&self) -> Translations {
        self.translator.counts()
    }

    /// Resolves the guest address of a buffer, and makes it accessible until [`Memory::release`]: the
    /// requested octets up to the end of the mapping.
    pub fn translate(&mut self, address: u64, octets: usize) -> Option<Place> {
        let place = self.find(address, octets)?;
        let Mapped::Region(number) = place.whose else { return Some(place) };
        let region = &self.regions[number];
        let Some(file) = &region.file else { return Some(place) };
        let offset = region.offset + place.at as u64;
        Some(match self.translator.map(number, file, offset, place.octets) {
            Some((slot, at, octets)) => Place { whose: Mapped::Translated(slot), at, octets },
            None => place,
        })
    }

    /// Ends the access to the translated buffers.
    pub fn release(&mut self) {
        self.translator.release();
    }

    /// Resolves the guest address `address`: the requested octets up to the end of the region.
    #[must_use]
    pub fn find(&self, address: u64, octets: usize) -> Option<Place> {
        self.regions.iter().enumerate().find_map(|(region, known)| {
            let at = usize::try_from(address.checked_sub(known.guest)?).ok()?;
            let rest = known.area.octets.checked_sub(at).filter(|&rest| rest > 0)?;
            Some(Place { whose: Mapped::Region(region), at, octets: octets.min(rest) })
        })
    }

    /// Resolves an address of the front end, which must be aligned to `alignment`.
    #[must_use]
    pub fn area(&self, address: u64, octets: usize, alignment: usize) -> Option<Area> {
        self.regions.iter().find_map(|known| {
            let at = usize::try_from(address.checked_sub(known.user)?).ok()?;
            known.area.part(at, octets).filter(|area| area.is_aligned(alignment))
        })
    }

    /// True once a part of it was inaccessible: its file was truncated, or has no space.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.translator.is_lost() || self.regions.iter().any(|region| region.area.mapping.is_lost())
    }

    /// Copies octets from a place, from `skip` on.
    pub fn read(&self, place: Place, skip: usize, to: &mut [u8]) {
        let from = place.at + skip;
        match self.translator.staging() {
            None => self.fetch(place, from, to),
            Some(staging) => staging.read(to, |at, part| self.fetch(place, from + at, part)),
        }
    }

    /// Copies octets to a place, from `skip` on.
    pub fn write(&self, place: Place, skip: usize, from: &[u8]) {
        let to = place.at + skip;
        match self.translator.staging() {
            None => self.store(place, to, from),
            Some(staging) => staging.write(from, |at, part| self.store(place, to + at, part)),
        }
    }

    fn fetch(&self, place: Place, at: usize, to: &mut [u8]) {
        match place.whose {
            Mapped::Region(region) => self.regions[region].area.read(at, to),
            Mapped::Translated(slot) => self.translator.read(slot, at, to),
        }
    }

    fn store(&self, place: Place, at: usize, from: &[u8]) {
        match place.whose {
            Mapped::Region(region) => self.regions[region].area.write(at, from),
            Mapped::Translated(slot) => self.translator.write(slot, at, from),
        }
    }
}

fn region(spec: &RegionSpec, file: OwnedFd, keep: bool) -> Result<Region, MemoryError> {
    let bounds = || MemoryError::Bounds(spec.octets);
    let end = |start: u64| start.checked_add(spec.octets).ok_or_else(bounds);
    let (_, _, end) = (end(spec.guest)?, end(spec.user)?, end(spec.offset)?);
    if spec.octets == 0 {
        return Err(bounds());
    }
    // A memory access must not wait for a disk or a device.
    let stat = fstat(&file).ok().filter(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFREG);
    let stat = stat.ok_or(MemoryError::File("is not a regular file"))?;
    if u64::try_from(stat.st_size).unwrap_or(0) < end {
        return Err(MemoryError::File("is shorter than the region"));
    }
    // A mapping begins at a page boundary; the region may not.
    let page = page_size() as u64;
    let skip = spec.offset % page;
    let fits = |value: u64| usize::try_from(value).map_err(|_| bounds());
    let (skip, octets) = (fits(skip)?, fits(spec.octets)?);
    let mapped = skip.checked_add(octets).ok_or_else(bounds)?;
    let mapping = Arc::new(Mapping::new(&file, spec.offset - spec.offset % page, mapped)?);
    // Child processes do not need the mapping.
    // SAFETY: the mapping is new and has this length.
    let _ = unsafe { madvise(mapping.start.as_ptr().cast(), mapped, Advice::LinuxDontFork) };
    let area = Area { mapping, offset: skip, octets };
    let file = keep.then_some(file);
    Ok(Region { guest: spec.guest, user: spec.user, area, file, offset: spec.offset })
}
