//! Mobility: positions of nodes as continuous functions of time.
//!
//! No model advances in ticks: the caller requests a position for an exact instant. Random models
//! draw their next leg when time reaches it, each from its own stream.

mod group;
mod legs;
mod path;
mod position;
mod simple;
pub mod traces;
mod walk;
mod waypoint;

pub use group::GroupMember;
pub use legs::{Area, Leg, Legs, Walker};
pub use path::{Path, PathError};
pub use position::Position;
pub use simple::{ConstantVelocity, Static};
pub use walk::{GaussMarkov, RandomWalk};
pub use waypoint::RandomWaypoint;

use crate::time::Instant;

/// A mobility model.
pub trait Mobility: Send {
    /// Position at `at`. Instants must not decrease from one call to the next.
    fn position(&mut self, at: Instant) -> Position;

    /// Upper bound of the speed in m/s; 0 for a model that never moves.
    fn top_speed(&self) -> f64;
}

/// Seconds since the start of the run.
#[allow(clippy::cast_precision_loss)] // below a microsecond after a century
pub(crate) fn seconds(at: Instant) -> f64 {
    at.nanos() as f64 * 1e-9
}
