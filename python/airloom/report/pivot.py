"""Pivot tables of a grid: one value of the narrowest axis a column; and all figures as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from airloom.report.axis import Axis
from airloom.report.curves import scale_of
from airloom.report.grid import Figure, Grid, Key, Observed
from airloom.report.tables import Cell, Table, table
from airloom.units.figures import SIZE, UNITS, Dimension, Scale, number

COLUMNS = 8
"""Most values of an axis that become columns."""


def of_family(whole: Grid, group: Sequence[Figure], title: str, name: str) -> Table:
    """Returns a family of figures: rows are measurements and axes, columns are values of an axis.

    The columns are the values of the last axis with at most :data:`COLUMNS` values; without one,
    the measurements.
    """
    scale = scale_of(group)
    unit = f", {scale.unit}" if scale.unit else ""
    across = next((axis for axis in reversed(whole.axes) if 1 < len(axis.values) <= COLUMNS), None)
    note = f"Columns: {across.label}." if across is not None and across.path != "run" else ""
    if whole.repetitions > 1:
        note = f"{note} Mean ± half the width of its 95 % confidence interval.".strip()
    build = _by_axis if across is not None else _by_name
    columns, rows, first = build(whole, group, across, scale)
    numeric = range(first, len(columns))
    return table(f"pivot-{name}", f"{title}{unit}", columns, rows, numeric=numeric, note=note)


def _by_axis(
    whole: Grid, group: Sequence[Figure], across: Axis | None, scale: Scale
) -> tuple[list[str], list[list[str | Cell]], int]:
    assert across is not None
    place = whole.axes.index(across)
    others = [axis for axis in whole.axes if axis is not across]
    statistics = len({one.statistic for one in group}) > 1
    named = len({one.name for one in group}) > 1 or not (statistics or others)
    rows: list[list[str | Cell]] = []
    for one in group:
        lines: dict[Key, dict[str, Observed]] = {}
        for case in whole.cases:
            if case.key in one.at:
                rest = case.key[:place] + case.key[place + 1 :]
                lines.setdefault(rest, {})[case.key[place]] = one.at[case.key]
        for rest, seen in lines.items():
            first: list[str | Cell] = [
                *([one.name] if named else []),
                *([one.title] if statistics else []),
                *rest,
            ]
            rows.append(
                [*first, *(_shown(seen.get(value), scale, whole.repetitions) for value in across.values)]
            )
    head = [
        *(["measurement"] if named else []),
        *(["statistic"] if statistics else []),
        *(axis.label for axis in others),
    ]
    return [*head, *across.values], rows, len(head)


def _by_name(
    whole: Grid, group: Sequence[Figure], across: Axis | None, scale: Scale
) -> tuple[list[str], list[list[str | Cell]], int]:
    most = whole.repetitions
    rows: list[list[str | Cell]] = [
        [*case.key, *(_shown(one.at.get(case.key), scale, most) for one in group)] for case in whole.cases
    ]
    head = [axis.label for axis in whole.axes]
    names = [f"{one.name} {one.statistic}".strip() for one in group]
    return [*head, *names], rows, len(head)


def _shown(seen: Observed | None, scale: Scale, repetitions: int) -> str:
    if seen is None:
        return "-"
    fewer = f" (n = {seen.n})" if seen.n < repetitions else ""
    text = number(seen.mean / scale.factor)
    # One run a point may have an interval of its own samples, which is not one over repetitions.
    return f"{text} ± {number(seen.half / scale.factor, 2)}{fewer}" if seen.n > 1 else f"{text}{fewer}"


def as_csv(whole: Grid) -> str:
    """Returns every figure of the grid as CSV: a row for each point, columns for each figure.

    The first columns are the swept paths and the number of repetitions; each figure has a column
    ``measurement.metric [unit]`` with its mean, and one with ``ci95`` before the unit; if not every
    repetition has it, also one with ``n``.
    """
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    head = [axis.path for axis in whole.axes]
    columns = [(one, *_unit(one.dimension), _partial(whole, one)) for one in whole.figures]
    for one, unit, _, partial in columns:
        name = f"{one.name}.{one.metric}"
        head += [f"{name} [{unit}]", f"{name} ci95 [{unit}]", *([f"{name} n"] if partial else [])]
    repetitions = len(whole.axes)
    writer.writerow([*head[:repetitions], "repetitions", *head[repetitions:]])
    for case in whole.cases:
        row: list[object] = [*case.key, len(case.runs)]
        for one, _, factor, partial in columns:
            seen = one.at.get(case.key)
            half = float("nan") if seen is None else seen.half
            row += ["" if seen is None else seen.mean / factor, "" if half != half else half / factor]
            row += [0 if seen is None else seen.n] if partial else []
        writer.writerow(row)
    return sink.getvalue()


def _partial(whole: Grid, one: Figure) -> bool:
    """Whether some repetition does not have a figure."""
    return any(len(one.at[case.key].values) < len(case.runs) for case in whole.cases if case.key in one.at)


def _unit(dimension: Dimension) -> tuple[str, float]:
    """Returns the unit of a column, and its size in the unit in which values of the dimension are stored."""
    if dimension == SIZE:
        return "octets", UNITS["octets"][0]
    return next(unit or "1" for unit, known in UNITS.items() if known == (1.0, dimension)), 1.0
