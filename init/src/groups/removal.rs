//! Removal of control groups: a keeper's own when it ends, and those of keepers that were killed.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::system::{self, check, pipe};

/// How long a group may stay busy after its last process was killed.
const BUSY: Duration = Duration::from_secs(20);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Names of keepers' groups; the keeper's process number and start time follow.
const PREFIX: &str = "airloom-";

/// The name of this process's groups. The start time tells it from a later process with its number.
pub fn own_name() -> io::Result<String> {
    let pid = std::process::id();
    let start = start_of(pid).ok_or_else(|| io::Error::other("/proc/self/stat cannot be read"))?;
    Ok(format!("{PREFIX}{pid}-{start}"))
}

/// Removes the groups of keepers that are gone. The kernel refuses to remove a group with processes in it.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .to_str()
            .and_then(keeper_of)
            .is_some_and(|(pid, start)| start_of(pid) != Some(start))
        {
            remove(&entry.path());
        }
    }
}

/// The process number and start time in the name of a keeper's group.
fn keeper_of(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// When a process started, in clock ticks since the system did (`proc_pid_stat(5)`, field 22).
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    system::stat_fields(&stat)?.get(19)?.parse().ok()
}

/// Removes a group and all groups below it; false if it is still there.
pub fn remove(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    match open_at(libc::AT_FDCWD, &name) {
        Ok(folder) => {
            // What is busy makes the removal of the group itself fail, too.
            let _ = empty(folder);
        }
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    }
    fs::remove_dir(path).is_ok()
}

/// Removes all folders below one. A node may have nested them deeper than a path can be long, so the way
/// down and up is from folder to folder, with one of them open.
fn empty(top: OwnedFd) -> io::Result<()> {
    let mut here = top;
    // The folders that are still to be removed, at each level; the last of each is the way to the next.
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
    // SAFETY: the string outlives the call; the descriptor was just made and belongs to nobody else.
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

/// A process that removes a keeper's groups when the keeper was killed and cannot. It ends soon after the
/// keeper.
#[derive(Debug)]
pub struct Reaper {
    pid: i32,
    /// The reaper reads the end of this pipe when the keeper's last descriptor of it is closed.
    keeper_lives: OwnedFd,
}

impl Reaper {
    /// Starts it for groups that may be made later.
    pub fn start(groups: &[PathBuf]) -> io::Result<Self> {
        let (watched, keeper_lives) = pipe()?;
        let pid = system::child_in(0, None)?;
        if pid == 0 {
            let code = i32::from(reap(&watched, groups).is_err());
            // SAFETY: leaves without running what the parent will run at its own end.
            unsafe { libc::_exit(code) }
        }
        Ok(Self { pid, keeper_lives })
    }

    /// Tells it that the keeper ends, and waits for it.
    pub fn end(self) {
        drop(self.keeper_lives);
        let _ = system::end_of(self.pid);
    }
}

fn reap(watched: &OwnedFd, groups: &[PathBuf]) -> io::Result<()> {
    // A signal to the keeper's process group is not for the reaper, nor does it hold open what the
    // keeper has.
    // SAFETY: no pointers are passed; nothing else in this process uses descriptors any more.
    unsafe {
        check(libc::setsid())?;
        check(libc::dup3(watched.as_raw_fd(), 0, libc::O_CLOEXEC))?;
        check(libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0))?;
    }
    system::call_myself("airloom-reaper")?;
    let mut octet = 0_u8;
    // SAFETY: the place outlives the call and its length is given. Nobody writes to the pipe.
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

    use super::{keeper_of, open_at, own_name, remove, start_of, sweep};

    /// A folder of its own for a test, in place of a hierarchy of control groups.
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
    fn a_later_process_with_the_number_of_a_keeper_does_not_keep_its_groups() {
        let place = place("sweep");
        let pid = std::process::id();
        let start = start_of(pid).unwrap();
        let own = own_name().unwrap();
        assert_eq!(own, format!("airloom-{pid}-{start}"));
        assert_eq!(keeper_of(&own), Some((pid, start)));
        assert_eq!(keeper_of("airloom-x-1"), None);
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
