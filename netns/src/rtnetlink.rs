//! The requests that configure a node: links, addresses, routes, neighbours, counters
//! (`rtnetlink(7)`, and the kernel's `linux/if_link.h` and `linux/rtnetlink.h`).

use std::net::IpAddr;

use crate::carrier::LinkState;
use crate::error::Error;
use crate::netlink::{Batch, attributes};
use crate::spec::{self, InterfaceSpec, NeighbourSpec, NodeSpec, RouteSpec};
use crate::tap::RING_FRAMES;

pub(crate) const GET_LINK: u16 = 18;
pub(crate) const GET_NEIGHBOUR: u16 = 30;
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_NEIGHBOUR: u16 = 28;
/// The request that removes something follows the one that makes it.
const REMOVE: u16 = 1;

pub(crate) const CREATE: u16 = 0x400;
pub(crate) const EXCLUSIVE: u16 = 0x200;
const REPLACE: u16 = 0x100;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_PERM_ADDRESS: u16 = 54;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const IFA_F_NODAD: u8 = 2;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_NOWHERE: u8 = 255;
const RTN_UNICAST: u8 = 1;

const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_REACHABLE: u16 = 0x02;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;

#[allow(clippy::cast_sign_loss)] // a flag, positive
const UP: u32 = libc::IFF_UP as u32;

/// Index of the first interface of every network namespace.
const LOOPBACK: i32 = 1;

/// The fixed part of a link request.
pub(crate) fn link_body(index: i32, flags: u32, change: u32) -> [u8; 16] {
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&change.to_ne_bytes());
    body
}

/// Configures a node whose interfaces exist, in a valid order. A repetition changes nothing.
pub(crate) fn configure(batch: &mut Batch, node: &NodeSpec, indices: &[i32]) -> Result<(), Error> {
    let bad =
        |what, value: &str, why| Error::Spec { node: node.name.clone(), what, value: value.to_owned(), why };
    let index_of = |name: &str| {
        node.interfaces
            .iter()
            .position(|interface| interface.name == name)
            .map(|position| indices[position])
            .ok_or_else(|| bad("interface", name, "the node has no such interface".to_owned()))
    };
    batch.request(NEW_LINK, 0, &link_body(LOOPBACK, UP, UP), "lo up".to_owned());
    for (interface, &index) in node.interfaces.iter().zip(indices) {
        let mac = spec::read_mac(&interface.mac).map_err(|why| bad("MAC", &interface.mac, why))?;
        up(batch, interface, index, mac);
    }
    for (bridge, &index) in node.interfaces.iter().zip(indices).filter(|(one, _)| one.is_bridge()) {
        for member in &bridge.bridge {
            let label = format!("{member} in the bridge {}", bridge.name);
            batch.request(NEW_LINK, 0, &link_body(index_of(member)?, 0, 0), label);
            batch.attribute(IFLA_MASTER, &index.to_ne_bytes());
        }
    }
    for (interface, &index) in node.interfaces.iter().zip(indices) {
        for text in &interface.addresses {
            let (address, length) = spec::prefix(text).map_err(|why| bad("address", text, why))?;
            let label = format!("address {text} on {}", interface.name);
            put_address_of(batch, (NEW_ADDRESS, CREATE | REPLACE), index, (address, length), label);
        }
    }
    for route in &node.routes {
        let index = index_of(&route.interface)?;
        let more = route.more.iter().map(|hop| Ok((hop.via.as_str(), index_of(&hop.interface)?)));
        let more: Vec<(&str, i32)> = more.collect::<Result<_, Error>>()?;
        add_route(batch, route, index, &more).map_err(|why| bad("route", &route.to, why))?;
    }
    for neighbour in &node.neighbours {
        let index = index_of(&neighbour.interface)?;
        add_neighbour(batch, neighbour, index).map_err(|why| bad("neighbour", &neighbour.address, why))?;
    }
    Ok(())
}

/// Creates the bridges of a node, without members.
pub(crate) fn add_bridges(batch: &mut Batch, node: &NodeSpec) -> Result<(), Error> {
    for bridge in node.interfaces.iter().filter(|interface| interface.is_bridge()) {
        let mac = spec::read_mac(&bridge.mac).map_err(|why| Error::Spec {
            node: node.name.clone(),
            what: "MAC",
            value: bridge.mac.clone(),
            why,
        })?;
        let label = format!("bridge {}", bridge.name);
        batch.request(NEW_LINK, CREATE | EXCLUSIVE, &link_body(0, 0, 0), label);
        batch.attribute(IFLA_IFNAME, &zero_ended(&bridge.name));
        batch.attribute(IFLA_ADDRESS, &mac);
        batch.nest(IFLA_LINKINFO, &[], |batch| batch.attribute(IFLA_INFO_KIND, b"bridge"));
    }
    Ok(())
}

