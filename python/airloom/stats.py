"""Statistics of repeated measurements: means with intervals, differences, and required repetitions.

All intervals have a level (0.95 by default): if repeated with new data, that fraction of them
contains the true value. Observations are assumed independent: use one figure per repetition. For the
packets of one run there is :func:`batch_mean`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from airloom import student

LEVEL = 0.95
_MOST_DRAWN = 1 << 18
"""Observations drawn at once for a bootstrap, a few megabytes."""

Values = Sequence[float] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with the standard deviation of its observations and its interval."""

    value: float
    stddev: float
    """``s = sqrt(sum((x - mean)^2) / (n - 1))``; nan for one observation."""
    n: int
    half_width: float
    """The interval is the mean plus or minus this; infinite for one observation."""

    @property
    def error(self) -> float:
        """Standard error of the mean: ``s / sqrt(n)``."""
        return self.stddev / math.sqrt(self.n)

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + self.half_width


@dataclass(frozen=True, slots=True)
class Difference:
    """Second minus first, with its interval and its probability if there were no difference."""

    value: float
    low: float
    high: float
    p: float
    freedom: float


def mean(values: Values, level: float = LEVEL) -> Mean:
    """Mean with Student's interval: ``mean +- t(n - 1) * s / sqrt(n)`` (Student, Biometrika 6, 1908).

    Exact for normal observations, good for any from about 30 on.
    """
    data = _checked(values)
    average = math.fsum(data) / data.size
    if data.size == 1:
        return Mean(average, math.nan, 1, math.inf)
    stddev = float(data.std(ddof=1))
    half = _t((1 + level) / 2, data.size - 1) * stddev / math.sqrt(data.size)
    return Mean(average, stddev, data.size, half)


def spread_of(half_width: float, n: int, level: float = LEVEL) -> float:
    """Standard deviation of ``n`` observations whose mean has an interval of this half width."""
    return half_width * math.sqrt(n) / _t((1 + level) / 2, n - 1)


