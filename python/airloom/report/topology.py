"""The topology picture: nodes, links, rates and delays.

Up to a hundred nodes, every node is drawn; above, densely connected nodes are drawn as one cluster
with their number (Louvain's method, Blondel et al. 2008, with a fixed seed).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airloom.report import stress
from airloom.report.style import Drawing, Ink
from airloom.results.details import Topology, Wire
from airloom.units.figures import RATE, TIME, Quantity
from airloom.units.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 100
ROW = 12
"""Nodes in one row of a chain's picture."""
LABELS = 24
"""Maximum number of link labels; more would overlap, so the table of links lists them."""
DENSE = 60
"""Number of links from which lines are drawn thin."""

Place = tuple[float, float]

_MARKERS = {
    "host": ("s", "host"),
    "router": ("o", "router"),
    "switch": ("D", "switch"),
    "hub": ("h", "hub"),
    "tunnel": ("8", "tunnel"),
}


def picture(topology: Topology, by_radio: Sequence[tuple[str, str]] = ()) -> Drawing | None:
    """Returns the picture of a topology; None for an empty one.

    ``by_radio``: pairs of nodes that sent to each other by radio, drawn as dashed lines.
    """
    if not topology.vertices:
        return None
    import networkx as nx

    graph = nx.Graph()
    for vertex in topology.vertices:
        graph.add_node(vertex.name, kind=vertex.kind, count=1)
    for wire in topology.wires:
        if wire.a in graph and wire.b in graph:
            graph.add_edge(wire.a, wire.b, text=describe(wire), label=_directed(wire), air=False)
    pairs = {frozenset(pair) for pair in by_radio}
    if len(pairs) <= DENSE:
        for a, b in by_radio:
            if a != b and a in graph and b in graph and not graph.has_edge(a, b):
                graph.add_edge(a, b, text="", label="", air=True)
    kinds = Counter(vertex.kind for vertex in topology.vertices)
    told = ", ".join(f"{count} {plural(kind, count)}" for kind, count in sorted(kinds.items()))
    # Those that differ by direction have labels of their own, as far as there is place for labels.
    uneven = sum(_is_uneven(wire) for wire in topology.wires)
    told_apart = uneven if uneven <= LABELS else 0
    common = Counter(
        describe(wire) for wire in topology.wires if not (told_apart and _is_uneven(wire))
    ).most_common(1)
    usual = common[0][0] if common else ""
    caption = ""
    others = len(topology.wires) - (common[0][1] if common else 0)
    if usual and not others:
        caption = f"Every link: {usual}."
    elif usual:
        which = "Links without a label" if others <= LABELS else f"{common[0][1]} links"
        rest = "" if others <= LABELS else f" {_rest(common, topology)}"
        caption = f"{which}: {usual}.{rest}"
    if any(data["air"] for _, _, data in graph.edges(data=True)):
        caption = f"{caption} Dashed: by radio.".strip()
    clustered = len(graph) > MOST
    if clustered:
        graph = _clusters(graph)
        caption = f"{len(topology.vertices)} nodes are drawn as {len(graph)} clusters. {caption}"
    places = layout(graph)
    across = max(x for x, _ in places.values()) - min(x for x, _ in places.values())
    up = max(y for _, y in places.values()) - min(y for _, y in places.values())
    highest = min(8.0, 3.6 + 0.05 * len(graph))
    height = min(highest, max(1.4, 1.1 + 9.8 * up / max(across, up, 1e-9) * 0.75))

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        _edges(axes, graph, places, usual, ink)
        _nodes(axes, graph, places, ink)
        axes.set_axis_off()
        axes.margins(0.08, 0.22 if up < 0.3 * across else 0.08)

    names = ", ".join(vertex.name for vertex in topology.vertices[:20])
    return Drawing(
        name="topology",
        title="Nodes and links",
        alt=f"Topology: {told}, {len(topology.wires)} links. {names}"
        f"{' and more' if len(topology.vertices) > 20 else ''}. {caption}",
        caption=f"{told}; {len(topology.wires)} {plural('link', len(topology.wires))}. {caption}",
        draw=draw,
        size=(9.8, height),
    )


def _rest(common: list[tuple[str, int]], topology: Topology) -> str:
    kinds = Counter(describe(wire) for wire in topology.wires).most_common(6)[len(common) :]
    told = "; ".join(f"{count} {plural('link', count)}: {text}" for text, count in kinds)
    return f"{told}."


