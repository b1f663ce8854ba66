"""Trends of two results from different machines: directions and ratios instead of absolute values.

Another machine has other absolute values; what should persist is how a figure changes over the
swept values. For each figure and each label (a swept path, or a label of an experiment's points),
the figure at every further value is divided by that at the first one, in either result. With the
means ``a`` and ``b`` and their standard errors, the 95 % interval of the ratio is that of
``ln(b / a)`` by the delta method: ``ln(b / a) +- t(f) sqrt((e_a / a)^2 + (e_b / b)^2)`` with the
degrees of freedom of Welch and Satterthwaite. It needs positive means.

=============  =================================================================================
outcome        when
=============  =================================================================================
``same``       both intervals lie on the same side of 1
``opposite``   they lie on different sides
``undecided``  an interval contains 1, or a result has one repetition and thus no interval
=============  =================================================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from airloom.compare.machines import differences
from airloom.report.tables import labels_of
from airloom.results import Measurement, RunReader
from airloom.results.headline import headlines
from airloom.stats import difference, standard_error

SCHEMA = 1

Direction = Literal["up", "down", "level", "unknown"]
Outcome = Literal["same", "opposite", "undecided"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure over the one at the first value; the bounds of its 95 % interval are null if unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def direction(self) -> Direction:
        """``level`` if the interval contains 1, ``unknown`` without an interval."""
        if self.low is None or self.high is None:
            return "unknown"
        return "up" if self.low > 1 else "down" if self.high < 1 else "level"


@dataclass(frozen=True, slots=True)
class Trend:
    """One comparison of two swept values, in both results."""

    name: str
    metric: str
    label: str
    """The swept path or label."""
    values: tuple[str, str]
    labels: dict[str, str]
    """The other labels of both figures."""
    first: Ratio
    second: Ratio

    @property
    def outcome(self) -> Outcome:
        """Whether both results have the same direction."""
        one, other = self.first.direction, self.second.direction
        if not {one, other} <= {"up", "down"}:
            return "undecided"
        return "same" if one == other else "opposite"

    @property
    def overlap(self) -> bool | None:
        """Whether the intervals of both ratios overlap; None if one is unknown."""
        one, other = self.first, self.second
        if one.low is None or one.high is None or other.low is None or other.high is None:
            return None
        return max(one.low, other.low) <= min(one.high, other.high)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        directions = {"directions": [self.first.direction, self.second.direction]}
        return asdict(self) | directions | {"outcome": self.outcome, "overlap": self.overlap}


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """The outcome of one claim in both results; ``-`` where it is missing."""

    id: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Trends:
    """Two results: their trends, their claims, and how their machines differ."""

    first: str
    second: str
    """Folders."""
    verdicts: tuple[str, str]
    trends: tuple[Trend, ...]
    claims: tuple[ClaimPair, ...]
    machines: dict[str, tuple[str, str]]
    """Properties and versions that differ: both values."""
    missing: int = 0
    """Figures of the first result that the second lacks."""

    def count(self, outcome: Outcome) -> int:
        """Number of trends with an outcome."""
        return sum(one.outcome == outcome for one in self.trends)

    @property
    def hold(self) -> bool:
        """True if no trend is opposite and no claim that held fails."""
        broken = any(one.first.startswith("holds") and one.second == "fails" for one in self.claims)
        return not broken and not self.count("opposite")

    def to_json(self) -> str:
        """Returns the JSON text."""
        raw = {
            "schema": SCHEMA,
            "first": self.first,
            "second": self.second,
            "verdicts": list(self.verdicts),
            "hold": self.hold,
            "machines": {name: list(values) for name, values in self.machines.items()},
            "missing": self.missing,
            "trends": [one.to_dict() for one in self.trends],
            "claims": [asdict(one) for one in self.claims],
        }
        return json.dumps(raw, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def trends(first: Path, second: Path, *, every: bool = False) -> Trends:
    """Compares the trends of two folders of results; ``every`` takes more than the headline figures."""
    a, b = RunReader(first), RunReader(second)
    return Trends(
        str(first),
        str(second),
        (a.result.verdict.status, b.result.verdict.status),
        tuple(_trends(a, b, every)),
        tuple(_claims(a, b)),
        differences(a, b),
        len(_by_identity(a).keys() - _by_identity(b).keys()),
    )


def ratio(first: Measurement | None, second: Measurement | None) -> Ratio | None:
    """Returns second over first with its interval; None unless both are positive, of one unit."""
    if first is None or second is None or first.unit != second.unit:
        return None
    if first.mean is None or second.mean is None or min(first.mean, second.mean) <= 0:
        return None
    value = second.mean / first.mean
    if any(one.ci95 is None or one.n < 2 for one in (first, second)):
        return Ratio(value)
    logs = [
        (math.log(one.mean or 1), standard_error(one.ci95 or 0.0, one.n - 1) / (one.mean or 1), one.n - 1)
        for one in (first, second)
    ]
    found = difference(logs[0], logs[1])
    return Ratio(value, _exp(found.low), _exp(found.high))


def _exp(value: float) -> float:
    """The interval of two wild repetitions may be wider than a number holds."""
    return math.exp(max(-700.0, min(700.0, value)))


def _trends(a: RunReader, b: RunReader, every: bool) -> Iterator[Trend]:
    said = labels_of(a)
    shown = a.figures if every else headlines(a.figures)
    here, there = _by_identity(a), _by_identity(b)
    for label in dict.fromkeys(label for one in shown for label in one.labels):
        base: dict[tuple[str, str, str], Measurement] = {}
        for one in shown:
            if label not in one.labels:
                continue
            others = {name: value for name, value in one.labels.items() if name != label}
            start = base.setdefault((one.name, one.metric, _key(others)), one)
            if start is one:
                continue
            pairs = [[found.get(_identity(each)) for each in (start, one)] for found in (here, there)]
            first, second = (ratio(*pair) for pair in pairs)
            if first is None or second is None:
                continue
            values = (start.labels[label], one.labels[label])
            yield Trend(one.name, one.metric, said.get(label, label), values, others, first, second)


def _by_identity(run: RunReader) -> dict[tuple[str, str, str], Measurement]:
    return {_identity(one): one for one in run.figures}


def _identity(one: Measurement) -> tuple[str, str, str]:
    return one.name, one.metric, _key(one.labels)


def _key(labels: dict[str, str]) -> str:
    return json.dumps(labels, sort_keys=True)


def _claims(a: RunReader, b: RunReader) -> Iterator[ClaimPair]:
    found = [{claim.id: claim.outcome for claim in run.result.claims} for run in (a, b)]
    for name in dict.fromkeys([*found[0], *found[1]]):
        yield ClaimPair(name, *(str(one.get(name, "-")) for one in found))
