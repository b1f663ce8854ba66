//! /proc and /sys of a node.

use std::io;
use std::path::Path;

use crate::mounts::{STRICT, bind, bind_held, hold, mount, read_only, unmount};

/// Parts of /proc that belong to the whole machine.
const MACHINES: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];
/// Part of these that belongs to the node's network namespace.
const NODES: &str = "/proc/sys/net";
/// Parts that reveal details of the machine which no program needs.
const HIDDEN: [&str; 3] = ["/proc/kcore", "/proc/keys", "/proc/timer_list"];
/// Maximum number of mounts on top of each other at one place.
const LAYERS: usize = 8;

/// Mounts /proc and /sys of this process's own namespaces over the present ones; refusals of the
/// kernel are added to the notes.
pub fn cover(notes: &mut Vec<String>) -> io::Result<()> {
    mount(Some("proc"), "/proc", Some("proc"), STRICT, None)?;
    if let Err(error) = mount(Some("sysfs"), "/sys", Some("sysfs"), STRICT, None) {
        notes.push(format!("/sys shows the host's interfaces, not the node's: {error}"));
    }
    Ok(())
}

/// The same for a node on the host's kernel: the host's mounts are hidden, and settings of the
/// whole machine become read-only.
pub fn replace(notes: &mut Vec<String>) -> io::Result<()> {
    uncover("/proc");
    let before = notes.len();
    cover(notes)?;
    if notes.len() == before {
        // The node's own mount has succeeded; the host's mount lies below it.
        uncover("/sys");
        mount(Some("sysfs"), "/sys", Some("sysfs"), STRICT, None)?;
    }
    if let Err(error) = close_settings() {
        notes.push(format!("its programs may change the machine's settings in /proc/sys: {error}"));
    }
    Ok(())
}

/// Unmounts all mounts at a place, so that a later unmount does not expose them. Without root the
/// kernel refuses this; the host's mount then stays below, with the user's rights.
fn uncover(place: &str) {
    for _ in 0..LAYERS {
        if unmount(place).is_err() {
            return;
        }
    }
}

/// Makes the settings in /proc of the whole machine read-only; the node's own
/// network settings stay writable.
pub fn close_settings() -> io::Result<()> {
    let own = hold(Path::new(NODES))?;
    for path in MACHINES.iter().filter(|path| Path::new(path).exists()) {
        bind(path, path)?;
        read_only(path)?;
    }
    bind_held(&own, Path::new(NODES))
}

/// Hides the files in /proc that no program needs.
pub fn hide() -> io::Result<()> {
    for path in HIDDEN.iter().filter(|path| Path::new(path).exists()) {
        bind("/dev/null", path)?;
    }
    Ok(())
}
