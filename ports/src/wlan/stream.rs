//! Messages of a guest's driver on a stream socket.
//!
//! In the guest, `airloom-init` is the user-space medium of the kernel's `mac80211_hwsim` (generic
//! netlink, `HWSIM_CMD_REGISTER`) and passes its messages on over a character device. They follow
//! one another without anything between them: each begins with its own length.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use airloom_engine::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::frame::Pool;
use airloom_engine::time::{Instant, Span};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, accept_with};

use super::Transport;
use super::device::{Taken, Wlan};
use super::hwsim::{Flaw, LONGEST, length};
use crate::error::Error;
use crate::port::Report;
use crate::runtime::poller::Poller;
use crate::vhost::device::Counts;
use crate::vhost::{DisconnectReason, Standing, Translations, check_listener, figures};

const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
/// Octets of each direction that may wait in the engine.
const ROOM: usize = 64 << 10;
/// Time after which octets are sent again that the socket did not take.
const AGAIN: Span = Span::from_millis(1);

/// A listening socket, and the connection of the present guest.
#[derive(Debug)]
pub struct Stream {
    listener: OwnedFd,
    poller: Poller,
    connection: Option<OwnedFd>,
    wlan: Wlan,
    input: Waiting,
    output: Waiting,
    connections: u64,
    counts: Counts,
    reason: Option<DisconnectReason>,
}

/// Octets in order of arrival.
#[derive(Debug)]
struct Waiting {
    octets: Box<[u8]>,
    begin: usize,
    end: usize,
}

impl Waiting {
    fn new() -> Self {
        Self { octets: vec![0; ROOM].into_boxed_slice(), begin: 0, end: 0 }
    }

    fn clear(&mut self) {
        (self.begin, self.end) = (0, 0);
    }

    fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    fn content(&self) -> &[u8] {
        &self.octets[self.begin..self.end]
    }

    fn consume(&mut self, octets: usize) {
        self.begin += octets;
        if self.begin == self.end {
            self.clear();
        }
    }

    /// The free octets at the end, after the content has moved to the beginning.
    fn free(&mut self) -> &mut [u8] {
        self.octets.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        &mut self.octets[self.end..]
    }

    /// Appends parts without their first `skip` octets.
    fn append(&mut self, parts: [&[u8]; 3], mut skip: usize) {
        for part in parts {
            let rest = part.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(part.len());
            self.free()[..rest.len()].copy_from_slice(rest);
            self.end += rest.len();
        }
    }
}

impl Stream {
    /// Serves the guest that connects to `listener`, a listening Unix stream socket.
    ///
    /// # Errors
    /// [`Error::VhostSocket`] if it is not such a socket, [`Error::Loop`] if no descriptor is
    /// available.
    pub fn serve(listener: OwnedFd) -> Result<Self, Error> {
        check_listener(&listener)?;
        let poller = Poller::new()?;
        poller.add(listener.as_raw_fd(), LISTENER)?;
        Ok(Self {
            listener,
            poller,
            connection: None,
            wlan: Wlan::default(),
            input: Waiting::new(),
            output: Waiting::new(),
            connections: 0,
            counts: Counts::default(),
            reason: None,
        })
    }

    fn standing(&self) -> Standing {
        match (&self.connection, self.connections) {
            (Some(_), _) => Standing::Up,
            (None, 0) => Standing::Awaited,
            (None, _) => Standing::Gone,
        }
    }

    /// Accepts a guest's connection; returns false if there is none.
    fn accept(&mut self) -> bool {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let Ok(connection) = accept_with(&self.listener, flags) else { return false };
        if self.poller.add(connection.as_raw_fd(), CONNECTION).is_err() {
            return false;
        }
        // Further connections wait until this one ends.
        self.poller.remove(self.listener.as_raw_fd());
        self.connection = Some(connection);
        self.connections += 1;
        true
    }

    fn disconnect(&mut self, reason: DisconnectReason) {
        if let Some(connection) = self.connection.take() {
            self.poller.remove(connection.as_raw_fd());
            // It was removed before: this cannot fail for lack of memory.
            let _ = self.poller.add(self.listener.as_raw_fd(), LISTENER);
        }
        self.wlan.forget_guest();
        self.input.clear();
        self.output.clear();
        self.reason = Some(reason);
    }

