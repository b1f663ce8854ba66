//! Kernel network stacks over the engine on the wall clock.

mod world;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use airloom_engine::settings::{LinkSettings, Loss, Rate};
use airloom_engine::{DropReason, HostLoss};
use airloom_netns::{self as netns, VethEnd, VethSpec};
use airloom_ports::detached::Detached;
use airloom_ports::runtime::driver::Driver;
use airloom_ports::world::World;

/// Octets in which a shift of segments is detected.
fn octets(count: usize) -> Vec<u8> {
    (0..count).map(|n| u8::try_from((n ^ (n / 251) ^ (n / 65_537)) % 256).expect("below 256")).collect()
}

/// Transfers octets over TCP and checks the result; returns the time it took.
fn transfer(namespaces: &[netns::Namespace], address: &str, count: usize) -> Duration {
    let (mut near, mut far) = world::tcp(&namespaces[0], &namespaces[1], address);
    let sent = octets(count);
    let start = Instant::now();
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        far.read_to_end(&mut got).expect("the connection holds");
        got
    });
    near.write_all(&sent).expect("the connection holds");
    drop(near);
    let got = reader.join().expect("the reader does not panic");
    let took = start.elapsed();
    assert!(got == sent, "{} octets came of {}, or others", got.len(), sent.len());
    took
}

#[test]
fn a_delay_is_kept_both_ways() {
    let delay = LinkSettings { delay_ns: 5_000_000, ..LinkSettings::default() };
    let Some((namespaces, driver)) = world::pair(&delay, &delay) else { return };
    let (a, b) = (world::udp(&namespaces[0], "10.0.0.1:7"), world::udp(&namespaces[1], "10.0.0.2:7"));
    let mut buffer = [0; 64];
    for round in 0..5 {
        let start = Instant::now();
        a.send_to(b"there", "10.0.0.2:7").expect("the node is up");
        let (_, from) = b.recv_from(&mut buffer).expect("it comes");
        b.send_to(b"back", from).expect("the node is up");
        let length = a.recv(&mut buffer).expect("it comes");
        assert_eq!(&buffer[..length], b"back");
        // The first round includes address resolution.
        assert!(start.elapsed() >= Duration::from_millis(10), "round {round}");
    }
    let (mut driven, error) = driver.stop().expect("no bug");
    assert!(error.is_none());
    let ledger = driven.world.engine.ledger();
    assert_eq!(ledger.host_lost.total().frames, 0);
    assert!(ledger.delivered.frames >= 10);
    assert_eq!(driven.world.edge.delivery.count(), ledger.delivered.frames);
}

#[test]
fn tcp_crosses_in_super_frames_and_nothing_is_lost() {
    let plain = LinkSettings::default();
    let Some((namespaces, driver)) = world::pair(&plain, &plain) else { return };
    transfer(&namespaces, "10.0.0.2:0", 30_000_000);
    transfer(&namespaces, "[fd00::2]:0", 30_000_000);
    let (mut driven, _) = driver.stop().expect("no bug");
    let ledger = driven.world.engine.ledger();
    assert_eq!(ledger.host_lost.total().frames, 0);
    assert_eq!(ledger.offered, {
        let mut all = ledger.delivered;
        all += ledger.dropped.total();
        all += ledger.in_flight();
        all
    });
    // Whole super-frames were delivered: far fewer deliveries than frames.
    let deliveries = driven.world.edge.delivery.count();
    assert!(deliveries * 3 < ledger.delivered.frames, "{deliveries} of {}", ledger.delivered.frames);
}

#[test]
fn tcp_survives_loss_of_single_segments() {
    let lossy = LinkSettings {
        loss: Loss::Bernoulli { probability: 0.01 },
        duplicate: 0.01,
        ..LinkSettings::default()
    };
    let Some((namespaces, driver)) = world::pair(&lossy, &LinkSettings::default()) else { return };
    transfer(&namespaces, "10.0.0.2:0", 5_000_000);
    transfer(&namespaces, "[fd00::2]:0", 5_000_000);
    let (mut driven, _) = driver.stop().expect("no bug");
    let ledger = driven.world.engine.ledger();
    assert_eq!(ledger.host_lost.total().frames, 0);
    assert!(ledger.dropped.of(DropReason::RandomLoss).frames > 20);
}

#[test]
fn a_rate_is_never_exceeded() {
    let slow = LinkSettings { rate: Rate::BitsPerSecond(20_000_000), ..LinkSettings::default() };
    let Some((namespaces, driver)) = world::pair(&slow, &LinkSettings::default()) else { return };
    let count = 1_000_000usize;
    let took = transfer(&namespaces, "10.0.0.2:0", count);
    // A segment of 1448 octets is 1538 on the wire; the last of them may be short.
    let frames = (count / 1448) as u64;
    let least = Duration::from_nanos(frames * 1538 * 8 * 1_000_000_000 / 20_000_000);
    assert!(took >= least, "{took:?} for at least {least:?}");
    let (mut driven, _) = driver.stop().expect("no bug");
    assert_eq!(driven.world.engine.ledger().host_lost.total().frames, 0);
}

