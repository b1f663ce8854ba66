//! Loss of walls between two places.

use super::{PathLoss, Site};
use crate::medium::mobility::Position;

/// A straight wall in the plane, from floor to ceiling.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    /// One end; only x and y count.
    pub from: Position,
    /// The other end.
    pub to: Position,
    /// Loss of a signal that passes through it, dB.
    pub loss_db: f64,
}

/// Adds the loss of every wall between the two ends to another model.
///
/// Source: the multi-wall model, COST Action 231 final report 1999, 4.7.2, without its floor
/// term. Range: straight rays; typical losses 3 dB (light) to 12 dB (brick, concrete).
pub struct Walls<L> {
    /// The model without walls.
    pub inner: L,
    /// The walls.
    pub walls: Vec<Wall>,
}

/// True if segments p-q and a-b cross properly (touching ends don't count).
fn cross(p: Position, q: Position, a: Position, b: Position) -> bool {
    let side = |o: Position, u: Position, v: Position| (u.x - o.x) * (v.y - o.y) - (u.y - o.y) * (v.x - o.x);
    side(p, q, a) * side(p, q, b) < 0.0 && side(a, b, p) * side(a, b, q) < 0.0
}

impl<L: PathLoss> PathLoss for Walls<L> {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        let between = |wall: &&Wall| cross(from.position, to.position, wall.from, wall.to);
        let walls: f64 = self.walls.iter().filter(between).map(|wall| wall.loss_db).sum();
        self.inner.loss_db(from, to, hertz) + walls
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        self.inner.reach_m(budget_db, hertz)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Friis;
    use super::*;

    #[test]
    fn only_walls_between_count() {
        let wall =
            |x: f64| Wall { from: Position::new(x, -5.0, 0.0), to: Position::new(x, 5.0, 0.0), loss_db: 7.0 };
        let walls = Walls { inner: Friis, walls: vec![wall(1.0), wall(2.0), wall(9.0)] };
        let site = |x, y| Site { radio: 0, position: Position::new(x, y, 0.0) };
        let extra = |from: Site, to: Site| walls.loss_db(from, to, 1e9) - Friis.loss_db(from, to, 1e9);
        assert!((extra(site(0.0, 0.0), site(3.0, 0.0)) - 14.0).abs() < 1e-9);
        assert!((extra(site(1.5, 0.0), site(3.0, 0.0)) - 7.0).abs() < 1e-9);
        assert!(extra(site(0.0, 6.0), site(3.0, 6.0)).abs() < 1e-9);
    }
}