def describe(wire: Wire) -> str:
    """Returns a link's rate and delay, of both directions if they differ."""
    forward, backward = _directions(wire)
    return forward if forward == backward else f"{forward} forward, {backward} backward"


def _is_uneven(wire: Wire) -> bool:
    forward, backward = _directions(wire)
    return forward != backward


def _directed(wire: Wire) -> str:
    """Returns the label of a link in lines, with the ends of its directions if they differ."""
    forward, backward = _directions(wire)
    if forward == backward:
        return forward.replace(", ", "\n")
    return f"{wire.a} \u2192 {wire.b}: {forward}\n{wire.b} \u2192 {wire.a}: {backward}"


def _directions(wire: Wire) -> tuple[str, str]:
    forward = _direction(wire.rate_bit_s, wire.delay_ns, wire.trace)
    if wire.backward_delay_ns is None:
        return forward, forward
    return forward, _direction(wire.backward_rate_bit_s, wire.backward_delay_ns, wire.backward_trace)


def _direction(rate: int | None, delay_ns: int, trace: bool) -> str:
    fast = "a trace" if trace else "unlimited" if rate is None else str(Quantity(float(rate), RATE))
    return f"{fast}, {Quantity(delay_ns / 1e9, TIME)}" if delay_ns else fast


def layout(graph: Any) -> dict[str, Place]:
    """Returns vertex positions: chains in rows, rings in a circle, trees in layers, else least stress."""
    import networkx as nx

    order = _chain(graph)
    if order:
        return _rows(order)
    if len(graph) > 2 and all(degree == 2 for _, degree in graph.degree) and nx.is_connected(graph):
        cycle = [a for a, _ in nx.find_cycle(graph)]
        turn = 2 * math.pi / len(cycle)
        return {name: (math.cos(i * turn), math.sin(i * turn)) for i, name in enumerate(cycle)}
    if nx.is_tree(graph) and max(dict(graph.degree).values()) < len(graph) - 1:
        return _layers(graph)
    if not nx.is_connected(graph):
        return _beside(graph)
    return stress.places({name: list(graph[name]) for name in graph})


def _beside(graph: Any) -> dict[str, Place]:
    """Returns the parts of a graph that is not connected: each with its layout, one beside the other."""
    import networkx as nx

    places: dict[str, Place] = {}
    left = 0.0
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    alone = [name for part in parts if len(part) == 1 for name in sorted(part)]
    for part in (part for part in parts if len(part) > 1):
        inside = layout(graph.subgraph(sorted(part)))
        low = min(x for x, _ in inside.values())
        across = max(x for x, _ in inside.values()) - low
        up = max(y for _, y in inside.values())
        scale = max(across, 1e-9) / math.sqrt(len(part))
        places |= {name: (left + (x - low) / scale, (y - up) / scale) for name, (x, y) in inside.items()}
        left += across / scale + 1.0
    below = min((y for _, y in places.values()), default=0.0) - 1.0
    width = max(1, math.ceil(max(left, math.sqrt(2.0 * len(alone)))))
    for number, name in enumerate(alone):
        row, column = divmod(number, width)
        places[name] = (float(column), below - row)
    return places


def _chain(graph: Any) -> list[str]:
    import networkx as nx

    if len(graph) == 1:
        return list(graph)
    ends = [name for name, degree in graph.degree if degree == 1]
    if len(ends) != 2 or max(degree for _, degree in graph.degree) > 2 or not nx.is_connected(graph):
        return []
    first = next(name for name in graph if name in ends)
    return list(nx.dfs_preorder_nodes(graph, first))


def _rows(order: list[str]) -> dict[str, Place]:
    """Returns a chain in rows of alternating direction."""
    rows = math.ceil(len(order) / ROW)
    width = math.ceil(len(order) / rows)
    places = {}
    for index, name in enumerate(order):
        row, column = divmod(index, width)
        x = column if row % 2 == 0 else width - 1 - column
        places[name] = (float(x), -1.1 * row)
    return places


