//! Simulated radios of this kernel (`mac80211_hwsim`) whose medium is a process: the kernel sends it
//! every frame on a generic netlink socket, and takes from it the frames that the radios receive.
//! Source: the kernel's `mac80211_hwsim.h`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::thread;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{RecvFlags, SendFlags};
use rustix::thread::{UnshareFlags, unshare_unsafe};

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

/// `SO_MEMINFO` of a socket: the number of its values, and which one counts the messages that were
/// dropped (the kernel's `linux/sock_diag.h`).
const VALUES: usize = 9;
const DROPPED: usize = 8;

/// Radios of the network namespace in which they were created; they end with this value, wherever
/// they have been moved.
#[derive(Debug)]
pub struct Radios {
    socket: Socket,
    family: u16,
    numbers: Vec<u16>,
}

/// Whether this kernel has the family, in the network namespace of the calling thread.
///
/// # Errors
/// An error of the socket.
pub fn is_there() -> io::Result<bool> {
    Ok(Socket::open_for(Some(netlink::GENERIC))?.family(FAMILY)?.is_some())
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
        // Without the right the system's limit applies.
        let _ = set_socket_recv_buffer_size_force(socket.descriptor(), ROOM)
            .or_else(|_| set_socket_recv_buffer_size(socket.descriptor(), ROOM));
        let ask = |command, label: String| {
            let mut batch = Batch::default();
            batch.request(family, 0, &[command, 1, 0, 0], label);
            if command == NEW_RADIO {
                batch.attribute(DESTROY_ON_CLOSE, &[]);
            }
            socket.ask(&mut batch).map_err(|refused| format!("{}: {}", refused.label, refused.why))
        };
        let mut numbers = Vec::with_capacity(usize::from(count));
        for number in 0..count {
            let given = ask(NEW_RADIO, format!("radio {number} of mac80211_hwsim"))?;
            // The kernel counts on, and its radios' addresses have the low 16 bits.
            numbers.push(u16::try_from(given & u32::from(u16::MAX)).expect("16 bits"));
        }
        ask(REGISTER, "the medium of mac80211_hwsim".to_owned())?;
        Ok(Self { socket, family, numbers })
    }

    /// As [`Radios::create`], in a new network namespace, so that no radio of another program shares
    /// the medium: the kernel has one for each namespace. A radio keeps it when it is moved. Returns
    /// the namespace too.
    ///
    /// # Errors
    /// The reason in words.
    pub fn create_apart(count: u8) -> Result<(Self, OwnedFd), String> {
        let act = || {
            // SAFETY: the thread shares nothing that it does not share afterwards, but its network.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
                .map_err(|error| format!("a network namespace: {error}"))?;
            let namespace = File::open("/proc/thread-self/ns/net")
                .map_err(|error| format!("/proc/thread-self/ns/net: {error}"))?;
            Ok((Self::create(count)?, namespace.into()))
        };
        thread::scope(|scope| match scope.spawn(act).join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// The kernel's number of each radio. Number `n`, in hexadecimal `hhll`, has the permanent address
    /// `02:00:00:hh:ll:00`, and its messages name it `42:00:00:hh:ll:00`.
    #[must_use]
    pub fn numbers(&self) -> &[u16] {
        &self.numbers
    }

    /// Messages of the kernel so far that were lost because too many waited.
    #[must_use]
    pub fn lost(&self) -> u32 {
        let mut values = [0_u32; VALUES];
        let mut octets = libc::socklen_t::try_from(size_of_val(&values)).unwrap_or(0);
        let fd = self.as_raw_fd();
        // SAFETY: the values and their length outlive the call.
        unsafe {
            libc::getsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                (&raw mut values).cast(),
                &raw mut octets,
            );
        }
        values[DROPPED]
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
    use super::{HEADER, Radios, is_of};
    use crate::netlink::Socket;
    use rustix::io::Errno;
    use rustix::net::sockopt::set_socket_recv_buffer_size;
    use rustix::net::{RecvFlags, netlink, recv};

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
    #[test]
    fn messages_without_room_are_counted() {
        let socket = Socket::open_for(Some(netlink::GENERIC)).unwrap();
        set_socket_recv_buffer_size(socket.descriptor(), 8192).unwrap();
        // The family of generic netlink itself refuses each of these requests with a message.
        let radios = Radios { socket, family: 0x10, numbers: Vec::new() };
        let mut request = [0; HEADER];
        request[..4].copy_from_slice(&20u32.to_ne_bytes());
        request[16] = u8::MAX;
        for _ in 0..500 {
            radios.send(&mut request).unwrap();
        }
        let mut received = 0;
        loop {
            match recv(radios.socket.descriptor(), &mut [0; 4096][..], RecvFlags::DONTWAIT) {
                Ok(_) => received += 1,
                Err(Errno::NOBUFS) => {}
                Err(error) => break assert_eq!(error, Errno::AGAIN),
            }
        }
        assert!(radios.lost() > 0);
        assert_eq!(received + radios.lost(), 500);
    }
}
