"""When a test of real nodes has another try, and what the suite says of it."""

from __future__ import annotations

import pytest

from helpers import REPOSITORY

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

TESTS = REPOSITORY / "tests"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers import tries
from helpers.tries import register
tries._STALLED = tries.Path("stalled")  # no processor is ever short
def pytest_configure(config):
    config.addinivalue_line("markers", "world: makes namespaces")
    config.addinivalue_line("markers", "measures: measures this machine")
    register(config)
"""
BODY = """
import json, pytest
from pathlib import Path
SEEN = {}
def run(folder, *runs, name="x"):
    number = SEEN[name] = SEEN.get(name, 0) + 1
    status, good = runs[number - 1]
    folder.joinpath("out").mkdir()
    verdict = {"status": status, "reasons": ["the host stole time"]}
    folder.joinpath("out/result.json").write_text(json.dumps({"verdict": verdict}))
    assert good
    return number
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
@pytest.mark.world
def test_it(tmp_path):
    assert run(tmp_path, ("invalid", False), ("degraded", False), ("valid", True)) == 3
""")
    done.assert_outcomes(passed=1)
    assert done.ret == 0
    done.stdout.fnmatch_lines(
        ["*2 of at most 10 more tries*", "*test_it: invalid: the host stole time (*assert False)"]
    )


def test_a_valid_run_is_believed_and_so_is_the_last(suite) -> None:
    done = suite("""
pytestmark = pytest.mark.world
def test_believed(tmp_path):
    run(tmp_path, ("valid", False), ("valid", True), name="believed")
def test_last(tmp_path):
    run(tmp_path, *[("invalid", False)] * 3, name="last")
def test_good_enough(tmp_path):
    assert run(tmp_path, ("invalid", True), name="good enough") == 1
def test_another_error(tmp_path):
    run(tmp_path, ("invalid", True), ("valid", True), name="another")
    raise RuntimeError
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
    done.assert_outcomes(passed=1, failed=6)
    done.stdout.fnmatch_lines(["*2 of at most 10 more tries*"])


def test_the_verdict_of_a_mininet_script_counts_too(suite) -> None:
    done = suite("""
SAID = ["degraded", "valid", "valid"]
@pytest.mark.world
@pytest.mark.parametrize("name", "ab")
def test_it(tmp_path, name):
    verdict = {"status": SAID.pop(0), "reasons": ["the host stole time"]}
    (tmp_path / "verdict-12-1.json").write_text(json.dumps(verdict))
    assert (name, len(SAID)) == ("a", 1)
""")
    done.assert_outcomes(passed=1, failed=1)
    said = "*test_it?a?: degraded: the host stole time (*assert *"
    done.stdout.fnmatch_lines(["*1 of at most 10 more tries*", said])


@pytest.mark.parametrize(("percent", "passed"), [(60, 1), (40, 0)])
def test_without_a_verdict_the_machine_is_asked(suite, percent: int, passed: int) -> None:
    # The made kernel file grows by a share of the time that passes.
    done = suite(f"""
import time
NUMBER = []
class Stalled:
    def read_text(self):
        total = int(time.monotonic() * 1e6 * {percent} / 100)
        return f"some avg10=0.00 avg60=0.00 avg300=0.00 total={{total}}\\nfull avg10=0.00 total=0\\n"
@pytest.fixture(autouse=True, scope="module")
def busy():
    from helpers import tries
    tries._STALLED = Stalled()
@pytest.mark.world
def test_first():
    pass
@pytest.mark.world
def test_it():
    NUMBER.append(1)
    time.sleep(0.1)
    assert len(NUMBER) == 2
""")
    done.assert_outcomes(passed=1 + passed, failed=1 - passed)
    if passed:
        said = f"*test_it: without a verdict: processors were short for {percent}% of its time (*assert *"
        done.stdout.fnmatch_lines(["*1 of at most 10 more tries*", said])


def test_only_tests_of_real_nodes_are_tried_again(suite) -> None:
    done = suite("""
def test_it(tmp_path):
    run(tmp_path, ("invalid", False), ("valid", True))
""")
    done.assert_outcomes(failed=1)
    done.stdout.no_fnmatch_line("*more tries*")


def test_each_try_has_its_own_fixtures(suite) -> None:
    done = suite("""
MADE = []
@pytest.fixture
def world(tmp_path):
    MADE.append(tmp_path)
    yield tmp_path
    (tmp_path / "left").touch()
@pytest.mark.world
def test_it(world, tmp_path):
    number = run(tmp_path, ("invalid", False), ("valid", True))
    assert len(set(MADE)) == number == 2
    assert (MADE[0] / "left").exists()
@pytest.mark.world
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


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "side by side"])
def test_too_many_tries_fail_the_suite(suite, words: tuple[str, ...]) -> None:
    done = suite(
        """
@pytest.mark.world
@pytest.mark.parametrize("n", range(6))
def test_it(tmp_path, n):
    assert run(tmp_path, ("invalid", False), ("invalid", False), ("valid", True), name=n) == 3
""",
        *words,
    )
    done.assert_outcomes(passed=6)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["*12 of at most 10 more tries*", "FAILED: more tries than the suite may have"])
