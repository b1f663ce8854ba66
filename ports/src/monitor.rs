//! The link status of a QEMU machine's network card, set through the machine's monitor.
//!
//! Neither a TAP nor a vhost-user device tells QEMU of a lost carrier: QEMU's virtio-net takes the
//! link status only from the command `set_link` of its monitor (QMP, QEMU's "QMP Reference Manual",
//! command `set_link`). The machine is the client of a listening socket, one for each card, and a
//! restarted machine connects again. No function blocks.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};

use crate::error::Error;
use crate::sys::set_nonblocking;

/// Octets of answers and events that are read, and discarded, at once.
const DISCARDED: usize = 4096;

/// The monitor of one card.
#[derive(Debug)]
pub struct Monitor {
    listener: OwnedFd,
    card: String,
    machine: Option<Machine>,
    up: bool,
}

/// A connected machine.
#[derive(Debug)]
struct Machine {
    socket: OwnedFd,
    /// Link status of its card.
    up: bool,
}

impl Monitor {
    /// Serves the machine that connects to `listener`. `card` is the name of the card's back end
    /// (`-netdev`); it consists of letters and digits.
    ///
    /// # Errors
    /// [`Error::VhostSocket`] if the socket refuses to be non-blocking.
    pub fn serve(listener: OwnedFd, card: String) -> Result<Self, Error> {
        let fd = listener.as_raw_fd();
        let fail = |source| Error::VhostSocket { fd, why: format!("O_NONBLOCK: {source}") };
        set_nonblocking(&listener).map_err(fail)?;
        Ok(Self { listener, card, machine: None, up: true })
    }

    /// Sets the carrier of the card. A machine that does not read learns it later, by
    /// [`Monitor::refresh`].
    pub fn set_carrier(&mut self, up: bool) {
        self.up = up;
        self.refresh();
    }

    /// Tells a machine that does not know it the carrier of its card, and discards its answers.
    pub fn refresh(&mut self) {
        self.accept();
        let Some(machine) = &mut self.machine else { return };
        if !machine.discard() {
            self.machine = None;
        } else if machine.up != self.up && machine.order(&self.card, self.up) {
            machine.up = self.up;
        }
    }

    /// Accepts a started machine, in place of the one before. Its cards are up.
    fn accept(&mut self) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            let machine = Machine { socket, up: true };
            // Nothing else is taken before the capabilities are negotiated. The new socket has room.
            machine.send("{\"execute\": \"qmp_capabilities\"}\n");
            self.machine = Some(machine);
        }
    }
}

impl Machine {
    /// Returns false if the socket has no room.
    fn order(&self, card: &str, up: bool) -> bool {
        self.send(&format!(
            "{{\"execute\": \"set_link\", \"arguments\": {{\"name\": \"{card}\", \"up\": {up}}}}}\n"
        ))
    }

    /// Sends a line. So short a line is sent whole or not at all.
    fn send(&self, line: &str) -> bool {
        send(&self.socket, line.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_ok()
    }

    /// Reads what the machine has said; returns false if it has ended.
    fn discard(&self) -> bool {
        let mut said = [0; DISCARDED];
        loop {
            match recv(&self.socket, &mut said, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    struct Card {
        socket: BufReader<UnixStream>,
    }

    impl Card {
        fn connect(path: &std::path::Path) -> Self {
            let mut socket = UnixStream::connect(path).unwrap();
            socket.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
            socket.write_all(b"{\"QMP\": {}}\n").unwrap();
            Self { socket: BufReader::new(socket) }
        }

        fn told(&mut self) -> String {
            let mut line = String::new();
            self.socket.read_line(&mut line).unwrap();
            line
        }
    }

    #[test]
    fn a_machine_is_told_what_it_does_not_know() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("monitor");
        let mut monitor = Monitor::serve(UnixListener::bind(&path).unwrap().into(), "net0".into()).unwrap();
        monitor.set_carrier(true);
        let mut first = Card::connect(&path);
        monitor.set_carrier(false);
        monitor.set_carrier(false);
        monitor.set_carrier(true);
        assert_eq!(first.told(), "{\"execute\": \"qmp_capabilities\"}\n");
        let order = |up| {
            format!("{{\"execute\": \"set_link\", \"arguments\": {{\"name\": \"net0\", \"up\": {up}}}}}\n")
        };
        assert_eq!([first.told(), first.told()], [order(false), order(true)]);
        drop(first);
        monitor.set_carrier(false);
        let mut second = Card::connect(&path);
        monitor.refresh();
        assert_eq!(second.told(), "{\"execute\": \"qmp_capabilities\"}\n");
        assert_eq!(second.told(), order(false));
    }
}
