//! One split virtqueue as the device sees it (virtio 1.2, section 2.7).
//!
//! The guest offers chains of buffers; the device takes them in order, uses them, and
//! returns them. Values written by the guest are read once and checked before use. There
//! is no allocation per chain.

use std::sync::atomic::{Ordering, fence};

use super::memory::{Area, Memory, Place};

/// Maximum number of entries: no common guest requests more; it bounds the work for one frame.
pub const LARGEST: u16 = 4096;
/// Maximum number of descriptors followed for one frame.
const STEPS: usize = 2 * LARGEST as usize;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Length in octets of a descriptor, of an entry of the available ring and of the used ring,
/// and of the ring's header.
const DESCRIPTOR: usize = 16;
const AVAILABLE: usize = 2;
const USED: usize = 8;
const RING: usize = 4;
const INDEX: usize = 2;
/// The flag by which either side suppresses notifications.
const QUIET: u16 = 1;

/// A violation of the queue's rules by the guest; the queue is not used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// More available chains than the queue has entries.
    #[error("it offers {0} chains in a queue of {1} entries")]
    Ahead(u16, u16),
    /// An index beyond the descriptor table.
    #[error("it names descriptor {0} of {1}")]
    Descriptor(u16, u16),
    /// A chain with a loop.
    #[error("a chain of descriptors has no end")]
    Endless,
    /// An invalid indirect table.
    #[error("an indirect table of {0} octets is none")]
    Indirect(u32),
    /// A buffer outside the guest's memory.
    #[error("a buffer of {octets} octets at {address:#x} is outside its memory")]
    Outside {
        /// Its address.
        address: u64,
        /// Its length.
        octets: u32,
    },
    /// A device-readable buffer in place of a device-writable one, or vice versa.
    #[error("a buffer is for the other direction")]
    Direction,
    /// A device-writable chain of length zero.
    #[error("a chain to be filled has no buffer")]
    Empty,
}

/// The side that writes to the buffers of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The guest: the queue on which it sends.
    Guest,
    /// The device: the queue from which the guest receives.
    Device,
}

/// Buffers of one or more chains, in order.
#[derive(Debug, Default)]
pub struct Buffers {
    places: Vec<Place>,
    /// For each chain its first descriptor, and the total octets up to its end.
    chains: Vec<(u16, usize)>,
    steps: usize,
}

impl Buffers {
    /// Total length in octets.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.chains.last().map_or(0, |&(_, end)| end)
    }

    /// Number of their chains.
    #[must_use]
    pub fn chains(&self) -> usize {
        self.chains.len()
    }

    /// Copies octets from offset `from` of the buffers to `to`, as many as there are.
    pub fn read(&self, memory: &Memory, from: usize, mut to: &mut [u8]) {
        self.visit(from, to.len(), |place, skip, octets| {
            let (part, rest) = std::mem::take(&mut to).split_at_mut(octets);
            memory.read(place, skip, part);
            to = rest;
        });
    }

    /// Copies octets to offset `at` of the buffers, as many as fit.
    pub fn write(&self, memory: &Memory, at: usize, mut from: &[u8]) {
        self.visit(at, from.len(), |place, skip, octets| {
            let (part, rest) = from.split_at(octets);
            memory.write(place, skip, part);
            from = rest;
        });
    }

    /// Calls `act` for the pieces of `octets` octets from `from` on: place, offset in it, length.
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

/// A started queue.
#[derive(Debug)]
pub struct Queue {
    size: u16,
    writer: Writer,
    descriptors: Area,
    available: Area,
    used: Area,
    /// `VIRTIO_F_EVENT_IDX`: both sides set the index at which they want a notification.
    event_idx: bool,
    next_available: u16,
    next_used: u16,
    /// `next_used` at the last decision about a notification.
    told: u16,
    /// The guest's notifications are suppressed.
    quiet: bool,
    buffers: Buffers,
}

/// Length in octets and alignment of the three parts of a queue with `size` entries: descriptor
/// table, available ring, used ring.
#[must_use]
pub const fn parts(size: u16) -> [(usize, usize); 3] {
    let size = size as usize;
    // Each ring ends with the index at which the other side wants a notification.
    [(DESCRIPTOR * size, DESCRIPTOR), (RING + AVAILABLE * size + 2, 2), (RING + USED * size + 2, 4)]
}

