"""Which tests have changed since a commit, and how often they fail."""

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

try_tests = tool("try-tests")

PYTHON = """import pytest
LIMIT = 1

def test_one():
    assert LIMIT

@pytest.mark.parametrize("n", [1, 2])
def test_two(n):
    pass
"""
RUST = """
#[cfg(test)]
mod tests {
    #[test]
    fn first() {
        assert!(true);
    }

    #[test]
    #[ignore = "slow"]
    fn second() {
        if true {
        }
    }
}
"""


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ({5}, ["test_one"]),
        ({7}, ["test_two"]),
        ({6}, []),
        ({2}, ["test_one", "test_two"]),
        ({5, 9}, ["test_one", "test_two"]),
    ],
)
def test_a_changed_line_belongs_to_its_test_or_to_all(
    tmp_path: Path, lines: set[int], names: list[str]
) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(PYTHON)
    assert [one.partition("::")[2] for one in try_tests.python_tests(str(path), lines)] == names


@pytest.mark.parametrize(
    ("lines", "names"), [({4}, ["first"]), ({13}, ["second"]), ({2}, []), ({6, 10}, ["first", "second"])]
)
def test_a_changed_line_belongs_to_its_rust_test(tmp_path: Path, lines: set[int], names: list[str]) -> None:
    path = tmp_path / "it.rs"
    path.write_text(RUST)
    assert list(try_tests.rust_tests(str(path), lines)) == names


def test_changed_and_new_tests_run_and_failures_are_counted(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tests").mkdir()
    shutil.copy(REPOSITORY / "tools" / "try-tests", tmp_path / "tools")
    options = "-p no:anyio -p no:hypothesispytest"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = --import-mode=importlib {options}\n")
    (tmp_path / "tests" / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(REPOSITORY / 'tests')!r})\n"
        "from helpers import tries\n"
        "def pytest_addoption(parser):\n    tries.register(parser)\n"
        "def pytest_configure(config):\n    tries.configure(config)\n"
    )
    kept = tmp_path / "tests" / "test_kept.py"
    kept.write_text("def test_kept():\n    pass\n\n\ndef test_changed():\n    pass\n")

    def git(*words: str) -> None:
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    kept.write_text("def test_kept():\n    pass\n\n\ndef test_changed():\n    assert True\n")
    (tmp_path / "tests" / "test_new.py").write_text(
        "from pathlib import Path\n"
        "def test_new():\n"
        "    with Path(__file__).with_name('times').open('a+') as file:\n"
        "        file.write('x')\n"
        "        file.seek(0)\n"
        "        assert len(file.read()) != 2\n"
    )
    done = subprocess.run(
        [sys.executable, "tools/try-tests", "HEAD", "--times", "4"],
        cwd=tmp_path,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(
        "2 tests:\n   tests/test_kept.py::test_changed\n   tests/test_new.py::test_new\n"
    )
    assert "== 3 of 4, beside busy loops\n" in done.stdout
    assert done.stdout.endswith(
        "tests/test_new.py::test_new: failed 1 of 4 times\n1 of 2 tests failed at least once\n"
    )
