//! What the kernel tells about the carrier of a TAP, and about the frames that it dropped.
//!
//! While an interface has no carrier, Linux drops what its node sends and counts it as transmit
//! drops (since 6.11), like frames for which the ring to the engine was full. The counter tells the
//! two apart only if it is read when the carrier is lost and when it is back.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use crate::namespace::enter_network;
use crate::netlink::Socket;
use crate::rtnetlink;
use crate::tap::{name_of, namespace_of};

/// A TAP's interface, asked through a socket in its network namespace.
#[derive(Debug)]
pub struct TapLink {
    tap: Arc<OwnedFd>,
    socket: Socket,
}

/// State of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// It is administratively up (`IFF_UP`).
    pub up: bool,
    /// The kernel has taken notice of its carrier, and its queues are active (`IFF_RUNNING`).
    pub running: bool,
    /// Outgoing frames that were dropped.
    pub tx_dropped: u64,
}

impl TapLink {
    /// Opens the socket in the namespace of the TAP.
    ///
    /// # Errors
    /// If the namespace belongs to another user namespace, or the kernel refuses a thread.
    pub fn of(tap: &Arc<OwnedFd>) -> io::Result<Self> {
        let namespace = namespace_of(tap)?;
        // A thread that has changed its namespace is not used again.
        let open = move || {
            enter_network(namespace.as_fd())?;
            Socket::open()
        };
        let socket = thread::Builder::new().spawn(open)?.join().map_err(|_| io::ErrorKind::Other)??;
        Ok(Self { tap: Arc::clone(tap), socket })
    }

    /// Reads the state. The kernel answers under the lock under which it also handles a change of
    /// carrier, so that a carrier is seen only when the queues follow it.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn state(&self) -> io::Result<LinkState> {
        let name = name_of(&self.tap)?;
        let answer = self.socket.get(rtnetlink::GET_LINK, |batch| rtnetlink::by_name(batch, &name))?;
        rtnetlink::state(&answer).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
