"""What continuous integration runs: all steps, a table of them, and no failure for a refused download."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import REPOSITORY

pytestmark = pytest.mark.slow

MAKE = """#!/bin/bash
# Prints what the file of the step's name has, and ends with the code in its first line.
echo "$*" >>calls
[ -e "says-$1" ] || exit 0
tail -n +2 "says-$1"
exit "$(head -n 1 "says-$1")"
"""
REFUSED = "WARNING: Retrying after connection broken by 'NewConnectionError: no route'\nERROR: none found\n"
STEPS = ["leftovers", "lint", "site", "test", "test-mininet", "screenshots", "try-wheel", "try-sdist"]


class Tree:
    """A source tree with the script, and a `make` that does what a test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (".ci", "tools", "bin"):
            (folder / name).mkdir(parents=True)
        shutil.copy(REPOSITORY / ".ci" / "run", folder / ".ci" / "run")
        self._program("bin/make", MAKE)
        self._program("tools/leftovers", '#!/bin/bash\necho "leftovers $*" >>calls\n')

    def _program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def full_disk(self) -> None:
        self._program("tools/leftovers", "#!/bin/bash\necho full\nexit 1\n")

    def says(self, step: str, code: int, text: str = "") -> None:
        (self.folder / f"says-{step}").write_text(f"{code}\n{text}")

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", self.folder / ".ci" / "run"],
            env={
                **os.environ,
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "AIRLOOM_CI_PAUSE": "0",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def calls(self) -> list[str]:
        lines = [line.split()[0] for line in (self.folder / "calls").read_text().splitlines()]
        return [line for line in lines if line != "test-kernel"]  # it runs beside the others


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def test_all_steps_run_and_are_listed_with_their_minutes(tree: Tree) -> None:
    done = tree.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert tree.calls() == STEPS
    table = done.stdout.partition("=== steps, minutes:seconds\n")[2].splitlines()
    assert [line.split()[0] for line in table] == [
        "lint",
        "site",
        "tests",
        "mininet",
        "pictures",
        "wheel",
        "sdist",
    ]
    assert all(line.endswith("passed") for line in table)


def test_a_step_that_fails_does_not_hide_the_next(tree: Tree) -> None:
    tree.says("lint", 2, "a line\n")
    tree.says("try-sdist", 5)
    done = tree.run()
    assert done.returncode == 2
    assert tree.calls() == STEPS
    assert "a line\n" in done.stdout
    assert done.stdout.count("FAILED (exit code ") == 4  # where each step ends, and in the table


def test_a_failed_kernel_is_a_failure(tree: Tree) -> None:
    tree.says("test-kernel", 2, "no compiler\n")
    done = tree.run()
    assert done.returncode == 2
    assert "no compiler\n" in done.stdout
    assert "kernel " in done.stdout.partition("=== steps")[2]


def test_a_refused_download_is_tried_again_and_then_skipped_by_name(tree: Tree) -> None:
    tree.says("site", 2, REFUSED)
    done = tree.run()
    assert done.returncode == 0, done.stdout
    assert tree.calls().count("site") == 3
    table = done.stdout.partition("=== steps")[2]
    assert "skipped, a download failed: " in table
    assert "NewConnectionError: no route" in table


def test_the_suite_itself_and_other_faults_are_not_skipped(tree: Tree) -> None:
    tree.says("test", 1, REFUSED)
    tree.says("try-wheel", 3, "error: no such option\n")
    done = tree.run()
    assert done.returncode == 1
    assert "skipped" not in done.stdout
    assert tree.calls() == STEPS


def test_nothing_begins_on_a_full_disk(tree: Tree) -> None:
    tree.full_disk()
    done = tree.run()
    assert (done.returncode, done.stdout) == (1, "full\n")
    assert not (tree.folder / "calls").exists()
