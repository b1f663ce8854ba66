"""Topologies: subclass :class:`Topo` and add hosts, switches and links in ``build``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from airloom.mininet.errors import Misused
from airloom.mininet.util import irange, naturalSeq
from airloom.scenario.topology.graph import MOST_LINKS, MOST_NODES


class MultiGraph:
    """A graph with nodes and parallel edges."""

    def __init__(self) -> None:
        self.node: dict[str, dict[str, Any]] = {}
        self.edge: dict[tuple[str, str, int], dict[str, Any]] = {}

    def add_node(self, name: str, **attributes: Any) -> dict[str, Any]:
        """Adds a node, or attributes to an existing one."""
        if name not in self.node and len(self.node) >= MOST_NODES:
            raise Misused(
                "size", f"the network has more than {MOST_NODES} nodes", cure="ask for a smaller one"
            )
        info = self.node.setdefault(name, {})
        info.update(attributes)
        return info

    def add_edge(self, src: str, dst: str, key: int | None = None, **attributes: Any) -> int:
        """Adds an edge; returns its key, which is unique among parallel edges."""
        self.add_node(src)
        self.add_node(dst)
        if key is None:
            key = 0
            while (src, dst, key) in self.edge or (dst, src, key) in self.edge:
                key += 1
        if len(self.edge) >= MOST_LINKS:
            raise Misused(
                "size", f"the network has more than {MOST_LINKS} links", cure="ask for a smaller one"
            )
        self.edge[src, dst, key] = dict(attributes)
        return key

    def nodes(self, data: bool = False) -> Iterable[Any]:
        """Returns the names of the nodes, with their attributes if ``data``."""
        return self.node.items() if data else self.node.keys()

    def edges(self, data: bool = False, keys: bool = False) -> list[tuple[Any, ...]]:
        """Returns the edges as tuples."""
        return [
            (src, dst, *([key] if keys else []), *([info] if data else []))
            for (src, dst, key), info in self.edge.items()
        ]

    def __getitem__(self, name: str) -> dict[str, dict[int, dict[str, Any]]]:
        found: dict[str, dict[int, dict[str, Any]]] = {}
        for (a, b, key), info in self.edge.items():
            if name in (a, b):
                found.setdefault(b if name == a else a, {})[key] = info
        return found

    def __len__(self) -> int:
        return len(self.node)

    def __contains__(self, name: object) -> bool:
        return name in self.node


class Topo:
    """A description of nodes and links, with default options for each kind."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.g = MultiGraph()
        self.hopts: dict[str, Any] = params.pop("hopts", {})
        self.sopts: dict[str, Any] = params.pop("sopts", {})
        self.lopts: dict[str, Any] = params.pop("lopts", {})
        self.ports: dict[str, dict[int, tuple[str, int]]] = {}
        """Node: port: the node and port at the other end."""
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        """Adds the nodes and links; subclasses override it."""

    def addNode(self, name: str, **opts: Any) -> str:
        """Adds a node; returns its name."""
        self.g.add_node(name, **opts)
        return name

    def addHost(self, name: str, **opts: Any) -> str:
        """Adds a host; returns its name."""
        return self.addNode(name, **{**self.hopts, **opts})

    def addSwitch(self, name: str, **opts: Any) -> str:
        """Adds a switch; returns its name."""
        return self.addNode(name, isSwitch=True, **{**self.sopts, **opts})

    def addLink(
        self,
        node1: str,
        node2: str,
        port1: int | None = None,
        port2: int | None = None,
        key: int | None = None,
        **opts: Any,
    ) -> int:
        """Adds a link; returns its key."""
        opts = {**self.lopts, **opts}
        port1, port2 = self.addPort(node1, node2, port1, port2)
        return self.g.add_edge(node1, node2, key, node1=node1, node2=node2, port1=port1, port2=port2, **opts)

    def addPort(
        self, src: str, dst: str, sport: int | None = None, dport: int | None = None
    ) -> tuple[int, int]:
        """Returns the ports of a link: hosts count from 0, switches from 1."""
        self.ports.setdefault(src, {})
        self.ports.setdefault(dst, {})
        if sport is None:
            sport = len(self.ports[src]) + (1 if self.isSwitch(src) else 0)
        if dport is None:
            dport = len(self.ports[dst]) + (1 if self.isSwitch(dst) else 0)
        self.ports[src][sport] = (dst, dport)
        self.ports[dst][dport] = (src, sport)
        return sport, dport

    def port(self, src: str, dst: str) -> Any:
        """Returns the ports of the link between two nodes, or a list for several links."""
        found = [
            (info["port1"], info["port2"]) if info["node1"] == src else (info["port2"], info["port1"])
            for info in self.g[src].get(dst, {}).values()
        ]
        return found[0] if len(found) == 1 else found

    def isSwitch(self, name: str) -> bool:
        """True if a node is a switch."""
        return bool(self.g.node[name].get("isSwitch", False))

    def nodes(self, sort: bool = True) -> list[str]:
        """Returns the names of all nodes."""
        return self.sorted(self.g.nodes()) if sort else list(self.g.nodes())

    def switches(self, sort: bool = True) -> list[str]:
        """Returns the names of the switches."""
        return [name for name in self.nodes(sort) if self.isSwitch(name)]

    def hosts(self, sort: bool = True) -> list[str]:
        """Returns the names of the hosts."""
        return [name for name in self.nodes(sort) if not self.isSwitch(name)]

    def iterLinks(self, withKeys: bool = False, withInfo: bool = False) -> Iterator[tuple[Any, ...]]:
        """Yields the links as (node, node), with key and options on request."""
        for _, _, key, info in self.g.edges(data=True, keys=True):
            yield (
                info["node1"],
                info["node2"],
                *([key] if withKeys else []),
                *([info] if withInfo else []),
            )

    def links(self, sort: bool = False, withKeys: bool = False, withInfo: bool = False) -> list[Any]:
        """Returns the links; ``sort`` orders them by the names of their ends."""
        links = list(self.iterLinks(withKeys, withInfo))
        return sorted(links, key=lambda link: tuple(naturalSeq(end) for end in link[:2])) if sort else links

    def linkInfo(self, src: str, dst: str, key: int | None = None) -> dict[str, Any]:
        """Returns the options of a link."""
        entry = self.g[src][dst]
        return entry[next(iter(entry)) if key is None else key]

    def setlinkInfo(self, src: str, dst: str, info: dict[str, Any], key: int | None = None) -> None:
        """Replaces the options of a link."""
        own = self.linkInfo(src, dst, key)
        own.clear()
        own.update(info)

    def nodeInfo(self, name: str) -> dict[str, Any]:
        """Returns the options of a node."""
        return self.g.node[name]

    def setNodeInfo(self, name: str, info: dict[str, Any]) -> None:
        """Replaces the options of a node."""
        self.g.node[name] = info

    @staticmethod
    def sorted(items: Iterable[str]) -> list[str]:
        """Returns names in natural order: h2 before h10."""
        return sorted(items, key=naturalSeq)


