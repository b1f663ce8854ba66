"""The axis of a swept path: its values, and their places on a scale."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from airloom.units.figures import UNITS, Dimension, Scale
from airloom.units.quantities import Length, parse
from airloom.units.reading import UnitError


@dataclass(frozen=True, slots=True)
class Axis:
    """A swept path, or the runs that are compared. Positions: numeric values, otherwise indexes."""

    path: str
    label: str
    values: tuple[str, ...]
    positions: tuple[float, ...]
    numeric: bool
    unit: str

    @property
    def title(self) -> str:
        """Label of the axis with its unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def wide(self) -> bool:
        """True if the positions need a logarithmic axis."""
        return (
            self.numeric
            and len(self.positions) > 2
            and min(self.positions) > 0
            and max(self.positions) / min(self.positions) >= 30
        )


def axis(path: str, label: str, values: Sequence[str]) -> Axis:
    """Returns the axis of a swept path.

    It is numeric if its values are numbers of one dimension, quantities of one kind, or positions.
    Positions that differ in one coordinate are at this coordinate; others are at their distance along
    the path from the first one through all before.
    """
    found = _figures(values) or _quantities(values) or _positions(values)
    if found is None or len(set(found[0])) < len(values):
        return Axis(path, label, tuple(values), tuple(map(float, range(len(values)))), False, "")
    positions, unit, what = found
    return Axis(path, f"{label}, {what}" if what else label, tuple(values), tuple(positions), True, unit)


Scaled = tuple[list[float], str, str]
"""Positions on an axis, their unit, and what they are beside the label of the path."""


def _figures(values: Sequence[str]) -> Scaled | None:
    """Numbers of one dimension of results, in the unit that suits them."""
    figures: list[float] = []
    dimensions: set[Dimension] = set()
    for value in values:
        digits, _, unit = value.strip().partition(" ")
        try:
            factor, dimension = UNITS[unit]
            figures.append(float(digits) * factor)
        except (ValueError, KeyError):
            return None
        dimensions.add(dimension)
    if len(dimensions) != 1:
        return None
    scale = Scale.for_values(figures, dimensions.pop())
    return [one / scale.factor for one in figures], scale.unit, ""


def _quantities(values: Sequence[str]) -> Scaled | None:
    """Lengths, powers and the like, in the unit in which they are written, or in the base unit."""
    try:
        read = [parse(value) for value in values]
    except UnitError:
        return None
    kinds = {type(one) for one in read}
    if len(kinds) != 1:
        return None
    units = {value.strip().rpartition(" ")[2] for value in values}
    if len(units) == 1:
        return [float(value.strip().partition(" ")[0]) for value in values], units.pop(), ""
    return [float(one) for one in read], next(iter(kinds.pop().UNITS)), ""


_COORDINATES = ("east", "north", "height")


def _positions(values: Sequence[str]) -> Scaled | None:
    """Positions of radios: lists of two or three lengths."""
    places = [_position(value) for value in values]
    known = [one for one in places if one is not None]
    if len(known) < len(places) or not known:
        return None
    varied = [at for at in range(3) if len({one[at] for one in known}) > 1]
    if len(varied) == 1:
        return [one[varied[0]] for one in known], "m", _COORDINATES[varied[0]]
    steps = [0.0, *(math.dist(a, b) for a, b in itertools.pairwise(known))]
    return list(itertools.accumulate(steps)), "m", "along the path"


def _position(text: str) -> tuple[float, float, float] | None:
    try:
        written = json.loads(text)
    except ValueError:
        written = [part.strip() for part in text.split(",")]
    if not isinstance(written, list) or len(written) not in (2, 3):
        return None
    try:
        lengths = [float(Length(one)) for one in written]
    except (UnitError, TypeError, ValueError):
        return None
    east, north, *height = lengths
    return east, north, height[0] if height else 0.0
