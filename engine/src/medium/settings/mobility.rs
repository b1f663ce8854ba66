//! Settings of mobility models, in plain numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::medium::mobility::{
    Area, ConstantVelocity, GaussMarkov, GroupMember, Mobility, Path, Position, RandomWalk, RandomWaypoint,
    Static, traces,
};
use crate::medium::settings::error::SettingsError;
use crate::medium::settings::range::within;
use crate::random::Stream;
use crate::time::Instant;

/// A mobility model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MobilitySettings {
    /// At rest.
    Static(Position),
    /// Constant velocity.
    Velocity {
        /// Place at the start of the run.
        start: Position,
        /// Metres per second along each axis.
        velocity: Position,
    },
    /// [`RandomWaypoint`].
    RandomWaypoint {
        /// Area of motion.
        area: Area,
        /// Lowest and highest speed in m/s, above 0.
        speed: [f64; 2],
        /// Shortest and longest pause in seconds.
        rest_s: [f64; 2],
    },
    /// [`RandomWalk`].
    RandomWalk {
        /// Area of motion.
        area: Area,
        /// Lowest and highest speed in m/s.
        speed: [f64; 2],
        /// Seconds between changes of direction.
        interval_s: f64,
    },
    /// [`GaussMarkov`].
    GaussMarkov {
        /// Area of motion.
        area: Area,
        /// Memory, 0 to 1.
        memory: f64,
        /// Mean speed in m/s and its standard deviation.
        speed: [f64; 2],
        /// Standard deviation of the direction in radians.
        direction_sigma: f64,
        /// Seconds between changes of direction.
        interval_s: f64,
    },
    /// [`GroupMember`].
    Group {
        /// Name of the group: members with the same name and reference move together.
        name: String,
        /// Motion of the reference.
        reference: Box<MobilitySettings>,
        /// Maximum distance of a member from it, in metres.
        radius_m: f64,
        /// Speed of a member relative to it, m/s.
        speed: f64,
    },
    /// [`Path`]: instants in nanoseconds, and places.
    Path(Vec<(u64, Position)>),
    /// A node of an ns-2 trace.
    Ns2 {
        /// The trace.
        text: String,
        /// Number of the node.
        node: u32,
    },
    /// A node of a `BonnMotion` file.
    #[serde(rename = "bonnmotion")]
    BonnMotion {
        /// The file.
        text: String,
        /// Number of the node, the first is 0.
        node: u32,
        /// True if lines contain a height after x and y.
        solid: bool,
    },
}

fn check_area(area: &Area) -> Result<(), SettingsError> {
    within("area.width", area.width, 1e-3, 1e9)?;
    within("area.height", area.height, 1e-3, 1e9)?;
    check_place(area.corner)
}

fn check_place(place: Position) -> Result<(), SettingsError> {
    [place.x, place.y, place.z].into_iter().try_for_each(|value| within("position", value, -1e9, 1e9))
}

/// Checks a range of two values, the lower first.
fn check_pair(setting: &'static str, pair: [f64; 2], low: f64, high: f64) -> Result<(), SettingsError> {
    within(setting, pair[0], low, high)?;
    within(setting, pair[1], pair[0], high)
}

/// Shortest time in which a random motion may cross its area, in seconds: the mean leg of a random
/// waypoint takes about half of it, and each leg that ends between two looks at a position is drawn.
const SHORTEST_CROSSING_S: f64 = 0.01;

/// Checks that a node does not cross `size` metres in less than [`SHORTEST_CROSSING_S`].
fn check_crossing(setting: &'static str, speed: f64, size: f64) -> Result<(), SettingsError> {
    within(setting, speed, 0.0, size / SHORTEST_CROSSING_S)
}

