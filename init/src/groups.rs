//! Control groups: a processor share and an account for each node.
//!
//! Version 2 gives the account (`cpu.stat`, `cpu.pressure`) and halts nodes (`cgroup.freeze`) in
//! any group; the share needs its `cpu` controller. Where that controller belongs to version 1
//! (hybrid hosts), the share is held there (`cpu.cfs_quota_us`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// How often a node's share is handed out, in microseconds. Ten times shorter than the kernel's
/// default: a node that has used up its share stands still for less than this.
const PERIOD_US: f64 = 10_000.0;
/// The kernel hands out no less, and in no longer periods.
const LEAST_QUOTA_US: f64 = 1_000.0;
const LONGEST_PERIOD_US: f64 = 1_000_000.0;

/// Names of keepers' groups; their process number follows.
const PREFIX: &str = "airloom-";

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
}

/// One node's groups.
#[derive(Debug, Default)]
pub struct Group {
    pub unified: Option<PathBuf>,
    pub cpu: Option<PathBuf>,
}

impl Groups {
    /// Finds out by trying what this machine allows.
    pub fn new() -> Self {
        let name = format!("{PREFIX}{}", std::process::id());
        let mut groups = Self { unified: None, cpu: None, cpu_parents: Vec::new(), name, notes: Vec::new() };
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        for hierarchy in Hierarchy::all(&mounts, &own) {
            for parent in hierarchy.candidates() {
                sweep(&parent);
            }
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
        groups
    }

    /// Makes a node's groups; what cannot be had is added to the notes.
    pub fn make(&mut self, number: usize, share: Option<f64>, notes: &mut Vec<String>) -> Group {
        notes.extend(self.notes.iter().cloned());
        let mut group = Group::default();
        if let Some((base, _)) = &self.unified {
            group.unified = create(&base.join(format!("node{number}")), notes);
        }
        let Some(share) = share else { return group };
        let period = (LEAST_QUOTA_US / share).clamp(PERIOD_US, LONGEST_PERIOD_US).round();
        let quota = (share * period).max(LEAST_QUOTA_US).round();
        let held = match (&self.unified, &group.unified) {
            (Some((_, true)), Some(path)) => write(&path.join("cpu.max"), &format!("{quota} {period}")),
            _ => match self.cpu_base() {
                Some(base) => {
                    group.cpu = create(&base.join(format!("node{number}")), notes);
                    group.cpu.as_ref().map_or(Ok(()), |path| {
                        write(&path.join("cpu.cfs_period_us"), &period.to_string())?;
                        write(&path.join("cpu.cfs_quota_us"), &quota.to_string())
                    })
                }
                None => Err("this machine gives no processor shares to control groups".to_owned()),
            },
        };
        if let Err(why) = held {
            notes.push(format!("its processor share is not held: {why}"));
        }
        group
    }

    /// The keeper's group in version 1's `cpu` hierarchy, as near to its own as may be.
    fn cpu_base(&mut self) -> Option<&Path> {
        if self.cpu.is_none() {
            let name = &self.name;
            self.cpu = self.cpu_parents.iter().rev().find_map(|parent| {
                let path = parent.join(name);
                fs::create_dir(&path).ok().map(|()| path)
            });
        }
        self.cpu.as_deref()
    }

    /// Removes the keeper's own groups; the nodes' are gone by then.
    pub fn remove(&self) {
        for path in self.unified.iter().map(|(path, _)| path).chain(&self.cpu) {
            remove(path);
        }
    }
}

impl Group {
    /// The version 2 group, opened so that a new process can start in it.
    pub fn open(&self) -> Option<File> {
        self.unified.as_ref().and_then(|path| File::open(path).ok())
    }

    /// Puts a process into the groups that [`Group::open`] does not reach.
    pub fn admit(&self, pid: i32, in_unified: bool) -> Result<(), String> {
        let unified = self.unified.as_ref().filter(|_| !in_unified);
        for path in unified.into_iter().chain(&self.cpu) {
            write(&path.join("cgroup.procs"), &pid.to_string())?;
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

/// A mounted hierarchy, and this process's own group in it.
struct Hierarchy {
    version: u8,
    mount: PathBuf,
    own: PathBuf,
}

impl Hierarchy {
    /// Version 2 and version 1's `cpu`, from the texts of `mountinfo` and `cgroup` in /proc/self.
    fn all(mounts: &str, own: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for line in mounts.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let left: Vec<&str> = left.split(' ').collect();
            let right: Vec<&str> = right.split(' ').collect();
            let (&[_, _, _, root, mount, ..], &[kind, _, options, ..]) = (&left[..], &right[..]) else {
                continue;
            };
            let version = match kind {
                "cgroup2" => 2,
                "cgroup" if options.split(',').any(|option| option == "cpu") => 1,
                _ => continue,
            };
            let path = own.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                let here = if version == 2 {
                    controllers.is_empty()
                } else {
                    controllers.split(',').any(|name| name == "cpu")
                };
                here.then_some(path)
            });
            // A hierarchy may be mounted from below its root, as in containers.
            let below =
                path.and_then(|path| Path::new(path).strip_prefix(root).ok()).unwrap_or(Path::new(""));
            found.push(Self { version, mount: mount.into(), own: below.to_path_buf() });
        }
        found
    }

    /// Where groups may be made: from the mounted root down to this process's own group.
    fn candidates(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.own.ancestors().map(|part| self.mount.join(part)).collect();
        paths.reverse();
        paths
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

fn create(path: &Path, notes: &mut Vec<String>) -> Option<PathBuf> {
    match fs::create_dir(path) {
        Ok(()) => Some(path.to_path_buf()),
        Err(error) => {
            notes.push(format!("{}: {error}", path.display()));
            None
        }
    }
}

fn write(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| format!("{} = {value}: {error}", path.display()))
}

/// Removes groups of keepers that were killed before they could do so themselves. A group with
/// processes in it is never removed: the kernel refuses.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let keeper = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if keeper.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            remove(&entry.path());
        }
    }
}

/// A group with nothing in it goes; one that is busy is tried again with its parent.
fn remove(path: &Path) {
    if let Ok(entries) = fs::read_dir(path) {
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::Hierarchy;

    #[test]
    fn a_hybrid_host_has_both_versions() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                      31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "3:memory:/a\n2:cpu,cpuacct:/user/x\n0::/user.slice/s1\n";
        let found = Hierarchy::all(mounts, own);
        assert_eq!(found.iter().map(|one| one.version).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            found[1].candidates(),
            ["", "user.slice", "user.slice/s1"]
                .map(|part| PathBuf::from("/sys/fs/cgroup/unified").join(part))
        );
        assert_eq!(found[0].candidates().len(), 3);
    }

    #[test]
    fn a_hierarchy_mounted_from_below_its_root_is_followed() {
        let mounts = "32 23 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let found = Hierarchy::all(mounts, "0::/docker/abc/init\n");
        assert_eq!(found[0].candidates().last(), Some(&PathBuf::from("/sys/fs/cgroup/init")));
        assert!(Hierarchy::all("garbage\n1 2 - x\n", "").is_empty());
    }
}
