"""Fairness among flows that ran at the same time: the index of Jain, Chiu and Hawe (DEC-TR-301, 1984)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from airloom.results.result import Measurement

if TYPE_CHECKING:
    import pyarrow as pa

METRIC = "fairness"
"""The metric's name; its unit is 1."""

RATE = "throughput"
"""The metric that is shared among the flows."""

NAMED = 3
"""Most flows of a group whose names are all in the group's name."""

OVERLAP = 0.5
"""Two flows are of one group if they overlap for this share of the shorter one."""


def jain(values: Sequence[float]) -> float | None:
    """Returns ``(sum x)^2 / (n * sum x^2)``: 1 for equal shares, 1/n if one has all.

    None if every value is 0, or there is none.
    """
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else None


def of_flows(measurements: Sequence[Measurement], samples: Callable[[], pa.Table]) -> list[Measurement]:
    """Returns the index of each group of two or more flows of a single run.

    A flow is a measurement with a throughput; flows are of one group if their samples overlap in
    time. ``samples`` reads those of their throughputs; it is called if there are two flows or more.
    """
    rates = {one.name: one.mean for one in measurements if one.metric == RATE and one.mean is not None}
    if len(rates) < 2:
        return []
    labels = measurements[0].labels
    found = []
    for group in _groups(samples(), list(rates)):
        index = jain([rates[name] for name in group])
        if index is not None:
            found.append(
                Measurement(
                    name=group_name(group), metric=METRIC, unit="1", mean=index, n=len(group), labels=labels
                )
            )
    return found


def group_name(names: Sequence[str]) -> str:
    """Returns the name of a group of flows."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{names[0]} to {names[-1]}, {len(names)} flows"


def _groups(table: pa.Table, names: Sequence[str]) -> list[list[str]]:
    """Returns flows that ran together, groups of two or more, in order."""
    import pyarrow.compute as pc

    spans = {}
    if table.num_rows:
        columns = table.select(["measurement", "t_ns"])
        grouped = columns.group_by("measurement").aggregate([("t_ns", "min"), ("t_ns", "max")])
        for row in grouped.set_column(
            grouped.schema.get_field_index("measurement"),
            "measurement",
            pc.cast(grouped["measurement"], "string"),
        ).to_pylist():
            spans[row["measurement"]] = (row["t_ns_min"], row["t_ns_max"])
    groups: list[list[str]] = []
    for name in names:
        home = next((group for group in groups if _together(spans.get(group[0]), spans.get(name))), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return [group for group in groups if len(group) > 1]


def _together(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    if one is None or other is None:
        return False
    shared = min(one[1], other[1]) - max(one[0], other[0])
    shorter = min(one[1] - one[0], other[1] - other[0])
    return shared > 0 and shared >= OVERLAP * shorter
