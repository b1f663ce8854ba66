//! Where nodes are, as continuous functions of time.
//!
//! No model moves in ticks: whoever needs a position asks for it at an exact instant. Random
//! models draw their next leg when time reaches it, each from its own stream.

mod position;
mod simple;

pub use position::Position;
pub use simple::{ConstantVelocity, Static};

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
