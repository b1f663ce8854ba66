//! The next timer of every radio, and the earliest of all.
//!
//! Backoff timers are stopped and started with every frame on the air, far more often than they
//! expire. A tournament tree changes one in a few steps and keeps no obsolete entries, whereas a
//! heap would fill with cancelled timers.

use crate::time::Instant;

/// One timer for each radio, with fast access to the earliest.
#[derive(Default)]
pub(super) struct Timers {
    /// Complete binary tree: node n has children 2n and 2n+1, leaves start at `leaves`.
    tree: Vec<u64>,
    leaves: usize,
    used: usize,
}

impl Timers {
    /// Adds a timer for one more radio.
    pub(super) fn add(&mut self) {
        if self.used == self.leaves {
            let leaves = (self.leaves * 2).max(16);
            let mut tree = vec![u64::MAX; leaves * 2];
            tree[leaves..leaves + self.used].copy_from_slice(&self.tree[self.leaves..][..self.used]);
            for node in (1..leaves).rev() {
                tree[node] = tree[2 * node].min(tree[2 * node + 1]);
            }
            (self.tree, self.leaves) = (tree, leaves);
        }
        self.used += 1;
    }

    /// Sets the timer of a radio; [`Instant::NEVER`] stops it.
    pub(super) fn set(&mut self, radio: usize, at: Instant) {
        let mut node = self.leaves + radio;
        if self.tree[node] == at.nanos() {
            return;
        }
        self.tree[node] = at.nanos();
        while node > 1 {
            node /= 2;
            let least = self.tree[2 * node].min(self.tree[2 * node + 1]);
            if self.tree[node] == least {
                return;
            }
            self.tree[node] = least;
        }
    }

    /// The earliest timer; [`Instant::NEVER`] if none is running.
    pub(super) fn first_at(&self) -> Instant {
        Instant::from_nanos(self.tree.get(1).copied().unwrap_or(u64::MAX))
    }

    /// The radio with the earliest timer; of several the one with the lowest number.
    pub(super) fn first(&self) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node = if self.tree[2 * node] == self.tree[node] { 2 * node } else { 2 * node + 1 };
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn agrees_with_a_plain_search() {
        let mut timers = Timers::default();
        let mut plain = Vec::new();
        let mut random = Stream::named(1, "timers");
        for round in 0..5000usize {
            if round % 50 == 0 {
                timers.add();
                plain.push(u64::MAX);
            }
            let radio = usize::try_from(random.below(plain.len() as u64)).expect("small");
            let at = if random.chance(0.2) { u64::MAX } else { random.below(1000) };
            timers.set(radio, Instant::from_nanos(at));
            plain[radio] = at;
            let least = plain.iter().min().copied().expect("one");
            assert_eq!(timers.first_at().nanos(), least);
            if least < u64::MAX {
                assert_eq!(Some(timers.first()), plain.iter().position(|&other| other == least));
            }
        }
    }
}
