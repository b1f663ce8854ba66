//! The supervisor process: parent of all node inits of a run.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::cgroups::{Group, Groups};
use crate::channel::Channel;
use crate::message::{NodeRequest, Notice, PROTOCOL, Request};
use crate::processes::{self, Processes};
use crate::{mount_namespace, node, system};

/// Serves the socket with the given descriptor number until it closes or the controller ends; then
/// ends all nodes and removes the control groups.
///
/// `folder`: nodes have no namespaces and no control groups. Files of their machines are in this folder,
/// which is made, and removed at the end.
pub fn supervise(socket: &str, folder: Option<&Path>) -> io::Result<()> {
    let number: i32 = socket.parse().map_err(io::Error::other)?;
    // SAFETY: no pointers are passed; a number that is not open is refused.
    system::check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the caller passes the socket as this descriptor; nothing else here uses it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: no pointers are passed.
    let controller = system::process_descriptor(unsafe { libc::getppid() })?;
    system::set_process_name("airloom-init")?;
    let children = system::children()?;
    let (channel, common) = (Channel::new(socket), BTreeMap::new());
    let folder = folder.map(Path::to_path_buf);
    let mut supervisor = Supervisor { channel, groups: None, nodes: HashMap::new(), made: 0, common, folder };
    let served = supervisor.leave_host().and_then(|()| supervisor.serve(&children, &controller));
    supervisor.end();
    served
}

struct Supervisor {
    channel: Channel,
    groups: Option<Groups>,
    /// By process number of an init: its node.
    nodes: HashMap<i32, (String, Group)>,
    made: usize,
    /// The files that all nodes see, by path.
    common: BTreeMap<String, File>,
    /// The folder for files of nodes without namespaces; None if nodes have namespaces.
    folder: Option<PathBuf>,
}

impl Supervisor {
    /// Leaves the host's mount namespace, or makes the folder for nodes without namespaces.
    fn leave_host(&self) -> io::Result<()> {
        match &self.folder {
            None => mount_namespace::unshare(),
            Some(folder) => {
                processes::adopt()?;
                DirBuilder::new().mode(0o700).create(folder)
            }
        }
    }

    fn serve(&mut self, children: &OwnedFd, controller: &OwnedFd) -> io::Result<()> {
        self.channel.send(&Notice::Hello { protocol: PROTOCOL })?;
        let fds = [self.channel.as_raw_fd(), children.as_raw_fd(), controller.as_raw_fd()];
        loop {
            let ready = system::wait(&fds, None)?;
            if ready[2] {
                return Ok(());
            }
            if ready[1] {
                system::drain(children);
                self.reap()?;
            }
            if ready[0] && !self.channel.fill()? {
                return Ok(());
            }
            while let Some(request) = self.channel.next()? {
                match request {
                    Request::Common { files } => {
                        if let Err(why) = self.share(files) {
                            self.channel.send(&Notice::Refused { name: String::new(), why })?;
                        }
                    }
                    Request::Node(request) => {
                        let [namespace, socket] = self.channel.descriptors()?;
                        let notice = match self.make(&request, &namespace, socket) {
                            Ok(notice) => notice,
                            Err(error) => Notice::Refused { name: request.name, why: error.to_string() },
                        };
                        self.channel.send(&notice)?;
                    }
                    Request::Shares => {
                        let why = self.groups()?.try_share().err();
                        self.channel.send(&Notice::Shares { why })?;
                    }
                    Request::Kill { name } => {
                        let node = self.nodes.iter().find(|(_, (known, _))| *known == name);
                        if let Some((&pid, _)) = node {
                            system::kill(pid, libc::SIGKILL)?;
                        }
                    }
                }
            }
        }
    }

    /// Shows files to all nodes: those that they see already get other content.
    fn share(&mut self, files: BTreeMap<String, String>) -> Result<(), String> {
        if self.folder.is_some() {
            return Ok(()); // the inits of guests write them
        }
        let (known, new): (BTreeMap<_, _>, _) =
            files.into_iter().partition(|(path, _)| self.common.contains_key(path));
        for (path, content) in known {
            mount_namespace::write_again(&self.common[&path], &content)
                .map_err(|error| format!("{path}: {error}"))?;
        }
        if !new.is_empty() {
            self.common.extend(mount_namespace::mount_over(&new)?);
        }
        Ok(())
    }

