"""The report's tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from airloom.report import tables
from airloom.report.all_tables import all_tables
from airloom.report.facts import of_run
from airloom.results import Claim, RunReader, Verdict

_TONES = {"": "", "good": "green", "warn": "yellow", "bad": "bold red"}
_STATUS = {"valid": "green", "degraded": "yellow", "invalid": "red"}


def render(run: RunReader) -> RenderableType:
    """Returns verdict, facts and every table of a run."""
    facts = RichTable.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    for name, text in of_run(run):
        facts.add_row(name, Text(text))
    found = all_tables(run)
    parts: list[RenderableType] = [verdict(run.result.verdict), *lost(run.notes), facts]
    short = run.is_sweep or any(one.name == "headlines" for one in found)
    for one in found:
        if short and one.name == "measurements":
            continue
        if one.name == "measurements":
            figures, *counters = tables.figures_and_counters(run)
            more = sum(len(table.rows) for table in counters)
            told = f"{figures.note} {more} counters are in result.json.".strip() if more else figures.note
            parts += [Text(), rich_table(replace(figures, note=told))]
            continue
        parts += [Text(), claims(run.result.claims) if one.name == "claims" else rich_table(one)]
    return Group(*parts)


def verdict(verdict: Verdict) -> Panel:
    """Returns the verdict with its reasons, in a panel of its colour."""
    colour = _STATUS[verdict.status]
    lines = Text(verdict.status.upper(), style=f"bold {colour}")
    labels = tables.reason_labels(verdict)
    if labels:
        lines.append(f"  {', '.join(labels)}", style=f"not bold {colour}")
    if verdict.cause:
        lines.append(f"\nMost likely cause: {verdict.cause}", style="default not bold")
    reasons, others = tables.reasons(verdict)
    for reason in reasons:
        lines.append(f"\n- {reason}", style="default not bold")
    if others:
        lines.append(f"\n  and {len(others)} more in result.json", style="default not bold")
    notes, others = tables.notes(verdict)
    for note in notes:
        lines.append(f"\n  note: {note}", style="dim not bold")
    if others:
        lines.append(f"\n  and {len(others)} more notes in result.json", style="dim not bold")
    return Panel(lines, title="verdict", title_align="left", border_style=colour)


def lost(notes: Sequence[str]) -> list[Text]:
    """Returns the missing parts of the folder."""
    shown = [Text(f"not read: {note}", style="yellow") for note in notes[: tables.NOTES]]
    more = len(notes) - tables.NOTES
    return [*shown, Text(f"and {more} more that could not be read", style="yellow")] if more > 0 else shown


def claims(found: Sequence[Claim]) -> RichTable:
    """Returns claims with full sentences: outcome, claim and reason."""
    drawn = RichTable(title="Claims", title_justify="left", title_style="bold", show_header=False)
    for one in found:
        outcome = Text(one.outcome.replace("-", " "), style=_TONES[tables.OUTCOME_TONES[one.outcome]])
        origin = ": ".join(part for part in (one.source, one.published) if part)
        source = f" ({origin})" if origin else ""
        said = Text(f"{one.id}: {one.statement}{source}")
        said.append(f"\n{one.expected}: {one.why}" if one.expected else f"\n{one.why}", style="dim")
        drawn.add_row(outcome, said)
    return drawn


def rich_table(one: tables.Table) -> RenderableType:
    """Returns a table for rich."""
    return _Fitting(one)


class _Fitting:
    """A table if every column fits the terminal; otherwise a block for each row, without truncated
    words. Paths in the header break at their dots if that makes the table fit.
    """

    def __init__(self, table: tables.Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for heads in (self._table.columns, [_broken(column) for column in self._table.columns]):
            widths = self._widths(heads)
            # Each column needs a space on either side of its text and a line.
            if sum(widths) + 3 * len(widths) + 1 <= options.max_width:
                yield self._grid(heads, widths)
                return
        yield self._blocks()

    def _widths(self, heads: Sequence[str]) -> list[int]:
        """Returns the width of each column's longest word; numbers and their units stay together."""
        one = self._table
        return [
            max(
                *(cell_len(word) for word in (head.split() or [""])),
                *(
                    cell_len(part)
                    for row in one.rows
                    for part in ([row[index].text] if index in one.numeric else row[index].text.split())
                ),
                1,
            )
            for index, head in enumerate(heads)
        ]

    def _grid(self, heads: Sequence[str], widths: list[int]) -> RichTable:
        one = self._table
        drawn = RichTable(**self._titles(), caption_justify="left")
        for index, column in enumerate(heads):
            right = index in one.numeric
            drawn.add_column(
                Text(column),
                justify="right" if right else "left",
                no_wrap=right and column == one.columns[index],
                overflow="fold",
                min_width=widths[index],
            )
        for row in one.rows:
            drawn.add_row(*(Text(cell.text, style=_TONES[cell.tone]) for cell in row))
        return drawn

    def _blocks(self) -> RichTable:
        one = self._table
        drawn = RichTable(**self._titles(), caption_justify="left", show_header=False)
        drawn.add_column(style="dim", overflow="fold")
        drawn.add_column(overflow="fold")
        for row in one.rows:
            for column, cell in zip(one.columns, row, strict=True):
                drawn.add_row(Text(column), Text(cell.text, style=_TONES[cell.tone]))
            drawn.add_section()
        return drawn

    def _titles(self) -> dict[str, Any]:
        one = self._table
        return {
            "title": Text(one.title, style="bold"),
            "title_justify": "left",
            "caption": Text(one.note) if one.note else None,
        }


def _broken(column: str) -> str:
    """Returns a path in lines that end before its dots."""
    return column.replace(".", "\n.") if "." in column and " " not in column else column
