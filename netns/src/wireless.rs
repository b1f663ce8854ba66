//! Moves radios between network namespaces (the kernel's `linux/nl80211.h`). An interface of a radio
//! cannot be moved alone.

use std::io;

use rustix::net::netlink;

use crate::netlink::{Batch, Refused, Socket, attributes};

/// Generic netlink's own family, and its request for the others (`linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const SET_NAMESPACE: u8 = 49;
const INTERFACE: u16 = 3;
const NAMESPACE: u16 = 219;

/// Octets of the fixed part of a generic netlink message.
const HEADER: usize = 4;

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
        let family = self.family().map_err(|why| Refused { label: label.clone(), why: why.to_string() })?;
        let mut batch = Batch::default();
        batch.request(family, 0, &[SET_NAMESPACE, 0, 0, 0], label);
        batch.attribute(INTERFACE, &index.to_ne_bytes());
        batch.attribute(NAMESPACE, &namespace.to_ne_bytes());
        self.socket.send(&mut batch)
    }

    /// The number of the family `nl80211` in this kernel.
    fn family(&self) -> io::Result<u16> {
        let mut found = None;
        self.socket.dump(CONTROL, &[GET_FAMILY, 1, 0, 0], |answer| {
            let of = |wanted| {
                attributes(answer.get(HEADER..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
            };
            if of(FAMILY_NAME) == Some(b"nl80211\0") {
                found = of(FAMILY_ID).and_then(|id| id.try_into().ok()).map(u16::from_ne_bytes);
            }
        })?;
        found.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "the kernel has no 802.11 stack"))
    }
}
