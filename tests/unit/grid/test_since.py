"""The part of a histogram after an earlier reading."""

from __future__ import annotations

from typing import Any

from airloom.grid.laboratory.since import histogram


def reading(*values: int) -> dict[str, Any]:
    """A histogram whose buckets are ten wide, as the engine gives it."""
    buckets: dict[int, int] = {}
    for value in values:
        buckets[value // 10 * 10 + 9] = buckets.get(value // 10 * 10 + 9, 0) + 1
    return {
        "count": len(values),
        "mean": sum(values) // len(values) if values else 0,
        "max": max(values, default=0),
        "worst": [(at, value, "p") for at, value in enumerate(values)],
        "buckets": sorted(buckets.items()),
    }


def test_without_an_earlier_reading_it_is_all() -> None:
    found = histogram(reading(*range(100)), None, 0)
    assert (found["count"], found["p50"], found["p99"], found["max"]) == (100, 49, 99, 99)


def test_what_was_before_is_left_out() -> None:
    before = reading(500, 10, 30)
    found = histogram(reading(500, 10, 30, 20, 20, 20, 60), before, 3)
    assert found["buckets"] == [(29, 3), (69, 1)]
    assert (found["count"], found["p50"], found["p999"], found["max"]) == (4, 29, 69, 69)
    assert abs(found["mean"] - 30) <= 2, "means are rounded down to ns"
    assert [value for _, value, _ in found["worst"]] == [20, 20, 20, 60]


def test_nothing_since() -> None:
    found = histogram(reading(5), reading(5), 1)
    assert (found["count"], found["mean"], found["p50"], found["max"], found["worst"]) == (0, 0, 0, 0, [])
