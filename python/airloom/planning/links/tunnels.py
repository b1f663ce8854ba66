"""Tunnels in the engine's encoding, and the size of their headers."""

from __future__ import annotations

from typing import Any

from airloom.planning.links.ports import DEFAULT_MTU, Segment
from airloom.planning.network import Network
from airloom.planning.plan import TunnelPlan
from airloom.scenario.model import Tunnel
from airloom.units.given import given

VXLAN_PORT = 4789
ETHERNET = 14
"""Octets of the Ethernet header of the frame that a tunnel carries."""


def plans(network: Network, segments: list[Segment]) -> dict[str, TunnelPlan]:
    """Returns the plan of every tunnel; each has one link."""
    nodes = {name: port.mac for segment in segments for name in segment.tunnels for port in segment.ports}
    # A trunk carries the segments of all its VLANs through a tunnel.
    mtus: dict[str, int] = {}
    for segment in segments:
        for name in segment.tunnels:
            mtus[name] = max(mtus.get(name, 0), given(segment.mtu, DEFAULT_MTU))
    trunks = {end.name for wire in network.wires if wire.trunk is not None for end in wire.ends}
    return {
        name: _plan(name, tunnel, mtus[name], nodes.get(name, ""), tagged=name in trunks)
        for name, tunnel in network.tunnels.items()
    }


def _plan(name: str, tunnel: Tunnel, mtu: int, mac: str, *, tagged: bool) -> TunnelPlan:
    return TunnelPlan(
        name=name,
        kind=tunnel.kind,
        remote=tunnel.remote,
        local=tunnel.local,
        encapsulation=encapsulation(tunnel, mac),
        port=given(tunnel.port, VXLAN_PORT) if tunnel.kind == "vxlan" else None,
        ttl=tunnel.ttl,
        fragment=tunnel.fragment,
        namespace=tunnel.namespace,
        mtu=mtu,
        headers=headers(tunnel) + ((("VLAN tag", 4),) if tagged else ()),
    )


def encapsulation(tunnel: Tunnel, mac: str) -> dict[str, Any]:
    """Returns the encoding of ``encapsulation.rs``; ``mac``: the node's, for GRE without Ethernet."""
    if tunnel.kind == "vxlan":
        return {"vxlan": {"vni": tunnel.vni}}
    header = {"key": tunnel.key, "checksum": tunnel.checksum, "sequence": tunnel.sequence}
    if tunnel.kind == "gretap":
        return {"gretap": header}
    return {"gre": {"header": header, "node": [int(octet, 16) for octet in mac.split(":")]}}


def headers(tunnel: Tunnel) -> tuple[tuple[str, int], ...]:
    """Returns the headers in front of the carried packet in the underlay, with octets of each."""
    ip = ("IP", 20) if tunnel.remote.version == 4 else ("IPv6", 40)
    if tunnel.kind == "vxlan":
        return (ip, ("UDP", 8), ("VXLAN", 8), ("Ethernet", ETHERNET))
    options = [
        (word, 4)
        for word, on in (
            ("checksum", tunnel.checksum),
            ("key", tunnel.key is not None),
            ("sequence number", tunnel.sequence),
        )
        if on
    ]
    frame = () if tunnel.kind == "gre" else (("Ethernet", ETHERNET),)
    return (ip, ("GRE", 4), *options, *frame)
