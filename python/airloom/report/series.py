"""Preparation of samples for plots: envelopes, quantiles, kinds of series.

A plot has about a thousand columns of pixels. A longer series is divided into that many intervals,
each shown with its minimum, mean and maximum, so that no extreme is lost; the caption notes this.
There is no random sampling and no smoothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from airloom.units.figures import PLAIN, RATE, TIME, UNITS, Dimension

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = 1000

GAP = 3
"""A line is broken where two samples are this many times their usual distance apart."""

Floats = npt.NDArray[np.float64]

BUILT_IN = ("host", "node", "engine", "radio", "radio-link", "link", "control")
"""Measurements recorded by the runtime itself, with their own plots."""

_TITLES = {
    "goodput": "Goodput",
    "throughput": "Throughput",
    "rtt": "Round-trip time",
    "delay": "One-way delay",
    "jitter": "Jitter",
    "loss": "Loss",
    "offered": "Offered load",
    "other_airtime": "Airtime of other slices during a flow",
    "other_offered": "Offered load of other slices during a flow",
    "delivery_rate": "Delivery rate",
    "cwnd": "Congestion window",
    "srtt": "Smoothed round-trip time",
    "qdisc_backlog": "Backlog of queueing disciplines",
    "qdisc_drops": "Drops of queueing disciplines",
    "page_time": "Page load time",
    "queue": "Queue length",
    "queue_octets": "Queue length in octets",
    "utilization": "Utilization",
    "dropped": "Drops",
    "marked": "ECN marks",
}
ORDER = ("goodput", "throughput", "rtt", "delay", "jitter", "loss")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A series ready to draw; without aggregation ``low`` and ``high`` equal the mean."""

    t_s: Floats
    mean: Floats
    low: Floats
    high: Floats
    samples: int

    @property
    def joined(self) -> bool:
        """True if several samples share a column."""
        return self.samples > len(self.t_s)

    @property
    def _cuts(self) -> npt.NDArray[np.bool_]:
        """After which samples a gap begins: longer than three times nine of ten distances."""
        apart = np.diff(self.t_s)
        usual = float(np.quantile(apart, 0.9, method="lower")) if apart.size > 1 else np.inf
        return np.asarray(apart > GAP * usual, np.bool_)

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """Intervals without samples, in s."""
        return [(float(self.t_s[at]), float(self.t_s[at + 1])) for at in np.flatnonzero(self._cuts)]

    def broken(self) -> Envelope:
        """Returns it with a sample that is not a number in each gap, which breaks a drawn line."""
        last = np.flatnonzero(self._cuts)
        t_s = np.insert(self.t_s, last + 1, self.t_s[last])
        mean, low, high = (np.insert(one, last + 1, np.nan) for one in (self.mean, self.low, self.high))
        return Envelope(t_s, mean, low, high, self.samples)

    @property
    def alone(self) -> npt.NDArray[np.bool_]:
        """Which samples have a gap on both sides, where a line has no length."""
        cuts = self._cuts
        return np.append(cuts, True) & np.insert(cuts, 0, True)


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot; values in the base unit (s, bit/s) of their dimension."""

    label: str
    kind: str
    metric: str
    dimension: Dimension
    t_ns: npt.NDArray[np.int64]
    values: Floats


def envelope(t_ns: npt.NDArray[np.int64], values: Floats, columns: int = COLUMNS) -> Envelope:
    """Returns at most ``columns`` intervals of equal length, without empty ones."""
    t_s = t_ns.astype(np.float64) / 1e9
    if len(values) <= 2 * columns:
        order = np.argsort(t_s, kind="stable")
        return Envelope(t_s[order], values[order], values[order], values[order], len(values))
    first, last = float(t_s.min()), float(t_s.max())
    width = (last - first) / columns or 1.0
    column = np.minimum(((t_s - first) / width).astype(np.int64), columns - 1)
    count = np.bincount(column, minlength=columns)
    total = np.bincount(column, weights=values, minlength=columns)
    low = np.full(columns, np.inf)
    high = np.full(columns, -np.inf)
    np.minimum.at(low, column, values)
    np.maximum.at(high, column, values)
    there = count > 0
    middle: Floats = np.arange(columns, dtype=np.float64)
    middle = first + (middle + 0.5) * width
    mean: Floats = (total[there] / count[there]).astype(np.float64)
    return Envelope(middle[there], mean, low[there], high[there], len(values))


def distribution(values: Floats, points: int = COLUMNS) -> tuple[Floats, Floats]:
    """Returns the empirical distribution function: values and the share of samples up to them.

    Beyond ``points`` samples, that many order statistics, including minimum and maximum.
    """
    ordered = np.sort(values)
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) <= points:
        return ordered, share
    chosen = np.unique(np.linspace(0, len(ordered) - 1, points).round().astype(np.int64))
    return ordered[chosen], share[chosen]


def kind_of(metric: str, unit: str) -> str:
    """Returns the plot of a metric: one of :data:`ORDER`, or its own name."""
    dimension = UNITS.get(unit, (1.0, None))[1]
    words = metric.lower().replace(".", "_").split("_")
    # Parts of a test follow a dot: cwnd.up_be.
    family = metric.partition(".")[0]
    if family in ("goodput", "offered", "delivery_rate") or family.startswith("other_"):
        # Goodput counts silence, throughput does not. What a program hands to its socket comes in bursts
        # far above the rate of any link; what other slices do is no figure of the flow.
        return family
    if dimension == RATE:
        return "throughput"
    if dimension == TIME:
        for kind in ("jitter", "rtt", "delay"):
            if kind in words:
                return kind
        return family
    if dimension == PLAIN and ("loss" in words or "lost" in words) and unit in ("1", "%", ""):
        return "loss"
    return family


def sampled(family: str) -> str:
    """Returns the metric of the samples of a family of figures: goodput is that of the whole throughput."""
    return "throughput" if family == "goodput" else family


def title_of(kind: str) -> str:
    """Returns a plot's title."""
    return _TITLES.get(kind, kind.replace("_", " ").capitalize())


