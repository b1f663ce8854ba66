"""Distribution systems: access points whose nodes bridge their radios to their wires.

An access point of the field is a bridge: its stations are in the subnet of the wire behind it, and keep
their addresses when they roam to another access point on the same LAN. A node with a radio of ``mode: ap``
does so with ``bridge: true``. It is the default of access points with one ssid whose wires lead into one
LAN, unless a node says by ``forwarding``, or by addresses on both sides, that it is a router. Other access
points are routers between their radio network and their wires.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from airloom.planning.links import vlans
from airloom.planning.network import Bridge, Network
from airloom.planning.radio.radios import RadioEnd
from airloom.scenario.problems import Problem

Place = tuple[str, int]
"""A switch and one of its VLANs, 0 if it has none; or a node that is a bridge, and 0."""
Cell = tuple[str, str]
"""A medium and the name of a network on it."""


def bridges(network: Network) -> dict[str, Bridge]:
    """Returns the bridges of nodes, by node."""
    points = [end for end in network.radios if _is_access_point(end)]
    wired = {end.name for wire in network.wires for end in wire.ends}
    told = [end for end in points if end.said.get("bridge") is True and end.node in wired]
    able = [end for end in points if end.said.get("bridge") is None and _may_bridge(network, end, wired)]
    lans = _Lans(network, {end.node for end in (*told, *able)})
    of_lan: dict[tuple[Cell, int], list[RadioEnd]] = {}
    for end in (*told, *able):
        of_lan.setdefault((_cell(end), lans.number((end.node, 0))), []).append(end)
    chosen = {end.port for end in told}
    for ends in of_lan.values():
        if len({end.node for end in ends}) > 1:
            chosen |= {end.port for end in ends}
    found: dict[str, Bridge] = {}
    for end in points:
        if end.port in chosen:
            found.setdefault(end.node, Bridge()).radios.append(end.name)
    return found


def problems(network: Network) -> Iterator[Problem]:
    """Yields what is wrong with bridges of access points."""
    wired = {end.name for wire in network.wires for end in wire.ends}
    for end in network.radios:
        if end.said.get("bridge") is None or end.said.get("device") == "wlan":
            continue
        if end.said.get("mode") != "ap":
            yield Problem("radio.mode", "'bridge' is for mode: ap", end.said_at("bridge"), key=True)
        elif end.said["bridge"] and end.node not in wired:
            yield Problem(
                "radio.bridge",
                f"the node {end.node!r} has no wire to bridge to",
                end.said_at("bridge"),
                "give it a link, or leave the bridge out",
                key=True,
            )
    lans = _Lans(network, network.bridges)
    for node in lans.loops:
        end = _first(network, node)
        yield Problem(
            "radio.loop",
            f"the bridge of {node!r} closes a loop of links, in which broadcasts would circulate",
            end.said_at("bridge"),
            "one link from an access point into each LAN; or bridge: false",
        )
    first: dict[Cell, tuple[str, int]] = {}
    for end in network.radios:
        if end.name not in network.bridges.get(end.node, Bridge()).radios:
            continue
        here = lans.number((end.node, 0))
        node, there = first.setdefault(_cell(end), (end.node, here))
        if there != here:
            yield Problem(
                "radio.distribution",
                f"{node!r} and {end.node!r} are access points of one network, and their wires lead into two "
                "LANs: a station has one address in both",
                end.said_at("bridge"),
                "join the LANs by a switch, give the networks two ssids, or set bridge: false",
            )


def _is_access_point(end: RadioEnd) -> bool:
    return end.access != "none" and end.said.get("mode") == "ap" and end.said.get("device") != "wlan"


def _may_bridge(network: Network, end: RadioEnd, wired: Iterable[str]) -> bool:
    """True if an access point that says nothing of a bridge may be one."""
    node = network.nodes[end.node]
    if end.node not in wired or node.forwarding is not None or end.node in network.slivers:
        return False
    own = node.interfaces.get(end.name)
    both = bool(own and own.addresses) and any(
        bool(one.addresses) for name, one in node.interfaces.items() if name not in node.radios
    )
    return not both


def _cell(end: RadioEnd) -> Cell:
    return end.medium, end.said.get("ssid", "")


def _first(network: Network, node: str) -> RadioEnd:
    return next(end for end in network.radios if end.node == node and _is_access_point(end))


class _Lans:
    """The LANs that switches and bridges form, by number."""

    def __init__(self, network: Network, bridging: Iterable[str]) -> None:
        self._parent: dict[Hashable, Hashable] = {}
        self._numbers: dict[Hashable, int] = {}
        self.loops: list[str] = []
        """Bridges that close a loop."""
        nodes = set(bridging)
        strands = list(vlans.strands(network))
        for strand in strands:
            for joined in strand.joins:
                if joined[0] in network.switches:
                    self._join(strand, joined)
        for strand in strands:
            for end in network.wires[strand.wire].ends if strand.tag is None else ():
                if end.name in nodes and not self._join((end.name, 0), strand):
                    self.loops.append(end.name)

    def number(self, place: Place) -> int:
        """Returns the number of the LAN of a bridge."""
        return self._numbers.setdefault(self._root(place), len(self._numbers))

    def _root(self, element: Hashable) -> Hashable:
        parent = self._parent.setdefault(element, element)
        while parent != element:
            element, parent = parent, self._parent[parent]
        return element

    def _join(self, one: Hashable, other: Hashable) -> bool:
        """Joins two elements; false if they were."""
        a, b = self._root(one), self._root(other)
        self._parent[b] = a
        return a != b
