//! A guest's device over real memory, sockets and notifiers, with a guest that the test emulates.

mod guest;

use std::io::Read;
use std::os::fd::AsRawFd;

use airloom_engine::{Change, DropReason, HostLoss};
use airloom_ports::vhost::{Standing, Vhost};
use guest::{BASE, BUFFER, Bench, EVENT_IDX, GUEST, Guest, INDIRECT, MERGE, NEXT, OFFLOADS};
use guest::{RECEIVE, SEND, encode, frame, message, until, words};

#[test]
fn frames_leave_the_guest_whatever_their_pieces() {
    for features in [0, EVENT_IDX] {
        let bench = Bench::new();
        let mut guest = Guest::up(&bench.path, features, 8);
        // Far more frames than the queue has entries, so that its rings and the
        // 16-bit index wrap around.
        for number in 0..300 {
            let octets = if number % 7 == 0 { 9000 } else { 60 + usize::from(number) };
            guest.send([0; 12], &frame(number, octets), 1 + number % 4);
            let come = bench.far(1);
            assert_eq!(come.len(), 1);
            assert_eq!(*come[0], *frame(number, octets), "frame {number}");
            assert_eq!(guest.used(SEND).len(), 1, "its descriptors are back");
        }
        let counts = bench.port(|vhost| vhost.device().counts);
        assert_eq!(counts.taken, 300);
        assert!(counts.kicks >= 1 && counts.kicks <= 300, "{counts:?}");
    }
}

#[test]
fn frames_reach_the_guest_or_wait_and_an_overflow_is_counted_with_its_reason() {
    for features in [0, MERGE, MERGE | EVENT_IDX | OFFLOADS] {
        let bench = Bench::new();
        let mut guest = Guest::up(&bench.path, features, 16);
        for number in 0..40 {
            guest.provide(1);
            bench.offer(&frame(number, 100 + usize::from(number)));
            let mut come = Vec::new();
            until(|| {
                come.extend(guest.receive());
                !come.is_empty()
            });
            assert_eq!(come[0].1, frame(number, 100 + usize::from(number)));
        }
        // No buffers now: this many frames wait, and one more is lost.
        for number in 0..=1024 {
            bench.offer(&frame(number, 100));
        }
        until(|| bench.port(|vhost| vhost.device().counts.full) == 1);
        assert_eq!(bench.port(|vhost| vhost.device().counts.waited), 1024);
        let lost = bench.driver.ask(|driven| driven.world.engine.ledger().host_lost).expect("it runs");
        assert_eq!(lost.of(HostLoss::GuestRingFull).frames, 1);
        assert_eq!(lost.total().frames, 1);
        // Queued frames come before any other.
        let mut next = 0;
        while next < 1024 {
            guest.provide(8);
            let mut come = Vec::new();
            until(|| {
                come.extend(guest.receive());
                come.len() == 8
            });
            for (_, found) in come {
                assert_eq!(found, frame(next, 100));
                next += 1;
            }
        }
        guest.provide(1);
        bench.offer(&frame(2000, 100));
        until(|| guest.receive().iter().any(|(_, found)| *found == frame(2000, 100)));
    }
}

#[test]
fn a_long_frame_is_spread_over_buffers_that_the_guest_lets_merge() {
    let long = frame(1, 5000);
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, MERGE, 8);
    guest.provide(2);
    bench.offer(&long);
    until(|| bench.port(|vhost| vhost.device().counts.waited) == 1);
    assert!(guest.receive().is_empty(), "nothing of it, if not all");
    guest.provide(1);
    let mut come = Vec::new();
    until(|| {
        come.extend(guest.receive());
        !come.is_empty()
    });
    assert_eq!(come[0].0[10..], [3, 0], "three buffers");
    assert_eq!(come[0].1, long);

    // Without merged buffers, the frame does not fit, however many buffers there are.
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, 0, 8);
    guest.provide(4);
    bench.offer(&long);
    let lost = || bench.driver.ask(|driven| driven.world.engine.ledger().host_lost).expect("it runs");
    until(|| lost().of(HostLoss::Refused).frames == 1);
    assert!(guest.receive().is_empty());
}

#[test]
fn the_guest_is_told_when_it_wants_to_be() {
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, EVENT_IDX | MERGE, 16);
    guest.provide(10);
    // Notification from the third frame on.
    guest.wish(RECEIVE, BASE + 2);
    for number in 0..2 {
        bench.offer(&frame(number, 100));
        until(|| guest.receive().len() == 1);
    }
    until(|| bench.port(|vhost| vhost.device().counts.spared) >= 2);
    assert_eq!(guest.called(RECEIVE), 0);
    bench.offer(&frame(2, 100));
    until(|| guest.called(RECEIVE) == 1);
    assert_eq!(guest.receive().len(), 1);
    // It reacts.
    guest.provide(1);
    until(|| bench.port(|vhost| vhost.device().reminder().is_none()));
    guest.called(RECEIVE);
    // The event index has passed; without a new one there is no notification.
    bench.offer(&frame(3, 100));
    until(|| guest.receive().len() == 1);
    until(|| bench.port(|vhost| vhost.device().counts.spared) >= 3);
    assert_eq!(guest.called(RECEIVE), 0);
}

