//! Passage of super-frames through a node that forwards them.
//!
//! Segments that arrived at a port one after the other and were handed over together leave the node
//! as one super-frame. A passage remembers when each of them arrived, so that each leaves at its own
//! time: its arrival, later by the time that the node took for the super-frame. A router changes
//! link-layer addresses, TTL and checksums; the key is of what it leaves alone.

use airloom_engine::MOST_TOGETHER;
use airloom_engine::frame::{Checksum, Frame, Pool};
use airloom_engine::time::Instant;

/// Hand-overs that a passage remembers; older ones are forgotten. A router that is a guest may hold a
/// frame for milliseconds, in which some hundred acknowledgments enter it.
const REMEMBERED: usize = 256;
/// Arrivals of segments that a passage remembers: those of 64 super-frames of the greatest size.
const ARRIVALS: usize = 64 * MOST_TOGETHER as usize;

/// Octets of UDP's header.
const UDP_HEADER: usize = 8;
/// Octets of payload that identify datagrams, which have no sequence number.
const PAYLOAD: usize = 64;

/// Identifies a frame or a run of segments by what a router leaves alone, also one that translates
/// addresses: of TCP the sequence and acknowledgment number, options, and length; of UDP the length
/// and the begin of the payload. `None` for what is neither.
pub(crate) fn key(frame: &Frame, pool: &Pool) -> Option<u64> {
    let checksum = frame.checksum?;
    let octets = pool.octets(frame.buffer).get(..frame.length as usize)?;
    let transport = octets.get(usize::from(checksum.start)..)?;
    match checksum.offset {
        Checksum::TCP => tcp_key(frame, octets, transport),
        Checksum::UDP => udp_key(frame, octets, transport),
        _ => None,
    }
}

fn udp_key(frame: &Frame, octets: &[u8], transport: &[u8]) -> Option<u64> {
    let headers = octets.len() - transport.len() + UDP_HEADER;
    let before = frame.segmentation.map_or(0, |cut| usize::from(frame.first) * usize::from(cut.size));
    let payload = octets.get(headers + before..)?;
    let length = frame.octets().saturating_sub(headers as u64 * u64::from(frame.count));
    let begin = &payload[..payload.len().min(PAYLOAD)].chunks_exact(8);
    let words = begin.clone().map(|word| u64::from_be_bytes(word.try_into().unwrap_or_default()));
    Some(std::iter::once(length).chain(words).fold(2, mix))
}

/// Multiplies and rotates, as fast hash functions do: nobody gains by a collision.
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn tcp_key(frame: &Frame, octets: &[u8], transport: &[u8]) -> Option<u64> {
    let header =
        transport.get(..usize::from(transport.get(12)? >> 4) * 4).filter(|header| header.len() >= 20)?;
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|octet| header[at + octet]));
    let before = frame.segmentation.map_or(0, |cut| u32::from(frame.first) * u32::from(cut.size));
    let headers = (octets.len() - transport.len() + header.len()) as u64;
    let payload = frame.octets().saturating_sub(headers * u64::from(frame.count));
    let words = [u64::from(word(4).wrapping_add(before)), u64::from(word(8)), payload];
    let options = (20..header.len()).step_by(4).map(|at| u64::from(word(at)));
    Some(words.into_iter().chain(options).fold(1, mix))
}

/// Segments that were handed over together.
#[derive(Clone, Copy, Debug, Default)]
struct Entered {
    /// When they were handed over.
    at: Instant,
    /// Number of segments; 0 once they have left.
    count: usize,
    /// Position of the first one's arrival, counted from the first arrival of all.
    first: usize,
}

/// The segments that are passing through a node. All of it is allocated with the first of them.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    /// The latest hand-overs, in a ring; their numbers are from `oldest` to before `next`.
    entered: Vec<Entered>,
    /// Their keys, apart so that a search reads little memory.
    keys: Vec<u64>,
    /// Number of the oldest hand-over that has not left.
    oldest: usize,
    next: usize,
    /// The latest arrivals, in a ring; those of one hand-over are side by side.
    arrivals: Vec<Instant>,
    /// Position of the next arrival.
    position: usize,
}

