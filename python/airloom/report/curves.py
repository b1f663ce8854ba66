"""Curves of a sweep: each figure over the swept values, with its 95 % confidence band."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from airloom.report import facets, series
from airloom.report.axis import Axis
from airloom.report.facets import Dimension, Panel
from airloom.report.grid import FEWEST, Figure, Grid, Observed
from airloom.report.series import Floats
from airloom.report.style import Drawing, Ink
from airloom.units.figures import PLAIN, RATE, Scale

DODGE = 0.09
"""Distance of the points of neighbouring lines at a category, in categories."""

TICKS = 12
"""Most labels on the axis of the swept values."""

MISSING = 6
"""Most points without all values that a caption lists."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: positions, and what was observed there."""

    x: Floats
    seen: tuple[Observed, ...]

    @classmethod
    def of(cls, points: Iterable[tuple[float, Observed]]) -> Curve:
        """Returns the line through points in any order."""
        ordered = sorted(points, key=lambda point: point[0])
        return cls(np.array([x for x, _ in ordered]), tuple(seen for _, seen in ordered))

    @property
    def mean(self) -> Floats:
        """The means."""
        return np.array([one.mean for one in self.seen])

    @property
    def low(self) -> Floats:
        """Lower ends of the marks."""
        return np.array([one.drawn[0] for one in self.seen])

    @property
    def high(self) -> Floats:
        """Upper ends of the marks."""
        return np.array([one.drawn[1] for one in self.seen])

    @property
    def interval(self) -> npt.NDArray[np.bool_]:
        """Which points have an interval that is drawn."""
        return np.array([one.n not in range(2, FEWEST) and bool(np.isfinite(one.half)) for one in self.seen])

    @property
    def singles(self) -> list[tuple[float, float]]:
        """Position and value of the single values where too few repetitions have one for an interval."""
        points = zip(self.x.tolist(), self.seen, strict=True)
        return [(x, value) for x, one in points if 1 < one.n < FEWEST for value in one.values]


def of_family(whole: Grid, group: Sequence[Figure], title: str, name: str) -> list[Drawing]:
    """Returns the curves of a family of figures over the main axis of the grid."""
    axis = whole.main
    if axis is None or not group:
        return []
    place = whole.axes.index(axis)
    position = dict(zip(axis.values, axis.positions, strict=True))
    data: dict[tuple[str, ...], Curve] = {}
    for one in group:
        lines: dict[tuple[str, ...], list[tuple[float, Observed]]] = {}
        for key, seen in one.at.items():
            others = key[:place] + key[place + 1 :]
            lines.setdefault(others, []).append((position[key[place]], seen))
        for others, points in lines.items():
            data[(one.name, one.title, *others)] = Curve.of(points)
    scale = scale_of(group)
    found = facets.arranged(dimensions(whole, group, [axis]), data)
    limits = limits_of(data.values(), scale, group[0])

    def draw(axes: Any, panel: Panel[Curve], ink: Ink) -> None:
        for line in panel.lines:
            shift = 0.0 if axis.numeric else DODGE * (line.number - (found.count - 1) / 2)
            _line(axes, line.data, scale, ink.series[line.number], axis.numeric, shift)
            _counts(axes, line.data, scale, ink, whole.repetitions, shift)

    def words(curve: Curve) -> str:
        first, last = curve.mean[0] / scale.factor, curve.mean[-1] / scale.factor
        return f"from {first:.4g} to {last:.4g} {scale.unit}".rstrip()

    return list(
        facets.drawings(
            found,
            draw,
            name=f"sweep-{name}",
            title=f"{title} against {axis.label}",
            x=axis.title,
            y=f"{title.lower()}, {scale.unit}" if scale.unit else title.lower(),
            caption=_caption(whole, axis, group, list(data.values())),
            words=words,
            finish=lambda axes: finish_axes(axes, axis, limits),
        )
    )


def dimensions(whole: Grid, group: Sequence[Figure], without: Sequence[Axis] = ()) -> list[Dimension]:
    """Returns the dimensions of a figure: measurements, statistics, and the other axes of the grid."""
    return [
        Dimension("measurement", tuple(dict.fromkeys(one.name for one in group))),
        Dimension("statistic", tuple(dict.fromkeys(one.title for one in group))),
        *(Dimension(axis.label, axis.values) for axis in whole.axes if axis not in without),
    ]


def scale_of(group: Sequence[Figure]) -> Scale:
    """Returns the unit of a group of figures."""
    if is_share(group[0]):
        return Scale("%", 0.01)
    sizes = [abs(seen.mean) for one in group for seen in one.at.values()]
    return Scale.for_values(sizes, group[0].dimension)


def is_share(one: Figure) -> bool:
    """True if the figure is a loss, shown in percent."""
    return series.kind_of(one.metric, "1" if one.dimension == PLAIN else "s") == "loss"


def bounds(low: float, high: float, one: Figure) -> tuple[float, float]:
    """Returns the limits of an axis that holds all values and bands; rates and counts begin at 0."""
    if one.dimension in (PLAIN, RATE):
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return (low if low == 0 else low - room), high + room


