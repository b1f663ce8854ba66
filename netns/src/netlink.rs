//! Sends batches of netlink requests, many per system call.
//!
//! A node needs about ten requests (links, addresses, routes). They are written consecutively into
//! one buffer. Only the last requests an acknowledgement; the kernel reports every refused request
//! in any case (RFC 3549 section 2.3.2; `netlink(7)`).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{self, AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x01;
const NLM_F_ACK: u16 = 0x04;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLM_F_CAPPED: u16 = 0x100;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLA_F_NESTED: u16 = 1 << 15;

/// Generic netlink's own family, its request for the others, and the octets of the fixed part of
/// its messages (`linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GENERIC_HEADER: usize = 4;

/// A batch of requests, each with a label for error messages.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    starts: Vec<usize>,
    labels: Vec<String>,
}

/// A refused request: its label and the kernel's reason.
#[derive(Debug)]
pub(crate) struct Refused {
    pub label: String,
    pub why: String,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.starts.clear();
        self.labels.clear();
    }

    /// Begins a request with its type, flags and the fixed part of its body.
    pub(crate) fn request(&mut self, kind: u16, flags: u16, body: &[u8], label: String) {
        self.starts.push(self.octets.len());
        self.labels.push(label);
        self.octets.extend_from_slice(&[0; 4]); // the length, filled in later
        self.octets.extend_from_slice(&kind.to_ne_bytes());
        self.octets.extend_from_slice(&(flags | NLM_F_REQUEST).to_ne_bytes());
        let sequence = u32::try_from(self.starts.len()).expect("a batch is small");
        self.octets.extend_from_slice(&sequence.to_ne_bytes());
        self.octets.extend_from_slice(&[0; 4]);
        self.octets.extend_from_slice(body);
        self.close();
    }

    /// Adds an attribute to the current request.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(value.len() + 4).expect("an attribute is small");
        self.octets.extend_from_slice(&length.to_ne_bytes());
        self.octets.extend_from_slice(&kind.to_ne_bytes());
        self.octets.extend_from_slice(value);
        self.close();
    }

    /// Adds an attribute with nested attributes, after a fixed part.
    pub(crate) fn nest(&mut self, kind: u16, fixed: &[u8], inside: impl FnOnce(&mut Self)) {
        let start = self.octets.len();
        self.attribute(kind | NLA_F_NESTED, fixed);
        inside(self);
        let length = u16::try_from(self.octets.len() - start).expect("an attribute is small");
        self.octets[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }

    /// Pads to four octets and writes the length of the request.
    fn close(&mut self) {
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
        let start = *self.starts.last().expect("a request was started");
        let length = u32::try_from(self.octets.len() - start).expect("a request is small");
        self.octets[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    }
}

/// A netlink route socket in the network namespace of the thread that created it.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    pub(crate) fn open() -> io::Result<Self> {
        Self::open_for(None)
    }

    /// Opens a socket of a netlink protocol; `None` is protocol 0, NETLINK_ROUTE.
    pub(crate) fn open_for(protocol: Option<Protocol>) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let fd = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        // Enables error messages as text; a kernel without them reports numbers.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let on: libc::c_int = 1;
            // SAFETY: the value outlives the call and its size is given.
            unsafe {
                libc::setsockopt(fd.as_raw_fd(), libc::SOL_NETLINK, option, (&raw const on).cast(), 4);
            }
        }
        Ok(Self { fd })
    }

    /// The index of an interface in the socket's namespace.
    pub(crate) fn index_of(&self, interface: &str) -> io::Result<u32> {
        Ok(net::netdevice::name_to_index(&self.fd, interface)?)
    }

    /// Sends all requests and waits until the last one is done; returns the first that was refused.
    pub(crate) fn send(&self, batch: &mut Batch) -> Result<(), Refused> {
        self.ask(batch).map(drop)
    }

    /// As [`Socket::send`]; returns what the last request was answered with: 0, or the number that
    /// some generic netlink families answer a success with.
    pub(crate) fn ask(&self, batch: &mut Batch) -> Result<u32, Refused> {
        let (Some(&start), Some(label)) = (batch.starts.last(), batch.labels.last()) else { return Ok(0) };
        let broken = |source: io::Error| Refused { label: label.clone(), why: source.to_string() };
        let flags = start + 6;
        let wanted = u16::from_ne_bytes([batch.octets[flags], batch.octets[flags + 1]]) | NLM_F_ACK;
        batch.octets[flags..flags + 2].copy_from_slice(&wanted.to_ne_bytes());
        self.write(&batch.octets).map_err(broken)?;

        let last = u32::try_from(batch.starts.len()).expect("a batch is small");
        let mut refused = None;
        let mut buffer = vec![0_u8; 16_384];
        loop {
            let got = self.read(&mut buffer).map_err(broken)?;
            for message in Messages(&buffer[..got]) {
                if message.kind != NLMSG_ERROR || message.body.len() < 4 {
                    continue;
                }
                let answer = i32::from_ne_bytes(message.body[..4].try_into().expect("four octets"));
                if answer < 0 && refused.is_none() {
                    let label = batch.labels.get(message.sequence as usize - 1);
                    refused = Some(Refused {
                        label: label.cloned().unwrap_or_default(),
                        why: reason(&message, -answer),
                    });
                }
                if message.sequence == last {
                    return refused.map_or(Ok(answer.unsigned_abs()), Err);
                }
            }
        }
    }

    /// Sends a request that asks for one thing, and returns the body of the answer.
    pub(crate) fn get(&self, kind: u16, fill: impl FnOnce(&mut Batch)) -> io::Result<Vec<u8>> {
        let mut batch = Batch::default();
        batch.request(kind, 0, &[0; 16], String::new());
        fill(&mut batch);
        self.write(&batch.octets)?;
        let mut buffer = vec![0_u8; 16_384];
        let got = self.read(&mut buffer)?;
        let message = Messages(&buffer[..got]).next().ok_or(io::ErrorKind::InvalidData)?;
        refusal(&message).map_or_else(|| Ok(message.body.to_vec()), Err)
    }

    /// Sends one dump request and passes the bodies of all answers to `each`.
    pub(crate) fn dump(&self, kind: u16, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut batch = Batch::default();
        let dump = u16::try_from(libc::NLM_F_DUMP).expect("a flag of 16 bits");
        batch.request(kind, dump, body, String::new());
        self.write(&batch.octets)?;
        let mut buffer = vec![0_u8; 65_536];
        loop {
            let got = self.read(&mut buffer)?;
            for message in Messages(&buffer[..got]) {
                if message.kind == NLMSG_DONE {
                    return Ok(());
                }
                match refusal(&message) {
                    Some(error) => return Err(error),
                    None => each(message.body),
                }
            }
        }
    }

    /// The number of a generic netlink family in this kernel, if it exists.
    pub(crate) fn family(&self, name: &str) -> io::Result<Option<u16>> {
        let mut found = None;
        self.dump(CONTROL, &[GET_FAMILY, 1, 0, 0], |answer| {
            let of = |wanted| {
                attributes(answer.get(GENERIC_HEADER..)?)
                    .find(|(kind, _)| *kind == wanted)
                    .map(|(_, value)| value)
            };
            if of(FAMILY_NAME).and_then(|said| said.strip_suffix(&[0])) == Some(name.as_bytes()) {
                found = of(FAMILY_ID).and_then(|id| id.try_into().ok()).map(u16::from_ne_bytes);
            }
        })?;
        Ok(found)
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.fd
    }

    fn write(&self, octets: &[u8]) -> io::Result<()> {
        Ok(net::send(&self.fd, octets, SendFlags::empty()).map(drop)?)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (got, _) = retry_on_intr(|| net::recv(&self.fd, &mut *buffer, RecvFlags::empty()))?;
        Ok(got)
    }
}

