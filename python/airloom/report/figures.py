"""Figures of an experiment: measured values with the ideal, a reference and published values.

An experiment describes its figures as data and saves them beside its results (``figures.json``).
Reports and exports draw them from this file::

    figures.save(folder, [
        Figure(
            name="net-rtt", title="Largest round-trip time", x_label="nodes in the chain",
            y_label="round-trip time", unit="ms", tolerance=0.02,
            lines=(
                Line(label="ideal", role="ideal", x=n, y=ideal),
                Line(label="Airloom", role="measured", x=n, y=measured, ci95=half_widths),
                Line(label="native", role="reference", x=n, y=native),
            ),
            marks=(Mark(x=3, label="UML: first deviation"),),
        ),
    ])
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from airloom.report.style import Drawing, Ink
from airloom.results import stored
from airloom.results.folder import disk
from airloom.results.result import SCHEMA, Part
from airloom.results.writer import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FILE = "figures.json"

Role = Literal["measured", "ideal", "reference", "published"]
_MARKERS: dict[Role, str] = {"measured": "o^v", "reference": "s<>", "published": "DPX"}
"""Matplotlib's markers: the first ones until the colours repeat, then the second ones."""


class Line(Part):
    """One line; ``y`` is null without a value, ``ci95`` is half the width of each interval."""

    label: str
    role: Role
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    ci95: tuple[float | None, ...] = ()

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len(self.y) != len(self.x) or (self.ci95 and len(self.ci95) != len(self.x)):
            raise ValueError(f"line {self.label}: {len(self.x)} positions, {len(self.y)} values")
        return self

    @property
    def is_empty(self) -> bool:
        """True without any value: it is not drawn, and the caption names it."""
        return all(y is None for y in self.y)


class Mark(Part):
    """A statement about one position, such as a published first deviation."""

    x: float
    label: str


class Figure(Part):
    """One figure. ``tolerance`` is the relative deviation that counts as faithful."""

    name: str
    title: str
    x_label: str
    y_label: str
    unit: str = ""
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    tolerance: float | None = None
    log_x: bool = False
    log_y: bool = False
    caption: str = ""
    categories: tuple[str, ...] = ()
    """Words at the positions 0, 1, ... of an axis that has no numbers."""

    @model_validator(mode="after")
    def _with_a_word_for_each_position(self) -> Self:
        if self.categories:
            places = {x for line in self.lines for x in line.x} | {mark.x for mark in self.marks}
            strange = sorted(x for x in places if x not in range(len(self.categories)))
            if strange:
                raise ValueError(f"figure {self.name}: no category for the position {strange[0]:g}")
        return self

    def drawing(self) -> Drawing:
        """Returns the figure, ready to be drawn in either ink."""
        words = [_in_words(line, self.unit, self._at) for line in self.lines]
        words += [f"{mark.label} at {self._at(mark.x)}" for mark in self.marks]
        caption = self.caption
        if empty := [line.label for line in self.lines if line.is_empty]:
            caption = f"{caption} Without values: {'; '.join(empty)}.".strip()
        if self.tolerance is not None and self._ideal() is not None:
            caption = f"{caption} Grey: within {100 * self.tolerance:g} % of the ideal.".strip()
            words += [
                f"{line.label} is within {100 * self.tolerance:g} % of the ideal {_up_to(last)}"
                for line, last in self._faithful()
            ]
        return Drawing(
            name=f"figure-{self.name}",
            title=self.title,
            alt=f"{self.title}: {self.y_label} against {self.x_label}. {'; '.join(words)}.",
            caption=caption,
            draw=self._draw,
            size=(9.8, 4.4),
        )

    def _at(self, x: float) -> str:
        return self.categories[int(x)] if self.categories else f"{x:g}"

    def _ideal(self) -> Line | None:
        return next((line for line in self.lines if line.role == "ideal"), None)

    def _faithful(self) -> list[tuple[Line, float | None]]:
        ideal = self._ideal()
        if ideal is None or self.tolerance is None:
            return []
        measured = [line for line in self.lines if line.role == "measured"]
        return [(line, last_within(line, ideal, self.tolerance)) for line in measured]

    def _draw(self, canvas: Canvas, ink: Ink) -> None:
        from airloom.report.curves import set_categories
        from airloom.report.plots import finish, logarithmic

        axes = canvas.add_subplot()
        ideal = self._ideal()
        if ideal is not None and self.tolerance is not None:
            _tolerance_band(axes, ideal, self.tolerance, ink)
        coloured = [line for line in self.lines if line.role != "ideal"]
        drawn = [line for line in self.lines if not line.is_empty]
        for line in drawn:
            joined = not self.categories
            _draw_line(axes, line, coloured.index(line) if line in coloured else 0, ink, joined=joined)
        if self.categories:
            set_categories(axes, self.categories)
        if self.log_x:
            logarithmic(axes, "x")
        if self.log_y:
            logarithmic(axes, "y")
        else:
            low, high = _extent(self.lines)
            axes.set_ylim(1.08 * low, 1.08 * high)
            if low < 0:
                axes.axhline(0, color=ink.faint, linewidth=1.0)
        _draw_marks(axes, self.marks, ink)
        unit = f", {self.unit}" if self.unit not in ("", "1") else ""
        # A single line needs a label too: the title does not name the measurement.
        lines = max(2, len(drawn)) if drawn else 0
        finish(axes, self.x_label, f"{self.y_label}{unit}", ink, lines)


