//! File system of one node: the host's, with some folders and files of the node's own.
//!
//! The host's file system is never written to. One tmpfs for each node contains its /tmp,
//! /run, /var/tmp and /dev/shm and its own files, which are mounted over those of the host in
//! the node's mount namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::message::Mount;
use crate::mounts::{
    self, bind, bind_held, folder, folders, hold, hold_all, memory, mount, sethostname, unmount, write_file,
};
use crate::system::{check, text};

/// Private folders of a node, with their permissions; the others are prepared in the first one.
const OWN: [(&str, u32); 4] = [("/tmp", 0o1777), ("/run", 0o755), ("/var/tmp", 0o1777), ("/dev/shm", 0o1777)];

/// Gives this process a mount namespace of its own with private propagation: later mounts
/// are not visible on the host.
pub fn unshare() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(None, "/", None, libc::MS_REC | libc::MS_PRIVATE, None)
}

/// Mounts files at their paths, read-only, for this process and its descendants. The folder of a file
/// that does not exist, as `/etc/hosts` in a minimal system, is extended. Returns the files by path, for
/// [`write_again`].
pub fn mount_over(files: &BTreeMap<String, String>) -> Result<BTreeMap<String, File>, String> {
    let fail = |what: &str, error: io::Error| format!("{what}: {error}");
    memory("/tmp", 0o700).map_err(|error| fail("file system in memory", error))?;
    let mut opened = BTreeMap::new();
    for (number, (path, content)) in files.iter().enumerate() {
        let source = format!("/tmp/{number}");
        let file = File::create(&source).map_err(|error| fail(path, error))?;
        write_again(&file, content).map_err(|error| fail(path, error))?;
        opened.insert(path.clone(), file);
        if let (false, Some(folder)) = (Path::new(path).exists(), Path::new(path).parent()) {
            extend(number, folder, &hold(folder).map_err(|error| fail(path, error))?)?;
        }
        place(&source, path).map_err(|error| fail(path, error))?;
        let read_only = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
        mount(None, path, None, read_only, None).map_err(|error| fail(path, error))?;
    }
    // The files remain while they are mounted elsewhere.
    unmount("/tmp").map_err(|error| fail("file system in memory", error))?;
    Ok(opened)
}

/// Gives a file that is mounted other content, which all descendants see.
pub fn write_again(file: &File, content: &str) -> io::Result<()> {
    // Shortened at last, so that it is never empty.
    file.write_all_at(content.as_bytes(), 0)?;
    file.set_len(content.len() as u64)
}

/// Sets up the node's own folders and files, except /proc and /sys; the error is its reason.
///
/// No path of `visible` has symbolic links. No call here fails because of a path, or of how deep it is: in
/// virtual time calls that fail take time, and where the results lie would change a guest's random numbers.
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
    for (number, (folder, held)) in new_folders.iter().enumerate() {
        // Inside another extended folder the files of the host keep their owners.
        let inside = new_folders[..number].iter().any(|(outer, _)| folder.starts_with(outer));
        if !inside || !is_open(&folder.to_string_lossy(), libc::W_OK | libc::X_OK) {
            extend(number, folder, held)?;
        }
    }
    if let (Ok(hosts), true) =
        (&hosts, new_folders.iter().any(|(folder, _)| Path::new("/etc/hosts").starts_with(folder)))
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
    make_places(&shown).map_err(at("places of visible paths"))?;
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

/// The folders of the host to which a file or the place of a mount must be added, outer ones first,
/// with their handles.
fn folders_to_extend(
    files: &BTreeMap<String, String>,
    given: &[Mount],
) -> Result<Vec<(PathBuf, File)>, String> {
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
    hold_all(folders.iter().map(PathBuf::as_path))
}

/// Mounts a writable overlay in memory on a folder. A folder that this user may not enter is covered
/// by an empty one: nothing in it could be read.
fn extend(number: usize, folder: &Path, held: &File) -> Result<(), String> {
    let fail = |how: &'static str| {
        move |error: io::Error| format!("{}: cannot be extended ({how}): {error}", folder.display())
    };
    let lower = mounts::held_path(held);
    let target = folder.to_string_lossy();
    if !is_open(&lower, libc::X_OK) {
        return memory(&target, 0o755).map_err(fail("file system in memory"));
    }
    let (upper, work) = (format!("/tmp/upper{number}"), format!("/tmp/work{number}"));
    for place in [&upper, &work] {
        self::folder(Path::new(place), 0o755).map_err(fail("folder in memory"))?;
    }
    mounts::overlay(&lower, &upper, &work, &target, 0).map_err(fail("overlay file system"))
}

/// True if this process may use a path in a way (`access(2)`).
fn is_open(path: &str, how: libc::c_int) -> bool {
    // SAFETY: the string outlives the call.
    text(path).is_ok_and(|path| check(unsafe { libc::access(path.as_ptr(), how) }).is_ok())
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

/// Creates the places of visible paths in the node's own folders, the outer ones first.
fn make_places(shown: &[(PathBuf, File)]) -> io::Result<()> {
    let mut made = BTreeSet::new();
    for (path, fd) in shown {
        let own = OWN.iter().map(|(own, _)| Path::new(own)).find(|own| path.starts_with(own));
        let mut places: Vec<_> = path.ancestors().take_while(|place| Some(*place) != own).collect();
        places.reverse();
        for place in places {
            if !made.insert(place.to_path_buf()) {
                continue;
            }
            if place == path && !fd.metadata()?.is_dir() {
                File::create(place)?;
            } else if let Err(error) = fs::create_dir(place) {
                // One of the node's own files may be in it.
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Makes a path of the host visible again at its own place, which exists.
fn show(path: &Path, fd: &File) -> io::Result<()> {
    // A private folder of the node as a whole is bound without the mounts added to it meanwhile.
    let also = if OWN.iter().any(|(own, _)| path == Path::new(own)) { 0 } else { libc::MS_REC };
    mounts::cover(path, fd, also)
}
