"""Where packets go: a plan's routes followed hop by hop."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from airloom.plan import NodePlan, Plan
from airloom.scenario.refusal import Problem

MOST_HOPS = 255
"""The largest time to live: a packet that needs more hops never arrives."""


class Walker:
    """Follows packets through a plan, as each node's own addresses and routes send them."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self._owner = {
            address.ip: node.name
            for node in plan.nodes.values()
            for interface in node.interfaces
            for address in interface.addresses
        }
        self._tables: dict[str, list[dict[int, dict[int, IPv4Address | IPv6Address | None]]]] = {}

    def path(self, source: str, target: str) -> list[str] | None:
        """The nodes from ``source`` to ``target``'s first address; None if a packet would not get there."""
        address = self.plan.hosts.get(target)
        return None if address is None else self.path_to(source, ip_address(address))

    def path_to(self, source: str, target: IPv4Address | IPv6Address) -> list[str] | None:
        """The nodes from ``source`` to the owner of an address."""
        way = [source]
        while self._owner.get(target) != way[-1]:
            node = self.plan.nodes[way[-1]]
            if len(way) > MOST_HOPS or (len(way) > 1 and not node.forwarding):
                return None
            found = self._look_up(node, target)
            if found is None or found not in self._owner:
                return None
            way.append(self._owner[found])
        return way

    def _look_up(self, node: NodePlan, target: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address | None:
        """The next hop: the target itself if it is a neighbour, or a gateway."""
        tables = self._tables.get(node.name)
        if tables is None:
            tables = self._tables[node.name] = [_table(node, 4), _table(node, 6)]
        number, bits = int(target), target.max_prefixlen
        for length, table in sorted(tables[target.version == 6].items(), reverse=True):
            start = number >> (bits - length) << (bits - length) if length else 0
            if start in table:
                return table[start] or target
        return None


def _table(node: NodePlan, version: int) -> dict[int, dict[int, IPv4Address | IPv6Address | None]]:
    table: dict[int, dict[int, IPv4Address | IPv6Address | None]] = {}
    for route in node.routes:
        via = ip_address(route.via)
        if via.version != version:
            continue
        net: IPv4Network | IPv6Network = ip_network("0.0.0.0/0" if version == 4 else "::/0")
        if route.to != "default":
            net = ip_network(route.to)
        table.setdefault(net.prefixlen, {}).setdefault(int(net.network_address), via)
    for interface in node.interfaces:
        for address in interface.addresses:
            if address.version == version:
                table.setdefault(address.network.prefixlen, {})[int(address.network.network_address)] = None
    return table


def unreachable(plan: Plan) -> Iterator[Problem]:
    """Measurements whose packets would not arrive, or whose answers would not.

    Where a routing daemon may still make routes, nothing is said.
    """
    scenario = plan.scenario
    network_is_static = all(node.routing == "static" for node in scenario.nodes.values())
    if not network_is_static or not scenario.measurements:
        return
    walker = Walker(plan)
    for index, measurement in enumerate(scenario.measurements):
        tool = measurement.tool
        for source, target in ((tool.source, tool.to), (tool.to, tool.source)):
            if walker.path(source, target) is None:
                yield Problem(
                    "measurement.unreachable",
                    f"no way leads from {source!r} to {target!r}"
                    if target in plan.hosts
                    else f"{target!r} has no address",
                    ("measurements", index, measurement.word, "to"),
                    "join them by links, and let the nodes between them forward",
                )
                break