#[test]
fn a_guest_that_sleeps_on_is_told_again_until_it_gives_a_sign() {
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, EVENT_IDX | MERGE, 16);
    guest.provide(4);
    bench.offer(&frame(0, 100));
    let again = || bench.port(|vhost| vhost.device().counts.again);
    until(|| again() >= 3);
    assert!(guest.called(RECEIVE) >= 4);
    assert_eq!(bench.port(|vhost| vhost.device().counts.calls), 1);
    guest.provide(1);
    until(|| bench.port(|vhost| vhost.device().reminder().is_none()));
    // The guest reacts to the next notification at once.
    guest.wish(RECEIVE, BASE + 1);
    bench.offer(&frame(1, 100));
    until(|| bench.port(|vhost| vhost.device().counts.calls) == 2);
}

#[test]
fn a_super_frame_crosses_whole_or_as_its_segments() {
    // An IPv4 TCP frame with 54 octets of headers, segmented with 100 octets of payload each.
    let mut sent = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    sent.extend([0x45, 0, 0x02, 0x1c, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    sent.extend([0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    sent.extend((0..500).map(|at| u8::try_from(at % 251).expect("small")));
    // Needs a checksum; TCP over IPv4; 54 octets of headers, 100 of payload; sum from 34, at 16.
    let header = [1, 1, 54, 0, 100, 0, 34, 0, 16, 0, 0, 0];
    for (features, expected) in [(MERGE | OFFLOADS, 1), (MERGE | 0b11, 5), (MERGE, 5)] {
        let near = Bench::new();
        let mut guest = Guest::up(&near.path, features | 0b1_1000_0000_0001, 16);
        guest.provide(8);
        // Back to the same guest: one guest suffices to test both directions.
        guest.send(header, &sent, 3);
        let come = near.far(5);
        assert_eq!(come.len(), 5, "the memory port has segments");
        assert!(come.iter().all(|segment| segment.len() == 154));
        drop(come);
        let through = echo(features, header, &sent);
        assert_eq!(through.len(), expected, "features {features:#x}");
        let payload: Vec<u8> = through.iter().flat_map(|(_, frame)| frame[54..].to_vec()).collect();
        assert_eq!(payload, sent[54..]);
        let open = features & 0b10 != 0;
        assert!(through.iter().all(|(header, _)| (header[0] & 1 == 1) == open), "the checksum is left open");
    }
}

/// Frames that a second guest with `features` receives when the first one sends a frame.
fn echo(features: u64, header: [u8; 12], frame: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bench = Bench::pair();
    let mut a = Guest::up(&bench.path, OFFLOADS, 8);
    let mut b = Guest::up(&bench.other, features, 16);
    b.provide(8);
    a.send(header, frame, 2);
    let mut come = Vec::new();
    until(|| {
        come.extend(b.receive());
        come.iter().map(|(_, frame)| frame.len() - 54).sum::<usize>() == frame.len() - 54
    });
    come
}

#[test]
fn an_indirect_table_is_followed() {
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, 1 << 28, 8);
    let octets = [vec![0; 12], frame(5, 300)].concat();
    guest.write(0x4_0000, &octets);
    let table = [encode((GUEST + 0x4_0000, 20, NEXT, 1)), encode((GUEST + 0x4_0000 + 20, 292, 0, 0))];
    guest.write(0x5_0000, &table.concat());
    guest.describe(SEND, 0, (GUEST + 0x5_0000, 32, INDIRECT, 0));
    guest.offer(SEND, 0);
    guest.kick(SEND);
    assert_eq!(*bench.far(1)[0], *frame(5, 300));
}

#[test]
fn a_message_in_pieces_is_a_message() {
    let bench = Bench::new();
    let guest = Guest::hello(&bench.path, 0, 8);
    for octet in message(24, 1, &[words(&[0, 12, 0]), vec![0; 12]].concat()) {
        guest::send(&guest.socket, &[octet], &[]);
        std::thread::yield_now();
    }
    let mut answer = [0; 36];
    std::io::Read::read_exact(&mut &guest.socket, &mut answer).expect("an answer comes");
    assert_eq!(answer[24..30], guest::CARD.mac);
    assert_eq!(answer[34..], 1500u16.to_le_bytes());
}

#[test]
fn a_guest_is_awaited_then_up_then_stopped_then_gone_then_back() {
    let bench = Bench::new();
    let standing = || bench.port(Vhost::standing);
    bench.offer(&frame(0, 100));
    let dropped = |why: DropReason| {
        let count = move |driven: &mut airloom_ports::runtime::driver::Driven| {
            driven.world.engine.ledger().dropped.of(why).frames
        };
        bench.driver.ask(count).expect("it runs")
    };
    until(|| dropped(DropReason::NotUp) == 1);
    assert_eq!(standing(), Standing::Awaited);
    let guest = Guest::up(&bench.path, EVENT_IDX, 8);
    assert_eq!(standing(), Standing::Up);
    // A driver that shuts down properly: it stops its queues, then the process ends.
    let base = guest.ask(11, &words(&[1, 0]));
    assert_eq!(base, words(&[1, u32::from(BASE)]));
    assert_eq!(standing(), Standing::Stopped);
    bench.offer(&frame(0, 100));
    until(|| dropped(DropReason::NotUp) == 2);
    drop(guest);
    assert_eq!(bench.cause(), "the guest closed its connection");
    assert_eq!(standing(), Standing::Gone);
    let mut guest = Guest::up(&bench.path, EVENT_IDX, 8);
    assert_eq!(standing(), Standing::Up);
    guest.send([0; 12], &frame(3, 200), 2);
    assert_eq!(*bench.far(1)[0], *frame(3, 200));
    let lost = bench.driver.ask(|driven| driven.world.engine.ledger().host_lost.total()).expect("it runs");
    assert_eq!(lost.frames, 0);
}

#[test]
fn queues_go_on_where_they_were_after_the_memory_was_shared_again() {
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, EVENT_IDX, 8);
    for number in 0..5 {
        guest.send([0; 12], &frame(number, 100), 1);
        bench.far(1);
    }
    guest.share();
    for number in 5..30 {
        guest.send([0; 12], &frame(number, 100), 1);
        assert_eq!(*bench.far(1)[0], *frame(number, 100));
    }
    // Stopped, and restarted at the index that the device returned.
    let base = guest.ask(11, &words(&[1, 0]));
    assert_eq!(base, words(&[1, u32::from(BASE.wrapping_add(30))]));
    guest.begin();
    guest.send([0; 12], &frame(31, 100), 1);
    assert_eq!(*bench.far(1)[0], *frame(31, 100));
}

#[test]
fn a_burst_with_one_kick_comes_whole_and_in_order() {
    let bench = Bench::new();
    let mut guest = Guest::up(&bench.path, 0, 256);
    for number in 0..200u16 {
        let at = 0x4_0000 + u64::from(number) * u64::from(BUFFER);
        guest.write(at, &[vec![0; 12], frame(number, 64)].concat());
        guest.describe(SEND, number, (GUEST + at, 76, 0, 0));
        guest.offer(SEND, number);
    }
    guest.kick(SEND);
    let come = bench.far(200);
    for (number, found) in (0..200).zip(&come) {
        assert_eq!(**found, *frame(number, 64));
    }
    assert_eq!(bench.port(|vhost| vhost.device().counts.kicks), 1);
}

#[test]
fn a_guest_that_takes_its_memory_away_harms_only_itself() {
    let bench = Bench::pair();
    let mut a = Guest::up(&bench.path, MERGE, 8);
    let mut b = Guest::up(&bench.other, MERGE, 8);
    b.provide(4);
    a.send([0; 12], &frame(1, 100), 1);
    until(|| b.receive().len() == 1);
    b.memory.set_len(0).expect("it is the guest's");
    a.send([0; 12], &frame(2, 100), 1);
    let cause = || bench.port_at(1, |vhost| vhost.disconnect_reason().map(ToString::to_string));
    until(|| cause().is_some());
    assert!(cause().is_some_and(|cause| cause.contains("memory is gone")));
    assert!(b.is_parted());
    assert_eq!(bench.port(Vhost::standing), Standing::Up, "the other one goes on");
}

#[test]
fn a_guest_is_told_of_its_carrier_and_a_later_guest_finds_it() {
    // VIRTIO_NET_F_STATUS; VHOST_USER_SET_BACKEND_REQ_FD and VHOST_USER_GET_CONFIG.
    let (status, set_channel, get_config) = (1 << 16, 21, 24);
    let bench = Bench::new();
    let set = |up| {
        let done = bench.driver.ask(move |driven| {
            let link = driven.world.names.links.id("wire").expect("there");
            let now = driven.world.engine.now();
            let change = if up { Change::Up(link) } else { Change::Down(link) };
            driven.world.engine.schedule(now, change).expect("valid");
        });
        done.expect("it runs");
    };
    let carrier = |guest: &Guest| {
        let answer = guest.ask(get_config, &[words(&[6, 2, 0]), vec![0; 2]].concat());
        u16::from_le_bytes([answer[12], answer[13]])
    };
    let guest = Guest::up(&bench.path, status, 8);
    let (mut near, far) = std::os::unix::net::UnixStream::pair().expect("sockets");
    guest.ack(set_channel, &[], &[far.as_raw_fd()]);
    assert_eq!(carrier(&guest), 1);
    near.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("not zero");
    for (up, number) in [(false, 0), (true, 1), (false, 0)] {
        set(up);
        let mut notice = [0; 12];
        near.read_exact(&mut notice).expect("a notice comes");
        assert_eq!(notice.to_vec(), message(2, 1, &[]));
        assert_eq!(carrier(&guest), number);
    }
    drop(guest);
    bench.cause();
    let guest = Guest::up(&bench.path, status, 8);
    assert_eq!(carrier(&guest), 0, "the link is still down");
    // Nobody reads the notices now: the engine goes on.
    for _ in 0..2_000 {
        set(true);
    }
    until(|| carrier(&guest) == 1);
}
