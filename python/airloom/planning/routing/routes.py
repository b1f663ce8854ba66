"""Routes: static, along shortest paths.

The length of a path is its number of router hops, or the sum of its propagation delays. Of equal paths
all are used, up to :data:`MOST_HOPS` next hops, or with ``equal_paths: one`` a fixed but arbitrary one. Each
next hop is nearer to the destination, so routes have no loops.

A node with one neighbouring router gets a default route. A host with several neighbouring routers gets
a default route to the router that leads to most networks, and routes for the others. A router with
several neighbouring routers gets a route for each reachable network and no default route, so it drops
packets to unknown networks. Two routers that are each other's only neighbour do the same. Adjacent
networks behind one next hop become one route if it covers no other network.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from airloom.planning.links.addresses import Net
from airloom.planning.links.ports import Segment
from airloom.planning.network import Network
from airloom.planning.plan import RoutePlan
from airloom.planning.routing.graph import Graph, Hop, Subnet, Tree
from airloom.scenario.problems import Problem

MOST_HOPS = 64
"""Largest number of next hops of a route."""
MOST_WORK = 100_000_000
"""Limit of work on routes, in steps of about a microsecond each."""


def routes(
    network: Network, segments: list[Segment], forwarding: set[str], metric: str, single: set[str]
) -> dict[str, list[RoutePlan]]:
    """Returns the routes of every node without a routing daemon.

    ``single``: nodes that have one next hop for each destination.
    """
    result: dict[str, list[RoutePlan]] = {}
    for version in (4, 6):
        for node, found in _Family(network, segments, forwarding, metric, version, single).routes().items():
            result.setdefault(node, []).extend(found)
    return result


Hops = tuple[Hop, ...]
"""The next hops of one route."""


class _Family:
    """Static routing of one address family."""

    def __init__(
        self,
        network: Network,
        segments: list[Segment],
        forwarding: set[str],
        metric: str,
        version: int,
        single: set[str],
    ):
        self.network = network
        self.single = single
        self.metric = metric
        self.version = version
        self.forwarding = forwarding
        self.subnets = _subnets(segments, version, forwarding)
        self._texts: dict[int, str] = {}
        self.of_node: dict[str, list[Subnet]] = {}
        for subnet in self.subnets:
            for node in subnet.members:
                self.of_node.setdefault(node, []).append(subnet)

    def routes(self) -> dict[str, list[RoutePlan]]:
        result: dict[str, list[RoutePlan]] = {}
        full: set[str] = set()
        single: dict[str, tuple[Subnet, str]] = {}
        for node, subnets in self.of_node.items():
            gateways = [
                (subnet, router) for subnet in subnets for router in subnet.routers[:3] if router != node
            ][:2]
            if len(gateways) == 1:
                single[node] = gateways[0]
            elif gateways:
                full.add(node)
        for node, (_, router) in single.items():
            # Two routers that are each other's only neighbour would loop packets to unknown
            # networks.
            if node in self.forwarding and router in single and single[router][1] == node:
                full.add(node)
        static = {name for name, said in self.network.routing.items() if said.protocol == "static"}
        for node, (subnet, router) in single.items():
            if node in static and node not in full:
                hop = self._hop(subnet, node, router)
                result[node] = [self._route("default", (hop,))]
        full &= static
        if full:
            for node, by_hop in self._tables([node for node in self.of_node if node in full]):
                result[node] = self._listed(by_hop, default=node not in self.forwarding)
        return result

    def _hop(self, subnet: Subnet, node: str, router: str) -> Hop:
        return (subnet.members[router][1], subnet.members[node][0].name)

    def _route(self, to: str, hops: Hops) -> RoutePlan:
        first, *more = ((self._text(address), interface) for address, interface in hops)
        return RoutePlan(to, *first, tuple(more))

    def _text(self, address: int) -> str:
        # Cached: large networks have hundreds of thousands of routes to a few thousand addresses.
        text = self._texts.get(address)
        if text is None:
            made = IPv4Address(address) if self.version == 4 else IPv6Address(address)
            text = self._texts[address] = str(made)
        return text

    def _tables(self, full: list[str]) -> Iterator[tuple[str, dict[Hops, list[Net]]]]:
        """Yields for each node the networks that it is not in, by next hops."""
        classes: dict[tuple[str, ...], list[Net]] = {}
        for subnet in self.subnets:
            if subnet.routers:
                classes.setdefault(tuple(subnet.routers), []).append(subnet.net)
        graph = Graph(self.network, self.subnets, self.forwarding.union(full), delays=self.metric == "delay")
        # A network with two routers is reached by the nearer one, so the routers' own trees
        # suffice. No loops occur: each hop is closer to the nearest router, whichever is chosen.
        roots: set[tuple[str, ...]] = {
            (router,) for routers in classes if len(routers) < 3 for router in routers
        }
        roots |= {routers for routers in classes if len(routers) > 2}
        work = len(roots) * graph.size + len(full) * len(classes)
        if work > MOST_WORK:
            raise Problem(
                "routes.size",
                f"static routes between {len(roots)} routers and {len(self.subnets)} networks are too many",
                ("topology",) if self.network.generated else ("links",),
                "use fewer, or switches between them, or 'routing: none' and a routing daemon",
            )
        trees = {root: graph.tree(root) for root in sorted(roots)}
        choices = [
            ([trees[routers]] if len(routers) > 2 else [trees[(router,)] for router in routers], nets)
            for routers, nets in classes.items()
        ]
        for node in full:
            own = {subnet.net for subnet in self.of_node[node]}
            vertex = graph.index[node]
            by_hops: dict[Hops, list[Net]] = {}
            for options, nets in choices:
                hops = self._hops(graph, options, vertex, single=node in self.single)
                if hops:
                    by_hops.setdefault(hops, []).extend(net for net in nets if net not in own)
            yield node, {hops: nets for hops, nets in by_hops.items() if nets}

    def _hops(self, graph: Graph, options: list[Tree], vertex: int, *, single: bool) -> Hops:
        """Returns the next hops to the nearer one of two routers, or to both if they are as near."""
        tree = options[0]
        if len(options) == 2 and 0 <= options[1].cost[vertex] < tree.cost[vertex]:
            tree = options[1]
        if single:
            hop = graph.hop(tree, vertex)
            return () if hop is None else (hop,)
        found = graph.hops(tree, vertex)
        if len(options) == 2 and tree is options[0] and options[1].cost[vertex] == tree.cost[vertex]:
            found = list(dict.fromkeys(found + graph.hops(options[1], vertex)))
        return tuple(found[:MOST_HOPS])

    def _listed(self, by_hop: dict[Hops, list[Net]], *, default: bool) -> list[RoutePlan]:
        listed: list[RoutePlan] = []
        if default and by_hop:
            most = max(by_hop, key=lambda hop: len(by_hop[hop]))
            listed.append(self._route("default", most))
            by_hop = {hop: nets for hop, nets in by_hop.items() if hop != most}
        bits = 32 if self.version == 4 else 128
        rows = [(net, hop) for hop, nets in by_hop.items() for net in collapse(nets, bits)]
        for net, hop in sorted(rows):
            listed.append(self._route(f"{self._text(net[0])}/{net[1]}", hop))
        return listed


def _subnets(segments: list[Segment], version: int, forwarding: set[str]) -> list[Subnet]:
    bits = 32 if version == 4 else 128
    found: list[Subnet] = []
    for segment in segments:
        here: dict[Net, Subnet] = {}
        for port in segment.ports:
            for address in port.addresses:
                if address.version != version or address.is_link_local:
                    continue
                number = int(address)
                shift = bits - address.network.prefixlen
                net = (number >> shift << shift, address.network.prefixlen)
                subnet = here.get(net)
                if subnet is None:
                    subnet = here[net] = Subnet(net, segment)
                    found.append(subnet)
                if port.node not in subnet.members:
                    subnet.members[port.node] = (port, number)
                    if port.node in forwarding:
                        subnet.routers.append(port.node)
    return found


def collapse(nets: list[Net], bits: int) -> list[Net]:
    """Returns the fewest networks that cover exactly the same addresses."""
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
