"""The runner of the whole suite: what it runs again alone, what it says, and when it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import REPOSITORY
from helpers.tools import tool

pytestmark = pytest.mark.slow

RUNNER = REPOSITORY / "tools" / "run-tests"
CONFTEST = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
from helpers import tries
tries._TESTS = tries.Path(__file__).parent
def pytest_addoption(parser):
    tries.register(parser)
def pytest_configure(config):
    config.addinivalue_line("markers", "world: makes namespaces")
    config.addinivalue_line("markers", "measures: measures this machine")
    tries.configure(config)
"""
PYTEST = """[pytest]
addopts = --import-mode=importlib -p no:anyio -p no:hypothesispytest
testpaths = tests
"""
TESTS = """
import json, os, pytest
from pathlib import Path
COUNT = Path(__file__).with_name("count")
def times(name):
    with (COUNT.parent / f"count-{name}").open("a+") as file:
        file.write("x")
        file.seek(0)
        return len(file.read())
"""
CARGO = """#!/bin/bash
# Cargo's output: a program whose test fails as often as the file `failures` has lines, less one each time.
echo "cargo $*" >>calls
if [ -s failures ]; then
  sed -i 1d failures
  echo "     Running tests/real.rs (target/debug/deps/real-0123)"
  echo "running 2 tests"
  echo "test one ... ok"
  echo "test a::two ... FAILED"
  echo
  echo "failures:"
  echo
  echo "---- a::two stdout ----"
  echo
  echo "thread 'a::two' (7) panicked at ports/tests/real.rs:3:5:"
  echo "no frame came"
  echo
  echo "failures:"
  echo "    a::two"
  echo
  echo "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s"
  echo
  echo 'error: test failed, to rerun pass `-p CRATE --test real`' >&2
  exit 101
fi
echo "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s"
"""


class Tree:
    """A source tree with the runner, tests and a cargo of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("tools", "tests/world", "bin"):
            (folder / name).mkdir(parents=True)
        shutil.copy(RUNNER, folder / "tools" / "run-tests")
        (folder / "pytest.ini").write_text(PYTEST)
        (folder / "tests" / "conftest.py").write_text(CONFTEST)
        self.cargo("airloom-ports", 0)
        self.tests("def test_nothing(): pass\n@pytest.mark.measures\ndef test_measured(): pass\n")

    def cargo(self, crate: str, failures: int) -> None:
        path = self.folder / "bin" / "cargo"
        path.write_text(CARGO.replace("CRATE", crate))
        path.chmod(0o755)
        (self.folder / "failures").write_text("x\n" * failures)

    def tests(self, text: str) -> None:
        (self.folder / "tests" / "test_it.py").write_text(TESTS + text)

    def run(self, *words: str, jobs: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [
                sys.executable,
                self.folder / "tools" / "run-tests",
                f"--jobs={jobs}",
                f"--measuring={jobs}",
                *words,
            ],
            env={**os.environ, "PATH": path, "STRICT": "", **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def test_a_right_suite_passes(tree: Tree) -> None:
    done = tree.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n4 passed, 0 failed\n" in done.stdout
    assert "flaky" not in done.stdout
    assert (tree.folder / "calls").read_text() == "cargo test --workspace --locked --no-fail-fast\n"


def test_a_world_that_passes_alone_is_flaky_and_named(tree: Tree) -> None:
    tree.tests("""
@pytest.mark.world
@pytest.mark.parametrize("n", [1, 2, 3])
def test_it(n):
    assert times(n) == n, "not yet"
""")
    done = tree.run()
    assert done.returncode == 0, done.stdout + done.stderr
    listed = done.stdout.partition("== 2 flaky: failed beside others, passed alone\n")[2].splitlines()
    assert "   world      2 flaky, 1 passed\n" in done.stdout
    assert listed[:2] == [
        "   tests/test_it.py::test_it[2]: AssertionError: not yet",
        "   tests/test_it.py::test_it[3]: AssertionError: not yet",
    ]


def test_a_test_that_fails_alone_fails_the_suite(tree: Tree) -> None:
    tree.tests("@pytest.mark.world\ndef test_it():\n    assert times('it') == 4, 'never'\n")
    done = tree.run()
    assert done.returncode == 1
    assert "== 1 failed\n   tests/test_it.py::test_it: AssertionError: never" in done.stdout
    assert (tree.folder / "tests" / "count-it").read_text() == "xxx"


def test_an_exact_test_does_not_run_again(tree: Tree) -> None:
    tree.tests("def test_it():\n    assert times('it') == 2\n")
    done = tree.run()
    assert done.returncode == 1
    assert (tree.folder / "tests" / "count-it").read_text() == "x"


def test_a_measuring_test_with_a_valid_verdict_does_not_run_again(tree: Tree) -> None:
    tree.tests("""
@pytest.mark.measures
def test_it(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps({"verdict": {"status": "valid"}}))
    assert times("it") == 2