impl MobilitySettings {
    /// Builds the mobility model of the node `name` in the run with this `seed`.
    ///
    /// # Errors
    /// Names the first invalid setting, or the first invalid line of a trace.
    pub fn build(&self, seed: u64, name: &str) -> Result<Box<dyn Mobility>, SettingsError> {
        let random = || Stream::named(seed, &format!("{name}/motion"));
        Ok(match self {
            Self::Static(place) => {
                check_place(*place)?;
                Box::new(Static(*place))
            }
            Self::Velocity { start, velocity } => {
                check_place(*start)?;
                within("velocity", velocity.length(), 0.0, 1e5)?;
                Box::new(ConstantVelocity { start: *start, velocity: *velocity })
            }
            Self::RandomWaypoint { area, speed, rest_s } => {
                check_area(area)?;
                check_pair("random-waypoint.speed", *speed, 1e-3, 1e5)?;
                check_crossing("random-waypoint.speed", speed[1], area.width.max(area.height))?;
                check_pair("random-waypoint.rest_s", *rest_s, 0.0, 1e9)?;
                RandomWaypoint::start(*area, *speed, *rest_s, random())
            }
            Self::RandomWalk { area, speed, interval_s } => {
                check_area(area)?;
                check_pair("random-walk.speed", *speed, 0.0, 1e5)?;
                within("random-walk.interval_s", *interval_s, 1e-3, 1e9)?;
                RandomWalk::start(*area, *speed, *interval_s, random())
            }
            Self::GaussMarkov { area, memory, speed, direction_sigma, interval_s } => {
                check_area(area)?;
                within("gauss-markov.memory", *memory, 0.0, 1.0)?;
                within("gauss-markov.speed", speed[0], 0.0, 1e5)?;
                within("gauss-markov.speed", speed[1], 0.0, 1e5)?;
                within("gauss-markov.direction_sigma", *direction_sigma, 0.0, 100.0)?;
                within("gauss-markov.interval_s", *interval_s, 1e-3, 1e9)?;
                GaussMarkov::start(
                    *area,
                    *memory,
                    (speed[0], speed[1]),
                    *direction_sigma,
                    *interval_s,
                    random(),
                )
            }
            Self::Group { name: group, reference, radius_m, speed } => {
                within("group.radius_m", *radius_m, 0.0, 1e6)?;
                within("group.speed", *speed, 0.0, 1e5)?;
                if *radius_m > 0.0 {
                    check_crossing("group.speed", *speed, 2.0 * radius_m)?;
                }
                let reference = reference.build(seed, &format!("group {group}"))?;
                Box::new(GroupMember::new(reference, *radius_m, *speed, random()))
            }
            Self::Path(points) => {
                let points = points.iter().map(|(at, place)| (Instant::from_nanos(*at), *place)).collect();
                Box::new(Path::new(points)?)
            }
            Self::Ns2 { text, node } => Box::new(pick(traces::ns2(text)?, *node)?),
            Self::BonnMotion { text, node, solid } => {
                Box::new(pick(traces::bonnmotion(text, *solid)?, *node)?)
            }
        })
    }
}

fn pick(mut paths: BTreeMap<u32, traces::Traced>, node: u32) -> Result<Path, SettingsError> {
    let known = paths.len();
    paths.remove(&node).map(|traced| traced.path).ok_or(SettingsError::TraceNode { node, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_motion_can_be_built() {
        let area = Area { corner: Position::default(), width: 100.0, height: 50.0 };
        let waypoint = MobilitySettings::RandomWaypoint { area, speed: [1.0, 2.0], rest_s: [0.0, 3.0] };
        let motions = [
            MobilitySettings::Static(Position::default()),
            MobilitySettings::Velocity { start: Position::default(), velocity: Position::new(1.0, 0.0, 0.0) },
            waypoint.clone(),
            MobilitySettings::RandomWalk { area, speed: [0.0, 2.0], interval_s: 1.0 },
            MobilitySettings::GaussMarkov {
                area,
                memory: 0.8,
                speed: [2.0, 0.5],
                direction_sigma: 0.4,
                interval_s: 1.0,
            },
            MobilitySettings::Group {
                name: "g".into(),
                reference: Box::new(waypoint),
                radius_m: 5.0,
                speed: 1.0,
            },
            MobilitySettings::Path(vec![(0, Position::default()), (5, Position::new(0.0, 0.0, 1e-9))]),
            MobilitySettings::Ns2 { text: "$node_(3) set X_ 5".into(), node: 3 },
            MobilitySettings::BonnMotion { text: "0 1 2".into(), node: 0, solid: false },
        ];
        for motion in &motions {
            let mut built = motion.build(1, "n").expect("a motion");
            assert!(built.position(Instant::from_nanos(7_000_000_000)).is_sane(), "{motion:?}");
        }
        let missing = MobilitySettings::BonnMotion { text: "0 1 2".into(), node: 1, solid: false };
        assert_eq!(missing.build(1, "n").err(), Some(SettingsError::TraceNode { node: 1, known: 1 }));
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let area = Area { corner: Position::default(), width: 100.0, height: 50.0 };
        let still = MobilitySettings::RandomWaypoint { area, speed: [0.0, 2.0], rest_s: [0.0, 0.0] };
        assert!(still.build(1, "n").err().expect("refused").to_string().contains("speed"));
    }

    #[test]
    fn a_motion_of_countless_legs_is_refused() {
        let place = || Box::new(MobilitySettings::Static(Position::default()));
        let waypoint = |side: f64, speed: f64| {
            let area = Area { corner: Position::default(), width: side, height: side };
            MobilitySettings::RandomWaypoint { area, speed: [1.0, speed], rest_s: [0.0, 0.0] }
        };
        let group = |radius_m: f64, speed: f64| MobilitySettings::Group {
            name: "g".into(),
            reference: place(),
            radius_m,
            speed,
        };
        for good in [waypoint(1.0, 100.0), group(0.5, 100.0), group(0.0, 100.0)] {
            let mut motion = good.build(1, "n").expect("a motion");
            assert!(motion.position(Instant::from_nanos(3_600_000_000_000)).is_sane());
        }
        for bad in [waypoint(1e-3, 1e5), waypoint(1.0, 101.0), group(1e-6, 1e5), group(0.5, 101.0)] {
            let error = bad.build(1, "n").err().expect("refused");
            assert!(error.to_string().contains("speed"), "{error}");
        }
    }
}
