//! Runs the bodies of the fuzz targets for virtio-net headers, tunnels, guest devices and messages of
//! wireless drivers on their seeds, on damaged seeds, and on random octets.

#[path = "../../fuzz/src/vnet.rs"]
mod vnet;

#[path = "../../fuzz/src/tunnel.rs"]
mod tunnel;

#[path = "../../fuzz/src/vhost.rs"]
mod vhost;

#[path = "../../fuzz/src/hwsim.rs"]
mod hwsim;

use std::path::Path;

use proptest::prelude::*;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the seeds are there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("readable")).collect()
}

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 4] =
    [("vnet", vnet::run), ("tunnel", tunnel::run), ("vhost", vhost::run), ("hwsim", hwsim::run)];

#[test]
fn every_seed_passes() {
    for (target, run) in TARGETS {
        let seeds = seeds(target);
        assert!(seeds.len() > 5);
        seeds.iter().for_each(|seed| run(seed));
    }
}

proptest! {
    #[test]
    fn a_damaged_seed_passes(
        pick in any::<prop::sample::Index>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        for (target, run) in TARGETS {
            let seeds = seeds(target);
            let mut seed = pick.get(&seeds).clone();
            for (place, octet) in &damage {
                let place = place.index(seed.len());
                seed[place] = *octet;
            }
            run(&seed);
            run(&seed[..cut.index(seed.len())]);
        }
    }

    #[test]
    fn noise_passes(noise in proptest::collection::vec(any::<u8>(), 0..400)) {
        TARGETS.iter().for_each(|(_, run)| run(&noise));
    }
}
