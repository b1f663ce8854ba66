//! Control groups: CPU limit, CPU weight and CPU accounting of each node.
//!
//! Version 2 provides accounting (`cpu.stat`, `cpu.pressure`) and freezing (`cgroup.freeze`) in any
//! group; the CPU limit and the weight need its `cpu` controller. If that controller belongs to
//! version 1 (hybrid hosts), they are set there (`cpu.cfs_quota_us`, `cpu.shares`).
//!
//! A node's processes are in a child of the group with the limits, and this child is the root of
//! the node's cgroup namespace: a hierarchy mounted by a program in the node does not contain
//! the files with its limits.

mod hierarchy;
mod removal;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use hierarchy::Hierarchy;
use removal::{Reaper, remove};

/// Period of the CPU quota, in microseconds. Ten times shorter than the kernel's default: a node
/// that has used up its quota is throttled for less than this.
const PERIOD_US: f64 = 10_000.0;
/// Minimum quota and minimum period of the kernel.
const LEAST_QUOTA_US: f64 = 1_000.0;
const LONGEST_PERIOD_US: f64 = 1_000_000.0;

/// Default weight of a group in version 2 (`cpu.weight`) and version 1 (`cpu.shares`).
const WEIGHT: f64 = 100.0;
const SHARES: f64 = 1024.0;

/// Name of the child group with the node's processes.
const INSIDE: &str = "inside";

/// The supervisor's own groups, created when the first node needs them.
#[derive(Debug)]
pub struct Groups {
    /// Version 2 group, and whether its `cpu` controller is available.
    unified: Option<(PathBuf, bool)>,
    /// Group in version 1's `cpu` hierarchy, created for the first CPU limit.
    cpu: Option<PathBuf>,
    cpu_parents: Vec<PathBuf>,
    name: String,
    notes: Vec<String>,
    reaper: Option<Reaper>,
}

/// The groups with the limits of one node.
#[derive(Debug, Default)]
pub struct Group {
    pub unified: Option<PathBuf>,
    pub cpu: Option<PathBuf>,
}

impl Groups {
    /// Finds by trial which hierarchies this machine allows.
    pub fn new() -> io::Result<Self> {
        let name = removal::own_name()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let hierarchies = Hierarchy::all(&mounts, &own);
        let possible: Vec<PathBuf> = hierarchies
            .iter()
            .flat_map(Hierarchy::candidates)
            .map(|parent| {
                removal::sweep(&parent);
                parent.join(&name)
            })
            .collect();
        let mut groups =
            Self { unified: None, cpu: None, cpu_parents: Vec::new(), name, notes: Vec::new(), reaper: None };
        for hierarchy in hierarchies {
            match hierarchy.version {
                2 if groups.unified.is_none() => match make_unified(&hierarchy.candidates(), &groups.name) {
                    Ok(made) => groups.unified = Some(made),
                    Err(error) => groups.notes.push(no_group(&error)),
                },
                1 if groups.cpu_parents.is_empty() => groups.cpu_parents = hierarchy.candidates(),
                _ => {}
            }
        }
        if groups.unified.is_none() && groups.notes.is_empty() {
            groups.notes.push("no control groups, version 2, on this machine".to_owned());
        }
        groups.reaper = Some(Reaper::start(&possible)?);
        Ok(groups)
    }

    /// Creates a node's groups, with its CPU limit and its weight if they are given. Other missing
    /// features are added to the notes; a limit or a weight that cannot be set is an error.
    pub fn make(
        &mut self,
        number: usize,
        share: Option<f64>,
        weight: Option<f64>,
        notes: &mut Vec<String>,
    ) -> Result<Group, String> {
        notes.extend(self.notes.iter().cloned());
        let mut group = Group::default();
        let name = format!("node{number}");
        if let Some((base, _)) = &self.unified {
            match create(&base.join(&name)) {
                Ok(path) => group.unified = Some(path),
                Err(why) => notes.push(why),
            }
        }
        let held = match share {
            Some(share) => self.hold(share, &name, &mut group),
            None => Ok(()),
        };
        let held = held.and_then(|()| match weight {
            Some(weight) => self.weigh(weight, &name, &mut group),
            None => Ok(()),
        });
        if let Err(why) = held {
            group.remove();
            return Err(why);
        }
        Ok(group)
    }

    /// Checks by trial whether CPU limits and weights can be set.
    pub fn try_share(&mut self) -> Result<(), String> {
        self.make(0, Some(0.5), Some(1.0), &mut Vec::new()).map(|group| group.remove())
    }

