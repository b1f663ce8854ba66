"""The workflow files of examples/ci: their form, and that what they run works."""

from __future__ import annotations

import shlex
import subprocess

import pytest
import yaml

from helpers import REPOSITORY

FOLDER = REPOSITORY / "examples" / "ci"


def scripts(name: str) -> list[str]:
    """The lines of commands in a file, in order."""
    said = yaml.safe_load((FOLDER / name).read_text())
    if name.startswith("github"):
        steps = said["jobs"]["network"]["steps"]
        assert all("uses" in step or "run" in step for step in steps)
        return [line for step in steps for line in step.get("run", "").splitlines()]
    return [*said["network"]["before_script"], *said["network"]["script"]]


NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))


@pytest.mark.parametrize("name", NAMES)
def test_the_shell_understands_each_line(name: str) -> None:
    for line in scripts(name):
        assert subprocess.run(["bash", "-n", "-c", line], check=False).returncode == 0, line


@pytest.mark.parametrize("name", NAMES)
def test_it_installs_before_it_runs(name: str) -> None:
    lines = scripts(name)
    pip = next(number for number, line in enumerate(lines) if line.startswith("pip install "))
    first = next(number for number, line in enumerate(lines) if line.startswith("airloom "))
    assert pip < first


@pytest.mark.world
@pytest.mark.parametrize("name", NAMES)
def test_what_it_runs_works(shell, name: str) -> None:
    for line in scripts(name):
        if line.startswith("airloom "):
            done = shell.run(*shlex.split(line)[1:])
            assert done.returncode == 0, (line, done.stderr)
    assert (shell.folder / "out" / "link" / "report.html").is_file()
