"""Interfaces of nodes, and their layer-2 segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface

from airloom.planning.links import vlans
from airloom.planning.network import Bridge, Network
from airloom.scenario.model import Interface
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

DEFAULT_MTU = 1500
RADIO_MTU = 2304 - 8
"""An IEEE 802.11 MSDU has at most 2304 octets (2012, 8.2.3), of which LLC and SNAP take 8."""

_PLAIN = Interface()


@dataclass(slots=True)
class Port:
    """An interface of a node, at one end of a wire or, with ``wire`` -1, of a radio."""

    node: str
    name: str
    wire: int
    side: int
    settings: Interface
    path: Path_
    """Its place in the scenario: the end of its link, or the generator."""
    segment: int = -1
    mtu: int = DEFAULT_MTU
    mac: str = ""
    addresses: list[IPv4Interface | IPv6Interface] = field(default_factory=list)
    given: list[tuple[IPv4Interface | IPv6Interface, Path_]] = field(default_factory=list)
    """Addresses given in the scenario, with their places."""
    medium: str | None = None
    member: bool = False
    """True if it belongs to a bridge, and another port has the addresses of that."""


@dataclass(slots=True)
class Segment:
    """A layer-2 broadcast domain.

    It is a wire between two nodes, switches with all their wires (or those with one VLAN), or the
    radios of one network on a medium, which are assumed to hear each other; and all of these that
    bridges of access points join.
    """

    ports: list[Port] = field(default_factory=list)
    wires: list[int] = field(default_factory=list)
    tunnels: list[str] = field(default_factory=list)
    """Tunnels that extend the segment; interfaces behind them are unknown."""
    mtu: int | None = None
    """MTU given in the scenario for links or interfaces."""


def ports_of(network: Network) -> tuple[list[Port], list[Problem]]:
    """Returns the interfaces in link order; unnamed ones become eth0, eth1, ..."""
    problems: list[Problem] = []
    named: dict[str, set[str]] = {}
    for wire in network.wires:
        for side, end in enumerate(wire.ends):
            if end.interface is None:
                continue
            names = named.setdefault(end.name, set())
            if end.interface in names:
                problems.append(
                    Problem(
                        "interface.duplicate",
                        f"the interface {end.name}:{end.interface} already has a link",
                        (*wire.path, "ends", side),
                        "an interface has one link; to share it, put a switch between",
                    )
                )
            names.add(end.interface)
    following: dict[str, int] = {}
    ports = []
    for index, wire in enumerate(network.wires):
        for side, end in enumerate(wire.ends):
            node = network.nodes.get(end.name)
            if node is None:
                continue
            if end.interface is not None:
                name = end.interface
            else:
                taken = named.get(end.name, ())
                number = following.get(end.name, 0)
                while (name := f"eth{number}") in taken:
                    number += 1
                following[end.name] = number + 1
            path = (*wire.path, "ends", side) if wire.path[0] == "links" else wire.path
            port = Port(end.name, name, index, side, node.interfaces.get(name, _PLAIN), path)
            port.given = _given(port) + [
                (address, (*wire.path, "addresses", side, number))
                for number, address in enumerate(wire.addresses[side])
            ]
            ports.append(port)
    for radio in network.radios:
        names = named.setdefault(radio.node, set())
        if radio.name in names:
            problems.append(
                Problem(
                    "interface.duplicate",
                    f"{radio.port} already has a link, and cannot be a radio too",
                    radio.path,
                    "give the radio another name",
                    key=True,
                )
            )
        names.add(radio.name)
        said = network.nodes[radio.node].interfaces.get(radio.name, _PLAIN)
        port = Port(radio.node, radio.name, -1, 0, said, radio.path, medium=radio.medium)
        port.given = _given(port)
        ports.append(port)
    for owner, bridge in network.bridges.items():
        _enslave([port for port in ports if port.node == owner], bridge)
    return ports, problems


def _enslave(ports: list[Port], bridge: Bridge) -> None:
    """Gives the first radio of a bridge the addresses of all its members."""
    of_radio = {port.name: port for port in ports if port.medium is not None}
    first = of_radio.get(bridge.radios[0])
    if first is None:
        return
    for port in ports:
        if port is not first and (port.wire >= 0 or port.name in bridge.radios):
            port.member = True
            first.given += port.given
            port.given = []


def _given(port: Port) -> list[tuple[IPv4Interface | IPv6Interface, Path_]]:
    path: Path_ = ("nodes", port.node, "interfaces", port.name, "addresses")
    return [(address, (*path, number)) for number, address in enumerate(port.settings.addresses)]


def segments_of(network: Network, ports: list[Port]) -> list[Segment]:
    """Returns the segments in the order of their first link; sets the segment number of each port."""
    strands = list(vlans.strands(network))
    parent = list(range(len(strands)))

    def root(strand: int) -> int:
        while parent[strand] != strand:
            parent[strand] = parent[parent[strand]]
            strand = parent[strand]
        return strand

    first_of: dict[tuple[str, int], int] = {}
    for index, strand in enumerate(strands):
        bridged = [
            (end.name, 0)
            for end in network.wires[strand.wire].ends
            if end.name in network.bridges and strand.tag is None
        ]
        for joined in (*strand.joins, *bridged):
            a, b = root(first_of.setdefault(joined, index)), root(index)
            # Keep the smaller number, so that segments stay in link order.
            parent[max(a, b)] = min(a, b)
    segments: list[Segment] = []
    number: dict[int, int] = {}
    of_wire: dict[int, int] = {}
    for index, strand in enumerate(strands):
        top = root(index)
        if top not in number:
            number[top] = len(segments)
            segments.append(Segment())
        segment = segments[number[top]]
        segment.wires.append(strand.wire)
        ends = network.wires[strand.wire].ends
        segment.tunnels += [end.name for end in ends if end.name in network.tunnels]
        # A node's interface sends untagged frames: that strand comes first.
        of_wire.setdefault(strand.wire, number[top])
    networks = {radio.port: (radio.medium, radio.said.get("ssid", "")) for radio in network.radios}
    of_network: dict[tuple[str, str], int] = {}
    for node, bridge in network.bridges.items():
        for name in bridge.radios:
            of_network.setdefault(networks[f"{node}:{name}"], number[root(first_of[node, 0])])
    for port in ports:
        if port.wire >= 0:
            port.segment = of_wire[port.wire]
        else:
            key = networks[f"{port.node}:{port.name}"]
            if key not in of_network:
                of_network[key] = len(segments)
                segments.append(Segment())
            port.segment = of_network[key]
        segments[port.segment].ports.append(port)
    return segments


def set_mtus(network: Network, segments: list[Segment]) -> list[Problem]:
    """Sets the MTU of every port, one for a whole segment; returns the contradictions.

    A packet that a node may send must fit everywhere in the segment: at layer 2 a frame that is too
    large is dropped without notice to its sender.
    """
    problems: list[Problem] = []
    for segment in segments:
        said: list[tuple[int, str, Path_]] = []
        for index in segment.wires:
            wire = network.wires[index]
            for word, mtu in (("forward", wire.forward.mtu), ("backward", wire.backward.mtu)):
                if mtu is not None:
                    what = f"link {wire.name}" + (f" {word}" if wire.forward.mtu != wire.backward.mtu else "")
                    said.append((mtu, what, wire.said_at(word, "mtu")))
        said += [
            (
                port.settings.mtu,
                f"interface {port.node}:{port.name}",
                ("nodes", port.node, "interfaces", port.name, "mtu"),
            )
            for port in segment.ports
            if port.settings.mtu is not None
        ]
        if not said:
            continue
        first = said[0]
        for other in said[1:]:
            if other[0] != first[0]:
                problems.append(
                    Problem(
                        "link.mtu",
                        f"{other[1]} has MTU {other[0]}, but {first[1]} in the same segment has {first[0]}",
                        other[2],
                        "one MTU for all links and interfaces between two routers",
                    )
                )
                break
        segment.mtu = first[0]
        if first[0] > RADIO_MTU and any(port.medium is not None for port in segment.ports):
            problems.append(
                Problem(
                    "link.mtu",
                    f"{first[1]} is a radio and has MTU {first[0]}: "
                    "IEEE 802.11 carries 2304 octets, of which LLC and SNAP take 8",
                    first[2],
                    f"at most {RADIO_MTU}",
                )
            )
        for port in segment.ports:
            port.mtu = first[0]
    return problems
