"""Figures of repeated runs: the values of each repetition, with intervals for claims and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airloom.report.figures import Line, Role
from airloom.results import Interval, Measurement
from airloom.stats import mean
from airloom.units.figures import UNITS, Quantity

Labels = Mapping[str, Any]
Point = tuple[tuple[str, str], ...]
"""The labels of a run, sorted by name."""
Figures = Mapping[str, tuple[float, str]]
"""Name of a figure: value and unit. A name with a point is measurement and metric: ``rtt.max``."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure's value of each repetition, in ``unit``, without and with runs that are ``invalid``."""

    valid: tuple[float, ...]
    every: tuple[float, ...]
    unit: str
    point: Point = field(default=(), compare=False)
    """The point at which the figure was measured."""

    def judged(self, *, floods: bool = False) -> tuple[Quantity, Interval]:
        """Returns the mean for a claim, and what the repetitions leave open of it.

        Student's interval over the valid runs, with ``floods`` over all. It is infinite for one run,
        and if no run is valid.
        """
        values = self.every if floods else self.valid
        factor = UNITS[self.unit][0]
        if not values:
            average = Quantity.of(mean(self.every).value, self.unit)
            return average, Interval(-math.inf, math.inf, why="every run of a figure is invalid")
        over = mean(values)
        average = Quantity.of(over.value, self.unit)
        if over.n == 1:
            return average, Interval(-math.inf, math.inf, why="one repetition gives no interval")
        half = over.half_width * factor
        return average, Interval(average.value - half, average.value + half, over.n - 1)


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value of which a search knows only that it lies from ``low`` to ``high``, both included."""

    low: float
    high: float = math.inf
    why: str = ""

    def judged(self) -> tuple[Quantity, Interval]:
        """Returns its lower bound for a claim, and both bounds."""
        return Quantity(self.low), Interval(self.low, self.high, why=self.why)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest value of every run, for a claim about each of them and not about their mean.

    One run beyond a limit decides such a claim. That no run is beyond it decides it with ``least`` runs
    or more of every point.
    """

    value: float
    unit: str
    runs: int
    least: int

    def judged(self) -> tuple[Quantity, Interval]:
        """Returns the value for a claim; with too few runs it may be larger."""
        found = Quantity.of(self.value, self.unit)
        if self.runs < self.least:
            few = f"{self.runs} of {self.least} runs that such a claim needs"
            return found, Interval(found.value, math.inf, why=few)
        return found, Interval(found.value, found.value)


@dataclass(slots=True)
class Found:
    """Figures of many runs, by name and labels; one value for each repetition."""

    values: dict[tuple[str, Point], list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    added: set[Point] = field(default_factory=set)
    """Points that got figures since the reader of this set cleared it."""
    _valid: dict[tuple[str, Point], list[float]] = field(default_factory=dict)

    def add(self, labels: Labels, figures: Figures, *, valid: bool = True) -> None:
        """Adds the figures of one run; ``valid`` is false if its verdict is ``invalid``."""
        at = point(labels)
        self.added.add(at)
        for name, (value, unit) in figures.items():
            self.values.setdefault((name, at), []).append(value)
            if valid:
                self._valid.setdefault((name, at), []).append(value)
            self.units[name] = unit

    def all(self, name: str, **labels: Any) -> list[float]:
        """Returns the value of each repetition, of invalid runs too; empty without a value."""
        return self.values.get((name, point(labels)), [])

    def mean(self, name: str, **labels: Any) -> float | None:
        """Returns the mean over the repetitions in the figure's unit; None if not measured."""
        values = self.all(name, **labels)
        return mean(values).value if values else None

    def sample(self, name: str, **labels: Any) -> Sample | None:
        """Returns the value of each repetition, for claims; None if not measured."""
        at = point(labels)
        every = self.values.get((name, at))
        if not every:
            return None
        return Sample(tuple(self._valid.get((name, at), [])), tuple(every), self.units[name], at)

    def line(
        self, label: str, role: Role, name: str, over: str, at: Sequence[float], scale: float, **labels: Any
    ) -> Line:
        """Returns a figure over one label, divided by ``scale``, with confidence intervals."""
        found = [self.all(name, **{over: x}, **labels) for x in at]
        means = [mean(values) if values else None for values in found]
        return Line(
            label=label,
            role=role,
            x=tuple(float(x) for x in at),
            y=tuple(None if one is None else one.value / scale for one in means),
            ci95=tuple(None if one is None or one.n < 2 else one.half_width / scale for one in means),
        )

    def measurements(self, name: str) -> list[Measurement]:
        """Returns all figures with intervals, for ``result.json``; labels distinguish them."""
        found = []
        for (metric, labels), values in self.values.items():
            over = mean(values)
            own, dot, rest = metric.partition(".")
            found.append(
                Measurement(
                    name=own if dot else name,
                    metric=rest if dot else metric,
                    unit=self.units[metric],
                    mean=over.value,
                    ci95=over.half_width if over.n > 1 else None,
                    n=over.n,
                    labels=dict(labels),
                )
            )
        return found


def each(names: Iterable[str], rest: str) -> str:
    """Returns the claim that ``rest`` is true of each name: ``n2 <= 1 and n3 <= 1``.

    A limit on the largest of several figures is such a claim. Not ``max(...)``: its interval moves one
    name at a time, and each of the others would keep the largest where it is.
    """
    return " and ".join(f"{name} {rest}" for name in names)


def point(labels: Labels) -> Point:
    """Returns what identifies the runs with these labels."""
    return tuple(sorted((key, str(value)) for key, value in labels.items()))