/// Takes all interfaces of a node down, which removes its addresses and routes.
pub(crate) fn down(batch: &mut Batch, node: &NodeSpec, indices: &[i32]) {
    batch.request(NEW_LINK, 0, &link_body(LOOPBACK, 0, UP), "lo down".to_owned());
    for (interface, &index) in node.interfaces.iter().zip(indices) {
        link_down(batch, index, &interface.name);
    }
}

fn up(batch: &mut Batch, interface: &InterfaceSpec, index: i32, mac: [u8; 6]) {
    let label = format!("interface {} with MAC {} and MTU {}", interface.name, interface.mac, interface.mtu);
    batch.request(NEW_LINK, 0, &link_body(index, UP, UP), label);
    batch.attribute(IFLA_ADDRESS, &mac);
    batch.attribute(IFLA_MTU, &interface.mtu.to_ne_bytes());
    if interface.tap {
        batch.attribute(IFLA_TXQLEN, &RING_FRAMES.to_ne_bytes());
    }
}

/// Removes an address from an interface; `text` has its prefix length.
pub(crate) fn remove_address(batch: &mut Batch, index: i32, text: &str) -> Result<(), String> {
    put_address_of(
        batch,
        (NEW_ADDRESS + REMOVE, 0),
        index,
        spec::prefix(text)?,
        format!("address {text} removed"),
    );
    Ok(())
}

/// Removes an interface.
pub(crate) fn remove_link(batch: &mut Batch, index: i32, name: &str) {
    batch.request(NEW_LINK + REMOVE, 0, &link_body(index, 0, 0), format!("{name} removed"));
}

/// Takes an interface down.
pub(crate) fn link_down(batch: &mut Batch, index: i32, name: &str) {
    batch.request(NEW_LINK, 0, &link_body(index, 0, UP), format!("{name} down"));
}

/// A request about an address of an interface, of a type and with flags.
fn put_address_of(
    batch: &mut Batch,
    (kind, flags): (u16, u16),
    index: i32,
    (address, length): (IpAddr, u8),
    label: String,
) {
    // Addresses of a plan are unique, so duplicate address detection is not needed.
    let mut body = [family(address), length, IFA_F_NODAD, 0, 0, 0, 0, 0];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    batch.request(kind, flags, &body, label);
    match address {
        IpAddr::V4(address) => {
            batch.attribute(IFA_LOCAL, &address.octets());
            batch.attribute(IFA_ADDRESS, &address.octets());
            if length < 31 {
                let broadcast = address.to_bits() | (u32::MAX >> length);
                batch.attribute(IFA_BROADCAST, &broadcast.to_be_bytes());
            }
        }
        IpAddr::V6(_) => put_address(batch, IFA_ADDRESS, address),
    }
}

fn router(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|error| format!("via {text}: {error}"))
}

/// Where a route leads: its prefix, `None` for the default route, its router, and their family.
type Destination = (Option<(IpAddr, u8)>, Option<IpAddr>, u8);

fn destination(route: &RouteSpec) -> Result<Destination, String> {
    let via = route.via.as_deref().map(router).transpose()?;
    let target = match route.to.as_str() {
        "default" => None,
        text => Some(spec::prefix(text)?),
    };
    let family = match (target, via) {
        (Some((to, _)), Some(via)) if to.is_ipv4() != via.is_ipv4() => {
            return Err(format!("via {via}: not of the same family"));
        }
        (_, Some(address)) | (Some((address, _)), None) => family(address),
        (None, None) => return Err("a default route needs a router".to_owned()),
    };
    Ok((target, via, family))
}

/// Whether two routes have the same destination, so that one replaces the other.
pub(crate) fn same_destination(one: &RouteSpec, other: &RouteSpec) -> bool {
    let place = |route| destination(route).map(|(target, _, family)| (target, family));
    matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
}

