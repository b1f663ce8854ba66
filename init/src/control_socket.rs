//! Control socket of a node, by which its programs reach the controller: an abstract Unix socket
//! (`unix(7)`), visible in one network namespace only.
//!
//! The controller listens in the network namespace of each node on the host. A guest has its own
//! network stack: its init listens there under the same name, and the node init forwards the octets
//! of each connection. The node init connects in its own network namespace, so that a guest reaches
//! only the control socket of its own node.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use crate::system;

const NAME: &[u8] = b"airloom/radio";
/// Maximum number of open connections of one guest; the controller accepts as many.
pub const MOST: usize = 16;
/// Number of the first connection; lower numbers belong to programs.
pub const FIRST: u64 = 1 << 63;

/// The listening socket in a guest.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    next: u64,
}

impl ControlSocket {
    /// Opens the socket in the network namespace of this process.
    pub fn open() -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(NAME)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, next: FIRST })
    }

    /// Accepts the next connection, if any: returns its number and the descriptors to
    /// read from and to write to.
    pub fn accept(&mut self) -> io::Result<Option<(u64, OwnedFd, OwnedFd)>> {
        let Ok((client, _)) = self.listener.accept() else { return Ok(None) };
        self.next += 1;
        let (reader, writer) = split(client)?;
        Ok(Some((self.next, reader, writer)))
    }

    /// The poll entry for new connections.
    pub fn interest(&self) -> libc::pollfd {
        system::to_read(self.listener.as_raw_fd())
    }
}

/// Connects to the controller's socket in the network namespace of this process; returns the
/// descriptors to read from and to write to. The backlog is [`MOST`] connections, so that
/// connect(2) does not block.
pub fn connect() -> io::Result<(OwnedFd, OwnedFd)> {
    split(UnixStream::connect_addr(&SocketAddr::from_abstract_name(NAME)?)?)
}

fn split(socket: UnixStream) -> io::Result<(OwnedFd, OwnedFd)> {
    socket.set_nonblocking(true)?;
    Ok((socket.try_clone()?.into(), socket.into()))
}