impl Queue {
    /// A queue of `size` entries, a power of two, starting at index `base`. The parts have the
    /// lengths returned by [`parts`].
    #[must_use]
    pub fn new(size: u16, writer: Writer, parts: [Area; 3], base: u16, event_idx: bool) -> Self {
        debug_assert!(size.is_power_of_two() && size <= LARGEST);
        let [descriptors, available, used] = parts;
        // The position in the used ring is continued from the guest's memory.
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

    /// Index of the next available entry.
    #[must_use]
    pub fn next_available(&self) -> u16 {
        self.next_available
    }

    /// Number of available chains.
    ///
    /// # Errors
    /// [`Broken::Ahead`].
    pub fn offered(&self) -> Result<u16, Broken> {
        let offered = self.available.load(INDEX).wrapping_sub(self.next_available);
        if offered > self.size { Err(Broken::Ahead(offered, self.size)) } else { Ok(offered) }
    }

    /// Takes the buffers of the next chain; None if no chain is available.
    /// [`Queue::give_back`] returns it.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn take(&mut self, memory: &mut Memory) -> Result<Option<&Buffers>, Broken> {
        self.buffers.clear();
        memory.release();
        if self.offered()? == 0 {
            return Ok(None);
        }
        self.ignore();
        self.follow(memory, 0)?;
        Ok(Some(&self.buffers))
    }

    /// Takes the buffers of the next chains, at most `most`, with a total of `octets` octets; None
    /// if there are too few. [`Queue::give_back`] returns them.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn take_buffers(
        &mut self,
        memory: &mut Memory,
        octets: usize,
        most: u16,
    ) -> Result<Option<&Buffers>, Broken> {
        self.buffers.clear();
        memory.release();
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

    /// Returns the chains that were last taken to the guest, with the first `octets` octets
    /// written. Their buffers are not accessed any more.
    pub fn give_back(&mut self, octets: usize, memory: &mut Memory) {
        memory.release();
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

    /// Number of entries.
    #[must_use]
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Number of chains that were returned since the last call of [`Queue::wants_notification`].
    #[must_use]
    pub fn returned(&self) -> u16 {
        self.next_used.wrapping_sub(self.told)
    }

    /// Whether the guest requests a notification of the chains returned since the last call.
    pub fn wants_notification(&mut self) -> bool {
        let (old, new) = (self.told, self.next_used);
        self.told = new;
        // The used index must be visible before the guest's event index is read.
        fence(Ordering::SeqCst);
        if self.event_idx {
            let wish = self.available.load(RING + AVAILABLE * usize::from(self.size));
            new.wrapping_sub(wish).wrapping_sub(1) < new.wrapping_sub(old)
        } else {
            self.available.load(0) & QUIET == 0
        }
    }

    /// Values that the guest changes when it processes returned chains: its event
    /// index and its available index.
    #[must_use]
    pub fn guest_indices(&self) -> (u16, u16) {
        let wish = self.available.load(RING + AVAILABLE * usize::from(self.size));
        (wish, self.available.load(INDEX))
    }

    /// Continues after chains that the guest has returned to itself ([`crate::virtual_time`]).
    pub fn resume(&mut self) {
        self.next_used = self.used.load(INDEX);
        (self.next_available, self.told) = (self.next_used, self.next_used);
    }

    /// Enables the guest's notification of available chains. Returns true if one is already
    /// available.
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
        // The event index must be visible before the available index is read.
        fence(Ordering::SeqCst);
        Ok(self.offered()? > 0)
    }

    /// Enables the guest's notification of chains beyond the first `seen` ones. Returns true if
    /// there are more already.
    pub fn listen_beyond(&mut self, seen: u16) -> bool {
        let there = self.next_available.wrapping_add(seen);
        if self.event_idx {
            self.used.store(RING + USED * usize::from(self.size), there);
        } else {
            self.quiet = false;
            self.used.store(0, 0);
        }
        fence(Ordering::SeqCst);
        self.available.load(INDEX) != there
    }

    /// Suppresses the guest's notifications. With event indices it notifies once, and then no more.
    pub fn ignore(&mut self) {
        if !self.event_idx && !self.quiet {
            self.quiet = true;
            self.used.store(0, QUIET);
        }
    }

    /// Appends the buffers of the chain at offset `ahead` from the next one.
    fn follow(&mut self, memory: &mut Memory, ahead: u16) -> Result<(), Broken> {
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

    /// Appends the buffers of an indirect table.
    fn indirect(&mut self, memory: &mut Memory, table: &Descriptor) -> Result<usize, Broken> {
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

    /// Appends one buffer; returns its length.
    fn add(&mut self, memory: &mut Memory, descriptor: &Descriptor) -> Result<usize, Broken> {
        if (descriptor.flags & WRITE != 0) != (self.writer == Writer::Device) {
            return Err(Broken::Direction);
        }
        let outside = Broken::Outside { address: descriptor.address, octets: descriptor.octets };
        let octets = usize::try_from(descriptor.octets).map_err(|_| outside)?;
        let (mut address, mut rest) = (descriptor.address, octets);
        // A buffer may cover two regions that are adjacent in the guest, or several mapped pages.
        while rest > 0 {
            let place = memory.translate(address, rest).ok_or(outside)?;
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
