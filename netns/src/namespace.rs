//! The network namespace of one node, and operations on it during the run.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Error;
use crate::htb::{self, Shape};
use crate::netlink::{Batch, Socket};
use crate::rtnetlink;
use crate::spec::NodeSpec;
use crate::tap::namespace_of;

/// An anonymous network namespace, and the engine's ends of its TAPs.
#[derive(Debug)]
pub struct Namespace {
    pub(crate) spec: NodeSpec,
    /// Its descriptor. A namespace with TAPs exists as long as their descriptors, so that one of
    /// its own is opened only for those who ask for it: thousands of nodes have half as many.
    descriptor: OnceLock<OwnedFd>,
    pub(crate) taps: Vec<(String, Arc<OwnedFd>)>,
    /// True if it was created for the node; the machine's own namespace is never taken down.
    pub(crate) made: bool,
}

/// Counters of an interface since its creation, seen from the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Frames received; a super-frame counts as one.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Octets received, with the Ethernet header.
    pub rx_octets: u64,
    /// Octets sent.
    pub tx_octets: u64,
    /// Received frames with errors.
    pub rx_errors: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
    /// Received frames dropped because a buffer was full.
    pub rx_dropped: u64,
    /// Outgoing frames that were dropped; at a TAP: the ring to the engine was full, or the interface
    /// had no carrier.
    pub tx_dropped: u64,
}

impl Namespace {
    /// The network namespace of the calling thread, for a node that uses the machine's own.
    ///
    /// # Errors
    /// [`Error::Kernel`] if it cannot be opened.
    pub fn of_machine(name: &str) -> Result<Self, Error> {
        let spec = NodeSpec { name: name.to_owned(), ..NodeSpec::default() };
        Ok(Self { made: false, ..Self::here(spec, Vec::new())? })
    }

    /// The network namespace of the calling thread, with the TAPs that were created in it.
    pub(crate) fn here(spec: NodeSpec, taps: Vec<(String, Arc<OwnedFd>)>) -> Result<Self, Error> {
        let descriptor = OnceLock::new();
        if taps.is_empty() {
            let fd = File::open("/proc/thread-self/ns/net")
                .map_err(|source| Error::kernel(&spec.name, "/proc/thread-self/ns/net", &source))?;
            descriptor.get_or_init(|| fd.into());
        }
        Ok(Self { spec, descriptor, taps, made: true })
    }

    /// A descriptor of the namespace, open as long as this value.
    ///
    /// # Errors
    /// [`Error::Kernel`] if it cannot be opened.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>, Error> {
        let fd = match self.descriptor.get() {
            Some(fd) => fd,
            None => {
                let opened = self.open()?;
                self.descriptor.get_or_init(|| opened)
            }
        };
        Ok(fd.as_fd())
    }

    /// Opens its descriptor, by one of its TAPs.
    fn open(&self) -> Result<OwnedFd, Error> {
        let fail = |source: &io::Error| Error::kernel(self.name(), "its network namespace", source);
        let (_, tap) = self.taps.first().ok_or_else(|| fail(&io::ErrorKind::NotFound.into()))?;
        namespace_of(tap).map_err(|source| fail(&source))
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Interface name and engine's end of each TAP.
    pub fn taps(&self) -> impl Iterator<Item = (&str, &Arc<OwnedFd>)> {
        self.taps.iter().map(|(name, fd)| (name.as_str(), fd))
    }

    /// The counters of each interface, including the loopback.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the namespace cannot be read.
    pub fn counters(&self) -> Result<Vec<(String, Counters)>, Error> {
        inside(self, read_counters)?
    }

    /// Takes all interfaces down, as when the node is switched off, or brings them up with their
    /// addresses and routes of its description. The machine's own network is not changed.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses a step.
    pub fn set_up(&self, up: bool) -> Result<(), Error> {
        if !self.made {
            return Ok(());
        }
        inside(self, |node| {
            let socket = node.socket()?;
            let indices = node.indices(&node.spec, &socket)?;
            let mut batch = Batch::default();
            if up {
                rtnetlink::configure(&mut batch, &node.spec, &indices)?;
            } else {
                rtnetlink::down(&mut batch, &node.spec, &indices);
            }
            node.send(&socket, &mut batch)
        })?
    }

    /// Enables kernel shaping of the packets sent by an interface (for the reference kind).
    ///
    /// # Errors
    /// [`Error::Kernel`] if there is no such interface, or the kernel has no HTB.
    pub fn shape(&self, interface: &str, shape: &Shape) -> Result<(), Error> {
        inside(self, |node| {
            let socket = node.socket()?;
            let mut batch = Batch::default();
            htb::requests(&mut batch, interface, node.index(&socket, interface)?, shape);
            node.send(&socket, &mut batch)
        })?
    }

    /// A socket for requests to its kernel; the calling thread must be inside the namespace.
    pub(crate) fn socket(&self) -> Result<Socket, Error> {
        Socket::open().map_err(|source| Error::kernel(self.name(), "route socket", &source))
    }

    /// The kernel's indices of the interfaces of a description.
    pub(crate) fn indices(&self, spec: &NodeSpec, socket: &Socket) -> Result<Vec<i32>, Error> {
        spec.interfaces.iter().map(|interface| self.index(socket, &interface.name)).collect()
    }

    pub(crate) fn index(&self, socket: &Socket, interface: &str) -> Result<i32, Error> {
        let fail = |source: &io::Error| Error::kernel(self.name(), format!("interface {interface}"), source);
        let index = socket.index_of(interface).map_err(|source| fail(&source))?;
        i32::try_from(index).map_err(|_| fail(&io::ErrorKind::InvalidData.into()))
    }

    /// Sends requests.
    pub(crate) fn send(&self, socket: &Socket, batch: &mut Batch) -> Result<(), Error> {
        socket.send(batch).map_err(|refused| Error::refused(self.name(), refused))
    }
}

