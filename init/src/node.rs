//! A node init: the first process of a node.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::bounds::Bounds;
use crate::channel::Channel;
use crate::message::{NodeRequest, Order, Report};
use crate::{accounts, image, program, room, system};

/// Furnishes the node and serves its socket until the socket or the node ends.
pub fn serve(request: &NodeRequest, namespace: &OwnedFd, socket: OwnedFd) -> i32 {
    match serve_until_end(request, namespace, socket) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn serve_until_end(request: &NodeRequest, namespace: &OwnedFd, socket: OwnedFd) -> io::Result<()> {
    system::die_with_parent()?;
    system::call_myself(&format!("node {}", request.name))?;
    let entered = system::enter_network(std::os::fd::AsFd::as_fd(namespace));
    let mut node = Node {
        channel: Channel::new(system::keep_only(socket)?),
        programs: HashMap::new(),
        bounds: None,
        end: None,
    };
    let furnished =
        entered.map_err(|error| format!("network namespace: {error}")).and_then(|()| match &request.image {
            None => room::furnish(&request.name, &request.files, &request.visible).map(|notes| (notes, None)),
            Some(image) => image::furnish(request, image).map(|(notes, bounds)| (notes, Some(bounds))),
        });
    match furnished {
        Ok((notes, bounds)) => {
            node.bounds = bounds;
            node.channel.send(&Report::Ready { notes })?;
        }
        Err(why) => {
            node.channel.send(&Report::Broken { why })?;
            return Ok(());
        }
    }
    node.serve()
}

struct Node {
    channel: Channel,
    /// Process number: the controller's number of the program.
    programs: HashMap<i32, u64>,
    /// What its programs may not do; None where they may do all that the run itself may.
    bounds: Option<Bounds>,
    end: Option<Instant>,
}

impl Node {
    fn serve(&mut self) -> io::Result<()> {
        let children = system::children()?;
        loop {
            let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
            let ready = system::wait(&[self.channel.as_raw_fd(), children.as_raw_fd()], left)?;
            if ready[1] {
                system::drain(&children);
            }
            self.reap()?;
            if ready[0] && !self.channel.fill()? {
                return Ok(());
            }
            while let Some(order) = self.channel.next()? {
                self.obey(order)?;
            }
            // When this process ends, the kernel kills all that is left in the node.
            if self.end.is_some_and(|end| end <= Instant::now() || nobody_left()) {
                self.reap()?;
                return Ok(());
            }
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some(ended) = system::reap() {
            // Others were orphans: nobody waits for them but the kernel.
            if let Some(id) = self.programs.remove(&ended.pid) {
                self.channel.send(&Report::Exited {
                    id,
                    code: ended.code,
                    signal: ended.signal,
                    user_ns: ended.user_ns,
                    system_ns: ended.system_ns,
                })?;
            }
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Start(start) => {
                let streams = self.channel.descriptors::<3>()?;
                match program::start(&start, &streams, self.bounds.as_ref()) {
                    Ok(pid) => {
                        self.programs.insert(pid, start.id);
                        self.channel.send(&Report::Started { id: start.id, pid })?;
                    }
                    Err((what, error)) => self.channel.send(&Report::Refused {
                        id: start.id,
                        what,
                        errno: error.raw_os_error().unwrap_or(libc::EIO),
                    })?,
                }
            }
            Order::Signal { id, signal } => {
                if let Some((&pid, _)) = self.programs.iter().find(|(_, known)| **known == id) {
                    // It may have ended just now.
                    let _ = system::kill(-pid, signal);
                }
            }
            Order::SignalAll { signal } => {
                let _ = system::kill(-1, signal);
            }
            Order::Cpu { id } => {
                let (user_ns, system_ns) = accounts::processor_time();
                self.channel.send(&Report::Cpu { id, user_ns, system_ns })?;
            }
            Order::Stop { grace_ms } => {
                let _ = system::kill(-1, libc::SIGTERM);
                let _ = system::kill(-1, libc::SIGCONT);
                self.end = Some(Instant::now() + Duration::from_millis(grace_ms));
            }
        }
        Ok(())
    }
}

/// Whether no other process is left in the node.
fn nobody_left() -> bool {
    system::kill(-1, 0).is_err()
}
