//! The kernel's own file systems as a node sees them: /proc and /sys.

use std::io;
use std::path::Path;

use crate::mounts::{STRICT, bind, bind_held, hold, mount, read_only, unmount};

/// Parts of /proc that are the whole machine's.
const MACHINES: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];
/// Of these, what each node has for itself.
const NODES: &str = "/proc/sys/net";
/// Parts that tell of the machine what no program needs.
const HIDDEN: [&str; 3] = ["/proc/kcore", "/proc/keys", "/proc/timer_list"];
/// Most mounts that may lie over each other at one place.
const LAYERS: usize = 8;

/// Mounts /proc and /sys of this process's own namespaces over those that are there; what this kernel
/// refuses is added to the notes.
pub fn cover(notes: &mut Vec<String>) -> io::Result<()> {
    mount(Some("proc"), "/proc", Some("proc"), STRICT, None)?;
    if let Err(error) = mount(Some("sysfs"), "/sys", Some("sysfs"), STRICT, None) {
        notes.push(format!("/sys shows the host's interfaces, not the node's: {error}"));
    }
    Ok(())
}

/// The same in a node of the host's kernel: what the host had there is gone from the node's sight, and what
/// is the whole machine's cannot be changed.
pub fn replace(notes: &mut Vec<String>) -> io::Result<()> {
    uncover("/proc");
    let before = notes.len();
    cover(notes)?;
    if notes.len() == before {
        // That the node can have its own is known now; the host's is below it.
        uncover("/sys");
        mount(Some("sysfs"), "/sys", Some("sysfs"), STRICT, None)?;
    }
    if let Err(error) = close_settings() {
        notes.push(format!("its programs may change the machine's settings in /proc/sys: {error}"));
    }
    Ok(())
}

/// Unmounts what is mounted at a place, so that nobody who unmounts what will be finds it there. Without
/// root the kernel refuses that; the host's is then below, with the rights of the user.
fn uncover(place: &str) {
    for _ in 0..LAYERS {
        if unmount(place).is_err() {
            return;
        }
    }
}

/// Closes what of /proc belongs to the whole machine; the node's own network settings stay open.
pub fn close_settings() -> io::Result<()> {
    let own = hold(Path::new(NODES))?;
    for path in MACHINES.iter().filter(|path| Path::new(path).exists()) {
        bind(path, path)?;
        read_only(path)?;
    }
    bind_held(&own, Path::new(NODES))
}

/// Hides what of /proc is no program's business.
pub fn hide() -> io::Result<()> {
    for path in HIDDEN.iter().filter(|path| Path::new(path).exists()) {
        bind("/dev/null", path)?;
    }
    Ok(())
}
