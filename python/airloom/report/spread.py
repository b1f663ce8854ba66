"""Spread over repetitions: a box for each point, and the distribution of all samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airloom.report import curves, facets, series
from airloom.report.curves import bounds, dimensions, scale_of, set_categories
from airloom.report.facets import Dimension, Panel
from airloom.report.grid import FEWEST, Case, Figure, Grid
from airloom.report.series import Floats
from airloom.report.style import Drawing, Ink

BOXES = FEWEST
"""Repetitions from which a box is drawn; fewer are dots only."""

PLACES = 16
"""Most categories of a panel with boxes."""

LINES = 64
"""Most distributions that are drawn; of more points, evenly spread ones are chosen."""

STEPS = 160
"""Most steps of a distribution."""


def boxes(whole: Grid, group: Sequence[Figure], title: str, name: str) -> list[Drawing]:
    """Returns box plots of the repetitions of a family's headline figure, over the main axis.

    Without an axis of several values, the measurements are the categories.
    """
    if whole.repetitions < 2 or not group:
        return []
    axis = whole.main
    names = tuple(dict.fromkeys(one.name for one in group))
    if axis is not None:
        place = whole.axes.index(axis)
        step = -(-len(axis.values) // PLACES)
        categories = axis.values[::step]
        dims = dimensions(whole, group, [axis])
        left_out = len(axis.values) - len(categories)
    else:
        place, categories, left_out = -1, names, 0
        dims = [Dimension("measurement", ("",)), *dimensions(whole, group)[1:]]
    data: dict[tuple[str, ...], dict[int, Floats]] = {}
    for one in group:
        for key, seen in one.at.items():
            value = key[place] if axis is not None else one.name
            if value not in categories:
                continue
            others = key[:place] + key[place + 1 :] if axis is not None else key
            line = (one.name if axis is not None else "", one.title, *others)
            data.setdefault(line, {})[categories.index(value)] = np.array(seen.values)
    scale = scale_of(group)
    found = facets.arranged(dims, data)
    everything = np.concatenate([values for line in data.values() for values in line.values()])
    count = found.count
    limits = bounds(everything.min() / scale.factor, everything.max() / scale.factor, group[0])

    def draw(axes: Any, panel: Panel[dict[int, Floats]], ink: Ink) -> None:
        for line in panel.lines:
            shift = 0.8 / count * (line.number - (count - 1) / 2)
            at = [(category + shift, values / scale.factor) for category, values in line.data.items()]
            _boxes(axes, at, 0.6 / count, ink.series[line.number], ink)

    def finish(axes: Any) -> None:
        set_categories(axes, categories)
        axes.set_ylim(*limits)

    def words(line: dict[int, Floats]) -> str:
        middle = [f"{np.median(values) / scale.factor:.4g}" for values in line.values()]
        return f"medians {', '.join(middle[:8])} {scale.unit}".rstrip()

    drawn = "Box: quartiles and median; whiskers: all repetitions; dots: the repetitions."
    if whole.repetitions < BOXES:
        drawn = "Dots: the repetitions; bar: their median."
    if left_out:
        drawn += f" Every {step}th value of {axis.label if axis else ''} is drawn."
    return list(
        facets.drawings(
            found,
            draw,
            name=f"repetitions-{name}",
            title=f"{title} of each repetition",
            x=axis.label if axis is not None else "",
            y=f"{title.lower()}, {scale.unit}" if scale.unit else title.lower(),
            caption=drawn,
            words=words,
            finish=finish,
        )
    )


def _boxes(axes: Any, at: Sequence[tuple[float, Floats]], width: float, colour: str, ink: Ink) -> None:
    """Draws the boxes of a line. Each part of all boxes is one path: a page may have thousands."""
    half = width / 2
    whiskers, outlines, medians, dots = [], [], [], []
    for x, values in at:
        low, first, middle, third, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
        if len(values) >= BOXES:
            whiskers.append([(x, low), (x, high)])
            left, right = x - half, x + half
            outlines.append([(left, first), (right, first), (right, third), (left, third), (left, first)])
        medians.append([(x - half, middle), (x + half, middle)])
        # A line of no length with round ends is a dot; the renderer of PNG needs some length.
        dots += [[(x, value), (x + 1e-4, value)] for value in values]
    for lines, face, size, opacity in (
        (whiskers, "none", 1.0, 1.0),
        (outlines, ink.paper, 1.1, 1.0),
        (medians, "none", 1.8, 1.0),
        (dots, "none", 3.5, 0.6),
    ):
        if lines:
            _path(axes, lines, edgecolor=colour, facecolor=face, linewidth=size, alpha=opacity)


def _path(axes: Any, lines: Sequence[Sequence[tuple[float, float]]], **style: Any) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    whole = Path.make_compound_path(*(Path(line) for line in lines))
    axes.add_patch(PathPatch(whole, capstyle="round", joinstyle="miter", **style))


def distributions(
    whole: Grid, names: Sequence[str], family: str, like: Figure, title: str, slug: str
) -> list[Drawing]:
    """Returns the distribution of a metric's samples over all repetitions of each point."""
    if curves.is_share(like):
        return []
    cases = whole.chosen(max(1, LINES // max(1, len(names))))
    pooled: dict[tuple[str, ...], Floats] = {}
    for case in cases:
        for (name, metric), runs in whole.samples(case).items():
            if metric == family and name in names:
                pooled[(name, *case.key)] = np.concatenate([values for _, values in runs])
    pooled = {key: values for key, values in pooled.items() if len(values) >= 10}
    if not pooled:
        return []
    scale = scale_of([like])
    dims = [
        Dimension("measurement", tuple(names)),
        *(Dimension(axis.label, axis.values) for axis in whole.axes),
    ]
    found = facets.arranged(dims, pooled)
    highest = max(float(np.quantile(values, 0.999)) for values in pooled.values()) / scale.factor
    lowest = min(float(values.min()) for values in pooled.values()) / scale.factor

    def draw(axes: Any, panel: Panel[Floats], ink: Ink) -> None:
        for line in panel.lines:
            values, share = series.distribution(line.data, STEPS)
            edge = np.concatenate([values[:1], values]) / scale.factor
            axes.step(
                edge,
                np.concatenate([[0.0], share]),
                where="post",
                color=ink.series[line.number],
                linewidth=1.2,
            )

    def words(values: Floats) -> str:
        p50, p95, p99 = np.quantile(values, [0.5, 0.95, 0.99]) / scale.factor
        return f"median {p50:.4g}, 95 % below {p95:.4g}, 99 % below {p99:.4g} {scale.unit}".rstrip()

    def finish(axes: Any) -> None:
        axes.set_ylim(0, 1.02)
        room = 0.03 * (highest - lowest) or 1.0
        axes.set_xlim(lowest - room if lowest > room else min(lowest, 0.0), highest + room)

    return list(
        facets.drawings(
            found,
            draw,
            name=f"distribution-{slug}",
            title=f"{title}, distribution of samples",
            x=f"{title.lower()}, {scale.unit}" if scale.unit else title.lower(),
            y="share of samples",
            caption=_chosen(
                whole, cases, "Samples of all repetitions. The axis ends at the 99.9 % quantile."
            ),
            words=words,
            finish=finish,
        )
    )


def over_time(
    whole: Grid, names: Sequence[str], family: str, like: Figure, title: str, slug: str
) -> list[Drawing]:
    """Returns the samples over time of chosen points, first repetition; of one point, of each."""
    cases = whole.chosen(max(1, min(4, LINES // max(1, len(names)))))
    single = len(whole.cases) == 1
    data: dict[tuple[str, ...], tuple[Floats, Floats]] = {}
    for case in cases:
        for (name, metric), runs in whole.samples(case).items():
            if metric != family or name not in names:
                continue
            for number, one in enumerate(runs if single else runs[:1]):
                if len(one[0]) > 1:
                    data[(name, *case.key, str(number + 1))] = one
    if not data:
        return []
    scale = scale_of([like])
    numbers = tuple(dict.fromkeys(key[-1] for key in data))
    dims = [
        *(Dimension(axis.label, axis.values) for axis in whole.axes),
        Dimension("measurement", tuple(names)),
        Dimension("repetition", numbers),
    ]
    # Runs side by side share a panel; points of a sweep have one each.
    beside = bool(whole.axes) and whole.axes[0].path == "run"
    if beside:
        dims = [*dims[1:-1], dims[0], dims[-1]]
    size = len(whole.axes)
    ordered = {
        (*key[2 : 1 + size], key[0], key[1], key[-1])
        if beside
        else (*key[1 : 1 + size], key[0], key[-1]): one
        for key, one in data.items()
    }
    found = facets.arranged(dims, ordered)
    columns = max(60, 12_000 // len(data)) // 2

    def draw(axes: Any, panel: Panel[tuple[Floats, Floats]], ink: Ink) -> None:
        for line in panel.lines:
            t, values = line.data
            shape = series.envelope((t * 1e9).astype(np.int64), values, columns).broken()
            colour = ink.series[line.number]
            if shape.joined:
                low, high = shape.low / scale.factor, shape.high / scale.factor
                axes.fill_between(shape.t_s, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(shape.t_s, shape.mean / scale.factor, color=colour, linewidth=1.0)

    def words(one: tuple[Floats, Floats]) -> str:
        low, middle, high = (float(f(one[1])) / scale.factor for f in (np.min, np.mean, np.max))
        return f"{low:.4g} to {high:.4g} {scale.unit}, mean {middle:.4g}"

    everything = [values for _, values in data.values()]
    limits = bounds(
        min(float(values.min()) for values in everything) / scale.factor,
        max(float(np.quantile(values, 0.999)) for values in everything) / scale.factor,
        like,
    )

    def finish(axes: Any) -> None:
        axes.set_ylim(*limits)

    note = "" if single or whole.repetitions == 1 else "First repetition of each point."
    return list(
        facets.drawings(
            found,
            draw,
            name=f"time-{slug}",
            title=f"{title} over time",
            x="time, s",
            y=f"{title.lower()}, {scale.unit}" if scale.unit else title.lower(),
            caption=_chosen(whole, cases, note),
            words=words,
            finish=finish,
        )
    )


def _chosen(whole: Grid, cases: Sequence[Case], note: str) -> str:
    if len(cases) == len(whole.cases):
        return note
    told = f"{len(cases)} of {len(whole.cases)} points, evenly spread; samples.parquet has the others."
    return f"{told} {note}".strip()
