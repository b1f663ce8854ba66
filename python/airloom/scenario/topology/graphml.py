"""Reads graphs of other tools: GraphML files and networkx graphs.

The node attribute ``kind: switch`` or ``kind: hub`` makes a node a switch. Edge attributes with the
names of link properties (``rate``, ``delay``, ``loss``, ``mtu``, ...) are read with their units.
:class:`~airloom.scenario.model.GraphAttributes` names the attributes that hold the names of nodes,
their coordinates, and rates; by default those of the Internet Topology Zoo. The graph's notes list
all attributes that are not read.
"""

from __future__ import annotations

import io
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import networkx
from pydantic import ValidationError

from airloom.host.files import content
from airloom.scenario.model import Direction, GraphAttributes, Switch
from airloom.scenario.model.base import NAME_PATTERN
from airloom.scenario.problems import Problem
from airloom.scenario.suggest import nearest
from airloom.scenario.topology.generators import MOST_LINKS, MOST_NODES, Edge, Graph
from airloom.scenario.topology.geography import Place, fibre_delay
from airloom.units.quantities import Duration, Rate

_WHERE = ("topology", "file")
LARGEST = 64 * 2**20
"""Largest file in octets."""
_KIND = "kind"
_OF_EDGES = ("rate",)
"""The keys of :class:`GraphAttributes` that name an attribute of edges; the others name one of nodes."""


def read(path: str, attributes: GraphAttributes | None = None) -> Graph:
    """Returns the graph of a GraphML file; raises :class:`Problem` if it is not a valid network."""
    try:
        graph = networkx.read_graphml(io.BytesIO(content(path, LARGEST)))
    except Exception as error:
        # The reader raises errors of many types: from XML, from type conversion, from the graph's
        # keys.
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Problem("topology.file", f"not a GraphML file: {first}", _WHERE) from None
    return of_networkx(graph, attributes or GraphAttributes())


def of_networkx(graph: Any, attributes: GraphAttributes) -> Graph:
    """Returns nodes and links of a networkx graph; a directed edge is a link of both directions."""
    if graph.number_of_nodes() > MOST_NODES or graph.number_of_edges() > MOST_LINKS:
        raise Problem("topology.size", f"more than {MOST_NODES} nodes or {MOST_LINKS} links", _WHERE)
    _must_be_there(graph, attributes)
    result = Graph()
    names: dict[Any, str] = {}
    places: dict[str, Place] = {}
    taken: set[str] = set()
    for key, said in graph.nodes(data=True):
        label = said.get(attributes.name) if attributes.name is not None else None
        name = str(key if label in (None, "") else label)
        if not re.match(NAME_PATTERN, name) or name in taken:
            name = tidy(name, taken)
        taken.add(name)
        names[key] = name
        place = _place(name, said, attributes)
        if place is not None:
            places[name] = place
        kind = said.get(_KIND)
        if kind in ("switch", "hub"):
            result.switches[name] = Switch(kind=kind)
        else:
            result.nodes.append(name)
    result.edges = list(_edges(graph, names, places, attributes))
    result.notes = list(_notes(graph, attributes, names, places))
    return result


def _must_be_there(graph: Any, attributes: GraphAttributes) -> None:
    """Refuses an attribute that the scenario names and the graph does not have."""
    for key in attributes.model_fields_set & {"name", "latitude", "longitude", "rate"}:
        word = getattr(attributes, key)
        what = "edge" if key in _OF_EDGES else "node"
        known = _words(graph.edges(data=True) if what == "edge" else graph.nodes(data=True))
        if word is not None and word not in known:
            cure = nearest(word, known) if known else f"no {what} has any"
            path = ("topology", "attributes", key)
            raise Problem("topology.attribute", f"no {what} has an attribute {word!r}", path, cure)


def _words(items: Iterable[Any]) -> list[str]:
    """Returns the names of all attributes of nodes or edges; the last part of an item is a mapping."""
    return sorted({str(word) for item in items for word in item[-1]})


