//! Where nodes are, as continuous functions of time.
//!
//! No model moves in ticks: whoever needs a position asks for it at an exact instant. Random
//! models draw their next leg when time reaches it, each from its own stream.

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

/// A motion.
pub trait Mobility: Send {
    /// Where it is at `at`. Instants never go back from one call to the next.
    fn position(&mut self, at: Instant) -> Position;

    /// A speed in m/s that is never exceeded; 0 for something that never moves.
    fn top_speed(&self) -> f64;
}

/// Seconds since the start of the run.
#[allow(clippy::cast_precision_loss)] // below a microsecond after a century
pub(crate) fn seconds(at: Instant) -> f64 {
    at.nanos() as f64 * 1e-9
}
