//! Messages with file descriptors over a stream socket.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of a message; the largest are environments and files of a node.
const LONGEST: usize = 16 << 20;
/// Descriptors that one packet of the socket can carry: the kernel's limit, `SCM_MAX_FD`.
const DESCRIPTORS: usize = 253;
/// Room for their control message, in words of 8 octets: a header of 16 octets, 4 octets each.
const CONTROL: usize = 2 + DESCRIPTORS.div_ceil(2);

/// One end of a stream socket that carries messages.
#[derive(Debug)]
pub struct Channel {
    fd: OwnedFd,
    octets: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Channel {
    /// Takes over a connected stream socket.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, octets: Vec::new(), descriptors: VecDeque::new() }
    }

    /// Sends one message.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        let mut octets = u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes().to_vec();
        octets.extend_from_slice(&body);
        let mut rest = &octets[..];
        while !rest.is_empty() {
            // SAFETY: the slice outlives the call and its length is given.
            let sent = unsafe {
                libc::send(self.fd.as_raw_fd(), rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL)
            };
            match usize::try_from(sent) {
                Ok(sent) => rest = &rest[sent..],
                Err(_) => interrupted_or(io::Error::last_os_error())?,
            }
        }
        Ok(())
    }

    /// Reads the available data; returns false at the end of the stream.
    pub fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = [0_u8; 16_384];
        // Control messages need this alignment.
        let mut control = [0_u64; CONTROL];
        loop {
            let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            // SAFETY: a msghdr is plain integers and pointers, for which zero is a value.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control);
            // SAFETY: all buffers outlive the call and their sizes are given.
            let got = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) };
            let Ok(got) = usize::try_from(got) else {
                interrupted_or(io::Error::last_os_error())?;
                continue;
            };
            self.take_descriptors(&header);
            self.octets.extend_from_slice(&buffer[..got]);
            return Ok(got > 0);
        }
    }

    fn take_descriptors(&mut self, header: &libc::msghdr) {
        // SAFETY: the kernel has filled the control buffer and its length.
        let mut entry = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !entry.is_null() {
            // SAFETY: the macros give pointers inside the control buffer, and the kernel has put
            // open descriptors there without another owner.
            unsafe {
                if (*entry).cmsg_level == libc::SOL_SOCKET && (*entry).cmsg_type == libc::SCM_RIGHTS {
                    let length = (*entry).cmsg_len - libc::CMSG_LEN(0) as usize;
                    let first = libc::CMSG_DATA(entry).cast::<RawFd>();
                    for index in 0..length / size_of::<RawFd>() {
                        let fd = first.add(index).read_unaligned();
                        self.descriptors.push_back(OwnedFd::from_raw_fd(fd));
                    }
                }
                entry = libc::CMSG_NXTHDR(header, entry);
            }
        }
    }

    /// Returns the next complete message, if any.
    pub fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let Some(head) = self.octets.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
        }
        let Some(body) = self.octets.get(4..4 + length) else { return Ok(None) };
        let message = serde_json::from_slice(body)?;
        self.octets.drain(..4 + length);
        if self.octets.is_empty() {
            // Frees the memory of one long message.
            self.octets.shrink_to(4096);
        }
        Ok(Some(message))
    }

    /// Takes the descriptors that came with a message, in their order.
    pub fn descriptors<const N: usize>(&mut self) -> io::Result<[OwnedFd; N]> {
        Ok(self.take(N)?.try_into().expect("as many as were taken"))
    }

    /// Takes `count` of the descriptors that came with a message.
    pub fn take(&mut self, count: usize) -> io::Result<Vec<OwnedFd>> {
        if self.descriptors.len() < count {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message came without its descriptors"));
        }
        Ok(self.descriptors.drain(..count).collect())
    }
}

impl AsRawFd for Channel {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn interrupted_or(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::{AsRawFd, OwnedFd, RawFd};
    use std::os::unix::net::UnixStream;

    use super::{CONTROL, Channel, DESCRIPTORS};

    fn pair() -> (UnixStream, Channel) {
        let (near, far) = UnixStream::pair().unwrap();
        (near, Channel::new(OwnedFd::from(far)))
    }

    #[test]
    fn a_message_may_come_in_pieces() {
        let (mut near, mut channel) = pair();
        let text = br#"{"a":1}"#;
        let mut octets = 7_u32.to_le_bytes().to_vec();
        octets.extend_from_slice(text);
        for octet in octets {
            assert!(channel.next::<serde_json::Value>().unwrap().is_none());
            near.write_all(&[octet]).unwrap();
            assert!(channel.fill().unwrap());
        }
        assert_eq!(channel.next::<serde_json::Value>().unwrap().unwrap()["a"], 1);
        drop(near);
        assert!(!channel.fill().unwrap());
    }

    #[test]
    fn what_is_sent_can_be_read() {
        let (near, mut channel) = pair();
        let sender = Channel::new(OwnedFd::from(near));
        sender.send(&serde_json::json!({"b": [1, 2]})).unwrap();
        sender.send(&serde_json::json!({"c": 3})).unwrap();
        channel.fill().unwrap();
        assert_eq!(channel.next::<serde_json::Value>().unwrap().unwrap()["b"][1], 2);
        assert_eq!(channel.next::<serde_json::Value>().unwrap().unwrap()["c"], 3);
    }

    #[test]
    fn a_packet_carries_as_many_descriptors_as_the_kernel_allows() {
        let (near, mut channel) = pair();
        let sent = vec![near.as_raw_fd(); DESCRIPTORS];
        let mut control = [0_u64; CONTROL];
        let mut octet = [b'x'];
        let mut part = libc::iovec { iov_base: octet.as_mut_ptr().cast(), iov_len: 1 };
        let length = u32::try_from(size_of_val(&sent[..])).unwrap();
        // SAFETY: the control buffer has room for one header and all descriptors, which are open.
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(length) as usize;
            let entry = libc::CMSG_FIRSTHDR(&raw const header);
            (*entry).cmsg_level = libc::SOL_SOCKET;
            (*entry).cmsg_type = libc::SCM_RIGHTS;
            (*entry).cmsg_len = libc::CMSG_LEN(length) as usize;
            libc::CMSG_DATA(entry).cast::<RawFd>().copy_from(sent.as_ptr(), sent.len());
            assert_eq!(libc::sendmsg(near.as_raw_fd(), &raw const header, 0), 1);
        }
        channel.fill().unwrap();
        assert_eq!(channel.take(DESCRIPTORS).unwrap().len(), DESCRIPTORS);
        assert!(channel.take(1).is_err());
    }

    #[test]
    fn missing_descriptors_and_long_messages_are_refused() {
        let (mut near, mut channel) = pair();
        assert!(channel.descriptors::<1>().is_err());
        near.write_all(&u32::MAX.to_le_bytes()).unwrap();
        channel.fill().unwrap();
        assert!(channel.next::<serde_json::Value>().is_err());
    }
}
