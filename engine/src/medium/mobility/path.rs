//! Motion along timed places.

use super::{Mobility, Position};
use crate::time::Instant;

/// Straight lines between places at given times: at rest at the first place before its time and at
/// the last after its time. Two places with the same time are a jump.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    points: Vec<(Instant, Position)>,
    /// Index of the last point that time has passed.
    passed: usize,
    top_speed: f64,
}

/// Reason why a list is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The list is empty.
    #[error("a path needs at least one place")]
    Empty,
    /// A time before the previous one.
    #[error("place {number} is at {time}, before the place that stands before it; sort the places by time")]
    Backwards {
        /// Number of the place, from 1.
        number: usize,
        /// Its time.
        time: Instant,
    },
    /// A coordinate that is not finite.
    #[error("place {number} has a coordinate that is not a number of metres below 10^9")]
    Coordinate {
        /// Number of the place, from 1.
        number: usize,
    },
}

impl Path {
    /// Creates a path through these places, times ascending.
    ///
    /// # Errors
    /// If the list is empty, a time is before the previous one, or a coordinate is not finite.
    pub fn new(points: Vec<(Instant, Position)>) -> Result<Self, PathError> {
        if points.is_empty() {
            return Err(PathError::Empty);
        }
        if let Some(at) = points.iter().position(|(_, place)| !place.is_sane()) {
            return Err(PathError::Coordinate { number: at + 1 });
        }
        if let Some(at) = points.windows(2).position(|pair| pair[1].0 < pair[0].0) {
            return Err(PathError::Backwards { number: at + 2, time: points[at + 1].0 });
        }
        let mut path = Self { points, passed: 0, top_speed: 0.0 };
        path.top_speed = path.points.windows(2).map(speed).fold(0.0, f64::max);
        Ok(path)
    }

    /// The places and their times.
    #[must_use]
    pub fn points(&self) -> &[(Instant, Position)] {
        &self.points
    }

    /// Highest speed in m/s; infinite for a jump.
    #[must_use]
    pub fn fastest(&self) -> f64 {
        self.top_speed
    }

    /// Position at `at`, independent of earlier calls.
    #[must_use]
    pub fn at(&self, at: Instant) -> Position {
        place_at(&self.points, at)
    }
}

/// Position at `at` of a path through these points.
pub(super) fn place_at(points: &[(Instant, Position)], at: Instant) -> Position {
    let after = points.partition_point(|(time, _)| *time <= at);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some(before), Some(&after)) => between(before, after, at),
        (Some(last), None) => last.1,
        (None, Some(first)) => first.1,
        (None, None) => Position::default(),
    }
}

fn nanos(from: Instant, to: Instant) -> f64 {
    #[allow(clippy::cast_precision_loss)] // to a nanometre at any speed of this world
    let nanos = to.since(from).nanos() as f64;
    nanos
}

fn speed(pair: &[(Instant, Position)]) -> f64 {
    let metres = pair[0].1.distance(pair[1].1);
    // A jump has infinite speed; a rest may take any time.
    if metres == 0.0 { 0.0 } else { metres / (nanos(pair[0].0, pair[1].0) * 1e-9) }
}

fn between(before: (Instant, Position), after: (Instant, Position), at: Instant) -> Position {
    let share = nanos(before.0, at) / nanos(before.0, after.0);
    before.1 + (after.1 - before.1) * share
}

impl Mobility for Path {
    fn position(&mut self, at: Instant) -> Position {
        while self.points.get(self.passed + 1).is_some_and(|(time, _)| *time <= at) {
            self.passed += 1;
        }
        let here = self.points[self.passed];
        match self.points.get(self.passed + 1) {
            Some(&next) if here.0 <= at => between(here, next, at),
            _ => here.1,
        }
    }

    fn top_speed(&self) -> f64 {
        self.top_speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Instant::from_nanos((seconds * 1e9) as u64)
    }

    #[test]
    fn straight_between_places_and_still_outside() {
        let place = |x| Position::new(x, 0.0, 0.0);
        let points = vec![
            (at(1.0), place(0.0)),
            (at(3.0), place(10.0)),
            (at(3.0), place(50.0)),
            (at(4.0), place(51.0)),
        ];
        let mut path = Path::new(points).expect("a path");
        for (time, x) in
            [(0.0, 0.0), (1.0, 0.0), (2.0, 5.0), (2.5, 7.5), (3.0, 50.0), (3.5, 50.5), (9.0, 51.0)]
        {
            assert!((path.at(at(time)).x - x).abs() < 1e-9, "{time}");
            assert!((path.position(at(time)).x - x).abs() < 1e-9, "{time}");
        }
        assert!(path.top_speed().is_infinite(), "it jumps");
    }

    #[test]
    fn faults_are_named() {
        let place = Position::default();
        assert_eq!(Path::new(vec![]), Err(PathError::Empty));
        let back = Path::new(vec![(at(2.0), place), (at(1.0), place)]);
        assert_eq!(back, Err(PathError::Backwards { number: 2, time: at(1.0) }));
        let nan = Path::new(vec![(at(1.0), Position { x: f64::NAN, ..place })]);
        assert_eq!(nan, Err(PathError::Coordinate { number: 1 }));
    }
}
