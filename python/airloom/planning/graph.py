"""Shortest paths between routers, through plain wires, switches and radio networks.

networkx is not used, although it is a dependency: a plan needs a tree for every router. For a grid of 4,970
routers (19,598 edges) one tree takes 21 ms here where all edges cost the same and 40 ms elsewhere, and 25 to
41 ms and 66 to 124 ms by networkx, which also takes 0.7 s or more to load.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from airloom.planning.addresses import Net
from airloom.planning.network import Network
from airloom.planning.ports import Port, Segment

Hop = tuple[int, str]
"""Next hop: its address, and the node's own interface towards it."""

HOP = 1 << 20
"""Cost of a router hop; a switch costs 1, so that among equal paths one with fewer switches wins."""


@dataclass(slots=True)
class Subnet:
    """One network on one segment, with the nodes that have an interface in it."""

    net: Net
    segment: Segment
    members: dict[str, tuple[Port, int]] = field(default_factory=dict)
    """Node: its first interface there and its address."""
    routers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tree:
    """Shortest paths from every vertex to one destination; -1 where there is none."""

    cost: Sequence[int]
    after: Sequence[int]
    """The next vertex on the path; -1 at the destination itself."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """An edge towards a vertex; ``address`` is None if that vertex is a switch."""

    cost: int
    port: Port | None
    address: int | None


_End = tuple[int, str | None, Port | None]
"""A vertex; its node and port, both None for a switch."""


class Graph:
    """A directed graph of packet forwarding, stored as incoming edges of each vertex.

    Vertices are nodes, and a copy of each switch for every network. Only routers forward packets,
    so no edge leads to another node.
    """

    def __init__(self, network: Network, subnets: list[Subnet], nodes: set[str], *, delays: bool):
        self.index: dict[str, int] = {}
        self.edges: list[dict[int, _Edge]] = []
        """For each vertex: the incoming edges, by sender."""
        self.delays = delays
        for subnet in subnets:
            inner = [node for node in subnet.members if node in nodes]
            for node in inner:
                if node not in self.index:
                    self.index[node] = self._vertex()
            if len(inner) > 1 and subnet.routers:
                self._add(network, subnet, inner)
        self.size = len(self.edges) + sum(len(senders) for senders in self.edges)
        costs = {edge.cost for senders in self.edges for edge in senders.values()}
        self._alike = len(costs) <= 1
        self._ways = [[(sender, edge.cost) for sender, edge in senders.items()] for senders in self.edges]

    def _vertex(self) -> int:
        self.edges.append({})
        return len(self.edges) - 1

    def _add(self, network: Network, subnet: Subnet, inner: list[str]) -> None:
        if not subnet.segment.wires:
            self._add_radios(subnet, inner)
            return
        switches: dict[str, int] = {}
        members = {id(subnet.members[node][0]): node for node in inner}
        ports = {(port.wire, port.side): port for port in subnet.segment.ports}
        for number in subnet.segment.wires:
            wire = network.wires[number]
            ends: list[_End] = []
            for side, end in enumerate(wire.ends):
                if end.name in network.switches:
                    if end.name not in switches:
                        switches[end.name] = self._vertex()
                    ends.append((switches[end.name], None, None))
                elif end.name in network.tunnels:
                    break
                else:
                    # Trunks also end at nodes, whose interfaces carry only the untagged VLAN.
                    port = ports.get((number, side))
                    node = members.get(id(port))
                    if port is None or node is None:
                        break
                    ends.append((self.index[node], node, port))
            if len(ends) == 2:
                self._edge(subnet, ends[0], ends[1], int(wire.forward.delay or 0))
                self._edge(subnet, ends[1], ends[0], int(wire.backward.delay or 0))

    def _add_radios(self, subnet: Subnet, inner: list[str]) -> None:
        """Assumes that all radios of one network reach each other, as through a switch."""
        air: _End = (self._vertex(), None, None)
        for node in inner:
            end: _End = (self.index[node], node, subnet.members[node][0])
            self._edge(subnet, end, air, 0)
            self._edge(subnet, air, end, 0)

    def _edge(self, subnet: Subnet, a: _End, b: _End, delay: int) -> None:
        if b[1] is not None and b[1] not in subnet.routers:
            return
        cost = (HOP if a[1] is not None else 1) + (delay * HOP if self.delays else 0)
        known = self.edges[b[0]].get(a[0])
        if known is None or cost < known.cost:
            address = subnet.members[b[1]][1] if b[1] is not None else None
            self.edges[b[0]][a[0]] = _Edge(cost, a[2], address)

    def tree(self, routers: tuple[str, ...]) -> Tree:
        """Returns shortest paths to the nearest of the given routers."""
        roots = [self.index[router] for router in routers]
        best, after = self._level_by_level(roots) if self._alike else self._nearest_first(roots)
        try:
            return Tree(array("q", best), array("i", after))
        except OverflowError:
            # Delays of years overflow the array; a list holds any integer.
            return Tree(best, array("i", after))

    def _level_by_level(self, roots: list[int]) -> tuple[list[int], list[int]]:
        best, after = [-1] * len(self.edges), [-1] * len(self.edges)
        for root in roots:
            best[root] = 0
        queue = list(roots)
        for vertex in queue:
            for sender, cost in self._ways[vertex]:
                if best[sender] < 0:
                    best[sender] = best[vertex] + cost
                    after[sender] = vertex
                    queue.append(sender)
        return best, after

    def _nearest_first(self, roots: list[int]) -> tuple[list[int], list[int]]:
        best, after = [-1] * len(self.edges), [-1] * len(self.edges)
        for root in roots:
            best[root] = 0
        heap = [(0, root) for root in sorted(roots)]
        while heap:
            cost, vertex = heapq.heappop(heap)
            if cost > best[vertex]:
                continue
            for sender, step in self._ways[vertex]:
                total = cost + step
                if best[sender] < 0 or total < best[sender]:
                    best[sender] = total
                    after[sender] = vertex
                    heapq.heappush(heap, (total, sender))
        return best, after

    def hop(self, tree: Tree, vertex: int) -> Hop | None:
        """Returns the next hop of a node; None at the destination or if there is no path."""
        following = tree.after[vertex]
        if following < 0:
            return None
        edge = self.edges[following][vertex]
        port = edge.port
        assert port is not None
        while edge.address is None:
            vertex, following = following, tree.after[following]
            edge = self.edges[following][vertex]
        return (edge.address, port.name)
