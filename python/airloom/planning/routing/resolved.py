"""Neighbours (ARP and IPv6) on the paths of measurements, known before time zero.

A kernel keeps some 200 kB of packets for a neighbour whose address it has asked for, and drops the
others without an account: 10 % of a fast flow over a long path, or all of one whose question was lost
on the air. The entries on the paths of measurements, in both directions, therefore exist from the
start, as after an exchange of packets. They age and are confirmed as usual.

Ping makes no exception necessary and shows the resolution in its first round-trip time, so a ping
alone has no entries. ``resolution`` of a measurement says otherwise.

An exchange of packets also tells switches where both ends are. Without it they would flood what is sent
to an end that does not send: so such ends send one frame at time zero (:func:`announced`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

from airloom.planning.plan import NeighbourPlan, NodePlan, Plan
from airloom.planning.routing.reach import Walker
from airloom.scenario.model import Measurement

MOST = 256
"""Most entries of a plan: what other laboratories of the machine need too has one common limit."""


def before(plan: Plan) -> Plan:
    """Returns the plan with the entries of neighbours on the paths of its measurements."""
    measured = plan.scenario.measurements
    if not any(_wanted(one) for one in measured):
        return plan
    found: dict[str, list[NeighbourPlan]] = {}
    for name, entry in _entries(plan):
        found.setdefault(name, []).append(entry)
    nodes = {
        name: replace(node, neighbours=(*node.neighbours, *found.get(name, ())))
        for name, node in plan.nodes.items()
    }
    return replace(plan, nodes=nodes) if found else plan


def announced(plan: Plan) -> list[tuple[str, bytes]]:
    """Returns the ports at switches whose address is known before, each with the frame that it sends.

    The frame is an exchange of identification (XID, IEEE 802.2), as access points send it for a station
    (IEEE 802.11F, layer-2 update): switches learn from it, and no network stack reads it.
    """
    switched = {
        end
        for link in plan.links.values()
        for end, other, vlan in ((link.a, link.b, link.vlans[1]), (link.b, link.a, link.vlans[0]))
        if other in plan.switches and _takes_untagged(vlan)
    }
    if not switched or not any(_wanted(one) for one in plan.scenario.measurements):
        return []
    macs = {entry.mac for _, entry in _entries(plan)}
    return [
        (port, b"\xff" * 6 + bytes.fromhex(interface.mac.replace(":", "")) + _XID)
        for node in plan.nodes.values()
        for interface in node.interfaces
        if interface.mac in macs
        and (port := f"{node.name}:{interface.name}") in switched
        and interface.real is None
        and interface.wlan is None
    ]


def _takes_untagged(vlan: dict[str, Any] | None) -> bool:
    trunk = None if vlan is None else vlan.get("trunk")
    return trunk is None or trunk.get("native") is not None


_XID = bytes.fromhex("0006 0001 af 81 01 00").ljust(48, b"\0")
"""Length, LLC addresses, control and information of an exchange of identification, and padding."""


def _entries(plan: Plan) -> Iterator[tuple[str, NeighbourPlan]]:
    """Yields node and entry for the neighbours on the paths of measurements."""
    measured = plan.scenario.measurements
    walker = Walker(plan)
    during = {hop for one in measured if one.tool.resolution == "during" for hop in _hops(walker, one)}
    hops: dict[tuple[str, str], None] = {}
    for one in filter(_wanted, measured):
        # Where a daemon chooses the path, it is one of links.
        hops |= dict.fromkeys([*_hops(walker, one)] or _ends(plan))
    for name, address in [hop for hop in hops if hop not in during][:MOST]:
        entry = _entry(plan, plan.nodes[name], address)
        if entry is not None:
            yield name, entry


def _wanted(measurement: Measurement) -> bool:
    said = measurement.tool.resolution
    return said == "before" or (said is None and measurement.ping is None)


def _hops(walker: Walker, measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yields node and next hop on the paths of a measurement, there and back."""
    tool, nodes = measurement.tool, walker.plan.nodes
    version = None if tool.family is None else int(tool.family.removeprefix("ipv"))
    to = tool.to if tool.to in nodes else walker.owner(tool.to)
    if to is None or tool.source not in nodes:
        return
    target = walker.address(to, version) if tool.to in nodes else ip_address(tool.to)
    back = None if target is None else walker.address(tool.source, target.version)
    if target is not None and back is not None:
        yield from walker.hops(tool.source, target)
        yield from walker.hops(to, back)


def _ends(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yields node and neighbour's address at both ends of each link between two nodes."""
    at = {
        f"{node.name}:{interface.name}": interface
        for node in plan.nodes.values()
        for interface in node.interfaces
    }
    for link in plan.links.values():
        for here, there in ((link.a, link.b), (link.b, link.a)):
            if here in at and there in at:
                networks = {address.network for address in at[here].addresses}
                for address in at[there].addresses:
                    if address.network in networks:
                        yield here.partition(":")[0], str(address.ip)


def _entry(plan: Plan, node: NodePlan, address: str) -> NeighbourPlan | None:
    """Returns the entry of a node for an address on one of its interfaces."""
    wanted = ip_address(address)
    mac = next(
        (
            interface.mac
            for other in plan.nodes.values()
            for interface in other.interfaces
            if any(one.ip == wanted for one in interface.addresses)
        ),
        None,
    )
    here = next(
        (
            interface.name
            for interface in node.interfaces
            if interface.real is None and any(wanted in one.network for one in interface.addresses)
        ),
        None,
    )
    return None if mac is None or here is None else NeighbourPlan(address, mac, here)
