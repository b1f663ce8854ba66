"""One figure of a sweep or of several runs, with chosen axes: for a paper or a notebook.

::

    plot([Path("out/sweep")], x="distance", y="goodput", by="discipline").save(Path("fig.pdf"))

Columns of the usual two-column classes are 3.5 inches wide, and both 7.16 inches (IEEEtran).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airloom.errors import ScenarioError, writing
from airloom.host import output
from airloom.report import curves, grid, series, sweeps
from airloom.report.axis import Axis
from airloom.report.curves import Curve
from airloom.report.grid import Figure, Grid, Key, Observed
from airloom.report.style import COMMON
from airloom.report.together import names_of
from airloom.results import RunReader
from airloom.results.headline import chosen
from airloom.scenario import suggest
from airloom.units.figures import Scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

WIDTHS = {"column": 3.5, "page": 7.16}
"""Widths by word, in inches."""

FORMS = {"pdf": output.PDF, "pgf": output.PGF, "svg": output.SVG, "png": output.PNG, "eps": output.EPS}
"""Files by suffix."""

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""The colours of Okabe and Ito (2008) without yellow, which is too light for lines on paper: they differ
for readers with any deficiency of colour vision. Markers and dashes differ too, for prints in grey."""
_MARKERS = "os^Dv<>"
_DASHES = ("-", "--", "-.", ":")

STYLES: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "font.family": "serif",
        "font.size": 8.0,
        "axes.labelsize": 8.0,
        "legend.fontsize": 7.0,
        "xtick.labelsize": 7.0,
        "ytick.labelsize": 7.0,
        "axes.linewidth": 0.6,
        "lines.linewidth": 1.0,
        "lines.markersize": 3.5,
        "grid.linewidth": 0.4,
    },
    "screen": {
        "font.family": "sans-serif",
        "font.size": 11.0,
        "lines.linewidth": 1.8,
        "lines.markersize": 6.0,
    },
}
"""Settings of matplotlib by style."""