class SingleSwitchTopo(Topo):
    """One switch, s1, with ``k`` hosts."""

    def build(self, k: int = 2, **_opts: Any) -> None:
        """Adds the nodes and links."""
        self.k = k
        switch = self.addSwitch("s1")
        for h in irange(1, k):
            self.addLink(self.addHost(f"h{h}"), switch)


class SingleSwitchReversedTopo(Topo):
    """One switch, s1, with ``k`` hosts; the lowest host is at the highest port."""

    def build(self, k: int = 2) -> None:
        """Adds the nodes and links."""
        self.k = k
        switch = self.addSwitch("s1")
        for h in irange(1, k):
            self.addLink(self.addHost(f"h{h}"), switch, port1=0, port2=k - h + 1)


class MinimalTopo(SingleSwitchTopo):
    """Two hosts and a switch."""

    def build(self, k: int = 2, **_opts: Any) -> None:
        """Adds the nodes and links."""
        super().build(k=2)


class LinearTopo(Topo):
    """``k`` switches in a row, each with ``n`` hosts."""

    def build(self, k: int = 2, n: int = 1, sopts: dict[str, Any] | None = None, **_opts: Any) -> None:
        """Adds the nodes and links: hosts h1, h2, ... if ``n`` is 1, else h1s1, h2s1, ..."""
        self.k, self.n = k, n
        last = None
        for i in irange(1, k):
            switch = self.addSwitch(f"s{i}", **(sopts or {}))
            for j in irange(1, n):
                self.addLink(self.addHost(f"h{i}" if n == 1 else f"h{j}s{i}"), switch)
            if last is not None:
                self.addLink(switch, last)
            last = switch
