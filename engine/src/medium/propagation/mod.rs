//! Propagation models: attenuation of a signal between two places.
//!
//! A [`PathLoss`] gives the loss in dB between two sites. Models compose: a distance law, with
//! [`Shadowing`] and [`Walls`] on top. [`Fading`] varies the result from frame to frame.

mod cost231;
mod disk;
mod fading;
mod friis;
mod itu_indoor;
mod log_distance;
mod matrix;
mod shadowing;
mod two_ray;
mod walls;

pub use cost231::{City, Cost231};
pub use disk::Disk;
pub use fading::Fading;
pub use friis::Friis;
pub use itu_indoor::{Building, ItuIndoor};
pub use log_distance::LogDistance;
pub use matrix::{Matrix, MatrixError, MatrixKind};
pub use shadowing::Shadowing;
pub use two_ray::TwoRay;
pub use walls::{Wall, Walls};

use super::mobility::Position;

/// Speed of light in vacuum, m/s.
pub const LIGHT: f64 = 299_792_458.0;

/// One end of a path.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Number of the radio, for models that depend on the pair.
    pub radio: u32,
    /// Position of its antenna.
    pub position: Position,
}

/// Path loss between two sites.
pub trait PathLoss: Send + Sync {
    /// Loss in dB from `from` to `to` at `hertz`; infinite if there is no path.
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64;

    /// A distance in metres beyond which the loss certainly exceeds `budget_db`; `None` if the
    /// model has no such bound (every pair is then evaluated).
    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64>;
}

/// Solves a loss that grows with distance for the distance, by bisection, rounded up slightly.
pub(crate) fn solve_reach(budget_db: f64, loss_db: impl Fn(f64) -> f64) -> f64 {
    const FARTHEST: f64 = 1e8;
    if loss_db(FARTHEST) <= budget_db {
        return FARTHEST;
    }
    let (mut near, mut far) = (1e-3, FARTHEST);
    if loss_db(near) > budget_db {
        return near;
    }
    for _ in 0..80 {
        let middle = (near * far).sqrt();
        if loss_db(middle) > budget_db { far = middle } else { near = middle }
    }
    far * 1.001
}

impl PathLoss for Box<dyn PathLoss> {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        (**self).loss_db(from, to, hertz)
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        (**self).reach_m(budget_db, hertz)
    }
}
