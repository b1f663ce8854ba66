//! Frames and the pool of buffers that holds their octets.
//!
//! The data path allocates nothing per frame: octets are in the buffers of a [`Pool`], and a
//! [`Frame`] is a small value that refers to one of them. A frame may be a *super-frame*: one
//! buffer that represents many frames of a TCP or UDP flow (segmentation offload). Links charge a
//! super-frame as its single frames. Where these are treated differently, it is narrowed to parts
//! (`first`, `count`) that share the buffer: splitting copies no octets.

pub(crate) mod packet;
pub mod segment;

use crate::switch::area::Label;
use crate::time::Instant;

/// Octets of an Ethernet header: two addresses and a type.
pub const ETHERNET_HEADER: u32 = 14;

/// Identifier of one buffer of a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(u32);

/// Protocol of a super-frame's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4 or IPv6, cut into datagrams (UDP segmentation offload).
    Udp,
}

/// Parameters for cutting a super-frame into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// The protocol.
    pub protocol: Protocol,
    /// Octets of headers, Ethernet to transport, that every segment repeats.
    pub header: u16,
    /// Octets of transport payload in each segment; the last one may be shorter.
    pub size: u16,
}

/// A transport checksum left to the device (checksum offload): the sum of the octets from `start`
/// to the end of the frame belongs at `start + offset`, which holds the sum of the pseudo-header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Where the sum starts, in octets from the start of the frame.
    pub start: u16,
    /// Where the checksum is stored, in octets from `start`.
    pub offset: u16,
}

impl Checksum {
    /// Offset of the checksum in the header of TCP, which identifies it (RFC 9293, section 3.1).
    pub const TCP: u16 = 16;
    /// Offset of the checksum in the header of UDP, which identifies it (RFC 768).
    pub const UDP: u16 = 6;
}

/// One frame, or several consecutive segments of one super-frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The buffer with the octets, Ethernet header first, frame check sequence not included.
    pub buffer: BufferId,
    /// Octets in the buffer: of the whole super-frame, not of this part.
    pub length: u32,
    /// First segment of this part.
    pub first: u16,
    /// Number of segments of this part, at least 1.
    pub count: u16,
    /// Present if the buffer holds a super-frame.
    pub segmentation: Option<Segmentation>,
    /// Present if the transport checksum is still to be computed.
    pub checksum: Option<Checksum>,
    /// The port through which it entered the engine.
    pub origin: u32,
    /// When it entered the engine.
    pub entered: Instant,
    /// Present between switches that use shortest paths.
    pub label: Option<Label>,
}

/// The sizes of the frames in a run of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Octets of each full segment; of the tail if there is no full segment.
    pub full: u32,
    /// Number of full segments before the tail.
    pub fulls: u32,
    /// Octets of the last frame of the super-frame, if the run includes it; else 0.
    pub tail: u32,
}

impl Sizes {
    /// Sum of `charge` over all frames of the run; `charge` takes the octets of one frame.
    #[must_use]
    pub fn sum(&self, charge: impl Fn(u32) -> u64) -> u64 {
        let fulls = if self.fulls > 0 { u64::from(self.fulls) * charge(self.full) } else { 0 };
        fulls + if self.tail > 0 { charge(self.tail) } else { 0 }
    }

    /// Octets of the largest frame of the run.
    #[must_use]
    pub fn largest(&self) -> u32 {
        if self.fulls > 0 { self.full } else { self.tail }
    }
}

impl Frame {
    /// Creates a frame to be offered: `length` octets in `buffer`. The engine sets the other fields
    /// when the frame is offered.
    #[must_use]
    pub fn new(
        buffer: BufferId,
        length: u32,
        segmentation: Option<Segmentation>,
        checksum: Option<Checksum>,
    ) -> Self {
        let (first, count, origin, entered, label) = (0, 1, 0, Instant::ZERO, None);
        Self { buffer, length, first, count, segmentation, checksum, origin, entered, label }
    }

