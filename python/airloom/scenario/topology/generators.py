"""Generators of common topologies.

Nodes are named ``n1``, ``n2``, ... (``prefix`` replaces the n), in this order:

==========  ============================  =====================================================
generator   parameters                    result
==========  ============================  =====================================================
chain       nodes                         n1 - n2 - ... ; ``switched``: inner nodes are switches
star        nodes                         n1 in the centre; ``switched``: n1 is a switch
tree        depth, fanout                 n1 is the root, then level by level; ``switched``: all
                                          but the leaves are switches
grid        rows, columns                 n1x1, n1x2, ... (row x column), neighbours linked
ring        nodes                         n1 - n2 - ... - n1
full-mesh   nodes                         all pairs linked
fat-tree    k (even)                      (k/2)^2 ``core``, k pods of k/2 ``agg`` and k/2 ``edge``
                                          routers, and k^3/4 hosts n1, n2, ...; ``switched``:
                                          switches instead of routers
random      nodes, probability            uniform random spanning tree, and every other pair
                                          with the probability; drawn from ``seed``
graph       file, attributes              nodes and edges of a GraphML, GML or SNDlib file
graphml     file, attributes              the same
==========  ============================  =====================================================

With ``switched``, all nodes of a grid, ring, full-mesh and random are switches, to which the scenario
links its own nodes. Switches with loops need ``switch: {forwarding: shortest-path}``.

Sources: fat-tree after Al-Fares, Loukissas and Vahdat 2008; spanning tree by Pruefer's code; other
links by skipping geometrically distributed gaps (Batagelj and Brandes 2005).
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from airloom.scenario.model import Switch, Topology
from airloom.scenario.problems import Problem
from airloom.scenario.topology.graph import MOST_LINKS, MOST_NODES, Edge, Graph


def _limit(nodes: int, links: int) -> None:
    if nodes > MOST_NODES or links > MOST_LINKS:
        raise Problem(
            "topology.size",
            f"{nodes} nodes and {links} links are too many",
            ("topology",),
            f"at most {MOST_NODES} nodes and {MOST_LINKS} links",
        )


def _names(topology: Topology, count: int, switches: set[int]) -> tuple[list[str], Graph]:
    names = [f"{topology.prefix}{number}" for number in range(1, count + 1)]
    graph = Graph(
        [name for index, name in enumerate(names) if index not in switches],
        {name: Switch() for index, name in enumerate(names) if index in switches},
    )
    return names, graph


def _all_alike(topology: Topology, names: list[str]) -> Graph:
    if topology.switched:
        return Graph(switches={name: Switch() for name in names})
    return Graph(names)


def _mesh(topology: Topology, count: int) -> tuple[list[str], Graph]:
    """Nodes without a difference between inner and outer ones."""
    names = [f"{topology.prefix}{number}" for number in range(1, count + 1)]
    return names, _all_alike(topology, names)


def _pairs(names: list[str], pairs: list[tuple[int, int]]) -> list[Edge]:
    return [Edge(names[a], names[b]) for a, b in pairs]


def _chain(topology: Topology, seed: int) -> Graph:
    count = topology.nodes or 0
    names, graph = _names(topology, count, set(range(1, count - 1)) if topology.switched else set())
    graph.edges = _pairs(names, [(index, index + 1) for index in range(count - 1)])
    return graph


def _star(topology: Topology, seed: int) -> Graph:
    count = topology.nodes or 0
    names, graph = _names(topology, count, {0} if topology.switched else set())
    graph.edges = _pairs(names, [(0, index) for index in range(1, count)])
    return graph


def _tree(topology: Topology, seed: int) -> Graph:
    depth, fanout = topology.depth or 0, topology.fanout or 0
    count = inner = 0
    for level in range(depth + 1):
        inner = count
        count += fanout**level
        _limit(count, count)
    names, graph = _names(topology, count, set(range(inner)) if topology.switched else set())
    graph.edges = _pairs(names, [((index - 1) // fanout, index) for index in range(1, count)])
    return graph


def _grid(topology: Topology, seed: int) -> Graph:
    rows, columns = topology.rows or 0, topology.columns or 0
    _limit(rows * columns, 2 * rows * columns)

    def name(row: int, column: int) -> str:
        return f"{topology.prefix}{row}x{column}"

    names = [name(row, column) for row in range(1, rows + 1) for column in range(1, columns + 1)]
    graph = _all_alike(topology, names)
    for row in range(1, rows + 1):
        for column in range(1, columns + 1):
            if column < columns:
                graph.edges.append(Edge(name(row, column), name(row, column + 1)))
            if row < rows:
                graph.edges.append(Edge(name(row, column), name(row + 1, column)))
    return graph


def _ring(topology: Topology, seed: int) -> Graph:
    count = topology.nodes or 0
    names, graph = _mesh(topology, count)
    graph.edges = _pairs(names, [(index, (index + 1) % count) for index in range(count)])
    return graph


def _full_mesh(topology: Topology, seed: int) -> Graph:
    count = topology.nodes or 0
    _limit(count, count * (count - 1) // 2)
    names, graph = _mesh(topology, count)
    graph.edges = _pairs(names, [(a, b) for a in range(count) for b in range(a + 1, count)])
    return graph


def _fat_tree(topology: Topology, seed: int) -> Graph:
    half = (topology.k or 0) // 2
    graph = Graph()
    cores = [f"core{number}" for number in range(1, half * half + 1)]
    hosts = 0
    routers = list(cores)
    names: list[str] = []
    for pod in range(1, 2 * half + 1):
        aggregations = [f"agg{pod}x{number}" for number in range(1, half + 1)]
        edges = [f"edge{pod}x{number}" for number in range(1, half + 1)]
        routers += aggregations + edges
        for position, aggregation in enumerate(aggregations):
            for core in cores[position * half : (position + 1) * half]:
                graph.edges.append(Edge(core, aggregation))
            graph.edges += [Edge(aggregation, edge) for edge in edges]
        for edge in edges:
            for _ in range(half):
                hosts += 1
                names.append(f"{topology.prefix}{hosts}")
                graph.edges.append(Edge(edge, names[-1]))
    if topology.switched:
        graph.switches = {name: Switch() for name in routers}
    graph.nodes = names if topology.switched else routers + names
    return graph


def _random(topology: Topology, seed: int) -> Graph:
    count, probability = topology.nodes or 0, topology.probability or 0.0
    _limit(count, int(count + probability * count * (count - 1) / 2))
    dice = random.Random(f"topology {seed if topology.seed is None else topology.seed}")
    names, graph = _mesh(topology, count)
    chosen = {(min(a, b), max(a, b)) for a, b in _spanning_tree(count, dice)}
    if probability >= 1:
        chosen = {(a, b) for a in range(count) for b in range(a + 1, count)}
    elif probability > 0:
        b, a, gap = 1, -1, math.log1p(-probability)
        while b < count:
            a += 1 + int(math.log1p(-dice.random()) / gap)
            while a >= b and b < count:
                a, b = a - b, b + 1
            if b < count:
                chosen.add((a, b))
    graph.edges = _pairs(names, sorted(chosen))
    return graph


def _spanning_tree(count: int, dice: random.Random) -> list[tuple[int, int]]:
    """Draws a uniform random tree over the nodes: decodes a random Pruefer code."""
    if count < 2:
        return []
    code = [dice.randrange(count) for _ in range(count - 2)]
    degree = [1] * count
    for node in code:
        degree[node] += 1
    leaves = [node for node in range(count) if degree[node] == 1]
    heapq.heapify(leaves)
    edges = []
    for node in code:
        edges.append((heapq.heappop(leaves), node))
        degree[node] -= 1
        if degree[node] == 1:
            heapq.heappush(leaves, node)
    edges.append((heapq.heappop(leaves), heapq.heappop(leaves)))
    return edges


def _graph_file(topology: Topology, seed: int) -> Graph:
    # Imported here: the library takes long to load.
    from airloom.scenario.topology.graph_files import read

    assert topology.file is not None
    return read(topology.file, topology.attributes)


@dataclass(frozen=True, slots=True)
class _Generator:
    make: Callable[[Topology, int], Graph]
    takes: tuple[str, ...]
    fewest: int = 1
    switched: bool = False
    """Whether its inner nodes can be switches that only learn: they have no loops."""


GENERATORS: dict[str, _Generator] = {
    "chain": _Generator(_chain, ("nodes",), 2, True),
    "star": _Generator(_star, ("nodes",), 2, True),
    "tree": _Generator(_tree, ("depth", "fanout"), switched=True),
    "grid": _Generator(_grid, ("rows", "columns")),
    "ring": _Generator(_ring, ("nodes",), 3),
    "full-mesh": _Generator(_full_mesh, ("nodes",), 2),
    "fat-tree": _Generator(_fat_tree, ("k",)),
    "random": _Generator(_random, ("nodes", "probability"), 2),
    "graph": _Generator(_graph_file, ("file",)),
    "graphml": _Generator(_graph_file, ("file",)),
}

GRAPH_FILES = ("graph", "graphml")
"""The generators that read a file."""
_PARAMETERS = ("nodes", "depth", "fanout", "rows", "columns", "k", "probability", "file")


def generate(topology: Topology, seed: int) -> Graph:
    """Returns the graph of a topology; raises :class:`Problem` if its parameters do not fit."""
    generator = GENERATORS[topology.generator]
    for name in _PARAMETERS:
        given = getattr(topology, name) is not None
        if given and name not in generator.takes:
            raise Problem(
                "topology.parameter",
                f"a {topology.generator} takes no {name!r}",
                ("topology", name),
                f"it takes {' and '.join(generator.takes)}",
                key=True,
            )
        if not given and name in generator.takes:
            raise Problem(
                "topology.parameter",
                f"a {topology.generator} needs {name!r}",
                ("topology",),
                f"it takes {' and '.join(generator.takes)}",
            )
    if topology.seed is not None and topology.generator != "random":
        raise Problem(
            "topology.parameter", f"a {topology.generator} takes no 'seed'", ("topology", "seed"), key=True
        )
    if topology.attributes is not None and topology.generator not in GRAPH_FILES:
        raise Problem(
            "topology.parameter",
            f"a {topology.generator} takes no 'attributes'",
            ("topology", "attributes"),
            "only a graph does: leave it out",
            key=True,
        )
    if topology.nodes is not None and topology.nodes < generator.fewest:
        raise Problem(
            "topology.size",
            f"a {topology.generator} has at least {generator.fewest} nodes",
            ("topology", "nodes"),
        )
    if topology.k is not None and topology.k % 2:
        raise Problem("topology.size", "k must be even", ("topology", "k"))
    if topology.switched and topology.generator in GRAPH_FILES:
        raise Problem(
            "topology.parameter",
            "a graph takes no 'switched'",
            ("topology", "switched"),
            "write kind=switch on nodes of the file",
            key=True,
        )
    if topology.switched and not generator.switched and topology.switch.forwarding != "shortest-path":
        raise Problem(
            "topology.loop",
            f"a {topology.generator} of switches would have loops, and no switch breaks them",
            ("topology", "switched"),
            "set switch: {forwarding: shortest-path}, or leave 'switched' out: its inner nodes are routers",
        )
    return generator.make(topology, seed)
