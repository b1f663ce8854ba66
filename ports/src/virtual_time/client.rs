//! The connection of one guest to the calendar.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, accept_with, recv, send,
    sendmsg, sockopt,
};

use super::protocol::{Message, OCTETS, Operation};
use super::spin::SpinPage;
use super::window::{Logged, Window};
use crate::vhost::memory::MemoryError;

/// Later than every time that a guest requests: it waits for something from outside.
const NEVER: u64 = i64::MAX as u64;

/// The number of a guest in the calendar that it shares, which is that of no other.
const NUMBER: u64 = 1;

/// What a guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its kernel is not started yet.
    Awaited,
    /// It waits for the answer to its first message, which had this sequence number.
    Started(u32),
    /// It may run now.
    Running,
    /// It waits until the calendar lets it run.
    Waiting,
    /// It has ended.
    Gone,
}

/// Why a guest cannot go on.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Its connection has ended.
    Ended,
    /// It does not keep to the protocol, in these words.
    Violation(String),
}

/// One guest.
#[derive(Debug)]
pub(super) struct Client {
    pub name: String,
    listener: OwnedFd,
    socket: Option<OwnedFd>,
    pub standing: Standing,
    /// The time that it has told last, or at which it was let run.
    pub time: u64,
    /// When it wishes to run.
    pub request: Option<u64>,
    /// Up to when it may advance its time without a message.
    pub free_until: u64,
    sequence: u32,
    /// Sequence number of the last message that it acknowledged.
    pub acknowledged: u32,
    partial: Vec<u8>,
    /// What its kernel says about programs that spin.
    pub spin: Option<SpinPage>,
    /// The memory that it shares with the calendar, if it was offered some.
    window: Option<Window>,
    /// Whether its kernel uses that memory.
    uses_window: bool,
}

impl Client {
    pub fn new(name: String, listener: OwnedFd) -> Self {
        Self {
            name,
            listener,
            socket: None,
            standing: Standing::Awaited,
            time: 0,
            request: None,
            free_until: 0,
            sequence: 0,
            acknowledged: 0,
            partial: Vec::new(),
            spin: None,
            window: None,
            uses_window: false,
        }
    }

    /// The memory that it shares with the calendar; None if it sends messages instead.
    pub fn window(&self) -> Option<&Window> {
        self.window.as_ref().filter(|_| self.uses_window)
    }

    /// Notes what its kernel does with the memory that it was offered: known at its first message.
    pub fn see_window(&mut self) {
        self.uses_window = self.uses_window || self.window.as_ref().is_some_and(Window::is_used);
    }

    /// Reads when it wishes to run.
    pub fn read_request(&mut self) {
        if let Some(window) = self.window.as_ref().filter(|_| self.uses_window) {
            window.stop();
            let request = window.request();
            self.wish(request.unwrap_or(NEVER));
        }
    }

    /// Takes what it has logged since it began to run, and its time. Only of one that runs.
    pub fn take_log(&mut self) -> Result<Vec<Logged>, Trouble> {
        let Some(window) = self.window.as_ref().filter(|_| self.uses_window) else { return Ok(Vec::new()) };
        let found = window.take_log(self.time, self.free_until.max(self.time)).map_err(Trouble::Violation)?;
        let time = window.time();
        if time < self.time || time > self.free_until.max(self.time) {
            return Err(Trouble::Violation(format!("moves its time from {} to {time} ns", self.time)));
        }
        self.time = time;
        Ok(found)
    }

    /// The descriptor on which its next message arrives.
    pub fn descriptor(&self) -> &OwnedFd {
        self.socket.as_ref().unwrap_or(&self.listener)
    }

    /// Accepts its connection; returns false while there is none.
    pub fn accept(&mut self) -> bool {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        if self.socket.is_none() {
            self.socket = accept_with(&self.listener, flags).ok();
        }
        self.socket.is_some()
    }

    /// Reads its next message, if it is complete.
    pub fn receive(&mut self) -> Result<Option<Message>, Trouble> {
        let Some(socket) = &self.socket else { return Ok(None) };
        let mut octets = [0; OCTETS];
        let missing = OCTETS - self.partial.len();
        match recv(socket, &mut octets[..missing], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(Trouble::Ended),
            Ok((_, got)) => self.partial.extend(&octets[..got]),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(_) => return Err(Trouble::Ended),
        }
        let Ok(whole) = <[u8; OCTETS]>::try_from(self.partial.as_slice()) else { return Ok(None) };
        self.partial.clear();
        let unknown = |number| Trouble::Violation(format!("sends a message of the unknown kind {number}"));
        Message::read(whole).map(Some).map_err(unknown)
    }

    /// Sends a message of the calendar's own; returns its sequence number.
    pub fn tell(&mut self, operation: Operation, time: u64) -> Result<u32, Trouble> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(Message { operation, sequence: self.sequence, time })?;
        Ok(self.sequence)
    }

    /// Acknowledges a message.
    pub fn acknowledge(&self, sequence: u32, time: u64) -> Result<(), Trouble> {
        self.send(Message { operation: Operation::Ack, sequence, time })
    }

    fn send(&self, message: Message) -> Result<(), Trouble> {
        let socket = self.socket.as_ref().ok_or(Trouble::Ended)?;
        match send(socket, &message.write(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(OCTETS) => Ok(()),
            Ok(_) | Err(Errno::AGAIN) => Err(Trouble::Violation("does not read its messages".to_owned())),
            Err(_) => Err(Trouble::Ended),
        }
    }

    /// Answers its first message, so that it boots.
    ///
    /// The kernel takes two descriptors from the answer: a shared calendar, and a log. In place of the first
    /// it gets its window, or in the plain mode a page for what it says about programs that spin; a kernel
    /// that does not know them uses neither.
    pub fn begin(&mut self, sequence: u32, plain: bool) -> Result<(), Trouble> {
        let socket = self.socket.as_ref().ok_or(Trouble::Ended)?;
        let fail =
            |error: Errno| Trouble::Violation(format!("cannot be answered: {}", io::Error::from(error)));
        let unmapped = |error: MemoryError| Trouble::Violation(format!("cannot be answered: {error}"));
        let window = if plain { None } else { Some(Window::new(self.time).map_err(unmapped)?) };
        let spin = match &window {
            Some(window) => window.spin().map_err(fail)?,
            None => SpinPage::new().map_err(fail)?,
        };
        let log = memfd_create(c"log", MemfdFlags::CLOEXEC).map_err(fail)?;
        let files = [spin.as_fd(), log.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        let octets = Message { operation: Operation::Ack, sequence, time: NUMBER }.write();
        sendmsg(socket, &[io::IoSlice::new(&octets)], &mut ancillary, SendFlags::NOSIGNAL)
            .map_err(|_| Trouble::Ended)?;
        self.standing = Standing::Running;
        self.spin = Some(spin);
        (self.window, self.uses_window) = (window, false);
        Ok(())
    }

    /// The guest's process, if this one sees it.
    pub fn process(&self) -> Option<u32> {
        let peer = sockopt::socket_peercred(self.socket.as_ref()?).ok()?;
        u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
    }

    /// Notes a request to run at a time.
    pub fn wish(&mut self, time: u64) {
        self.request = (time < NEVER).then_some(time);
    }

    /// Ends the connection, and awaits the guest again if it is started anew.
    pub fn end(&mut self) {
        (self.socket, self.request, self.standing) = (None, None, Standing::Gone);
        self.partial.clear();
    }
}