class _Stored(Part):
    """Contents of ``figures.json``."""

    figures: tuple[Figure, ...]


def save(folder: Path, figures: Sequence[Figure]) -> Path:
    """Writes the figures of an experiment beside its results."""
    path = folder / FILE
    raw = {"schema": SCHEMA, "figures": [one.model_dump(mode="json") for one in figures]}
    with disk(folder):
        write_atomically(path, json.dumps(raw, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def load(folder: Path) -> list[Figure]:
    """Returns the figures of an experiment; empty without any."""
    path = folder / FILE
    try:
        return list(stored.model(path, _Stored).figures)
    except FileNotFoundError:
        return []


def last_within(line: Line, ideal: Line, tolerance: float) -> float | None:
    """Returns the largest position up to which all values are within ``tolerance`` of the ideal.

    None if the first value is outside. Positions without an ideal value are skipped.
    """
    known = dict(zip(ideal.x, ideal.y, strict=True))
    last = None
    for x, y in sorted(zip(line.x, line.y, strict=True), key=lambda point: point[0]):
        aim = known.get(x)
        if aim is None:
            continue
        if y is None or abs(y - aim) > tolerance * abs(aim):
            return last
        last = x
    return last


def _in_words(line: Line, unit: str, at: Callable[[float], str]) -> str:
    known = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y is not None]
    if not known:
        return f"{line.label}: no values"
    (first, low), (last, high) = known[0], known[-1]
    unit = "" if unit == "1" else unit
    return f"{line.label}: {low:.4g} {unit} at {at(first)}, {high:.4g} {unit} at {at(last)}".replace(
        "  ", " "
    )


def _up_to(last: float | None) -> str:
    return "nowhere" if last is None else f"up to {last:g}"


def _tolerance_band(axes: Axes, ideal: Line, tolerance: float, ink: Ink) -> None:
    points = [(x, y) for x, y in zip(ideal.x, ideal.y, strict=True) if y is not None]
    x = [x for x, _ in points]
    low = [y * (1 - tolerance) for _, y in points]
    high = [y * (1 + tolerance) for _, y in points]
    axes.fill_between(x, low, high, color=ink.faint, alpha=0.22, linewidth=0)


def look(role: Role, number: int, colours: Sequence[str]) -> tuple[str, str]:
    """Returns colour and marker of a line; where the colours repeat, the marker changes."""
    again, which = divmod(number, len(colours))
    markers = _MARKERS[role]
    return colours[which], markers[again % len(markers)]


def _draw_line(axes: Axes, line: Line, number: int, ink: Ink, *, joined: bool) -> None:
    """Draws a line; without ``joined`` only its points, since nothing is between categories."""
    y = [math.nan if value is None else value for value in line.y]
    if line.role == "ideal":
        axes.plot(line.x, y, color=ink.text, linewidth=1.2, linestyle=(0, (5, 3)), label=line.label)
        return
    colour, marker = look(line.role, number, ink.series)
    if any(half for half in line.ci95):
        half = [value or 0.0 for value in line.ci95]
        axes.errorbar(line.x, y, yerr=half, color=colour, linestyle="", capsize=3, linewidth=1.0)
    axes.plot(
        line.x,
        y,
        color=colour,
        marker=marker,
        markersize=4.5,
        markerfacecolor=colour if line.role == "measured" else ink.paper,
        linestyle="" if line.role == "published" or not joined else "-",
        linewidth=1.6 if line.role == "measured" else 1.1,
        label=line.label,
        clip_on=False,  # a marker on an axis stays whole; none is outside
    )


BEYOND = 0.5
"""Share of the range of the values by which intervals may widen an axis; longer ones leave the figure."""


def _extent(lines: Sequence[Line]) -> tuple[float, float]:
    """Returns the axis range: that of the values and 0, widened for intervals by a half at most."""
    low = high = least = most = 0.0
    for line in lines:
        for y, half in zip(line.y, line.ci95 or (None,) * len(line.y), strict=True):
            if y is not None:
                low, high = min(low, y), max(high, y)
                most = max(most, y + (half or 0.0))
                least = min(least, y - (half or 0.0)) if y < 0 else least
    room = BEYOND * (high - low)
    low, high = max(low - room, min(low, least)), min(high + room, max(high, most))
    return (low, high) if high > low else (0.0, 1.0)


def _draw_marks(axes: Axes, marks: Sequence[Mark], ink: Ink) -> None:
    import numpy as np

    drawn = [np.array(line.get_xydata(), dtype=np.float64) for line in axes.get_lines()]
    for mark in marks:
        axes.axvline(mark.x, color=ink.faint, linewidth=1.0, linestyle=(0, (1, 2)))
        # The text stands below high lines and above low ones.
        low, high = axes.get_ylim()
        beside = [float(np.interp(mark.x, line[:, 0], line[:, 1])) for line in drawn if len(line)]
        above = not beside or np.nanmean(beside) < (low + high) / 2
        axes.annotate(
            mark.label,
            (mark.x, 0.97 if above else 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            rotation=90,
            fontsize=7.5,
            va="top" if above else "bottom",
            color=ink.faint,
        )
