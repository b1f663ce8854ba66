"""Assessment of figures by calibrations: harmless, correctable or unusable.

Each end of a flow contributes half of its kind's added delay, since a calibration is measured
between two nodes of the kind. The ceiling is that of the slower end, for as many pairs as there are
nodes of its kind at the ends of flows.

========  =====================================================================================
figure    rule
========  =====================================================================================
rate      below the ceiling: harmless. Above it: correctable to the native equivalent, the rate
          times native ceiling over ceiling, but at most the offered rate; unusable if the
          uncertainty of the ceilings exceeds half of their value
delay,    above the ceiling: unusable, since packets queue in the nodes. Addition of at most 5 %
jitter,   of the figure: harmless. Else correctable by subtraction, with the uncertainties of
rtt       figure and calibration combined (root of the sum of squares); unusable if the result
          is not larger than its uncertainty. The uncertainty of a single run's figure
          is that of the means of consecutive batches of its samples
========  =====================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from airloom import stats
from airloom.calibration.model import Calibration
from airloom.planning.plan import Plan
from airloom.results.details import Advice
from airloom.results.result import Measurement

HARMLESS = 0.05
"""Share of a figure that virtualization may add before it matters."""
KNOWN = 0.5
"""Largest relative uncertainty of a usable correction factor."""

_TIMES = {"delay_mean": 1, "jitter_mean": 1, "rtt_mean": 2}
"""Number of one-way trips in a figure."""
_RATE = "throughput"

Load = Callable[[str], Calibration | None]
Intervals = dict[tuple[str, str], float]
"""Half of a figure's 95 % interval by measurement and metric, from the samples of one run."""


@dataclass(frozen=True, slots=True)
class Trip:
    """A measurement between two nodes, and the calibrations of their kinds."""

    ends: tuple[Calibration, Calibration]
    ceiling: float
    measured: bool
    """True if the ceiling was measured for this number of nodes, not extrapolated."""
    slower: Calibration

    def added(self, what: str) -> tuple[float, float]:
        """Returns the sum of half of each end's addition, and half of its 95 % interval; ns."""
        figures = [getattr(one, f"{what}_ns") for one in self.ends]
        halves = [(one.half_width or 0.0) / 2 for one in figures]
        return sum(one.value for one in figures) / 2, math.hypot(*halves)


def intervals(name: str, samples: pa.Table) -> Intervals:
    """Returns the intervals of the times that a measurement's ``samples`` contain."""
    found: Intervals = {}
    for mean in _TIMES:
        values = samples.filter(pc.equal(samples["metric"].cast(pa.string()), mean.removesuffix("_mean")))
        if values.num_rows > 1:
            found[name, mean] = stats.batch_mean(values["value"].to_numpy()).half_width
    return found


def advise(
    trips: Mapping[str, Trip], measured: Sequence[Measurement], within: Intervals
) -> tuple[list[Advice], list[str]]:
    """Returns advice on figures of :func:`trips`, and warnings of exceeded ceilings.

    ``within`` has the intervals of the figures in ``measured`` that have none of their own.
    """
    by_name: dict[str, dict[str, Measurement]] = {}
    for one in measured:
        by_name.setdefault(one.name, {})[one.metric] = one
    advice: list[Advice] = []
    warnings: list[str] = []
    for name, trip in trips.items():
        figures = by_name.get(name, {})
        rate = packet_rate(figures)
        over = rate is not None and rate >= trip.ceiling
        if rate is not None and over:
            guess = "" if trip.measured else ", by extrapolation"
            warnings.append(
                f"{name} offered {rate:,.0f} packets/s, and with so many nodes of kind {trip.slower.kind} "
                f"the ceiling here is {trip.ceiling:,.0f}{guess}"
            )
        if rate is not None and _RATE in figures:
            advice.append(_of_rate(trip, figures, rate, over))
        advice += [
            _of_time(trip, figures[metric], within.get((name, metric)), count, over)
            for metric, count in _TIMES.items()
            if metric in figures and figures[metric].mean is not None
        ]
    return advice, warnings


def packet_rate(figures: Mapping[str, Measurement]) -> float | None:
    """Returns a flow's offered packets/s: its offered rate over the mean received packet size."""
    names = ("received", "octets", "offered")
    received, octets, offered = (figures[name].mean if name in figures else None for name in names)
    if not received or not octets or not offered:
        return None
    return offered / (8 * octets / received)


def trips(plan: Plan, load: Load) -> dict[str, Trip]:
    """Returns the trips of the measurements between nodes of calibrated kinds, by measurement."""
    kinds = {node.kind for node in plan.nodes.values()} - {"native"}
    calibrations = {kind: load(kind) for kind in kinds}
    known = {name: calibrations.get(node.kind) for name, node in plan.nodes.items()}
    flows: dict[str, tuple[Calibration, Calibration]] = {}
    busy: dict[str, set[str]] = {}
    for measurement in plan.scenario.measurements:
        nodes = (measurement.tool.source, measurement.tool.to)
        first, second = (known.get(node) for node in nodes)
        if first is not None and second is not None:
            flows[measurement.name] = (first, second)
            for node, end in zip(nodes, (first, second), strict=True):
                busy.setdefault(end.kind, set()).add(node)
    found = {}
    for name, ends in flows.items():
        pairs = {end.kind: math.ceil(len(busy[end.kind]) / 2) for end in ends}
        slower = min(ends, key=lambda end: end.ceiling(pairs[end.kind])[0])
        ceiling, was_measured = slower.ceiling(pairs[slower.kind])
        found[name] = Trip(ends, ceiling, was_measured, slower)
    return found


def _of_rate(trip: Trip, figures: Mapping[str, Measurement], rate: float, over: bool) -> Advice:
    one = figures[_RATE]
    value = one.mean or 0.0
    said = partial(Advice, measurement=one.name, metric=one.metric, unit=one.unit, value=value)
    where = f"{rate:,.0f} packets/s, {'above' if over else 'below'} the ceiling of {trip.ceiling:,.0f}"
    if not over:
        return said(verdict="harmless", why=where)
    native, own = trip.slower.native_ceiling, trip.slower.ceilings[1]
    relative = math.hypot(*((figure.half_width or 0.0) / figure.value for figure in (native, own)))
    if relative >= KNOWN:
        return said(verdict="unusable", why=f"{where}, which is known to {relative:.0%} only")
    corrected = min(figures["offered"].mean or value, value * native.value / own.value)
    return said(
        verdict="correctable",
        corrected=corrected,
        half_width=corrected * relative,
        why=f"{where}: scaled to the native ceiling",
    )


def _of_time(trip: Trip, one: Measurement, own: float | None, count: int, over: bool) -> Advice:
    value = one.mean or 0.0
    said = partial(Advice, measurement=one.name, metric=one.metric, unit=one.unit, value=value)
    if over:
        return said(verdict="unusable", why="above the ceiling packets queue in the nodes")
    added, half = trip.added("jitter" if one.metric.startswith("jitter") else "delay")
    added, half = added * count, half * math.sqrt(count)
    how = f"the nodes added {added / 1e3:,.1f} us"
    if abs(added) <= HARMLESS * value:
        return said(verdict="harmless", why=f"{how}, {abs(added) / value:.1%} of it")
    uncertainty = math.hypot(half, one.ci95 or own or 0.0)
    if value - added <= uncertainty:
        return said(verdict="unusable", why=f"{how}, and what is left is below its uncertainty")
    return said(verdict="correctable", corrected=value - added, half_width=uncertainty, why=how)
