//! Simulated radios of this kernel (`mac80211_hwsim`) whose medium is a process: the kernel sends it
//! every frame on a generic netlink socket, and takes from it the frames that the radios receive.
//! Source: the kernel's `mac80211_hwsim.h`.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{RecvFlags, SendFlags};

use crate::netlink::{Batch, Socket};

/// Name of the generic netlink family.
const FAMILY: &str = "MAC80211_HWSIM";
const REGISTER: u8 = 1;
const NEW_RADIO: u8 = 4;
const DESTROY_ON_CLOSE: u16 = 16;
/// Bit of a socket's number (`nl_pid`) that the kernel and other programs do not set.
const OWN_NUMBERS: u32 = 1 << 31;
/// Octets of the kernel's messages that may wait.
const ROOM: usize = 1 << 20;

/// Octets of the headers of a message (netlink and generic netlink).
const HEADER: usize = 16 + 4;
const TYPE: usize = 4;
const FLAGS: usize = 6;
const NLM_F_REQUEST: u16 = 0x01;

/// Radios of the network namespace in which they were created; they end with this value.
#[derive(Debug)]
pub struct Radios {
    socket: Socket,
    family: u16,
}

impl Radios {
    /// Creates radios, and becomes their medium.
    ///
    /// # Errors
    /// The reason in words.
    pub fn create(count: u8) -> Result<Self, String> {
        let fail = |error: io::Error| format!("generic netlink: {error}");
        let socket = Socket::open_for(Some(netlink::GENERIC)).map_err(fail)?;
        // The family takes the end of any netlink socket with this number for the end of this one.
        // By default a process has the same number for its first socket of each protocol.
        let number = OWN_NUMBERS | std::process::id();
        rustix::net::bind(socket.descriptor(), &SocketAddrNetlink::new(number, 0))
            .map_err(|error| fail(error.into()))?;
        let family = socket.family(FAMILY).map_err(fail)?;
        let family = family.ok_or("the kernel has no mac80211_hwsim, or it is not loaded")?;
        // Without the right the socket keeps its default.
        let _ = set_socket_recv_buffer_size_force(socket.descriptor(), ROOM);
        let mut batch = Batch::default();
        for number in 0..count {
            batch.request(family, 0, &[NEW_RADIO, 1, 0, 0], format!("radio {number} of mac80211_hwsim"));
            batch.attribute(DESTROY_ON_CLOSE, &[]);
        }
        batch.request(family, 0, &[REGISTER, 1, 0, 0], "the medium of mac80211_hwsim".to_owned());
        socket.send(&mut batch).map_err(|refused| format!("{}: {}", refused.label, refused.why))?;
        Ok(Self { socket, family })
    }

    /// Returns the length of the kernel's next message; None if none waits. Messages that do not fit
    /// into `buffer` are lost.
    ///
    /// # Errors
    /// An error of the socket.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        loop {
            match rustix::net::recv(self.socket.descriptor(), &mut *buffer, flags) {
                Ok((_, octets)) if octets <= buffer.len() && is_of(self.family, &buffer[..octets]) => {
                    return Ok(Some(octets));
                }
                // Too long, or a refusal of a message; with NOBUFS the kernel reports lost messages.
                Ok(_) | Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends a message to the kernel, which may refuse it: its radio may be off.
    ///
    /// # Errors
    /// An error of the socket, or `InvalidData` if it is shorter than its headers.
    pub fn send(&self, message: &mut [u8]) -> io::Result<()> {
        if message.len() < HEADER {
            return Err(io::ErrorKind::InvalidData.into());
        }
        message[TYPE..FLAGS].copy_from_slice(&self.family.to_ne_bytes());
        message[FLAGS..FLAGS + 2].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        Ok(rustix::net::send(self.socket.descriptor(), message, SendFlags::empty()).map(drop)?)
    }
}

impl AsRawFd for Radios {
    /// Readable while a message of the kernel waits.
    fn as_raw_fd(&self) -> RawFd {
        self.socket.descriptor().as_raw_fd()
    }
}

/// Whether these octets are one whole message of a family.
fn is_of(family: u16, octets: &[u8]) -> bool {
    octets.len() >= HEADER
        && octets[..TYPE] == u32::try_from(octets.len()).unwrap_or(0).to_ne_bytes()
        && octets[TYPE..FLAGS] == family.to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::{HEADER, is_of};

    #[test]
    fn a_message_is_whole_and_of_the_family() {
        let mut octets = [0; HEADER + 4];
        octets[..4].copy_from_slice(&24u32.to_ne_bytes());
        octets[4..6].copy_from_slice(&28u16.to_ne_bytes());
        assert!(is_of(28, &octets));
        assert!(!is_of(2, &octets), "a refusal");
        assert!(!is_of(28, &octets[..HEADER]), "cut");
        assert!(!is_of(28, &octets[..3]));
    }
}
