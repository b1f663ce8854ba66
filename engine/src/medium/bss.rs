//! Who belongs together: an independent cell, in which everybody talks to everybody in range.

use super::Medium;
use super::radio::To;

impl Medium {
    /// Whom a node's frame is for on the air.
    pub(super) fn address(&self, octets: &[u8]) -> To {
        let Some(Ok(address)) = octets.get(..6).map(<[u8; 6]>::try_from) else { return To::Nobody };
        if address[0] & 1 == 1 {
            return To::Group;
        }
        self.addresses.get(&address).map_or(To::Nobody, |radio| To::Radio(*radio))
    }
}
