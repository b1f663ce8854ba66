//! One split virtqueue as the device sees it (virtio 1.2, section 2.7).
//!
//! The guest offers chains of buffers; the device takes them in order, uses them, and gives them back.
//! What the guest wrote is read once, checked, and only then believed. Nothing is allocated per chain.

use std::sync::atomic::{Ordering, fence};

use super::memory::{Area, Memory, Place};

/// Most entries of a queue: what any guest in use asks for, and a bound for the work on one frame.
pub const LARGEST: u16 = 4096;
/// Descriptors that are followed for one frame, at most.
const STEPS: usize = 2 * LARGEST as usize;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Octets of a descriptor, of an entry of the available ring and of the used ring, and what stands before.
const DESCRIPTOR: usize = 16;
const AVAILABLE: usize = 2;
const USED: usize = 8;
const RING: usize = 4;
const INDEX: usize = 2;
/// The flag by which either side asks not to be told.
const QUIET: u16 = 1;

/// What a guest may not do; its queue is not looked at any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// More chains than the queue has entries.
    #[error("it offers {0} chains in a queue of {1} entries")]
    Ahead(u16, u16),
    /// An entry that the table of descriptors does not have.
    #[error("it names descriptor {0} of {1}")]
    Descriptor(u16, u16),
    /// A chain without an end.
    #[error("a chain of descriptors has no end")]
    Endless,
    /// A table of descriptors that is none.
    #[error("an indirect table of {0} octets is none")]
    Indirect(u32),
    /// A buffer outside the memory.
    #[error("a buffer of {octets} octets at {address:#x} is outside its memory")]
    Outside {
        /// Where.
        address: u64,
        /// How long.
        octets: u32,
    },
    /// A buffer to be read where one to be written belongs, or the other way round.
    #[error("a buffer is for the other direction")]
    Direction,
    /// A chain to be filled that holds nothing.
    #[error("a chain to be filled has no room at all")]
    Empty,
}

/// Who writes into the buffers of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The guest: the queue of frames that it sends.
    Guest,
    /// The device: the queue of frames that it receives.
    Device,
}

/// Buffers of one or more chains, in order.
#[derive(Debug, Default)]
pub struct Buffers {
    places: Vec<Place>,
    /// For each chain its first descriptor, and the octets of all chains up to its end.
    chains: Vec<(u16, usize)>,
    steps: usize,
}

impl Buffers {
    /// Octets that they hold together.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.chains.last().map_or(0, |&(_, end)| end)
    }

    /// Chains that they belong to.
    #[must_use]
    pub fn chains(&self) -> usize {
        self.chains.len()
    }

    /// Copies from octet `from` of the buffers on; all of `to`, or as much as there is.
    pub fn read(&self, memory: &Memory, from: usize, mut to: &mut [u8]) {
        self.visit(from, to.len(), |place, skip, octets| {
            let (part, rest) = std::mem::take(&mut to).split_at_mut(octets);
            memory.read(place, skip, part);
            to = rest;
        });
    }

    /// Copies to octet `at` of the buffers on; all that is given, or as much as there is room.
    pub fn write(&self, memory: &Memory, at: usize, mut from: &[u8]) {
        self.visit(at, from.len(), |place, skip, octets| {
            let (part, rest) = from.split_at(octets);
            memory.write(place, skip, part);
            from = rest;
        });
    }

    /// Calls `act` with the pieces of `octets` octets from `from` on: place, octets to skip there, length.
    fn visit(&self, mut from: usize, mut octets: usize, mut act: impl FnMut(Place, usize, usize)) {
        for &place in &self.places {
            if octets == 0 {
                break;
            }
            if from >= place.octets {
                from -= place.octets;
                continue;
            }
            let here = octets.min(place.octets - from);
            act(place, from, here);
            (from, octets) = (0, octets - here);
        }
    }

    fn clear(&mut self) {
        self.places.clear();
        self.chains.clear();
        self.steps = 0;
    }
}

/// A queue that is in use.
#[derive(Debug)]
pub struct Queue {
    size: u16,
    writer: Writer,
    descriptors: Area,
    available: Area,
    used: Area,
    /// Both sides say at which entry they want to be told.
    event_idx: bool,
    next_available: u16,
    next_used: u16,
    /// `next_used` when it was last considered whether to tell the guest.
    told: u16,
    /// The guest was asked not to tell.
    quiet: bool,
    buffers: Buffers,
}

