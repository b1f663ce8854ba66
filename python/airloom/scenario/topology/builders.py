"""Topologies for scenarios in Python.

Each function gives a :class:`Topology`, the same as ``topology:`` in YAML; keywords beside its own
parameters are properties of every link::

    from airloom import Scenario, topology

    scenario = Scenario(name="chain", topology=topology.chain(5, rate="100 Mbit/s", delay="1 ms"))

A graph from networkx becomes nodes and links: ``Scenario(name="mine", **topology.from_networkx(graph))``.
"""

from __future__ import annotations

import warnings
from typing import Any

from airloom.errors import ScenarioError
from airloom.scenario.model import Direction, GraphAttributes, Link, Node, Switch, Topology
from airloom.scenario.problems import Problem

__all__ = [
    "chain",
    "fat_tree",
    "from_networkx",
    "full_mesh",
    "graph",
    "graphml",
    "grid",
    "random",
    "ring",
    "star",
    "tree",
]


def _make(generator: str, prefix: str, link: dict[str, Any], **parameters: Any) -> Topology:
    said = {"generator": generator, "prefix": prefix, "link": Direction(**link), **parameters}
    return Topology(**{key: value for key, value in said.items() if value is not None})


def chain(nodes: int, *, switched: bool = False, prefix: str = "n", **link: Any) -> Topology:
    """Chain n1 - n2 - ...; with ``switched``, inner nodes are switches."""
    return _make("chain", prefix, link, nodes=nodes, switched=switched)


def star(nodes: int, *, switched: bool = False, prefix: str = "n", **link: Any) -> Topology:
    """n1 in the centre; with ``switched`` it is a switch."""
    return _make("star", prefix, link, nodes=nodes, switched=switched)


def tree(depth: int, fanout: int, *, switched: bool = False, prefix: str = "n", **link: Any) -> Topology:
    """n1 is the root, with ``depth`` levels below; with ``switched``, all but the leaves are switches."""
    return _make("tree", prefix, link, depth=depth, fanout=fanout, switched=switched)


def grid(rows: int, columns: int, *, prefix: str = "n", **link: Any) -> Topology:
    """n1x1, n1x2, ... (row x column), each linked to its neighbours."""
    return _make("grid", prefix, link, rows=rows, columns=columns)


def ring(nodes: int, *, prefix: str = "n", **link: Any) -> Topology:
    """n1 - n2 - ... - n1."""
    return _make("ring", prefix, link, nodes=nodes)


def full_mesh(nodes: int, *, prefix: str = "n", **link: Any) -> Topology:
    """All pairs linked."""
    return _make("full-mesh", prefix, link, nodes=nodes)


def fat_tree(k: int, *, switch: Switch | None = None, prefix: str = "n", **link: Any) -> Topology:
    """Core, aggregation and edge routers with ``k`` ports each, and k^3/4 hosts.

    With ``switch``, which has ``forwarding="shortest-path"``, they are such switches.
    """
    return _make("fat-tree", prefix, link, k=k, switched=switch is not None, switch=switch)


def random(
    nodes: int, probability: float | str, *, seed: int | None = None, prefix: str = "n", **link: Any
) -> Topology:
    """A random spanning tree, and every other pair with the probability."""
    return _make("random", prefix, link, nodes=nodes, probability=probability, seed=seed)


def graph(file: str, *, attributes: GraphAttributes | None = None, **link: Any) -> Topology:
    """The graph of a GraphML, GML or SNDlib file. ``link`` has defaults for its edges."""
    return _make("graph", "n", link, file=file, attributes=attributes)


def graphml(file: str, *, attributes: GraphAttributes | None = None, **link: Any) -> Topology:
    """The same as :func:`graph`."""
    return graph(file, attributes=attributes, **link)


def from_networkx(graph: Any, **link: Any) -> dict[str, Any]:
    """Nodes, switches and links of a networkx graph, as keywords of :class:`Scenario`.

    ``kind: switch`` or ``hub`` of a node, and properties of links such as ``rate`` on edges, are
    taken over, and the attributes of the Topology Zoo as from a file; ``link`` sets the properties
    that an edge lacks. Names are the graph's keys. An edge from a node to itself is left out, with a warning.
    """
    from airloom.scenario.topology.graph_files import of_networkx

    try:
        found = of_networkx(graph, GraphAttributes(name=None))
    except Problem as problem:
        raise ScenarioError(problem.code, problem.message, cure=problem.cure) from None
    loops = [str(a) for a, b in graph.edges() if a == b]
    if loops:
        warnings.warn(f"edges from nodes to themselves are left out: {', '.join(loops)}", stacklevel=2)
    links = []
    for edge in found.edges:
        own = edge.link.model_dump(exclude_none=True) if edge.link is not None else {}
        ways = {} if edge.backward is None else {"backward": edge.backward}
        links.append(Link(**{**link, **own, **ways, "ends": (edge.a, edge.b)}))
    return {"nodes": {name: Node() for name in found.nodes}, "switches": found.switches, "links": links}