/// Removes a static route, with all its next hops.
pub(crate) fn remove_route(batch: &mut Batch, route: &RouteSpec) -> Result<(), String> {
    let (target, _, family) = destination(route)?;
    let length = target.map_or(0, |(_, length)| length);
    let scope = if family == family_v4() { RT_SCOPE_NOWHERE } else { 0 };
    let body = [family, length, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, 0, 0, 0, 0, 0];
    batch.request(NEW_ROUTE + REMOVE, 0, &body, format!("route to {} removed", route.to));
    if let Some((address, _)) = target {
        put_address(batch, RTA_DST, address);
    }
    Ok(())
}

/// Adds a route; `more` has the other next hops, each with the index of its interface.
fn add_route(batch: &mut Batch, route: &RouteSpec, index: i32, more: &[(&str, i32)]) -> Result<(), String> {
    let (target, via, family) = destination(route)?;
    let scope = if via.is_none() && family == family_v4() { RT_SCOPE_LINK } else { 0 };
    let length = target.map_or(0, |(_, length)| length);
    let body = [family, length, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, 0, 0, 0, 0];
    let label = match via {
        Some(via) => format!("route to {} via {via} on {}", route.to, route.interface),
        None => format!("route to {} on {}", route.to, route.interface),
    };
    batch.request(NEW_ROUTE, CREATE | REPLACE, &body, label);
    if let Some((address, _)) = target {
        put_address(batch, RTA_DST, address);
    }
    if more.is_empty() {
        if let Some(via) = via {
            put_address(batch, RTA_GATEWAY, via);
        }
        batch.attribute(RTA_OIF, &index.to_ne_bytes());
        return Ok(());
    }
    let mut hops = Vec::new();
    put_hop(&mut hops, via.ok_or("one of several next hops is no router")?, index);
    for (text, index) in more {
        let address = router(text)?;
        if self::family(address) != family {
            return Err(format!("via {address}: not of the same family"));
        }
        put_hop(&mut hops, address, *index);
    }
    batch.attribute(RTA_MULTIPATH, &hops);
    Ok(())
}

/// Appends a next hop with the weight 1, `struct rtnexthop` and its router.
fn put_hop(hops: &mut Vec<u8>, router: IpAddr, index: i32) {
    let octets = match router {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let attribute = u16::try_from(4 + octets.len()).expect("an address is small");
    hops.extend_from_slice(&(8 + attribute).to_ne_bytes());
    hops.extend_from_slice(&[0, 0]);
    hops.extend_from_slice(&index.to_ne_bytes());
    hops.extend_from_slice(&attribute.to_ne_bytes());
    hops.extend_from_slice(&RTA_GATEWAY.to_ne_bytes());
    hops.extend_from_slice(&octets);
}

fn add_neighbour(batch: &mut Batch, neighbour: &NeighbourSpec, index: i32) -> Result<(), String> {
    let address: IpAddr =
        neighbour.address.parse().map_err(|error: std::net::AddrParseError| error.to_string())?;
    let mac = spec::read_mac(&neighbour.mac)?;
    let mut body = [0; 12];
    body[0] = family(address);
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let state = if neighbour.permanent { NUD_PERMANENT } else { NUD_REACHABLE };
    body[8..10].copy_from_slice(&state.to_ne_bytes());
    let label = format!("neighbour {address} at {}", neighbour.mac);
    batch.request(NEW_NEIGHBOUR, CREATE | REPLACE, &body, label);
    put_address(batch, NDA_DST, address);
    batch.attribute(NDA_LLADDR, &mac);
    Ok(())
}

/// Removes the entry of a neighbour.
pub(crate) fn remove_neighbour(batch: &mut Batch, index: i32, address: IpAddr) {
    let mut body = [0; 12];
    body[0] = family(address);
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    batch.request(NEW_NEIGHBOUR + REMOVE, 0, &body, format!("neighbour {address} removed"));
    put_address(batch, NDA_DST, address);
}

/// Interface and address of a neighbour that was learned, in the answer to a request for neighbours.
pub(crate) fn learned(answer: &[u8]) -> Option<(i32, IpAddr)> {
    let index = i32::from_ne_bytes(answer.get(4..8)?.try_into().ok()?);
    let state = u16::from_ne_bytes(answer.get(8..10)?.try_into().ok()?);
    let (_, octets) = attributes(answer.get(12..)?).find(|(kind, _)| *kind == NDA_DST)?;
    let address = match octets.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(octets).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
    };
    (state & (NUD_PERMANENT | NUD_NOARP) == 0).then_some((index, address))
}

