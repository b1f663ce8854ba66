//! Queue of frames that wait until their guest has buffers again.
//!
//! A guest of User Mode Linux has 256 buffers of a page at most: sixteen super-frames, which a TCP
//! sender sends at once. On a real wire they would arrive one after the other.

use std::collections::VecDeque;

/// Maximum number of queued frames, about the length of an interface's queueing discipline.
const FRAMES: usize = 1024;
/// Maximum number of queued octets.
const OCTETS: usize = 4 << 20;

/// The frames, each contiguous in memory. The memory is allocated when a guest
/// first runs out of buffers.
#[derive(Debug, Default)]
pub struct Backlog {
    memory: Box<[u8]>,
    /// Begin and end of each frame.
    frames: VecDeque<(usize, usize)>,
}

impl Backlog {
    /// True if the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The oldest frame.
    #[must_use]
    pub fn first(&self) -> Option<&[u8]> {
        self.frames.front().map(|&(start, end)| &self.memory[start..end])
    }

    /// Removes the oldest frame.
    pub fn pop(&mut self) {
        self.frames.pop_front();
    }

    /// Appends a frame, given in parts; returns false if there is no room.
    pub fn push(&mut self, parts: &[&[u8]]) -> bool {
        if self.memory.is_empty() {
            self.memory = vec![0; OCTETS].into_boxed_slice();
            self.frames.reserve_exact(FRAMES);
        }
        let octets = parts.iter().map(|part| part.len()).sum();
        let Some(mut at) = self.place(octets).filter(|_| self.frames.len() < FRAMES) else { return false };
        self.frames.push_back((at, at + octets));
        for part in parts {
            self.memory[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        true
    }

    /// Offset of so many contiguous free octets after the last frame; the memory is a ring.
    fn place(&self, octets: usize) -> Option<usize> {
        let (Some(&(first, _)), Some(&(last, end))) = (self.frames.front(), self.frames.back()) else {
            return (octets <= OCTETS).then_some(0);
        };
        if last < first {
            (end + octets <= first).then_some(end)
        } else if end + octets <= OCTETS {
            Some(end)
        } else {
            (octets <= first).then_some(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Backlog, FRAMES, OCTETS};

    #[test]
    fn frames_leave_as_they_came_however_often_the_memory_comes_round() {
        let mut backlog = Backlog::default();
        let frame =
            |number: usize| vec![u8::try_from(number % 251).expect("small"); 60 + number * 7919 % 65_000];
        let (mut came, mut left) = (0, 0);
        for round in 0..2000 {
            while came < left + 1 + round % 90 {
                let frame = frame(came);
                if !backlog.push(&[&frame[..10], &frame[10..30], &frame[30..]]) {
                    break;
                }
                came += 1;
            }
            for _ in 0..=round % 50 {
                let Some(first) = backlog.first() else { break };
                assert_eq!(first, frame(left));
                backlog.pop();
                left += 1;
            }
        }
        assert!(left > 20_000, "{left}");
    }

    #[test]
    fn it_is_full_by_octets_or_by_frames() {
        let mut backlog = Backlog::default();
        assert!(!backlog.push(&[&vec![0; OCTETS + 1]]));
        assert!(backlog.push(&[&vec![0; OCTETS]]));
        assert!(!backlog.push(&[&[0]]));
        backlog.pop();
        assert!(backlog.is_empty());
        assert_eq!((0..=FRAMES).filter(|_| backlog.push(&[&[0; 60]])).count(), FRAMES);
    }
}
