//! File system of one node: the host's, with some folders and files of the node's own.
//!
//! The host's file system is never written to. One tmpfs for each node contains its /tmp,
//! /run, /var/tmp and /dev/shm and its own files, which are mounted over those of the host in
//! the node's mount namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::message::Mount;
use crate::mounts::{
    self, bind, bind_held, folder, folders, hold, hold_all, memory, mount, sethostname, unmount, write_file,
};
use crate::system::check;

/// Private folders of a node, with their permissions; the others are prepared in the first one.
const OWN: [(&str, u32); 4] = [("/tmp", 0o1777), ("/run", 0o755), ("/var/tmp", 0o1777), ("/dev/shm", 0o1777)];

/// Gives this process a mount namespace of its own with private propagation: later mounts
/// are not visible on the host.
pub fn unshare() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(None, "/", None, libc::MS_REC | libc::MS_PRIVATE, None)
}

/// Mounts files over existing ones, read-only, for this process and its descendants.
pub fn mount_over(files: &BTreeMap<String, String>) -> Result<(), String> {
    let fail = |what: &str, error: io::Error| format!("{what}: {error}");
    memory("/tmp", 0o700).map_err(|error| fail("file system in memory", error))?;
    for (number, (path, content)) in files.iter().enumerate() {
        let source = format!("/tmp/{number}");
        fs::write(&source, content).map_err(|error| fail(path, error))?;
        bind(&source, path).map_err(|error| fail(path, error))?;
        let read_only = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
        mount(None, path, None, read_only, None).map_err(|error| fail(path, error))?;
    }
    // The files remain while they are mounted elsewhere.
    unmount("/tmp").map_err(|error| fail("file system in memory", error))
}

/// Sets up the node's own folders and files, except /proc and /sys; the error is its reason.
pub fn set_up(
    name: &str,
    files: &BTreeMap<String, String>,
    visible: &[String],
    given: &[Mount],
) -> Result<(), String> {
    let at = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| format!("{what}: {error}")
    };
    // Opened before the paths are covered by mounts.
    let resolver = fs::canonicalize("/etc/resolv.conf").ok();
    let mut shown = Vec::new();
    for path in visible.iter().map(PathBuf::from).chain(resolver) {
        let path = fs::canonicalize(&path).map_err(at(&path.display().to_string()))?;
        if OWN.iter().any(|(own, _)| path.starts_with(own))
            && !shown.iter().any(|(seen, _)| path.starts_with(seen))
        {
            // A file below a shown folder is shown with it and must not be created anew there.
            shown.push((path.clone(), hold(&path).map_err(at(&path.display().to_string()))?));
        }
    }
    let held = hold_all(given.iter().map(|said| Path::new(&said.source)))?;
    let hosts = hold(Path::new("/etc/hosts"));

    memory("/tmp", 0o755).map_err(at("file system in memory"))?;
    let stored = store(files).map_err(at("file system in memory"))?;
    let new_folders = folders_to_extend(files, given)?;
    for (number, folder) in new_folders.iter().enumerate() {
        extend(number, folder)?;
    }
    if let (Ok(hosts), true) =
        (&hosts, new_folders.iter().any(|folder| Path::new("/etc/hosts").starts_with(folder)))
    {
        // The overlay shows what lies below the mount on top of it.
        bind_held(hosts, Path::new("/etc/hosts")).map_err(at("/etc/hosts"))?;
    }
    let mut hostname = false;
    for (path, source) in &stored {
        if !is_own(path) {
            place(source, path).map_err(at(path))?;
            hostname |= path == "/etc/hostname";
        }
    }
    if !hostname && Path::new("/etc/hostname").exists() {
        fs::write("/tmp/hostname", format!("{name}\n")).map_err(at("/etc/hostname"))?;
        bind("/tmp/hostname", "/etc/hostname").map_err(at("/etc/hostname"))?;
    }
    for (number, (own, mode)) in OWN.iter().enumerate().rev() {
        // The last one, /tmp, covers the place where all were prepared.
        if Path::new(own).is_dir() {
            let source = format!("/tmp/own{number}");
            folder(Path::new(&source), *mode).map_err(at(own))?;
            bind(&source, own).map_err(at(own))?;
        }
    }
    for (path, content) in files.iter().filter(|(path, _)| is_own(path)) {
        write_file(Path::new(path), content).map_err(at(path))?;
    }
    for (path, fd) in &shown {
        show(path, fd).map_err(at(&path.display().to_string()))?;
    }
    for (said, (_, fd)) in given.iter().zip(&held) {
        mounts::give(said, fd).map_err(at(&said.target))?;
    }
    sethostname(name).map_err(at("host name"))
}

/// Writes the node's files into one folder; returns their paths in the node and the stored copies.
fn store(files: &BTreeMap<String, String>) -> io::Result<Vec<(String, String)>> {
    let mut stored = Vec::new();
    for (number, (path, content)) in files.iter().enumerate() {
        let source = format!("/tmp/file{number}");
        write_file(Path::new(&source), content)?;
        stored.push((path.clone(), source));
    }
    Ok(stored)
}

fn is_own(path: &str) -> bool {
    OWN.iter().any(|(own, _)| Path::new(path).starts_with(own))
}

/// The folders of the host to which a file or the place of a mount must be added.
fn folders_to_extend(files: &BTreeMap<String, String>, given: &[Mount]) -> Result<BTreeSet<PathBuf>, String> {
    if let Some(path) = files.keys().find(|path| Path::new(path).is_dir()) {
        return Err(format!("{path}: is a folder"));
    }
    let mut folders = BTreeSet::new();
    for path in files.keys().chain(given.iter().map(|said| &said.target)) {
        let path = Path::new(path);
        if !path.is_absolute() || path.components().any(|part| part.as_os_str() == "..") {
            return Err(format!("{}: not an absolute path", path.display()));
        }
        if !path.exists() && !is_own(&path.to_string_lossy()) {
            let deepest = path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
            if deepest == Path::new("/") {
                return Err(format!("{}: its first folder does not exist on this machine", path.display()));
            }
            folders.insert(deepest.to_path_buf());
        }
    }
    // A folder inside another extended folder is extended with it.
    Ok(folders
        .iter()
        .filter(|folder| !folders.iter().any(|outer| *folder != outer && folder.starts_with(outer)))
        .cloned()
        .collect())
}

/// Mounts a writable overlay in memory on a folder.
fn extend(number: usize, folder: &Path) -> Result<(), String> {
    let fail =
        |error: io::Error| format!("{}: cannot be extended (overlay file system): {error}", folder.display());
    let (upper, work) = (format!("/tmp/upper{number}"), format!("/tmp/work{number}"));
    for place in [&upper, &work] {
        self::folder(Path::new(place), 0o755).map_err(fail)?;
    }
    let target = folder.to_string_lossy();
    mounts::overlay(&target, &upper, &work, &target, 0).map_err(fail)
}

/// Puts a prepared file at its path: over an existing file, or as a new one.
fn place(source: &str, path: &str) -> io::Result<()> {
    let path = Path::new(path);
    if !path.exists() {
        if let Some(parent) = path.parent() {
            folders(parent)?;
        }
        File::create(path)?;
    }
    bind(source, &path.to_string_lossy())
}

/// Makes a path of the host visible again at its own place.
fn show(path: &Path, fd: &File) -> io::Result<()> {
    // A private folder of the node as a whole is bound without the mounts added to it meanwhile.
    let also = if OWN.iter().any(|(own, _)| path == Path::new(own)) { 0 } else { libc::MS_REC };
    mounts::show(path, fd, also)
}
