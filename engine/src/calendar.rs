//! The calendar: one queue of events in one total order.
//!
//! Events are ordered by time, then class, then source, then a counter. The order of the fields
//! of [`Key`] *is* the rule; reordering them changes results.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Instant;

/// Class of an event; among events of one instant, the lower class comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A change of the scenario: link down, new rate, node moved.
    Change,
    /// The end of a transmission on the air or on the wire: it frees resources that later events
    /// need.
    Release,
    /// A frame arrives somewhere.
    Arrival,
    /// A timer of a protocol or a queue.
    Timer,
}

/// Position of an event in the total order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Time of the event.
    pub at: Instant,
    /// Class of the event.
    pub class: Class,
    /// Number of the model element that the event belongs to.
    pub source: u32,
    /// Counts all events ever pushed, so that otherwise equal events keep their order of insertion.
    pub counter: u64,
}

struct Entry<E> {
    key: Key,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A queue of events; its time is monotonic.
pub struct Calendar<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    /// Events that nobody outside can observe before a later one of `heap`.
    quiet: BinaryHeap<Reverse<Entry<E>>>,
    counter: u64,
    now: Instant,
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        let heap = || BinaryHeap::with_capacity(1024);
        Self { heap: heap(), quiet: heap(), counter: 0, now: Instant::ZERO }
    }
}

impl<E> Calendar<E> {
    /// Time of the last popped event, or the last instant given to [`Calendar::pass`].
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let quiet = self.quiet.peek().map(|Reverse(entry)| entry.key.at);
        self.wake_at().into_iter().chain(quiet).min()
    }

    /// When the next event is due that is not quiet: until then the caller may sleep.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.key.at)
    }

    /// Puts an event into the calendar.
    ///
    /// # Panics
    /// If `at` lies in the past; only a bug in a model can cause that.
    pub fn push(&mut self, at: Instant, class: Class, source: u32, event: E) {
        let entry = self.entry(at, class, source, event);
        self.heap.push(entry);
    }

    /// Puts a quiet event into the calendar: one without effect outside before an event that is not
    /// quiet and not earlier.
    ///
    /// # Panics
    /// As [`Calendar::push`].
    pub fn push_quiet(&mut self, at: Instant, class: Class, source: u32, event: E) {
        let entry = self.entry(at, class, source, event);
        self.quiet.push(entry);
    }

    fn entry(&mut self, at: Instant, class: Class, source: u32, event: E) -> Reverse<Entry<E>> {
        assert!(at >= self.now, "event for {at} pushed at {}", self.now);
        let key = Key { at, class, source, counter: self.counter };
        self.counter += 1;
        Reverse(Entry { key, event })
    }

    /// Removes and returns the next event that is due at or before `until`.
    pub fn pop(&mut self, until: Instant) -> Option<(Key, E)> {
        let quiet = match (self.heap.peek(), self.quiet.peek()) {
            (Some(Reverse(loud)), Some(Reverse(quiet))) => quiet < loud,
            (_, quiet) => quiet.is_some(),
        };
        let heap = if quiet { &mut self.quiet } else { &mut self.heap };
        if heap.peek()?.0.key.at > until {
            return None;
        }
        let Reverse(entry) = heap.pop()?;
        self.now = entry.key.at;
        Some((entry.key, entry.event))
    }

    /// Advances the time to `now`: no earlier event may be pushed after this.
    pub fn pass(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// All pending events, in no particular order.
    pub fn events(&self) -> impl Iterator<Item = &E> {
        self.heap.iter().chain(&self.quiet).map(|Reverse(entry)| &entry.event)
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len() + self.quiet.len()
    }

    /// True if no event is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_time_class_source_counter() {
        let mut calendar = Calendar::default();
        let at = Instant::from_nanos(5);
        calendar.push(at, Class::Timer, 1, "timer");
        calendar.push(at, Class::Arrival, 2, "second source");
        calendar.push(at, Class::Arrival, 1, "first source");
        calendar.push(at, Class::Arrival, 1, "pushed later");
        calendar.push(Instant::from_nanos(4), Class::Timer, 9, "earlier");
        let mut order = Vec::new();
        while let Some((_, event)) = calendar.pop(at) {
            order.push(event);
        }
        assert_eq!(order, ["earlier", "first source", "pushed later", "second source", "timer"]);
    }

    #[test]
    #[should_panic(expected = "pushed at")]
    fn the_past_is_closed() {
        let mut calendar = Calendar::default();
        calendar.pass(Instant::from_nanos(10));
        calendar.push(Instant::from_nanos(9), Class::Timer, 0, ());
    }
}
