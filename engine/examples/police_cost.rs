//! Runs a saturated cell of 50 stations, with or without a slice whose grant is checked.
//!
//! The cost of the check is the difference of the instructions:
//! `perf stat -e instructions:u target/release/examples/police_cost policed` and `... free`.

#[path = "../tests/world/mod.rs"]
mod world;

use airloom_engine::medium::{Police, Policed};
use world::{PAYLOAD, World, at, at_rate, reference_loss};

fn main() {
    let policed = std::env::args().nth(1).is_some_and(|word| word == "policed");
    let mut world = World::new(1, reference_loss());
    let mut radios = vec![world.add(at_rate(54.0), 0.0, 0.0)];
    for station in 0..50 {
        let angle = f64::from(station) / 50.0 * core::f64::consts::TAU;
        radios.push(world.add(at_rate(54.0), 5.0 * libm::cos(angle), 5.0 * libm::sin(angle)));
    }
    if policed {
        let grant = Policed {
            slice: "one".to_owned(),
            channels: vec![40, 44, 48, 36],
            power_dbm: Some(20.0),
            ssids: vec!["one".to_owned()],
            airtime_weight: None,
            assigned: true,
            police: Police::Enforce,
        };
        for &radio in &radios {
            world.medium.police(radio, &grant).expect("channels of the band");
        }
    }
    for &from in &radios[1..] {
        world.saturate(at(0.0), from, radios[0], PAYLOAD);
    }
    world.run(at(10.0));
    println!("{} frames delivered", world.sinks.delivered);
}
