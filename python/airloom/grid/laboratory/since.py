"""The part of a histogram of lateness that came after an earlier reading of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))


def histogram(now: Mapping[str, Any], before: Mapping[str, Any] | None, began: int) -> dict[str, Any]:
    """Returns the histogram of what came after ``before``; ``began``: the engine time of that in ns.

    Quantiles are upper bounds of buckets, as in the engine. The largest value is exact if it is
    larger than all before, and that bound otherwise.
    """
    old = dict(before["buckets"]) if before is not None else {}
    left = [(top, count - old.get(top, 0)) for top, count in now["buckets"]]
    buckets = [(top, count) for top, count in left if count]
    count = sum(count for _, count in buckets)
    total = now["mean"] * now["count"] - (before["mean"] * before["count"] if before is not None else 0)
    exact = before is None or now["max"] > before["max"]
    found = {
        "count": count,
        "mean": max(0, total // count) if count else 0,
        "max": now["max"] if exact else max((top for top, _ in buckets), default=0),
        "worst": [one for one in now["worst"] if one[0] >= began],
        "buckets": buckets,
    }
    return found | {name: _quantile(buckets, count, part) for name, part in _QUANTILES}


def _quantile(buckets: list[tuple[int, int]], count: int, part: float) -> int:
    reached = 0
    for top, more in sorted(buckets):
        reached += more
        if reached >= part * count:
            return top
    return 0