    fn make(&mut self, request: &NodeRequest, namespace: &OwnedFd, socket: OwnedFd) -> io::Result<Notice> {
        self.made += 1;
        let mut notes = Vec::new();
        let number = self.made;
        let group = match self.folder {
            Some(_) => Group::default(),
            None => self
                .groups()?
                .make(number, request.cpu, request.weight, &mut notes)
                .map_err(share_not_held)?,
        };
        // The new process waits at this socket until it is in all its control groups.
        let (gate, held) = std::os::unix::net::UnixStream::pair()?;
        let namespaces = match self.folder {
            Some(_) => 0,
            None => libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC,
        };
        let group_folder = group.open();
        let in_group = group_folder.as_ref().map(|folder| system::child_in(namespaces, Some(folder.as_fd())));
        let (pid, in_unified) = match in_group {
            Some(Ok(pid)) => (pid, true),
            // Before Linux 5.7, or if CLONE_INTO_CGROUP fails for the group.
            _ => match system::child_in(namespaces, None) {
                Ok(pid) => (pid, false),
                Err(error) => {
                    group.remove();
                    return Err(error);
                }
            },
        };
        if pid == 0 {
            drop(gate);
            let _ = io::Read::read(&mut &held, &mut [0]);
            let processes = match self.folder {
                Some(_) => Processes::Descendants,
                None => Processes::Namespace,
            };
            std::process::exit(node::serve(request, namespace, socket, processes));
        }
        match group.admit(pid, in_unified) {
            Err(why) if request.cpu.is_some() || request.weight.is_some() => {
                system::kill(pid, libc::SIGKILL)?;
                system::end_of(pid)?;
                group.remove();
                return Err(share_not_held(why));
            }
            Err(why) => notes.push(why),
            Ok(()) => {}
        }
        drop(gate);
        let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let notice = Notice::Made {
            name: request.name.clone(),
            pid,
            group: path(&group.unified),
            cpu_group: path(&group.cpu),
            notes,
        };
        self.nodes.insert(pid, (request.name.clone(), group));
        Ok(notice)
    }

    fn groups(&mut self) -> io::Result<&mut Groups> {
        if self.groups.is_none() {
            self.groups = Some(Groups::new()?);
        }
        Ok(self.groups.as_mut().expect("they were just made"))
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some(ended) = system::reap() {
            if let Some((name, group)) = self.nodes.remove(&ended.pid) {
                self.end_orphans();
                group.remove();
                self.channel.send(&Notice::Ended { name, code: ended.code, signal: ended.signal })?;
            }
        }
        Ok(())
    }

    /// Ends processes of nodes without namespaces whose first process was killed before it could.
    fn end_orphans(&self) {
        if self.folder.is_none() {
            return;
        }
        let nodes: Vec<i32> = self.nodes.keys().copied().collect();
        while let orphans @ [_, ..] = &processes::children_but(&nodes)[..] {
            for &pid in orphans {
                let _ = system::kill(pid, libc::SIGKILL);
                let _ = system::end_of(pid);
            }
        }
    }

    /// Ends all nodes and removes all control groups.
    fn end(&mut self) {
        for &pid in self.nodes.keys() {
            let _ = system::kill(pid, libc::SIGKILL);
        }
        for (pid, (_, group)) in self.nodes.drain() {
            let mut status = 0;
            // SAFETY: the buffer outlives the call; the process is a child of this one.
            unsafe { libc::waitpid(pid, &raw mut status, 0) };
            group.remove();
        }
        if let Some(groups) = self.groups.take() {
            groups.remove();
        }
        if let Some(folder) = &self.folder {
            Processes::Descendants.end();
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn share_not_held(why: String) -> io::Error {
    io::Error::other(format!("its share of a processor cannot be held: {why}"))
}
