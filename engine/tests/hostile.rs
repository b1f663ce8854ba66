//! Runs the fuzz targets on their seeds and on random octets; `ports` tests `vnet`.

#[path = "../../fuzz/src/engine.rs"]
mod engine;
#[path = "../../fuzz/src/frame.rs"]
mod frame;
#[path = "../../fuzz/src/matrix.rs"]
mod matrix;
#[path = "../../fuzz/src/radiotap.rs"]
mod radiotap;
#[path = "../../fuzz/src/trace.rs"]
mod trace;
#[path = "../../fuzz/src/wlan.rs"]
mod wlan;

use std::path::Path;

use airloom_engine::random::Stream;

/// Runs `body` on the committed seeds of a target, on mutated seeds, and on random octets.
fn exercise(target: &str, rounds: usize, body: fn(&[u8])) {
    let mut dice = Stream::named(1, target);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let mut seeds: Vec<_> = std::fs::read_dir(folder)
        .expect("committed seeds")
        .map(|entry| entry.expect("readable").path())
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty());
    let octet = |dice: &mut Stream| dice.bits().to_be_bytes()[0];
    for path in seeds {
        let seed = std::fs::read(path).expect("readable");
        body(&seed);
        for _ in 0..rounds {
            let mut data = seed.clone();
            for _ in 0..=dice.below(8) {
                let index = usize::try_from(dice.below(data.len() as u64)).expect("small");
                data[index] = octet(&mut dice);
            }
            data.truncate(usize::try_from(dice.below(2 * data.len() as u64)).expect("small"));
            body(&data);
        }
    }
    for _ in 0..rounds {
        let length = dice.below(3_000);
        let data: Vec<u8> = (0..length).map(|_| octet(&mut dice)).collect();
        body(&data);
    }
}

#[test]
fn hostile_frames_do_no_harm() {
    exercise("frame", 3_000, frame::run);
}

#[test]
fn hostile_ports_and_careless_scenarios_do_no_harm() {
    exercise("engine", 1_000, engine::run);
}

#[test]
fn hostile_traces_and_matrices_do_no_harm() {
    exercise("trace", 3_000, trace::run);
    exercise("matrix", 3_000, matrix::run);
}

#[test]
fn hostile_frames_are_captured_from_the_air() {
    exercise("radiotap", 3_000, radiotap::run);
}

#[test]
fn hostile_frames_of_a_stack_do_no_harm() {
    exercise("wlan", 15, wlan::run);
}