    fn hold(&mut self, share: f64, name: &str, group: &mut Group) -> Result<(), String> {
        let period = (LEAST_QUOTA_US / share).clamp(PERIOD_US, LONGEST_PERIOD_US).round();
        let quota = (share * period).max(LEAST_QUOTA_US).round();
        if let (Some((_, true)), Some(path)) = (&self.unified, &group.unified) {
            return write(&path.join("cpu.max"), &format!("{quota} {period}"));
        }
        let path = self.cpu_group(name, group)?;
        write(&path.join("cpu.cfs_period_us"), &period.to_string())
            .and_then(|()| write(&path.join("cpu.cfs_quota_us"), &quota.to_string()))
    }

    fn weigh(&mut self, weight: f64, name: &str, group: &mut Group) -> Result<(), String> {
        if let (Some((_, true)), Some(path)) = (&self.unified, &group.unified) {
            return write(&path.join("cpu.weight"), &(weight * WEIGHT).round().to_string());
        }
        let path = self.cpu_group(name, group)?;
        write(&path.join("cpu.shares"), &(weight * SHARES).round().to_string())
    }

    /// The node's group in version 1's `cpu` hierarchy, created by the first call.
    fn cpu_group(&mut self, name: &str, group: &mut Group) -> Result<PathBuf, String> {
        if group.cpu.is_none() {
            group.cpu = Some(create(&self.cpu_base()?.join(name))?);
        }
        Ok(group.cpu.clone().expect("it was just made"))
    }

    /// The supervisor's group in version 1's `cpu` hierarchy, as close to its own group as
    /// possible.
    fn cpu_base(&mut self) -> Result<&Path, String> {
        if self.cpu.is_none() {
            let mut why = match &self.notes[..] {
                [] => "no control group of this machine has the cpu controller".to_owned(),
                notes => notes.join("; "),
            };
            for parent in self.cpu_parents.iter().rev() {
                let path = parent.join(&self.name);
                match fs::create_dir(&path) {
                    Ok(()) => {
                        self.cpu = Some(path);
                        break;
                    }
                    Err(error) => why = format!("{}: {error}", path.display()),
                }
            }
            if self.cpu.is_none() {
                return Err(why);
            }
        }
        Ok(self.cpu.as_deref().expect("it was just made"))
    }

    /// Removes the supervisor's own groups; the nodes' processes have ended by then.
    pub fn remove(self) {
        for path in self.unified.iter().map(|(path, _)| path).chain(&self.cpu) {
            remove(path);
        }
        // The reaper process waits for groups that are still busy.
        if let Some(reaper) = self.reaper {
            reaper.end();
        }
    }
}

/// Why nodes have no control group, in words.
fn no_group(error: &io::Error) -> String {
    if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) {
        "no control group, which only root makes here: processor time is read from the node's processes"
            .to_owned()
    } else {
        format!("no control group, version 2: {error}")
    }
}

impl Group {
    /// The version 2 group of the node's processes, opened so that clone3(2) can start a process in
    /// it.
    pub fn open(&self) -> Option<File> {
        self.unified.as_ref().and_then(|path| File::open(path.join(INSIDE)).ok())
    }

    /// Moves a process into the groups that [`Group::open`] does not cover.
    pub fn admit(&self, pid: i32, in_unified: bool) -> Result<(), String> {
        let unified = self.unified.as_ref().filter(|_| !in_unified);
        for path in unified.into_iter().chain(&self.cpu) {
            write(&path.join(INSIDE).join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// Removes the groups after their last process has ended.
    pub fn remove(&self) {
        for path in self.unified.iter().chain(&self.cpu) {
            remove(path);
        }
    }
}

/// Creates a group in the nearest candidate that delegates the `cpu` controller, or else
/// in the nearest candidate.
fn make_unified(candidates: &[PathBuf], name: &str) -> io::Result<(PathBuf, bool)> {
    let hands_on = |parent: &&PathBuf| {
        fs::read_to_string(parent.join("cgroup.subtree_control"))
            .is_ok_and(|names| names.split_whitespace().any(|name| name == "cpu"))
    };
    for parent in candidates.iter().rev().filter(hands_on) {
        let path = parent.join(name);
        if fs::create_dir(&path).is_ok() {
            let has = fs::write(path.join("cgroup.subtree_control"), "+cpu").is_ok();
            return Ok((path, has));
        }
    }
    let mut last = io::Error::from_raw_os_error(libc::ENOENT);
    for parent in candidates.iter().rev() {
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok((path, false)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Creates a node's group, and its child group for the processes.
fn create(path: &Path) -> Result<PathBuf, String> {
    for folder in [path, &path.join(INSIDE)] {
        fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(path.to_path_buf())
}

fn write(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| format!("{} = {value}: {error}", path.display()))
}
