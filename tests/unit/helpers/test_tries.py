"""When a test that measures the machine has another try, and what the suite says of it."""

from __future__ import annotations

import pytest

from helpers import REPOSITORY

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

TESTS = REPOSITORY / "tests"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.tries import Summary, tries
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary())
"""
BODY = """
import pytest
def attempts(tries, *runs):
    runs = iter(runs)
    for attempt in tries:
        with attempt:
            status, good = next(runs)
            attempt.judge(status, ["the host stole time"])
            assert good
    return attempt.number
"""


@pytest.fixture
def suite(pytester: pytest.Pytester):
    def run(text: str, *words: str) -> pytest.RunResult:
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(BODY + text)
        return pytester.runpytest_subprocess(*words)

    return run


def test_a_run_that_is_not_valid_is_tried_again_and_listed(suite) -> None:
    done = suite("""
def test_it(tries):
    assert attempts(tries, ("invalid", False), ("degraded", False), ("valid", True)) == 3
""")
    done.assert_outcomes(passed=1)
    assert done.ret == 0
    done.stdout.fnmatch_lines(["*2 of at most 10 more tries*", "*test_it: invalid: the host stole time"])


def test_a_valid_run_is_believed_and_so_is_the_last(suite) -> None:
    done = suite("""
def test_believed(tries):
    attempts(tries, ("valid", False), ("valid", True))
def test_last(tries):
    attempts(tries, *[("invalid", False)] * 3)
def test_good_enough(tries):
    assert attempts(tries, ("invalid", True)) == 1
def test_another_error(tries):
    for attempt in tries:
        with attempt:
            attempt.judge("invalid")
            raise RuntimeError
""")
    done.assert_outcomes(passed=1, failed=3)
    done.stdout.fnmatch_lines(["*2 of at most 10 more tries*"])


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "side by side"])
def test_too_many_tries_fail_the_suite(suite, words: tuple[str, ...]) -> None:
    done = suite(
        """
@pytest.mark.parametrize("n", range(6))
def test_it(tries, n):
    assert attempts(tries, ("invalid", False), ("invalid", False), ("valid", True)) == 3
""",
        *words,
    )
    done.assert_outcomes(passed=6)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["*12 of at most 10 more tries*", "FAILED: more tries than the suite may have"])