    /// Number of segments of the whole super-frame; 1 for an ordinary frame.
    #[must_use]
    pub fn segments(&self) -> u32 {
        match self.segmentation {
            Some(cut) if cut.size > 0 => {
                self.length.saturating_sub(u32::from(cut.header)).div_ceil(u32::from(cut.size)).max(1)
            }
            _ => 1,
        }
    }

    /// True if its segments are those after the segments of `other`.
    #[must_use]
    pub fn follows(&self, other: &Self) -> bool {
        self.buffer == other.buffer && self.first == other.first + other.count && self.label == other.label
    }

    /// True if it represents all of its buffer, not a part.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.first == 0 && u32::from(self.count) == self.segments()
    }

    /// Octets of the given segment (counted from the start of the super-frame), including headers,
    /// without the frame check sequence.
    #[must_use]
    pub fn segment_octets(&self, segment: u16) -> u32 {
        match self.segmentation {
            None => self.length,
            Some(cut) => {
                let header = u32::from(cut.header);
                let size = u32::from(cut.size);
                let payload = self.length.saturating_sub(header);
                header + payload.saturating_sub(u32::from(segment) * size).min(size)
            }
        }
    }

    /// The sizes of all frames that this value represents.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let Some(cut) = self.segmentation else {
            return Sizes { full: self.length, fulls: 0, tail: self.length };
        };
        let full = u32::from(cut.header) + u32::from(cut.size);
        let end = u32::from(self.first) + u32::from(self.count);
        // The run includes the tail if its full segments would reach the end of the buffer.
        if u32::from(cut.header) + end * u32::from(cut.size) >= self.length {
            let tail = self.segment_octets(self.first + (self.count - 1));
            Sizes { full, fulls: u32::from(self.count) - 1, tail }
        } else {
            Sizes { full, fulls: u32::from(self.count), tail: 0 }
        }
    }

    /// Total octets of all frames that this value represents.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> u64 {
        let Some(cut) = self.segmentation else { return self.length.into() };
        let (header, size) = (u64::from(cut.header), u64::from(cut.size));
        let payload = u64::from(self.length).saturating_sub(header);
        let (start, end) = (u64::from(self.first), u64::from(self.first) + u64::from(self.count));
        u64::from(self.count) * header + payload.min(end * size).saturating_sub(start * size)
    }

    /// Returns the part of this frame with the given segments.
    #[must_use]
    pub fn part(&self, first: u16, count: u16) -> Self {
        debug_assert!(first >= self.first && first + count <= self.first + self.count && count > 0);
        Self { first, count, ..*self }
    }
}

struct Slot {
    octets: Box<[u8]>,
    users: u32,
    class: u8,
}

/// Buffer size of each class in octets: an ordinary frame, a jumbo frame, a super-frame.
pub const CLASSES: [usize; 3] = [2_048, 9_728, 65_536 + 2_048];

/// Content of a reserved buffer. Not zero: the allocator could answer with memory that the kernel
/// only provides when it is written.
const UNUSED: u8 = 0xa5;

/// Index of the smallest class for frames of `octets`.
fn class_of(octets: usize) -> usize {
    CLASSES.iter().position(|&size| octets <= size).expect("frame fits a buffer")
}

/// A pool of reference-counted buffers, which are recycled.
#[derive(Default)]
pub struct Pool {
    slots: Vec<Slot>,
    free: [Vec<u32>; CLASSES.len()],
    in_use: usize,
}

impl Pool {
    /// Takes a buffer of at least `octets`, with a reference count of 1. Its content is undefined.
    ///
    /// # Panics
    /// If `octets` exceeds the largest class.
    pub fn take(&mut self, octets: usize) -> BufferId {
        let class = class_of(octets);
        self.in_use += 1;
        let index = self.free[class].pop().unwrap_or_else(|| self.allocate(class));
        self.slots[index as usize].users = 1;
        BufferId(index)
    }

