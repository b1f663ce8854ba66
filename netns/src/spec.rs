//! The description of a node's network stack, as given by a plan.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::offloads::Offloads;

/// One node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name, for error messages.
    pub name: String,
    /// Its interfaces beside the loopback.
    #[serde(default)]
    pub interfaces: Vec<InterfaceSpec>,
    /// Its static routes.
    #[serde(default)]
    pub routes: Vec<RouteSpec>,
    /// Neighbour entries that exist from the start, without address resolution.
    #[serde(default)]
    pub neighbours: Vec<NeighbourSpec>,
    /// Whether it forwards packets between its interfaces, IPv4 and IPv6.
    #[serde(default)]
    pub forwarding: bool,
    /// Whether it uses IPv6; by default only if it has an IPv6 address. A node without IPv6 sends
    /// no multicast reports on its own.
    #[serde(default)]
    pub ipv6: Option<bool>,
    /// Kernel parameters below `net.`, by name.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
}

/// One interface.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Its name in the node.
    pub name: String,
    /// MAC address, six octets in hexadecimal with colons.
    pub mac: String,
    /// The kernel's number of its radio, if it is one of the simulated wireless hardware
    /// (`mac80211_hwsim`), which has another MAC address at first.
    #[serde(default)]
    pub radio: Option<u16>,
    /// MTU: largest layer-3 packet in octets.
    pub mtu: u32,
    /// Addresses with prefix length, such as `10.0.0.1/24`.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Whether a TAP is created for it; otherwise it is a radio, a bridge or one end of a [`VethSpec`].
    #[serde(default = "yes")]
    pub tap: bool,
    /// The interfaces that it joins, if it is a bridge.
    #[serde(default)]
    pub bridge: Vec<String>,
    /// Offloads that it uses.
    #[serde(default)]
    pub offloads: Offloads,
}

impl InterfaceSpec {
    /// True if it is a bridge of other interfaces.
    pub(crate) fn is_bridge(&self) -> bool {
        !self.bridge.is_empty()
    }
}

/// A static route.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// A prefix such as `10.1.0.0/16`, or `default`.
    pub to: String,
    /// The next hop; None if the prefix is on the link itself.
    #[serde(default)]
    pub via: Option<String>,
    /// Name of the interface.
    pub interface: String,
    /// Further next hops, which take equal shares of the flows.
    #[serde(default)]
    pub more: Vec<HopSpec>,
}

/// A next hop of a route.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HopSpec {
    /// Address of the router.
    pub via: String,
    /// Name of the interface.
    pub interface: String,
}

/// A neighbour's link-layer address.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourSpec {
    /// Its IPv4 or IPv6 address.
    pub address: String,
    /// Its link-layer address.
    pub mac: String,
    /// Name of the interface to the neighbour.
    pub interface: String,
    /// Whether it stays for ever; otherwise it is as after an address resolution at the start.
    #[serde(default)]
    pub permanent: bool,
}

/// One end of a veth pair.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VethEnd {
    /// Name of the node.
    pub node: String,
    /// Name of the interface.
    pub interface: String,
}

/// A veth pair between two native nodes, without an engine between them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VethSpec {
    /// One end.
    pub a: VethEnd,
    /// The other.
    pub b: VethEnd,
}

fn yes() -> bool {
    true
}

impl NodeSpec {
    /// Whether the node uses IPv6.
    pub(crate) fn speaks_ipv6(&self) -> bool {
        self.ipv6.unwrap_or_else(|| {
            self.interfaces.iter().flat_map(|interface| &interface.addresses).any(|text| text.contains(':'))
        })
    }

    /// Whether a kernel parameter belongs to one of the node's own interfaces.
    pub(crate) fn names_interface(&self, key: &str) -> bool {
        key.split(['.', '/']).any(|word| self.interfaces.iter().any(|interface| interface.name == word))
    }
}

/// Refuses duplicate names, before any namespace is created.
pub(crate) fn check(nodes: &[NodeSpec]) -> Result<(), Error> {
    let mut names = HashSet::new();
    for node in nodes {
        let twice = |what, name: &str| Error::Twice { node: node.name.clone(), what, name: name.to_owned() };
        if !names.insert(node.name.as_str()) {
            return Err(twice("the name", &node.name));
        }
        let mut interfaces = HashSet::from(["lo"]);
        for interface in &node.interfaces {
            if !interfaces.insert(interface.name.as_str()) {
                return Err(twice("interface", &interface.name));
            }
        }
    }
    Ok(())
}

/// Parses six octets in hexadecimal with colons.
///
/// # Errors
/// The reason if the text is invalid.
pub fn read_mac(text: &str) -> Result<[u8; 6], String> {
    let mut octets = [0; 6];
    let mut words = text.split(':');
    for octet in &mut octets {
        let word = words.next().filter(|word| word.len() == 2).ok_or("not six octets with colons")?;
        *octet = u8::from_str_radix(word, 16).map_err(|error| error.to_string())?;
    }
    match words.next() {
        Some(_) => Err("more than six octets".to_owned()),
        None if octets[0] & 1 == 1 => Err("a multicast address".to_owned()),
        None => Ok(octets),
    }
}

/// An address with its prefix length; without one, the full length of the address.
pub(crate) fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|error: std::net::AddrParseError| error.to_string())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), |text| {
        text.parse::<u8>().ok().filter(|length| *length <= most).ok_or("no such prefix length")
    })?;
    Ok((address, length))
}

#[cfg(test)]
mod tests {
    use super::{NodeSpec, check, prefix, read_mac};

    fn node(name: &str) -> NodeSpec {
        NodeSpec {
            name: name.to_owned(),
            interfaces: Vec::new(),
            routes: Vec::new(),
            neighbours: Vec::new(),
            forwarding: false,
            ipv6: None,
            sysctl: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_mac_is_six_octets_and_not_multicast() {
        assert_eq!(read_mac("02:00:0a:00:00:01"), Ok([2, 0, 10, 0, 0, 1]));
        for bad in
            ["", "02:00", "02:00:00:00:00:00:00", "2:0:0:0:0:1", "01:00:00:00:00:00", "zz:00:00:00:00:00"]
        {
            assert!(read_mac(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_prefix_has_a_length_that_fits_its_family() {
        assert_eq!(prefix("10.0.0.1/24"), Ok(("10.0.0.1".parse().unwrap(), 24)));
        assert_eq!(prefix("fd00::1"), Ok(("fd00::1".parse().unwrap(), 128)));
        for bad in ["10.0.0.1/33", "10.0.0", "fd00::/129", "10.0.0.1/-1"] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_unique() {
        let error = check(&[node("a"), node("a")]).unwrap_err();
        assert_eq!(error.code(), "node.twice");
        assert!(error.to_string().contains("node a"));
    }

    #[test]
    fn a_parameter_is_of_an_interface_if_it_names_one() {
        let mut node = node("a");
        node.interfaces.push(super::InterfaceSpec {
            name: "eth0".to_owned(),
            mac: "02:00:00:00:00:01".to_owned(),
            radio: None,
            mtu: 1500,
            addresses: vec!["fd00::1/64".to_owned()],
            tap: true,
            bridge: Vec::new(),
            offloads: super::Offloads::default(),
        });
        assert!(node.names_interface("net.ipv4.conf.eth0.rp_filter"));
        assert!(!node.names_interface("net.ipv4.conf.default.rp_filter"));
        assert!(node.speaks_ipv6());
    }
}
