//! Moves radios between network namespaces (the kernel's `linux/nl80211.h`). An interface of a radio
//! cannot be moved alone.

use std::io;

use rustix::net::netlink;

use crate::netlink::{Batch, Refused, Socket};

const SET_NAMESPACE: u8 = 49;
const INTERFACE: u16 = 3;
const NAMESPACE: u16 = 219;

/// A socket for requests about the radios of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Radios {
    socket: Socket,
}

impl Radios {
    /// Opens it in the network namespace of the calling thread.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { socket: Socket::open_for(Some(netlink::GENERIC))? })
    }

    /// Moves the radio of an interface, with all its interfaces, into another network namespace,
    /// given by an open descriptor.
    pub(crate) fn move_to(&self, index: i32, namespace: i32) -> Result<(), Refused> {
        let label = format!("the radio of interface {index} to its node");
        let family = self
            .socket
            .family("nl80211")
            .and_then(|family| family.ok_or_else(|| io::Error::other("the kernel has no 802.11 stack")))
            .map_err(|why| Refused { label: label.clone(), why: why.to_string() })?;
        let mut batch = Batch::default();
        batch.request(family, 0, &[SET_NAMESPACE, 0, 0, 0], label);
        batch.attribute(INTERFACE, &index.to_ne_bytes());
        batch.attribute(NAMESPACE, &namespace.to_ne_bytes());
        self.socket.send(&mut batch)
    }
}
