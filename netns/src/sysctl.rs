//! Kernel parameters of the calling thread's namespace.
//!
//! A new namespace copies some of its IPv4 parameters from the host's. Those that affect a node's
//! behaviour are therefore always written.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::error::Error;
use crate::spec::NodeSpec;

/// Written for every node: no reverse-path filter, so that asymmetric routes work as on a host with
/// the kernel's own default.
const IPV4: [(&str, &str); 2] = [("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")];

/// Written for nodes that use IPv6: no delay by, and no dependence on,
/// announcements of other nodes.
const IPV6: [(&str, &str); 4] = [
    ("conf/all/accept_dad", "0"),
    ("conf/default/accept_dad", "0"),
    ("conf/default/accept_ra", "0"),
    ("conf/default/router_solicitations", "0"),
];

/// Number of nodes served by one proc instance.
const NODES: u32 = 64;

/// Access to the parameters. A separate proc instance is mounted if permitted: in the host's
/// instance, the kernel keeps the folders of all namespaces under one name and searches them
/// linearly, so that the cost of a node grows with the number of nodes before it.
#[derive(Debug)]
pub(crate) struct Parameters {
    net: OwnedFd,
    served: u32,
}

impl Parameters {
    pub(crate) fn new() -> io::Result<Self> {
        let net = own_proc().or_else(|_| folder(libc::AT_FDCWD, c"/proc/sys/net"))?;
        Ok(Self { net, served: 0 })
    }

    /// Sets the parameters that must be set before the node's interfaces are created.
    pub(crate) fn before_interfaces(&mut self, node: &NodeSpec) -> Result<(), Error> {
        if self.served == NODES {
            *self = Self::new().map_err(|source| Error::kernel(&node.name, "/proc/sys/net", &source))?;
        }
        self.served += 1;
        let forward = if node.forwarding { "1" } else { "0" };
        let mut ipv4 = vec![("ip_forward", forward)];
        ipv4.extend(IPV4);
        self.write_all(node, c"ipv4", &ipv4)?;
        let ipv6 = if node.speaks_ipv6() {
            let mut ipv6 = vec![("conf/all/disable_ipv6", "0")];
            ipv6.extend(IPV6);
            ipv6.push(("conf/all/forwarding", forward));
            ipv6
        } else {
            vec![("conf/all/disable_ipv6", "1")]
        };
        match self.write_all(node, c"ipv6", &ipv6) {
            // A node that does not use IPv6 works on a kernel without it.
            Err(_) if !node.speaks_ipv6() && folder(self.net.as_raw_fd(), c"ipv6").is_err() => {}
            result => result?,
        }
        self.own(node, |key| !node.names_interface(key))
    }

    /// Sets on existing interfaces the values that new interfaces inherit.
    pub(crate) fn of_existing(&self, node: &NodeSpec) -> Result<(), Error> {
        for interface in node.interfaces.iter().filter(|_| node.speaks_ipv6()) {
            for (parameter, value) in IPV6.iter().filter_map(|(key, value)| {
                key.strip_prefix("conf/default/").map(|parameter| (parameter, value))
            }) {
                let path = format!("ipv6/conf/{}/{parameter}", interface.name);
                write(self.net.as_raw_fd(), &path, value)
                    .map_err(|source| Error::kernel(&node.name, format!("net/{path} = {value}"), &source))?;
            }
        }
        Ok(())
    }

    /// Sets the parameters of the node's interfaces.
    pub(crate) fn of_interfaces(&self, node: &NodeSpec) -> Result<(), Error> {
        self.own(node, |key| node.names_interface(key))
    }

    /// Sets the node's own parameters for which `wanted` is true.
    fn own(&self, node: &NodeSpec, wanted: impl Fn(&str) -> bool) -> Result<(), Error> {
        for (key, value) in node.sysctl.iter().filter(|(key, _)| wanted(key)) {
            let refuse = |why: &str| Error::Spec {
                node: node.name.clone(),
                what: "sysctl",
                value: key.clone(),
                why: why.to_owned(),
            };
            // Slashes in place of the dots allow an interface name with a dot, as in sysctl(8).
            let path = if key.contains('/') { key.clone() } else { key.replace('.', "/") };
            let path = path.strip_prefix("net/").ok_or_else(|| refuse("a node has only those below net"))?;
            if path.split('/').any(|word| word.is_empty() || word == "..") {
                return Err(refuse("not the name of a parameter"));
            }
            write(self.net.as_raw_fd(), path, value)
                .map_err(|source| Error::kernel(&node.name, format!("{key} = {value}"), &source))?;
        }
        Ok(())
    }

    fn write_all(&self, node: &NodeSpec, family: &CStr, values: &[(&str, &str)]) -> Result<(), Error> {
        let name = family.to_string_lossy();
        let fd = folder(self.net.as_raw_fd(), family)
            .map_err(|source| Error::kernel(&node.name, format!("/proc/sys/net/{name}"), &source))?;
        for (parameter, value) in values {
            write(fd.as_raw_fd(), parameter, value).map_err(|source| {
                Error::kernel(&node.name, format!("net/{name}/{parameter} = {value}"), &source)
            })?;
        }
        Ok(())
    }
}

/// The folder `sys/net` of a proc instance that is mounted nowhere and ends with the descriptor.
fn own_proc() -> io::Result<OwnedFd> {
    // SAFETY: the strings are constants; no other pointers are passed.
    let mounted = unsafe {
        let context = owned(libc::syscall(libc::SYS_fsopen, c"proc".as_ptr(), FSOPEN_CLOEXEC))?;
        let null = std::ptr::null::<libc::c_char>();
        let made = libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, null, null, 0);
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        owned(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0))?
    };
    folder(mounted.as_raw_fd(), c"sys/net")
}

const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn folder(from: RawFd, path: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the string outlives the call.
    owned(unsafe { libc::openat(from, path.as_ptr(), flags) }.into())
}

fn write(from: RawFd, path: &str, value: &str) -> io::Result<()> {
    let path = CString::new(path)?;
    // SAFETY: the string outlives the call.
    let fd = owned(unsafe { libc::openat(from, path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) }.into())?;
    // SAFETY: the slice outlives the call and its length is given.
    let written = unsafe { libc::write(fd.as_raw_fd(), value.as_ptr().cast(), value.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
