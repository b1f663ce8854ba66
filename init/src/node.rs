//! Node init: the first process of a node.
//!
//! A node has namespaces, unless the user may create none. The latter is a guest, or a part of one: its
//! kernel keeps its network and its files apart from the host's ([`crate::processes`]).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use airloom_netns as nodes;

use crate::channel::Channel;
use crate::credentials::Rights;
use crate::message::{NodeRequest, Order, Report};
use crate::processes::{self, Processes};
use crate::programs::Programs;
use crate::relay::Relay;
use crate::{image, mount_namespace, one_user, proc, system};

/// Sets up the node and serves its socket until the socket closes or the node ends. It has namespaces if
/// its `processes` have one.
pub fn serve(request: &NodeRequest, namespace: &OwnedFd, socket: OwnedFd, processes: Processes) -> i32 {
    let code = serve_until_end(request, namespace, socket, processes).unwrap_or(1);
    processes.end();
    code
}

fn serve_until_end(
    request: &NodeRequest,
    namespace: &OwnedFd,
    socket: OwnedFd,
    processes: Processes,
) -> io::Result<i32> {
    system::die_with_parent()?;
    system::set_process_name(&format!("node {}", request.name))?;
    let entered = match processes {
        Processes::Namespace => enter(namespace),
        Processes::Descendants => {
            processes::adopt().map_err(|error| format!("processes of ended parents: {error}"))
        }
    };
    let mut node = Node {
        channel: Channel::new(system::keep_only(socket)?),
        programs: Programs::of(processes),
        relay: None,
        processes,
    };
    let ready = entered.and_then(|()| match processes {
        Processes::Namespace => set_up(request),
        // Programs run in its guest only, whose init sets it up.
        Processes::Descendants => Ok((Vec::new(), Rights::Node)),
    });
    match ready {
        Ok((notes, rights)) => {
            node.programs.bound(rights);
            node.channel.send(&Report::Ready { notes })?;
        }
        Err(why) => {
            node.channel.send(&Report::Broken { why })?;
            // The controller reads the reason first, and not that this process has ended.
            while node.channel.fill()? {}
            return Ok(0);
        }
    }
    node.serve()
}

/// Enters the node's namespaces.
fn enter(namespace: &OwnedFd) -> Result<(), String> {
    close_to_programs().map_err(|error| format!("control group namespace: {error}"))?;
    nodes::enter_network(namespace.as_fd()).map_err(|error| format!("network namespace: {error}"))
}

/// Sets up the node's file system; returns the features that this machine lacks, and
/// the programs' privileges.
fn set_up(request: &NodeRequest) -> Result<(Vec<String>, Rights), String> {
    if let Some(image) = &request.image {
        return image::set_up(request, image).map(|(notes, credentials)| (notes, Rights::Image(credentials)));
    }
    let mut notes = Vec::new();
    one_user::keep().map_err(|error| format!("system calls that change the user: {error}"))?;
    mount_namespace::set_up(&request.name, &request.files, &request.visible, &request.mounts)?;
    proc::replace(&mut notes).map_err(|error| format!("/proc: {error}"))?;
    Ok((notes, Rights::Node))
}

/// Prevents programs of the node from leaving it through this process or its control groups.
fn close_to_programs() -> io::Result<()> {
    // Only a process with the right to trace every process reaches its
    // descriptors, memory and root.
    // SAFETY: no pointers are passed.
    system::check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
    // A hierarchy mounted in the node shows only the node's own group and the groups below it.
    // SAFETY: no pointers are passed.
    system::check(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }).map(drop)
}

struct Node {
    channel: Channel,
    programs: Programs,
    /// The guest in which programs run, if the node has one.
    relay: Option<Relay>,
    processes: Processes,
}

impl Node {
    /// Returns the node's exit code: zero, or that of its guest.
    fn serve(&mut self) -> io::Result<i32> {
        let children = system::children()?;
        loop {
            let mut entries =
                vec![system::to_read(self.channel.as_raw_fd()), system::to_read(children.as_raw_fd())];
            let mut left = self.programs.left();
            if let Some(relay) = &self.relay {
                entries.extend(relay.interests());
                left = [left, relay.left()].into_iter().flatten().min();
            }
            system::poll(&mut entries, left)?;
            if let Some(relay) = &mut self.relay {
                for report in relay.serve(&entries[2..]) {
                    self.channel.send(&report)?;
                }
                if let Some(code) = relay.exit_code() {
                    return Ok(code);
                }
            }
            if entries[1].revents != 0 {
                system::drain(&children);
            }
            if self.relay.is_none() {
                self.reap()?;
            } else if let Some(code) = self.reap_guest()? {
                return Ok(code);
            }
            if entries[0].revents != 0 && !self.channel.fill()? {
                return Ok(0);
            }
            while let Some(order) = self.channel.next()? {
                self.execute(order)?;
                // In virtual time a node ends while it is settled: its end is the answer.
                if let Some(code) = self.relay.as_ref().and_then(Relay::exit_code) {
                    return Ok(code);
                }
            }
            // When this process ends, the kernel kills the remaining processes of the node.
            let left = self.programs.left();
            if left.is_some_and(|left| left == Duration::ZERO || self.processes.is_empty()) {
                self.reap()?;
                return Ok(0);
            }
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        for (_, report) in self.programs.reap() {
            self.channel.send(&report)?;
        }
        Ok(())
    }

    /// Returns the exit code of the guest's machine, once it has ended.
    fn reap_guest(&mut self) -> io::Result<Option<i32>> {
        while let Some(ended) = system::reap() {
            let Some(relay) = self.relay.as_mut().filter(|relay| relay.is_machine(ended.pid)) else {
                continue;
            };
            for report in relay.close(ended) {
                self.channel.send(&report)?;
            }
            return Ok(Some(ended.code.unwrap_or_else(|| 128 + ended.signal.unwrap_or(0))));
        }
        Ok(None)
    }

    fn execute(&mut self, order: Order) -> io::Result<()> {
        let report = match (order, &mut self.relay) {
            (Order::Host(host), _) => {
                let descriptors = self.channel.take(host.descriptors + 1 + usize::from(host.virtual_time))?;
                let id = host.id;
                match Relay::start(*host, descriptors, self.processes) {
                    Ok(relay) => {
                        self.relay = Some(relay);
                        None
                    }
                    Err(why) => Some(Report::Unhosted { id, why }),
                }
            }
            (Order::Join(join), _) => {
                let [channel] = self.channel.descriptors()?;
                self.relay = Some(Relay::join(*join, channel)?);
                None
            }
            (Order::Start(start), Some(relay)) => relay.begin(start, self.channel.descriptors::<3>()?),
            // Without namespaces a program outside of the guest would be one of the user.
            (Order::Start(start), None) if self.processes == Processes::Descendants => {
                drop(self.channel.descriptors::<3>()?);
                let what = "a program outside of a guest".to_owned();
                Some(Report::Refused { id: start.id, what, errno: libc::EPERM })
            }
            (Order::Start(start), None) => {
                Some(self.programs.start(&start, &self.channel.descriptors::<3>()?))
            }
            (Order::Settle { id }, Some(relay)) => {
                let (reports, moved) = relay.settle();
                for report in reports {
                    self.channel.send(&report)?;
                }
                relay.exit_code().is_none().then_some(Report::Settled { id, moved })
            }
            (order, Some(relay)) => relay.pass(&order),
            (order, None) => self.programs.execute(&order),
        };
        match report {
            Some(report) => self.channel.send(&report),
            None => Ok(()),
        }
    }
}
