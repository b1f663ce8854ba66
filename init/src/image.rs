//! File system of a node whose root is an image.
//!
//! The unpacked image is a folder of the host that several nodes may share: each node
//! has a writable overlay in memory on it, and sees of the host only the paths that
//! are shown to it, read-only.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::credentials::Credentials;
use crate::message::{Image, NodeRequest};
use crate::mounts::{
    self, STRICT, bind_held, folder, folders, held_path, hold, hold_all, memory, mount, sethostname, unmount,
    write_file,
};
use crate::proc;
use crate::system::check;

/// Devices of the host that give no access to the host.
const DEVICES: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "net/tun"];

/// Makes the image the root of this process; returns the features that this machine lacks, and the
/// credentials of the programs.
pub fn set_up(request: &NodeRequest, image: &Image) -> Result<(Vec<String>, Credentials), String> {
    let at = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| format!("{what}: {error}")
    };
    // Opens all paths of the host before they become unreachable.
    let lower = hold(Path::new(&image.root)).map_err(at(&image.root))?;
    let shown = hold_all(request.visible.iter().map(Path::new))?;
    let given = hold_all(request.mounts.iter().map(|said| Path::new(&said.source)))?;
    let hosts = hold(Path::new("/etc/hosts")).ok();
    let devices: Vec<(&str, File)> = DEVICES
        .iter()
        .filter_map(|name| hold(&Path::new("/dev").join(name)).ok().map(|fd| (*name, fd)))
        .collect();

    enter(&lower).map_err(at("root file system (overlay)"))?;

    let mut notes = Vec::new();
    own_places().map_err(at("file systems of the kernel"))?;
    if let Err(error) = mount(Some("sysfs"), "/sys", Some("sysfs"), STRICT | libc::MS_RDONLY, None) {
        notes.push(format!("there is no /sys in it: {error}"));
    }
    create_devices(&devices).map_err(at("/dev"))?;
    proc::close_settings().and_then(|()| proc::hide()).map_err(at("/proc"))?;

    for (path, fd) in &shown {
        let name = path.display().to_string();
        mounts::show(path, fd, libc::MS_REC).map_err(at(&name))?;
        mounts::read_only(&name).map_err(at(&name))?;
    }
    for (said, (_, fd)) in request.mounts.iter().zip(&given) {
        mounts::give(said, fd).map_err(at(&said.target))?;
    }
    if let Some(hosts) = hosts {
        write_file(Path::new("/etc/hosts"), "").map_err(at("/etc/hosts"))?;
        bind_held(&hosts, Path::new("/etc/hosts")).map_err(at("/etc/hosts"))?;
        mounts::read_only("/etc/hosts").map_err(at("/etc/hosts"))?;
    }
    // Not earlier: bind mounts need a source that is still mounted, and a user namespace may mount
    // /proc only while it sees another one.
    unmount(".").map_err(at("the host's root"))?;
    std::env::set_current_dir("/").map_err(at("/"))?;
    write_file(Path::new("/etc/hostname"), &format!("{}\n", request.name)).map_err(at("/etc/hostname"))?;
    for (path, content) in &request.files {
        if path == "/etc/hosts" {
            unmount(path).map_err(at(path))?;
        }
        write_file(Path::new(path), content).map_err(at(path))?;
    }
    sethostname(&request.name).map_err(at("host name"))?;
    folders(Path::new(&image.folder)).map_err(at(&image.folder))?;
    let credentials = Credentials::of(&image.user)?.or_root(&mut notes);
    Ok((notes, credentials))
}

/// Makes a writable overlay on the image the root; the old root is at "." until it is unmounted.
fn enter(lower: &File) -> io::Result<()> {
    memory("/tmp", 0o700)?;
    for place in ["/tmp/upper", "/tmp/work", "/tmp/root"] {
        folder(Path::new(place), 0o755)?;
    }
    mounts::overlay(&held_path(lower), "/tmp/upper", "/tmp/work", "/tmp/root", libc::MS_NODEV)?;
    std::env::set_current_dir("/tmp/root")?;
    let here = c".";
    // SAFETY: the string outlives the call.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, here.as_ptr(), here.as_ptr()) }).map(drop)
}

/// Mounts of the kernel's file systems, at the standard places.
fn own_places() -> io::Result<()> {
    for (path, mode) in
        [("/proc", 0o555), ("/sys", 0o555), ("/dev", 0o755), ("/tmp", 0o1777), ("/run", 0o755)]
    {
        if !Path::new(path).is_dir() {
            folder(Path::new(path), mode)?;
        }
    }
    mount(Some("proc"), "/proc", Some("proc"), STRICT, None)
}

fn create_devices(devices: &[(&str, File)]) -> io::Result<()> {
    memory("/dev", 0o755)?;
    for (name, fd) in devices {
        mounts::show(&Path::new("/dev").join(name), fd, 0)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, Path::new("/dev").join(name))?;
    }
    for (path, mode) in [("/dev/shm", 0o1777), ("/dev/pts", 0o755)] {
        fs::create_dir(path)?;
        if path == "/dev/shm" {
            memory(path, mode)?;
        }
    }
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, Some("newinstance,ptmxmode=0666,mode=0620"))
}
