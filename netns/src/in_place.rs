//! Configures interfaces that exist already: those of a guest, from inside the guest, and radios.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::namespace::enter_network;
use crate::netlink::{Batch, Socket};
use crate::offloads;
use crate::rtnetlink;
use crate::spec::{self, InterfaceSpec, NodeSpec};
use crate::sysctl::Parameters;
use crate::wireless::Radios;

/// Configures the network stack of the calling thread. Interfaces are identified by their MAC
/// addresses and get the names of the description; `tap` is ignored.
///
/// # Errors
/// The first error, with the node's name.
pub fn configure_here(node: &NodeSpec) -> Result<(), Error> {
    spec::check(std::slice::from_ref(node))?;
    let kernel = |what: &str| {
        let what = what.to_owned();
        move |source: io::Error| Error::kernel(&node.name, what, &source)
    };
    let mut parameters = Parameters::new().map_err(kernel("/proc/sys/net"))?;
    parameters.before_interfaces(node)?;
    let socket = Socket::open().map_err(kernel("route socket"))?;
    name_all(node, &socket)?;
    let mut bridges = Batch::default();
    rtnetlink::add_bridges(&mut bridges, node)?;
    socket.send(&mut bridges).map_err(|refused| Error::refused(&node.name, refused))?;
    let indices = indices(node, &socket)?;
    offloads::restrict(node)?;
    parameters.of_existing(node)?;
    parameters.of_interfaces(node)?;
    let mut batch = Batch::default();
    rtnetlink::configure(&mut batch, node, &indices)?;
    socket.send(&mut batch).map_err(|refused| Error::refused(&node.name, refused))
}

/// The kernel's indices of the interfaces, by their names.
fn indices(node: &NodeSpec, socket: &Socket) -> Result<Vec<i32>, Error> {
    let index = |interface: &InterfaceSpec| {
        let index = socket.index_of(&interface.name)?;
        i32::try_from(index).map_err(|_| io::ErrorKind::InvalidData.into())
    };
    let found = node.interfaces.iter().map(index).collect::<io::Result<_>>();
    found.map_err(|source| Error::kernel(&node.name, "interfaces", &source))
}

/// Gives existing interfaces, identified by their MAC addresses, the names of the description.
fn name_all(node: &NodeSpec, socket: &Socket) -> Result<(), Error> {
    let there = links(socket).map_err(|source| Error::kernel(&node.name, "interfaces", &source))?;
    let existing: Vec<_> = node.interfaces.iter().filter(|interface| !interface.is_bridge()).collect();
    let mut indices = Vec::with_capacity(existing.len());
    let mut batch = Batch::default();
    for interface in &existing {
        let index = place(node, interface, &there)?.ok_or_else(|| {
            bad_mac(node, interface, format!("no interface has it, to be {}", interface.name))
        })?;
        indices.push(index);
        // A temporary name first: another interface may have the name that this one is to get.
        rtnetlink::rename(&mut batch, index, &format!("airloom{index}"));
    }
    for (interface, &index) in existing.iter().zip(&indices) {
        rtnetlink::rename(&mut batch, index, &interface.name);
    }
    socket.send(&mut batch).map_err(|refused| Error::refused(&node.name, refused))
}

/// Moves the radios of a description from the network namespace in which they were created into that
/// of the calling thread, and names their interfaces.
///
/// # Errors
/// The first error, with the node's name.
pub(crate) fn take_radios(node: &NodeSpec, from: BorrowedFd<'_>) -> Result<(), Error> {
    let interfaces: Vec<_> =
        node.interfaces.iter().filter(|interface| interface.radio.is_some()).cloned().collect();
    if interfaces.is_empty() {
        return Ok(());
    }
    let radios = NodeSpec { name: node.name.clone(), interfaces, ..NodeSpec::default() };
    move_here(&radios, from, Duration::ZERO)?;
    let socket = Socket::open().map_err(|source| Error::kernel(&node.name, "route socket", &source))?;
    name_all(&radios, &socket)
}

