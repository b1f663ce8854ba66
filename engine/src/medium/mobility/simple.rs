//! Rest, and constant velocity.

use super::{Mobility, Position, seconds};
use crate::time::Instant;

/// Never moves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Static(pub Position);

impl Mobility for Static {
    fn position(&mut self, _at: Instant) -> Position {
        self.0
    }

    fn top_speed(&self) -> f64 {
        0.0
    }
}

/// Constant velocity.
#[derive(Clone, Copy, Debug)]
pub struct ConstantVelocity {
    /// Position at the start of the run.
    pub start: Position,
    /// Metres per second along each axis.
    pub velocity: Position,
}

impl Mobility for ConstantVelocity {
    fn position(&mut self, at: Instant) -> Position {
        self.start + self.velocity * seconds(at)
    }

    fn top_speed(&self) -> f64 {
        self.velocity.length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_exact_at_any_instant() {
        let mut car = ConstantVelocity {
            start: Position::new(10.0, 0.0, 1.5),
            velocity: Position::new(-20.0, 5.0, 0.0),
        };
        let at = car.position(Instant::from_nanos(1_500_000_000));
        assert!((at - Position::new(-20.0, 7.5, 1.5)).length() < 1e-9);
        assert!((car.top_speed() - 425f64.sqrt()).abs() < 1e-12);
    }
}