""")
    done = tree.run()
    assert done.returncode == 1
    assert (tree.folder / "tests" / "count-it").read_text() == "x"


INCONCLUSIVE = """
@pytest.mark.measures
def test_it(tmp_path):
    verdict = {"status": "degraded", "codes": ["host.steal"], "reasons": ["the host stole time"]}
    (tmp_path / "result.json").write_text(json.dumps({"verdict": verdict}))
    assert times("it") == 9
"""


def test_inconclusive_tests_are_named_and_many_are_a_warning(tree: Tree) -> None:
    tree.tests(INCONCLUSIVE)
    done = tree.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_it: degraded: the host stole time (AssertionError: assert 3 == 9" in done.stdout
    warning = "1 of 1 measuring tests inconclusive, more than a fifth"
    assert f"== 1 warning\n   {warning}" in done.stdout
    done = tree.run(STRICT="1")
    assert done.returncode == 1
    assert f"== 1 FAILED by --strict\n   {warning}" in done.stdout


def test_tests_that_share_a_world_run_alone_by_their_own_names(tree: Tree) -> None:
    (tree.folder / "tests" / "conftest.py").write_text(
        CONFTEST
        + """
from _pytest.nodeid import coerce_node_id
def pytest_collection_modifyitems(config, items):
    if getattr(config.option, 'loadgroup', False):
        for item in items:
            item._id = coerce_node_id(item.nodeid + "@group")
"""
    )
    tree.tests("@pytest.mark.world\ndef test_it():\n    assert times('it') == 2\n")
    done = tree.run(jobs=2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "== 1 flaky" in done.stdout


def test_a_file_that_cannot_be_read_fails_the_suite(tree: Tree) -> None:
    (tree.folder / "tests" / "test_broken.py").write_text("import nothing_of_this_name\n")
    done = tree.run()
    assert done.returncode == 1
    assert "did not run to its end\n" in done.stdout


@pytest.mark.parametrize(
    ("crate", "failures", "code", "calls"),
    [
        ("airloom-ports", 1, 0, 2),
        ("airloom-ports", 2, 0, 3),
        ("airloom-ports", 3, 1, 3),
        ("airloom-engine", 1, 1, 1),
    ],
)
def test_rust_tests_of_real_interfaces_run_again_alone(
    tree: Tree, crate: str, failures: int, code: int, calls: int
) -> None:
    tree.cargo(crate, failures)
    done = tree.run()
    assert done.returncode == code, done.stdout + done.stderr
    assert f"{crate} --test real a::two: no frame came" in done.stdout
    lines = (tree.folder / "calls").read_text().splitlines()
    alone = "cargo test --workspace --locked --test real -- --test-threads=1 --exact a::two"
    assert lines == ["cargo test --workspace --locked --no-fail-fast", *[alone] * (calls - 1)]


def test_a_program_of_rust_tests_that_ends_counts_as_one_failure() -> None:
    text = """
     Running unittests src/lib.rs (target/debug/deps/airloom_ports-1)
running 1 test
error: test failed, to rerun pass `-p airloom-ports --lib`

Caused by:
  process didn't exit successfully: `...` (signal: 6, SIGABRT: process abort signal)
     Running tests/b.rs (target/debug/deps/b-2)
failures:
    ---- not a name
error: test failed, to rerun pass `-p airloom-engine --test b`
   Doc-tests airloom_engine
error: doctest failed, to rerun pass `-p airloom-engine --doc`
error: 3 targets failed:
    `-p airloom-ports --lib`
"""
    found = [(one.test, one.again, one.target, one.name) for one in tool("run-tests").rust_failures(text)]
    assert found[0] == ("airloom-ports --lib", True, "--lib", "")
    assert found[1][:2] == ("airloom-engine --test b ---- not a name", False)
    assert found[2] == ("airloom-engine --doc", False, "--doc", "")


@pytest.mark.parametrize(
    ("test", "plain"),
    [
        ("tests/a.py::test", "tests/a.py::test"),
        ("tests/a.py::test@group", "tests/a.py::test"),
        ("tests/a.py::test[a@b]", "tests/a.py::test[a@b]"),
        ("tests/a.py::test[a@b]@group-1", "tests/a.py::test[a@b]"),
        ("tests/a@b.py::test", "tests/a@b.py::test"),
    ],
)
def test_the_name_of_a_group_is_no_part_of_a_test(test: str, plain: str) -> None:
    assert tool("run-tests").plain(test) == plain


def test_words_of_pytest_select_what_runs_by_the_same_rules(tree: Tree) -> None:
    tree.tests("""
@pytest.mark.world
def test_it():
    assert times("it") == 2
def test_other():
    assert False
""")
    done = tree.run("--", "-k", "not test_other")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "== 1 flaky" in done.stdout
    assert not (tree.folder / "calls").exists()
