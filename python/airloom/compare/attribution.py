"""Attribution of the difference between two runs: stages of the packet path, processor time.

A flow measured with ``stages: true`` in both runs has its time divided among the stages of its path
(:mod:`airloom.measure.stages`). The contribution of a stage is the difference of its means; the
contributions add up to the difference of the whole. Processor time is divided among four
components:
============  ==================================================================================
guest user    programs inside the nodes
guest kernel  the nodes' own kernels, and machine emulation; nothing where nodes have none
host kernel   this machine's kernel on behalf of the nodes
engine        the thread that emulates the network
============  ==================================================================================
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airloom.measure.stages import BOUNDARIES, STAGES, TITLES
from airloom.report.tables import Cell, Table, table
from airloom.results.details import COMPONENTS
from airloom.stats import mean

if TYPE_CHECKING:
    from airloom.results import Measurement, RunReader

PREFIX = "stage_"
_AT = "stage_at_"
_TITLES = {ends: TITLES[name] for name, ends in STAGES.items()}


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of one flow in both runs: mean time in ns, and packets that were lost in it."""

    flow: str
    labels: dict[str, str]
    begin: str
    """The stage's boundaries, of those that both runs measured."""
    end: str
    first_ns: float
    second_ns: float
    share: float | None
    """Share of the difference of all stages together; None if that difference is 0."""
    first_lost: float
    second_lost: float


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """One component in both runs: processors that it kept busy, on average over the run."""

    component: str
    first: float
    second: float


def stage_rows(first: RunReader, second: RunReader) -> list[StageRow]:
    """Returns the stages of every flow traced in both runs, in path order."""
    left, right = _moments(first), _moments(second)
    rows = []
    for flow in left:
        here, there = left[flow], right.get(flow, {})
        common = [name for name in BOUNDARIES if name in here and name in there]
        whole = (there[common[-1]].since - here[common[-1]].since) if common else 0.0
        for begin, end in itertools.pairwise(common):
            one = here[end].since - here[begin].since
            other = there[end].since - there[begin].since
            rows.append(
                StageRow(
                    flow=flow[0],
                    labels=dict(flow[1]),
                    begin=begin,
                    end=end,
                    first_ns=one,
                    second_ns=other,
                    share=(other - one) / whole if whole else None,
                    first_lost=max(0.0, here[begin].packets - here[end].packets),
                    second_lost=max(0.0, there[begin].packets - there[end].packets),
                )
            )
    return rows


def component_rows(first: RunReader, second: RunReader) -> list[ComponentRow]:
    """Returns the components active in either run; none if a run lacks this data."""
    left, right = _components(first), _components(second)
    if not left or not right:
        return []
    return [
        ComponentRow(name, left.get(name, 0.0), right.get(name, 0.0))
        for name in COMPONENTS
        if left.get(name) or right.get(name)
    ]


def stage_table(rows: list[StageRow]) -> Table:
    """Returns the stages as a table, for the terminal and the page."""
    swept = list(dict.fromkeys(label for row in rows for label in row.labels))
    cells: list[list[str | Cell]] = []
    for row in rows:
        cells.append(
            [
                row.flow,
                *[row.labels.get(label, "") for label in swept],
                _TITLES.get((row.begin, row.end), f"from {row.begin} to {row.end}"),
                _us(row.first_ns),
                _us(row.second_ns),
                _us(row.second_ns - row.first_ns, sign=True),
                "-" if row.share is None else f"{row.share:.0%}",
                f"{row.first_lost:g}",
                f"{row.second_lost:g}",
            ]
        )
    columns = ["flow", *swept, "stage", "first, us", "second, us", "difference", "of it", "lost", "lost"]
    return table(
        "stages",
        "Where the packets' time goes",
        columns,
        cells,
        numeric=range(len(swept) + 2, len(columns)),
        note="Mean time of a packet in each stage of its path, and packets lost there: first, second.",
    )


def component_table(rows: list[ComponentRow]) -> Table:
    """Returns the components as a table, for the terminal and the page."""
    cells: list[list[str | Cell]] = [
        [
            row.component.replace("_", " "),
            f"{row.first:.3f}",
            f"{row.second:.3f}",
            f"{row.second - row.first:+.3f}",
        ]
        for row in rows
    ]
    return table(
        "components",
        "Who used the processors",
        ["component", "first", "second", "difference"],
        cells,
        numeric=range(1, 4),
        note="Processors kept busy on average from the run's begin to its end.",
    )


Flow = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class _Moment:
    since: float
    packets: float


def _moments(run: RunReader) -> dict[Flow, dict[str, _Moment]]:
    found: dict[Flow, dict[str, float]] = {}
    for one in run.result.measurements:
        if one.metric.startswith(_AT) and one.mean is not None:
            flow = (one.name, tuple(sorted(one.labels.items())))
            found.setdefault(flow, {})[one.metric.removeprefix(_AT)] = one.mean
    return {
        flow: {
            name: _Moment(values[name], values[f"{name}_packets"])
            for name in BOUNDARIES
            if name in values and f"{name}_packets" in values
        }
        for flow, values in found.items()
    }


def is_stage(one: Measurement) -> bool:
    """True if the figure belongs to a stage."""
    return one.metric.startswith(PREFIX)


def _components(run: RunReader) -> dict[str, float]:
    """Returns the components' busy processors; for a sweep the mean over its runs."""
    each = [one.details.processors for one in run.points or [run]]
    known = [one for one in each if one]
    return {name: mean([one.get(name, 0.0) for one in known]).value for name in COMPONENTS} if known else {}


def _us(nanoseconds: float, *, sign: bool = False) -> str:
    return f"{nanoseconds / 1000:+.1f}" if sign else f"{nanoseconds / 1000:.1f}"
