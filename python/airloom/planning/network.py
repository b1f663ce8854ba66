"""Expands a scenario into its network: its own nodes and links and those of a generator."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from airloom.planning.admission import Sliver, admit
from airloom.planning.guests import with_kind
from airloom.planning.radios import RadioEnd, radios_of
from airloom.planning.routing import of_node
from airloom.scenario.model import Direction, Link, Node, Routing, Scenario, Switch, Topology, Tunnel
from airloom.scenario.problems import Problem, Problems
from airloom.scenario.source import Path_
from airloom.scenario.topology.generators import generate
from airloom.scenario.topology.places import places
from airloom.units.addresses import Address


@dataclass(slots=True)
class End:
    """One end of a wire: a node and its interface if one was given, a switch or a tunnel."""

    name: str
    interface: str | None = None


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


def end(text: str) -> End:
    """Parses ``node``, ``node:interface`` or the name of a switch or tunnel."""
    name, colon, interface = text.partition(":")
    return End(name, interface if colon else None)


def _direction(link: Direction, own: Direction | None) -> Direction:
    common = {name: getattr(link, name) for name in Direction.model_fields}
    if own is not None:
        common |= {name: getattr(own, name) for name in _own(own)}
        if own.rate is not None:
            common["trace"] = own.trace
        elif own.trace is not None:
            common["rate"] = None
    return Direction.model_construct(**common)


def expand(scenario: Scenario) -> Network:
    """Runs the generator, adds the scenario's own nodes and links, names links, admits slices.

    Raises :class:`Problems` if a slice cannot be admitted.
    """
    nodes: dict[str, Node] = {}
    switches: dict[str, Switch] = {}
    wires: list[Wire] = []
    problems: list[Problem] = []
    generated: list[str] = []
    notes: list[str] = []
    taken = _Names()
    for index, link in enumerate(scenario.links):
        if link.name is not None and not taken.claim(link.name):
            problems.append(
                Problem(
                    "name.duplicate",
                    f"two links are called {link.name!r}",
                    ("links", index, "name"),
                    "give one another name",
                )
            )
    if scenario.topology is not None:
        graph = generate(scenario.topology, scenario.seed)
        generated, notes = graph.nodes, graph.notes
        nodes.update(_generated(scenario.topology, generated, scenario.seed))
        alike, plain = scenario.topology.switch, Switch()
        switches.update({name: alike if one == plain else one for name, one in graph.switches.items()})
        common = _direction(scenario.topology.link, None)
        for edge in graph.edges if scenario.topology.radio is None else ():
            link_of_edge = common if edge.link is None else _direction(scenario.topology.link, edge.link)
            wires.append(
                Wire(
                    taken.make(edge.a, edge.b),
                    (End(edge.a), End(edge.b)),
                    link_of_edge,
                    link_of_edge,
                    ("topology",),
                )
            )
    for name, node in scenario.nodes.items():
        if name in switches:
            problems.append(
                Problem(
                    "name.duplicate",
                    f"the generator already made a switch {name!r}",
                    ("nodes", name),
                    key=True,
                )
            )
        nodes[name] = _more(nodes[name], node) if name in nodes else node
    for name, switch in scenario.switches.items():
        if name in nodes:
            problems.append(
                Problem(
                    "name.duplicate",
                    f"{name!r} is a node already",
                    ("switches", name),
                    "give the switch another name",
                    key=True,
                )
            )
        switches[name] = switch
    for name in scenario.tunnels:
        if name in nodes or name in switches:
            problems.append(
                Problem(
                    "name.duplicate",
                    f"{name!r} is a {'node' if name in nodes else 'switch'} already",
                    ("tunnels", name),
                    "give the tunnel another name",
                    key=True,
                )
            )
    for index, link in enumerate(scenario.links):
        wires.append(_wire(link, index, taken))
    radios, wrong = radios_of(scenario, nodes, generated)
    admitted = admit(scenario, nodes, radios)
    slivers = {sliver.name: sliver for sliver in admitted.slivers}
    problems += wrong
    if admitted.problems:
        # A rejected sliver has no node, so references to it cannot be checked.
        raise Problems(problems + admitted.problems)
    nodes = {name: with_kind(scenario, node) for name, node in nodes.items()}
    ends = Counter(end.name for wire in wires for end in wire.ends)
    ends.update(radio.node for radio in radios)
    routing = {
        name: of_node(scenario, node, forwards=forwards(node, ends[name])) for name, node in nodes.items()
    }
    tunnels = dict(scenario.tunnels)
    return Network(
        nodes, switches, wires, problems, generated, radios, tunnels, slivers, routing=routing, notes=notes
    )


def forwards(node: Node, interfaces: int) -> bool:
    """Returns whether a node with this number of interfaces forwards packets."""
    return node.forwarding if node.forwarding is not None else interfaces > 1


def _generated(topology: Topology, names: list[str], seed: int) -> dict[str, Node]:
    """Returns the nodes of a generator with the topology's common settings and their positions."""
    placed = places(topology, names, seed)
    return {
        name: topology.node.model_copy(update={"position": placed[name]}) if name in placed else topology.node
        for name in names
    }


def _more(generated: Node, said: Node) -> Node:
    """Merges the scenario's own settings into a generated node."""
    update = {key: getattr(said, key) for key in said.model_fields_set}
    for key in ("interfaces", "radios", "files", "sysctl"):
        update[key] = {**getattr(generated, key), **getattr(said, key)}
    return generated.model_copy(update=update)


def _wire(link: Link, index: int, taken: _Names) -> Wire:
    a, b = end(link.ends[0]), end(link.ends[1])
    addresses = link.addresses or ([], [])
    return Wire(
        link.name or taken.make(a.name, b.name),
        (a, b),
        _direction(link, link.forward),
        _direction(link, link.backward),
        ("links", index),
        (list(addresses[0]), list(addresses[1])),
        {"forward": _own(link.forward), "backward": _own(link.backward)},
        link.vlan,
        link.trunk,
        link.native,
    )


def _own(direction: Direction | None) -> frozenset[str]:
    if direction is None:
        return frozenset()
    return frozenset(name for name in direction.model_fields_set if getattr(direction, name) is not None)


class _Names:
    """Generates names of links: ``a-b``, and ``a-b-2`` for the next one between the same two."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def claim(self, name: str) -> bool:
        if name in self._taken:
            return False
        self._taken.add(name)
        return True

    def make(self, a: str, b: str) -> str:
        stem = f"{a}-{b}"
        while True:
            count = self._counts[stem] = self._counts.get(stem, 0) + 1
            name = stem if count == 1 else f"{stem}-{count}"
            if self.claim(name):
                return name
