"""Follows a plan's routes hop by hop."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from airloom.planning.network import Network
from airloom.planning.plan import NodePlan, Plan
from airloom.planning.routing import lifetime
from airloom.scenario.problems import Problem


class Walker:
    """Follows packets through a plan by each node's addresses and routes."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self._owner = {
            address.ip: node.name
            for node in plan.nodes.values()
            for interface in node.interfaces
            for address in interface.addresses
        }
        self._tables: dict[str, list[dict[int, dict[int, IPv4Address | IPv6Address | None]]]] = {}

    def address(self, node: str, version: int | None = None) -> IPv4Address | IPv6Address | None:
        """Returns a node's first address, or its first of one IP version."""
        for interface in self.plan.nodes[node].interfaces:
            for address in interface.addresses:
                if version is None or address.version == version:
                    return address.ip
        return None

    def owner(self, address: str) -> str | None:
        """Returns the node that has an address."""
        return self._owner.get(ip_address(address))

    def path(self, source: str, target: str) -> list[str] | None:
        """Returns the nodes on the path to ``target``'s first address; None if it is unreachable."""
        address = self.address(target)
        return None if address is None else self.path_to(source, address)

    def hops(self, source: str, target: IPv4Address | IPv6Address) -> list[tuple[str, str]]:
        """Returns node and next hop's address along the path to an address, as far as it leads."""
        way = self.path_to(source, target) or []
        found = ((name, self._look_up(self.plan.nodes[name], target)) for name in way[:-1])
        return [(name, str(address)) for name, address in found if address is not None]

    def path_to(
        self, source: str, target: IPv4Address | IPv6Address, *, hops: int | None = None
    ) -> list[str] | None:
        """Returns the nodes from ``source`` to the owner of an address; None if it is unreachable.

        ``hops`` limits the path; by default the TTL of ``source`` does.
        """
        way = [source]
        most = lifetime.of(self.plan.nodes[source].sysctl, target.version) if hops is None else hops
        while self._owner.get(target) != way[-1]:
            node = self.plan.nodes[way[-1]]
            if len(way) > most or (len(way) > 1 and not node.forwarding):
                return None
            found = self._look_up(node, target)
            if found is None or found not in self._owner:
                return None
            way.append(self._owner[found])
        return way

    def _look_up(self, node: NodePlan, target: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address | None:
        """Returns the next hop: a gateway, or the target itself if it is on-link."""
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


def unreachable(plan: Plan, network: Network) -> Iterator[Problem]:
    """Yields measurements whose packets, or their replies, would not arrive.

    Routes are not followed if some nodes leave routing to a daemon.
    """
    scenario = plan.scenario
    owners = {
        str(address.ip): node.name
        for node in plan.nodes.values()
        for interface in node.interfaces
        for address in interface.addresses
    }
    for index, measurement in enumerate(scenario.measurements):
        to = measurement.tool.to
        if to not in plan.nodes and to not in owners:
            yield Problem(
                "measurement.address.unknown",
                f"no node has the address {to}",
                ("measurements", index, measurement.word, "to"),
                "`airloom check` prints the addresses that nodes have",
            )
            return
    network_is_static = all(said.protocol == "static" for said in network.routing.values())
    if not network_is_static or not scenario.measurements:
        return
    walker = Walker(plan)
    for index, measurement in enumerate(scenario.measurements):
        tool = measurement.tool
        path = ("measurements", index, measurement.word)
        version = None if tool.family is None else int(tool.family.removeprefix("ipv"))
        to = owners.get(tool.to, tool.to)
        for source, target in ((tool.source, to), (to, tool.source)):
            address = walker.address(target, version)
            if address is None:
                yield Problem(
                    "measurement.address",
                    f"{target!r} has no {_FAMILIES[version]}address",
                    (*path, "to" if version is None else "family"),
                    "give it one, or a pool under 'addresses:'",
                )
                break
            if walker.path_to(source, address) is None:
                way = walker.path_to(source, address, hops=len(plan.nodes))
                yield Problem(
                    "measurement.unreachable",
                    f"no way leads from {source!r} to {target!r}"
                    if way is None
                    else f"packets of {source!r} end before the {len(way) - 1} hops to {target!r}",
                    (*path, "to"),
                    "join them by links, and let the nodes between them forward"
                    if way is None
                    else f"they live for {lifetime.of(plan.nodes[source].sysctl, address.version)} hops,"
                    f" at most {lifetime.LARGEST}",
                )
                break


_FAMILIES = {None: "", 4: "IPv4 ", 6: "IPv6 "}
