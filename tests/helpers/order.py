"""The order in which tests start that run side by side: long ones first, waiting beside computing.

A test that starts last and takes a minute leaves the other processes idle. Tests of real nodes and
of the command mostly wait; those of functions use a processor throughout. If both kinds advance at
the same pace, processors are neither idle nor crowded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

import pytest

Test = TypeVar("Test")

LIMIT = 120.0
"""The time limit in seconds of a test that states none (`pyproject.toml`)."""
WAITING, COMPUTING, SLOW = 2.0, 0.1, 2.0
"""Seconds that tests usually take: with nodes or the command, without, and without but marked ``slow``."""
SHARE_OF_LIMIT = 0.1
"""Share of its time limit that a test with a longer limit than others usually takes."""


def limit_of(item: pytest.Item) -> float:
    """Returns the time limit in seconds of a test."""
    limit = item.get_closest_marker("timeout")
    return float(limit.args[0]) if limit is not None else LIMIT


def expected(limit: float, waits: bool, slow: bool) -> float:
    """Returns the seconds that a test is expected to take; ``limit``: its time limit in seconds."""
    if limit > LIMIT:
        return SHARE_OF_LIMIT * limit
    return WAITING if waits else SLOW if slow else COMPUTING


def ordered(
    tests: Iterable[Test],
    group: Callable[[Test], Hashable],
    waits: Callable[[Test], bool],
    seconds: Callable[[Test], float],
) -> list[Test]:
    """Returns the tests in the order in which to start them; those of a group stay together."""
    groups: dict[Hashable, list[Test]] = {}
    for test in tests:
        groups.setdefault(group(test), []).append(test)
    lanes: tuple[list[list[Test]], list[list[Test]]] = ([], [])
    for members in groups.values():
        lanes[waits(members[0])].append(members)
    placed = [one for lane in lanes for one in _placed(lane, seconds)]
    # Sorting is stable, so that the order is the same in all processes.
    return list(chain.from_iterable(members for _, members in sorted(placed, key=lambda one: one[0])))


def _placed(lane: Sequence[list[Test]], seconds: Callable[[Test], float]) -> list[tuple[float, list[Test]]]:
    """Returns groups, the longest first, with the share of the lane's time before their start."""
    lengths = [(sum(map(seconds, members)), members) for members in lane]
    whole = sum(length for length, _ in lengths)
    found, before = [], 0.0
    for length, members in sorted(lengths, key=lambda one: -one[0]):
        found.append((before / whole, members))
        before += length
    return found
