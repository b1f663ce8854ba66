"""Routes: static, along shortest paths.

A path's length is its number of router hops, or the sum of its propagation delays; among equals the
choice is fixed but arbitrary. For every destination the next hops of all nodes come from one
shortest-path tree, so that following them never loops.

A node with a single router next to it gets a default route; so does a host between several routers,
towards the one that leads to most networks, with routes for the others. A router between several
gets a route for each network it can reach and no default, so that a packet to nowhere ends at it.
Two routers that have only each other do the same. Neighbouring networks behind one next hop become
one route, if nothing else lies within it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from airloom.plan import RoutePlan
from airloom.planning.addresses import Net
from airloom.planning.ports import Port, Segment
from airloom.scenario.network import Network

Hop = tuple[int, str]
"""Next hop: its address, and the own interface towards it."""

HOP = 1 << 20
"""Cost of a router hop; a switch on the way costs 1, so that fewer switches win among equals."""


@dataclass(slots=True)
class _Subnet:
    """One network on one segment, and whose interfaces are in it."""

    net: Net
    segment: Segment
    members: dict[str, tuple[Port, int]] = field(default_factory=dict)
    """Node: its first interface there and its address."""
    routers: list[str] = field(default_factory=list)


def routes(
    network: Network, segments: list[Segment], forwarding: set[str], metric: str
) -> dict[str, list[RoutePlan]]:
    """The routes of every node that is not left to a daemon."""
    result: dict[str, list[RoutePlan]] = {}
    for version in (4, 6):
        for node, found in _Family(network, segments, forwarding, metric, version).routes().items():
            result.setdefault(node, []).extend(found)
    return result


class _Family:
    """Routing of one address family."""

    def __init__(
        self, network: Network, segments: list[Segment], forwarding: set[str], metric: str, version: int
    ):
        self.network = network
        self.metric = metric
        self.version = version
        self.forwarding = forwarding
        self.subnets = _subnets(segments, version, forwarding)
        self._texts: dict[int, str] = {}
        self.of_node: dict[str, list[_Subnet]] = {}
        for subnet in self.subnets:
            for node in subnet.members:
                self.of_node.setdefault(node, []).append(subnet)

    def routes(self) -> dict[str, list[RoutePlan]]:
        result: dict[str, list[RoutePlan]] = {}
        full: set[str] = set()
        single: dict[str, tuple[_Subnet, str]] = {}
        for node, subnets in self.of_node.items():
            gateways = [
                (subnet, router) for subnet in subnets for router in subnet.routers[:3] if router != node
            ][:2]
            if len(gateways) == 1:
                single[node] = gateways[0]
            elif gateways:
                full.add(node)
        for node, (_, router) in single.items():
            # Two routers that have only each other would send a packet to nowhere back and forth.
            if node in self.forwarding and router in single and single[router][1] == node:
                full.add(node)
        static = {name for name, node in self.network.nodes.items() if node.routing == "static"}
        for node, (subnet, router) in single.items():
            if node in static and node not in full:
                hop = self._hop(subnet, node, router)
                result[node] = [self._route("default", hop)]
        full &= static
        if full:
            for node, table in self._tables(full).items():
                result[node] = self._listed(table, default=node not in self.forwarding)
        return result

    def _hop(self, subnet: _Subnet, node: str, router: str) -> Hop:
        return (subnet.members[router][1], subnet.members[node][0].name)

    def _route(self, to: str, hop: Hop) -> RoutePlan:
        return RoutePlan(to, self._text(hop[0]), hop[1])

    def _text(self, address: int) -> str:
        # A large network has hundreds of thousands of routes to a few thousand addresses.
        text = self._texts.get(address)
        if text is None:
            made = IPv4Address(address) if self.version == 4 else IPv6Address(address)
            text = self._texts[address] = str(made)
        return text

    def _tables(self, full: set[str]) -> dict[str, dict[Net, Hop]]:
        """For each node its next hop to every network it is not in."""
        tables: dict[str, dict[Net, Hop]] = {node: {} for node in full}
        graph = _Graph(self, full)
        classes: dict[tuple[str, ...], list[_Subnet]] = {}
        for subnet in self.subnets:
            if subnet.routers:
                classes.setdefault(tuple(subnet.routers), []).append(subnet)
        for routers, subnets in classes.items():
            hops = graph.toward(routers)
            for node, hop in hops.items():
                table = tables[node]
                for subnet in subnets:
                    if node not in subnet.members:
                        table[subnet.net] = hop
        return tables

    def _listed(self, table: dict[Net, Hop], *, default: bool) -> list[RoutePlan]:
        by_hop: dict[Hop, list[Net]] = {}
        for net, hop in table.items():
            by_hop.setdefault(hop, []).append(net)
        listed: list[RoutePlan] = []
        if default and by_hop:
            most = Counter({hop: len(nets) for hop, nets in by_hop.items()}).most_common(1)[0][0]
            del by_hop[most]
            listed.append(self._route("default", most))
        bits = 32 if self.version == 4 else 128
        rows = [(net, hop) for hop, nets in by_hop.items() for net in collapse(nets, bits)]
        for net, hop in sorted(rows):
            listed.append(self._route(f"{self._text(net[0])}/{net[1]}", hop))
        return listed


def _subnets(segments: list[Segment], version: int, forwarding: set[str]) -> list[_Subnet]:
    bits = 32 if version == 4 else 128
    found: list[_Subnet] = []
    for segment in segments:
        here: dict[Net, _Subnet] = {}
        for port in segment.ports:
            for address in port.addresses:
                if address.version != version or address.is_link_local:
                    continue
                number = int(address)
                shift = bits - address.network.prefixlen
                net = (number >> shift << shift, address.network.prefixlen)
                subnet = here.get(net)
                if subnet is None:
                    subnet = here[net] = _Subnet(net, segment)
                    found.append(subnet)
                if port.node not in subnet.members:
                    subnet.members[port.node] = (port, number)
                    if port.node in forwarding:
                        subnet.routers.append(port.node)
    return found


def collapse(nets: list[Net], bits: int) -> list[Net]:
    """The fewest networks that hold exactly the same addresses."""
    stack: list[Net] = []
    for net in sorted(nets):
        if stack and net[0] < stack[-1][0] + (1 << (bits - stack[-1][1])):
            continue
        stack.append(net)
        while len(stack) > 1:
            (low, length), (high, other) = stack[-2:]
            size = 1 << (bits - length)
            if length != other or low & size or low + size != high:
                break
            stack[-2:] = [(low, length - 1)]
    return stack


class _Graph:
    """Who can hand a packet to whom, as edges towards each vertex.

    Vertices are the routers, the hosts that need more than a default route, and for every network
    with switches a copy of these.
    """

    def __init__(self, family: _Family, full: set[str]):
        self.index: dict[str, int] = {}
        self.full = full
        self.edges: list[dict[int, tuple[int, Port | None, int | None]]] = []
        """For each vertex: (vertex that sends to it) -> cost, sending port, address of the receiver."""
        self.delays = family.metric == "delay"
        vertices = family.forwarding | full
        for node in family.of_node:
            if node in vertices:
                self.index[node] = len(self.edges)
                self.edges.append({})
        self.names = list(self.index)
        for subnet in family.subnets:
            inner = [node for node in subnet.members if node in self.index]
            if len(inner) > 1 and subnet.routers:
                self._add(family.network, subnet, inner)

    def _add(self, network: Network, subnet: _Subnet, inner: list[str]) -> None:
        switches: dict[str, int] = {}
        members = {id(subnet.members[node][0]): node for node in inner}
        ports = {(port.wire, port.side): port for port in subnet.segment.ports}
        for number in subnet.segment.wires:
            wire = network.wires[number]
            ends: list[tuple[int, str | None, Port | None]] = []
            for side, end in enumerate(wire.ends):
                if end.name in network.switches:
                    vertex = switches.get(end.name)
                    if vertex is None:
                        vertex = switches[end.name] = len(self.edges)
                        self.edges.append({})
                    ends.append((vertex, None, None))
                else:
                    port = ports.get((number, side))
                    node = members.get(id(port))
                    if port is None or node is None:
                        break
                    ends.append((self.index[node], node, port))
            if len(ends) < 2:
                continue
            a, b = ends
            self._edge(subnet, a, b, int(wire.forward.delay or 0))
            self._edge(subnet, b, a, int(wire.backward.delay or 0))

    def _edge(
        self,
        subnet: _Subnet,
        a: tuple[int, str | None, Port | None],
        b: tuple[int, str | None, Port | None],
        delay: int,
    ) -> None:
        if b[1] is not None and b[1] not in subnet.routers:
            return
        cost = (HOP if a[1] is not None else 1) + (delay * HOP if self.delays else 0)
        known = self.edges[b[0]].get(a[0])
        if known is None or cost < known[0]:
            address = subnet.members[b[1]][1] if b[1] is not None else None
            self.edges[b[0]][a[0]] = (cost, a[2], address)

    def toward(self, routers: tuple[str, ...]) -> dict[str, Hop]:
        """The next hop of every node with a full table towards the nearest of some routers."""
        best = [-1] * len(self.edges)
        after: list[int] = [-1] * len(self.edges)
        heap = [(0, self.index[router]) for router in routers]
        for _, vertex in heap:
            best[vertex] = 0
        heapq.heapify(heap)
        while heap:
            cost, vertex = heapq.heappop(heap)
            if cost > best[vertex]:
                continue
            for sender, (step, _, _) in self.edges[vertex].items():
                total = cost + step
                if best[sender] < 0 or total < best[sender]:
                    best[sender] = total
                    after[sender] = vertex
                    heapq.heappush(heap, (total, sender))
        hops: dict[str, Hop] = {}
        for node in self.full:
            vertex = self.index[node]
            following = after[vertex]
            if following < 0:
                continue
            port = self.edges[following][vertex][1]
            address = self.edges[following][vertex][2]
            while address is None:
                vertex, following = following, after[following]
                address = self.edges[following][vertex][2]
            assert port is not None
            hops[node] = (address, port.name)
        return hops
