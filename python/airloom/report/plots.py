"""Plots over time and over samples: series, distributions, lateness, the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from airloom.report import series
from airloom.report.series import Series
from airloom.report.style import Drawing, Ink
from airloom.results import RunReader
from airloom.results.details import Bin, Happening
from airloom.units.figures import Scale

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = 8
"""Maximum number of lines in a plot, limited by distinguishable colours."""

HAPPENINGS = 6
"""Maximum number of events in a caption."""

NEAR = 0.1
"""How far before and after the samples an event is marked, as a share of their time."""


def over_time(found: Sequence[Series], happenings: Sequence[Happening] = ()) -> list[Drawing]:
    """Returns one plot for each kind of series, with markers for the events of the run."""
    drawings = []
    for kind in sorted({one.kind for one in found}, key=series.rank_of):
        group = [one for one in found if one.kind == kind]
        drawings.append(_over_time(kind, group[:LINES], len(group), happenings))
    return drawings


def _over_time(kind: str, group: list[Series], there: int, happenings: Sequence[Happening]) -> Drawing:
    envelopes = [series.envelope(one.t_ns, one.values) for one in group]
    scale = _scale(group)
    title = series.title_of(kind)
    begin = min(float(shape.t_s[0]) for shape in envelopes)
    end = max(float(shape.t_s[-1]) for shape in envelopes)
    # A failure often ends the data. What lies further away would only make the axis longer.
    near = NEAR * (end - begin)
    around = [one for one in happenings if begin - near <= one.t_ns / 1e9 <= end + near]
    told = most_important(around)
    times = [one.t_ns / 1e9 for one in told]
    first, last = min([begin, *times]), max([end, *times])

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        for number, (line, shape) in enumerate(zip(group, envelopes, strict=True)):
            colour = ink.series[number]
            whole = shape.broken()
            if shape.joined:
                low, high = whole.low / scale.factor, whole.high / scale.factor
                axes.fill_between(whole.t_s, low, high, color=colour, alpha=0.22, linewidth=0)
            few = len(shape.t_s) <= 60
            axes.plot(
                whole.t_s,
                whole.mean / scale.factor,
                color=colour,
                label=line.label,
                marker="o" if few else "",
                markersize=3,
                linewidth=1.5 if few or shape.joined else 1.0,
                drawstyle="steps-mid" if kind == "loss" else "default",
            )
            if not few and shape.alone.any():
                alone = shape.mean[shape.alone] / scale.factor
                axes.plot(shape.t_s[shape.alone], alone, color=colour, marker="o", markersize=3, linestyle="")
        for one in told:
            axes.axvline(one.t_ns / 1e9, color=ink.faint, linewidth=0.8, linestyle=(0, (2, 2)))
        finish(axes, "time, s", _axis(title, scale), ink, len(group))
        if last > first:
            edge = 0.02 * (last - first)
            axes.set_xlim(first - edge, last + edge)
        if kind in ("throughput", "loss"):
            axes.set_ylim(bottom=0)

    words = [f"{one.label}: {_range(one, scale)}" for one in group]
    caption = _joined_note([(one.label, shape) for one, shape in zip(group, envelopes, strict=True)])
    if there > len(group):
        caption += f" {there - len(group)} more series are in samples.parquet."
    caption += _gaps_note([(one.label, shape) for one, shape in zip(group, envelopes, strict=True)])
    if told:
        listed = "; ".join(f"{one.what} at {one.t_ns / 1e9:.4g} s" for one in told)
        caption += f" Dashed: {listed}."
        more = len(marked(around)) - len(told)
        if more:
            caption += f" {more} more are listed under Events."
    return Drawing(
        name=f"time-{kind}",
        title=f"{title} over time",
        alt=f"{title} over time. {'; '.join(words)}.",
        caption=caption.strip(),
        draw=draw,
    )


_IMPORTANCE = ("failure", "radio", "event", "controller")


def marked(happenings: Sequence[Happening]) -> list[Happening]:
    """Returns what a plot can mark: not the starts and ends of programs, which every run has."""
    return [one for one in happenings if one.kind in _IMPORTANCE]


def most_important(happenings: Sequence[Happening]) -> list[Happening]:
    """Returns what a plot marks, in order of time: at most ``HAPPENINGS``.

    Failures come first, then roams of stations, events of the scenario, and controllers.
    """
    ranked = sorted(marked(happenings), key=lambda one: (_IMPORTANCE.index(one.kind), one.t_ns))
    return sorted(ranked[:HAPPENINGS], key=lambda one: one.t_ns)


def distributions(found: Sequence[Series]) -> list[Drawing]:
    """Returns the empirical distribution of each kind with enough samples."""
    drawings = []
    for kind in sorted({one.kind for one in found}, key=series.rank_of):
        group = [one for one in found if one.kind == kind and len(one.values) >= 10 and kind in series.ORDER]
        if group and kind != "loss":
            drawings.append(_distribution(kind, group[:LINES]))
    return drawings


def _distribution(kind: str, group: list[Series]) -> Drawing:
    curves = [series.distribution(one.values) for one in group]
    scale = _scale(group)
    lowest = min(float(values[0]) for values, _ in curves)
    highest = max(float(values[-1]) for values, _ in curves)
    wide = kind != "throughput" and lowest > 0 and highest / lowest > 50
    title = series.title_of(kind)

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        for number, (one, (values, share)) in enumerate(zip(group, curves, strict=True)):
            edge = np.concatenate([values[:1], values]) / scale.factor
            height = np.concatenate([[0.0], share])
            axes.step(edge, height, where="post", color=ink.series[number], label=one.label)
        if wide:
            logarithmic(axes, "x")
        finish(axes, _axis(title, scale), "share of samples", ink, len(group))
        axes.set_ylim(0, 1.02)

    many = [f"{len(one.values):,}" for one in group if len(one.values) > series.COLUMNS]
    caption = (
        f"Of {' and '.join(many)} samples {series.COLUMNS:,} order statistics are drawn, "
        "the smallest and the largest included."
        if many
        else ""
    )
    words = []
    for one in group:
        p50, p99 = np.quantile(one.values, [0.5, 0.99]) / scale.factor
        words.append(f"{one.label}: median {p50:.4g} {scale.unit}, 99 % below {p99:.4g} {scale.unit}")
    return Drawing(
        name=f"distribution-{kind}",
        title=f"{title}, distribution",
        alt=f"Empirical distribution of {title.lower()}. {'; '.join(words)}.",
        caption=caption,
        draw=draw,
    )


def lateness(run: RunReader) -> Drawing | None:
    """Returns the histogram of the lateness of frame deliveries by the host."""
    bins = [one for one in run.details.lateness if one.count]
    if not bins:
        return None
    quantiles = run.result.ledger.lateness_us
    marks = (("median", quantiles.p50), ("99 %", quantiles.p99), ("99.9 %", quantiles.p999))
    count = sum(one.count for one in bins)

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        edges, height = _bars(bins)
        axes.bar(edges[:-1], height, width=np.diff(edges), align="edge", color=ink.series[0], linewidth=0)
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7, top=float(height.max()) * 60)
        logarithmic(axes, "x")
        for name, value in marks:
            if value > 0:
                axes.axvline(value, color=ink.text, linewidth=0.9, linestyle=(0, (4, 3)))
                axes.annotate(
                    name,
                    (value, 0.97),
                    xycoords=("data", "axes fraction"),
                    xytext=(3, 0),
                    textcoords="offset points",
                    fontsize=7.5,
                    va="top",
                    rotation=90,
                    color=ink.faint,
                )
        finish(axes, "lateness, us", "frames", ink, 0)

    return Drawing(
        name="lateness",
        title="Lateness of deliveries",
        alt=f"Histogram of lateness over {count:,} frames: median {quantiles.p50:.4g} us, "
        f"99 % below {quantiles.p99:.4g} us, largest {quantiles.max:.4g} us.",
        caption=f"Wall time minus model time of {count:,} frames; both axes are logarithmic.",
        draw=draw,
    )


def _bars(bins: Sequence[Bin], bars: int = 48) -> tuple[series.Floats, series.Floats]:
    """Returns the counts in equal bars on a logarithmic axis: edges in microseconds, frames.

    The first bar contains everything below 0.1 us.
    """
    middles = np.array([max((one.from_ns + one.to_ns) / 2, 100.0) for one in bins]) / 1000
    counts = np.array([one.count for one in bins], dtype=np.float64)
    edges = np.geomspace(0.9 * float(middles.min()), 1.1 * float(middles.max()), bars + 1)
    height, _ = np.histogram(middles, bins=edges, weights=counts)
    return edges, height


_HOST = (
    ("host", "cpu_pressure", "processor pressure"),
    ("host", "steal", "stolen by hypervisor"),
    ("host", "cpu", "processors in use"),
    ("engine", "busy", "engine thread in use"),
)


def host(frame: pd.DataFrame) -> Drawing | None:
    """Returns pressure, steal and use of the processors over time."""
    found = [(label, series.built_in(frame, name, metric)) for name, metric, label in _HOST]
    found = [(label, rows) for label, rows in found if len(rows)]
    if not found:
        return None

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        for number, (label, rows) in enumerate(found):
            shape = series.envelope(rows["t_ns"].to_numpy(), rows["value"].to_numpy(float))
            colour = ink.series[number]
            if shape.joined:
                axes.fill_between(
                    shape.t_s, 100 * shape.low, 100 * shape.high, color=colour, alpha=0.22, linewidth=0
                )
            axes.plot(shape.t_s, 100 * shape.mean, color=colour, label=label)
        finish(axes, "time, s", "share of time, %", ink, len(found) + 1)
        axes.set_ylim(bottom=0)

    words = [f"{label}: largest {100 * float(rows['value'].max()):.3g} %" for label, rows in found]
    return Drawing(
        name="host",
        title="Load of this machine",
        alt=f"Load of the hosting machine over time. {'; '.join(words)}.",
        caption="",
        draw=draw,
    )


def processors(run: RunReader, most: int = 24) -> Drawing | None:
    """Returns the processor time of the nodes that used most."""
    used = sorted(run.details.nodes, key=lambda one: -(one.user_s + one.system_s))
    used = [one for one in used if one.user_s + one.system_s + one.wait_s > 0]
    if not used:
        return None
    shown = used[:most]

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        left = np.zeros(len(shown))
        parts: tuple[tuple[str, list[float], str, float], ...] = (
            ("user", [one.user_s for one in shown], ink.series[0], 1.0),
            ("system", [one.system_s for one in shown], ink.series[1], 1.0),
            ("waited for a processor", [one.wait_s for one in shown], ink.bad, 0.45),
        )
        names = [one.node for one in shown]
        for label, seconds, colour, alpha in parts:
            axes.barh(names, seconds, left=left, color=colour, alpha=alpha, label=label, height=0.7)
            left += np.array(seconds)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        finish(axes, "processor time, s", "", ink, 3)

    more = f"The {most} of {len(used)} nodes that used most." if len(used) > most else ""
    top = shown[0]
    return Drawing(
        name="processors",
        title="Processor time by node",
        alt=f"Processor time of {len(shown)} nodes; most: {top.node} with {top.user_s:.3g} s user and "
        f"{top.system_s:.3g} s system.",
        caption=more,
        draw=draw,
        size=(5.0, 1.1 + 0.2 * len(shown)),
    )


def losses(run: RunReader) -> Drawing | None:
    """Returns lost frames by cause; emulated and host loss in different colours."""
    ledger = run.result.ledger
    rows = [(reason.replace("-", " "), frames, False) for reason, frames in ledger.dropped.items() if frames]
    rows.sort(key=lambda row: -row[1])
    if ledger.host_lost:
        rows.insert(0, ("lost by this machine", ledger.host_lost, True))
    if not rows:
        return None

    def draw(figure: Figure, ink: Ink) -> None:
        axes = figure.add_subplot()
        names = [name for name, _, _ in rows]
        frames = [count for _, count, _ in rows]
        colours = [ink.bad if host else ink.series[0] for _, _, host in rows]
        bars = axes.barh(names, frames, color=colours, height=0.5)
        axes.bar_label(bars, [f"{count:,}" for count in frames], padding=4, fontsize=8.5, color=ink.text)
        axes.grid(axis="y", visible=False)
        axes.set_xlim(left=0, right=max(frames) * 1.15)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.locator_params(axis="x", nbins=5)
        finish(axes, "frames", "", ink, 0)

    words = "; ".join(f"{name}: {frames:,}" for name, frames, _ in rows)
    return Drawing(
        name="losses",
        title="Lost frames by cause",
        alt=f"Lost frames by cause. {words}.",
        caption="Red: lost by this machine. Blue: lost because the emulated network says so.",
        draw=draw,
        size=(5.0, 0.85 + 0.32 * len(rows)),
    )


def _scale(group: Sequence[Series]) -> Scale:
    if group[0].kind == "loss":
        return Scale("%", 0.01)
    dimension = group[0].dimension
    # The 99th percentile, so that one outlier does not compress the scale.
    sizes = [float(np.quantile(np.abs(one.values), 0.99)) for one in group if len(one.values)]
    return Scale.for_values(sizes, dimension)


def _axis(title: str, scale: Scale) -> str:
    return f"{title.lower()}, {scale.unit}" if scale.unit else title.lower()


def _range(one: Series, scale: Scale) -> str:
    low, middle, high = (float(f(one.values)) / scale.factor for f in (np.min, np.mean, np.max))
    unit = f" {scale.unit}" if scale.unit else ""
    return f"{low:.4g} to {high:.4g}{unit}, mean {middle:.4g}{unit}"


def _joined_note(shapes: Sequence[tuple[str, series.Envelope]]) -> str:
    joined = [shape for _, shape in shapes if shape.joined]
    if not joined:
        return ""
    counts = " and ".join(f"{shape.samples:,}" for shape in joined)
    return (
        f"{counts} samples are joined to {series.COLUMNS:,} intervals: the line is their mean, "
        "the band reaches from the smallest to the largest, so no extreme is hidden."
    )


def _gaps_note(shapes: Sequence[tuple[str, series.Envelope]]) -> str:
    """Returns the longest gap of each series that has one, in words."""
    said = []
    for label, shape in shapes:
        gaps = shape.gaps
        if not gaps:
            continue
        start, end = max(gaps, key=lambda gap: gap[1] - gap[0])
        others = f" and {len(gaps) - 1} shorter gaps" if len(gaps) > 1 else ""
        said.append(f"{label} has none from {start:.4g} s to {end:.4g} s{others}")
    return f" Broken lines have no samples there: {'; '.join(said)}." if said else ""


def logarithmic(axes: Axes, which: str) -> None:
    """Makes an axis, ``x`` or ``y``, logarithmic with readable labels."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    if which == "x":
        axes.set_xscale("log")
        axis: Any = axes.xaxis
    else:
        axes.set_yscale("log")
        axis = axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    low, high = axis.get_view_interval()
    # Below two decades the major ticks are too few, so minor ticks get labels.
    if low > 0 and math.log10(high / low) < 2:
        axis.set_minor_formatter(FuncFormatter(lambda value, _: _leading(value)))
    else:
        axis.set_minor_formatter(NullFormatter())


def _leading(value: float) -> str:
    digit = value / 10 ** math.floor(math.log10(value))
    return f"{value:,.6g}" if round(digit) in (2, 5) else ""


def finish(axes: Any, x: str, y: str, ink: Ink, lines: int) -> None:
    """Labels the axes, and adds a legend above if there are several lines."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.tick_params(length=0)
    if lines > 1:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=_legend_columns([str(text) for text in axes.get_legend_handles_labels()[1]]),
            borderaxespad=0.2,
            handlelength=1.4,
            columnspacing=1.4,
            labelcolor=ink.text,
        )


def _legend_columns(labels: Sequence[str]) -> int:
    """Returns the number of legend columns that fit the width of a plot."""
    widest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), 4, 62 // (widest + 7)))