    /// Receives what has arrived; returns false if there is nothing.
    fn fill(&mut self) -> Result<bool, DisconnectReason> {
        let Some(connection) = &self.connection else { return Ok(false) };
        match rustix::net::recv(connection, self.input.free(), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Err(DisconnectReason::Closed),
            Ok((_, octets)) => {
                self.input.end += octets;
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(lost(error)),
        }
    }

    /// Executes the next message if it is complete.
    fn next(&mut self, pool: &mut Pool) -> Result<Option<Taken>, DisconnectReason> {
        let octets = self.input.content();
        let Some(length) = length(octets) else { return Ok(None) };
        if length > LONGEST {
            return Err(DisconnectReason::Wlan(Flaw::Length(length)));
        }
        let Some(message) = octets.get(..length) else { return Ok(None) };
        let taken = self.wlan.serve(message, pool).map_err(DisconnectReason::Wlan)?;
        self.input.consume(length);
        self.counts.taken += 1;
        if let Taken::Transmit(_, _, octets, _) = taken {
            self.counts.taken_octets += u64::from(octets);
        }
        Ok(Some(taken))
    }

    /// Sends octets that wait.
    fn flush(&mut self) -> Result<(), DisconnectReason> {
        let Some(connection) = self.connection.as_ref().filter(|_| !self.output.is_empty()) else {
            return Ok(());
        };
        let sent = send(connection, &[IoSlice::new(self.output.content())])?;
        self.output.consume(sent);
        Ok(())
    }

    fn write(&mut self, message: [&[u8]; 3]) -> Result<Delivery, DisconnectReason> {
        self.flush()?;
        let length: usize = message.iter().map(|part| part.len()).sum();
        if length > LONGEST {
            return Ok(Delivery::Lost(HostLoss::TooBig));
        }
        let Some(connection) = &self.connection else { return Ok(Delivery::Lost(HostLoss::NodeGone)) };
        let sent = if self.output.is_empty() { send(connection, &message.map(IoSlice::new))? } else { 0 };
        if sent < length {
            if self.output.free().len() < length - sent {
                self.counts.full += 1;
                return Ok(Delivery::Lost(HostLoss::GuestRingFull));
            }
            self.output.append(message, sent);
            self.counts.waited += 1;
        }
        self.counts.put += 1;
        self.counts.put_octets += length as u64;
        Ok(Delivery::Taken)
    }
}

impl Transport for Stream {
    fn wlan(&mut self) -> &mut Wlan {
        &mut self.wlan
    }

    fn descriptor(&self) -> RawFd {
        self.poller.as_raw_fd()
    }

    fn take(&mut self, pool: &mut Pool) -> Option<Taken> {
        loop {
            match self.next(pool) {
                Ok(Some(taken)) => return Some(taken),
                Ok(None) => {}
                Err(reason) => {
                    self.disconnect(reason);
                    return None;
                }
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) if self.connection.is_none() && self.accept() => {}
                Ok(false) => return None,
                Err(reason) => {
                    self.disconnect(reason);
                    return None;
                }
            }
        }
    }

    fn put(&mut self, message: [&[u8]; 3]) -> Delivery {
        match self.standing() {
            Standing::Up => {}
            Standing::Gone => return Delivery::Lost(HostLoss::NodeGone),
            Standing::Awaited | Standing::Stopped => return Delivery::NotUp,
        }
        self.write(message).unwrap_or_else(|reason| {
            self.disconnect(reason);
            Delivery::Lost(HostLoss::NodeGone)
        })
    }

    fn negotiate(&mut self) -> bool {
        self.connection.is_none() && self.accept()
    }

    fn notify(&mut self, now: Instant) -> Instant {
        if let Err(reason) = self.flush() {
            self.disconnect(reason);
        }
        if self.output.is_empty() { Instant::NEVER } else { now + AGAIN }
    }

    fn is_gone(&self) -> bool {
        self.standing() == Standing::Gone
    }

    fn disconnect_reason(&self) -> Option<&DisconnectReason> {
        self.reason.as_ref()
    }

