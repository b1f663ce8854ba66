"""Small multiples: panels of one figure that share their axes, each with a few lines.

A figure has dimensions, such as measurements and swept paths. One dimension of at most
:data:`LINES` values becomes the lines of a panel; every combination of the others is a panel of its
own. Nothing is left out: more than :data:`PANELS` panels continue in another figure.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airloom.report.style import Drawing, Ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = 8
"""Most lines of a panel, limited by distinguishable colours."""

PANELS = 64
"""Most panels of a figure."""

SMALL = 16
"""Panels of a figure from which they are small."""

WORDS = 12
"""Most lines that the description of a figure puts in words."""

WIDE = 9.8
"""Width in inches of a figure that takes the full row."""

_INCH = 14
"""Characters of a label in one inch."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a figure: what it is, and its values. The name may be empty."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line(Generic[T]):
    """One line of a panel; equal lines of all panels have one number, which is their colour."""

    number: int
    label: str
    data: T


@dataclass(frozen=True, slots=True)
class Panel(Generic[T]):
    """One panel with its title and its lines."""

    title: str
    lines: tuple[Line[T], ...]


@dataclass(frozen=True, slots=True)
class Arrangement(Generic[T]):
    """The panels of a figure, and which dimensions tell apart the lines and the panels."""

    panels: tuple[Panel[T], ...]
    lines: str
    titles: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of places for lines that a panel has, drawn or not."""
        return 1 + max(line.number for panel in self.panels for line in panel.lines)


def arranged(dimensions: Sequence[Dimension], data: Mapping[tuple[str, ...], T]) -> Arrangement[T]:
    """Returns the panels of data that are keyed by one value of each dimension.

    The last dimension with 2 to :data:`LINES` values becomes the lines. Combinations without data
    are omitted, and so are dimensions of one value in titles.
    """
    several = [index for index, one in enumerate(dimensions) if len(one.values) > 1]
    inner = next((index for index in reversed(several) if len(dimensions[index].values) <= LINES), None)
    outer = [index for index in range(len(dimensions)) if index != inner]
    found = []
    for choice in itertools.product(*(dimensions[index].values for index in outer)):
        places = dict(zip(outer, choice, strict=True))
        lines = []
        for number, value in enumerate(dimensions[inner].values if inner is not None else ("",)):
            here = places | ({inner: value} if inner is not None else {})
            key = tuple(here[index] for index in range(len(dimensions)))
            if key in data:
                lines.append(Line(number, value, data[key]))
        if lines:
            words = [places[index] for index in outer if index in several]
            found.append(Panel(", ".join(word for word in words if word), tuple(lines)))
    name = dimensions[inner].name if inner is not None else ""
    titles = [dimensions[index].name for index in outer if index in several]
    return Arrangement(tuple(found), name, tuple(title for title in titles if title))


Draw = Callable[[Any, Panel[T], Ink], None]
"""Draws a panel into its axes."""


def drawings(
    arrangement: Arrangement[T],
    draw: Draw[T],
    *,
    name: str,
    title: str,
    x: str,
    y: str,
    caption: str,
    words: Callable[[T], str],
    finish: Callable[[Any], None] = lambda axes: None,
) -> Iterator[Drawing]:
    """Yields the figures of these panels, each with up to :data:`PANELS` of them.

    ``words`` describes the data of a line; ``finish`` sets the shared axes of a figure.
    """
    found = arrangement.panels
    if len(found) > 1 and arrangement.titles:
        caption = f"{caption} Panels: {', '.join(arrangement.titles)}.".strip()
    parts = [found[at : at + PANELS] for at in range(0, len(found), PANELS)]
    for number, part in enumerate(parts, 1):
        several = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
        described = [
            f"{', '.join(one for one in (panel.title, line.label) if one) or title}: {words(line.data)}"
            for panel in part
            for line in panel.lines
        ]
        more = len(described) - WORDS
        if more > 0:
            described = [*described[:WORDS], f"and {more} more lines"]
        sheet = _Sheet(part, arrangement.lines, draw, x, y, finish)
        yield Drawing(
            name=name if number == 1 else f"{name}-{number}",
            title=title + several,
            alt=f"{title}{several}. {'; '.join(described)}.",
            caption=caption,
            draw=sheet.draw,
            size=sheet.size,
            solved=not sheet.small,
        )


class _Sheet(Generic[T]):
    """The panels of one figure, in rows and columns."""

    def __init__(
        self,
        part: Sequence[Panel[T]],
        lines: str,
        draw: Draw[T],
        x: str,
        y: str,
        finish: Callable[[Any], None],
    ) -> None:
        self._panels = part
        self._line_name = lines
        self._draw = draw
        self._x, self._y = x, y
        self._finish = finish
        count = len(part)
        self._columns = _columns(count)
        self._rows = math.ceil(count / self._columns)
        self.small = self._columns > 4
        """Many small panels: their places are computed here, as solving for them takes a minute."""
        self._labels = {line.number: line.label for panel in part for line in panel.lines if line.label}
        width = 5.0 if count == 1 else WIDE
        widest = max((len(label) for label in self._labels.values()), default=0) + 6
        self._legend = max(1, min(len(self._labels), int(width * _INCH / max(1, widest))))
        rows = math.ceil(len(self._labels) / self._legend) + bool(self._line_name)
        legend = 0.2 * rows if len(self._labels) > 1 else 0.0
        self._titles = [self._wrapped(panel.title, width) for panel in part]
        more = max(title.count("\n") for title in self._titles)
        high = 2.5 if self._columns <= 2 else 2.1 if self._columns <= 4 else 1.15
        self._legend_height = legend
        self.size = (width, 0.45 + legend + self._rows * (high + 0.15 * more))

    def _wrapped(self, title: str, width: float) -> str:
        room = max(12, int(width / self._columns * (_INCH if self._columns <= 4 else 1.15 * _INCH)) - 4)
        return "\n".join(textwrap.wrap(title, room))

    def draw(self, figure: Figure, ink: Ink) -> None:
        small = self.small
        grid = figure.subplots(
            self._rows,
            self._columns,
            squeeze=False,
            gridspec_kw=self._margins() if small else None,
        )
        flat = list(grid.flat)
        for axes, panel, title in zip(flat, self._panels, self._titles, strict=False):
            self._draw(axes, panel, ink)
            if title:
                axes.set_title(title, fontsize=7 if small else 8.5, pad=3)
            axes.tick_params(length=0, labelsize=6 if small else 8.5)
        _share_axes(flat)
        for axes in flat[len(self._panels) :]:
            axes.set_axis_off()
            above = flat[flat.index(axes) - self._columns]
            above.tick_params(labelbottom=True)
        self._finish(flat[0])
        low, left = (0.12 / self.size[1], 0.12 / self.size[0]) if small else (0.01, 0.02)
        figure.supxlabel(
            self._x, fontsize=9, color=ink.faint, **({"y": low, "va": "bottom"} if small else {})
        )
        figure.supylabel(self._y, fontsize=9, color=ink.faint, **({"x": left, "ha": "left"} if small else {}))
        if len(self._labels) > 1:
            self._add_legend(figure, ink)

    def _margins(self) -> dict[str, float]:
        """Returns the places of small panels, as shares of the figure and of a panel."""
        width, height = self.size
        return {
            "left": 0.62 / width,
            "right": 1 - 0.1 / width,
            "bottom": 0.5 / height,
            "top": 1 - (0.25 + self._legend_height) / height,
            "wspace": 0.12,
            "hspace": 0.35,
        }

    def _add_legend(self, figure: Figure, ink: Ink) -> None:
        from matplotlib.lines import Line2D

        numbers = sorted(self._labels)
        figure.legend(
            [Line2D([], [], color=ink.series[number], marker="o", markersize=3.5) for number in numbers],
            [self._labels[number] for number in numbers],
            loc="upper left" if self.small else "outside upper left",
            ncols=self._legend,
            title=self._line_name or None,
            title_fontsize=8.5,
            alignment="left",
            borderaxespad=0.1,
            handlelength=1.4,
            columnspacing=1.4,
            labelcolor=ink.text,
        )


def _share_axes(panels: Sequence[Axes]) -> None:
    """Gives panels that are drawn the same axes, with labels at the outer ones.

    If they were shared from the start, each band that is drawn would scale all panels anew.
    """
    first, *others = panels
    for axes in others:
        axes.sharex(first)
        axes.sharey(first)
    first.autoscale_view()
    for axes in panels:
        axes.label_outer()


def _columns(count: int) -> int:
    """Returns the number of columns that leaves the fewest places empty, of those that fit."""
    if count <= 4:
        return count
    wide = (4, 3) if count <= SMALL else (6, 5) if count <= 36 else (8, 7)
    return min(wide, key=lambda columns: -count % columns)
