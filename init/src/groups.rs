//! Control groups: a processor share and an account for each node.
//!
//! Version 2 gives the account (`cpu.stat`, `cpu.pressure`) and halts nodes (`cgroup.freeze`) in
//! any group; the share needs its `cpu` controller. Where that controller belongs to version 1
//! (hybrid hosts), the share is held there (`cpu.cfs_quota_us`).
//!
//! A node's processes are in a group below the one that has the limits, and that lower group is the
//! root of the node's cgroup namespace: whatever hierarchy a program in the node mounts, the files
//! with its limits are not in it.

mod hierarchy;
mod removal;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use hierarchy::Hierarchy;
use removal::{Reaper, remove};

/// How often a node's share is handed out, in microseconds. Ten times shorter than the kernel's
/// default: a node that has used up its share stands still for less than this.
const PERIOD_US: f64 = 10_000.0;
/// The kernel hands out no less, and in no longer periods.
const LEAST_QUOTA_US: f64 = 1_000.0;
const LONGEST_PERIOD_US: f64 = 1_000_000.0;

/// Where a node's processes are, below the group that has its limits.
const INSIDE: &str = "inside";

/// The keeper's own groups, made when the first node needs them.
#[derive(Debug)]
pub struct Groups {
    /// Version 2, and whether its `cpu` controller is at hand.
    unified: Option<(PathBuf, bool)>,
    /// In version 1's `cpu` hierarchy, made when the first share is to be held there.
    cpu: Option<PathBuf>,
    cpu_parents: Vec<PathBuf>,
    name: String,
    notes: Vec<String>,
    reaper: Option<Reaper>,
}

/// One node's groups: those with its limits.
#[derive(Debug, Default)]
pub struct Group {
    pub unified: Option<PathBuf>,
    pub cpu: Option<PathBuf>,
}

impl Groups {
    /// Finds out by trying what this machine allows.
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
                    Err(error) => groups.notes.push(format!("no control group, version 2: {error}")),
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

    /// Makes a node's groups, with its share if it is to have one; what else cannot be had is added to
    /// the notes. An error is a share that cannot be held.
    pub fn make(
        &mut self,
        number: usize,
        share: Option<f64>,
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
        if let Some(share) = share
            && let Err(why) = self.hold(share, &name, &mut group)
        {
            group.remove();
            return Err(why);
        }
        Ok(group)
    }

    /// Whether shares can be held here; tries it.
    pub fn try_share(&mut self) -> Result<(), String> {
        self.make(0, Some(0.5), &mut Vec::new()).map(|group| group.remove())
    }

    fn hold(&mut self, share: f64, name: &str, group: &mut Group) -> Result<(), String> {
        let period = (LEAST_QUOTA_US / share).clamp(PERIOD_US, LONGEST_PERIOD_US).round();
        let quota = (share * period).max(LEAST_QUOTA_US).round();
        if let (Some((_, true)), Some(path)) = (&self.unified, &group.unified) {
            return write(&path.join("cpu.max"), &format!("{quota} {period}"));
        }
        let path = create(&self.cpu_base()?.join(name))?;
        let held = write(&path.join("cpu.cfs_period_us"), &period.to_string())
            .and_then(|()| write(&path.join("cpu.cfs_quota_us"), &quota.to_string()));
        group.cpu = Some(path);
        held
    }

    /// The keeper's group in version 1's `cpu` hierarchy, as near to its own as may be.
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

    /// Removes the keeper's own groups; the nodes' processes are gone by then.
    pub fn remove(self) {
        for path in self.unified.iter().map(|(path, _)| path).chain(&self.cpu) {
            remove(path);
        }
        // The reaper has the patience for what is still busy.
        if let Some(reaper) = self.reaper {
            reaper.end();
        }
    }
}

impl Group {
    /// The version 2 group of the node's processes, opened so that a new one can start in it.
    pub fn open(&self) -> Option<File> {
        self.unified.as_ref().and_then(|path| File::open(path.join(INSIDE)).ok())
    }

    /// Puts a process into the groups that [`Group::open`] does not reach.
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

/// Makes a group below the nearest candidate whose children have the `cpu` controller, or else
/// below the nearest at all.
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

/// Makes a node's group, and the one below it for its processes.
fn create(path: &Path) -> Result<PathBuf, String> {
    for folder in [path, &path.join(INSIDE)] {
        fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(path.to_path_buf())
}

fn write(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| format!("{} = {value}: {error}", path.display()))
}
