"""Runs as a grid: swept paths as axes, and every figure at every point with its repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airloom.report import series
from airloom.report.axis import Axis, axis
from airloom.report.series import Floats
from airloom.results import RunReader
from airloom.results.writer import label_of
from airloom.stats import mean
from airloom.units.figures import UNITS, Dimension

STATISTICS = ("min", "p50", "avg", "mean", "p95", "p99", "max")
"""Statistics in metric names; metrics that differ only in them form a family, as ``rtt_min``
and ``rtt_max``."""

FEWEST = 4
"""Repetitions from which the interval of their mean is drawn."""

Key = tuple[str, ...]
"""A point: one value for each axis."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Values of a figure at a point, one for each repetition that has it, in the base unit.

    ``half`` is half the width of the 95 % interval of their mean; nan without one.
    """

    values: tuple[float, ...]
    half: float

    @property
    def n(self) -> int:
        """Number of repetitions that have the figure."""
        return len(self.values)

    @property
    def drawn(self) -> tuple[float, float]:
        """Lowest and highest value of its mark in a figure: the interval, or the values themselves.

        The interval of two or three repetitions is many times as wide as their spread (Student's factor
        is 12.7 and 4.3), so these are drawn as they are. What was never negative has no negative mean.
        """
        if self.n < FEWEST and self.n > 1:
            return min(self.values), max(self.values)
        half = self.half if np.isfinite(self.half) else 0.0
        low = self.mean - half
        return (max(low, 0.0) if min(self.values) >= 0 else low), self.mean + half

    @property
    def mean(self) -> float:
        """Mean over the repetitions."""
        return sum(self.values) / len(self.values)


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of a measurement at every point where it was measured."""

    name: str
    metric: str
    tool: str
    dimension: Dimension
    at: Mapping[Key, Observed]

    @property
    def family(self) -> str:
        """The metric without its statistic."""
        stem, _, last = self.metric.rpartition("_")
        return stem if stem and last in STATISTICS else self.metric

    @property
    def statistic(self) -> str:
        """The statistic of the family; empty for a metric that has none."""
        return self.metric.removeprefix(self.family).lstrip("_")

    @property
    def title(self) -> str:
        """The statistic in words: of a metric that has none, its own name."""
        return self.statistic or self.metric.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Case:
    """A point of the grid with the runs of its repetitions."""

    key: Key
    runs: tuple[RunReader, ...]


Samples = dict[tuple[str, str], list[tuple[Floats, Floats]]]
"""Times in s and values in the base unit by measurement and metric, one pair for each repetition."""