def limits_of(data: Collection[Curve], scale: Scale, one: Figure) -> tuple[float, float]:
    """Returns the limits of an axis that holds these lines with their marks, in the unit of the scale."""
    low = min(float(curve.low.min()) for curve in data) / scale.factor
    high = max(float(curve.high.max()) for curve in data) / scale.factor
    return bounds(low, high, one)


def _line(axes: Any, curve: Curve, scale: Scale, colour: str, numeric: bool, shift: float) -> None:
    x, mean = curve.x + shift, curve.mean / scale.factor
    low, high = curve.low / scale.factor, curve.high / scale.factor
    single = [(at + shift, value / scale.factor) for at, value in curve.singles]
    if single:
        axes.plot(*zip(*single, strict=True), color=colour, linestyle="", marker="o", markersize=2, alpha=0.5)
    few = len(x) <= 25
    if numeric and len(x) > 1:
        there = curve.interval
        # The band breaks where a point has no interval; one between two of these has a bar.
        beside = np.append(there[1:], False) | np.insert(there[:-1], 0, False)
        alone = there & ~beside
        if (there & beside).any():
            band = (np.where(there, low, np.nan), np.where(there, high, np.nan))
            axes.fill_between(x, *band, color=colour, alpha=0.2, linewidth=0)
        if alone.any():
            axes.vlines(x[alone], low[alone], high[alone], color=colour, alpha=0.4, linewidth=1.0)
        axes.plot(x, mean, color=colour, marker="o" if few else "", markersize=3, linewidth=1.3)
        return
    # Between categories there are no values: the line only leads the eye.
    axes.plot(x, mean, color=colour, linewidth=0.8, alpha=0.45)
    bars = np.where(curve.interval, [mean - low, high - mean], 0.0)
    axes.errorbar(x, mean, yerr=bars, color=colour, linestyle="", marker="o", markersize=3.5, capsize=2.5)


def _counts(axes: Any, curve: Curve, scale: Scale, ink: Ink, repetitions: int, shift: float) -> None:
    """Writes the number of repetitions to the points that have fewer than the others."""
    for x, seen in zip(curve.x, curve.seen, strict=True):
        if seen.n < repetitions:
            axes.annotate(
                f"n = {seen.n}",
                (x + shift, seen.mean / scale.factor),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=7,
                color=ink.faint,
            )


def finish_axes(axes: Any, axis: Axis, limits: tuple[float, float]) -> None:
    """Sets scale, ticks and limits of the axes of a swept path."""
    if axis.wide:
        from airloom.report.plots import logarithmic

        logarithmic(axes, "x")
        if len(axes.figure.axes) > facets.SMALL:
            axes.minorticks_off()
    elif axis.numeric and len(axis.positions) <= TICKS // 2:
        axes.set_xticks(axis.positions, [f"{one:g}" for one in axis.positions])
    elif not axis.numeric:
        set_categories(axes, axis.values)
    axes.set_ylim(*limits)


def set_categories(axes: Any, values: Sequence[str]) -> None:
    """Labels an axis of categories; of very many, evenly spread ones."""
    step = -(-len(values) // TICKS)
    longest = max(len(value) for value in values)
    axes.set_xticks(range(0, len(values), step), values[::step])
    axes.set_xlim(-0.5, len(values) - 0.5)
    if longest * min(len(values), TICKS) > 28:
        axes.figure.autofmt_xdate(rotation=30, ha="right")


def _caption(whole: Grid, axis: Axis, group: Sequence[Figure], lines: Sequence[Curve]) -> str:
    told = [*_marks(whole, axis, lines), *_missing(whole, group)]
    if whole.repetitions == 1 and not any(line.interval.any() for line in lines):
        told.append("One run a point: there is no confidence interval.")
    return " ".join(told)


def _marks(whole: Grid, axis: Axis, lines: Sequence[Curve]) -> Iterator[str]:
    """Yields what bands, bars and dots are."""
    numbers = {seen.n for line in lines for seen in line.seen}
    if any(line.interval.any() for line in lines):
        mark = "Band" if axis.numeric else "Bars"
        over = f" over {whole.repetitions} repetitions" if whole.repetitions > 1 else ""
        fewer = ", of fewer where n says so" if over and min(numbers) < whole.repetitions else ""
        yield f"{mark}: 95 % confidence interval of the mean{over}{fewer}."
    few = sorted(numbers & set(range(2, FEWEST)))
    if few:
        yield f"Dots: the single values, where {' or '.join(map(str, few))} repetitions have one."


def _missing(whole: Grid, group: Sequence[Figure]) -> Iterator[str]:
    """Yields where repetitions have no value."""
    words = {}
    for case in whole.cases:
        least = min(one.at[case.key].n if case.key in one.at else 0 for one in group)
        if least < len(case.runs):
            words[", ".join(case.key)] = f"{least} of {len(case.runs)}"
    if words:
        shown = [f"{key}: {count}" if key else count for key, count in words.items()][:MISSING]
        more = f" and at {len(words) - len(shown)} more points" if len(words) > len(shown) else ""
        yield f"Not every run has a value: {'; '.join(shown)}{more}."
