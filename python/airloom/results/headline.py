"""Which of many figures matter first: what a line, a tile or a short table shows of a measurement."""

from __future__ import annotations

from collections.abc import Sequence

from airloom.results.result import Measurement

HEADLINES = (
    "throughput",
    "goodput",
    "rtt_mean",
    "rtt_p99",
    "rtt_max",
    "delay_mean",
    "delay_p99",
    "jitter_mean",
    "jitter_rfc3550",
    "loss",
    "retransmits",
)
"""Metrics by their names, the most telling first; others follow where there is room."""

FEW = 6
"""A measurement with no more figures than this is shown whole."""


def headlines(found: Sequence[Measurement]) -> list[Measurement]:
    """The figures that matter first, in the order given; whole measurements if they have few."""
    names: dict[str, set[str]] = {}
    for one in found:
        names.setdefault(one.name, set()).add(one.metric)
    return [
        one
        for one in found
        if len(names[one.name]) <= FEW
        or one.metric in HEADLINES
        or not names[one.name].intersection(HEADLINES)
    ]
