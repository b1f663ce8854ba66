//! Helpers for mounts and folders.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags};

use crate::message::Mount;
use crate::system::{check, text};

/// Restrictive flags for file systems that need no set-user-ID programs, devices or executables.
pub const STRICT: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

pub fn mount(
    source: Option<&str>,
    target: &str,
    kind: Option<&str>,
    flags: libc::c_ulong,
    data: Option<&str>,
) -> io::Result<()> {
    let flags = MountFlags::from_bits_retain(u32::try_from(flags).map_err(io::Error::other)?);
    let data = data.map(text).transpose()?;
    // The kernel ignores source and type where they are None: bind, remount, propagation.
    let (source, kind) = (source.unwrap_or_default(), kind.unwrap_or_default());
    Ok(rustix::mount::mount(source, target, kind, flags, data.as_deref())?)
}

/// Mounts an empty tmpfs.
pub fn memory(target: &str, mode: u32) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount(Some("tmpfs"), target, Some("tmpfs"), flags, Some(&format!("mode={mode:o}")))
}

/// Mounts a writable overlay on a folder; writes go to `upper`. Without root the kernel requires
/// the overlay's metadata in `user.*` extended attributes.
pub fn overlay(lower: &str, upper: &str, work: &str, target: &str, flags: libc::c_ulong) -> io::Result<()> {
    let layers = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let as_user = format!("{layers},userxattr");
    mount(Some("overlay"), target, Some("overlay"), flags, Some(&layers))
        .or_else(|_| mount(Some("overlay"), target, Some("overlay"), flags, Some(&as_user)))
}

pub fn bind(source: &str, target: &str) -> io::Result<()> {
    mount(Some(source), target, None, libc::MS_BIND | libc::MS_REC, None)
}

/// Bind-mounts an open file or folder, even if its own path is not reachable any more.
pub fn bind_held(fd: &File, path: &Path) -> io::Result<()> {
    bind(&held_path(fd), &path.to_string_lossy())
}

/// The path of an open file or folder, in /proc.
pub fn held_path(fd: &File) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Bind-mounts a path of the host at a path that is created if missing.
pub fn show(path: &Path, fd: &File, also: libc::c_ulong) -> io::Result<()> {
    if fd.metadata()?.is_dir() {
        folders(path)?;
    } else {
        if let Some(parent) = path.parent() {
            folders(parent)?;
        }
        if !path.exists() {
            File::create(path)?;
        }
    }
    cover(path, fd, also)
}

/// Bind-mounts a path of the host at a path that exists.
pub fn cover(path: &Path, fd: &File, also: libc::c_ulong) -> io::Result<()> {
    mount(Some(&held_path(fd)), &path.to_string_lossy(), None, libc::MS_BIND | also, None)
}

/// Mounts a held path of the host at its path in the node, without set-user-ID programs and devices.
pub fn give(said: &Mount, fd: &File) -> io::Result<()> {
    show(Path::new(&said.target), fd, libc::MS_REC)?;
    let read_only = if said.writable { 0 } else { libc::MOUNT_ATTR_RDONLY };
    restrict(&said.target, libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | read_only, 0)
}

/// Makes a mount and its submounts read-only in this mount namespace.
pub fn read_only(path: &str) -> io::Result<()> {
    restrict(path, libc::MOUNT_ATTR_RDONLY, 0)
}

/// Sets and clears attributes (`MOUNT_ATTR_*`) of a mount and its submounts in this mount
/// namespace.
pub fn restrict(path: &str, set: u64, clear: u64) -> io::Result<()> {
    let mut change: libc::mount_attr =
        libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let path = text(path)?;
    let at = libc::AT_RECURSIVE.unsigned_abs();
    // SAFETY: the path and the attributes outlive the call, and their size is given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            at,
            &raw mut change,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

pub fn unmount(target: &str) -> io::Result<()> {
    Ok(rustix::mount::unmount(target, UnmountFlags::DETACH)?)
}

/// Opens a file or folder as a handle (`O_PATH`), without reading it.
pub fn hold(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)
}

/// Resolves paths of the host and opens them as handles.
pub fn hold_all<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Vec<(PathBuf, File)>, String> {
    paths
        .map(|path| {
            let fail = |error: io::Error| format!("{}: {error}", path.display());
            let path = fs::canonicalize(path).map_err(fail)?;
            let fd = hold(&path).map_err(fail)?;
            Ok((path, fd))
        })
        .collect()
}

pub fn folder(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub fn folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Writes a file of the scenario and creates its parent folders; a file that begins
/// with `#!` becomes executable.
pub fn write_file(path: &Path, content: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        folders(parent)?;
    }
    fs::write(path, content)?;
    let mode = if content.starts_with("#!") { 0o755 } else { 0o644 };
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub fn sethostname(name: &str) -> io::Result<()> {
    Ok(rustix::system::sethostname(name.as_bytes())?)
}
