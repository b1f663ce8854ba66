//! The door of a node, by which programs reach the laboratory: a socket with a name that is seen in one
//! network namespace alone (`unix(7)`, abstract).
//!
//! The controller listens in the host's part of each node. A guest has a network of its own, so its
//! init listens there under the same name, and the node init outside passes what visitors say. It
//! knocks in its own namespace, so that a guest reaches the door of its own node and no other.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use crate::system;

const NAME: &[u8] = b"airloom/radio";
/// Visits of one guest at a time, as many as the controller admits.
pub const MOST: usize = 16;
/// Number of the first visit; those below are programs'.
pub const FIRST: u64 = 1 << 63;

/// The guest's side of the door.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    next: u64,
}

impl Door {
    /// Opens it in this process's network namespace.
    pub fn open() -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(NAME)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, next: FIRST })
    }

    /// Lets the next visitor in, if there is one; the number of the visit, and where to hear it and tell it.
    pub fn admit(&mut self) -> io::Result<Option<(u64, OwnedFd, OwnedFd)>> {
        let Ok((visitor, _)) = self.listener.accept() else { return Ok(None) };
        self.next += 1;
        let (hear, tell) = both(visitor)?;
        Ok(Some((self.next, hear, tell)))
    }

    /// The wish to hear of visitors.
    pub fn interest(&self) -> libc::pollfd {
        system::to_read(self.listener.as_raw_fd())
    }
}

/// Knocks at the controller's door in this process's network namespace; where to hear it and tell it.
/// It has room for [`MOST`] to wait, so that nobody waits here.
pub fn knock() -> io::Result<(OwnedFd, OwnedFd)> {
    both(UnixStream::connect_addr(&SocketAddr::from_abstract_name(NAME)?)?)
}

fn both(socket: UnixStream) -> io::Result<(OwnedFd, OwnedFd)> {
    socket.set_nonblocking(true)?;
    Ok((socket.try_clone()?.into(), socket.into()))
}
