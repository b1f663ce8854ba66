//! The devices of guests: what they send, and how they are notified.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant as Wall};

use airloom_engine::time::Instant;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::client::{Standing, Trouble};
use super::guest::{Guest, wait};
use super::protocol::Operation;
use super::window::{Logged, MOST_DEVICES};
use super::{CONSOLE, Calendar, Error, device_of};
use crate::port::InBand;
use crate::vhost::call::Notice;
use crate::world::Taken;

/// Wall time between two looks at a guest that does not answer.
const SLICE: Duration = Duration::from_millis(50);

impl Calendar {
    pub(super) fn serve_console(&mut self, index: usize) -> Result<(), Error> {
        self.catch_up(index)?;
        let guest = &mut self.guests[index];
        match guest.console.serve_in_band() {
            InBand::Nothing | InBand::Served => Ok(()),
            InBand::Buffers => self.acknowledge(index, None),
            InBand::Frames => {
                let octets = guest.console.take_all();
                if !octets.is_empty() {
                    guest.unread.extend(octets);
                    guest.flush();
                    self.spoke.push(index);
                    let time = guest.client.time;
                    self.stands_at = time;
                    self.lower(index, time)?;
                }
                self.acknowledge(index, None)
            }
        }
    }

    /// Takes in what a guest that runs has logged, each frame at its time.
    pub(super) fn catch_up(&mut self, index: usize) -> Result<(), Error> {
        let client = &mut self.guests[index].client;
        if client.standing != Standing::Running || client.window().is_none() {
            return Ok(());
        }
        let logged = match client.take_log() {
            Ok(logged) => logged,
            Err(Trouble::Violation(words)) => return Err(self.violates(index, &words)),
            Err(Trouble::Ended) => return Ok(()),
        };
        for one in logged {
            let (Logged::Entry { device, .. } | Logged::End { device, .. }) = &one;
            let place = device.checked_sub(usize::from(device_of(0)));
            let Some(&number) = place.and_then(|place| self.guests[index].ports.get(place)) else {
                return Err(self.violates(index, "logs frames of a device that it does not have"));
            };
            match one {
                Logged::Entry { at, octets, .. } => {
                    self.set_clock(at);
                    let clock = self.clock.clone();
                    self.world.take_logged(number, &octets, &clock);
                }
                Logged::End { partly, called, .. } => {
                    self.counts.logged += u64::from(!partly);
                    self.world.edge.ports[number].port.end_logged(partly, called);
                }
            }
        }
        Ok(())
    }

    /// Tells a guest which of its devices log what they send, and how far ahead it may go then.
    pub(super) fn look_ahead(&self, index: usize) {
        let guest = &self.guests[index];
        let Some(window) = guest.client.window() else { return };
        if self.zero.is_none() {
            return;
        }
        for (place, &number) in guest.ports.iter().enumerate().take(MOST_DEVICES - 1) {
            if let Some(queue) = self.world.edge.ports[number].port.logs() {
                window.log(usize::from(device_of(place)), queue, self.ahead(number));
            }
        }
    }

    /// Nanoseconds for which a guest may go on after it has sent a frame by a port.
    fn ahead(&self, number: usize) -> u64 {
        if self.by_frame { 0 } else { self.world.ahead(number).nanos() }
    }

    pub(super) fn serve_port(&mut self, index: usize, number: usize) -> Result<(), Error> {
        self.catch_up(index)?;
        match self.world.edge.ports[number].port.serve_in_band() {
            InBand::Nothing | InBand::Served => return Ok(()),
            InBand::Buffers => {}
            InBand::Frames if self.zero.is_none() => {}
            InBand::Frames => {
                let time = self.guests[index].client.time;
                self.set_clock(time);
                self.take_in(number);
                // All other events of the engine are at its limit or after it.
                self.lower(index, time.saturating_add(self.ahead(number)))?;
            }
        }
        self.acknowledge(index, Some(number))
    }

    /// The engine's clock shows the time of the guest that acts, which may be ahead of the calendar's.
    fn set_clock(&mut self, time: u64) {
        let zero = self.zero.unwrap_or(time);
        self.clock.set(Instant::from_nanos(time - zero));
    }

    pub(super) fn take_in(&mut self, number: usize) {
        let clock = self.clock.clone();
        while let Taken::Frame(..) = self.world.take_in(number, &clock) {}
    }

    /// Notifies the guest of what was returned to it, and lets it go on after its own notification.
    fn acknowledge(&mut self, index: usize, port: Option<usize>) -> Result<(), Error> {
        self.counts.kicks += 1;
        self.call(index, port)?;
        match port {
            Some(number) => self.world.edge.ports[number].port.acknowledge(),
            None => self.guests[index].console.acknowledge(),
        }
        Ok(())
    }