/// Moves the interfaces of a description, identified by their MAC addresses, from another network
/// namespace into that of the calling thread. Waits up to `timeout` for interfaces that have not
/// yet returned from a node that has just ended.
///
/// # Errors
/// The first error, with the node's name.
pub fn move_here(node: &NodeSpec, from: BorrowedFd<'_>, timeout: Duration) -> Result<(), Error> {
    let kernel = |what: &'static str| move |source: io::Error| Error::kernel(&node.name, what, &source);
    let here = File::open("/proc/thread-self/ns/net").map_err(kernel("its network namespace"))?;
    enter_network(from).map_err(kernel("the network of its interfaces"))?;
    let opened = Socket::open().and_then(|socket| Ok((socket, Radios::open()?)));
    enter_network(here.as_fd()).map_err(kernel("its network namespace"))?;
    let (socket, radios) = opened.map_err(kernel("route socket"))?;
    let until = Instant::now() + timeout;
    for interface in node.interfaces.iter().filter(|interface| !interface.is_bridge()) {
        let index = loop {
            let there = links(&socket).map_err(kernel("interfaces"))?;
            match place(node, interface, &there)? {
                Some(index) => break index,
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    let why = format!("no free interface has it, to be {}", interface.name);
                    return Err(bad_mac(node, interface, why));
                }
            }
        };
        let moved = if interface.radio.is_some() {
            radios.move_to(index, here.as_raw_fd())
        } else {
            let mut batch = Batch::default();
            rtnetlink::move_to(&mut batch, index, here.as_raw_fd());
            socket.send(&mut batch)
        };
        moved.map_err(|refused| Error::refused(&node.name, refused))?;
    }
    Ok(())
}

/// Index of the interface with the MAC address of the description, or with the permanent address of
/// its radio, if present.
fn place(node: &NodeSpec, interface: &InterfaceSpec, there: &[(i32, [u8; 6])]) -> Result<Option<i32>, Error> {
    let mac = match interface.radio {
        Some(number) => {
            let [high, low] = number.to_be_bytes();
            [2, 0, 0, high, low, 0]
        }
        None => spec::read_mac(&interface.mac).map_err(|why| bad_mac(node, interface, why))?,
    };
    Ok(there.iter().find(|(_, address)| *address == mac).map(|(index, _)| *index))
}

fn bad_mac(node: &NodeSpec, interface: &InterfaceSpec, why: String) -> Error {
    Error::Spec { node: node.name.clone(), what: "MAC", value: interface.mac.clone(), why }
}

/// Index and MAC address of every interface in the socket's namespace.
fn links(socket: &Socket) -> io::Result<Vec<(i32, [u8; 6])>> {
    let mut there = Vec::new();
    socket.dump(rtnetlink::GET_LINK, &rtnetlink::link_body(0, 0, 0), |answer| {
        there.extend(rtnetlink::link(answer));
    })?;
    Ok(there)
}

#[cfg(test)]
mod tests {
    use super::place;
    use crate::offloads::Offloads;
    use crate::spec::{InterfaceSpec, NodeSpec};

    #[test]
    fn a_radio_is_found_by_the_permanent_address_of_its_number() {
        let radio = InterfaceSpec {
            name: "wlan0".to_owned(),
            mac: "02:00:00:00:00:09".to_owned(),
            radio: Some(258),
            mtu: 1500,
            addresses: Vec::new(),
            tap: false,
            bridge: Vec::new(),
            offloads: Offloads::default(),
        };
        let there = [(4, [2, 0, 0, 0, 0, 9]), (5, [2, 0, 0, 2, 1, 0]), (6, [2, 0, 0, 1, 2, 0])];
        let node = NodeSpec::default();
        assert_eq!(place(&node, &radio, &there).unwrap(), Some(6));
        assert_eq!(place(&node, &radio, &there[..2]).unwrap(), None);
    }
}
