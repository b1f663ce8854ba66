"""Student's t distribution against closed forms, the published table and scipy."""

from __future__ import annotations

import math

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airloom import student

CLOSED = {
    1: lambda t: 1 - 2 / math.pi * math.atan(t),
    2: lambda t: 1 - t / math.sqrt(2 + t * t),
    4: lambda t: 1 - t * (t * t + 6) / (4 + t * t) ** 1.5,
}
"""Two-sided tails with few degrees of freedom, by integration."""


@pytest.mark.parametrize("freedom", CLOSED)
@pytest.mark.parametrize("t", [0.0, 1e-9, 0.1, 0.7, 1.0, 2.5, 12.706, 40.0])
def test_tails_are_those_of_closed_forms(freedom: int, t: float) -> None:
    assert student.two_sided(t, freedom) == pytest.approx(CLOSED[freedom](t), rel=1e-11, abs=1e-13)
    assert student.two_sided(-t, freedom) == student.two_sided(t, freedom)


@given(st.floats(0.5, 1e8), st.floats(0, 12))
def test_tails_are_scipys(freedom: float, t: float) -> None:
    reference = 2 * float(scipy.special.stdtr(freedom, -t))
    assert student.two_sided(t, freedom) == pytest.approx(reference, rel=1e-9)


@given(st.floats(0.5, 1e8), st.floats(0.001, 0.999))
def test_a_quantile_has_its_probability(freedom: float, probability: float) -> None:
    t = student.quantile(probability, freedom)
    below = 1 - student.two_sided(t, freedom) / 2
    assert (below if t >= 0 else 1 - below) == pytest.approx(probability, rel=1e-9)


def test_quantiles_are_the_published_ones() -> None:
    """Student's table (NIST/SEMATECH, section 1.3.6.7.2), its last line for the normal distribution."""
    table = {1: 12.706, 2: 4.303, 3: 3.182, 9: 2.262, 30: 2.042, 100: 1.984, math.inf: 1.960}
    for freedom, quantile in table.items():
        assert student.quantile(0.975, freedom) == pytest.approx(quantile, abs=6e-4)
        assert student.quantile(0.025, freedom) == -student.quantile(0.975, freedom)


def test_the_ends() -> None:
    assert student.two_sided(0.0, 5) == 1.0
    assert student.two_sided(math.inf, 5) == 0.0
    assert math.isnan(student.two_sided(math.nan, 5))
    assert student.quantile(0.5, 5) == 0.0
    for wrong in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="above 0 and below 1"):
            student.quantile(wrong, 5)
