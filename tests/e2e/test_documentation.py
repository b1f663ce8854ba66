"""Commands of the documentation run: blocks marked ``<!-- run -->``, and the help of every command named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from airloom.cli import app
from helpers import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])
MARKED = re.compile(r"^<!-- run -->\n```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^`([\w-]+\.yaml)`:\n\n```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def marked() -> list[Any]:
    return [
        pytest.param(page, block, id=f"{page.relative_to(REPOSITORY)}-{number}")
        for page in PAGES
        for number, block in enumerate(MARKED.findall(page.read_text()))
    ]


def paths(command: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of a command and of all commands below it."""
    below = getattr(command, "commands", {})
    return [words, *(path for name, each in below.items() for path in paths(each, (*words, name)))]


def folder_of_a_reader(tmp_path: Path, page: Path) -> Path:
    """A folder with the examples, and the scenarios that the page names."""
    for name, text in NAMED.findall(page.read_text()):
        (tmp_path / name).write_text(text)
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "airloom"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m airloom "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(("page", "block"), marked())
def test_marked_blocks_run(page: Path, block: str, tmp_path: Path) -> None:
    folder = folder_of_a_reader(tmp_path, page)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", block],
        cwd=folder,
        env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 3:
        pytest.skip(f"this machine lacks something: {done.stderr}")
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"


def test_some_blocks_are_marked() -> None:
    assert len(marked()) > 1


@pytest.mark.parametrize("words", paths(get_command(app)), ids=" ".join)
def test_every_command_has_help(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "--help"])
    assert done.exit_code == 0, done.output
    assert "--help" in done.output
    assert len(done.output.splitlines()) > 5
