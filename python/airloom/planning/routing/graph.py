"""Shortest paths between routers, through plain wires, switches and radio networks.

networkx is not used, although it is a dependency: a plan needs a tree for every router. For a grid of 4,970
routers (19,598 edges) one tree takes 21 ms here where all edges cost the same and 40 ms elsewhere, and 25 to
41 ms and 66 to 124 ms by networkx, which also takes 0.7 s or more to load.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airloom.planning.links.addresses import Net
from airloom.planning.links.ports import Port, Segment
from airloom.planning.network import Network

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
        self.parallel: dict[tuple[int, int], list[_Edge]] = {}
        """Further edges of equal cost, by receiver and sender: links between the same two nodes."""
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
        self._onward: list[list[tuple[int, _Edge]]] = [[] for _ in self.edges]
        for receiver, senders in enumerate(self.edges):
            for sender, edge in senders.items():
                all_edges = [edge, *self.parallel.get((receiver, sender), ())]
                self._onward[sender] += [(receiver, one) for one in all_edges]

    def _vertex(self) -> int:
        self.edges.append({})
        return len(self.edges) - 1

    def _add(self, network: Network, subnet: Subnet, inner: list[str]) -> None:
        radios = [node for node in inner if subnet.members[node][0].medium is not None]
        # Bridges of access points, and the switches.
        switches: dict[str, int] = {}
        on_air = [port.node for port in subnet.segment.ports if port.medium is not None]
        bridges = dict.fromkeys(node for node in on_air if node in network.bridges)
        if radios or bridges:
            self._add_radios(subnet, radios, [switches.setdefault(name, self._vertex()) for name in bridges])
        members = {id(subnet.members[node][0]): node for node in inner}
        ports = {(port.wire, port.side): port for port in subnet.segment.ports}
        for number in subnet.segment.wires:
            wire = network.wires[number]
            ends: list[_End] = []
            for side, end in enumerate(wire.ends):
                if end.name in network.switches or end.name in network.bridges:
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

    def _add_radios(self, subnet: Subnet, nodes: list[str], bridges: list[int]) -> None:
        """Assumes that all radios of one network reach each other and the bridges, as through a switch."""
        air: _End = (self._vertex(), None, None)
        for bridge in bridges:
            self._edge(subnet, (bridge, None, None), air, 0)
            self._edge(subnet, air, (bridge, None, None), 0)
        for node in nodes:
            end: _End = (self.index[node], node, subnet.members[node][0])
            self._edge(subnet, end, air, 0)
            self._edge(subnet, air, end, 0)

    def _edge(self, subnet: Subnet, a: _End, b: _End, delay: int) -> None:
        if b[1] is not None and b[1] not in subnet.routers:
            return
        cost = (HOP if a[1] is not None else 1) + (delay * HOP if self.delays else 0)
        known = self.edges[b[0]].get(a[0])
        address = subnet.members[b[1]][1] if b[1] is not None else None
        edge = _Edge(cost, a[2], address)
        if known is None or cost < known.cost:
            self.edges[b[0]][a[0]] = edge
            self.parallel.pop((b[0], a[0]), None)
        elif cost == known.cost:
            self.parallel.setdefault((b[0], a[0]), []).append(edge)

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

    def hops(self, tree: Tree, vertex: int) -> list[Hop]:
        """Returns the next hops of all shortest paths of a node, the one of :meth:`hop` first."""
        first = self.hop(tree, vertex)
        if first is None:
            return []
        found = [first]
        for following, edge in self._nearer(tree, vertex):
            assert edge.port is not None
            if edge.address is not None:
                found.append((edge.address, edge.port.name))
            else:
                found += [(address, edge.port.name) for address in self._behind(tree, following)]
        return list(dict.fromkeys(found))

    def _nearer(self, tree: Tree, vertex: int) -> Iterator[tuple[int, _Edge]]:
        """Yields the edges of a vertex that lie on a shortest path."""
        cost = tree.cost[vertex]
        for following, edge in self._onward[vertex]:
            if tree.cost[following] >= 0 and tree.cost[following] + edge.cost == cost:
                yield following, edge

    def _behind(self, tree: Tree, switch: int) -> Iterator[int]:
        """Yields the addresses of the routers to which shortest paths lead through a switch."""
        for following, edge in self._nearer(tree, switch):
            if edge.address is not None:
                yield edge.address
            else:
                yield from self._behind(tree, following)
