"""What a failure of each class of tests leads to."""

from __future__ import annotations

import json

import pytest

from helpers import REPOSITORY

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

TESTS = REPOSITORY / "tests"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.tries import configure, register
def pytest_addoption(parser):
    register(parser)
def pytest_configure(config):
    config.addinivalue_line("markers", "world: makes namespaces")
    config.addinivalue_line("markers", "measures: measures this machine")
    configure(config)
"""
FEWER_PLUGINS = ("-p", "no:anyio", "-p", "no:hypothesispytest")
BODY = """
import json, pytest
from pathlib import Path
SEEN = {}
def run(folder, *runs, name="x", code="host.steal"):
    number = SEEN[name] = SEEN.get(name, 0) + 1
    status, good = runs[number - 1]
    folder.joinpath("out").mkdir()
    verdict = {"status": status, "reasons": ["the host stole time"], "codes": [code]}
    if status == "valid":
        verdict = {"status": status}
    folder.joinpath("out/result.json").write_text(json.dumps({"verdict": verdict}))
    assert good
    return number
"""


class Suite:
    """A file of tests, run by the rules of `helpers/tries.py`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def __call__(self, text: str, *words: str) -> pytest.RunResult:
        self.pytester.makeconftest(CONFTEST)
        self.pytester.makepyfile(BODY + text)
        return self.pytester.runpytest_subprocess("--outcomes=outcomes", *FEWER_PLUGINS, *words)

    def outcomes(self) -> dict[str, dict]:
        lines = (self.pytester.path / "outcomes").read_text().splitlines()
        return {one["test"].partition("::")[2]: one for one in map(json.loads, lines)}


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    return Suite(pytester)


def test_a_disturbed_try_of_a_measuring_test_is_followed_by_another(suite) -> None:
    done = suite("""
@pytest.mark.measures
def test_it(tmp_path):
    assert run(tmp_path, ("invalid", False), ("degraded", False), ("valid", True)) == 3
""")
    done.assert_outcomes(passed=1)
    assert done.ret == 0
    done.stdout.fnmatch_lines(["*2 more tries*", "*test_it: invalid: the host stole time (*assert False)"])
    assert suite.outcomes()["test_it"]["outcome"] == "passed"
    assert len(suite.outcomes()["test_it"]["tried"]) == 2


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["one process", "side by side"])
def test_a_measuring_test_disturbed_in_every_try_is_inconclusive(suite, words: tuple[str, ...]) -> None:
    done = suite(
        """
@pytest.mark.measures
def test_it(tmp_path):
    run(tmp_path, *[("invalid", False)] * 3)
""",
        *words,
    )
    assert done.ret == 0
    done.stdout.fnmatch_lines(["*1 inconclusive*", "*test_it: invalid: the host stole time (*assert False)"])
    assert [one["outcome"] for one in suite.outcomes().values()] == ["inconclusive"]


def test_a_measuring_test_with_verdicts_that_accuse_nobody_fails_at_once(suite) -> None:
    done = suite("""
pytestmark = pytest.mark.measures
def test_valid(tmp_path):
    run(tmp_path, ("valid", False), ("valid", True), name="valid")
def test_last(tmp_path):
    run(tmp_path, ("invalid", False), ("invalid", False), ("valid", False), name="last")
def test_of_a_scenario_with_too_much(tmp_path):
    run(tmp_path, ("degraded", False), ("valid", True), name="too much", code="kind.ceiling")
def test_good_enough(tmp_path):
    assert run(tmp_path, ("invalid", True), name="good enough") == 1
""")
    done.assert_outcomes(passed=1, failed=3)
    failed = [one for one in suite.outcomes().values() if one["outcome"] == "failed"]
    assert [one["again"] for one in failed] == [False] * 3
    assert [one["kind"] for one in failed] == ["measures"] * 3


def test_a_claim_that_the_machine_left_undecided_is_followed_by_another_try(suite) -> None:
    done = suite("""
@pytest.mark.measures
def test_it(tmp_path):
    assert run(tmp_path, ("degraded", False), ("valid", True), code="claim.undecided") == 2
""")
    done.assert_outcomes(passed=1)


def test_a_measuring_test_without_a_verdict_is_to_run_alone(suite) -> None:
    done = suite("""
pytestmark = pytest.mark.measures
def test_without_a_folder():
    assert False
def test_of_an_unfinished_run(tmp_path):
    verdict = {"status": "invalid", "reasons": ["unfinished"], "codes": ["run.unfinished"]}
    (tmp_path / "result.json").write_text(json.dumps({"verdict": verdict}))
    assert False
def test_of_damaged_results(tmp_path):
    (tmp_path / "result.json").write_text('{"verdict": []}')
    assert False
""")
    done.assert_outcomes(failed=3)
    assert [one["again"] for one in suite.outcomes().values()] == [True] * 3


