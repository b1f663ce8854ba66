//! Creates and removes the namespaces of many nodes.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::error::Error;
use crate::in_place::take_radios;
use crate::limits;
use crate::namespace::{Namespace, enter};
use crate::netlink::Batch;
use crate::offloads;
use crate::rtnetlink;
use crate::spec::{self, InterfaceSpec, NodeSpec, VethEnd, VethSpec};
use crate::sysctl::Parameters;
use crate::tap;

/// Maximum number of threads that create namespaces: the kernel has one lock on network
/// configuration, so more threads would only wait for each other.
const THREADS: usize = 2;

/// Creates the namespaces of all nodes, with interfaces, addresses and routes, and connects the
/// ends of each wire by a veth pair. Radios come from the network namespace `radios`, in which they
/// were created. All or none: after an error nothing remains; radios end with the nodes.
///
/// # Errors
/// The first error, with the node's name.
pub fn bring_up(
    nodes: &[NodeSpec],
    wires: &[VethSpec],
    radios: Option<BorrowedFd<'_>>,
) -> Result<Vec<Namespace>, Error> {
    spec::check(nodes)?;
    // One for each TAP, and one for a namespace without TAPs.
    let taps = |node: &NodeSpec| node.interfaces.iter().filter(|interface| interface.tap).count();
    limits::raise_to(nodes.iter().map(|node| taps(node).max(1)).sum())?;
    let namespaces = in_parallel(nodes, |node, tools| make(node, tools, radios))?;
    // Nodes without wires are ready by now; the others can be configured once both ends exist.
    connect(&namespaces, wires)?;
    Ok(namespaces)
}

/// Closes all namespaces, with their TAPs. The kernel removes them, and the interfaces in them, in
/// batches of its own; programs that still run in a namespace keep it until they end.
pub fn tear_down(namespaces: Vec<Namespace>) {
    drop(namespaces);
}

/// Resources that a thread reuses for each node.
struct Tools {
    batch: Batch,
    parameters: Parameters,
}

impl Tools {
    /// `node` is the first node that needs them; errors name it.
    fn new(node: &NodeSpec) -> Result<Self, Error> {
        let parameters =
            Parameters::new().map_err(|source| Error::kernel(&node.name, "/proc/sys/net", &source))?;
        Ok(Self { batch: Batch::default(), parameters })
    }
}

/// Calls `act` for each node on a few threads; returns the results in order.
fn in_parallel<T: Send>(
    nodes: &[NodeSpec],
    act: impl Fn(&NodeSpec, &mut Tools) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Option<T>>> = Mutex::new(nodes.iter().map(|_| None).collect());
    let first_error = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..THREADS.min(nodes.len()) {
            scope.spawn(|| {
                let mut tools = None;
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(node) = nodes.get(index) else { break };
                    let result = match &mut tools {
                        Some(tools) => act(node, tools),
                        None => Tools::new(node).and_then(|new| act(node, tools.insert(new))),
                    };
                    match result {
                        Ok(value) => results.lock().expect("no holder panics")[index] = Some(value),
                        Err(error) => {
                            stop.store(true, Ordering::Relaxed);
                            first_error.lock().expect("no holder panics").get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = first_error.into_inner().expect("no holder panics") {
        return Err(error);
    }
    Ok(results.into_inner().expect("no holder panics").into_iter().flatten().collect())
}

/// Moves the calling thread into a new namespace and creates the node there.
fn make(node: &NodeSpec, tools: &mut Tools, radios: Option<BorrowedFd<'_>>) -> Result<Namespace, Error> {
    // SAFETY: the thread shares nothing that it does not share afterwards, but its network.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|error| {
        let (node, source) = (node.name.clone(), error.into());
        if error == Errno::PERM {
            Error::Permission { node, source }
        } else {
            Error::Namespaces { node, source }
        }
    })?;
    tools.parameters.before_interfaces(node)?;
    let mut taps = Vec::with_capacity(node.interfaces.len());
    for interface in node.interfaces.iter().filter(|interface| interface.tap) {
        let tap =
            tap::create(&interface.name).map_err(|source| Error::Tap { node: node.name.clone(), source })?;
        taps.push((interface.name.clone(), Arc::new(tap)));
    }
    let namespace = Namespace::here(node.clone(), taps)?;
    if let Some(from) = radios {
        take_radios(node, from)?;
    }
    tools.batch.clear();
    rtnetlink::add_bridges(&mut tools.batch, node)?;
    namespace.send(&namespace.socket()?, &mut tools.batch)?;
    if without_wires(node) {
        configure(&namespace, tools)?;
    }
    Ok(namespace)
}

fn without_wires(node: &NodeSpec) -> bool {
    let is_there = |one: &InterfaceSpec| one.tap || one.radio.is_some() || one.is_bridge();
    node.interfaces.iter().all(is_there)
}

/// Configures existing interfaces; the calling thread must be inside the namespace.
fn configure(namespace: &Namespace, tools: &mut Tools) -> Result<(), Error> {
    tools.parameters.of_interfaces(&namespace.spec)?;
    offloads::restrict(&namespace.spec)?;
    tools.batch.clear();
    let socket = namespace.socket()?;
    rtnetlink::configure(&mut tools.batch, &namespace.spec, &namespace.indices(&namespace.spec, &socket)?)?;
    namespace.send(&socket, &mut tools.batch)
}

/// Creates all wires, then configures the nodes connected by them.
fn connect(namespaces: &[Namespace], wires: &[VethSpec]) -> Result<(), Error> {
    let by_name: HashMap<&str, &Namespace> = namespaces.iter().map(|node| (node.name(), node)).collect();
    let find = |end: &VethEnd| {
        let fail = |what, value: &str| Error::Spec {
            node: end.node.clone(),
            what,
            value: value.to_owned(),
            why: "a wire ends there, but there is none".to_owned(),
        };
        let node = *by_name.get(end.node.as_str()).ok_or_else(|| fail("node", &end.node))?;
        let interface =
            node.spec.interfaces.iter().find(|interface| interface.name == end.interface && !interface.tap);
        let interface = interface.ok_or_else(|| fail("interface without TAP", &end.interface))?;
        let mac = spec::read_mac(&interface.mac).map_err(|why| Error::Spec {
            node: end.node.clone(),
            what: "MAC",
            value: interface.mac.clone(),
            why,
        })?;
        Ok((node, mac))
    };
    let work = || {
        for wire in wires {
            let ((near, near_mac), (far, far_mac)) = (find(&wire.a)?, find(&wire.b)?);
            enter(near)?;
            let mut batch = Batch::default();
            let ends = ((wire.a.interface.as_str(), near_mac), (wire.b.interface.as_str(), far_mac));
            rtnetlink::add_veth(&mut batch, ends.0, ends.1, far.descriptor()?.as_raw_fd());
            near.send(&near.socket()?, &mut batch)?;
        }
        for namespace in namespaces.iter().filter(|namespace| !without_wires(&namespace.spec)) {
            enter(namespace)?;
            configure(namespace, &mut Tools::new(&namespace.spec)?)?;
        }
        Ok(())
    };
    if namespaces.iter().all(|namespace| without_wires(&namespace.spec)) && wires.is_empty() {
        return Ok(());
    }
    // The thread changes its namespace, so it must not be reused.
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
