"""Expands a scenario into its network: its own nodes and links and those of a generator."""

from __future__ import annotations

from collections import Counter

from airloom.planning.machine.guests import with_kind
from airloom.planning.network import End, Network, Wire, forwards
from airloom.planning.radio import distribution, model_ranges
from airloom.planning.radio.radios import radios_of
from airloom.planning.routing.protocols import of_node
from airloom.planning.slices.admission import admit
from airloom.scenario.model import Direction, Link, Node, Scenario, Switch, Topology
from airloom.scenario.problems import Problem, Problems
from airloom.scenario.topology.generators import generate
from airloom.scenario.topology.places import places
from airloom.units.given import given


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
            backward = (
                link_of_edge if edge.backward is None else _direction(scenario.topology.link, edge.backward)
            )
            wires.append(
                Wire(
                    taken.make(edge.a, edge.b),
                    (End(edge.a), End(edge.b)),
                    link_of_edge,
                    backward,
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
    tunnels = dict(scenario.tunnels)
    notes = [*notes, *model_ranges.notes(scenario)]
    network = Network(nodes, switches, wires, problems, generated, radios, tunnels, slivers, notes=notes)
    network.bridges = distribution.bridges(network)
    interfaces = Counter(radio.node for radio in radios)
    for name in (end.name for wire in wires for end in wire.ends):
        # All wires of a bridge are one interface with its first radio.
        interfaces[name] += name not in network.bridges
    for name, bridge in network.bridges.items():
        interfaces[name] -= len(bridge.radios) - 1
    network.routing = {
        name: of_node(scenario, node, forwards=forwards(node, interfaces[name]))
        for name, node in nodes.items()
    }
    return network


def _direction(link: Direction, own: Direction | None) -> Direction:
    common = {name: getattr(link, name) for name in Direction.model_fields}
    if own is not None:
        common |= {name: getattr(own, name) for name in _own(own)}
        if own.rate is not None:
            common["trace"] = own.trace
        elif own.trace is not None:
            common["rate"] = None
    return Direction.model_construct(**common)


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
    a, b = End.parse(link.ends[0]), End.parse(link.ends[1])
    addresses = given(link.addresses, ([], []))
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
