//! Spatial index of radios: finds candidates near a place without a query of every position.

use std::collections::BTreeMap;

use crate::medium::mobility::Position;
use crate::time::{Instant, Span};

/// A grid of squares with the radios in each at one instant.
///
/// It is valid as long as no radio can have moved farther than its slack since. Heights are
/// ignored: a radio that is far away in the plane is far away.
#[derive(Default)]
pub(in crate::medium) struct Index {
    side: f64,
    squares: BTreeMap<(i64, i64), Vec<u32>>,
    until: Option<Instant>,
}

/// Above this number of squares, all radios are candidates.
const MOST_SQUARES: f64 = 400.0;

fn square(side: f64, metres: f64) -> i64 {
    #[allow(clippy::cast_possible_truncation)] // places are below 10^9 m, sides at least 1 m
    let number = (metres / side).floor() as i64;
    number
}

/// Time to travel this distance at this speed.
pub(in crate::medium) fn travel(metres: f64, speed: f64) -> Option<Span> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    let nanos = (metres / speed * 1e9) as u64;
    (speed > 0.0 && metres.is_finite()).then(|| Span::from_nanos(nanos))
}

impl Index {
    /// Invalidates the grid after a change of a position.
    pub(in crate::medium) fn forget(&mut self) {
        self.until = None;
    }

    /// Largest possible distance of a radio from its position in the grid, in metres.
    fn slack(&self) -> f64 {
        self.side * 0.1
    }

    /// Rebuilds the grid if it is stale. `speed`: upper bound on any radio's speed; `side`: desired
    /// size of squares in metres. Returns the number of positions queried.
    pub(in crate::medium) fn refresh(
        &mut self,
        at: Instant,
        side: f64,
        speed: f64,
        places: impl Iterator<Item = Position>,
    ) -> u64 {
        if self.until.is_some_and(|until| at <= until) {
            return 0;
        }
        self.side = side.max(10.0);
        self.squares.clear();
        let mut asked = 0;
        for (number, place) in (0u32..).zip(places) {
            let corner = (square(self.side, place.x), square(self.side, place.y));
            self.squares.entry(corner).or_default().push(number);
            asked += 1;
        }
        self.until = Some(travel(self.slack(), speed).map_or(Instant::NEVER, |span| at + span));
        asked
    }

    /// Writes to `found`, ascending, all radios that may be within `metres` of `place`. Returns
    /// false if any radio may be.
    pub(in crate::medium) fn near(&self, place: Position, metres: f64, found: &mut Vec<u32>) -> bool {
        found.clear();
        let reach = metres + self.slack();
        if (2.0 * reach / self.side + 2.0).powi(2) > MOST_SQUARES {
            return false;
        }
        let range = |middle: f64| square(self.side, middle - reach)..=square(self.side, middle + reach);
        let rows = range(place.y);
        for column in range(place.x) {
            let span = (column, *rows.start())..=(column, *rows.end());
            found.extend(self.squares.range(span).flat_map(|(_, there)| there));
        }
        found.sort_unstable();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn nobody_near_is_left_out_and_few_who_are_far_are_named() {
        let mut random = Stream::named(1, "index");
        let places: Vec<_> = (0..2_000)
            .map(|_| Position::new(random.unit() * 4e3 - 2e3, random.unit() * 4e3 - 2e3, 0.0))
            .collect();
        let mut index = Index::default();
        assert_eq!(index.refresh(Instant::ZERO, 100.0, 5.0, places.iter().copied()), 2_000);
        // 10 m of slack at 5 m/s.
        assert_eq!(index.refresh(Instant::from_nanos(2_000_000_000), 100.0, 5.0, std::iter::empty()), 0);
        let mut found = Vec::new();
        for &place in places.iter().step_by(40) {
            assert!(index.near(place, 100.0, &mut found));
            let near = |number: &u32| places[*number as usize].distance(place) <= 110.0;
            let wanted: Vec<u32> = (0..2_000).filter(near).collect();
            assert!(wanted.iter().all(|number| found.contains(number)));
            assert!(found.is_sorted() && found.len() < 60, "{}", found.len());
        }
        assert!(!index.near(places[0], 1e5, &mut found), "everybody is near enough");
    }
}
