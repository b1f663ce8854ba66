"""Comparison of two runs: the difference of each figure, with a significance test.

The interval of a difference is Welch's (1947): the standard errors of both means are added in
quadrature; the degrees of freedom are Welch and Satterthwaite's. For a result with repetitions, its
interval over the repetitions is used. For a single run, the samples behind a mean are divided into
twenty consecutive batches whose means count as observations, since neighbouring samples are not
independent. Such an interval does not include the variation between runs; the table notes this.

The comparison tests many figures at once, so ``significant`` is decided by Holm's (1979) procedure,
which keeps the probability of any false positive in the whole table at 5 %.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from airloom.compare.attribution import ComponentRow, StageRow, component_rows, stage_rows
from airloom.compare.pairing import differing, figures_of, swept_path
from airloom.errors import ScenarioError
from airloom.report.tables import labels_of
from airloom.results import Measurement, RunReader, Verdict
from airloom.results.sweep import name_of, worst
from airloom.results.writer import label_of
from airloom.stats import LEVEL, difference, effect_size, standard_error
from airloom.units.figures import UNITS

SCHEMA = 1
BATCHES = 20

Basis = Literal["repetitions", "batches", "none"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, its standard error and degrees of freedom; the latter two are null if unknown."""

    mean: float
    n: int
    error: float | None = None
    freedom: float | None = None
    basis: Basis = "none"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure in both runs, in ``unit``; unknown values are null.

    ``difference`` is second minus first, ``low`` and ``high`` its 95 % interval, ``ratio`` second
    over first, ``p`` the probability of a difference at least this large if there were none.
    """

    name: str
    metric: str
    unit: str
    labels: dict[str, str]
    first: float | None
    second: float | None
    difference: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    significant: bool | None = None
    basis: Basis = "none"
    effect: float | None = None
    """The difference in standard deviations between repetitions (Hedges' g)."""


@dataclass(frozen=True, slots=True)
class Side:
    """Identity and verdict of one of the two runs."""

    folder: str
    scenario: str
    seed: int
    kinds: tuple[str, ...]
    verdict: Verdict
    notes: tuple[str, ...] = ()
    """Missing or damaged parts of the run."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs and the rows of every figure that either of them has."""

    first: Side
    second: Side
    rows: tuple[Row, ...]
    stages: tuple[StageRow, ...] = ()
    """Time of traced packets by stage."""
    components: tuple[ComponentRow, ...] = ()
    """Processor time by component."""
    differs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Swept paths with another value in each run: both values."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of swept paths, given by the scenario."""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        sides = {
            name: asdict(side)
            | {"kinds": list(side.kinds), "notes": list(side.notes)}
            | {"verdict": side.verdict.model_dump(mode="json")}
            for name, side in (("first", self.first), ("second", self.second))
        }
        rows = {
            "rows": [asdict(row) for row in self.rows],
            "stages": [asdict(row) for row in self.stages],
            "components": [asdict(row) for row in self.components],
        }
        differs = {path: list(values) for path, values in self.differs.items()}
        return {"schema": SCHEMA, "level": LEVEL, "differs": differs, **sides, **rows}

    def to_json(self) -> str:
        """Returns the JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def compare(first: Path, second: Path) -> Comparison:
    """Compares two folders of runs or sweeps, figure by figure.

    Of two points of one sweep, the swept values are the difference between the runs.
    """
    a, b = RunReader(first), RunReader(second)
    differs = differing(a, b)
    left, right = figures_of(a, differs), figures_of(b, differs)
    rows = [_row(left.get(key), right.get(key), a, b, differs) for key in dict.fromkeys([*left, *right])]
    return Comparison(
        _side(a),
        _side(b),
        tuple(_judged(rows)),
        tuple(stage_rows(a, b)),
        tuple(component_rows(a, b)),
        differs,
    )


def compare_values(folder: Path, by: str | None = None) -> list[Comparison]:
    """Compares the points of a sweep with one value of a path with those with its first value.

    ``by`` is the path or its label; by default the first swept path. Points are paired by their
    other values.
    """
    run = RunReader(folder)
    path = swept_path(run, by)
    values = [label_of(value) for value in run.index.sweep[path]]
    if len(values) < 2:
        raise ScenarioError(
            "compare.one",
            f"{path} has one value",
            where=str(folder),
            cure="name another folder",
        )
    found = []
    for other in values[1:]:
        left, right = (figures_of(run, (path,), {path: value}) for value in (values[0], other))
        rows = [
            _row(left.get(key), right.get(key), run, run, (path,)) for key in dict.fromkeys([*left, *right])
        ]
        first, second = (_side_with(run, path, value) for value in (values[0], other))
        found.append(
            Comparison(
                first, second, tuple(_judged(rows)), differs={path: (values[0], other)}, labels=labels_of(run)
            )
        )
    return found


def welch(first: Estimate, second: Estimate) -> tuple[float, float, float] | None:
    """Returns the bounds of the difference's 95 % interval, and p; None if an error is unknown.

    See :func:`airloom.stats.difference`.
    """
    if first.error is None or second.error is None or not first.freedom or not second.freedom:
        return None
    one, two = (first.mean, first.error, first.freedom), (second.mean, second.error, second.freedom)
    found = difference(one, two, LEVEL)
    return found.low, found.high, found.p


def holm(values: list[float], level: float = 1 - LEVEL) -> list[bool]:
    """Returns which of several p values are jointly significant (Holm 1979)."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [False] * len(values)
    for rank, index in enumerate(order):
        if values[index] > level / (len(values) - rank):
            break
        found[index] = True
    return found


def _row(
    left: Measurement | None, right: Measurement | None, a: RunReader, b: RunReader, differs: Collection[str]
) -> Row:
    known = left or right
    assert known is not None
    if left and right and left.unit != right.unit and left.unit in UNITS and right.unit in UNITS:
        right = _converted(right, left.unit)
    row = Row(
        name=known.name,
        metric=known.metric,
        unit=known.unit,
        labels={key: value for key, value in known.labels.items() if key not in differs},
        first=left.mean if left else None,
        second=right.mean if right else None,
    )
    if left is None or right is None or left.mean is None or right.mean is None or left.unit != right.unit:
        return row
    one, two = _estimate(left, a), _estimate(right, b)
    found = welch(one, two)
    low, high, p = found or (None, None, None)
    value = right.mean - left.mean
    return Row(
        name=row.name,
        metric=row.metric,
        unit=row.unit,
        labels=row.labels,
        first=row.first,
        second=row.second,
        difference=value,
        ratio=right.mean / left.mean if left.mean else None,
        low=low,
        high=high,
        p=p,
        basis="none" if p is None else "batches" if "batches" in (one.basis, two.basis) else "repetitions",
        effect=_effect(value, one, two),
    )


def _effect(value: float, one: Estimate, two: Estimate) -> float | None:
    if (one.basis, two.basis) != ("repetitions", "repetitions") or one.error is None or two.error is None:
        return None
    return effect_size(value, (one.error * one.n**0.5, one.n), (two.error * two.n**0.5, two.n))


def _converted(one: Measurement, unit: str) -> Measurement:
    if UNITS[one.unit][1] != UNITS[unit][1]:
        return one
    factor = UNITS[one.unit][0] / UNITS[unit][0]
    mean = None if one.mean is None else one.mean * factor
    ci95 = None if one.ci95 is None else one.ci95 * factor
    return one.model_copy(update={"unit": unit, "mean": mean, "ci95": ci95})


def _estimate(one: Measurement, run: RunReader) -> Estimate:
    mean = one.mean or 0.0
    if one.ci95 is not None and one.n >= 2:
        error = standard_error(one.ci95, one.n - 1)
        basis: Basis = "repetitions" if run.is_sweep else "batches"
        return Estimate(mean, one.n, error, one.n - 1, basis)
    return _batched(one, mean, run) if not run.is_sweep else Estimate(mean, one.n)


def _batched(one: Measurement, mean: float, run: RunReader) -> Estimate:
    """Returns a single run's mean with its error, from the means of consecutive batches."""
    import numpy as np

    stem, _, last = one.metric.rpartition("_")
    series = stem if last in ("avg", "mean") else one.metric
    rows = run.samples(one.name, series)
    if len(rows) < 2 * BATCHES or rows["unit"].nunique() != 1 or rows["node"].nunique() != 1:
        return Estimate(mean, one.n)
    unit = str(rows["unit"].iloc[0])
    if unit != one.unit and (unit not in UNITS or one.unit not in UNITS):
        return Estimate(mean, one.n)
    factor = UNITS[unit][0] / UNITS[one.unit][0] if unit != one.unit else 1.0
    values = rows.sort_values("t_ns", kind="stable")["value"].to_numpy(np.float64) * factor
    means = np.array([batch.mean() for batch in np.array_split(values, BATCHES)])
    error = float(means.std(ddof=1)) / math.sqrt(BATCHES)
    return Estimate(mean, len(values), error, BATCHES - 1, "batches")


def _judged(rows: list[Row]) -> list[Row]:
    tested = [index for index, row in enumerate(rows) if row.p is not None]
    verdicts = holm([rows[index].p or 0.0 for index in tested])
    significant = dict(zip(tested, verdicts, strict=True))
    return [
        Row(**(asdict(row) | {"significant": significant[index]})) if index in significant else row
        for index, row in enumerate(rows)
    ]


def _side(run: RunReader) -> Side:
    result = run.result
    return Side(str(run.folder), result.scenario, result.seed, result.kinds, result.verdict, tuple(run.notes))


def _side_with(run: RunReader, path: str, value: str) -> Side:
    """Returns the points of a sweep with one value of a path as a side."""
    verdicts = [
        (name_of(point), one.result.verdict)
        for point, one in run.begun
        if label_of(point.values[path]) == value
    ]
    side = _side(run)
    return replace(side, folder=f"{side.folder}, {path} {value}", verdict=worst(verdicts))