impl Passage {
    /// Remembers segments that arrived at `arrivals` and are handed over together at `at`, by a
    /// clock that stands still with the loop ([`crate::world::stalls::Stalls::clock`]).
    pub(crate) fn enter(&mut self, key: Option<u64>, at: Instant, arrivals: &[Instant]) {
        let count = arrivals.len();
        let Some(key) = key.filter(|_| (1..=MOST_TOGETHER.into()).contains(&count)) else { return };
        if self.keys.is_empty() {
            self.entered = vec![Entered::default(); REMEMBERED];
            self.keys = vec![0; REMEMBERED];
            self.arrivals = vec![Instant::ZERO; ARRIVALS];
        }
        let until_end = ARRIVALS - self.position % ARRIVALS;
        if count > until_end {
            self.position += until_end;
        }
        let first = self.position;
        self.arrivals[first % ARRIVALS..][..count].copy_from_slice(arrivals);
        self.position += count;
        self.entered[self.next % REMEMBERED] = Entered { at, count, first };
        self.keys[self.next % REMEMBERED] = key;
        self.next += 1;
        self.oldest = self.oldest.max(self.next.saturating_sub(REMEMBERED));
        self.forget();
    }

    /// When the segments leave that were read at `now`, by the same clock; `None` if they are not known.
    pub(crate) fn leave(&mut self, key: Option<u64>, now: Instant, count: usize) -> Option<&[Instant]> {
        let key = key?;
        // The oldest one: datagrams may be alike, and leave in the order in which they came.
        let found = self.find(key, count)?;
        let entered = &mut self.entered[found % REMEMBERED];
        entered.count = 0;
        let (latency, first) = (now.since(entered.at), entered.first);
        self.forget();
        let arrivals = &mut self.arrivals[first % ARRIVALS..][..count];
        arrivals.iter_mut().for_each(|at| *at += latency);
        Some(arrivals)
    }

    /// Number of the oldest hand-over of `count` segments with this key.
    fn find(&self, key: u64, count: usize) -> Option<usize> {
        if self.keys.is_empty() {
            return None;
        }
        let (newer, older) = self.keys.split_at(self.oldest % REMEMBERED);
        let keys = older.iter().chain(newer).take(self.next - self.oldest);
        let alike = |&(number, &known): &(usize, &u64)| {
            known == key && self.entered[number % REMEMBERED].count == count
        };
        (self.oldest..).zip(keys).find(alike).map(|(number, _)| number)
    }