def test_any_failure_of_a_world_is_to_run_alone(suite) -> None:
    done = suite("""
pytestmark = pytest.mark.world
@pytest.fixture
def broken():
    raise OSError("no room\\nfor it")
@pytest.fixture
def left_open():
    yield
    raise ValueError("left")
def test_assertion(tmp_path):
    run(tmp_path, ("valid", False), ("valid", True))
def test_error():
    raise RuntimeError("what")
def test_setup(broken):
    pass
def test_teardown(left_open):
    pass
def test_right():
    pass
def test_skipped():
    pytest.skip("none")
""")
    done.assert_outcomes(failed=2, errors=2, passed=2, skipped=1)
    outcomes = suite.outcomes()
    assert {name: (one["outcome"], one["again"], one["said"]) for name, one in outcomes.items()} == {
        "test_assertion": ("failed", True, "AssertionError: assert False"),
        "test_error": ("failed", True, "RuntimeError: what"),
        "test_setup": ("failed", True, "setup: OSError: no room"),
        "test_teardown": ("failed", True, "teardown: ValueError: left"),
        "test_right": ("passed", False, ""),
        "test_skipped": ("skipped", False, ""),
    }


def test_an_exact_test_has_one_try(suite) -> None:
    done = suite("""
def test_it(tmp_path):
    run(tmp_path, ("invalid", False), ("valid", True))
""")
    done.assert_outcomes(failed=1)
    outcome = suite.outcomes()["test_it"]
    assert (outcome["kind"], outcome["outcome"], outcome["again"]) == ("exact", "failed", False)


def test_a_test_whose_process_ends_has_failed(suite) -> None:
    done = suite(
        """
import os
def test_it():
    os._exit(3)
def test_other():
    pass
""",
        "-n",
        "1",
    )
    assert done.ret == 1
    outcome = suite.outcomes()["test_it"]
    assert (outcome["outcome"], outcome["again"]) == ("failed", False)
    assert "crashed" in outcome["said"]


def test_the_verdict_of_a_mininet_script_counts_too(suite) -> None:
    done = suite("""
SAID = ["degraded", "valid", "valid"]
@pytest.mark.measures
@pytest.mark.parametrize("name", "ab")
def test_it(tmp_path, name):
    status = SAID.pop(0)
    verdict = {"status": status, "reasons": ["the host stole time"], "codes": ["host.steal"]}
    (tmp_path / "verdict-12-1.json").write_text(json.dumps(verdict if status != "valid" else {}))
    assert (name, len(SAID)) == ("a", 1)
""")
    done.assert_outcomes(passed=1, failed=1)
    said = "*test_it?a?: degraded: the host stole time (*assert *"
    done.stdout.fnmatch_lines(["*1 more tries*", said])


def test_each_try_has_its_own_fixtures(suite) -> None:
    done = suite("""
MADE = []
@pytest.fixture
def world(tmp_path):
    MADE.append(tmp_path)
    yield tmp_path
    (tmp_path / "left").touch()
@pytest.mark.measures
def test_it(world, tmp_path):
    number = run(tmp_path, ("invalid", False), ("valid", True))
    assert len(set(MADE)) == number == 2
    assert (MADE[0] / "left").exists()
def test_each_try_was_torn_down():
    assert len(MADE) == 2
    assert all((one / "left").exists() for one in MADE)
""")
    done.assert_outcomes(passed=2)


def test_the_last_try_of_a_measuring_test_runs_alone(suite, pytester: pytest.Pytester) -> None:
    done = suite(
        """
import time
pytestmark = [pytest.mark.world, pytest.mark.measures]
TIMES = Path(__file__).with_name("times")
def measure(name, seconds):
    begin = time.monotonic()
    time.sleep(seconds)
    with TIMES.open("a") as file:
        file.write(f"{name} {begin} {time.monotonic()}\\n")
@pytest.mark.parametrize("n", range(30))
def test_it(tmp_path, n):
    name = "other"
    if n == 1:
        name = ["first", "second", "last"][SEEN.get("it", 0)]
    measure(name, 0.05 if n != 1 else 0.3)
    if n == 1:
        run(tmp_path, ("invalid", False), ("invalid", False), ("invalid", True), name="it")
""",
        "-n",
        "3",
    )
    done.assert_outcomes(passed=30)
    lines = [line.split() for line in (pytester.path / "times").read_text().splitlines()]
    times = {name: (float(begin), float(end)) for name, begin, end in lines if name != "other"}
    others = [(float(begin), float(end)) for name, begin, end in lines if name == "other"]

    def beside(name: str) -> int:
        begin, end = times[name]
        return sum(one[0] < end and begin < one[1] for one in others)

    assert beside("first") > 0
    assert beside("last") == 0
