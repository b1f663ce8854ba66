"""Published statements of a paper as data: ``paper.csv`` of an experiment.

One row is one statement::

    id,says,figure,line,x,value,unit,source,flag,reason,needs
    drop,"under 0.25 Mbit/s below native",,,,0.25,Mbit/s,E-ORBIT-1,,,
    knee,"saturates at 30 Mbit/s offered",throughput,,30,,,E-ORBIT-1,P-3,"plain DCF gives 23.1",
    rate,"80,000 packets/s",,,,80000,,E-ORBIT-4,P-1,"a preamble takes 20 us",1e6 / 80000 >= 20

A row with a ``figure`` is drawn there: as a point of ``line`` with ``x`` and ``value``, as a mark
with ``x`` alone. ``flag`` and ``reason`` remark on a statement: what contradicts it, or is left open.
``needs`` is arithmetic that excludes the published number itself (:mod:`airloom.experiments.arithmetic`):
a condition that it would have to meet, and does not. Only such a statement can be implausible in its
source; all others are tried, and hold or fail.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import ScenarioError
from airloom.experiments.arithmetic import refuted
from airloom.report.figures import Line, Mark

COLUMNS = ("id", "says", "figure", "line", "x", "value", "unit", "source", "flag", "reason", "needs")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a paper."""

    id: str
    says: str
    source: str
    figure: str = ""
    line: str = ""
    x: float | None = None
    value: float | None = None
    """In ``unit``."""
    unit: str = ""
    flag: str = ""
    reason: str = ""
    needs: str = ""
    """A condition that the published number would have to meet, and does not."""

    @property
    def remark(self) -> str:
        """Returns what is remarked on the statement; empty if nothing is."""
        return f"{self.flag}: {self.reason}" if self.flag else ""

    @property
    def implausible(self) -> str | None:
        """Returns the arithmetic that excludes the published number; None if nothing does."""
        if not self.needs:
            return None
        return f"{self.remark}; the number needs {refuted(self.needs)}"


class Paper:
    """The statements of one paper, by ID."""

    def __init__(self, statements: Mapping[str, Statement]) -> None:
        self.statements = dict(statements)

    def __getitem__(self, id: str) -> Statement:
        """Returns the statement; raises :class:`ScenarioError` if there is none."""
        if id not in self.statements:
            known = ", ".join(self.statements)
            raise ScenarioError("paper.unknown", f"the paper has no row {id!r}", cure=f"known: {known}")
        return self.statements[id]

    @property
    def remarked(self) -> list[Statement]:
        """Returns the statements with a remark, among them those whose numbers arithmetic excludes."""
        return [one for one in self.statements.values() if one.flag]

    def lines(self, figure: str) -> tuple[Line, ...]:
        """Returns the published points of a figure."""
        found: dict[str, list[Statement]] = {}
        for one in self.statements.values():
            if one.figure == figure and one.x is not None and one.value is not None:
                found.setdefault(one.line or one.source, []).append(one)
        return tuple(
            Line(
                label=f"published: {label}",
                role="published",
                x=tuple(one.x or 0.0 for one in points),
                y=tuple(one.value for one in points),
            )
            for label, points in found.items()
        )

    def marks(self, figure: str) -> tuple[Mark, ...]:
        """Returns the statements about single positions of a figure."""
        return tuple(
            Mark(x=one.x, label=f"{one.source}: {one.says}")
            for one in self.statements.values()
            if one.figure == figure and one.x is not None and one.value is None
        )


def read(path: Path) -> Paper:
    """Reads a ``paper.csv``; raises :class:`ScenarioError` with file and line if it is invalid."""
    found: dict[str, Statement] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise ScenarioError(
                "paper.columns", "these are not a paper's columns", where=f"{path}:1", cure=",".join(COLUMNS)
            )
        for row in rows:
            where = f"{path}:{rows.line_num}"
            if None in row or None in row.values():
                raise ScenarioError("paper.row", f"the row has not {len(COLUMNS)} fields", where=where)
            if row["id"] in found or not row["id"] or not row["says"] or not row["source"]:
                raise ScenarioError("paper.row", "a row needs an id, words, a source", where=where)
            if bool(row["flag"]) != bool(row["reason"]):
                raise ScenarioError("paper.row", "a flag needs a reason, and a reason a flag", where=where)
            if row["needs"] and not row["flag"]:
                raise ScenarioError("paper.row", "arithmetic needs a flag and a reason", where=where)
            try:
                if row["needs"]:
                    refuted(row["needs"])
                x, value = (float(row[key]) if row[key] else None for key in ("x", "value"))
            except ValueError as error:
                raise ScenarioError("paper.number", str(error), where=where) from None
            plain = {key: row[key] for key in COLUMNS if key not in ("x", "value")}
            found[row["id"]] = Statement(**plain, x=x, value=value)
    return Paper(found)
