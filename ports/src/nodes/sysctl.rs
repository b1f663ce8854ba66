//! Kernel parameters of the namespace in which the calling thread is.
//!
//! A fresh namespace copies some of its IPv4 parameters from the host's, so those that change a
//! node's behaviour are written whatever the host has. Files are opened relative to their folder:
//! the kernel keeps the folders of all namespaces under one name and walks them one by one.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::error::Error;
use super::spec::NodeSpec;

/// Written for every node: no reverse-path filter, so that asymmetric routes work as they do on
/// a host with the kernel's own default.
const IPV4: [(&str, &str); 2] = [("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")];

/// Written for nodes that speak IPv6: nothing waits for, or depends on, what others announce.
const IPV6: [(&str, &str); 4] = [
    ("conf/all/accept_dad", "0"),
    ("conf/default/accept_dad", "0"),
    ("conf/default/accept_ra", "0"),
    ("conf/default/router_solicitations", "0"),
];

/// Parameters that must stand before the node's interfaces are made.
pub(super) fn before_interfaces(node: &NodeSpec) -> Result<(), Error> {
    let forward = if node.forwarding { "1" } else { "0" };
    let mut folder = Folder::open(node, "/proc/sys/net/ipv4")?;
    folder.write("ip_forward", forward)?;
    for (name, value) in IPV4 {
        folder.write(name, value)?;
    }
    if let Ok(mut folder) = Folder::open(node, "/proc/sys/net/ipv6") {
        if node.speaks_ipv6() {
            folder.write("conf/all/disable_ipv6", "0")?;
            for (name, value) in IPV6 {
                folder.write(name, value)?;
            }
            folder.write("conf/all/forwarding", forward)?;
        } else {
            folder.write("conf/all/disable_ipv6", "1")?;
        }
    } else if node.speaks_ipv6() {
        return Err(Error::Kernel {
            node: node.name.clone(),
            what: "IPv6".to_owned(),
            why: "this kernel has none".to_owned(),
        });
    }
    own(node, |key| !node.names_interface(key))
}

/// Parameters that belong to the node's interfaces.
pub(super) fn of_interfaces(node: &NodeSpec) -> Result<(), Error> {
    own(node, |key| node.names_interface(key))
}

/// The node's own wishes, where `wanted`.
fn own(node: &NodeSpec, wanted: impl Fn(&str) -> bool) -> Result<(), Error> {
    for (key, value) in node.sysctl.iter().filter(|(key, _)| wanted(key)) {
        let refuse = |why: &str| Error::Spec {
            node: node.name.clone(),
            what: "sysctl",
            value: key.clone(),
            why: why.to_owned(),
        };
        // A slash instead of the dots lets an interface's name contain a dot, as in sysctl(8).
        let path = if key.contains('/') { key.clone() } else { key.replace('.', "/") };
        let path = path.strip_prefix("net/").ok_or_else(|| refuse("a node has only those below net"))?;
        if path.split('/').any(|word| word.is_empty() || word == "..") {
            return Err(refuse("not the name of a parameter"));
        }
        Folder::open(node, "/proc/sys/net")?.write(path, value)?;
    }
    Ok(())
}

/// A folder of parameters, opened once.
struct Folder<'a> {
    node: &'a NodeSpec,
    path: &'static str,
    fd: OwnedFd,
}

impl<'a> Folder<'a> {
    fn open(node: &'a NodeSpec, path: &'static str) -> Result<Self, Error> {
        let name = CString::new(path).expect("a constant without zero");
        // SAFETY: the string outlives the call.
        let fd = unsafe { libc::open(name.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(Error::kernel(&node.name, path, &io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        Ok(Self { node, path, fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    fn write(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.put(name, value).map_err(|source| {
            Error::kernel(&self.node.name, format!("{}/{name} = {value}", self.path), &source)
        })
    }

    fn put(&self, name: &str, value: &str) -> io::Result<()> {
        let name = CString::new(name)?;
        // SAFETY: the string outlives the call.
        let fd =
            unsafe { libc::openat(self.fd.as_raw_fd(), name.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: the slice outlives the call and its length is given.
        let written = unsafe { libc::write(fd.as_raw_fd(), value.as_ptr().cast(), value.len()) };
        if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
