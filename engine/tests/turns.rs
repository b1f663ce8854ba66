//! An engine that its clock leaves behind returns to its caller, and loses nothing by it.

use std::cell::Cell;

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::settings::{LinkSettings, QueueSettings, Rate};
use airloom_engine::time::Instant;
use airloom_engine::{Clock, Delivery, Egress, End, Engine, PortId};

const FRAMES: u64 = 20_000;
/// Clock time that each delivery takes: more than a frame takes on the wire, so that the engine never
/// catches up.
const TAKES: u64 = 20_000;

/// A clock that a delivery advances.
struct Slow(Cell<u64>);

impl Clock for Slow {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.get())
    }

    fn wait(&self, until: Instant) {
        self.0.set(self.0.get().max(until.nanos()));
    }
}

struct Sink<'a>(&'a Slow, Vec<u64>);

impl Egress for Sink<'_> {
    fn deliver(&mut self, _: PortId, at: Instant, _: &Frame, _: &Pool) -> Delivery {
        self.0.0.set(self.0.0.get() + TAKES);
        self.1.push(at.nanos());
        Delivery::Taken
    }
}

fn engine() -> Engine {
    let mut engine = Engine::new(1);
    let (a, b) = (engine.add_port("a", false).expect("a name"), engine.add_port("b", false).expect("a name"));
    let settings = LinkSettings {
        rate: Rate::BitsPerSecond(1_000_000_000),
        queue: QueueSettings { packets: Some(u32::MAX), ..QueueSettings::default() },
        ..LinkSettings::default()
    };
    engine.connect("ab", End::Port(a), End::Port(b), &settings, &settings).expect("two ports");
    for _ in 0..FRAMES {
        let buffer = engine.pool().take(1_000);
        engine.offer(a, Instant::ZERO, Frame::new(buffer, 1_000, None, None));
    }
    engine
}

#[test]
fn a_turn_ends_although_events_are_left_and_none_is_lost() {
    let until = Instant::from_nanos(10_000_000_000);
    let clock = Slow(Cell::new(0));
    let (mut engine, mut sink) = (engine(), Sink(&clock, Vec::new()));
    let (mut turns, mut longest) = (1, 0);
    loop {
        let (before, at) = (clock.0.get(), engine.now());
        let done = engine.advance_on(&clock, until, &mut sink);
        longest = longest.max(clock.0.get() - before);
        assert!(engine.now() > at || done, "each turn gets on");
        if done {
            break;
        }
        assert!(engine.now() < until);
        turns += 1;
    }
    assert_eq!(sink.1.len() as u64, FRAMES);
    assert!(sink.1.is_sorted());
    assert_eq!(engine.now(), until);
    // 400 ms of deliveries in turns of little more than 20 ms.
    assert!((15..=20).contains(&turns), "{turns} turns");
    assert!(longest < 23_000_000, "{longest} ns");
}
