"""Brings both captures of a path to one clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airloom.calibration.paired import Floats, Paired, Way
from airloom.errors import ScenarioError

_WINDOWS = 20
_LEAST = 5
"""Windows of time with packets that are needed to tell a drift."""
_DRIFT = 2e-6
"""Drift of clocks that is corrected; less is that of clocks that are kept by NTP."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What was done to the times of B."""

    offset: int
    """Nanoseconds that B's clock was ahead of A's."""
    drift: float
    """Seconds that it gained in each second."""
    how: str
    """In words."""


def aligned(pair: Paired, *, synchronized: bool, least: int | None) -> tuple[Paired, Clocks]:
    """Returns both directions by one clock.

    ``synchronized``: the clocks are one already. ``least``: the least delay from A to B in ns, which then
    gives the offset. Otherwise the least delays of both directions are taken to be equal; a single
    direction must be ``synchronized``, or have a ``least`` delay.
    """
    forward, backward = pair.forward, pair.backward
    if synchronized:
        return pair, Clocks(0, 0.0, "as captured")
    # A's clock: of the departures to B, and of the arrivals from B.
    by_a = forward.sent, np.where(backward.came, backward.arrived, backward.sent)
    pivot = min(
        int(times[way.came].min())
        for way, times in zip((forward, backward), by_a, strict=True)
        if way.came.any()
    )
    since = [(times - pivot).astype(np.float64) for times in by_a]
    there, back = _slope(forward, since[0]), _slope(backward, since[1])
    if least is None and not (forward.came.any() and backward.came.any()):
        raise ScenarioError(
            "capture.one-way",
            "the captures share packets of one direction only, so that they tell no offset of their clocks",
            cure="--synchronized if one clock has stamped both, --least-delay if the path's is known, or "
            "captures with both directions, such as of a ping beside the load",
        )
    # A single direction cannot tell a drift from a delay that grows.
    drift = 0.0 if there is None or back is None else (there - back) / 2
    drift = drift if abs(drift) >= _DRIFT else 0.0
    forward, backward = forward.moved(drift * since[0]), backward.moved(-drift * since[1])
    if least is not None:
        way, sign = (forward, 1) if forward.came.any() else (backward, -1)
        offset, how = sign * (int(way.delays.min()) - least), "by the least delay that is given"
    else:
        offset = (int(forward.delays.min()) - int(backward.delays.min())) // 2
        how = "by equal least delays of both directions"
    moved = Paired(
        forward.moved(np.full(forward.sent.size, float(offset))),
        backward.moved(np.full(backward.sent.size, -float(offset))),
        pair.ambiguous,
        pair.joined,
    )
    return moved, Clocks(offset, drift, how)


def _slope(way: Way, since: Floats) -> float | None:
    """Returns how the least delay grows with time, by the median of the slopes between windows."""
    came = way.came
    if not came.any():
        return None
    times, delays = since[came] / 1e9, way.delays / 1e9
    window = np.minimum((times / max(float(times.max()), 1e-9) * _WINDOWS).astype(int), _WINDOWS - 1)
    points = []
    for number in np.unique(window):
        inside = np.flatnonzero(window == number)
        first = inside[np.argmin(delays[inside])]
        points.append((times[first], delays[first]))
    if len(points) < _LEAST:
        return None
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(points)
        for later in points[number + 1 :]
        if later[0] > earlier[0]
    ]
    return float(np.median(slopes)) if slopes else None
