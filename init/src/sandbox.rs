//! Sandbox of a guest's machine, the process that emulates it (User Mode Linux or QEMU).
//!
//! The process sees the host's files read-only and few devices, can write only to one file system
//! in memory, and keeps only the named capabilities. A read-only mount does not prevent connect(2)
//! on a socket, which requires write permission on the socket's file; the process therefore runs as
//! a user that owns no file.
//!
//! In the worst case a program of the guest breaks out into this process, so the restrictions of
//! the process are those of the guest. The process itself opens the guest's view of the host's
//! files (hostfs).
//!
//! A machine without namespaces cannot be given another view of the files: it has the rights of the user
//! who started it, and can gain no others.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::credentials::{Rights, drop_from_bounding_set, is_mapped};
use crate::message::{Host, Sandbox, Start};
use crate::mount_namespace::unshare;
use crate::mounts::{self, hold, memory, mount, restrict};
use crate::processes::Processes;
use crate::program::{Refused, start_after};
use crate::system::{check, die_with_parent, text};

/// The only writable directory.
const SCRATCH: &str = "/dev/shm";
/// Devices that give no access to the host.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Users that own no files: a number that no distribution and no container engine assigns, and
/// "nobody" for user namespaces without that number.
const USERS: [u32; 2] = [1_900_000_001, 65_534];

/// Starts the machine and returns its process number once it runs.
pub fn start(host: &Host, streams: &[OwnedFd], processes: Processes) -> Result<i32, Refused> {
    let start = Start {
        id: host.id,
        argv: host.argv.clone(),
        env: host.env.clone(),
        folder: "/".to_owned(),
        tty: false,
        size: None,
        merged: false,
        own: false,
    };
    let folder = text(&host.folder).map_err(|error| ("working folder".to_owned(), error))?;
    let enter = || {
        // SAFETY: the string outlives the call.
        let entered = check(unsafe { libc::chdir(folder.as_ptr()) });
        entered.map(drop).map_err(|error| (format!("working folder {}", host.folder), error))
    };
    let user = user();
    start_after(&start, streams, &Rights::All, || {
        let step = |what: &str| {
            let what = what.to_owned();
            move |error| (what, error)
        };
        if processes == Processes::Descendants {
            end_with_parent_without_rights().map_err(step("the rights of its user"))?;
            return enter();
        }
        isolate_files(&host.sandbox, user)
            .map_err(step("a read-only view of the host (Linux 5.12 or later)"))?;
        // User Mode Linux reserves the random gap behind its program as its own memory.
        // SAFETY: no pointers are passed.
        check(unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) })
            .map_err(step("personality"))?;
        drop_rights(&host.sandbox.capabilities, user).map_err(step("giving up rights"))?;
        enter()
    })
}

/// Ends this process with its parent, since no namespace ends with that, and bars it from more rights.
fn end_with_parent_without_rights() -> io::Result<()> {
    die_with_parent()?;
    // A container's system call filter may refuse it. The kernel then takes the random gap for its own
    // memory, as much as that is in this run.
    // SAFETY: no pointers are passed.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// Gives this process a read-only view of the host's files, with only the permitted devices.
fn isolate_files(sandbox: &Sandbox, user: Option<u32>) -> io::Result<()> {
    unshare()?;
    let devices: Vec<(&str, File)> = DEVICES
        .into_iter()
        .chain(sandbox.devices.iter().map(String::as_str))
        .filter_map(|name| hold(&Path::new("/dev").join(name)).ok().map(|fd| (name, fd)))
        .collect();
    memory("/dev", 0o755)?;
    for (name, fd) in &devices {
        offer(&Path::new("/dev").join(name), fd, user)?;
    }
    fs::create_dir(SCRATCH)?;
    // Device files on the host's file systems cannot be opened.
    restrict("/", libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV, 0)?;
    restrict("/dev", 0, libc::MOUNT_ATTR_NODEV)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    let owner = user.map_or_else(String::new, |user| format!(",uid={user},gid={user}"));
    let options = format!("mode=700,size={}{owner}", sandbox.memory);
    mount(Some("tmpfs"), SCRATCH, Some("tmpfs"), flags, Some(&options))
}

/// Shows a device of the host at a path, also for a user without permission on the host's own
/// device file.
fn offer(path: &Path, fd: &File, user: Option<u32>) -> io::Result<()> {
    if let Some(user) = user {
        let (name, device) = (text(&path.to_string_lossy())?, fd.metadata()?.rdev());
        // SAFETY: the string outlives the calls.
        let made = check(unsafe { libc::mknod(name.as_ptr(), libc::S_IFCHR | 0o600, device) })
            .and_then(|_| check(unsafe { libc::chown(name.as_ptr(), user, user) }));
        if made.is_ok() {
            return Ok(());
        }
        let _ = fs::remove_file(path);
    }
    mounts::show(path, fd, 0)
}

/// The user of the machine's process; None if only the current user is mapped.
fn user() -> Option<u32> {
    USERS.into_iter().find(|&user| is_mapped(user, user))
}

/// Changes to a user that owns no files, and keeps only the named capabilities, also across
/// execve(2).
fn drop_rights(kept: &[u32], user: Option<u32>) -> io::Result<()> {
    if let Some(user) = user {
        let many = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // All machines of this host run as one user, and the kernel counts their
        // processes together. If the limit cannot be raised, the limit of the user
        // who started the run applies.
        // SAFETY: the limit outlives the call.
        unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const many) };
        // The capabilities are kept across the change of user, and count where a program checks
        // permissions (`access(2)`).
        // SAFETY: no pointers are passed, but for an empty list.
        unsafe {
            check(libc::prctl(libc::PR_SET_SECUREBITS, libc::SECBIT_NO_SETUID_FIXUP, 0, 0, 0))?;
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setresgid(user, user, user))?;
            check(libc::setresuid(user, user, user))?;
        }
    }
    drop_from_bounding_set(|number| !kept.contains(&number))?;
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // The kernel's `struct __user_cap_header_struct`, version 3, and two `__user_cap_data_struct`.
    let header = [0x2008_0522_u32, 0];
    let mask = |word: u32| {
        kept.iter().filter(|&&number| number / 32 == word).fold(0, |mask, number| mask | 1 << (number % 32))
    };
    let (low, high) = (mask(0), mask(1));
    let data: [u32; 6] = [low, low, low, high, high, high];
    // SAFETY: both arrays outlive the call and have the layout that the version says.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) })?;
    for &number in kept {
        let raise = libc::PR_CAP_AMBIENT_RAISE;
        // Without ambient capabilities, a program executed by a user other than root has none.
        // SAFETY: no pointers are passed.
        check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, libc::c_ulong::from(number), 0, 0) })?;
    }
    Ok(())
}