    /// Lowers the limit up to which a running guest may advance.
    fn lower(&mut self, index: usize, limit: u64) -> Result<(), Error> {
        let client = &mut self.guests[index].client;
        if limit >= client.free_until || client.standing != Standing::Running {
            return Ok(());
        }
        client.free_until = limit;
        if let Some(window) = client.window() {
            window.lower(limit);
            return Ok(());
        }
        self.counts.messages += 1;
        let sequence = match client.tell(Operation::FreeUntil, limit) {
            Ok(sequence) => sequence,
            Err(trouble) => return self.trouble(index, trouble),
        };
        let began = Wall::now();
        while self.guests[index].client.acknowledged != sequence {
            if self.guests[index].client.standing == Standing::Gone {
                return Ok(());
            }
            let client = self.guests[index].client.descriptor();
            if !wait(&[client], Wall::now() + SLICE)?[0] {
                self.stays(index, began, "does not acknowledge a message")?;
                continue;
            }
            self.serve_client(index)?;
        }
        Ok(())
    }

    /// Notifies a guest of buffers that were returned to it: those of a port and its console, or of all.
    pub(super) fn call(&mut self, index: usize, only: Option<usize>) -> Result<(), Error> {
        let zero = self.zero.unwrap_or(0);
        let guest = &self.guests[index];
        let time = if guest.client.standing == Standing::Running { guest.client.time } else { self.now };
        let now = Instant::from_nanos(time.saturating_sub(zero));
        for place in 0..guest.ports.len() {
            let number = self.guests[index].ports[place];
            if only.is_none_or(|only| only == number) {
                let port = &mut self.world.edge.ports[number].port;
                self.reminder = self.reminder.min(port.notify(now));
                self.send_calls(index, device_of(place), Some(number))?;
            }
        }
        self.guests[index].console.notify_guest(now);
        self.send_calls(index, CONSOLE, None)
    }

    /// Sends the notifications that have waited for the turn of a guest: it finds them when it goes on, as
    /// it does those in its window.
    pub(super) fn send_held(&mut self, index: usize) -> Result<(), Error> {
        for (channel, octets) in std::mem::take(&mut self.guests[index].held) {
            if let Some(window) = self.guests[index].client.window() {
                window.set_time(self.now);
            }
            self.counts.calls += 1;
            if send(&channel, &octets, SendFlags::NOSIGNAL).is_ok() {
                self.await_answer(index, &channel, octets.len())?;
            }
        }
        Ok(())
    }

    /// Passes on the notifications of a device: by the guest's window, where it finds them as soon as it
    /// goes on, or each by a message with an answer.
    fn send_calls(&mut self, index: usize, device: u16, port: Option<usize>) -> Result<(), Error> {
        loop {
            let mut sent: Option<Result<(OwnedFd, usize), Errno>> = None;
            let mut held = None;
            let waits_for_turn = self.has_processor(index) || self.permitted(index, self.now) > self.now;
            let Guest { client, console, .. } = &mut self.guests[index];
            let (window, now, waits) = (client.window(), self.now, client.standing == Standing::Waiting);
            let mut listed = false;
            let mut pass = |channel: BorrowedFd<'_>, notice: Notice| {
                listed = window.is_some_and(|window| window.call(usize::from(device), notice.number()));
                if listed {
                    return;
                }
                if waits && waits_for_turn {
                    held = channel.try_clone_to_owned().ok().map(|channel| (channel, notice.message()));
                    return;
                }
                if let Some(window) = window.filter(|_| waits) {
                    window.set_time(now);
                }
                let octets = notice.message();
                sent = Some(channel.try_clone_to_owned().map_err(|_| Errno::MFILE).and_then(|channel| {
                    let flags = SendFlags::NOSIGNAL;
                    send(&channel, &octets, flags)?;
                    Ok((channel, octets.len()))
                }));
            };
            let more = match port {
                Some(number) => self.world.edge.ports[number].port.call(&mut pass),
                None => console.call(&mut pass),
            };
            if !more {
                return Ok(());
            }
            self.counts.listed += u64::from(listed);
            let is_held = held.is_some();
            self.guests[index].held.extend(held);
            if listed || is_held {
                // It goes on at this instant, or at the begin of its turn.
                let client = &mut self.guests[index].client;
                if waits {
                    client.request = Some(client.request.map_or(now, |request| request.min(now)));
                }
                continue;
            }
            self.counts.calls += 1;
            match sent {
                Some(Ok((channel, octets))) => {
                    self.await_answer(index, &channel, octets)?;
                    let client = &mut self.guests[index].client;
                    if client.standing == Standing::Waiting {
                        client.read_request();
                    }
                }
                // The connection has ended; so has that to the calendar.
                Some(Err(_)) | None => return Ok(()),
            }
        }
    }

    /// Waits for the answer on a device's channel, and serves the guest's messages about time meanwhile.
    fn await_answer(&mut self, index: usize, channel: &OwnedFd, octets: usize) -> Result<(), Error> {
        let began = Wall::now();
        let mut answer = [0; 64];
        let mut got = 0;
        while got < octets {
            if self.guests[index].client.standing == Standing::Gone {
                return Ok(());
            }
            let client = self.guests[index].client.descriptor();
            let ready = wait(&[client.as_fd(), channel.as_fd()], Wall::now() + SLICE)?;
            if ready == [false, false] {
                self.stays(index, began, "does not answer a notification")?;
            } else if ready[0] {
                self.serve_client(index)?;
            } else {
                match recv(channel, &mut answer[..octets - got], RecvFlags::DONTWAIT) {
                    Ok((_, 0)) => return Ok(()),
                    Ok((_, more)) => got += more,
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(_) => return Ok(()),
                }
            }
        }
        Ok(())
    }
}
