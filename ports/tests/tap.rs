//! TAP interfaces in a namespace of their own.

mod world;

use std::os::fd::OwnedFd;

use airloom_netns::tap;
use airloom_ports::offloads::Offloads;
use airloom_ports::tap::Tap;

#[test]
fn a_tap_is_made_and_taken_over_with_offloads() {
    world::inside(|| {
        let fd = tap::create("t0").expect("a TAP in a fresh namespace");
        let tap = Tap::from_fd(fd, Offloads::default()).expect("it is a TAP");
        let offload = tap.offload();
        assert!(offload.checksum && offload.tcp);
        let error = tap::create("t0").expect_err("the name is taken");
        assert_eq!(error.code(), "host.tap-create");
        let error = tap::create("a-name-that-is-too-long").expect_err("15 octets at most");
        assert_eq!(error.code(), "host.tap-create");
    });
}

#[test]
fn what_is_no_tap_is_refused() {
    let file = std::fs::File::open("/dev/null").expect("/dev/null");
    let error = Tap::from_fd(OwnedFd::from(file), Offloads::default()).expect_err("a file is no TAP");
    assert_eq!(error.code(), "host.tap-descriptor");
}