#[test]
fn the_engine_is_told_whether_the_loop_is_busy() {
    let driver = Driver::start(World::new(1)).expect("the kernel has what a loop needs");
    // A turn tells the engine at its end, so that commands of the same turn see what the one before told.
    let becomes = |wanted: bool, work: Duration| {
        let state = if wanted { "busy" } else { "idle" };
        let begin = Instant::now();
        loop {
            // The loop works while it executes a command.
            driver.ask(move |_| std::thread::sleep(work)).expect("the loop runs");
            if driver.ask(|driven| driven.world.engine.is_host_busy()).expect("the loop runs") == wanted {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "the loop did not become {state}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    becomes(false, Duration::ZERO);
    // One turn that is longer than the window of the mean; again if this thread slept behind it.
    becomes(true, Duration::from_millis(200));
    becomes(false, Duration::ZERO);
}

/// Sends from node 1 to node 2 until frames are lost because node 2 is gone.
fn send_until_lost(namespaces: &[netns::Namespace], driver: &Driver) {
    let a = world::udp(&namespaces[0], "10.0.0.1:7");
    let lost = || {
        let _ = a.send_to(b"nobody", "10.0.0.2:7");
        let lost = driver.ask(|driven| {
            let ledger = driven.world.engine.ledger();
            ledger.host_lost.of(HostLoss::NodeGone).frames
        });
        lost.expect("the loop runs")
    };
    while lost() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_goes_to_an_interface_that_is_down_is_lost_until_it_is_up() {
    let plain = LinkSettings::default();
    let Some((namespaces, driver)) = world::pair(&plain, &plain) else { return };
    namespaces[1].set_up(false).expect("the node goes down");
    send_until_lost(&namespaces, &driver);
    namespaces[1].set_up(true).expect("the node comes up");
    transfer(&namespaces, "10.0.0.2:0", 100_000);
}

#[test]
fn an_interface_that_is_deleted_leaves_the_loop_running() {
    let plain = LinkSettings::default();
    let Some((namespaces, driver)) = world::pair(&plain, &plain) else { return };
    let deleted = netns::inside(&namespaces[1], |_| {
        std::process::Command::new("ip").args(["link", "delete", "eth0"]).status()
    });
    assert!(deleted.expect("the namespace can be entered").expect("ip is installed").success());
    send_until_lost(&namespaces, &driver);
    let (driven, error) = driver.stop().expect("no bug");
    assert!(error.is_none());
    let ports = &driven.world.edge.ports;
    assert!(ports[1].port.is_gone() && !ports[0].port.is_gone());
}

#[test]
fn a_node_made_anew_takes_its_place_again() {
    let plain = LinkSettings::default();
    let Some((mut namespaces, driver)) = world::pair(&plain, &plain) else { return };
    drop(namespaces.pop());
    let detached = driver.ask(|driven| {
        let port = driven.world.names.ports.id("n2")?;
        driven.exchange(port, Box::new(Detached))
    });
    detached.expect("the loop runs").expect("the port is there");
    send_until_lost(&namespaces, &driver);
    namespaces.extend(world::bring_up(&[world::node(2, true)], &[]).expect("as before"));
    let tap = world::port(&namespaces[1]);
    let exchanged = driver.ask(move |driven| {
        let port = driven.world.names.ports.id("n2")?;
        driven.exchange(port, tap)
    });
    exchanged.expect("the loop runs").expect("the port is there");
    transfer(&namespaces, "10.0.0.2:0", 100_000);
}

#[test]
fn a_real_interface_is_a_port() {
    let end = |node: &str| VethEnd { node: node.into(), interface: "eth0".into() };
    let wire = VethSpec { a: end("n1"), b: end("n3") };
    // Node 3 attaches its end of the veth pair to the engine, like a network card of
    // a host; it has no address.
    let mut lender = world::node(3, false);
    lender.interfaces[0].addresses.clear();
    let nodes = [world::node(1, false), world::node(2, true), lender];
    let Some(namespaces) = world::bring_up(&nodes, &[wire]) else { return };
    let card = netns::inside(&namespaces[2], |_| airloom_ports::interface::Interface::attach("eth0"))
        .expect("the namespace can be entered")
        .expect("the interface is there");
    let mut world = World::new(1);
    world.add("card", true, Box::new(card)).expect("names differ");
    world.add("n2", false, world::port(&namespaces[1])).expect("names differ");
    let plain = LinkSettings::default();
    world.connect("link", "card", "n2", &plain, &plain).expect("both ends are there");
    let driver = Driver::start(world).expect("the loop starts");
    transfer(&namespaces, "10.0.0.2:0", 3_000_000);
    let (mut driven, _) = driver.stop().expect("no bug");
    assert_eq!(driven.world.engine.ledger().host_lost.total().frames, 0);
}
