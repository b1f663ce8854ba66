"""Statistics against published values, against scipy, and against what they promise."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airloom import stats as statistics

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def test_student_by_hand():
    # 1..5: mean 3, s = sqrt(2.5), t(4; 0.975) = 2.776445
    found = statistics.mean([1, 2, 3, 4, 5])
    assert found.value == 3
    assert found.stddev == pytest.approx(math.sqrt(2.5))
    assert found.half_width == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    assert (found.low + found.high) / 2 == 3


def test_one_observation_has_no_interval():
    found = statistics.mean([7.0])
    assert (found.value, found.half_width) == (7.0, math.inf)
    assert math.isnan(found.stddev)


@given(NUMBERS, st.sampled_from([0.8, 0.95, 0.99]))
def test_mean_is_scipys(values, level):
    found = statistics.mean(values, level)
    assert found.value == pytest.approx(np.mean(values), abs=1e-6)
    error = scipy.stats.sem(values)
    low, high = scipy.stats.t.interval(level, len(values) - 1, np.mean(values), error) if error else (0, 0)
    if error:
        assert found.low == pytest.approx(low, rel=1e-6, abs=1e-6)
        assert found.high == pytest.approx(high, rel=1e-6, abs=1e-6)


def test_students_quantiles_are_the_published_ones():
    """Student's table (NIST/SEMATECH, section 1.3.6.7.2), and the normal distribution as its limit."""
    table = {1: 12.706, 2: 4.303, 3: 3.182, 9: 2.262, 30: 2.042, 100: 1.984, math.inf: 1.960}
    for freedom, quantile in table.items():
        assert 1 / statistics.standard_error(1.0, freedom) == pytest.approx(quantile, abs=6e-4)


@given(NUMBERS, NUMBERS)
def test_welch_is_scipys(first, second):
    if np.std(first) < 1e-3 or np.std(second) < 1e-3:
        return
    found = statistics.welch(first, second)
    expected = scipy.stats.ttest_ind(second, first, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert found.freedom == pytest.approx(expected.df, rel=1e-6)
    interval = expected.confidence_interval()
    assert found.low == pytest.approx(interval.low, rel=1e-6, abs=1e-6)
    assert found.high == pytest.approx(interval.high, rel=1e-6, abs=1e-6)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=30))
def test_paired_is_scipys(pairs):
    first, second = np.array(pairs).T
    if np.std(second - first) < 1e-3:
        return
    found = statistics.paired(first, second)
    expected = scipy.stats.ttest_rel(second, first)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert found.low == pytest.approx(expected.confidence_interval().low, rel=1e-6, abs=1e-6)


def test_no_spread_at_all():
    same = statistics.welch([5, 5, 5], [5, 5, 5])
    assert (same.value, same.p) == (0, 1)
    apart = statistics.welch([5, 5, 5], [6, 6, 6])
    assert (apart.value, apart.low, apart.high, apart.p) == (1, 1, 1, 0)
    assert statistics.paired([1, 2, 3], [2, 3, 4]).p == 0


def test_tiny_errors_do_not_vanish():
    found = statistics.difference((1.0, 1e-100, 4), (1.0, 1e-100, 4))
    assert found.freedom == pytest.approx(8)
    assert 0 < found.high < 1e-99


def test_an_interval_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(3)
    held = sum(
        abs(statistics.mean(row).value - 10) <= statistics.mean(row).half_width
        for row in random.normal(10, 2, (2000, 5))
    )
    assert held / 2000 == pytest.approx(0.95, abs=0.015)


def test_batch_means_of_correlated_observations_hold_the_truth_as_often_as_they_say():
    """First-order autoregression with coefficient 0.9: Student's interval of all is far too narrow."""
    random = np.random.default_rng(5)
    held = {"batches": 0, "observations": 0}
    for _ in range(300):
        values = scipy.signal.lfilter([1.0], [1.0, -0.9], random.normal(size=4_200))[200:]
        held["batches"] += statistics.batch_mean(values).low <= 0 <= statistics.batch_mean(values).high
        held["observations"] += statistics.mean(values).low <= 0 <= statistics.mean(values).high
    assert 0.9 * 300 <= held["batches"] <= 0.98 * 300
    assert held["observations"] < 0.5 * 300