/// Octets of the three parts of a queue with so many entries: descriptors, available, used; and their
/// alignment.
#[must_use]
pub const fn parts(size: u16) -> [(usize, usize); 3] {
    let size = size as usize;
    // Each ring ends with the word by which the other side says when it wants to be told.
    [(DESCRIPTOR * size, DESCRIPTOR), (RING + AVAILABLE * size + 2, 2), (RING + USED * size + 2, 4)]
}

impl Queue {
    /// A queue of `size` entries, a power of two, whose parts have the octets that [`parts`] says, from
    /// entry `base` on.
    #[must_use]
    pub fn new(size: u16, writer: Writer, parts: [Area; 3], base: u16, event_idx: bool) -> Self {
        debug_assert!(size.is_power_of_two() && size <= LARGEST);
        let [descriptors, available, used] = parts;
        // Where the device goes on giving back is known to the guest.
        let next_used = used.load(INDEX);
        Self {
            size,
            writer,
            descriptors,
            available,
            used,
            event_idx,
            next_available: base,
            next_used,
            told: next_used,
            quiet: false,
            buffers: Buffers::default(),
        }
    }

    /// The next entry to be taken.
    #[must_use]
    pub fn next_available(&self) -> u16 {
        self.next_available
    }

    /// Chains that the guest offers now.
    ///
    /// # Errors
    /// [`Broken::Ahead`].
    pub fn offered(&self) -> Result<u16, Broken> {
        let offered = self.available.load(INDEX).wrapping_sub(self.next_available);
        if offered > self.size { Err(Broken::Ahead(offered, self.size)) } else { Ok(offered) }
    }

    /// The buffers of the next chain; none if nothing is offered. [`Queue::give_back`] ends this.
    ///
    /// # Errors
    /// What the guest may not do.
    pub fn take(&mut self, memory: &Memory) -> Result<Option<&Buffers>, Broken> {
        self.buffers.clear();
        if self.offered()? == 0 {
            return Ok(None);
        }
        self.ignore();
        self.follow(memory, 0)?;
        Ok(Some(&self.buffers))
    }

    /// The buffers of the next chains, at most `most`, that together hold so many octets; none if there
    /// are too few. [`Queue::give_back`] ends this.
    ///
    /// # Errors
    /// What the guest may not do.
    pub fn room(&mut self, memory: &Memory, octets: usize, most: u16) -> Result<Option<&Buffers>, Broken> {
        self.buffers.clear();
        let offered = self.offered()?;
        for number in 0..offered.min(most) {
            let before = self.buffers.octets();
            self.follow(memory, number)?;
            if self.buffers.octets() == before {
                return Err(Broken::Empty);
            }
            if self.buffers.octets() >= octets {
                return Ok(Some(&self.buffers));
            }
        }
        Ok(None)
    }

    /// Gives the chains that were last found back to the guest, the first `octets` octets written.
    pub fn give_back(&mut self, octets: usize) {
        let mut from = 0;
        for &(head, end) in &self.buffers.chains {
            let written = octets.min(end) - octets.min(from);
            from = end;
            let at = RING + USED * usize::from(self.next_used % self.size);
            let written = u32::try_from(written).unwrap_or(u32::MAX);
            self.used.write(at, &u32::from(head).to_le_bytes());
            self.used.write(at + 4, &written.to_le_bytes());
            self.next_used = self.next_used.wrapping_add(1);
            self.next_available = self.next_available.wrapping_add(1);
        }
        self.buffers.clear();
        self.used.store(INDEX, self.next_used);
    }

