"""Computes how much the host may have degraded a figure; a claim within that margin is undecided.

A late engine, and programs that wait for a processor, make flows slower and packets later, never
the opposite. The observations bound the effect:

* **rates** and amounts: a link of the flow's path that stalled for a time p of the flow's length T,
  and an end whose programs waited for a processor for a share w of the run, leave at least (1 - p/T
  - w) of what the network described would have carried;
* **durations**: each crossing of a link adds the mean lateness of a delivery and of an ingress; a
  round trip crosses each link of the path twice. A maximum or an upper percentile also includes the
  largest lateness of a delivery and an ingress in the run;
* counts, losses and other shares have no such bound.

A claim is ``undecided`` if it fails, but would hold with figures improved by at most that margin. Its
``why`` states the margin, and the verdict is at best ``degraded``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airloom.planning.estimate import path_between
from airloom.planning.plan import Plan
from airloom.results import Claim, Measurement, Values, evaluate
from airloom.results.claims import from_measurements
from airloom.scenario.claims_grammar import parse
from airloom.scenario.model import Measurement as Asked
from airloom.units.figures import FREQUENCY, RATE, SIZE, TIME, Quantity
from airloom.units.text import seconds
from airloom.verdict import Share, Verdict

UNDECIDED = "claim.undecided"
STEPS = 20
"""Steps in which the margin is tried: ``within`` may hold for some fractions of it and not for all.
"""
MOST_NAMES = 6
"""Up to this many names in a claim, each figure may be improved independently of the others."""
_CENTRAL = ("mean", "avg", "p50", "min")
"""Last words of metrics that a single late packet does not change much."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The margin of a measurement."""

    share: float = 0.0
    """Share of a rate that may be missing."""
    late: float = 0.0
    """Seconds by which a mean or median may be too long."""
    worst: float = 0.0
    """Seconds by which a maximum may be too long."""

    def better(self, metric: str, value: Quantity, part: float) -> Quantity:
        """The figure improved by a fraction ``part`` of its margin."""
        if value.dimension in (RATE, SIZE, FREQUENCY):
            return Quantity(value.value / (1 - part * self.share), value.dimension)
        if value.dimension == TIME:
            central = metric.rpartition("_")[2] in _CENTRAL
            return Quantity(max(0.0, value.value - part * (self.late if central else self.worst)), TIME)
        return value

    def __str__(self) -> str:
        late = seconds(round(self.late * 1e9)), seconds(round(self.worst * 1e9))
        return (
            f"up to {100 * self.share:.2g} % of a rate, up to {late[0]} of a mean duration and {late[1]} "
            "of the longest"
        )


def of_run(
    plan: Plan,
    ledger: Mapping[str, Any],
    lateness: Mapping[str, Any],
    node_wait: Mapping[str, Sequence[Share]],
    length: int,
) -> dict[str, Margin]:
    """Per measurement: its margin, from the engine's ledger and lateness and the host's counters."""
    mean = sum(_mean(lateness[way]) for way in ("delivery", "ingress")) / 1e9
    worst = sum(int(lateness[way]["max"]) for way in ("delivery", "ingress")) / 1e9
    found = {}
    for asked in plan.scenario.measurements:
        source, target = asked.tool.source, asked.tool.to
        path = path_between(plan, source, target)
        paused = max((_paused(ledger, link.name) for link in path), default=0) / max(1, _span(asked, length))
        waited = max(_waited(node_wait.get(node, ())) for node in (source, target))
        late = 2 * max(1, len(path)) * mean
        found[asked.name] = Margin(min(0.99, paused + waited), late, late + worst)
    return found


def of_slices(plan: Plan, margins: Mapping[str, Margin]) -> list[str]:
    """Says for each slice how much of an effect on its flows may be coupling by the host.

    Empty for fewer than two slices with flows.
    """
    owner = {
        radio.node: radio.grant.slice
        for medium in plan.media.values()
        for radio in medium.radios
        if radio.grant is not None
    }
    found: dict[str, list[Margin]] = {}
    for asked in plan.scenario.measurements:
        if asked.tool.source in owner and asked.name in margins:
            found.setdefault(owner[asked.tool.source], []).append(margins[asked.name])
    if len(found) < 2:
        return []
    worst = {
        name: Margin(
            max(one.share for one in each), max(one.late for one in each), max(one.worst for one in each)
        )
        for name, each in found.items()
    }
    return [
        f"slice {name}: coupling by the host is {margin}; an effect of other slices beyond that is "
        "coupling by radio"
        for name, margin in worst.items()
    ]


def weigh(
    plan: Plan, measured: Sequence[Measurement], margins: Mapping[str, Margin], verdict: Verdict
) -> tuple[list[Claim], Verdict]:
    """The scenario's claims on the measurements, and the verdict lowered by undecided claims."""
    values = from_measurements(measured)
    claims = []
    for asked in plan.scenario.claims:
        claim = evaluate(asked.id, asked.statement, asked.check, values, source=asked.source)
        if claim.outcome == "fails" and not is_decided(asked.check, values, margins):
            named = {name.partition(".")[0] for name in parse(asked.check).names()}
            lost = "; ".join(f"{name} {margins[name]}" for name in sorted(named & margins.keys()))
            claim = claim.model_copy(
                update={
                    "outcome": "undecided",
                    "why": f"{claim.why}; this machine may have cost {lost}: not decided",
                }
            )
            verdict = verdict.also(
                "degraded",
                UNDECIDED,
                f"the claim {claim.id} is missed by no more than this machine may have cost: {lost}",
            )
        claims.append(claim)
    return claims, verdict


def is_decided(check: str, values: Values, margins: Mapping[str, Margin]) -> bool:
    """Whether a failed claim also fails with all figures improved by their margins."""
    names = [name for name in parse(check).names() if name.partition(".")[0] in margins]
    several = range(1, len(names) + 1) if len(names) <= MOST_NAMES else [len(names)]
    for some in itertools.chain.from_iterable(itertools.combinations(names, count) for count in several):
        for step in range(1, STEPS + 1):

            def better(name: str, chosen: Sequence[str] = some, part: float = step / STEPS) -> Quantity:
                found = values(name)
                measurement, _, metric = name.partition(".")
                return margins[measurement].better(metric, found, part) if name in chosen else found

            if evaluate("", "", check, better).outcome == "holds":
                return False
    return True


def _mean(raw: Mapping[str, Any]) -> float:
    """Mean in nanoseconds. Each frame counts with the upper end of its bucket."""
    buckets = raw["buckets"]
    frames = sum(count for _, count in buckets)
    return sum(top * count for top, count in buckets) / frames if frames else 0.0


def _paused(ledger: Mapping[str, Any], link: str) -> int:
    return max((int(one["paused_ns"]) for one in ledger["links"].get(link, {}).values()), default=0)


def _span(asked: Asked, length: int) -> int:
    """Duration of the measurement in ns. Every stall of the run may have fallen into it."""
    return min(length, int(getattr(asked.tool, "duration", length))) or length


def _waited(shares: Sequence[Share]) -> float:
    span = sum(share.end - share.start for share in shares)
    return sum(share.value * (share.end - share.start) for share in shares) / span if span else 0.0
