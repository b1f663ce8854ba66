//! A node whose network stack is there already: a machine of its own, seen from inside.

use std::io;

use super::error::Error;
use super::netlink::{Batch, Socket};
use super::rtnetlink;
use super::spec::{self, NodeSpec};
use super::sysctl::Parameters;

/// Configures the network stack in which the calling thread is. Interfaces are known by their MAC
/// addresses and get the names of the description; `tap` says nothing here.
///
/// # Errors
/// The first thing that went wrong, with the node's name.
pub fn configure_here(node: &NodeSpec) -> Result<(), Error> {
    spec::check(std::slice::from_ref(node))?;
    let kernel = |what: &str| {
        let what = what.to_owned();
        move |source: io::Error| Error::kernel(&node.name, what, &source)
    };
    let mut parameters = Parameters::new().map_err(kernel("/proc/sys/net"))?;
    parameters.before_interfaces(node)?;
    let socket = Socket::open().map_err(kernel("route socket"))?;
    let mut there = Vec::new();
    socket
        .dump(rtnetlink::GET_LINK, &rtnetlink::link_body(0, 0, 0), |answer| {
            there.extend(rtnetlink::link(answer));
        })
        .map_err(kernel("interfaces"))?;
    let mut indices = Vec::with_capacity(node.interfaces.len());
    let mut batch = Batch::default();
    for interface in &node.interfaces {
        let bad = |why: String| Error::Spec {
            node: node.name.clone(),
            what: "MAC",
            value: interface.mac.clone(),
            why,
        };
        let mac = spec::read_mac(&interface.mac).map_err(bad)?;
        let index = there
            .iter()
            .find(|(_, address)| *address == mac)
            .map(|(index, _)| *index)
            .ok_or_else(|| bad(format!("no interface of the guest has it, to be {}", interface.name)))?;
        indices.push(index);
        // Out of the way first: another interface may have the name that this one is to get.
        rtnetlink::rename(&mut batch, index, &format!("airloom{index}"));
    }
    for (interface, &index) in node.interfaces.iter().zip(&indices) {
        rtnetlink::rename(&mut batch, index, &interface.name);
    }
    let send = |batch: &mut Batch| {
        socket.send(batch).map_err(|refused| Error::Kernel {
            node: node.name.clone(),
            what: refused.label,
            why: refused.why,
        })
    };
    send(&mut batch)?;
    parameters.of_existing(node)?;
    parameters.of_interfaces(node)?;
    batch.clear();
    rtnetlink::configure(&mut batch, node, &indices)?;
    send(&mut batch)
}
