"""What the other slices did while a flow was measured, interval by interval of the flow's throughput.

Users of slices do not know of each other, so a flow's samples state the activity of all others:
metric ``other_airtime``, the share of the interval in which the other slice's radios transmitted
(summed over channels; above 1 if several send at once), and ``other_offered``, the load in bit/s
that its measured flows offered. The node of these samples is the other slice. Times are the ends
of the flow's intervals.

Both are totals over time that are interpolated linearly at the bounds of an interval. The engine's
totals of airtime are read once a second, so within a second airtime counts as even.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airloom.planning.plan import Plan
from airloom.runs.slice_monitor import Totals

AIRTIME, OFFERED = "other_airtime", "other_offered"

Floats = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]
Annotation = tuple[str, str, str, str, list[int], list[float]]
"""Measurement, metric, unit, other slice; times in ns and values."""


class SliceAnnotation:
    """Collects the flows of slices, and annotates each with the activity of the other slices."""

    def __init__(self, plan: Plan) -> None:
        owner = {
            radio.node: radio.grant.slice
            for medium in plan.media.values()
            for radio in medium.radios
            if radio.grant is not None
        }
        self._slices = sorted(set(owner.values()))
        self._of = {
            one.name: owner[one.tool.source]
            for one in plan.scenario.measurements
            if len(self._slices) > 1 and one.tool.source in owner
        }
        self._flows: dict[str, tuple[Times, Floats]] = {}
        self._offers: dict[str, list[tuple[Times, Floats]]] = {}

    def add(self, name: str, samples: pa.Table) -> None:
        """Adds the samples of a measurement that has ended."""
        if name not in self._of:
            return
        for metric in ("throughput", "offered"):
            rows = samples.filter(pc.equal(samples["metric"].cast(pa.string()), metric)).sort_by("t_ns")
            if not rows.num_rows:
                continue
            series = rows["t_ns"].to_numpy(), rows["value"].to_numpy()
            if metric == "throughput":
                self._flows[name] = series
            else:
                self._offers.setdefault(self._of[name], []).append(series)

    def annotations(self, looks: Sequence[tuple[int, Totals]]) -> Iterator[Annotation]:
        """Yields the series for every flow and other slice; ``looks`` are totals of airtime over time."""
        used = {name: _airtime(looks, name) for name in self._slices}
        for flow, (ends, _) in self._flows.items():
            bounds = _bounds(ends)
            spans = np.diff(bounds).astype(np.float64)
            times = ends.tolist()
            for other in self._slices:
                if other == self._of[flow]:
                    continue
                if looks:
                    shares = np.diff(np.interp(bounds, *used[other])) / spans
                    yield flow, AIRTIME, "1", other, times, shares.tolist()
                if other in self._offers:
                    offered = sum(np.diff(_offered(bounds, series)) for series in self._offers[other])
                    yield flow, OFFERED, "bit/s", other, times, (offered / spans).tolist()


def _bounds(ends: Times) -> Times:
    """Returns the bounds of intervals with these ends; the first is as long as the second."""
    first = ends[0] - (ends[1] - ends[0]) if ends.size > 1 else max(0, int(ends[0]) - 1_000_000_000)
    return np.concatenate([[first], ends])


def _airtime(looks: Sequence[tuple[int, Totals]], name: str) -> tuple[list[int], list[int]]:
    """Returns times and the airtime of a slice until then, in ns."""
    sent = [sum(used for (owner, _, _), (used, _) in found.items() if owner == name) for _, found in looks]
    return [at for at, _ in looks], sent


def _offered(bounds: Times, series: tuple[Times, Floats]) -> Floats:
    """Returns what a flow offered until each bound, in bit/s times ns."""
    own = _bounds(series[0])
    totals = np.concatenate([[0.0], np.cumsum(series[1] * np.diff(own))])
    return np.asarray(np.interp(bounds, own, totals), np.float64)
