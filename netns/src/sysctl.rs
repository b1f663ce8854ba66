//! Kernel parameters of the calling thread's namespace.
//!
//! A new namespace copies some of its IPv4 parameters from the host's. Those that affect a node's
//! behaviour are therefore always written.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

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
        let net = own_proc().or_else(|_| folder(CWD, c"/proc/sys/net"))?;
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
            Err(_) if !node.speaks_ipv6() && folder(&self.net, c"ipv6").is_err() => {}
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
                write(&self.net, &path, value)
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
            write(&self.net, path, value)
                .map_err(|source| Error::kernel(&node.name, format!("{key} = {value}"), &source))?;
        }
        Ok(())
    }

    fn write_all(&self, node: &NodeSpec, family: &CStr, values: &[(&str, &str)]) -> Result<(), Error> {
        let name = family.to_string_lossy();
        let fd = folder(&self.net, family)
            .map_err(|source| Error::kernel(&node.name, format!("/proc/sys/net/{name}"), &source))?;
        for (parameter, value) in values {
            write(&fd, parameter, value).map_err(|source| {
                Error::kernel(&node.name, format!("net/{name}/{parameter} = {value}"), &source)
            })?;
        }
        Ok(())
    }
}

/// The folder `sys/net` of a proc instance that is mounted nowhere and ends with the descriptor.
fn own_proc() -> io::Result<OwnedFd> {
    let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mounted = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    folder(&mounted, c"sys/net")
}

fn folder(from: impl AsFd, path: &CStr) -> io::Result<OwnedFd> {
    Ok(openat(from, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn write(from: &OwnedFd, path: &str, value: &str) -> io::Result<()> {
    let fd = openat(from, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(fd, value.as_bytes())?;
    Ok(())
}
