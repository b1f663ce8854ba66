"""Plots of links over time: queue, utilization, drops and marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airloom.report import plots, series
from airloom.report.style import Drawing
from airloom.results import RunReader

if TYPE_CHECKING:
    import pandas as pd

_METRICS = ("queue", "utilization", "dropped", "marked")
_NEEDED = ("queue", "dropped", "marked")
"""Metrics of which one must be above zero somewhere: a network without queues has no such plots."""


def drawings(run: RunReader, frame: pd.DataFrame) -> list[Drawing]:
    """Returns a plot for each metric that is above zero, of the directions with the longest queues."""
    if run.is_sweep:
        return []
    rows = frame[frame["measurement"] == "link"]
    if not any((rows.loc[rows["metric"] == metric, "value"] > 0).any() for metric in _NEEDED):
        return []
    chosen = _busiest(rows)
    found = []
    for metric in _METRICS:
        there = {whose: series.built_in(rows, "link", metric, whose) for whose in chosen}
        drawn = [series.of_rows(own, whose, metric) for whose, own in there.items() if len(own)]
        group = [line for line in drawn if line.values.any()]
        found += plots.over_time(group, run.details.happenings)
    return found


def _busiest(rows: pd.DataFrame) -> list[str]:
    """Returns the directions with the longest queues, then those with most drops, at most eight."""
    highest = {}
    for whose, own in rows.groupby("node", observed=True):
        of = {metric: own.loc[own["metric"] == metric, "value"] for metric in _METRICS}
        highest[str(whose)] = tuple(
            float(of[metric].max()) if len(of[metric]) else 0.0
            for metric in ("queue", "dropped", "utilization")
        )
    return sorted(highest, key=lambda whose: (*(-value for value in highest[whose]), whose))[: plots.LINES]