/// Reads the counters of many nodes in one thread.
///
/// # Errors
/// [`Error::Kernel`] for the first namespace that cannot be read.
pub fn counters_of(namespaces: &[&Namespace]) -> Result<Vec<Vec<(String, Counters)>>, Error> {
    on_a_thread(|| {
        namespaces
            .iter()
            .map(|namespace| {
                enter(namespace)?;
                read_counters(namespace)
            })
            .collect()
    })
}

/// Runs a closure on a new thread inside a node's namespace.
///
/// # Errors
/// [`Error::Kernel`] if the thread has no permission to enter.
pub fn inside<T: Send>(namespace: &Namespace, act: impl FnOnce(&Namespace) -> T + Send) -> Result<T, Error> {
    on_a_thread(|| {
        enter(namespace)?;
        Ok(act(namespace))
    })
}

/// A thread that has changed its namespace must not be reused, so a new one is started.
fn on_a_thread<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(act).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Moves the calling thread into the namespace.
pub(crate) fn enter(namespace: &Namespace) -> Result<(), Error> {
    // Of thousands of nodes only those with programs keep a descriptor open.
    let opened;
    let fd = match namespace.descriptor.get() {
        Some(fd) => fd,
        None => {
            opened = namespace.open()?;
            &opened
        }
    };
    enter_network(fd.as_fd()).map_err(|source| Error::kernel(namespace.name(), "setns", &source))
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// If the kernel refuses.
pub fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

fn read_counters(namespace: &Namespace) -> Result<Vec<(String, Counters)>, Error> {
    let mut found = Vec::new();
    let mut read = || {
        Socket::open()?.dump(rtnetlink::GET_LINK, &rtnetlink::link_body(0, 0, 0), |answer| {
            found.extend(rtnetlink::counters(answer).map(|(name, fields)| (name, Counters::from(fields))));
        })
    };
    read().map_err(|source| Error::kernel(namespace.name(), "counters", &source))?;
    Ok(found)
}

impl From<[u64; 8]> for Counters {
    /// In the order of the kernel's `rtnl_link_stats64`.
    fn from(fields: [u64; 8]) -> Self {
        let [rx_packets, tx_packets, rx_octets, tx_octets, rx_errors, tx_errors, rx_dropped, tx_dropped] =
            fields;
        Self { rx_packets, tx_packets, rx_octets, tx_octets, rx_errors, tx_errors, rx_dropped, tx_dropped }
    }
}