def tidy(name: str, taken: set[str]) -> str:
    """Returns a valid name that is not taken: without accents, other characters as ``-``."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", plain)[:50].strip("-_") or "n"
    found, count = stem, 1
    while found in taken:
        count += 1
        found = f"{stem}-{count}"
    return found


def _place(name: str, said: dict[str, Any], attributes: GraphAttributes) -> Place | None:
    north, east = attributes.latitude, attributes.longitude
    if north is None or east is None:
        return None
    given = [word for word in (north, east) if said.get(word) is not None]
    if not given:
        return None
    if len(given) == 1:
        missing = east if given == [north] else north
        raise _wrong(f"node {name}", f"it has {given[0]}, and no {missing}")
    return (
        _number(said[north], f"node {name}: {north}", -90, 90),
        _number(said[east], f"node {name}: {east}", -180, 180),
    )


def _number(value: Any, where: str, least: float, most: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not least <= number <= most:
        raise _wrong(where, f"{value!r} is not a number from {least:g} to {most:g}")
    return number


def _wrong(where: str, why: str) -> Problem:
    return Problem(
        "topology.attribute",
        f"{where}: {why}",
        _WHERE,
        "correct the file, or set the attribute to null under 'attributes' to leave it unread",
    )


def _edges(
    graph: Any, names: dict[Any, str], places: dict[str, Place], attributes: GraphAttributes
) -> Iterator[Edge]:
    seen: set[tuple[str, str]] = set()
    for a, b, said in graph.edges(data=True):
        ends = (names[a], names[b])
        if ends[0] == ends[1]:
            raise Problem("link.self", f"the graph has an edge from {ends[0]!r} to itself", _WHERE)
        if graph.is_directed():
            if (ends[1], ends[0]) in seen and not graph.is_multigraph():
                continue
            seen.add(ends)
        yield Edge(*ends, _link(ends, said, places, attributes))


def _link(
    ends: tuple[str, str], said: dict[str, Any], places: dict[str, Place], attributes: GraphAttributes
) -> Direction | None:
    """Returns an edge's properties; those with the names of link properties take precedence."""
    found: dict[str, Any] = {}
    speed = None if attributes.rate is None else said.get(attributes.rate)
    if speed is not None and "trace" not in said:
        unit = int(attributes.rate_unit)
        bits = _number(speed, f"edge {ends[0]}-{ends[1]}: {attributes.rate}", 1 / unit, 1e12 / unit)
        found["rate"] = Rate(round(bits * unit))
    if ends[0] in places and ends[1] in places:
        found["delay"] = Duration(fibre_delay(places[ends[0]], places[ends[1]]))
    found |= {key: value for key, value in said.items() if key in Direction.model_fields}
    try:
        return Direction.model_validate(found) if found else None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("<"))
        raise Problem("topology.file", f"edge {ends[0]}-{ends[1]}: {place}: {first['msg']}", _WHERE) from None


def _notes(
    graph: Any, attributes: GraphAttributes, names: dict[Any, str], places: dict[str, Place]
) -> Iterator[str]:
    read = {"node": {_KIND, attributes.name}, "edge": {*Direction.model_fields, attributes.rate}}
    if attributes.latitude is not None and attributes.longitude is not None:
        read["node"] |= {attributes.latitude, attributes.longitude}
    items = {"node": graph.nodes(data=True), "edge": graph.edges(data=True)}
    unread = {what: [word for word in _words(items[what]) if word not in read[what]] for what in read}
    listed = [f"{what} {', '.join(words)}" for what, words in unread.items() if words]
    if listed:
        yield f"attributes of the graph that are not read: {'; '.join(listed)}"
    without = [
        f"{names[a]}-{names[b]}"
        for a, b, said in graph.edges(data=True)
        if "delay" not in said and not (names[a] in places and names[b] in places)
    ]
    if places and without:
        more = f" and {len(without) - 3} more" if len(without) > 3 else ""
        yield f"edges without a delay, because an end has no coordinates: {', '.join(without[:3])}{more}"