/// One message of the kernel.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// Iterates over the messages in a datagram, as far as their lengths are valid.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let octets = self.0;
        let length = u32::from_ne_bytes(octets.get(..4)?.try_into().ok()?) as usize;
        let body = octets.get(HEADER..length)?;
        self.0 = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message {
            kind: u16::from_ne_bytes([octets[4], octets[5]]),
            flags: u16::from_ne_bytes([octets[6], octets[7]]),
            sequence: u32::from_ne_bytes(octets[8..12].try_into().ok()?),
            body,
        })
    }
}

/// The attributes in a slice: type without its flags, and value.
pub(crate) fn attributes(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The error with which the kernel answers instead of what it was asked for.
fn refusal(message: &Message<'_>) -> Option<io::Error> {
    let code = message.body.first_chunk().filter(|_| message.kind == NLMSG_ERROR)?;
    Some(io::Error::from_raw_os_error(-i32::from_ne_bytes(*code)))
}

/// The kernel's error text, or else its error number.
fn reason(message: &Message<'_>, code: i32) -> String {
    let number = io::Error::from_raw_os_error(code).to_string();
    if message.flags & NLM_F_ACK_TLVS == 0 {
        return number;
    }
    // The error number is followed by the header of the request, or the whole request unless
    // capped.
    let request = message
        .body
        .get(4..8)
        .map_or(0, |octets| u32::from_ne_bytes(octets.try_into().expect("four octets")) as usize);
    let skip = 4 + if message.flags & NLM_F_CAPPED == 0 { request } else { HEADER };
    let words = attributes(message.body.get(skip..).unwrap_or_default())
        .find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG)
        .map(|(_, value)| String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned());
    words.map_or(number.clone(), |words| format!("{words} ({number})"))
}

#[cfg(test)]
mod tests {
    use super::{Batch, Messages, attributes};

    #[test]
    fn requests_stand_one_behind_the_other_with_their_lengths() {
        let mut batch = Batch::default();
        batch.request(16, 0, &[1; 16], "one".to_owned());
        batch.attribute(3, b"eth0\0");
        batch.request(20, 0x600, &[2; 8], "two".to_owned());
        batch.nest(18, &[], |batch| batch.attribute(1, b"veth"));
        let seen: Vec<_> = Messages(&batch.octets)
            .map(|message| (message.kind, message.sequence, message.body.len()))
            .collect();
        assert_eq!(seen, [(16, 1, 16 + 12), (20, 2, 8 + 12)]);
        let second = Messages(&batch.octets).nth(1).unwrap();
        let outer: Vec<_> = attributes(&second.body[8..]).collect();
        assert_eq!(outer.len(), 1);
        assert_eq!(attributes(outer[0].1).next(), Some((1, &b"veth"[..])));
    }

    #[test]
    fn a_cut_answer_ends_the_walk() {
        assert_eq!(Messages(&[255, 0, 0, 0, 1]).count(), 0);
        assert_eq!(attributes(&[2, 0, 1, 0, 9]).count(), 0);
    }
}
