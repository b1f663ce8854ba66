"""Positions of a generator's nodes in metres, ``spacing`` apart on a plane."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from airloom.scenario.model import Topology
from airloom.scenario.problems import Problem
from airloom.units.given import given
from airloom.units.quantities import Length

Place = tuple[Length, Length]


def _chain(topology: Topology, count: int, step: float, dice: random.Random) -> list[Place]:
    """Along x."""
    return [_place(number * step, 0) for number in range(count)]


def _star(topology: Topology, count: int, step: float, dice: random.Random) -> list[Place]:
    """The first node in the centre, the others on a circle around it."""
    angles = [2 * math.pi * number / max(1, count - 1) for number in range(count - 1)]
    ring = [_place(step * math.cos(angle), step * math.sin(angle)) for angle in angles]
    return [_place(0, 0), *ring]


def _grid(topology: Topology, count: int, step: float, dice: random.Random) -> list[Place]:
    """Columns along x, rows along y."""
    columns = given(topology.columns, 1)
    return [_place(number % columns * step, number // columns * step) for number in range(count)]


def _random(topology: Topology, count: int, step: float, dice: random.Random) -> list[Place]:
    """Uniform in a square of the area of a grid with this spacing."""
    side = step * math.sqrt(count)
    return [_place(dice.random() * side, dice.random() * side) for _ in range(count)]


def _place(x: float, y: float) -> Place:
    # Rounded to micrometres, to remove rounding errors of cosines.
    return (Length(round(x, 6)), Length(round(y, 6)))


PLACED: dict[str, Callable[[Topology, int, float, random.Random], list[Place]]] = {
    "chain": _chain,
    "star": _star,
    "grid": _grid,
    "random": _random,
}
"""Generators that define positions."""


def places(topology: Topology, nodes: list[str], seed: int) -> dict[str, Place]:
    """Returns the position of each node; empty without a spacing."""
    if topology.spacing is None:
        return {}
    place = PLACED.get(topology.generator)
    if place is None:
        raise Problem(
            "topology.parameter",
            f"a {topology.generator} does not give positions of its nodes",
            ("topology", "spacing"),
            f"these do: {', '.join(PLACED)}; or give positions under 'nodes:'",
            key=True,
        )
    if topology.spacing <= 0:
        raise Problem("topology.size", "the spacing must be above zero", ("topology", "spacing"))
    dice = random.Random(f"places {seed if topology.seed is None else topology.seed}")
    found = place(topology, len(nodes), float(topology.spacing), dice)
    return dict(zip(nodes, found, strict=True))