    /// True if something was given back since the last call of [`Queue::tells`].
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.told != self.next_used
    }

    /// Whether the guest wants to be told of what was given back since the last call.
    pub fn tells(&mut self) -> bool {
        let (old, new) = (self.told, self.next_used);
        self.told = new;
        // What was given back must be seen before the guest's wish is read.
        fence(Ordering::SeqCst);
        if self.event_idx {
            let wish = self.available.load(RING + AVAILABLE * usize::from(self.size));
            new.wrapping_sub(wish).wrapping_sub(1) < new.wrapping_sub(old)
        } else {
            self.available.load(0) & QUIET == 0
        }
    }

    /// What the guest changes when it looks at what was given back: its wish, and what it offers.
    #[must_use]
    pub fn sign(&self) -> (u16, u16) {
        let wish = self.available.load(RING + AVAILABLE * usize::from(self.size));
        (wish, self.available.load(INDEX))
    }

    /// Asks the guest to tell of what it offers next. True if there is something already.
    ///
    /// # Errors
    /// [`Broken::Ahead`].
    pub fn listen(&mut self) -> Result<bool, Broken> {
        if self.event_idx {
            self.used.store(RING + USED * usize::from(self.size), self.next_available);
        } else {
            self.quiet = false;
            self.used.store(0, 0);
        }
        // The wish must be seen before it is looked what is there.
        fence(Ordering::SeqCst);
        Ok(self.offered()? > 0)
    }

    /// Asks the guest to tell of what it offers beyond what is there. True if there is more already.
    pub fn listen_beyond(&mut self) -> bool {
        let there = self.available.load(INDEX);
        if self.event_idx {
            self.used.store(RING + USED * usize::from(self.size), there);
        } else {
            self.quiet = false;
            self.used.store(0, 0);
        }
        fence(Ordering::SeqCst);
        self.available.load(INDEX) != there
    }

    /// Asks the guest not to tell. With events by index it tells once, and then no more.
    pub fn ignore(&mut self) {
        if !self.event_idx && !self.quiet {
            self.quiet = true;
            self.used.store(0, QUIET);
        }
    }

    /// Adds the buffers of the chain `ahead` of the next one.
    fn follow(&mut self, memory: &Memory, ahead: u16) -> Result<(), Broken> {
        let entry = usize::from(self.next_available.wrapping_add(ahead) % self.size);
        let head = self.available.load(RING + AVAILABLE * entry);
        let mut end = self.buffers.octets();
        let mut next = Some(head);
        while let Some(number) = next {
            let descriptor = self.direct(number)?;
            self.step()?;
            if descriptor.flags & INDIRECT == 0 {
                end += self.add(memory, &descriptor)?;
            } else {
                end += self.indirect(memory, &descriptor)?;
            }
            next = (descriptor.flags & NEXT != 0).then_some(descriptor.next);
        }
        self.buffers.chains.push((head, end));
        Ok(())
    }

    fn direct(&self, number: u16) -> Result<Descriptor, Broken> {
        if number >= self.size {
            return Err(Broken::Descriptor(number, self.size));
        }
        let mut octets = [0; DESCRIPTOR];
        self.descriptors.read(DESCRIPTOR * usize::from(number), &mut octets);
        Ok(Descriptor::read(octets))
    }

    /// Adds the buffers of a table elsewhere.
    fn indirect(&mut self, memory: &Memory, table: &Descriptor) -> Result<usize, Broken> {
        let bad = Broken::Indirect(table.octets);
        let octets = usize::try_from(table.octets).map_err(|_| bad)?;
        let count = octets / DESCRIPTOR;
        if octets % DESCRIPTOR != 0 || count == 0 || count > usize::from(u16::MAX) {
            return Err(bad);
        }
        let place = memory.find(table.address, octets).filter(|place| place.octets == octets);
        let outside = Broken::Outside { address: table.address, octets: table.octets };
        let place = place.ok_or(outside)?;
        let mut added = 0;
        let mut next = Some(0u16);
        while let Some(number) = next {
            let number = usize::from(number);
            if number >= count {
                return Err(bad);
            }
            let mut octets = [0; DESCRIPTOR];
            memory.read(place, DESCRIPTOR * number, &mut octets);
            let descriptor = Descriptor::read(octets);
            self.step()?;
            if descriptor.flags & INDIRECT != 0 {
                return Err(bad);
            }
            added += self.add(memory, &descriptor)?;
            next = (descriptor.flags & NEXT != 0).then_some(descriptor.next);
        }
        Ok(added)
    }

    fn step(&mut self) -> Result<(), Broken> {
        self.buffers.steps += 1;
        if self.buffers.steps > STEPS { Err(Broken::Endless) } else { Ok(()) }
    }

    /// Adds one buffer; its octets.
    fn add(&mut self, memory: &Memory, descriptor: &Descriptor) -> Result<usize, Broken> {
        if (descriptor.flags & WRITE != 0) != (self.writer == Writer::Device) {
            return Err(Broken::Direction);
        }
        let outside = Broken::Outside { address: descriptor.address, octets: descriptor.octets };
        let octets = usize::try_from(descriptor.octets).map_err(|_| outside)?;
        let (mut address, mut rest) = (descriptor.address, octets);
        // A buffer may lie across two regions that meet in the guest.
        while rest > 0 {
            let place = memory.find(address, rest).ok_or(outside)?;
            address += place.octets as u64;
            rest -= place.octets;
            self.buffers.places.push(place);
        }
        Ok(octets)
    }
}

#[derive(Clone, Copy)]
struct Descriptor {
    address: u64,
    octets: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn read(from: [u8; DESCRIPTOR]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = from;
        Self {
            address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            octets: u32::from_le_bytes([i, j, k, l]),
            flags: u16::from_le_bytes([m, n]),
            next: u16::from_le_bytes([o, p]),
        }
    }
}
