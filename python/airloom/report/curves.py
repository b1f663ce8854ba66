"""Curves of a sweep: each figure over the swept value, with its confidence band."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airloom.report import series
from airloom.report.plots import finish
from airloom.report.style import Drawing, Ink
from airloom.results import Measurement, RunReader
from airloom.units.figures import PLAIN, UNITS, Scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = 8

_STATISTICS = ("min", "p50", "avg", "mean", "p95", "p99", "max")
"""Statistics in metric names; metrics that differ only in them form a family, as ``rtt_min``
and ``rtt_max``."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions of the swept values: numeric values, otherwise their index."""

    path: str
    values: tuple[str, ...]
    positions: tuple[float, ...]
    numeric: bool
    unit: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: positions, means and half widths of the 95 % intervals (nan without one)."""

    label: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    ci95: tuple[float, ...]


def of_sweep(run: RunReader) -> list[Drawing]:
    """Returns the curves of a sweep; of several swept paths, over the one with most values."""
    if not run.is_sweep or not run.index.sweep:
        return []
    path = max(run.index.sweep, key=lambda one: len(run.index.sweep[one]))
    axis = _axis(path, [_text(value) for value in run.index.sweep[path]])
    drawings = []
    for (name, family), group in _families(run.result.measurements).items():
        drawing = _drawing(axis, name, family, group)
        if drawing is not None:
            drawings.append(drawing)
    return drawings


def _families(found: Sequence[Measurement]) -> dict[tuple[str, str], list[Measurement]]:
    """Returns the figures by measurement and family.

    If a measurement has a family named like its kind (``rtt_mean``, ``rtt_max``...), its other
    metrics of that kind (``rtt_first``) appear only in tables.
    """
    everything: dict[tuple[str, str], list[Measurement]] = {}
    for one in found:
        stem, _, last = one.metric.rpartition("_")
        family = stem if stem and last in _STATISTICS else one.metric
        everything.setdefault((one.name, family), []).append(one)
    groups = {}
    for (name, family), group in everything.items():
        kind = series.kind_of(group[0].metric, group[0].unit)
        if kind in series.ORDER:
            chosen = family == kind or (name, kind) not in everything
        else:
            chosen = len(everything) <= LINES
        if chosen:
            groups[(name, family)] = group
    return dict(
        sorted(groups.items(), key=lambda item: series.rank_of(series.kind_of(item[0][1], item[1][0].unit)))
    )


def _drawing(axis: Axis, name: str, family: str, group: list[Measurement]) -> Drawing | None:
    units = {one.unit for one in group}
    known = [one for one in group if one.unit in UNITS and one.mean is not None]
    if not known or len({UNITS[unit][1] for unit in units if unit in UNITS}) != 1:
        return None
    dimension = UNITS[known[0].unit][1]
    curves = _curves(axis, family, known)
    curves = [curve for curve in curves if len(curve.x) >= 1][:LINES]
    if max(len(curve.x) for curve in curves) < 2:
        return None
    kind = series.kind_of(family, known[0].unit)
    sizes = [abs(mean) for curve in curves for mean in curve.mean]
    scale = Scale("%", 0.01) if kind == "loss" else Scale.for_values(sizes, dimension)
    title = series.title_of(kind if family == kind else family)

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        for number, curve in enumerate(curves):
            colour = ink.series[number]
            mean = np.array(curve.mean) / scale.factor
            half = np.nan_to_num(np.array(curve.ci95) / scale.factor)
            axes.fill_between(curve.x, mean - half, mean + half, color=colour, alpha=0.22, linewidth=0)
            axes.plot(curve.x, mean, color=colour, marker="o", markersize=3.5, label=curve.label)
        if not axis.numeric:
            axes.set_xticks(axis.positions, axis.values)
        elif len(axis.positions) <= 12:
            axes.set_xticks(axis.positions, [f"{one:g}" for one in axis.positions])
        finish(
            axes,
            f"{axis.path}, {axis.unit}" if axis.unit else axis.path,
            f"{title.lower()}, {scale.unit}" if scale.unit else title.lower(),
            ink,
            len(curves),
        )
        axes.margins(y=0.12)
        if kind in ("throughput", "loss") or dimension == PLAIN:
            axes.set_ylim(0, 1.12 * max(sizes) / scale.factor or 1)

    words = []
    for curve in curves:
        first, last = curve.mean[0] / scale.factor, curve.mean[-1] / scale.factor
        words.append(f"{curve.label}: from {first:.4g} to {last:.4g} {scale.unit}".rstrip())
    with_band = any(np.isfinite(half) for curve in curves for half in curve.ci95)
    n = max(one.n for one in known)
    return Drawing(
        name=f"sweep-{name}-{family}",
        title=f"{name}: {title.lower()} against {axis.path}",
        alt=f"{title} of {name} against {axis.path}. {'; '.join(words)}.",
        caption=f"Band: 95 % confidence interval of the mean, n up to {n}." if with_band else "",
        draw=draw,
    )


def _curves(axis: Axis, family: str, known: list[Measurement]) -> list[Curve]:
    lines: dict[str, list[tuple[float, float, float]]] = {}
    place = dict(zip(axis.values, axis.positions, strict=True))
    families = {one.metric for one in known}
    for one in known:
        value = one.labels.get(axis.path)
        if value not in place or one.mean is None:
            continue
        factor = UNITS[one.unit][0]
        parts = []
        if len(families) > 1 or one.metric != family:
            parts.append(one.metric.removeprefix(family + "_").replace("_", " "))
        parts += [f"{label} {text}" for label, text in one.labels.items() if label != axis.path]
        half = one.ci95 * factor if one.ci95 is not None else float("nan")
        lines.setdefault(", ".join(parts) or one.name, []).append((place[value], one.mean * factor, half))
    curves = []
    for label, found in lines.items():
        found.sort(key=lambda point: point[0])
        xs, means, halves = (tuple(point[column] for point in found) for column in range(3))
        curves.append(Curve(label, xs, means, halves))
    return sorted(curves, key=lambda curve: -max(curve.mean))


def _axis(path: str, values: list[str]) -> Axis:
    figures: list[float] = []
    units: set[str] = set()
    for value in values:
        digits, _, unit = value.strip().partition(" ")
        try:
            figures.append(float(digits) * UNITS[unit][0])
        except (ValueError, KeyError):
            return Axis(path, tuple(values), tuple(float(one) for one in range(len(values))), False, "")
        units.add(unit)
    dimensions = {UNITS[unit][1] for unit in units}
    if len(dimensions) != 1:
        return Axis(path, tuple(values), tuple(float(one) for one in range(len(values))), False, "")
    scale = Scale.for_values(figures, dimensions.pop())
    positions = tuple(figure / scale.factor for figure in figures)
    return Axis(path, tuple(values), positions, True, scale.unit)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
