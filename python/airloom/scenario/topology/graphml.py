"""Reads graphs of other tools: GraphML files and networkx graphs.

The node attribute ``kind: switch`` or ``kind: hub`` makes a node a switch. Edge attributes with the
names of link properties (``rate``, ``delay``, ``loss``, ``mtu``, ...) are read with their units;
other attributes, such as drawing positions, are ignored.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import networkx
from pydantic import ValidationError

from airloom.host.files import content
from airloom.scenario.model import Direction, Switch
from airloom.scenario.model.base import NAME_PATTERN
from airloom.scenario.problems import Problem
from airloom.scenario.topology.generators import MOST_LINKS, MOST_NODES, Edge, Graph

_WHERE = ("topology", "file")
LARGEST = 64 * 2**20
"""Largest file in octets."""


def read(path: str) -> Graph:
    """Returns the graph of a GraphML file; raises :class:`Problem` if it is not a valid network."""
    try:
        graph = networkx.read_graphml(io.BytesIO(content(path, LARGEST)))
    except Exception as error:
        # The reader raises errors of many types: from XML, from type conversion, from the graph's
        # keys.
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Problem("topology.file", f"not a GraphML file: {first}", _WHERE) from None
    return of_networkx(graph)


def of_networkx(graph: Any) -> Graph:
    """Returns nodes and links of a networkx graph; a directed edge is a link of both directions."""
    if graph.number_of_nodes() > MOST_NODES or graph.number_of_edges() > MOST_LINKS:
        raise Problem("topology.size", f"more than {MOST_NODES} nodes or {MOST_LINKS} links", _WHERE)
    result = Graph()
    names: dict[Any, str] = {}
    taken: set[str] = set()
    for key, attributes in graph.nodes(data=True):
        name = str(key)
        if not re.match(NAME_PATTERN, name) or name in taken:
            name = _tidy(name, taken)
        taken.add(name)
        names[key] = name
        kind = attributes.get("kind")
        if kind in ("switch", "hub"):
            result.switches[name] = Switch(kind=kind)
        else:
            result.nodes.append(name)
    result.edges = list(_edges(graph, names))
    return result


def _tidy(name: str, taken: set[str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:50].strip("-_") or "n"
    tidy, count = stem, 1
    while tidy in taken:
        count += 1
        tidy = f"{stem}-{count}"
    return tidy


def _edges(graph: Any, names: dict[Any, str]) -> Iterator[Edge]:
    seen: set[tuple[str, str]] = set()
    for a, b, attributes in graph.edges(data=True):
        ends = (names[a], names[b])
        if ends[0] == ends[1]:
            raise Problem("link.self", f"the graph has an edge from {ends[0]!r} to itself", _WHERE)
        if graph.is_directed():
            if (ends[1], ends[0]) in seen and not graph.is_multigraph():
                continue
            seen.add(ends)
        said = {key: value for key, value in attributes.items() if key in Direction.model_fields}
        try:
            link = Direction.model_validate(said) if said else None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("<"))
            raise Problem(
                "topology.file", f"edge {ends[0]}-{ends[1]}: {place}: {first['msg']}", _WHERE
            ) from None
        yield Edge(*ends, link)