    /// Advances `oldest` over what has left, and over what is so old that its arrivals are overwritten.
    fn forget(&mut self) {
        while self.oldest < self.next {
            let entered = self.entered[self.oldest % REMEMBERED];
            if entered.count > 0 && self.position - entered.first <= ARRIVALS {
                break;
            }
            self.oldest += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use airloom_engine::frame::{Protocol, Segmentation};

    use super::*;
    use crate::world::stalls::Stalls;

    const HEADERS: usize = 42;
    const SIZE: u16 = 100;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// Datagrams, the `n`th of which is full of `n`.
    fn datagrams(pool: &mut Pool, numbers: std::ops::Range<u8>) -> Frame {
        let octets: Vec<u8> = numbers.clone().flat_map(|number| [number; SIZE as usize]).collect();
        let buffer = pool.take(HEADERS + octets.len());
        pool.octets_mut(buffer)[HEADERS..HEADERS + octets.len()].copy_from_slice(&octets);
        let header = u16::try_from(HEADERS).expect("short");
        let cut = Segmentation { protocol: Protocol::Udp, header, size: SIZE };
        let checksum = Checksum { start: header - 8, offset: Checksum::UDP };
        let length = u32::try_from(HEADERS + octets.len()).expect("short");
        let frame = Frame::new(buffer, length, Some(cut), Some(checksum));
        Frame { count: u16::try_from(numbers.len()).expect("few"), ..frame }
    }

    #[test]
    fn a_part_of_a_super_frame_is_known_when_it_leaves_by_itself() {
        let mut pool = Pool::default();
        let whole = datagrams(&mut pool, 0..8);
        let alone = datagrams(&mut pool, 3..5);
        assert_eq!(key(&whole.part(3, 2), &pool), key(&alone, &pool));
        assert_ne!(key(&whole.part(4, 2), &pool), key(&alone, &pool));
        assert_ne!(key(&whole.part(3, 1), &pool), key(&alone, &pool));
        let tcp = Some(Checksum { start: 34, offset: Checksum::TCP });
        assert_eq!(key(&Frame { checksum: None, ..alone }, &pool), None);
        assert_ne!(key(&Frame { checksum: tcp, ..alone }, &pool), key(&alone, &pool));
    }

    #[test]
    fn datagrams_that_are_alike_leave_in_the_order_in_which_they_came() {
        let mut passage = Passage::default();
        for round in 0..REMEMBERED as u64 + 10 {
            let came = 1_000 * round;
            passage.enter(Some(7), at(came + 50), &[at(came), at(came + 50)]);
            passage.enter(Some(7), at(came + 60), &[at(came + 55), at(came + 60)]);
            assert_eq!(passage.leave(Some(7), at(came + 70), 3), None, "another number of them");
            let left = passage.leave(Some(7), at(came + 70), 2);
            assert_eq!(left, Some(&[at(came + 20), at(came + 70)][..]));
            let left = passage.leave(Some(7), at(came + 80), 2);
            assert_eq!(left, Some(&[at(came + 75), at(came + 80)][..]));
            assert_eq!(passage.leave(Some(7), at(came + 90), 2), None, "each leaves once");
        }
    }

    #[test]
    fn what_never_leaves_is_forgotten() {
        let mut passage = Passage::default();
        let arrivals = [at(10); 60];
        for number in 0..3 * REMEMBERED as u64 {
            passage.enter(Some(number), at(10), &arrivals[..1]);
        }
        let oldest = 2 * REMEMBERED as u64;
        assert_eq!(passage.leave(Some(oldest - 1), at(20), 1), None);
        assert_eq!(passage.leave(Some(oldest), at(20), 1), Some(&[at(20)][..]));
        for number in 0..2 * (ARRIVALS / 60) as u64 {
            passage.enter(Some(number), at(10), &arrivals);
        }
        assert_eq!(passage.leave(Some(oldest + 1), at(20), 1), None, "its arrival is overwritten");
        let youngest = 2 * (ARRIVALS / 60) as u64 - 1;
        let oldest = (0..youngest).find(|&number| passage.leave(Some(number), at(20), 60).is_some());
        assert_eq!(oldest, Some(youngest + 1 - (ARRIVALS / 60) as u64));
        assert_eq!(passage.leave(Some(youngest), at(20), 60), Some(&[at(20); 60][..]));
    }

    #[test]
    fn what_the_loop_stood_still_is_no_latency_of_the_node() {
        let mut passage = Passage::default();
        let mut stalls = Stalls::default();
        stalls.waited(at(1_000));
        passage.enter(Some(7), stalls.clock(at(1_000)), &[at(900), at(1_000)]);
        stalls.worked(at(4_000));
        let left = passage.leave(Some(7), stalls.clock(at(4_030)), 2);
        assert_eq!(left, Some(&[at(930), at(1_030)][..]), "30 us of 3030");
        passage.enter(Some(7), stalls.clock(at(5_000)), &[at(5_000)]);
        assert_eq!(passage.leave(Some(7), stalls.clock(at(5_020)), 1), Some(&[at(5_020)][..]));
    }
}