def rank_of(kind: str) -> tuple[int, str]:
    """Returns the sort key of a plot on the page."""
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), kind)


def all_series(frame: pd.DataFrame) -> Iterator[Series]:
    """Yields every series of the experiment's own measurements in a table of samples."""
    keys = ["measurement", "metric", "unit", "node"]
    groups = list(frame.groupby(keys, observed=True, sort=True)) if len(frame) else []
    nodes: dict[tuple[str, str], int] = {}
    for (measurement, metric, _, _), _ in groups:
        nodes[(measurement, metric)] = nodes.get((measurement, metric), 0) + 1
    for (measurement, metric, unit, node), rows in groups:
        if measurement in BUILT_IN or unit not in UNITS:
            continue
        kind = kind_of(metric, unit)
        several = node and (nodes[(measurement, metric)] > 1 or metric.startswith("other_"))
        label = f"{measurement} {metric}" if metric != kind else measurement
        yield of_rows(rows, f"{label} at {node}" if several else label, kind)


def of_rows(rows: pd.DataFrame, label: str, kind: str) -> Series:
    """Returns the series of rows of one metric in one known unit."""
    metric, unit = (str(rows[column].iloc[0]) for column in ("metric", "unit"))
    factor, dimension = UNITS[unit]
    return Series(
        label=label,
        kind=kind,
        metric=metric,
        dimension=dimension,
        t_ns=rows["t_ns"].to_numpy(np.int64),
        values=rows["value"].to_numpy(np.float64) * factor,
    )


def built_in(frame: pd.DataFrame, measurement: str, metric: str, node: str | None = None) -> pd.DataFrame:
    """Returns the runtime's series of this name in order of time; empty without one."""
    rows = frame[(frame["measurement"] == measurement) & (frame["metric"] == metric)]
    if node is not None:
        rows = rows[rows["node"] == node]
    return rows.sort_values("t_ns", kind="stable")
