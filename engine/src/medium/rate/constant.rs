//! Constant rate.

use super::RateControl;
use crate::random::Stream;
use crate::time::Instant;

/// Always selects the rate with this index.
#[derive(Clone, Copy, Debug)]
pub struct Constant(pub u8);

impl RateControl for Constant {
    fn choose(&mut self, _peer: u32, _tries: u32, _now: Instant, _dice: &mut Stream) -> u8 {
        self.0
    }

    fn report(&mut self, _peer: u32, _rate: u8, _tries: u32, _acknowledged: bool, _now: Instant) {}
}
