"""The network of a scenario: its nodes and wires with those of a generator, and the slivers of slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from airloom.planning.radio.radios import RadioEnd
from airloom.planning.slices.spans import WHOLE, Span
from airloom.scenario.model import Direction, Grant, Node, Routing, Switch, Tunnel
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.addresses import Address


@dataclass(slots=True)
class End:
    """One end of a wire: a node and its interface if one was given, a switch or a tunnel."""

    name: str
    interface: str | None = None

    @classmethod
    def parse(cls, text: str) -> End:
        """Parses ``node``, ``node:interface`` or the name of a switch or tunnel."""
        name, colon, interface = text.partition(":")
        return cls(name, interface if colon else None)


@dataclass(slots=True)
class Wire:
    """A link: its name, its two directions and its place in the scenario."""

    name: str
    ends: tuple[End, End]
    forward: Direction
    backward: Direction
    path: Path_
    addresses: tuple[list[Address], list[Address]] = field(default_factory=lambda: ([], []))
    own: dict[str, frozenset[str]] = field(default_factory=dict)
    """``forward`` and ``backward``: names of the properties given for that direction alone."""
    vlan: int | None = None
    """The access VLAN at its switches."""
    trunk: list[int] | Literal["all"] | None = None
    """The tagged VLANs at its switches."""
    native: int | None = None
    """The untagged VLAN of a trunk."""

    @property
    def speaks_of_vlans(self) -> bool:
        """True if the scenario sets the link's VLANs."""
        return self.vlan is not None or self.trunk is not None

    def said_at(self, direction: str, name: str) -> Path_:
        """Returns the path at which the scenario sets a property of a direction."""
        if self.path[0] != "links":
            return (*self.path, "link", name)
        return (*self.path, direction, name) if name in self.own.get(direction, ()) else (*self.path, name)


@dataclass(frozen=True, slots=True)
class Sliver:
    """The part of a slice on one node."""

    name: str
    slice: str
    node: str
    """The shared node."""
    radio: str
    channels: tuple[int, ...]
    """Channel numbers of the grant."""
    grant: Grant
    held: tuple[Span, ...] = WHOLE
    """From when to when it has the radio."""
    moves_with: str = ""
    """The shared node, whose motion it has, unless it has a position or a motion of its own."""


@dataclass(slots=True)
class Bridge:
    """A bridge in a node, of some radios and all wires of the node."""

    radios: list[str] = field(default_factory=list)
    """The first one has the hardware address of the bridge."""


@dataclass
class Network:
    """All nodes, switches, tunnels and wires."""

    nodes: dict[str, Node]
    switches: dict[str, Switch]
    wires: list[Wire]
    problems: list[Problem]
    """Mistakes in names; the rules report them with the others."""
    generated: list[str] = field(default_factory=list)
    """The nodes of the generator, in its order."""
    radios: list[RadioEnd] = field(default_factory=list)
    tunnels: dict[str, Tunnel] = field(default_factory=dict)
    slivers: dict[str, Sliver] = field(default_factory=dict)
    """Slivers by node name; the shared nodes are not in ``nodes``."""
    bridges: dict[str, Bridge] = field(default_factory=dict)
    """Bridges of access points, by node."""
    routing: dict[str, Routing] = field(default_factory=dict)
    """Routing of each node."""
    notes: list[str] = field(default_factory=list)
    """What a graph file says and the network does not contain."""

    def shared(self) -> dict[str, set[str]]:
        """Returns, for each node shared by slices, the radios that belong to slivers."""
        found: dict[str, set[str]] = {}
        for sliver in self.slivers.values():
            found.setdefault(sliver.node, set()).add(sliver.radio)
        return found

    def mover(self, node: str) -> str:
        """Returns the node whose motion a node has: slivers of one node are at one place."""
        sliver = self.slivers.get(node)
        return node if sliver is None else sliver.moves_with or node

    @cached_property
    def open_switches(self) -> frozenset[str]:
        """Returns the switches that are Open vSwitches in nodes of their own."""
        return frozenset(name for name, switch in self.switches.items() if switch.kind == "openvswitch")


def forwards(node: Node, interfaces: int) -> bool:
    """Returns whether a node with this number of interfaces forwards packets."""
    return node.forwarding if node.forwarding is not None else interfaces > 1
