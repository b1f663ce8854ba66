//! Random walk and Gauss-Markov motion, both reflected at the border of their area.

use super::legs::{Area, Leg, Legs, Walker};
use super::{Mobility, Position};
use crate::math;
use crate::random::Stream;

/// Every `interval_s` seconds a new direction and a new speed, both uniform.
///
/// Source: Camp, Boleng and Davies, "A survey of mobility models for ad hoc network research",
/// Wireless Communications and Mobile Computing 2(5), 2002, section 2.1; reflected at the border.
#[derive(Clone, Copy, Debug)]
pub struct RandomWalk {
    area: Area,
    speed: [f64; 2],
    interval_s: f64,
}

impl RandomWalk {
    /// Creates a walk that starts at a uniformly drawn place, which is its stationary distribution.
    #[must_use]
    pub fn start(area: Area, speed: [f64; 2], interval_s: f64, mut random: Stream) -> Box<dyn Mobility> {
        let here = area.place(&mut random);
        Box::new(Legs::new(Self { area, speed, interval_s }, random, here, None))
    }
}

fn heading(direction: f64, speed: f64, seconds: f64) -> Leg {
    let velocity = Position::new(speed * math::cos(direction), speed * math::sin(direction), 0.0);
    Leg { velocity, ..Leg::rest(seconds) }
}

impl Walker for RandomWalk {
    fn next(&mut self, _from: Position, random: &mut Stream) -> Leg {
        let speed = self.speed[0] + (self.speed[1] - self.speed[0]) * random.unit();
        heading(random.unit() * core::f64::consts::TAU, speed, self.interval_s)
    }

    fn bound(&self, place: Position) -> Position {
        self.area.fold(place).0
    }

    fn top_speed(&self) -> f64 {
        self.speed[1]
    }
}

/// Speed and direction with memory: every `interval_s` seconds
/// `s' = a s + (1 - a) mean + sqrt(1 - a^2) sigma w`, with w normal, and the direction likewise.
///
/// Source: Liang and Haas, "Predictive distance-based mobility management for PCS networks",
/// INFOCOM 1999. a = 0 has no memory, a = 1 never turns. Speeds are clamped between 0 and four
/// sigma above the mean; the border reflects the direction and its mean.
#[derive(Clone, Copy, Debug)]
pub struct GaussMarkov {
    area: Area,
    memory: f64,
    mean_speed: f64,
    speed_sigma: f64,
    direction_sigma: f64,
    interval_s: f64,
    speed: f64,
    direction: f64,
    mean_direction: f64,
}

impl GaussMarkov {
    /// Creates a motion with memory `memory` (0 to 1), mean speed and its deviation in m/s,
    /// deviation of the direction in radians; it starts from its stationary distribution.
    #[must_use]
    pub fn start(
        area: Area,
        memory: f64,
        speed: (f64, f64),
        direction_sigma: f64,
        interval_s: f64,
        mut random: Stream,
    ) -> Box<dyn Mobility> {
        let here = area.place(&mut random);
        let mean_direction = random.unit() * core::f64::consts::TAU;
        let mut walker = Self {
            area,
            memory,
            mean_speed: speed.0,
            speed_sigma: speed.1,
            direction_sigma,
            interval_s,
            speed: speed.0 + speed.1 * random.normal(),
            direction: mean_direction + direction_sigma * random.normal(),
            mean_direction,
        };
        walker.speed = walker.speed.clamp(0.0, walker.top_speed());
        Box::new(Legs::new(walker, random, here, None))
    }
}

impl Walker for GaussMarkov {
    fn next(&mut self, _from: Position, random: &mut Stream) -> Leg {
        let leg = heading(self.direction, self.speed, self.interval_s);
        let fresh = (1.0 - self.memory * self.memory).sqrt();
        let remember = |old: f64, mean: f64, sigma: f64, w: f64| {
            self.memory * old + (1.0 - self.memory) * mean + fresh * sigma * w
        };
        let speed = remember(self.speed, self.mean_speed, self.speed_sigma, random.normal());
        let direction = remember(self.direction, self.mean_direction, self.direction_sigma, random.normal());
        (self.speed, self.direction) = (speed.clamp(0.0, self.top_speed()), direction);
        leg
    }

    fn bound(&self, place: Position) -> Position {
        self.area.fold(place).0
    }

    fn arrived(&mut self, place: Position) {
        let [x, y] = self.area.fold(place).1;
        for direction in [&mut self.direction, &mut self.mean_direction] {
            if x {
                *direction = core::f64::consts::PI - *direction;
            }
            if y {
                *direction = -*direction;
            }
        }
    }

    fn top_speed(&self) -> f64 {
        self.mean_speed + 4.0 * self.speed_sigma
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    const AREA: Area = Area { corner: Position::new(-50.0, 0.0, 0.0), width: 100.0, height: 60.0 };

    /// Mean step over a second, and the greatest step in a millisecond relative to the bound.
    fn steps(walker: &mut dyn Mobility) -> f64 {
        let (mut last, mut sum) = (walker.position(Instant::ZERO), 0.0);
        for millis in 1..=200_000u64 {
            let here = walker.position(Instant::from_nanos(millis * 1_000_000));
            let step = here.distance(last);
            assert!(step <= walker.top_speed() * 1e-3 * 1.000_001, "continuous: {step}");
            assert!((-50.0..=50.0).contains(&here.x) && (0.0..=60.0).contains(&here.y), "{here:?}");
            sum += step;
            last = here;
        }
        sum / 200.0
    }

    #[test]
    fn walks_are_continuous_and_stay_inside() {
        let mut walk = RandomWalk::start(AREA, [2.0, 6.0], 3.0, Stream::named(1, "walk"));
        let mean = steps(&mut *walk);
        assert!((mean - 4.0).abs() < 0.5, "{mean} m/s");
    }

    #[test]
    fn gauss_markov_keeps_its_mean_speed() {
        let random = Stream::named(1, "gauss-markov");
        let mut walk = GaussMarkov::start(AREA, 0.75, (5.0, 1.0), 0.5, 1.0, random);
        let mean = steps(&mut *walk);
        assert!((mean - 5.0).abs() < 0.3, "{mean} m/s");
    }
}