    /// Allocates free buffers until there are `count` for frames of `octets`. Their memory is
    /// written once, so that neither the allocator nor the kernel is at work when they are taken.
    ///
    /// # Panics
    /// If `octets` exceeds the largest class.
    pub fn reserve(&mut self, octets: usize, count: usize) {
        let class = class_of(octets);
        while self.free[class].len() < count {
            let index = self.allocate(class);
            self.slots[index as usize].octets.fill(UNUSED);
            self.free[class].push(index);
        }
    }

    /// Allocates a buffer without users.
    fn allocate(&mut self, class: usize) -> u32 {
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 buffers");
        let octets = vec![0; CLASSES[class]].into_boxed_slice();
        #[allow(clippy::cast_possible_truncation)] // three classes
        self.slots.push(Slot { octets, users: 0, class: class as u8 });
        index
    }

    /// The octets of a buffer, up to its capacity.
    #[must_use]
    pub fn octets(&self, buffer: BufferId) -> &[u8] {
        &self.slots[buffer.0 as usize].octets
    }

    /// The octets of a buffer, writable.
    pub fn octets_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        &mut self.slots[buffer.0 as usize].octets
    }

    /// The octets of the source buffer, and those of the target buffer, writable.
    ///
    /// # Panics
    /// If both are the same buffer.
    pub(crate) fn pair(&mut self, source: BufferId, target: BufferId) -> (&[u8], &mut [u8]) {
        assert_ne!(source, target, "two buffers");
        let (source, target) = (source.0 as usize, target.0 as usize);
        let (low, high) = self.slots.split_at_mut(source.max(target));
        if source < target {
            (&low[source].octets, &mut high[0].octets)
        } else {
            (&high[0].octets, &mut low[target].octets)
        }
    }

    /// Increments the reference count of a buffer.
    pub fn share(&mut self, buffer: BufferId) {
        self.slots[buffer.0 as usize].users += 1;
    }

    /// Reference count of a buffer.
    #[must_use]
    pub fn users(&self, buffer: BufferId) -> u32 {
        self.slots[buffer.0 as usize].users
    }

    /// Decrements the reference count of a buffer; at 0 the buffer is free.
    pub fn release(&mut self, buffer: BufferId) {
        let slot = &mut self.slots[buffer.0 as usize];
        slot.users = slot.users.checked_sub(1).expect("a buffer is released once per user");
        if slot.users == 0 {
            self.in_use -= 1;
            self.free[slot.class as usize].push(buffer.0);
        }
    }

    /// Number of buffers in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_and_sizes_of_every_part_are_those_of_its_segments() {
        for (length, segments) in [(67, 1), (1_066, 1), (1_067, 2), (3_066, 3), (3_166, 4)] {
            let cut = Segmentation { protocol: Protocol::Tcp4, header: 66, size: 1_000 };
            let whole = Frame { count: segments, ..Frame::new(BufferId(0), length, Some(cut), None) };
            assert!(whole.is_whole());
            for first in 0..segments {
                for count in 1..=segments - first {
                    let part = whole.part(first, count);
                    let sum: u32 = (first..first + count).map(|segment| whole.segment_octets(segment)).sum();
                    assert_eq!(part.octets(), u64::from(sum), "{part:?}");
                    assert_eq!(part.sizes().sum(u64::from), u64::from(sum), "{part:?}");
                }
            }
        }
        assert_eq!(Frame::new(BufferId(0), 60, None, None).octets(), 60);
    }

    #[test]
    fn reserved_buffers_are_taken_before_new_ones() {
        let mut pool = Pool::default();
        pool.reserve(1_500, 3);
        pool.reserve(60, 2);
        assert_eq!((pool.slots.len(), pool.in_use()), (3, 0), "one class");
        let taken: Vec<BufferId> = (0..4).map(|_| pool.take(1_500)).collect();
        assert_eq!((pool.slots.len(), pool.in_use()), (4, 4), "the fourth is new");
        taken.into_iter().for_each(|buffer| pool.release(buffer));
        pool.reserve(9_000, 1);
        assert!(pool.take(9_000) == BufferId(4), "a class of its own");
    }
}
