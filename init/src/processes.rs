//! The processes of a node besides its first one.
//!
//! Those of a node with namespaces are all that its PID namespace has, and the kernel ends them with the
//! first one. A user who may create no namespaces has nodes without: their processes are the descendants
//! of the first one, which also adopts those whose parent has ended (PR_SET_CHILD_SUBREAPER of
//! `prctl(2)`), and ends them before it ends itself.

use std::collections::HashMap;
use std::fs;
use std::io;

use crate::system::{self, check, stat_fields};

/// How the processes of a node are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processes {
    /// All of the PID namespace of this process, which is the first one of it.
    #[default]
    Namespace,
    /// The descendants of this process.
    Descendants,
}

impl Processes {
    /// Process numbers, without that of this process.
    pub fn all(self) -> Vec<i32> {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        match self {
            Self::Namespace => numbers().filter(|&pid| pid != own).collect(),
            Self::Descendants => below(own, &parents()),
        }
    }

    /// Sends a signal to all of them.
    pub fn signal(self, signal: i32) {
        match self {
            Self::Namespace => drop(system::kill(-1, signal)),
            // They may end meanwhile.
            Self::Descendants => self.all().into_iter().for_each(|pid| drop(system::kill(pid, signal))),
        }
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        match self {
            Self::Namespace => system::kill(-1, 0).is_err(),
            Self::Descendants => self.all().is_empty(),
        }
    }

    /// Ends all of them, unless the kernel does so with this process.
    pub fn end(self) {
        while self == Self::Descendants && !self.is_empty() {
            self.signal(libc::SIGKILL);
            // A child whose parent ends becomes a child of this process.
            let mut status = 0;
            // SAFETY: the buffer outlives the call.
            unsafe { libc::waitpid(-1, &raw mut status, 0) };
        }
    }
}

/// Makes this process the parent of all its descendants whose parent ends.
pub fn adopt() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// The children of this process that are not among `known`.
pub fn children_but(known: &[i32]) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let children = parents().into_iter().filter(|&(pid, parent)| parent == own && !known.contains(&pid));
    children.map(|(pid, _)| pid).collect()
}

fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of each process.
fn parents() -> HashMap<i32, i32> {
    numbers()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, stat_fields(&stat)?.get(1)?.parse().ok()?))
        })
        .collect()
}

/// The descendants of a process, parents before children.
fn below(ancestor: i32, parents: &HashMap<i32, i32>) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (&pid, &parent) in parents {
        children.entry(parent).or_default().push(pid);
    }
    let (mut found, mut next) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            found.push(child);
            next.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::below;

    #[test]
    fn descendants_are_those_below_and_no_others() {
        let parents = HashMap::from([(1, 0), (10, 1), (11, 10), (12, 10), (13, 11), (20, 1), (21, 20)]);
        let mut found = below(10, &parents);
        found.sort_unstable();
        assert_eq!(found, [11, 12, 13]);
        assert!(below(13, &parents).is_empty());
    }
}