def _layers(graph: Any) -> dict[str, Place]:
    import networkx as nx

    root = nx.center(graph)[0]
    children: dict[str, list[str]] = {name: [] for name in graph}
    for parent, child in nx.bfs_edges(graph, root):
        children[parent].append(child)
    places: dict[str, Place] = {}
    leaf = 0

    def put(name: str, depth: int) -> float:
        nonlocal leaf
        if not children[name]:
            x = float(leaf)
            leaf += 1
        else:
            below = [put(child, depth + 1) for child in children[name]]
            x = (below[0] + below[-1]) / 2
        places[name] = (x, -depth * 1.0)
        return x

    put(root, 0)
    depth = max(-y for _, y in places.values()) or 1.0
    stretch = max(1.0, leaf / (2.2 * depth))
    return {name: (x, y * stretch) for name, (x, y) in places.items()}


def _clusters(graph: Any) -> Any:
    import networkx as nx

    groups = nx.community.louvain_communities(graph, seed=1)
    groups.sort(key=lambda group: (-len(group), min(group)))
    if len(groups) > MOST:
        rest = set().union(*groups[MOST - 1 :])
        groups = [*groups[: MOST - 1], rest]
    home = {name: index for index, group in enumerate(groups) for name in group}
    drawn = nx.Graph()
    for index, group in enumerate(groups):
        names = sorted(group)
        label = names[0] if len(names) == 1 else f"{names[0]}, ...\n{len(names)} nodes"
        drawn.add_node(index, kind="cluster", count=len(names), label=label)
    for a, b in graph.edges:
        if home[a] != home[b]:
            before = drawn.get_edge_data(home[a], home[b], {"wires": 0})["wires"]
            drawn.add_edge(home[a], home[b], wires=before + 1)
    for _, _, data in drawn.edges(data=True):
        data["text"] = f"{data['wires']} links" if data["wires"] > 1 else ""
    return drawn


def _edges(axes: Axes, graph: Any, places: Mapping[str, Place], usual: str, ink: Ink) -> None:
    labelled = [
        (a, b, data.get("label", data["text"]))
        for a, b, data in graph.edges(data=True)
        if data["text"] and (data["text"] != usual or "\u2192" in data.get("label", ""))
    ]
    many = graph.number_of_edges() > DENSE
    for a, b, data in graph.edges(data=True):
        (x1, y1), (x2, y2) = places[a], places[b]
        axes.plot(
            [x1, x2],
            [y1, y2],
            color=ink.faint,
            linewidth=0.8 if many else 1.3,
            linestyle=(0, (3, 3)) if data.get("air") else "-",
            alpha=0.55 if many else 1.0,
            zorder=1,
        )
    for a, b, text in labelled if len(labelled) <= LABELS else []:
        (x1, y1), (x2, y2) = places[a], places[b]
        axes.text(
            (x1 + x2) / 2,
            (y1 + y2) / 2,
            text,
            ha="center",
            va="center",
            fontsize=7,
            color=ink.text,
            zorder=3,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": ink.paper, "edgecolor": "none"},
        )


def _nodes(axes: Axes, graph: Any, places: Mapping[str, Place], ink: Ink) -> None:
    crowd = len(graph)
    size = 190.0 if crowd <= 30 else 90.0 if crowd <= 60 else 45.0
    font = 8.0 if crowd <= 30 else 6.5 if crowd <= 60 else 5.5
    roles = ("host", "router", "switch", "hub", "cluster")
    for number, kind in enumerate(roles):
        names = [name for name, data in graph.nodes(data=True) if data["kind"] == kind]
        if not names:
            continue
        marker, label = _MARKERS.get(kind, ("o", "cluster"))
        sizes = [
            size if kind != "cluster" else 120 + 40 * math.sqrt(graph.nodes[name]["count"]) for name in names
        ]
        axes.scatter(
            [places[name][0] for name in names],
            [places[name][1] for name in names],
            s=sizes,
            marker=marker,
            color=ink.series[number],
            edgecolor=ink.paper,
            linewidth=1.5,
            zorder=2,
            label=label,
        )
    reach = math.sqrt(size) / 2 + 3
    for name, data in graph.nodes(data=True):
        axes.annotate(
            data.get("label", name),
            places[name],
            xytext=(0, -reach if data["kind"] != "cluster" else 0),
            textcoords="offset points",
            ha="center",
            va="top" if data["kind"] != "cluster" else "center",
            fontsize=font,
            color=ink.text,
            zorder=4,
        )
    from matplotlib.collections import PathCollection

    legend = axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=5, borderaxespad=0.1, handletextpad=0.2
    )
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([40.0])
