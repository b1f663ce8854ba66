//! Guests that break the rules of their device: with invalid descriptors, rings and messages.

mod guest;

use std::os::fd::AsRawFd;

use airloom_engine::HostLoss;
use airloom_ports::vhost::Standing;
use guest::{BASE, Bench, GUEST, Guest, INDIRECT, MERGE, NEXT, OCTETS, RECEIVE, SEND, USER, WRITE};
use guest::{doubles, encode, frame, message, until, words};

/// A guest that breaks a rule is disconnected with a reason, and the next one is served.
fn hostile(act: impl FnOnce(&mut Guest, &Bench), cause: &str) {
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, MERGE | 1 << 28, 8);
    act(&mut guest, &bench);
    let found = bench.cause();
    assert!(found.contains(cause), "{found}");
    assert!(guest.is_parted());
    bench.offer(&frame(0, 100));
    let lost = || bench.driver.ask(|driven| driven.world.engine.ledger().host_lost).expect("it runs");
    until(|| lost().of(HostLoss::NodeGone).frames >= 1);
    let mut next = Guest::up(&bench.path, MERGE, 8);
    next.send([0; 12], &frame(1, 100), 1);
    assert_eq!(*bench.far(1)[0], *frame(1, 100));
    assert_eq!(bench.port(|vhost| (vhost.standing(), vhost.connections())), (Standing::Up, 2));
}

/// Offers descriptor 0 of a queue and notifies the device.
fn offer(guest: &mut Guest, queue: usize, bench: &Bench) {
    guest.offer(queue, 0);
    guest.kick(queue);
    if queue == RECEIVE {
        bench.offer(&frame(9, 100));
    }
}

#[test]
fn a_chain_that_bites_its_tail() {
    for queue in [RECEIVE, SEND] {
        let flags = if queue == RECEIVE { WRITE } else { 0 };
        let act = |guest: &mut Guest, bench: &Bench| {
            guest.describe(queue, 0, (GUEST, 0, NEXT | flags, 1));
            guest.describe(queue, 1, (GUEST, 0, NEXT | flags, 0));
            offer(guest, queue, bench);
        };
        hostile(act, "no end");
    }
}

#[test]
fn a_buffer_outside_of_the_memory() {
    for (address, octets) in [
        (GUEST + OCTETS - 4, 100),
        (GUEST - 1, 100),
        (0, 1),
        (u64::MAX, 100),
        (u64::MAX - 8, u32::MAX),
        (GUEST, u32::MAX),
    ] {
        for queue in [RECEIVE, SEND] {
            let flags = if queue == RECEIVE { WRITE } else { 0 };
            let act = |guest: &mut Guest, bench: &Bench| {
                guest.describe(queue, 0, (address, octets, flags, 0));
                offer(guest, queue, bench);
            };
            hostile(act, "outside its memory");
        }
    }
}

#[test]
fn rings_that_lie() {
    let act = |guest: &mut Guest, _: &Bench| {
        guest.rings[SEND].available = BASE.wrapping_add(900);
        guest.offer(SEND, 0);
        guest.kick(SEND);
    };
    hostile(act, "901 chains in a queue of 8");
    let act = |guest: &mut Guest, _: &Bench| {
        guest.offer(SEND, 8);
        guest.kick(SEND);
    };
    hostile(act, "descriptor 8 of 8");
    let act = |guest: &mut Guest, bench: &Bench| {
        guest.describe(SEND, 0, (GUEST, 100, WRITE, 0));
        offer(guest, SEND, bench);
    };
    hostile(act, "other direction");
    let act = |guest: &mut Guest, bench: &Bench| {
        guest.describe(RECEIVE, 0, (GUEST, 0, WRITE, 0));
        offer(guest, RECEIVE, bench);
    };
    hostile(act, "has no buffer");
    for (octets, table) in [(15, GUEST), (0, GUEST), (16, GUEST + OCTETS), (32, GUEST + OCTETS - 16)] {
        let act = |guest: &mut Guest, bench: &Bench| {
            guest.describe(SEND, 0, (table, octets, INDIRECT, 0));
            offer(guest, SEND, bench);
        };
        hostile(act, if table > GUEST { "outside its memory" } else { "indirect table" });
    }
    let act = |guest: &mut Guest, bench: &Bench| {
        // An indirect table within an indirect table.
        guest.write(0x5_0000, &encode((GUEST, 16, INDIRECT, 0)));
        guest.describe(SEND, 0, (GUEST + 0x5_0000, 16, INDIRECT, 0));
        offer(guest, SEND, bench);
    };
    hostile(act, "indirect table");
}

#[test]
fn messages_that_lie() {
    let hello = |act: &dyn Fn(&Guest), cause: &str| {
        let bench = Bench::new();
        let guest = Guest::hello(&bench.path, 0, 8);
        act(&guest);
        let found = bench.cause();
        assert!(found.contains(cause), "{found}");
        assert!(guest.is_parted());
        Guest::up(&bench.path, 0, 8);
    };
    let file = guest::memory(0x1000);
    let region =
        |octets: u64, offset: u64| [words(&[1, 0]), doubles(&[GUEST, octets, USER, offset])].concat();
    hello(&|guest| guest.tell(99, &[], &[]), "request 99");
    hello(&|guest| guest.tell(2, &doubles(&[u64::MAX]), &[]), "features");
    hello(&|guest| guest.tell(2, &doubles(&[1 << 30]), &[]), "features");
    hello(&|guest| guest.tell(8, &words(&[0, 7]), &[]), "7 entries");
    hello(&|guest| guest.tell(8, &words(&[0, 65_536]), &[]), "65536 entries");
    hello(&|guest| guest.tell(8, &words(&[2, 8]), &[]), "queue 2 of 2");
    hello(&|guest| guest.tell(12, &doubles(&[1]), &[]), "no descriptor");
    hello(&|guest| guest.tell(12, &doubles(&[0x101]), &[]), "no descriptor");
    hello(&|guest| guest.tell(12, &doubles(&[1]), &[file.as_raw_fd()]), "neither an eventfd");
    hello(&|guest| guest.tell(13, &doubles(&[1]), &[file.as_raw_fd()]), "neither an eventfd");
    hello(&|guest| guest.tell(5, &region(0x1000, 0), &[]), "1 regions of memory came with 0");
    hello(&|guest| guest.tell(5, &region(0x1001, 0), &[file.as_raw_fd()]), "shorter than the region");
    hello(&|guest| guest.tell(5, &region(0, 0), &[file.as_raw_fd()]), "0x0 octets");
    hello(&|guest| guest.tell(5, &region(u64::MAX, 1), &[file.as_raw_fd()]), "octets is none");
    hello(&|guest| guest.tell(5, &region(0x1000, 0), &[guest.kicks[0].as_raw_fd()]), "not a regular file");
    hello(&|guest| guest::send(&guest.socket, &message(1, 5, &[]), &[]), "request of version 1");
    hello(&|guest| guest::send(&guest.socket, &[0xff; 12], &[]), "request of version 1");
    let places = |at: u64| [words(&[1, 0]), doubles(&[at, at, at, 0])].concat();
    for at in [0, USER + OCTETS - 8, USER + 1, u64::MAX - 7] {
        let act = |guest: &Guest| {
            guest.share();
            let kick = guest.kicks[SEND].as_raw_fd();
            guest.ack(8, &words(&[1, 8]), &[]);
            guest.ack(12, &doubles(&[1]), &[kick]);
            guest.ack(18, &words(&[1, 1]), &[]);
            guest.tell(9, &places(at), &[]);
        };
        hello(&act, "outside the guest's memory or not aligned");
    }
}
