//! The control-group hierarchies of this machine, and the groups of this process in them.

use std::path::{Path, PathBuf};

/// A mounted hierarchy, and the group of this process in it.
pub struct Hierarchy {
    pub version: u8,
    mount: PathBuf,
    own: PathBuf,
}

impl Hierarchy {
    /// Finds version 2 and version 1's `cpu`, from the texts of `mountinfo` and `cgroup` in
    /// /proc/self.
    pub fn all(mounts: &str, own: &str) -> Vec<Self> {
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
            // The root of the mount may be a group below the root of the
            // hierarchy, as in containers.
            let below =
                path.and_then(|path| Path::new(path).strip_prefix(root).ok()).unwrap_or(Path::new(""));
            found.push(Self { version, mount: mount.into(), own: below.to_path_buf() });
        }
        found
    }

    /// Groups in which new groups may be created: from the mounted root down to
    /// the group of this process.
    pub fn candidates(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.own.ancestors().map(|part| self.mount.join(part)).collect();
        paths.reverse();
        paths
    }
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
