"""Selection of the most important figures of a measurement, for a line, a tile or a short table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airloom.results.result import Measurement

HEADLINES = (
    "goodput",
    "throughput",
    "throughput_up",
    "throughput_down",
    "rtt_mean",
    "rtt_p99",
    "rtt_max",
    "rtt_idle",
    "rtt_induced",
    "page_time_mean",
    "page_time_p95",
    "mos.up",
    "mos.down",
    "delay_mean",
    "delay_p99",
    "jitter_mean",
    "jitter_rfc3550",
    "loss",
    "retransmits",
)
"""Metrics by name, the most important first; others follow where there is space."""

FEW = 6
"""A measurement with at most this many figures is shown whole."""


BETTER = {"throughput": "goodput"}
"""Metrics that are left out beside another one of the same measurement."""


def chosen(metrics: Collection[str]) -> list[str]:
    """Returns the most important of the metrics of one measurement, in order of importance."""
    return [name for name in HEADLINES if name in metrics and BETTER.get(name) not in metrics]


def headlines(found: Sequence[Measurement]) -> list[Measurement]:
    """Returns the most important figures, in the given order; small measurements whole."""
    names: dict[str, set[str]] = {}
    for one in found:
        names.setdefault(one.name, set()).add(one.metric)
    return [
        one
        for one in found
        if len(names[one.name]) <= FEW
        or one.metric in chosen(names[one.name])
        or not names[one.name].intersection(HEADLINES)
    ]
