//! The last departures from a queue, to know how full it was.

use std::collections::VecDeque;

use super::Totals;
use crate::time::Instant;

/// Maximum number of departures that a queue remembers.
const REMEMBERED: usize = 128;

/// The last departures from a queue, for frames that came before them but are only known after.
#[derive(Default)]
pub(super) struct Departures {
    last: VecDeque<(Instant, Totals)>,
    /// Departures since this instant are known.
    pub since: Instant,
}

impl Departures {
    pub fn add(&mut self, at: Instant, left: Totals) {
        if self.last.len() == REMEMBERED
            && let Some((at, _)) = self.last.pop_front()
        {
            self.since = at;
        }
        self.last.push_back((at, left));
    }

    /// Totals of what has left after `at`.
    pub fn after(&self, at: Instant) -> Totals {
        let mut sum = Totals::default();
        for (_, left) in self.last.iter().rev().take_while(|(left_at, _)| *left_at > at) {
            sum += *left;
        }
        sum
    }
}
