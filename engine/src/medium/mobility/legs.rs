//! Random motion in legs: consecutive straight lines at constant speed.

use super::{Mobility, Position};
use crate::random::Stream;
use crate::time::{Instant, Span};

/// The area of random models: a rectangle, at a constant height.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// Its corner with the lowest coordinates; `z` is the height of nodes in the area.
    pub corner: Position,
    /// Metres along x.
    pub width: f64,
    /// Metres along y.
    pub height: f64,
}

impl Area {
    /// A place drawn uniformly.
    pub fn place(&self, random: &mut Stream) -> Position {
        self.corner + Position::new(self.width * random.unit(), self.height * random.unit(), 0.0)
    }

    /// Reflects a place outside the area at its borders. Also returns, for both axes, whether the
    /// direction is reflected.
    #[must_use]
    pub fn fold(&self, place: Position) -> (Position, [bool; 2]) {
        let axis = |value: f64, low: f64, size: f64| {
            let turned = (value - low).rem_euclid(2.0 * size);
            if turned > size { (low + 2.0 * size - turned, true) } else { (low + turned, false) }
        };
        let (x, mirrored_x) = axis(place.x, self.corner.x, self.width);
        let (y, mirrored_y) = axis(place.y, self.corner.y, self.height);
        (Position { x, y, ..place }, [mirrored_x, mirrored_y])
    }
}

/// One leg.
#[derive(Clone, Copy, Debug)]
pub struct Leg {
    /// Metres per second along each axis.
    pub velocity: Position,
    /// Duration of the leg.
    pub span: Span,
}

impl Leg {
    /// A leg from one place to another at `speed` m/s.
    #[must_use]
    pub fn towards(from: Position, to: Position, speed: f64) -> Self {
        let seconds = from.distance(to) / speed;
        if seconds <= 0.0 {
            return Self::rest(0.0);
        }
        Self { velocity: (to - from) * (1.0 / seconds), span: span(seconds) }
    }

    /// A pause of so many seconds.
    #[must_use]
    pub fn rest(seconds: f64) -> Self {
        Self { velocity: Position::default(), span: span(seconds) }
    }
}

fn span(seconds: f64) -> Span {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    Span::from_nanos((seconds * 1e9).round() as u64)
}

/// A model that draws consecutive legs.
pub trait Walker: Send {
    /// Draws the leg that starts at `from`.
    fn next(&mut self, from: Position, random: &mut Stream) -> Leg;

    /// Maps a place on the leg to the real place, for models that reflect at the border.
    fn bound(&self, place: Position) -> Position {
        place
    }

    /// Reports that the end of a leg was reached at `place`, before reflection.
    fn arrived(&mut self, _place: Position) {}

    /// Upper bound of the speed in m/s.
    fn top_speed(&self) -> f64;
}

/// A walker in motion.
pub struct Legs<W> {
    walker: W,
    random: Stream,
    from: Position,
    start: Instant,
    leg: Leg,
}

impl<W: Walker> Legs<W> {
    /// Starts at `from` at the start of the run, with `leg` if given.
    pub fn new(mut walker: W, mut random: Stream, from: Position, leg: Option<Leg>) -> Self {
        let leg = leg.unwrap_or_else(|| walker.next(from, &mut random));
        Self { walker, random, from, start: Instant::ZERO, leg }
    }
}

impl<W: Walker> Mobility for Legs<W> {
    fn position(&mut self, at: Instant) -> Position {
        // A walker whose legs take no time must not stop the simulation.
        let mut idle = 0;
        while self.start + self.leg.span <= at && idle < 1000 {
            idle = if self.leg.span == Span::ZERO { idle + 1 } else { 0 };
            let end = self.from + self.leg.velocity * seconds(self.leg.span);
            self.start += self.leg.span;
            self.from = self.walker.bound(end);
            self.walker.arrived(end);
            self.leg = self.walker.next(self.from, &mut self.random);
        }
        self.walker.bound(self.from + self.leg.velocity * seconds(at.since(self.start)))
    }

    fn top_speed(&self) -> f64 {
        self.walker.top_speed()
    }
}

#[allow(clippy::cast_precision_loss)] // nanometres
fn seconds(span: Span) -> f64 {
    span.nanos() as f64 * 1e-9
}