def batch_mean(values: Values, batches: int = 20, level: float = LEVEL) -> Mean:
    """Mean of the consecutive, correlated observations of one run, with an interval by batch means.

    The observations are divided in order into ``batches`` batches of equal size (one observation
    each, if there are fewer), and Student's interval is that of the means of the batches, which are
    nearly independent if a batch is long against the correlation (Law, Simulation Modeling and
    Analysis, section 9.5). The observations that fill no batch, at the end, count in the mean only.
    It says nothing of what stays equal during a run and differs between runs.
    """
    data = _checked(values)
    size = max(1, data.size // batches)
    over = mean(data[: data.size // size * size].reshape(-1, size).mean(axis=1), level)
    return Mean(math.fsum(data) / data.size, over.stddev, over.n, over.half_width)


def quantile(
    values: Values, probability: float, level: float = LEVEL, *, resamples: int = 2000, seed: int = 1
) -> tuple[float, float, float]:
    """A quantile and both ends of its bootstrap interval.

    The quantile interpolates linearly between order statistics. The interval is the percentile
    bootstrap (Efron, Annals of Statistics 7, 1979): the same quantile is computed for ``resamples``
    samples drawn with replacement, and the outer ``(1 - level) / 2`` on each side is cut off. It
    cannot extend beyond the largest observation, so an extreme quantile needs many: at least about
    ``10 / (1 - probability)``.
    """
    data = _checked(values)
    if not 0 <= probability <= 1:
        raise ValueError(f"a quantile's probability lies from 0 to 1, not {probability}")
    random = np.random.default_rng(seed)
    drawn = np.empty(resamples)
    at_once = max(1, _MOST_DRAWN // data.size)
    for first in range(0, resamples, at_once):
        rows = min(at_once, resamples - first)
        samples = data[random.integers(0, data.size, (rows, data.size))]
        drawn[first : first + rows] = np.quantile(samples, probability, axis=1)
    outside = (1 - level) / 2
    low, high = np.quantile(drawn, [outside, 1 - outside])
    return float(np.quantile(data, probability)), float(low), float(high)


def standard_error(half_width: float, freedom: float, level: float = LEVEL) -> float:
    """The standard error of an estimate from the half width of its interval."""
    return half_width / _t((1 + level) / 2, freedom)


def welch(first: Values, second: Values, level: float = LEVEL) -> Difference:
    """The difference of two independent means whose variances may differ; see :func:`difference`."""
    a, b = mean(first), mean(second)
    if a.n < 2 or b.n < 2:
        raise ValueError("Welch's test needs two observations or more on each side")
    return difference((a.value, a.error, a.n - 1), (b.value, b.error, b.n - 1), level)


def difference(
    first: tuple[float, float, float], second: tuple[float, float, float], level: float = LEVEL
) -> Difference:
    """The difference of two estimates, each (mean, standard error, degrees of freedom).

    ``t = (m2 - m1) / sqrt(e1^2 + e2^2)`` with ``(e1^2 + e2^2)^2 / (e1^4 / f1 + e2^4 / f2)`` degrees of
    freedom (B. L. Welch, Biometrika 34, 1947; Satterthwaite). For means that are nearly normal.
    """
    value = second[0] - first[0]
    one, two = first[1] ** 2, second[1] ** 2
    error = math.sqrt(one + two)
    if error == 0:
        return Difference(value, value, value, 1.0 if value == 0 else 0.0, math.inf)
    # As shares of the sum, so that very small errors do not vanish when squared again.
    share = one / (one + two)
    freedom = 1 / (share**2 / first[2] + (1 - share) ** 2 / second[2])
    half = _t((1 + level) / 2, freedom) * error
    return Difference(value, value - half, value + half, student.two_sided(value / error, freedom), freedom)


def combined(parts: Sequence[tuple[float, float]], level: float = LEVEL) -> float:
    """Half width of the interval of a sum of independent estimates, each (half width, freedom).

    ``h = t(f) * sqrt(sum(v))`` with ``v = (h_i / t(f_i))^2`` and ``f = sum(v)^2 / sum(v^2 / f_i)``
    (Welch, Satterthwaite). An infinite ``freedom`` is a normal estimate; zero half widths add nothing.
    """
    known = [(half, freedom) for half, freedom in parts if half]
    if len(known) < 2 or any(not math.isfinite(half) for half, _ in known):
        return math.fsum(half for half, _ in known)
    largest = max(half for half, _ in known)
    # In units of the largest, so that very small widths do not vanish when squared.
    variances = [(half / largest / _t((1 + level) / 2, freedom)) ** 2 for half, freedom in known]
    total = math.fsum(variances)
    freedom = (
        1 / math.fsum((one / total) ** 2 / own for one, (_, own) in zip(variances, known, strict=True))
        if any(math.isfinite(own) for _, own in known)
        else math.inf
    )
    return _t((1 + level) / 2, freedom) * math.sqrt(total) * largest


def effect_size(value: float, first: tuple[float, int], second: tuple[float, int]) -> float | None:
    """A difference of means in standard deviations: Hedges' g (Journal of Educational Statistics 6, 1981).

    ``first`` and ``second`` are standard deviation and number of observations, two or more each.
    ``g = value / s * (1 - 3 / (4 f - 1))`` with ``s^2 = ((n1 - 1) s1^2 + (n2 - 1) s2^2) / f`` and
    ``f = n1 + n2 - 2``. None without any spread.
    """
    freedom = first[1] + second[1] - 2
    pooled = math.sqrt(((first[1] - 1) * first[0] ** 2 + (second[1] - 1) * second[0] ** 2) / freedom)
    return value / pooled * (1 - 3 / (4 * freedom - 1)) if pooled else None


def paired(first: Values, second: Values, level: float = LEVEL) -> Difference:
    """The mean difference of paired observations, such as two node kinds with one seed.

    ``d = second - first`` pair by pair, then Student's interval of the mean of ``d`` with n - 1
    degrees of freedom.
    """
    a, b = _checked(first), _checked(second)
    if a.size != b.size or a.size < 2:
        raise ValueError(f"pairs are needed, two or more: there are {a.size} and {b.size} observations")
    gap = mean(b - a, level)
    if gap.error == 0:
        return Difference(gap.value, gap.value, gap.value, 1.0 if gap.value == 0 else 0.0, gap.n - 1)
    chance = student.two_sided(gap.value / gap.error, gap.n - 1)
    return Difference(gap.value, gap.low, gap.high, chance, gap.n - 1)


def repetitions(pilot: Values, relative: float, level: float = LEVEL, *, most: int = 100_000) -> int:
    """Number of repetitions for a mean's interval within plus or minus ``relative`` of it.

    The smallest n of 2 or more with ``t(n - 1) * s / sqrt(n) <= relative * |mean|``, where mean and
    s are those of the pilot runs (Law, Simulation Modeling and Analysis, section 9.4). It is an
    estimate: s is only as exact as the pilot.
    """
    known = mean(pilot, level)
    if known.n < 2 or relative <= 0:
        raise ValueError("a pilot of two runs or more, and a width above 0, are needed")
    wanted = relative * abs(known.value)

    def wide(n: int) -> bool:
        return _t((1 + level) / 2, n - 1) * known.stddev / math.sqrt(n) > wanted

    if wide(most):
        raise ValueError(f"more than {most} repetitions: the mean is too small against its spread")
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        if middle < 2 or wide(middle):
            low = middle
        else:
            high = middle
    return high


def _checked(values: Values) -> npt.NDArray[np.float64]:
    data = np.asarray(values, np.float64)
    if data.ndim != 1 or not data.size or not np.isfinite(data).all():
        raise ValueError("one or more finite observations in one row are needed")
    return data


_t = functools.lru_cache(maxsize=4096)(student.quantile)
