"""Reads graphs of other tools: GraphML, GML and SNDlib files, told apart by content, and networkx graphs.

The node attribute ``kind: switch`` or ``kind: hub`` makes a node a switch. Edge attributes with the
names of link properties (``rate``, ``delay``, ``loss``, ``mtu``, ...) are read with their units.
:class:`~airloom.scenario.model.GraphAttributes` names the attributes that hold the names of nodes,
their coordinates, rates, delays and losses; by default those of the Internet Topology Zoo and of
Shadow, and in a file of SNDlib its own. An edge from a node to itself is left out. Of a directed graph
two edges of opposite directions are one link. The graph's notes list what is not read.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from airloom import extras
from airloom.host.files import content
from airloom.scenario import formats
from airloom.scenario.model import Direction, GraphAttributes, Switch
from airloom.scenario.model.base import NAME_PATTERN
from airloom.scenario.problems import Problem
from airloom.scenario.suggest import nearest
from airloom.scenario.topology import gml, sndlib
from airloom.scenario.topology.geography import Place
from airloom.scenario.topology.graph import MOST_LINKS, MOST_NODES, Edge, Graph
from airloom.scenario.topology.graph_edges import EdgeReader, number, wrong
from airloom.units.quantities import Rate

_WHERE = ("topology", "file")
LARGEST = 64 * 2**20
"""Largest file in octets."""
_KIND = "kind"
_OF_EDGES = ("rate", "delay", "jitter", "loss")
"""The keys of :class:`GraphAttributes` that name an attribute of edges; the others name one of nodes."""


SNDLIB = GraphAttributes(
    name=None, latitude="y", longitude="x", rate="capacity", rate_unit=Rate("1 Mbit/s"), delay=None
)
"""What a file of SNDlib has."""


def read(path: str, attributes: GraphAttributes | None = None) -> Graph:
    """Returns the graph of a file; raises :class:`Problem` if it is not a valid network."""
    said = attributes or GraphAttributes()
    try:
        octets = content(path, LARGEST)
    except OSError as error:
        raise Problem("topology.file", f"it cannot be read: {error.strerror}", _WHERE) from None
    try:
        form = formats.recognise(octets)
    except ValueError as error:
        raise Problem("topology.file", str(error), _WHERE) from None
    if form is None or form.reads != formats.GRAPH:
        message, cure = formats.refusal(form, formats.GRAPH)
        raise Problem("topology.file", message, _WHERE, cure)
    extras.require("report")
    import networkx

    try:
        if form.name == "GML":
            return of_networkx(gml.read(formats.text(octets)), said)
        if form.name.startswith("SNDlib"):
            return _sndlib(formats.text(octets), said)
        graph = networkx.read_graphml(io.BytesIO(formats.unpacked(octets)))
    except Problem:
        raise
    except Exception as error:
        # The reader of GraphML raises errors of many types: from XML, from type conversion, from the
        # graph's keys.
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Problem("topology.file", f"not a valid {form.name} file: {first}", _WHERE) from None
    return of_networkx(graph, said)


def _sndlib(text: str, attributes: GraphAttributes) -> Graph:
    graph, geographical, unread = sndlib.read(text)
    chosen = {key: getattr(attributes, key) for key in attributes.model_fields_set}
    places = {} if geographical else {"latitude": None, "longitude": None}
    found = of_networkx(graph, SNDLIB.model_copy(update={**places, **chosen}), checked=attributes)
    if "rate_unit" not in chosen and any("capacity" in said for _, _, said in graph.edges(data=True)):
        found.notes.append(f"capacities are taken as multiples of {SNDLIB.rate_unit.text} ('rate_unit')")
    if unread:
        found.notes.append(f"parts of the file that are not read: {', '.join(unread)}")
    return found


def of_networkx(graph: Any, attributes: GraphAttributes, *, checked: GraphAttributes | None = None) -> Graph:
    """Returns nodes and links of a networkx graph; a lone directed edge is a link of both directions.

    ``checked``: the attributes that must exist if they were set; by default all.
    """
    if graph.number_of_nodes() > MOST_NODES or graph.number_of_edges() > MOST_LINKS:
        raise Problem("topology.size", f"more than {MOST_NODES} nodes or {MOST_LINKS} links", _WHERE)
    _must_be_there(graph, checked or attributes)
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
    edges = EdgeReader(attributes, places, {names[key]: said for key, said in graph.nodes(data=True)})
    result.edges = list(_edges(graph, names, edges))
    result.notes = list(_notes(graph, attributes, names, places))
    return result


def _must_be_there(graph: Any, attributes: GraphAttributes) -> None:
    """Refuses an attribute that the scenario names and the graph does not have."""
    for key in attributes.model_fields_set - {"rate_unit", "delay_unit"}:
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
        raise wrong(f"node {name}", f"it has {given[0]}, and no {missing}")
    return (
        number(said[north], f"node {name}: {north}", -90, 90),
        number(said[east], f"node {name}: {east}", -180, 180),
    )


def _edges(graph: Any, names: dict[Any, str], reader: EdgeReader) -> Iterator[Edge]:
    """Yields the links; two opposite edges of a directed graph are the directions of one."""
    waiting: dict[tuple[str, str], list[Edge]] = {}
    found: list[Edge] = []
    for a, b, said in graph.edges(data=True):
        ends = (names[a], names[b])
        if ends[0] == ends[1]:
            continue
        forward, backward = reader.directions(ends, said)
        opposite = waiting.get((ends[1], ends[0])) if graph.is_directed() else None
        if opposite:
            opposite.pop(0).backward = forward
            continue
        edge = Edge(*ends, forward, backward)
        waiting.setdefault(ends, []).append(edge)
        found.append(edge)
    yield from found


def _notes(
    graph: Any, attributes: GraphAttributes, names: dict[Any, str], places: dict[str, Place]
) -> Iterator[str]:
    read: dict[str, set[str | None]] = {
        "node": {_KIND, attributes.name, attributes.up, attributes.down},
        "edge": {*Direction.model_fields, *(getattr(attributes, key) for key in _OF_EDGES)},
    }
    if attributes.latitude is not None and attributes.longitude is not None:
        read["node"] |= {attributes.latitude, attributes.longitude}
    items = {"node": graph.nodes(data=True), "edge": graph.edges(data=True)}
    unread = {what: [word for word in _words(items[what]) if word not in read[what]] for what in read}
    listed = [f"{what} {', '.join(words)}" for what, words in unread.items() if words]
    if listed:
        yield f"attributes of the graph that are not read: {'; '.join(listed)}"
    loops = [names[a] for a, b in graph.edges() if a == b]
    if loops:
        yield f"edges from a node to itself, which are left out: {_some(loops)}"
    without = [
        f"{names[a]}-{names[b]}"
        for a, b, said in graph.edges(data=True)
        if "delay" not in said
        and attributes.delay not in said
        and not (names[a] in places and names[b] in places)
    ]
    if places and without:
        yield f"edges without a delay, because an end has no coordinates: {_some(without)}"
    numbers = [
        said[attributes.delay]
        for *_, said in graph.edges(data=True)
        if isinstance(said.get(attributes.delay), int | float)
    ]
    if numbers and "delay_unit" not in attributes.model_fields_set:
        yield (
            f"{attributes.delay!r} is taken as multiples of {attributes.delay_unit.text}, as its values have "
            "no unit ('delay_unit')"
        )
    capped = [said for _, said in graph.nodes(data=True) if attributes.up in said or attributes.down in said]
    if capped and graph.number_of_edges():
        yield (
            f"each direction of a link has at most {attributes.up!r} of its sender and {attributes.down!r} "
            "of its receiver; several links of one node do not share them"
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