class Grid:
    """Points of a sweep, repetitions, or several runs, with their figures in scenario order."""

    def __init__(self, axes: Sequence[Axis], cases: Sequence[Case]) -> None:
        self.axes = tuple(axes)
        self.cases = tuple(cases)
        self._samples: dict[Key, Samples] = {}

    @cached_property
    def main(self) -> Axis | None:
        """The axis of figures: the numeric one with most values, else the one with most values."""
        there = [axis for axis in self.axes if len(axis.values) > 1]
        return max(there, key=lambda axis: (axis.numeric, len(axis.values)), default=None)

    @cached_property
    def repetitions(self) -> int:
        """Largest number of runs of a point."""
        return max((len(case.runs) for case in self.cases), default=0)

    @cached_property
    def tools(self) -> dict[str, str]:
        """Tool of each measurement by name; empty if the scenario does not say."""
        found = {}
        for one in self._runs():
            written = one.scenario.get("measurements")
            for entry in written if isinstance(written, list) else ():
                if isinstance(entry, dict) and "name" in entry:
                    found[str(entry["name"])] = next((str(key) for key in entry if key != "name"), "")
        return found

    @cached_property
    def figures(self) -> list[Figure]:
        """Every figure, in the order of the scenario."""
        values: dict[tuple[str, str, str], dict[Key, list[float]]] = {}
        halves: dict[tuple[str, str, str, Key], float] = {}
        paths = {axis.path for axis in self.axes}
        order: dict[str, None] = {}
        for case in self.cases:
            for run in case.runs:
                for one in run.figures:
                    if one.mean is None or one.unit not in UNITS:
                        continue
                    more = [f"{key} {value}" for key, value in one.labels.items() if key not in paths]
                    name = ", ".join([one.name, *more])
                    order[name] = None
                    factor, dimension = UNITS[one.unit]
                    base = next(unit for unit, (_, known) in UNITS.items() if known == dimension)
                    key = (name, one.metric, base)
                    values.setdefault(key, {}).setdefault(case.key, []).append(one.mean * factor)
                    if one.ci95 is not None:
                        halves[(*key, case.key)] = one.ci95 * factor
        found = [
            Figure(
                name,
                metric,
                self.tools.get(name, ""),
                UNITS[base][1],
                {
                    point: _observed(seen, halves.get((name, metric, base, point)))
                    for point, seen in at.items()
                },
            )
            for (name, metric, base), at in values.items()
        ]
        place = {name: number for number, name in enumerate(order)}
        return sorted(found, key=lambda one: place[one.name])

    def chosen(self, most: int) -> tuple[Case, ...]:
        """Returns at most this many points, evenly spread, the first and the last included."""
        if len(self.cases) <= most:
            return self.cases
        places = np.unique(np.linspace(0, len(self.cases) - 1, most).round().astype(int))
        return tuple(self.cases[place] for place in places)

    def samples(self, case: Case) -> Samples:
        """Returns the samples of a point, except those that the runtime records about itself."""
        if case.key not in self._samples:
            self._samples[case.key] = _samples(case)
        return self._samples[case.key]

    def _runs(self) -> Iterator[RunReader]:
        for case in self.cases:
            yield from case.runs[:1]


def of_sweep(run: RunReader) -> Grid:
    """Returns the finished runs of a sweep, or of repetitions."""
    index = run.index
    axes = [
        axis(path, index.labels.get(path, path), [label_of(value) for value in values])
        for path, values in index.sweep.items()
    ]
    found: dict[Key, list[RunReader]] = {}
    for point, one in run.begun:
        if point.state == "finished":
            found.setdefault(tuple(label_of(point.values[each.path]) for each in axes), []).append(one)
    return Grid(axes, [Case(key, tuple(runs)) for key, runs in found.items()])


def of_runs(runs: Sequence[RunReader], names: Sequence[str]) -> Grid:
    """Returns several runs side by side: the first axis is the run.

    Runs with other swept paths have no common grid: it is empty then.
    """
    whole = [of_sweep(run) if run.is_sweep else Grid((), (Case((), (run,)),)) for run in runs]
    paths = [[each.path for each in one.axes] for one in whole]
    cases = []
    axes = [Axis("run", "run", tuple(names), tuple(map(float, range(len(names)))), False, "")]
    if any(one != paths[0] for one in paths):
        return Grid(axes, [])
    for place, one in enumerate(whole[0].axes):
        values = list(dict.fromkeys(value for each in whole for value in each.axes[place].values))
        axes.append(axis(one.path, one.label, values))
    for name, part in zip(names, whole, strict=True):
        cases += [Case((name, *case.key), case.runs) for case in part.cases]
    return Grid(axes, cases)


def _samples(case: Case) -> Samples:
    found: Samples = {}
    for run in case.runs:
        frame = run.samples()
        groups = frame.groupby(["measurement", "metric", "unit"], observed=True, sort=False)
        for (name, metric, unit), rows in groups if len(frame) else ():
            if name in series.BUILT_IN or unit not in UNITS:
                continue
            t = rows["t_ns"].to_numpy(np.float64) / 1e9
            order = np.argsort(t, kind="stable")
            values = rows["value"].to_numpy(np.float64) * UNITS[unit][0]
            found.setdefault((str(name), str(metric)), []).append((t[order], values[order]))
    return found


def _observed(values: Sequence[float], own: float | None) -> Observed:
    if len(values) > 1:
        return Observed(tuple(values), mean(values).half_width)
    return Observed(tuple(values), own if own is not None else float("nan"))