/// A veth pair: one end in the namespace of the socket, the other in that of `far`.
pub(crate) fn add_veth(batch: &mut Batch, near: (&str, [u8; 6]), far: (&str, [u8; 6]), far_namespace: i32) {
    let label = format!("veth {} to {}", near.0, far.0);
    batch.request(NEW_LINK, CREATE | EXCLUSIVE, &link_body(0, 0, 0), label);
    batch.attribute(IFLA_IFNAME, &zero_ended(near.0));
    batch.attribute(IFLA_ADDRESS, &near.1);
    batch.nest(IFLA_LINKINFO, &[], |batch| {
        batch.attribute(IFLA_INFO_KIND, b"veth");
        batch.nest(IFLA_INFO_DATA, &[], |batch| {
            batch.nest(VETH_INFO_PEER, &link_body(0, 0, 0), |batch| {
                batch.attribute(IFLA_IFNAME, &zero_ended(far.0));
                batch.attribute(IFLA_ADDRESS, &far.1);
                batch.attribute(IFLA_NET_NS_FD, &far_namespace.to_ne_bytes());
            });
        });
    });
}

/// Renames an interface.
pub(crate) fn rename(batch: &mut Batch, index: i32, name: &str) {
    batch.request(NEW_LINK, 0, &link_body(index, 0, 0), format!("interface {index} named {name}"));
    batch.attribute(IFLA_IFNAME, &zero_ended(name));
}

/// Moves an interface into another network namespace, given by an open descriptor.
pub(crate) fn move_to(batch: &mut Batch, index: i32, namespace: i32) {
    batch.request(NEW_LINK, 0, &link_body(index, 0, 0), format!("interface {index} to its node"));
    batch.attribute(IFLA_NET_NS_FD, &namespace.to_ne_bytes());
}

/// Adds to a link request that it is about the interface of this name.
pub(crate) fn by_name(batch: &mut Batch, name: &str) {
    batch.attribute(IFLA_IFNAME, &zero_ended(name));
}

/// Flags and dropped frames in the answer to a link request.
pub(crate) fn state(answer: &[u8]) -> Option<LinkState> {
    let flags = i32::from_ne_bytes(answer.get(8..12)?.try_into().ok()?);
    let (_, counters) = counters(answer)?;
    Some(LinkState {
        up: flags & libc::IFF_UP != 0,
        running: flags & libc::IFF_RUNNING != 0,
        tx_dropped: counters[7],
    })
}

/// Index and MAC address in the answer to a link request: the permanent address if the kernel
/// reports it, because programs may have changed the current one.
pub(crate) fn link(answer: &[u8]) -> Option<(i32, [u8; 6])> {
    let index = i32::from_ne_bytes(answer.get(4..8)?.try_into().ok()?);
    let of = |wanted| attributes(answer.get(16..)?).find(|(kind, _)| *kind == wanted).map(|(_, mac)| mac);
    Some((index, of(IFLA_PERM_ADDRESS).or_else(|| of(IFLA_ADDRESS))?.try_into().ok()?))
}

/// The counters in the answer to a link request: name, and the fields of `rtnl_link_stats64`.
pub(crate) fn counters(answer: &[u8]) -> Option<(String, [u64; 8])> {
    let mut name = None;
    let mut counters = None;
    for (kind, value) in attributes(answer.get(16..)?) {
        match kind {
            IFLA_IFNAME => {
                name = Some(String::from_utf8_lossy(value.strip_suffix(&[0])?).into_owned());
            }
            IFLA_STATS64 => {
                let mut fields = [0; 8];
                for (field, octets) in fields.iter_mut().zip(value.chunks_exact(8)) {
                    *field = u64::from_ne_bytes(octets.try_into().ok()?);
                }
                counters = Some(fields);
            }
            _ => {}
        }
    }
    Some((name?, counters?))
}

fn zero_ended(name: &str) -> Vec<u8> {
    let mut octets = name.as_bytes().to_vec();
    octets.push(0);
    octets
}

fn family_v4() -> u8 {
    u8::try_from(libc::AF_INET).expect("a small number")
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { family_v4() } else { u8::try_from(libc::AF_INET6).expect("a small number") }
}

fn put_address(batch: &mut Batch, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(address) => batch.attribute(kind, &address.octets()),
        IpAddr::V6(address) => batch.attribute(kind, &address.octets()),
    }
}
