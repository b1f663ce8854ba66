"""A sample of this suite passes from a read-only source tree with spaces in its path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airloom import _engine
from airloom.host import binaries
from helpers import REPOSITORY

pytestmark = [pytest.mark.world, pytest.mark.timeout(240)]

PARTS = ("python", "tests", "examples", "experiments", "pyproject.toml")
SAMPLE = (
    "tests/unit/units/test_html.py",
    "tests/refused/test_refused.py::test_a_bad_scenario_is_refused_with_place_and_cure[link-trace-range]",
    "tests/e2e/test_examples.py::test_every_example_passes_the_check[openflow]",
    "tests/e2e/test_up.py::test_a_script_of_commands",
)
"""Tests of files and of the command."""
WITH_ROOT = ("tests/world/test_run.py::test_programs_know_the_names_of_nodes_and_wait_for_each_other",)
"""Tests of programs in nodes."""
READ_ONLY = """\
mount --bind "$PWD" "$PWD" && mount -o remount,ro,bind "$PWD" && cd "$PWD" && ! touch new 2>/dev/null || exit
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the source tree with its environment, as `make setup` leaves it.

    With compiled modules: else each process compiles all, as it cannot keep them. Copies keep the times
    of their sources, by which Python knows them.
    """
    tree = tmp_path / "a source tree"
    tree.mkdir()
    for part in PARTS:
        source, target = REPOSITORY / part, tree / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.so"))
        else:
            shutil.copy(source, target)
    shutil.copy(_engine.__file__, tree / "python" / "airloom")
    (tree / ".venv").symlink_to(sys.prefix)
    return tree


def test_a_sample_of_the_suite_passes(checkout: Path, tmp_path: Path) -> None:
    read_only = os.geteuid() == 0  # made with a mount, which needs root
    python = checkout / ".venv" / "bin" / Path(sys.executable).name
    options = ["-o", f"cache_dir={tmp_path / 'cache'}", f"--basetemp={tmp_path / 'base'}"]
    words = [python, "-m", "pytest", *options, *SAMPLE, *(WITH_ROOT if read_only else ())]
    within = ["unshare", "--mount", "sh", "-c", READ_ONLY + 'exec "$@"', "sh"]
    done = subprocess.run(
        [*within, *words] if read_only else words,
        cwd=checkout,
        env={
            **os.environ,
            "PYTHONPATH": str(checkout / "python"),
            "AIRLOOM_BIN_DIR": str(binaries.find("airloom-init").parent),
        },
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout
