//! A-MPDUs as data: their limits, their MPDUs, sequence numbers, and the reorder buffer of a receiver.
//!
//! Sources are with what the medium does with them, in `aggregate/`.

use std::collections::VecDeque;

use crate::frame::Frame;
use crate::medium::bss::cell::Course;
use crate::medium::phy::Rate;
use crate::time::Span;

pub(in crate::medium) use crate::medium::phy::ht::MOST_FRAMES;

/// Most octets of an A-MPDU.
pub(in crate::medium) const MOST_OCTETS: u32 = 65_535;
/// Longest PPDU of the mixed format.
pub(in crate::medium) const LONGEST: Span = Span::from_micros(5_484);
/// Octets of the delimiter before an MPDU.
pub(in crate::medium) const DELIMITER: u32 = 4;
/// Octets of a compressed block ack.
pub(in crate::medium) const BLOCK_ACK_OCTETS: u32 = 32;
/// Sequence numbers.
pub(in crate::medium) const NUMBERS: u16 = 4096;

/// How far `later` is ahead of `earlier`.
pub(in crate::medium) fn ahead(later: u16, earlier: u16) -> u16 {
    later.wrapping_sub(earlier) % NUMBERS
}

/// True if a block ack with this first number lists another one.
pub(in crate::medium) fn is_listed(number: u16, start: u16, bits: u64) -> bool {
    let offset = ahead(number, start);
    offset < u16::from(MOST_FRAMES) && bits >> offset & 1 == 1
}

/// Most MPDUs of so many octets each, at most `frames`, that an A-MPDU has at a rate, and its octets.
pub(in crate::medium) fn most(rate: &Rate, each: u32, frames: u8) -> (u8, u32) {
    let octets = |count: u8| u32::from(count - 1) * (DELIMITER + each).next_multiple_of(4) + DELIMITER + each;
    let fits = |count: &u8| octets(*count) <= MOST_OCTETS && rate.airtime(octets(*count)) <= LONGEST;
    match (2..=frames.min(MOST_FRAMES)).rev().find(fits) {
        Some(count) => (count, octets(count)),
        None => (1, each),
    }
}

/// An MPDU of an A-MPDU on the air.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Part {
    pub(in crate::medium) sequence: u16,
    /// Octets of its delimiter before it, in the A-MPDU, and its own, frame check sequence included.
    pub(in crate::medium) at: u32,
    pub(in crate::medium) octets: u32,
    pub(in crate::medium) body: u32,
    pub(in crate::medium) retry: bool,
    pub(in crate::medium) frame: Option<Frame>,
    /// Received without error by the listener that is processed.
    pub(in crate::medium) whole: bool,
}

/// The frames of one sender and access category.
#[derive(Debug)]
pub(in crate::medium) struct Reorder {
    /// The number that is passed on next.
    next: u16,
    /// Later ones in order, without a frame if the receiver has no use for it.
    held: VecDeque<(u16, Option<(Course, Frame)>)>,
}

/// True if `number` comes before `start`.
fn is_before(number: u16, start: u16) -> bool {
    ahead(number, start) >= NUMBERS / 2
}

impl Reorder {
    pub(in crate::medium) fn new(next: u16) -> Self {
        Self { next, held: VecDeque::with_capacity(usize::from(MOST_FRAMES)) }
    }

    /// True for a number that it has, or has passed on.
    pub(in crate::medium) fn knows(&self, number: u16) -> bool {
        is_before(number, self.next) || self.held.iter().any(|held| held.0 == number)
    }

    pub(in crate::medium) fn hold(&mut self, number: u16, what: Option<(Course, Frame)>) {
        let at = self.held.partition_point(|held| is_before(held.0, number));
        self.held.insert(at, (number, what));
    }

    /// What comes next, if nothing before it and not before `start` is missing.
    pub(in crate::medium) fn release(&mut self, start: u16) -> Option<Option<(Course, Frame)>> {
        let first = self.held.front().map(|held| held.0);
        match first {
            Some(first) if first == self.next || is_before(first, start) => {
                self.next = (first + 1) % NUMBERS;
                self.held.pop_front().map(|held| held.1)
            }
            _ if is_before(self.next, start) => {
                self.next = start;
                Some(None)
            }
            _ => None,
        }
    }

    /// Takes all its frames out.
    pub(in crate::medium) fn drain(&mut self) -> impl Iterator<Item = (Course, Frame)> + '_ {
        self.held.drain(..).filter_map(|held| held.1)
    }

    /// All its frames.
    pub(in crate::medium) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.held.iter().filter_map(|held| held.1.as_ref().map(|(_, frame)| frame))
    }
}
