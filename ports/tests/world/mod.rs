//! Small worlds: nodes in namespaces of their own, joined by an engine on the wall clock.
#![allow(dead_code)] // every test takes what it needs

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;

use airloom_engine::settings::LinkSettings;
use airloom_netns::{self as netns, InterfaceSpec, Namespace, NodeSpec, VethSpec};
use airloom_ports::offloads::Offloads;
use airloom_ports::port::Port;
use airloom_ports::runtime::driver::Driver;
use airloom_ports::tap::Tap;
use airloom_ports::world::World;

/// Runs `test` on a thread in a new network namespace. If the machine does not permit
/// namespaces, prints that and returns.
pub fn inside(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        // SAFETY: only this thread leaves its network namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            println!("skipped: no namespaces here: {}", std::io::Error::last_os_error());
            return;
        }
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A node `number` with the interface `eth0`, 10.0.0.`number` and fd00::`number`.
pub fn node(number: u8, tap: bool) -> NodeSpec {
    NodeSpec {
        name: format!("n{number}"),
        interfaces: vec![InterfaceSpec {
            radio: None,
            name: "eth0".into(),
            mac: format!("02:00:00:00:00:{number:02x}"),
            mtu: 1500,
            addresses: vec![format!("10.0.0.{number}/24"), format!("fd00::{number}/64")],
            tap,
            bridge: Vec::new(),
            offloads: netns::offloads::Offloads::default(),
        }],
        routes: Vec::new(),
        neighbours: Vec::new(),
        forwarding: false,
        ipv6: None,
        sysctl: std::collections::BTreeMap::from([
            // Addresses are usable at once: duplicate address detection is not needed.
            ("net.ipv6.conf.all.accept_dad".into(), "0".into()),
            ("net.ipv6.conf.eth0.accept_dad".into(), "0".into()),
        ]),
    }
}

/// The namespaces of some nodes; prints the reason and returns None if they are not permitted.
pub fn bring_up(nodes: &[NodeSpec], wires: &[VethSpec]) -> Option<Vec<Namespace>> {
    match netns::bring_up(nodes, wires, None) {
        Ok(namespaces) => Some(namespaces),
        Err(netns::Error::Permission { source, .. }) => {
            println!("skipped: no namespaces here: {source}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The port of a node's TAP.
pub fn port(namespace: &Namespace) -> Box<dyn Port> {
    let (_, fd) = namespace.taps().next().expect("the node has a TAP");
    let fd = fd.as_fd().try_clone_to_owned().expect("a descriptor is to be had");
    Box::new(Tap::from_fd(fd, Offloads::default()).expect("it is a TAP"))
}

/// Two nodes, 1 and 2, whose TAPs are joined by one link.
pub fn pair(forward: &LinkSettings, backward: &LinkSettings) -> Option<(Vec<Namespace>, Driver)> {
    let namespaces = bring_up(&[node(1, true), node(2, true)], &[])?;
    let mut world = World::new(1);
    for namespace in &namespaces {
        world.add(namespace.name(), false, port(namespace)).expect("names differ");
    }
    world.connect("link", "n1", "n2", forward, backward).expect("both ends are there");
    Some((namespaces, Driver::start(world).expect("the loop starts")))
}

/// A UDP socket of a node.
pub fn udp(namespace: &Namespace, address: &str) -> UdpSocket {
    let address: SocketAddr = address.parse().expect("an address");
    let socket = netns::inside(namespace, move |_| UdpSocket::bind(address))
        .expect("the namespace can be entered")
        .expect("the address is the node's own");
    socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("not zero");
    socket
}

/// A TCP connection from one node to another: its two ends.
pub fn tcp(from: &Namespace, to: &Namespace, address: &str) -> (TcpStream, TcpStream) {
    let address: SocketAddr = address.parse().expect("an address");
    let listener = netns::inside(to, move |_| TcpListener::bind(address))
        .expect("the namespace can be entered")
        .expect("the address is the node's own");
    let there = listener.local_addr().expect("it is bound");
    let near = netns::inside(from, move |_| TcpStream::connect(there))
        .expect("the namespace can be entered")
        .expect("the other side listens");
    (near, listener.accept().expect("the connection is there").0)
}