@dataclass(frozen=True)
class Plot:
    """A figure: lines over an axis. In a notebook it is its own picture."""

    x: Axis
    y: str
    lines: Mapping[str, Curve]
    """Curves by label, in the unit of `scale`."""
    by: str
    scale: Scale
    limits: tuple[float, float]
    style: str = "paper"
    width: float = WIDTHS["column"]

    def figure(self) -> Canvas:
        """Draws the figure with matplotlib; three quarters as high as it is wide up to one column."""
        import matplotlib
        from matplotlib.figure import Figure as Canvas

        settings: Any = {
            **COMMON,
            **STYLES[self.style],
            # Type 3 fonts are refused by publishers.
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
            "grid.color": "#d5d5d5",
            "pgf.rcfonts": False,
        }
        with matplotlib.rc_context(settings):
            canvas = Canvas(figsize=(self.width, min(0.75 * self.width, 3.2)), layout="constrained", dpi=200)
            axes = canvas.subplots()
            for number, (label, line) in enumerate(self.lines.items()):
                self._line(axes, number, label, line)
            curves.finish_axes(axes, self.x, self.limits)
            unit = f" ({self.scale.unit})" if self.scale.unit else ""
            axes.set_xlabel(f"{self.x.label} ({self.x.unit})" if self.x.unit else self.x.label)
            axes.set_ylabel(f"{self.y}{unit}")
            if len(self.lines) > 1:
                axes.legend(title=self.by or None, frameon=False)
        return canvas

    def _line(self, axes: Any, number: int, label: str, line: Curve) -> None:
        colour = _COLOURS[number % len(_COLOURS)]
        marker = _MARKERS[number % len(_MARKERS)]
        dashes = _DASHES[number % len(_DASHES)] if self.x.numeric else ""
        factor = self.scale.factor
        middle = line.mean / factor
        # The values of few repetitions are drawn as they are: their interval would be many times as wide.
        bars = np.where(line.interval, [middle - line.low / factor, line.high / factor - middle], 0.0)
        style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dashes}
        axes.errorbar(line.x, middle, yerr=bars, label=label, capsize=2.0, elinewidth=0.7, **style)
        for x, value in line.singles:
            axes.plot(x, value / factor, ".", color=colour, alpha=0.5, markersize=2.5)

    def save(self, path: Path) -> Path:
        """Writes a file whose suffix is one of :data:`FORMS`; raises an error of the scenario for another."""
        form = path.suffix.removeprefix(".")
        if form not in FORMS:
            raise ScenarioError(
                "plot.form",
                f"a figure is written as {', '.join(FORMS)}",
                where=str(path),
                cure="end the file's name with one of these: --out fig.pdf",
            )
        output.refuse_others(path, FORMS[form], "name another file with --out")
        with writing(path, "plot.unwritable", "the figure", "name another file with --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.figure().savefig(path, format=form, metadata={"Date": None} if form == "svg" else None)
        return path

    def _repr_png_(self) -> bytes:
        sink = io.BytesIO()
        self.figure().savefig(sink, format="png")
        return sink.getvalue()


def plot(
    folders: Sequence[Path | RunReader],
    *,
    y: str,
    x: str | None = None,
    by: str | None = None,
    where: Mapping[str, str] | None = None,
    style: str = "paper",
    width: str | float = "column",
) -> Plot:
    """Returns the figure of a metric over a swept path.

    ``x`` and ``by`` name a swept path by its label, the path, or the end of the path; without ``x`` the
    path with most numbers. ``y`` is ``METRIC`` or ``MEASUREMENT.METRIC``, a family such as ``rtt`` means
    its mean. ``where`` gives one value of each further swept path. Several folders are a further path,
    ``run``. ``width`` is a word of :data:`WIDTHS`, or inches. Raises an error of the scenario that names
    what there is.
    """
    if style not in STYLES:
        raise _unknown("style", style, STYLES)
    runs = [one if isinstance(one, RunReader) else RunReader(one) for one in folders]
    whole = grid.of_sweep(runs[0]) if len(runs) == 1 else grid.of_runs(runs, names_of(runs))
    axes = [axis for axis in whole.axes if len(axis.values) > 1]
    if not axes:
        raise ScenarioError(
            "plot.single",
            "these results have one point, and a figure has an axis",
            cure="give a sweep, or several folders; airloom report draws one run over its time",
        )
    main = _axis(axes, x) if x is not None else whole.main
    assert main is not None
    line = _axis([axis for axis in axes if axis is not main], by) if by is not None else None
    fixed = _fixed(axes, where or {}, [main, *([line] if line else [])])
    figures = _figures(whole, y)
    points = [
        case.key
        for case in whole.cases
        if all(case.key[whole.axes.index(axis)] == value for axis, value in fixed.items())
    ]
    data = _lines(whole, figures, points, main, line)
    scale = curves.scale_of(figures)
    title = _title(figures)
    inches = WIDTHS.get(width) if isinstance(width, str) else width
    if inches is None or not 1 <= inches <= 40:
        raise _unknown("width", str(width), [*WIDTHS, "inches from 1 to 40"])
    name = line.label if line else ""
    return Plot(
        main, title, data, name, scale, curves.limits_of(data.values(), scale, figures[0]), style, inches
    )


def _title(figures: Sequence[Figure]) -> str:
    """The quantity in words, with its statistic."""
    one = figures[0]
    known = series.title_of(one.family).lower()
    return f"{known}, {one.statistic.replace('avg', 'mean')}" if one.statistic else known


def _lines(
    whole: Grid, figures: Sequence[Figure], points: Sequence[Key], main: Axis, line: Axis | None
) -> dict[str, Curve]:
    place = whole.axes.index(main)
    positions = dict(zip(main.values, main.positions, strict=True))
    found: dict[str, Curve] = {}
    for figure in figures:
        lines: dict[str, list[tuple[float, Observed]]] = (
            {value: [] for value in line.values} if line else {"": []}
        )
        for key in points:
            if key in figure.at:
                value = key[whole.axes.index(line)] if line else ""
                lines[value].append((positions[key[place]], figure.at[key]))
        for value, seen in lines.items():
            if seen:
                words = (figure.name if len(figures) > 1 else "", value)
                found[", ".join(word for word in words if word) or figure.name] = Curve.of(seen)
    if not found:
        raise ScenarioError(
            "plot.empty", "no finished point has this figure", cure="see airloom report for what was measured"
        )
    return found


def _axis(axes: Sequence[Axis], word: str) -> Axis:
    """The swept path that a word names: its label, its path, or the last keys of its path."""
    exact = [axis for axis in axes if word in (axis.label, axis.path)]
    ends = exact or [axis for axis in axes if axis.path.endswith(f".{word}")]
    if len(ends) != 1:
        raise _unknown("axis", word, [axis.label for axis in ends or axes])
    return ends[0]


def _fixed(axes: Sequence[Axis], where: Mapping[str, str], used: Sequence[Axis]) -> dict[Axis, str]:
    rest = [axis for axis in axes if axis not in used]
    fixed: dict[Axis, str] = {}
    for word, value in where.items():
        axis = _axis(rest, word)
        if value not in axis.values:
            raise _unknown(f"value of {axis.label}", value, axis.values)
        fixed[axis] = value
    open_ones = [axis for axis in rest if axis not in fixed]
    if open_ones:
        one = open_ones[0]
        raise ScenarioError(
            "plot.axes",
            f"{', '.join(axis.label for axis in open_ones)} has several values too",
            cure=f"--by {one.label}, or --where {one.path}={one.values[0]!r}",
        )
    return fixed


def _figures(whole: Grid, word: str) -> list[Figure]:
    """The figures that a word names: a metric of all measurements that have it, or of one of them."""
    name, _, metric = word.rpartition(".")
    candidates = [one for one in whole.figures if not name or one.name == name]
    exact = [one for one in candidates if one.metric == metric]
    exact = exact or [one for one in whole.figures if one.metric == word]
    if not exact:
        family = [one for one in candidates if one.family == metric]
        exact = list(sweeps.Quantity("", "", "", tuple(family), ()).headline)
    if not exact:
        of_one = [one for one in whole.figures if one.name == word]
        metrics = chosen([one.metric for one in of_one]) or [one.metric for one in of_one]
        exact = [one for one in of_one if metrics and one.metric == metrics[0]]
    if not exact:
        raise _unknown("figure", word, [f"{one.name}.{one.metric}" for one in whole.figures])
    if len({one.dimension for one in exact}) > 1:
        raise ScenarioError(
            "plot.units",
            f"{word} is measured in several units",
            cure=f"name one: {', '.join(f'{one.name}.{one.metric}' for one in exact)}",
        )
    return exact


def _unknown(what: str, word: str, there: Iterable[str]) -> ScenarioError:
    known = list(dict.fromkeys(there))
    return ScenarioError(
        f"plot.{what.split()[0]}", f"{word!r} is no {what} here", cure=suggest.nearest(word, known)
    )
