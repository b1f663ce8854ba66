"""Estimates how long a run takes and how many frames it moves.

The estimate uses the scenario alone: it ignores programs, and assumes that TCP fills the slowest
link between its two ends.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from airloom.planning.plan import LinkPlan, Plan
from airloom.planning.schedule import expected_of, moment_of
from airloom.scenario.model import Measurement
from airloom.units.given import given

FULL_FRAME = 1538
"""Octets on the wire of a full Ethernet frame with preamble and inter-frame gap."""
UNLIMITED = 10_000_000_000
"""Assumed TCP throughput in bit/s if no link limits it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The load of a run on this machine."""

    duration: int
    """Nanoseconds."""
    frames_per_second: float
    """Highest number of frames per second, summed over all links."""
    open_ended: bool
    """True if programs determine the end: ``duration`` is then a lower bound."""


def estimate(plan: Plan) -> Estimate:
    """Returns the estimate for one run of a plan."""
    scenario = plan.scenario
    in_turn = 0
    latest = max((event.at for event in scenario.events), default=0)
    spans: list[tuple[int, int, float]] = []
    for measurement in scenario.measurements:
        moment, lasts = moment_of(measurement), expected_of(measurement)
        start = moment or in_turn
        if not moment:
            in_turn += lasts
        latest = max(latest, start + lasts)
        spans.append((start, start + lasts, _frames(plan, measurement)))
    busiest = max((sum(load for a, b, load in spans if a <= at < b) for at, _, _ in spans), default=0.0)
    open_ended = scenario.duration is None and any(not program.until_end for program in scenario.programs)
    return Estimate(given(scenario.duration, latest), busiest, open_ended)


def _frames(plan: Plan, measurement: Measurement) -> float:
    """Returns the frames per second, summed over links, while a measurement runs."""
    tool = measurement.tool
    path = path_between(plan, tool.source, tool.to)
    if tool.offered is not None:
        return len(path) * tool.offered
    slowest = min((link.forward.mean_rate or UNLIMITED for link in path), default=0)
    return 1.5 * len(path) * slowest / (8 * FULL_FRAME)  # an ACK for every other segment


def path_between(plan: Plan, source: str, target: str) -> list[LinkPlan]:
    """Returns the links of a shortest path between two nodes; empty if there is no path."""
    beside: dict[str, list[tuple[str, LinkPlan]]] = {}
    for link in plan.links.values():
        a, b = link.a.partition(":")[0], link.b.partition(":")[0]
        beside.setdefault(a, []).append((b, link))
        beside.setdefault(b, []).append((a, link))
    came: dict[str, tuple[str, LinkPlan] | None] = {source: None}
    waiting = deque([source])
    while waiting:
        here = waiting.popleft()
        if here == target:
            break
        for there, link in beside.get(here, ()):
            if there not in came:
                came[there] = (here, link)
                waiting.append(there)
    path: list[LinkPlan] = []
    step = came.get(target)
    while step is not None:
        path.append(step[1])
        step = came[step[0]]
    return path[::-1]