    fn figures(&self) -> Report {
        let (translations, unserved) = (Translations::default(), self.wlan.strangers());
        let reason = self.reason.as_ref();
        figures(self.standing(), reason, self.connections, 0, self.counts, translations, unserved)
    }
}

/// Sends some of the octets; returns how many.
fn send(connection: &OwnedFd, parts: &[IoSlice<'_>]) -> Result<usize, DisconnectReason> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::sendmsg(connection, parts, &mut SendAncillaryBuffer::default(), flags) {
        Ok(sent) => Ok(sent),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(lost(error)),
    }
}

fn lost(error: Errno) -> DisconnectReason {
    match error {
        Errno::PIPE | Errno::CONNRESET => DisconnectReason::Closed,
        error => DisconnectReason::Socket(io::Error::from(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::{LONGEST, ROOM, Stream, Waiting};
    use crate::wlan::Transport;
    use airloom_engine::HostLoss;
    use airloom_engine::egress::Delivery;
    use airloom_engine::frame::Pool;
    use airloom_engine::time::Instant;
    use proptest::prelude::*;

    #[test]
    fn parts_wait_without_what_was_sent() {
        let mut waiting = Waiting::new();
        waiting.append([b"abc", b"", b"def"], 2);
        waiting.append([b"gh", b"ij", b"k"], 4);
        assert_eq!(waiting.content(), b"cdefk");
        waiting.consume(2);
        assert_eq!(waiting.free().len(), ROOM - 3);
        assert_eq!(waiting.content(), b"efk");
        waiting.consume(3);
        assert!(waiting.is_empty());
    }

    #[test]
    fn what_a_guest_does_not_read_waits_and_then_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guest");
        let mut stream = Stream::serve(UnixListener::bind(&path).unwrap().into()).unwrap();
        let numbered = |number: u16| {
            let mut message = vec![0; LONGEST];
            message[..2].copy_from_slice(&number.to_ne_bytes());
            message
        };
        assert_eq!(stream.put([&numbered(0), &[], &[]]), Delivery::NotUp);
        let mut guest = UnixStream::connect(&path).unwrap();
        assert!(stream.negotiate() && !stream.negotiate());
        let mut taken = 0;
        while stream.put([&numbered(taken)[..100], &[], &[0; LONGEST - 100]]) == Delivery::Taken {
            taken += 1;
        }
        assert_eq!(stream.put([&numbered(taken), &[], &[]]), Delivery::Lost(HostLoss::GuestRingFull));
        assert_ne!(stream.notify(Instant::ZERO), Instant::NEVER, "octets wait");
        let mut message = [0; LONGEST];
        for number in 0..taken {
            guest.read_exact(&mut message).unwrap();
            assert_eq!(message[..], numbered(number));
            stream.notify(Instant::ZERO);
        }
        assert_eq!(stream.notify(Instant::ZERO), Instant::NEVER);
        assert_eq!(stream.put([&[0; LONGEST], &[1], &[]]), Delivery::Lost(HostLoss::TooBig));
        drop(guest);
        assert_eq!(stream.put([&[0; 20], &[], &[]]), Delivery::Lost(HostLoss::NodeGone));
        assert!(stream.is_gone());
    }

    proptest! {
        #[test]
        fn any_octets_are_messages_or_end_the_connection(
            mut octets in proptest::collection::vec(any::<u8>(), 0..200),
            lengths in proptest::collection::vec((0..200usize, 0..100u32), 0..8),
        ) {
            // Plausible lengths at some places, so that messages follow one another.
            for (at, length) in lengths {
                if let Some(place) = octets.get_mut(at..at + 4) {
                    place.copy_from_slice(&length.to_ne_bytes());
                }
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("guest");
            let mut stream = Stream::serve(UnixListener::bind(&path).unwrap().into()).unwrap();
            let mut guest = UnixStream::connect(&path).unwrap();
            guest.write_all(&octets).unwrap();
            drop(guest);
            let mut pool = Pool::default();
            while stream.take(&mut pool).is_some() {}
            prop_assert!(stream.is_gone() && stream.disconnect_reason().is_some());
            prop_assert_eq!(pool.in_use(), 0);
        }
    }
}
