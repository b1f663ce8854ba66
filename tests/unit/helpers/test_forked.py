"""A forked command is like one in a process that starts anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import forked

SCENARIO = "name: one\nnodes: {a: {}}\nlinks: [{ends: [a, b]}]\n"


@pytest.mark.parametrize("words", [["--version"], ["check", "one.yaml"], ["no-command"]], ids=" ".join)
def test_it_says_and_ends_as_a_new_process_does(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "airloom", *words]
    anew = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    done = forked.run(words, tmp_path, environment, 60)
    assert (done.returncode, done.stdout, done.stderr) == (anew.returncode, anew.stdout, anew.stderr)
    assert anew.returncode == (0 if words == ["--version"] else 2)


def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run(["schema"], tmp_path, os.environ, 0.001)
