"""Searching the largest size that is good."""

from __future__ import annotations

import pytest

from airloom import capacity

LADDER = (2, 4, 8, 16, 32)


@pytest.mark.parametrize("limit", range(1, 33))
def test_halving_finds_the_border(limit: int) -> None:
    tried: list[int] = []

    def good(size: int) -> bool:
        tried.append(size)
        return size <= limit

    assert capacity.search(LADDER, good, halve=True) == min(limit, 32)
    assert len(tried) == len(set(tried)), "no size is tried twice"


@pytest.mark.parametrize(("limit", "found"), [(1, 1), (3, 2), (9, 8), (100, 32)])
def test_without_halving_the_last_good_rung_stands(limit: int, found: int) -> None:
    assert capacity.search(LADDER, lambda size: size <= limit, halve=False) == found


def test_a_line_keeps_its_gaps() -> None:
    line = capacity.line("RTT", "measured", [2, 3], [1e6, None], 1e6)
    assert line.x == (2.0, 3.0)
    assert line.y == (1.0, None)
