"""Routes: static, along shortest paths.

The length of a path is its number of router hops, or the sum of its propagation delays. Among equal
paths the choice is fixed but arbitrary. The next hops of all nodes to one destination come from one
shortest-path tree, so routes have no loops.

A node with one neighbouring router gets a default route. A host with several neighbouring routers gets
a default route to the router that leads to most networks, and routes for the others. A router with
several neighbouring routers gets a route for each reachable network and no default route, so it drops
packets to unknown networks. Two routers that are each other's only neighbour do the same. Adjacent
networks behind one next hop become one route if it covers no other network.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from airloom.planning.addresses import Net
from airloom.planning.graph import Graph, Hop, Subnet
from airloom.planning.network import Network
from airloom.planning.plan import RoutePlan
from airloom.planning.ports import Segment
from airloom.scenario.problems import Problem

MOST_WORK = 100_000_000
"""Limit of work on routes, in steps of about a microsecond each."""


def routes(
    network: Network, segments: list[Segment], forwarding: set[str], metric: str
) -> dict[str, list[RoutePlan]]:
    """Returns the routes of every node without a routing daemon."""
    result: dict[str, list[RoutePlan]] = {}
    for version in (4, 6):
        for node, found in _Family(network, segments, forwarding, metric, version).routes().items():
            result.setdefault(node, []).extend(found)
    return result


class _Family:
    """Static routing of one address family."""

    def __init__(
        self, network: Network, segments: list[Segment], forwarding: set[str], metric: str, version: int
    ):
        self.network = network
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
                result[node] = [self._route("default", hop)]
        full &= static
        if full:
            for node, by_hop in self._tables([node for node in self.of_node if node in full]):
                result[node] = self._listed(by_hop, default=node not in self.forwarding)
        return result

    def _hop(self, subnet: Subnet, node: str, router: str) -> Hop:
        return (subnet.members[router][1], subnet.members[node][0].name)

    def _route(self, to: str, hop: Hop) -> RoutePlan:
        return RoutePlan(to, self._text(hop[0]), hop[1])

    def _text(self, address: int) -> str:
        # Cached: large networks have hundreds of thousands of routes to a few thousand addresses.
        text = self._texts.get(address)
        if text is None:
            made = IPv4Address(address) if self.version == 4 else IPv6Address(address)
            text = self._texts[address] = str(made)
        return text

    def _tables(self, full: list[str]) -> Iterator[tuple[str, dict[Hop, list[Net]]]]:
        """Yields for each node the networks that it is not in, by next hop."""
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
            hops: dict[Hop, list[Net]] = {}
            for options, nets in choices:
                tree = options[0]
                if len(options) == 2 and 0 <= options[1].cost[vertex] < tree.cost[vertex]:
                    tree = options[1]
                hop = graph.hop(tree, vertex)
                if hop is not None:
                    hops.setdefault(hop, []).extend(net for net in nets if net not in own)
            yield node, {hop: nets for hop, nets in hops.items() if nets}

    def _listed(self, by_hop: dict[Hop, list[Net]], *, default: bool) -> list[RoutePlan]:
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
