//! A hash table of a fixed number of places in sets of eight: the set-associative hashing of CAKE.
//!
//! A hash names a set. Its owner keeps a place of the set while it uses it, and gets the same one back
//! if nobody took it meanwhile. Two owners share a place only if all eight of their set are used:
//! with 1024 places and 100 flows that hardly happens, where plain hashing has some five collisions.

/// Places of a table.
pub(super) const PLACES: usize = 1024;
const WAYS: usize = 8;

/// Which hash each place belongs to, and how many use it now.
pub(super) struct Table {
    places: Vec<(u32, u32)>,
}

impl Table {
    pub fn new() -> Self {
        Self { places: vec![(0, 0); PLACES] }
    }

    /// The place of a hash: its own, a free one of its set, or one that it shares.
    pub fn find(&self, hash: u32) -> usize {
        let set = hash as usize % (PLACES / WAYS) * WAYS;
        let direct = set + (hash >> 29) as usize;
        let mut ways = core::iter::once(direct).chain(set..set + WAYS);
        let own = ways.clone().find(|&way| self.places[way] == (hash, self.places[way].1));
        let free = |way: &usize| self.places[*way].1 == 0;
        own.filter(|way| self.places[*way].1 > 0)
            .or_else(|| own.filter(free))
            .or_else(|| ways.find(free))
            .unwrap_or(direct)
    }

    /// Uses the place of a hash once more, and returns it.
    pub fn claim(&mut self, hash: u32) -> usize {
        let place = self.find(hash);
        let (owner, users) = &mut self.places[place];
        if *users == 0 {
            *owner = hash;
        }
        *users += 1;
        place
    }

    /// Ends one use of a place.
    pub fn release(&mut self, place: usize) {
        self.places[place].1 -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_owners_of_a_set_have_places_of_their_own() {
        let mut table = Table::new();
        // All in set 5, all with the same direct place.
        let hashes: Vec<u32> = (0..9).map(|number| 5 + 128 * number).collect();
        let places: Vec<usize> = hashes.iter().map(|&hash| table.claim(hash)).collect();
        let mut eight = places[..8].to_vec();
        eight.sort_unstable();
        assert_eq!(eight, (40..48).collect::<Vec<_>>());
        assert_eq!(places[8], 40, "the ninth shares");
        assert_eq!(hashes.iter().map(|&hash| table.find(hash)).collect::<Vec<_>>(), places);
        table.release(places[3]);
        assert_eq!(table.find(hashes[3]), places[3], "nobody took it");
        assert_eq!(table.claim(5 + 128 * 100), places[3], "now somebody does");
    }

    #[test]
    fn a_hundred_flows_do_not_collide() {
        let mut table = Table::new();
        let mut places: Vec<usize> =
            (1..=100_u32).map(|number| table.claim(number.wrapping_mul(0x9e37_79b1))).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 100);
    }
}
