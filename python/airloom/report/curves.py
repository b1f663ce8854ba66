"""Curves of a sweep: each figure over the swept values, with its 95 % confidence band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airloom.report import facets, series
from airloom.report.facets import Dimension, Panel
from airloom.report.grid import Axis, Figure, Grid, Observed
from airloom.report.series import Floats
from airloom.report.style import Drawing, Ink
from airloom.units.figures import PLAIN, RATE, Scale

DODGE = 0.09
"""Distance of the points of neighbouring lines at a category, in categories."""

TICKS = 12
"""Most labels on the axis of the swept values."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: positions, means, and half widths of the 95 % intervals (nan without one)."""

    x: Floats
    mean: Floats
    half: Floats

    @property
    def extent(self) -> tuple[float, float]:
        """Lowest and highest value, the band included."""
        half = np.nan_to_num(self.half, posinf=0.0)
        return float((self.mean - half).min()), float((self.mean + half).max())


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
            points.sort(key=lambda point: point[0])
            data[(one.name, one.statistic, *others)] = Curve(
                np.array([x for x, _ in points]),
                np.array([seen.mean for _, seen in points]),
                np.array([seen.half for _, seen in points]),
            )
    scale = scale_of(group)
    found = facets.arranged(dimensions(whole, group, [axis]), data)
    low = min(curve.extent[0] for curve in data.values()) / scale.factor
    high = max(curve.extent[1] for curve in data.values()) / scale.factor

    def draw(axes: Any, panel: Panel[Curve], ink: Ink) -> None:
        for line in panel.lines:
            shift = 0.0 if axis.numeric else DODGE * (line.number - (found.count - 1) / 2)
            _line(axes, line.data, scale, ink.series[line.number], axis.numeric, shift)

    def words(curve: Curve) -> str:
        first, last = curve.mean[0] / scale.factor, curve.mean[-1] / scale.factor
        return f"from {first:.4g} to {last:.4g} {scale.unit}".rstrip()

    with_band = any(np.isfinite(curve.half).any() for curve in data.values())
    return list(
        facets.drawings(
            found,
            draw,
            name=f"sweep-{name}",
            title=f"{title} against {axis.label}",
            x=axis.title,
            y=f"{title.lower()}, {scale.unit}" if scale.unit else title.lower(),
            caption=_caption(whole, axis, with_band),
            words=words,
            finish=lambda axes: _finish(axes, axis, bounds(low, high, group[0])),
        )
    )


def dimensions(whole: Grid, group: Sequence[Figure], without: Sequence[Axis] = ()) -> list[Dimension]:
    """Returns the dimensions of a figure: measurements, statistics, and the other axes of the grid."""
    return [
        Dimension("measurement", tuple(dict.fromkeys(one.name for one in group))),
        Dimension("statistic", tuple(dict.fromkeys(one.statistic for one in group))),
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


def _line(axes: Any, curve: Curve, scale: Scale, colour: str, numeric: bool, shift: float) -> None:
    x, mean = curve.x + shift, curve.mean / scale.factor
    half = np.nan_to_num(curve.half / scale.factor, posinf=0.0)
    few = len(x) <= 25
    if numeric and len(x) > 1:
        if half.any():
            axes.fill_between(x, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
        axes.plot(x, mean, color=colour, marker="o" if few else "", markersize=3, linewidth=1.3)
        return
    # Between categories there are no values: the line only leads the eye.
    axes.plot(x, mean, color=colour, linewidth=0.8, alpha=0.45)
    axes.errorbar(x, mean, yerr=half, color=colour, linestyle="", marker="o", markersize=3.5, capsize=2.5)


def _finish(axes: Any, axis: Axis, limits: tuple[float, float]) -> None:
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


def _caption(whole: Grid, axis: Axis, with_band: bool) -> str:
    if not with_band:
        return "One run a point: there is no confidence interval." if whole.repetitions == 1 else ""
    mark = "Band" if axis.numeric else "Bars"
    return f"{mark}: 95 % confidence interval of the mean over {whole.repetitions} repetitions."
