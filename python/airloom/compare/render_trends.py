"""Trends of two machines on the terminal: machines, directions and ratios, claims."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from airloom.compare.trends import Ratio, Trend, Trends
from airloom.units.figures import number

_TONES = {"same": "green", "opposite": "bold red", "undecided": "yellow"}
_DIGITS = 3
ROWS = 40
"""Most trends shown, opposite ones first; ``--all`` shows the others too."""


def render(found: Trends, *, every: bool = False) -> RenderableType:
    """Returns the trends for the terminal."""
    parts: list[RenderableType] = [
        Text(f"{place}: {folder}, {status}")
        for place, folder, status in zip(
            ("first", "second"), (found.first, found.second), found.verdicts, strict=True
        )
    ]
    parts += [Text(), _machines(found), Text()]
    order = ("opposite", "undecided", "same")
    shown = sorted(found.trends, key=lambda one: order.index(one.outcome))
    shown = shown if every else shown[:ROWS]
    parts.append(_table(shown) if shown else Text("no figure was swept, so there is no trend to compare"))
    if len(found.trends) > len(shown):
        parts.append(Text(f"{len(found.trends) - len(shown)} more: --all", style="bold"))
    if found.claims:
        parts += [Text(), _claims(found)]
    return Group(*parts, Text(), Text(summary(found), style="bold"))


def summary(found: Trends) -> str:
    """Returns the result in one sentence."""
    counts = {outcome: found.count(outcome) for outcome in ("same", "opposite", "undecided")}
    known = [one.overlap for one in found.trends if one.overlap is not None]
    said = f"trends: {', '.join(f'{count} {outcome}' for outcome, count in counts.items())}"
    said += f"; the intervals of {sum(known)} of {len(known)} ratios overlap"
    if found.missing:
        said += f"; {found.missing} figures of the first are missing in the second"
    lost = [one.id for one in found.claims if one.first.startswith("holds") and one.second == "fails"]
    return said + (f"; claims that held and now fail: {', '.join(lost)}" if lost else "")


def _machines(found: Trends) -> RenderableType:
    if not found.machines:
        return Text("both were made on machines of one description, with the same versions")
    drawn = _drawn("Differences of machines and versions", "", "first", "second")
    for name, values in found.machines.items():
        drawn.add_row(name, *values)
    return drawn


def _table(trends: list[Trend]) -> RichTable:
    drawn = _drawn("Trends", "figure", "of", "first, 95 %", "second, 95 %", "direction", "overlap")
    for one in trends:
        others = "".join(f", {name} {value}" for name, value in one.labels.items())
        drawn.add_row(
            f"{one.name} {one.metric.replace('_', ' ')}{others}",
            f"{one.label} {one.values[1]} / {one.values[0]}",
            _ratio(one.first),
            _ratio(one.second),
            Text(f"{one.first.direction}, {one.second.direction}: {one.outcome}", style=_TONES[one.outcome]),
            {True: "yes", False: "no", None: "-"}[one.overlap],
        )
    return drawn


def _ratio(one: Ratio) -> str:
    text = number(one.value, _DIGITS)
    if one.low is None or one.high is None:
        return text
    return f"{text} ({number(one.low, _DIGITS)} to {number(one.high, _DIGITS)})"


def _claims(found: Trends) -> RichTable:
    drawn = _drawn("Claims", "claim", "first", "second")
    for one in found.claims:
        style = "" if one.first == one.second else "yellow"
        drawn.add_row(Text(one.id), Text(one.first), Text(one.second, style=style))
    return drawn


def _drawn(title: str, *columns: str) -> RichTable:
    drawn = RichTable(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        drawn.add_column(column, overflow="fold")
    return drawn
