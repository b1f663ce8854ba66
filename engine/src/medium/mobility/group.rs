//! Groups that move together.

use super::legs::{Leg, Legs, Walker};
use super::{Mobility, Position};
use crate::math;
use crate::random::Stream;
use crate::time::Instant;

/// Reference-point group mobility: a member roams within a disk around a reference that moves.
///
/// The reference is any motion; members of one group have copies of it that use the same random
/// stream, and so are identical. In the disk a member moves from place to place, uniform over the
/// disk, at a constant speed. Source: Hong, Gerla, Pei and Chiang, "A group mobility model for ad
/// hoc wireless networks", MSWiM 1999.
pub struct GroupMember {
    reference: Box<dyn Mobility>,
    roam: Legs<Roam>,
}

struct Roam {
    radius_m: f64,
    speed: f64,
}

fn place(radius_m: f64, random: &mut Stream) -> Position {
    let (radius, angle) = (radius_m * random.unit().sqrt(), random.unit() * core::f64::consts::TAU);
    Position::new(radius * math::cos(angle), radius * math::sin(angle), 0.0)
}

impl GroupMember {
    /// A member within `radius_m` of `reference`, at `speed` m/s relative to it.
    #[must_use]
    pub fn new(reference: Box<dyn Mobility>, radius_m: f64, speed: f64, mut random: Stream) -> Self {
        let here = place(radius_m, &mut random);
        Self { reference, roam: Legs::new(Roam { radius_m, speed }, random, here, None) }
    }
}

impl Walker for Roam {
    fn next(&mut self, from: Position, random: &mut Stream) -> Leg {
        let to = place(self.radius_m, random);
        if self.speed > 0.0 && self.radius_m > 0.0 {
            Leg::towards(from, to, self.speed)
        } else {
            Leg::rest(1e6)
        }
    }

    fn top_speed(&self) -> f64 {
        self.speed
    }
}

impl Mobility for GroupMember {
    fn position(&mut self, at: Instant) -> Position {
        self.reference.position(at) + self.roam.position(at)
    }

    fn top_speed(&self) -> f64 {
        self.reference.top_speed() + self.roam.top_speed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Area, RandomWaypoint};
    use super::*;

    #[test]
    fn members_stay_with_their_reference() {
        let area = Area { corner: Position::default(), width: 500.0, height: 500.0 };
        let leader = || RandomWaypoint::start(area, [5.0, 10.0], [0.0, 5.0], Stream::named(1, "leader"));
        let mut reference = leader();
        let mut members: Vec<_> = ["a", "b"]
            .map(|name| GroupMember::new(leader(), 20.0, 1.0, Stream::named(1, name)))
            .into_iter()
            .collect();
        for second in 0..2_000u64 {
            let at = Instant::from_nanos(second * 1_000_000_000);
            let here = reference.position(at);
            let places: Vec<_> = members.iter_mut().map(|member| member.position(at)).collect();
            assert!(places.iter().all(|place| place.distance(here) <= 20.0 + 1e-6));
            assert!(places[0] != places[1]);
        }
    }
}
