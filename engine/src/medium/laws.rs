//! What a scenario can say about a medium and about motion, in plain numbers.

use serde::{Deserialize, Serialize};

use super::error::{ErrorModel, Fixed, Standard, Table};
use super::mobility::{
    Area, ConstantVelocity, GaussMarkov, GroupMember, Mobility, Path, Position, RandomWalk, RandomWaypoint,
    Static, traces,
};
use super::phy::tables;
use super::propagation::{
    Building, City, Cost231, Disk, Fading, Friis, ItuIndoor, LogDistance, Matrix, MatrixKind, PathLoss,
    Shadowing, TwoRay, Wall, Walls,
};
use super::settings::SettingsError;
use super::{FLOOR_DBM, Medium};
use crate::random::Stream;
use crate::time::Instant;

/// A medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MediumSettings {
    /// Loss with distance, or by pair.
    pub loss: LossSettings,
    /// Shadowing on top of it.
    pub shadowing: Option<ShadowingSettings>,
    /// Walls on top of it.
    pub walls: Vec<WallSettings>,
    /// Fading from frame to frame.
    pub fading: FadingSettings,
    /// How bits fail.
    pub errors: ErrorSettings,
    /// Signals weaker than this at a receiver are ignored, dBm, -150 to 0.
    pub floor_dbm: f64,
}

/// Loss with distance, or by pair. Formulas: [`super::propagation`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossSettings {
    /// [`Friis`].
    FreeSpace,
    /// [`LogDistance`].
    LogDistance {
        /// Exponent, 0 to 10.
        exponent: f64,
        /// Reference distance in metres.
        reference_m: f64,
        /// Loss there in dB.
        reference_db: f64,
    },
    /// [`TwoRay`].
    TwoRay {
        /// Least antenna height in metres.
        lowest_m: f64,
    },
    /// [`ItuIndoor`].
    ItuIndoor {
        /// What kind of building.
        building: Building,
        /// Height of a storey in metres.
        storey_m: f64,
    },
    /// [`Cost231`].
    Cost231 {
        /// What kind of city.
        city: City,
    },
    /// [`Disk`].
    Disk {
        /// Range in metres.
        range_m: f64,
        /// Loss within it in dB.
        loss_db: f64,
    },
    /// [`Matrix`], as text; see [`Matrix::parse`].
    Matrix {
        /// The text.
        text: String,
        /// What its numbers mean.
        kind: MatrixKind,
        /// Names of the radios in the order in which they will be added.
        radios: Vec<String>,
    },
}

/// See [`Shadowing`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShadowingSettings {
    /// Standard deviation in dB, 0 to 30.
    pub sigma_db: f64,
    /// Distance in metres over which the correlation falls to 1/e.
    pub decorrelation_m: f64,
}

/// See [`Wall`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WallSettings {
    /// One end, x and y in metres.
    pub from: [f64; 2],
    /// The other end.
    pub to: [f64; 2],
    /// Loss in dB of what passes it, 0 to 200.
    pub loss_db: f64,
}

/// See [`Fading`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FadingSettings {
    /// None.
    None,
    /// Rayleigh.
    Rayleigh,
    /// Rician, with the ratio of direct to scattered power in dB, -20 to 40.
    Rician {
        /// The ratio.
        k_db: f64,
    },
    /// Nakagami, with shape 0.5 to 100.
    Nakagami {
        /// The shape.
        m: f64,
    },
}

/// How bits fail; see [`super::error`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ErrorSettings {
    /// By signal to interference and noise, for each modulation and code.
    Standard,
    /// Always with the same probability, 0 to 1.
    Fixed {
        /// Probability that a bit fails.
        bit_error: f64,
    },
    /// By measured curves; a rate that has none follows the standard.
    Table(Vec<CurveSettings>),
}

/// Frame error rate against the ratio of signal to interference and noise, for one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSettings {
    /// Physical layer by name.
    pub phy: String,
    /// Rate in bit/s.
    pub rate: u64,
    /// Octets of the frames that it was measured with.
    pub octets: u32,
    /// Ratios in dB, ascending, with frame error rates of 0 to 1.
    pub points: Vec<(f64, f64)>,
}

impl Default for MediumSettings {
    fn default() -> Self {
        Self {
            loss: LossSettings::FreeSpace,
            shadowing: None,
            walls: Vec::new(),
            fading: FadingSettings::None,
            errors: ErrorSettings::Standard,
            floor_dbm: FLOOR_DBM,
        }
    }
}

