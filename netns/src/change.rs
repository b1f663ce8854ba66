//! Changes the network stack of a node while its programs run.

use std::os::fd::OwnedFd;
use std::slice;
use std::sync::Arc;

use crate::error::Error;
use crate::limits;
use crate::namespace::{Namespace, inside};
use crate::netlink::{Batch, Socket};
use crate::offloads;
use crate::rtnetlink;
use crate::spec::{self, InterfaceSpec, NodeSpec};
use crate::sysctl::Parameters;
use crate::tap;

impl Namespace {
    /// Gives the node the network stack of another description: interfaces, addresses, routes and
    /// parameters that only the present one has go, and those that only the new one has are added. A
    /// node that is switched off and on again has the new one. Interfaces keep their kind, and radios
    /// and bridges stay as they are.
    ///
    /// # Errors
    /// If the kernel refuses a step; the stack may then be between both.
    pub fn change(&mut self, spec: NodeSpec) -> Result<(), Error> {
        spec::check(slice::from_ref(&spec))?;
        // The TAP that leads to the namespace may go.
        self.descriptor()?;
        limits::raise_to(new_taps(&self.spec, &spec).count())?;
        let made = inside(self, |node| become_like(node, &spec))??;
        self.taps.retain(|(name, _)| named(&spec, name).is_some());
        self.taps.extend(made);
        self.spec = spec;
        Ok(())
    }

    /// Removes the neighbours that the node has learned, which it then asks for anew.
    ///
    /// # Errors
    /// [`Error::Kernel`] if they cannot be read.
    pub fn forget_neighbours(&self) -> Result<(), Error> {
        inside(self, |node| {
            let socket = node.socket()?;
            let mut learned = Vec::new();
            socket
                .dump(rtnetlink::GET_NEIGHBOUR, &[0; 12], |answer| learned.extend(rtnetlink::learned(answer)))
                .map_err(|source| Error::kernel(node.name(), "neighbours", &source))?;
            for (index, address) in learned {
                try_to(&socket, |batch| rtnetlink::remove_neighbour(batch, index, address));
            }
            Ok(())
        })?
    }
}

/// Makes the stack of the calling thread's namespace that of `spec`; returns the new TAPs.
fn become_like(node: &Namespace, spec: &NodeSpec) -> Result<Vec<(String, Arc<OwnedFd>)>, Error> {
    let socket = node.socket()?;
    take_away(node, spec, &socket)?;
    let mut parameters =
        Parameters::new().map_err(|source| Error::kernel(&spec.name, "/proc/sys/net", &source))?;
    if spec.speaks_ipv6() && !node.spec.speaks_ipv6() {
        let kept = |interface: &&InterfaceSpec| named(&node.spec, &interface.name).is_some();
        let interfaces = spec.interfaces.iter().filter(kept).cloned().collect();
        // Before IPv6 is enabled, so that it begins without duplicate address detection.
        parameters.of_existing(&NodeSpec { interfaces, ..spec.clone() })?;
    }
    parameters.before_interfaces(spec)?;
    let mut made = Vec::new();
    for interface in new_taps(&node.spec, spec) {
        let tap =
            tap::create(&interface.name).map_err(|source| Error::Tap { node: spec.name.clone(), source })?;
        made.push((interface.name.clone(), Arc::new(tap)));
    }
    parameters.of_interfaces(spec)?;
    offloads::restrict(spec)?;
    let mut batch = Batch::default();
    rtnetlink::configure(&mut batch, spec, &node.indices(spec, &socket)?)?;
    node.send(&socket, &mut batch)?;
    Ok(made)
}

/// Removes what the node has and `spec` does not.
fn take_away(node: &Namespace, spec: &NodeSpec, socket: &Socket) -> Result<(), Error> {
    let old = &node.spec;
    let bad =
        |what, value: &str, why| Error::Spec { node: old.name.clone(), what, value: value.to_owned(), why };
    for route in &old.routes {
        if !spec.routes.iter().any(|other| rtnetlink::same_destination(route, other)) {
            let mut batch = Batch::default();
            rtnetlink::remove_route(&mut batch, route).map_err(|why| bad("route", &route.to, why))?;
            send_if_there(socket, &mut batch);
        }
    }
    for neighbour in &old.neighbours {
        let stays = |other: &spec::NeighbourSpec| {
            (&other.address, &other.interface) == (&neighbour.address, &neighbour.interface)
        };
        if !spec.neighbours.iter().any(stays) {
            let index = node.index(socket, &neighbour.interface)?;
            let address = neighbour.address.parse().map_err(|error: std::net::AddrParseError| {
                bad("neighbour", &neighbour.address, error.to_string())
            })?;
            try_to(socket, |batch| rtnetlink::remove_neighbour(batch, index, address));
        }
    }
    for interface in &old.interfaces {
        let index = node.index(socket, &interface.name)?;
        let Some(new) = named(spec, &interface.name) else {
            try_to(socket, |batch| rtnetlink::remove_link(batch, index, &interface.name));
            continue;
        };
        if new.mac != interface.mac {
            // The link-local address comes from the MAC when the interface goes up.
            try_to(socket, |batch| rtnetlink::link_down(batch, index, &interface.name));
        }
        if new.addresses != interface.addresses {
            // All of them: the first of a subnet is its primary one.
            for text in &interface.addresses {
                let mut batch = Batch::default();
                rtnetlink::remove_address(&mut batch, index, text)
                    .map_err(|why| bad("address", text, why))?;
                send_if_there(socket, &mut batch);
            }
        }
    }
    Ok(())
}

/// Sends one request to remove something, which a program of the node may have removed already.
fn try_to(socket: &Socket, fill: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::default();
    fill(&mut batch);
    send_if_there(socket, &mut batch);
}

/// As [`try_to`]: what is not there need not be removed.
fn send_if_there(socket: &Socket, batch: &mut Batch) {
    let _ = socket.send(batch);
}

/// The interfaces of `spec` for which a TAP is to be made.
fn new_taps<'a>(old: &'a NodeSpec, spec: &'a NodeSpec) -> impl Iterator<Item = &'a InterfaceSpec> {
    spec.interfaces.iter().filter(|interface| interface.tap && named(old, &interface.name).is_none())
}

fn named<'a>(spec: &'a NodeSpec, name: &str) -> Option<&'a InterfaceSpec> {
    spec.interfaces.iter().find(|interface| interface.name == name)
}
