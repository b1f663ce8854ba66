"""A comparison on the terminal: what differs, both verdicts, and the rows that matter most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from airloom.compare.attribution import component_table, stage_table
from airloom.compare.runs import Comparison, Row
from airloom.report.tables import shown_figure
from airloom.report.terminal import lost, rich_table, verdict
from airloom.results import Measurement
from airloom.results.fairness import METRIC
from airloom.results.headline import HEADLINES
from airloom.units.figures import number

ROWS = 30
"""Most figures shown; ``--all`` shows the others too."""

DIGITS = 3


def render(found: Comparison, *, every: bool = False) -> RenderableType:
    """Returns a comparison for the terminal; ``every`` shows all its rows."""
    parts: list[RenderableType] = []
    for place, side in (("first", found.first), ("second", found.second)):
        kinds = ", ".join(side.kinds)
        parts.append(Text(f"{place}: {side.folder} ({side.scenario}, {kinds}, seed {side.seed})"))
        parts += [verdict(side.verdict), *lost(side.notes)]
    for path, (first, second) in found.differs.items():
        parts.append(
            Text.assemble(("differs: ", "bold"), f"{_named(path, found.labels)}: {first} to {second}")
        )
    shown = list(found.rows) if every else chosen(found.rows)
    parts += [Text(), rows(shown, found.labels)]
    left_out = len(found.rows) - len(shown)
    if left_out:
        parts.append(Text(f"{left_out} more: --all", style="bold"))
    parts.append(Text(note(found.rows), style="dim"))
    if found.stages:
        parts += [Text(), rich_table(stage_table(list(found.stages)))]
    if found.components:
        parts += [Text(), rich_table(component_table(list(found.components)))]
    return Group(*parts)


def _named(path: str, labels: Mapping[str, str]) -> str:
    return f"{labels[path]} ({path})" if path in labels else path


def chosen(found: Sequence[Row], most: int = ROWS) -> list[Row]:
    """Returns the rows that matter most, in their order: headlines first, then significant ones."""

    def weight(index: int) -> tuple[bool, bool, bool]:
        row = found[index]
        headline = row.metric in HEADLINES or row.metric.endswith(("_p50", "_p95", "_p99", METRIC))
        return (row.difference is None, not headline, not row.significant)

    kept = sorted(sorted(range(len(found)), key=weight)[:most])
    return [found[index] for index in kept]


def rows(found: Sequence[Row], labels: Mapping[str, str]) -> RenderableType:
    """Returns rows below the name of their measurement; the columns fit 80 characters."""
    heads = ("first", "second", "change, 95 % interval", "effect")
    cells = [_cells(row) for row in found]
    widths = [
        max(cell_len(head), *(cell_len(row[index + 1].plain) for row in cells), 0)
        for index, head in enumerate(heads)
    ]
    parts: list[RenderableType] = [_grid([[Text(), *(Text(head, style="bold") for head in heads)]], widths)]
    varying = [
        label
        for label in dict.fromkeys(label for row in found for label in row.labels)
        if len({row.labels.get(label) for row in found}) > 1
    ]
    groups: dict[str, list[list[Text]]] = {}
    for row, shown in zip(found, cells, strict=True):
        told = [f"{labels.get(one, one)} {row.labels[one]}" for one in varying if one in row.labels]
        groups.setdefault(", ".join([row.name, *told]), []).append(shown)
    for name, lines in groups.items():
        parts += [Text(name, style="bold"), _grid(lines, widths)]
    return Group(*parts)


def _grid(lines: Sequence[Sequence[Text]], widths: Sequence[int]) -> RichTable:
    drawn = RichTable.grid(padding=(0, 2, 0, 0), expand=True)
    drawn.add_column(ratio=1, overflow="fold", min_width=10)
    for width in widths:
        drawn.add_column(justify="right", no_wrap=True, width=width)
    for line in lines:
        drawn.add_row(*line)
    return drawn


def _cells(row: Row) -> list[Text]:
    figure = Measurement(name=row.name, metric=row.metric, unit=row.unit, mean=None)
    style = "yellow" if row.significant else ""
    effect = "" if row.effect is None else f"{row.effect:+.1f}"
    return [
        Text(f" {row.metric.replace('_', ' ')}"),
        Text(shown_figure(figure, row.first, DIGITS)),
        Text(shown_figure(figure, row.second, DIGITS)),
        Text(_change(row, figure) + (" *" if row.significant else "  "), style=style),
        Text(effect, style=style),
    ]


_LEAST = -100.0
"""Per cent by which a figure falls at most if it is not negative."""


def _change(row: Row, figure: Measurement) -> str:
    """Returns the difference in percent of the first; in the unit if that is zero."""
    if row.difference is None:
        return "-"
    if not row.first:
        text = shown_figure(figure, row.difference, DIGITS)
        return f"+{text}" if row.difference > 0 else text
    share = 100 / abs(row.first)
    text = f"{_signed(share * row.difference)} %"
    if row.low is None or row.high is None:
        return text
    low, high = share * row.low, share * row.high
    # A figure that is not negative falls by 100 % at most, and rises from zero by any amount.
    if row.first > 0 and (row.second or 0) >= 0:
        low, high = max(low, _LEAST), max(high, _LEAST)
    return f"{text} ({_signed(low)} to {_signed(high)})"


def _signed(value: float) -> str:
    text = number(value, 2 if abs(value) < 100 else 3)
    return f"+{text}" if value > 0 else text


def note(found: Sequence[Row]) -> str:
    """Returns what the marks and intervals mean."""
    tested = sum(row.p is not None for row in found)
    marked = sum(bool(row.significant) for row in found)
    text = (
        f"* {marked} of {tested} tested differences are significant: together they carry a risk of 5 % "
        "of a false alarm (Welch's test, Holm's procedure)."
    )
    if any(row.effect is not None for row in found):
        text += " Effect: the difference in standard deviations between repetitions (Hedges' g)."
    if any(row.basis == "batches" for row in found):
        text += (
            " Intervals of single runs come from batches of their own samples and say nothing of how "
            "runs differ: use repetitions to be sure."
        )
    return text