def test_the_batch_mean_by_hand():
    found = statistics.batch_mean([1, 2, 3, 4, 50], batches=2)
    assert (found.value, found.n) == (12, 2)
    assert found.half_width == pytest.approx(statistics.mean([1.5, 3.5]).half_width)
    assert statistics.batch_mean([1, 2, 4]).half_width == statistics.mean([1, 2, 4]).half_width


@pytest.mark.slow
def test_a_bootstrap_interval_holds_the_median_as_often_as_it_says():
    random = np.random.default_rng(4)
    held = 0
    for row in random.exponential(1, (300, 60)):
        _, low, high = statistics.quantile(row, 0.5, resamples=300)
        held += low <= math.log(2) <= high
    assert held / 300 == pytest.approx(0.95, abs=0.04)


def test_quantile_is_repeatable_and_inside_the_data():
    data = list(range(100))
    value, low, high = statistics.quantile(data, 0.9)
    assert value == pytest.approx(89.1)
    assert 0 <= low <= value <= high <= 99
    assert statistics.quantile(data, 0.9) == (value, low, high)
    assert statistics.quantile([3.0], 0.5) == (3.0, 3.0, 3.0)


def test_repetitions_by_hand():
    # mean 100, s = 10; 5 % needs t(n - 1) * 10 / sqrt(n) <= 5: n = 18 (2.1098 * 10 / sqrt(18) = 4.973).
    pilot = [100 - 10 * math.sqrt(0.5), 100 + 10 * math.sqrt(0.5)]
    assert statistics.mean(pilot).stddev == pytest.approx(10)
    assert statistics.repetitions(pilot, 0.05) == 18
    assert statistics.repetitions([5, 5, 5], 0.01) == 2
    with pytest.raises(ValueError, match="too small"):
        statistics.repetitions([-1, 1], 0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: statistics.mean([]),
        lambda: statistics.mean([1, math.nan]),
        lambda: statistics.welch([1], [1, 2]),
        lambda: statistics.paired([1, 2], [1]),
        lambda: statistics.quantile([1], 1.5),
        lambda: statistics.repetitions([1], 0.1),
        lambda: statistics.repetitions([1, 2], 0),
    ],
)
def test_what_cannot_be_computed_is_refused(wrong):
    with pytest.raises(ValueError, match=r"needed|needs|lies"):
        wrong()


def test_the_effect_size_is_hedges_g() -> None:
    # s^2 = (9 * 4 + 14 * 9) / 23, J = 1 - 3 / 91.
    expected = 3.0 / math.sqrt(162 / 23) * (1 - 3 / 91)
    assert statistics.effect_size(3.0, (2.0, 10), (3.0, 15)) == pytest.approx(expected)
    assert statistics.effect_size(1.0, (0.0, 3), (0.0, 3)) is None


def test_independent_half_widths_combine_as_in_welchs_test() -> None:
    """The same widths by the difference of two means, and by the normal distribution."""
    first, second = statistics.mean([10.0, 11.0, 12.0]), statistics.mean([5.0, 5.5, 7.0, 6.0])
    gap = statistics.difference((first.value, first.error, 2), (second.value, second.error, 3))
    joined = statistics.combined([(first.half_width, 2), (second.half_width, 3), (0.0, 1)])
    assert joined == pytest.approx((gap.high - gap.low) / 2)
    assert statistics.combined([(3.0, math.inf), (4.0, math.inf)]) == pytest.approx(5.0)
    assert statistics.combined([(3.0, 2)]) == 3.0
    assert statistics.combined([]) == 0.0
    assert statistics.combined([(math.inf, 2), (1.0, 3)]) == math.inf
