"""Student's t distribution: tails and quantiles.

With ``v`` degrees of freedom, ``P(|T| > t) = I_x(v/2, 1/2)`` at ``x = v / (v + t^2)``, where ``I`` is the
regularized incomplete beta function (NIST Digital Library of Mathematical Functions, 8.17.2), evaluated by
its continued fraction (DLMF 8.17.22) with the method of Lentz. Above ``MANY`` degrees the normal distribution
has two corrections (R. A. Fisher, Metron 5, 1925). Relative errors are below 1e-11.
"""

from __future__ import annotations

import math

MANY = 1e5
"""Degrees of freedom above which the distribution is nearly normal."""
_LEAST = 1e-300
"""Stands for a zero denominator in Lentz's method."""
_PRECISION = 1e-15
_TERMS = 100_000
_SERIES = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)
"""Coefficients of 1/a^k in ``gamma(a + 1/2) / (gamma(a) sqrt(a))`` for large a (DLMF 5.11.13)."""
_LARGE = 100.0
"""From here the series is more precise than a difference of logarithms."""


def two_sided(t: float, freedom: float) -> float:
    """Returns the probability that ``|T|`` exceeds ``|t|``; ``freedom`` is above 0 and may be infinite."""
    square = t * t
    if not math.isfinite(square):
        return 0.0 if math.isinf(square) else math.nan
    if freedom > MANY:
        return _nearly_normal(abs(t), freedom)
    # The fraction converges at once on this side of the mean; on the other the complement is evaluated.
    x, rest, a = freedom / (freedom + square), square / (freedom + square), freedom / 2
    if x < (a + 1) / (a + 2.5):
        return _front(a, x, rest) / a * _fraction(a, 0.5, x)
    return 1.0 - _front(a, x, rest) / 0.5 * _fraction(0.5, a, rest)


def quantile(probability: float, freedom: float) -> float:
    """Returns t with ``P(T <= t) = probability``, which is above 0 and below 1."""
    if not 0 < probability < 1:
        raise ValueError(f"a probability above 0 and below 1 is needed, not {probability}")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -quantile(1 - probability, freedom)
    outside = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > outside:
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if two_sided(middle, freedom) > outside:
            low = middle
        else:
            high = middle


def _nearly_normal(t: float, freedom: float) -> float:
    first = (t**3 + t) / 4
    second = (3 * t**7 - 5 * t**5 - 7 * t**3 - 3 * t) / 96
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    beyond = density * (first / freedom + second / freedom**2) if density > 0 else 0.0
    return min(1.0, math.erfc(t / math.sqrt(2)) + 2 * beyond)


def _front(a: float, x: float, rest: float) -> float:
    """Returns ``x^a (1 - x)^(1/2) / B(a, 1/2)`` with ``rest = 1 - x``."""
    # A power of x near 1: its logarithm from the small difference.
    power = math.exp(a * (math.log1p(-rest) if rest < 0.5 else math.log(x))) if x > 0 else 0.0
    return power * math.sqrt(rest) * _ratio(a) / math.sqrt(math.pi)


def _ratio(a: float) -> float:
    """Returns ``gamma(a + 1/2) / gamma(a)``."""
    if a < _LARGE:
        return math.gamma(a + 0.5) / math.gamma(a)
    return math.sqrt(a) * math.fsum(factor / a**power for power, factor in enumerate(_SERIES))


def _fraction(a: float, b: float, x: float) -> float:
    """Returns the continued fraction of ``I_x(a, b)``, by which its leading factor is multiplied."""
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _LEAST else _LEAST)
    c, value = 1.0, d
    for m in range(1, _TERMS):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + factor * d
            c = 1 + factor / c
            d = 1 / (d if abs(d) > _LEAST else _LEAST)
            c = c if abs(c) > _LEAST else _LEAST
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            return value
    raise ArithmeticError(f"the continued fraction of I_{x}({a}, {b}) does not converge")
