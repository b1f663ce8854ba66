//! Runs the body of the fuzz target for guest channels on its seeds, on damaged
//! seeds, and on random octets.

#[path = "../../fuzz/src/guest.rs"]
mod guest;

use std::path::Path;

use proptest::prelude::*;

fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/guest");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the seeds are there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("readable")).collect()
}

#[test]
fn every_seed_passes() {
    let seeds = seeds();
    assert!(seeds.len() > 5);
    seeds.iter().for_each(|seed| guest::run(seed));
}

proptest! {
    #[test]
    fn a_damaged_seed_passes(
        pick in any::<prop::sample::Index>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let seeds = seeds();
        let mut seed = pick.get(&seeds).clone();
        for (place, octet) in damage {
            let place = place.index(seed.len());
            seed[place] = octet;
        }
        guest::run(&seed);
    }

    #[test]
    fn noise_passes(noise in proptest::collection::vec(any::<u8>(), 0..400)) {
        guest::run(&noise);
    }
}
