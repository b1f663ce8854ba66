//! Removal of control groups: those of a supervisor when it ends, and those of killed supervisors.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::system::{self, check, pipe};

/// Maximum time for which a group may stay busy after its last process was killed.
const BUSY: Duration = Duration::from_secs(20);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Prefix of the names of supervisors' groups; the supervisor's process number and start time
/// follow.
const PREFIX: &str = "airloom-";

/// The name of this process's groups. The start time distinguishes it from a later
/// process with the same number.
pub fn own_name() -> io::Result<String> {
    let pid = std::process::id();
    let start = start_of(pid).ok_or_else(|| io::Error::other("/proc/self/stat cannot be read"))?;
    Ok(format!("{PREFIX}{pid}-{start}"))
}

/// Removes the groups of supervisors that have ended. The kernel does not remove a
/// group that has processes.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .to_str()
            .and_then(supervisor_of)
            .is_some_and(|(pid, start)| start_of(pid) != Some(start))
        {
            remove(&entry.path());
        }
    }
}

/// The process number and start time in the name of a supervisor's group.
fn supervisor_of(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Start time of a process, in clock ticks since boot (`proc_pid_stat(5)`, field 22).
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    system::stat_fields(&stat)?.get(19)?.parse().ok()
}

/// Removes a group and all groups below it; returns false if it still exists.
pub fn remove(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    match open_at(libc::AT_FDCWD, &name) {
        Ok(folder) => {
            // If this fails, the removal of the group itself fails too.
            let _ = empty(folder);
        }
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    }
    fs::remove_dir(path).is_ok()
}

/// Removes all folders below a folder. A node may have nested them deeper than the maximum length
/// of a path; the traversal therefore moves from folder to folder, with one open at a time.
fn empty(top: OwnedFd) -> io::Result<()> {
    let mut here = top;
    // The folders still to be removed, by level; the last entry of each level leads to the next
    // level.
    let mut levels = vec![folders_in(&here)?];
    loop {
        let level = levels.last().expect("the top level is left by returning");
        if let Some(name) = level.last() {
            here = open_at(here.as_raw_fd(), name)?;
            levels.push(folders_in(&here)?);
            continue;
        }
        levels.pop();
        let Some(name) = levels.last_mut().and_then(Vec::pop) else { return Ok(()) };
        here = open_at(here.as_raw_fd(), c"..")?;
        // SAFETY: the string outlives the call.
        check(unsafe { libc::unlinkat(here.as_raw_fd(), name.as_ptr(), libc::AT_REMOVEDIR) })?;
    }
}

fn open_at(folder: i32, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the string outlives the call; the descriptor is new and has no other owner.
    unsafe {
        let fd = libc::openat(folder, name.as_ptr(), flags);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn folders_in(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let entries = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    let names = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(names.filter_map(|entry| CString::new(OsString::into_vec(entry.file_name())).ok()).collect())
}

/// A helper process that removes a supervisor's groups if the supervisor is killed. It ends
/// soon after the supervisor.
#[derive(Debug)]
pub struct Reaper {
    pid: i32,
    /// The reaper reads the end of this pipe when the supervisor's last descriptor of it is closed.
    supervisor_lives: OwnedFd,
}

impl Reaper {
    /// Starts the reaper for groups that may be created later.
    pub fn start(groups: &[PathBuf]) -> io::Result<Self> {
        let (watched, supervisor_lives) = pipe()?;
        let pid = system::child_in(0, None)?;
        if pid == 0 {
            let code = i32::from(reap(&watched, groups).is_err());
            // SAFETY: leaves without running the exit handlers of the parent.
            unsafe { libc::_exit(code) }
        }
        Ok(Self { pid, supervisor_lives })
    }

    /// Signals the supervisor's end to the reaper and waits for it.
    pub fn end(self) {
        drop(self.supervisor_lives);
        let _ = system::end_of(self.pid);
    }
}

fn reap(watched: &OwnedFd, groups: &[PathBuf]) -> io::Result<()> {
    // The reaper leaves the supervisor's process group, so that signals to the group do not reach
    // it, and closes the descriptors inherited from the supervisor.
    // SAFETY: no pointers are passed; nothing else in this process uses descriptors any more.
    unsafe {
        check(libc::setsid())?;
        check(libc::dup3(watched.as_raw_fd(), 0, libc::O_CLOEXEC))?;
        check(libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0))?;
    }
    system::set_process_name("airloom-reaper")?;
    let mut octet = 0_u8;
    // SAFETY: the buffer outlives the call and its length is given. No process writes to the pipe.
    while unsafe { libc::read(0, (&raw mut octet).cast(), 1) } != 0 {}
    let until = Instant::now() + BUSY;
    while groups.iter().filter(|group| !remove(group)).count() > 0 && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use super::{open_at, own_name, remove, start_of, supervisor_of, sweep};

    /// A test folder that stands for a hierarchy of control groups.
    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("airloom-init-{name}-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        place
    }

    #[test]
    fn groups_are_removed_however_deep_they_are_nested() {
        let place = place("deep");
        let name = CString::new("a-name-of-some-length").unwrap();
        let top = CString::new(place.to_str().unwrap()).unwrap();
        let mut here = open_at(libc::AT_FDCWD, &top).unwrap();
        for _ in 0..3_000 {
            // SAFETY: the string outlives the call.
            assert_eq!(unsafe { libc::mkdirat(here.as_raw_fd(), name.as_ptr(), 0o755) }, 0);
            here = open_at(here.as_raw_fd(), &name).unwrap();
        }
        for number in 0..50 {
            fs::create_dir_all(place.join(format!("wide{number}/below"))).unwrap();
        }
        assert!(remove(&place));
        assert!(!place.exists());
        assert!(remove(&place), "what is not there is removed");
    }

    #[test]
    fn a_group_that_is_busy_is_reported() {
        let place = place("busy");
        fs::write(place.join("as a process would be"), "").unwrap();
        assert!(!remove(&place));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_later_process_with_the_number_of_a_supervisor_does_not_keep_its_groups() {
        let place = place("sweep");
        let pid = std::process::id();
        let start = start_of(pid).unwrap();
        let own = own_name().unwrap();
        assert_eq!(own, format!("airloom-{pid}-{start}"));
        assert_eq!(supervisor_of(&own), Some((pid, start)));
        assert_eq!(supervisor_of("airloom-x-1"), None);
        let before_me = format!("airloom-{pid}-{}", start - 1);
        for name in [own.as_str(), before_me.as_str(), "airloom-notes", "other"] {
            fs::create_dir_all(place.join(name).join("node1/inside")).unwrap();
        }
        sweep(&place);
        let left = |name: &str| place.join(name).exists();
        assert!(left(&own) && left("airloom-notes") && left("other"));
        assert!(!left(&before_me));
        fs::remove_dir_all(&place).unwrap();
    }
}
