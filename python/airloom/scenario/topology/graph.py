"""Generated topologies: nodes, switches and the edges between them, and how many there may be."""

from __future__ import annotations

from dataclasses import dataclass, field

from airloom.scenario.model import Direction, Switch

MOST_NODES = 100_000
MOST_LINKS = 200_000


@dataclass(slots=True)
class Edge:
    """A link between two generated nodes, with its own properties if it has any."""

    a: str
    b: str
    link: Direction | None = None
    backward: Direction | None = None
    """The properties from ``b`` to ``a``, if they differ."""


@dataclass(slots=True)
class Graph:
    """The result of a generator."""

    nodes: list[str] = field(default_factory=list)
    switches: dict[str, Switch] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a graph file says and the graph does not contain."""
