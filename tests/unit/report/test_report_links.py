"""Plots of links over time, of the directions with the longest queues."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd

from airloom.report import links, plots


def frame_of(**queues: list[float]) -> pd.DataFrame:
    rows = [
        {
            "measurement": "link",
            "metric": metric,
            "unit": unit,
            "node": f"{name} forward",
            "t_ns": at,
            "value": value,
        }
        for name, values in queues.items()
        for metric, unit in (("queue", "packets"), ("utilization", "1"), ("dropped", "packets"))
        for at, value in enumerate(values if metric == "queue" else [0.5 * bool(sum(values))] * len(values))
    ]
    return pd.DataFrame(rows, columns=["measurement", "metric", "unit", "node", "t_ns", "value"])


def run_of(*, is_sweep: bool = False) -> Any:
    return SimpleNamespace(is_sweep=is_sweep, details=SimpleNamespace(happenings=()))


def test_queue_utilization_and_drops_have_a_plot_each() -> None:
    drawn = links.drawings(run_of(), frame_of(slow=[0, 5, 40, 12], idle=[0, 0, 0, 0]))
    assert [one.name for one in drawn] == ["time-queue", "time-utilization", "time-dropped"]
    assert "slow forward: 0 to 40, mean 14.25" in drawn[0].alt
    assert "idle" not in drawn[0].alt


def test_the_longest_queues_are_drawn_and_no_more_than_colours_allow() -> None:
    many = {f"w{number:02}": [0.0, float(number)] for number in range(1, 21)}
    (queue, *_) = links.drawings(run_of(), frame_of(**many))
    named = [part.partition(" ")[0] for part in queue.alt.partition(". ")[2].split("; ")]
    assert named == [f"w{number:02}" for number in range(20, 20 - plots.LINES, -1)]


def test_a_network_without_queues_or_a_sweep_has_none() -> None:
    assert links.drawings(run_of(), frame_of(idle=[0, 0])) == []
    assert links.drawings(run_of(), frame_of()) == []
    assert links.drawings(run_of(is_sweep=True), frame_of(slow=[0, 9])) == []