/// A motion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MobilitySettings {
    /// At rest.
    Static(Position),
    /// Straight on.
    Velocity {
        /// Place at the start of the run.
        start: Position,
        /// Metres per second along each axis.
        velocity: Position,
    },
    /// [`RandomWaypoint`].
    RandomWaypoint {
        /// Where.
        area: Area,
        /// Least and greatest speed in m/s, above 0.
        speed: [f64; 2],
        /// Least and greatest rest in seconds.
        rest_s: [f64; 2],
    },
    /// [`RandomWalk`].
    RandomWalk {
        /// Where.
        area: Area,
        /// Least and greatest speed in m/s.
        speed: [f64; 2],
        /// Seconds between turns.
        interval_s: f64,
    },
    /// [`GaussMarkov`].
    GaussMarkov {
        /// Where.
        area: Area,
        /// Memory, 0 to 1.
        memory: f64,
        /// Mean speed in m/s and its standard deviation.
        speed: [f64; 2],
        /// Standard deviation of the direction in radians.
        direction_sigma: f64,
        /// Seconds between turns.
        interval_s: f64,
    },
    /// [`GroupMember`].
    Group {
        /// Name of the group: members with one name and one reference move together.
        name: String,
        /// Motion of the reference.
        reference: Box<MobilitySettings>,
        /// Metres that a member may be away from it.
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
        /// With a height after x and y.
        solid: bool,
    },
}

/// Refuses a value outside its range.
fn within(setting: &'static str, value: f64, low: f64, high: f64) -> Result<(), SettingsError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        let value = value.to_string();
        Err(SettingsError::Law { setting, value, range: format!("{low} to {high}") })
    }
}

impl LossSettings {
    fn build(&self) -> Result<Box<dyn PathLoss>, SettingsError> {
        Ok(match *self {
            Self::FreeSpace => Box::new(Friis),
            Self::LogDistance { exponent, reference_m, reference_db } => {
                within("log-distance.exponent", exponent, 0.1, 10.0)?;
                within("log-distance.reference_m", reference_m, 1e-3, 1e6)?;
                within("log-distance.reference_db", reference_db, -50.0, 300.0)?;
                Box::new(LogDistance { exponent, reference_m, reference_db })
            }
            Self::TwoRay { lowest_m } => {
                within("two-ray.lowest_m", lowest_m, 0.01, 1e4)?;
                Box::new(TwoRay { lowest_m })
            }
            Self::ItuIndoor { building, storey_m } => {
                within("itu-indoor.storey_m", storey_m, 1.0, 100.0)?;
                Box::new(ItuIndoor { building, storey_m })
            }
            Self::Cost231 { city } => Box::new(Cost231 { city }),
            Self::Disk { range_m, loss_db } => {
                within("disk.range_m", range_m, 0.0, 1e9)?;
                within("disk.loss_db", loss_db, 0.0, 300.0)?;
                Box::new(Disk { range_m, loss_db })
            }
            Self::Matrix { ref text, kind, ref radios } => {
                let number = |name: &str| radios.iter().position(|radio| radio == name);
                Box::new(Matrix::parse(text, kind, |name| u32::try_from(number(name)?).ok())?)
            }
        })
    }
}

impl MediumSettings {
    /// The medium called `name` in the run with this `seed`, without radios.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn build(&self, seed: u64, name: &str) -> Result<Medium, SettingsError> {
        let mut loss = self.loss.build()?;
        if !self.walls.is_empty() {
            for wall in &self.walls {
                within("walls.loss_db", wall.loss_db, 0.0, 200.0)?;
                for value in wall.from.into_iter().chain(wall.to) {
                    within("walls", value, -1e9, 1e9)?;
                }
            }
            let end = |[x, y]: [f64; 2]| Position::new(x, y, 0.0);
            let walls = self.walls.iter();
            let walls =
                walls.map(|wall| Wall { from: end(wall.from), to: end(wall.to), loss_db: wall.loss_db });
            loss = Box::new(Walls { inner: loss, walls: walls.collect() });
        }
        if let Some(ShadowingSettings { sigma_db, decorrelation_m }) = self.shadowing {
            within("shadowing.sigma_db", sigma_db, 0.0, 30.0)?;
            within("shadowing.decorrelation_m", decorrelation_m, 0.1, 1e5)?;
            let mut dice = Stream::named(seed, &format!("{name}/shadowing"));
            loss = Box::new(Shadowing::new(loss, sigma_db, decorrelation_m, &mut dice));
        }
        within("floor_dbm", self.floor_dbm, -150.0, 0.0)?;
        let mut medium = Medium::new(seed, name, loss);
        medium.set_floor(self.floor_dbm);
        medium.set_fading(match self.fading {
            FadingSettings::None => Fading::None,
            FadingSettings::Rayleigh => Fading::Rayleigh,
            FadingSettings::Rician { k_db } => {
                within("fading.rician.k_db", k_db, -20.0, 40.0)?;
                Fading::Rician { k: 10f64.powf(k_db / 10.0) }
            }
            FadingSettings::Nakagami { m } => {
                within("fading.nakagami.m", m, 0.5, 100.0)?;
                Fading::Nakagami { m }
            }
        });
        let errors: Box<dyn ErrorModel> = match &self.errors {
            ErrorSettings::Standard => Box::new(Standard),
            ErrorSettings::Table(curves) => Box::new(table(curves)?),
            &ErrorSettings::Fixed { bit_error } => {
                within("errors.fixed.bit_error", bit_error, 0.0, 1.0)?;
                Box::new(Fixed { bit_error })
            }
        };
        medium.set_error_model(errors);
        Ok(medium)
    }
}

