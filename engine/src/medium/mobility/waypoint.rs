//! Random waypoint, from its steady state.

use super::legs::{Area, Leg, Legs, Walker};
use super::{Mobility, Position};
use crate::math;
use crate::random::Stream;

/// Moves to a place drawn uniformly from the area at a speed drawn uniformly, pauses there for a
/// time drawn uniformly, and so on.
///
/// Source: Johnson and Maltz, "Dynamic source routing in ad hoc wireless networks", 1996. It starts
/// in the steady state, so that its statistics do not drift during a run: Navidi and Camp,
/// "Stationary distributions for the random waypoint mobility model", IEEE Trans. Mobile Computing
/// 3(1), 2004. Range: speeds above 0, otherwise the mean speed decays for ever.
#[derive(Clone, Copy, Debug)]
pub struct RandomWaypoint {
    /// Area of motion.
    pub area: Area,
    /// Lowest and highest speed in m/s; the lowest above 0.
    pub speed: [f64; 2],
    /// Shortest and longest pause in seconds.
    pub rest: [f64; 2],
    resting: bool,
}

fn uniform(range: [f64; 2], random: &mut Stream) -> f64 {
    range[0] + (range[1] - range[0]) * random.unit()
}

/// Mean distance of two places drawn uniformly from a rectangle (Ghosh, "Random distances within a
/// rectangle", Bull. Calcutta Math. Soc. 43, 1951).
fn mean_distance(a: f64, b: f64) -> f64 {
    let d = math::hypot(a, b);
    let (a2, b2) = (a * a, b * b);
    (a2 * a / b2 + b2 * b / a2 + d * (3.0 - a2 / b2 - b2 / a2)) / 15.0
        + (b2 / a * (d / b).acosh() + a2 / b * (d / a).acosh()) / 6.0
}

impl RandomWaypoint {
    /// Creates a motion in the steady state at the start of the run.
    #[must_use]
    pub fn start(area: Area, speed: [f64; 2], rest: [f64; 2], mut random: Stream) -> Box<dyn Mobility> {
        let slowness = if speed[1] > speed[0] {
            math::ln(speed[1] / speed[0]) / (speed[1] - speed[0])
        } else {
            1.0 / speed[0]
        };
        let travel = mean_distance(area.width, area.height) * slowness;
        let pause = f64::midpoint(rest[0], rest[1]);
        let mut walker = Self { area, speed, rest, resting: false };
        if random.chance(pause / (pause + travel)) {
            // Longer pauses are more likely at a random instant, uniformly within the pause.
            let met = (rest[0].powi(2) + random.unit() * (rest[1].powi(2) - rest[0].powi(2))).sqrt();
            let left = met * random.unit();
            walker.resting = true;
            let here = area.place(&mut random);
            return Box::new(Legs::new(walker, random, here, Some(Leg::rest(left))));
        }
        // So are longer legs and slower speeds.
        let diagonal = math::hypot(area.width, area.height);
        let (from, to) = loop {
            let (from, to) = (area.place(&mut random), area.place(&mut random));
            if random.unit() * diagonal < from.distance(to) {
                break (from, to);
            }
        };
        let pace = speed[0] * math::pow(speed[1] / speed[0], random.unit());
        let here = from + (to - from) * random.unit();
        Box::new(Legs::new(walker, random, here, Some(Leg::towards(here, to, pace))))
    }
}

impl Walker for RandomWaypoint {
    fn next(&mut self, from: Position, random: &mut Stream) -> Leg {
        self.resting = !self.resting;
        if self.resting {
            return Leg::rest(uniform(self.rest, random));
        }
        let to = self.area.place(random);
        Leg::towards(from, to, uniform(self.speed, random))
    }

    fn top_speed(&self) -> f64 {
        self.speed[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    const AREA: Area = Area { corner: Position::new(0.0, 0.0, 1.0), width: 1000.0, height: 1000.0 };

    #[test]
    fn mean_distances_of_rectangles() {
        assert!((mean_distance(1.0, 1.0) - 0.521_405).abs() < 1e-6);
        // A very long rectangle is a line: a third of its length.
        assert!((mean_distance(1000.0, 1.0) / 1000.0 - 1.0 / 3.0).abs() < 1e-3);
    }

    /// Mean speed over 100 ms and mean distance from the centre, over many walkers.
    fn means(at: u64) -> (f64, f64) {
        let n = 4000;
        let mut sums = (0.0, 0.0);
        for seed in 0..n {
            let random = Stream::named(seed, "walker");
            let mut walker = RandomWaypoint::start(AREA, [1.0, 19.0], [0.0, 20.0], random);
            let here = walker.position(Instant::from_nanos(at));
            let there = walker.position(Instant::from_nanos(at + 100_000_000));
            assert!((0.0..=1000.0).contains(&here.x) && (0.0..=1000.0).contains(&here.y));
            sums.0 += here.distance(there) / 0.1;
            sums.1 += here.distance(Position::new(500.0, 500.0, 1.0));
        }
        #[allow(clippy::cast_precision_loss)]
        let n = n as f64;
        (sums.0 / n, sums.1 / n)
    }

    #[test]
    fn nothing_drifts_after_the_start() {
        let (early, late) = (means(0), means(1_000_000_000_000));
        // Navidi and Camp: while moving, the mean speed is (v1 - v0)/ln(v1/v0) = 6.11 m/s; of
        // the time 85.25/(85.25 + 10) is spent moving: 5.47 m/s.
        assert!(
            (early.0 / 5.47 - 1.0).abs() < 0.05 && (late.0 / 5.47 - 1.0).abs() < 0.05,
            "{early:?} {late:?}"
        );
        assert!((early.1 / late.1 - 1.0).abs() < 0.04, "{early:?} {late:?}");
    }
}
