//! Settings of a medium, in plain numbers.

use serde::{Deserialize, Serialize};

use crate::math;
use crate::medium::error::{ErrorModel, Fixed, Standard, Table};
use crate::medium::mobility::Position;
use crate::medium::phy::tables;
use crate::medium::propagation::{
    Building, City, Cost231, Disk, Fading, Friis, ItuIndoor, LogDistance, Matrix, MatrixKind, PathLoss,
    Shadowing, TwoRay, Wall, Walls,
};
use crate::medium::reach::leakage::LeakageSettings;
use crate::medium::settings::error::SettingsError;
use crate::medium::settings::range::within;
use crate::medium::uncontended::AccessSettings;
use crate::medium::{FLOOR_DBM, Medium};
use crate::random::Stream;

/// A medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MediumSettings {
    /// Channel access; without it, of all settings only this one applies.
    pub access: AccessSettings,
    /// Path loss, by distance or by pair.
    pub loss: LossSettings,
    /// Shadowing, added to the path loss.
    pub shadowing: Option<ShadowingSettings>,
    /// Walls, added to the path loss.
    pub walls: Vec<WallSettings>,
    /// Fading from frame to frame.
    pub fading: FadingSettings,
    /// Bit error model.
    pub errors: ErrorSettings,
    /// Signals weaker than this at a receiver are ignored, dBm, -150 to 0.
    pub floor_dbm: f64,
    /// Leakage between channels at 5 GHz; none by default.
    pub leakage: Option<LeakageSettings>,
    /// Loss in dB between radios at one place, 0 to 200; by default that of `loss`.
    pub antenna_isolation_db: Option<f64>,
}

/// Path loss, by distance or by pair. Formulas: [`super::propagation`].
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
        /// Loss there in dB; `None` for that of free space.
        reference_db: Option<f64>,
    },
    /// [`TwoRay`].
    TwoRay {
        /// Least antenna height in metres.
        lowest_m: f64,
    },
    /// [`ItuIndoor`].
    ItuIndoor {
        /// Kind of building.
        building: Building,
        /// Height of a storey in metres.
        storey_m: f64,
    },
    /// [`Cost231`].
    Cost231 {
        /// Kind of city.
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
        /// Meaning of its numbers.
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
    /// Loss in dB of a signal that passes through it, 0 to 200.
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

/// Bit error model; see [`super::error`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ErrorSettings {
    /// By SINR, for each modulation and code.
    Standard,
    /// A constant probability, 0 to 1.
    Fixed {
        /// Probability that a bit fails.
        bit_error: f64,
    },
    /// By measured curves; a rate without a curve follows the standard model.
    Table(Vec<CurveSettings>),
}

/// Frame error rate as a function of SINR, for one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSettings {
    /// Physical layer by name.
    pub phy: String,
    /// Rate in bit/s.
    pub rate: u64,
    /// Octets of the measured frames.
    pub octets: u32,
    /// Ratios in dB, ascending, with frame error rates of 0 to 1.
    pub points: Vec<(f64, f64)>,
}

impl Default for MediumSettings {
    fn default() -> Self {
        Self {
            access: AccessSettings::Dcf,
            loss: LossSettings::FreeSpace,
            shadowing: None,
            walls: Vec::new(),
            fading: FadingSettings::None,
            errors: ErrorSettings::Standard,
            floor_dbm: FLOOR_DBM,
            leakage: None,
            antenna_isolation_db: None,
        }
    }
}

impl LossSettings {
    fn build(&self) -> Result<Box<dyn PathLoss>, SettingsError> {
        Ok(match *self {
            Self::FreeSpace => Box::new(Friis),
            Self::LogDistance { exponent, reference_m, reference_db } => {
                within("log-distance.exponent", exponent, 0.1, 10.0)?;
                within("log-distance.reference_m", reference_m, 1e-3, 1e6)?;
                within("log-distance.reference_db", reference_db.unwrap_or(0.0), -50.0, 300.0)?;
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
    /// Builds the medium `name` for the run with this `seed`, without radios.
    ///
    /// # Errors
    /// Names the first invalid setting.
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
            let mut random = Stream::named(seed, &format!("{name}/shadowing"));
            loss = Box::new(Shadowing::new(loss, sigma_db, decorrelation_m, &mut random));
        }
        within("floor_dbm", self.floor_dbm, -150.0, 0.0)?;
        let mut medium = Medium::new(seed, name, loss);
        medium.set_access(&self.access)?;
        medium.set_floor(self.floor_dbm);
        medium.set_fading(match self.fading {
            FadingSettings::None => Fading::None,
            FadingSettings::Rayleigh => Fading::Rayleigh,
            FadingSettings::Rician { k_db } => {
                within("fading.rician.k_db", k_db, -20.0, 40.0)?;
                Fading::Rician { k: math::linear(k_db) }
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
        if let Some(leakage) = self.leakage {
            medium.set_leakage(leakage.build()?);
        }
        if let Some(loss_db) = self.antenna_isolation_db {
            within("antenna_isolation_db", loss_db, 0.0, 200.0)?;
            medium.set_antenna_isolation(Some(loss_db));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_can_be_built() {
        let laws = [
            LossSettings::FreeSpace,
            LossSettings::LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.7) },
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
        let loss =
            LossSettings::LogDistance { exponent: f64::NAN, reference_m: 1.0, reference_db: Some(46.7) };
        let refused = MediumSettings { loss, ..MediumSettings::default() }.build(1, "air").err();
        let told = refused.expect("refused").to_string();
        assert!(told.contains("log-distance.exponent"), "{told}");
    }
}