fn table(curves: &[CurveSettings]) -> Result<Table, SettingsError> {
    let mut table = Table::default();
    for curve in curves {
        let wrong = |range: &str| SettingsError::Law {
            setting: "errors.table",
            value: format!("{} at {} bit/s", curve.phy, curve.rate),
            range: range.to_owned(),
        };
        let phy = tables::by_name(&curve.phy).ok_or_else(|| wrong("the physical layers"))?;
        let rate = phy.rate_index(curve.rate).ok_or_else(|| wrong("the rates of its physical layer"))?;
        let rate = &phy.rates[usize::from(rate)];
        if !table.add(rate.modulation, rate.coding, curve.octets, curve.points.clone()) {
            return Err(wrong("curves with ascending ratios and frame error rates of 0 to 1"));
        }
    }
    Ok(table)
}

fn check_area(area: &Area) -> Result<(), SettingsError> {
    within("area.width", area.width, 1e-3, 1e9)?;
    within("area.height", area.height, 1e-3, 1e9)?;
    check_place(area.corner)
}

fn check_place(place: Position) -> Result<(), SettingsError> {
    [place.x, place.y, place.z].into_iter().try_for_each(|value| within("position", value, -1e9, 1e9))
}

/// A range of two values, the lower first.
fn check_pair(setting: &'static str, pair: [f64; 2], low: f64, high: f64) -> Result<(), SettingsError> {
    within(setting, pair[0], low, high)?;
    within(setting, pair[1], pair[0], high)
}

impl MobilitySettings {
    /// The motion of the node called `name` in the run with this `seed`.
    ///
    /// # Errors
    /// The first setting, or the first line of a trace, that cannot work.
    pub fn build(&self, seed: u64, name: &str) -> Result<Box<dyn Mobility>, SettingsError> {
        let dice = || Stream::named(seed, &format!("{name}/motion"));
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
                check_pair("random-waypoint.rest_s", *rest_s, 0.0, 1e9)?;
                RandomWaypoint::start(*area, *speed, *rest_s, dice())
            }
            Self::RandomWalk { area, speed, interval_s } => {
                check_area(area)?;
                check_pair("random-walk.speed", *speed, 0.0, 1e5)?;
                within("random-walk.interval_s", *interval_s, 1e-3, 1e9)?;
                RandomWalk::start(*area, *speed, *interval_s, dice())
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
                    dice(),
                )
            }
            Self::Group { name: group, reference, radius_m, speed } => {
                within("group.radius_m", *radius_m, 0.0, 1e6)?;
                within("group.speed", *speed, 0.0, 1e5)?;
                let reference = reference.build(seed, &format!("group {group}"))?;
                Box::new(GroupMember::new(reference, *radius_m, *speed, dice()))
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

fn pick(mut paths: std::collections::BTreeMap<u32, Path>, node: u32) -> Result<Path, SettingsError> {
    let known = paths.len();
    paths.remove(&node).ok_or(SettingsError::TraceNode { node, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_motion_and_every_law_can_be_built() {
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
        let laws = [
            LossSettings::FreeSpace,
            LossSettings::LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: 46.7 },
            LossSettings::TwoRay { lowest_m: 1.5 },
            LossSettings::ItuIndoor { building: Building::Office, storey_m: 3.0 },
            LossSettings::Cost231 { city: City::Medium },
            LossSettings::Disk { range_m: 100.0, loss_db: 60.0 },
            LossSettings::Matrix { text: "a\n0".into(), kind: MatrixKind::Loss, radios: vec!["a".into()] },
        ];
        for loss in laws {
            let settings = MediumSettings {
                loss,
                shadowing: Some(ShadowingSettings { sigma_db: 4.0, decorrelation_m: 20.0 }),
                walls: vec![WallSettings { from: [0.0, 0.0], to: [1.0, 1.0], loss_db: 5.0 }],
                fading: FadingSettings::Nakagami { m: 2.0 },
                ..MediumSettings::default()
            };
            settings.build(1, "air").expect("a medium");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let loss = LossSettings::LogDistance { exponent: f64::NAN, reference_m: 1.0, reference_db: 46.7 };
        let refused = MediumSettings { loss, ..MediumSettings::default() }.build(1, "air").err();
        let told = refused.expect("refused").to_string();
        assert!(told.contains("log-distance.exponent"), "{told}");
        let area = Area { corner: Position::default(), width: 100.0, height: 50.0 };
        let still = MobilitySettings::RandomWaypoint { area, speed: [0.0, 2.0], rest_s: [0.0, 0.0] };
        assert!(still.build(1, "n").err().expect("refused").to_string().contains("speed"));
    }
}
