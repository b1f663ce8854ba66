"""One bad scenario for each rule, with the exact message that it must meet in its first line."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.machine import cpus

FOLDER = Path(__file__).parent
LARGE = {"measurement-too-far", "routes-size", "yaml-bomb"}
"""Scenarios of so many nodes or values that to refuse them takes seconds."""
FILES = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LARGE else [])
    for path in sorted(FOLDER.glob("*.yaml"))
]


def header(path: Path, word: str) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(f"# {word}: ") for line in lines if line.startswith(f"# {word}: ")]


@pytest.mark.parametrize("path", FILES)
def test_a_bad_scenario_is_refused_with_place_and_cure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    # Every machine has two processors here, and nobody may raise priorities.
    monkeypatch.setattr(cpus, "available", lambda: (0, 1))
    monkeypatch.setattr(cpus, "_may", lambda act: False)
    with pytest.raises(ScenarioError) as caught:
        check(path.name, header(path, "option"))
    assert [str(caught.value)] == header(path, "refused")
    assert caught.value.exit_code == 2


def test_a_missing_scenario_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        check("nothing.yaml")
    assert str(caught.value) == "nothing.yaml: there is no such file [file.missing]"


def test_a_folder_is_no_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match=r"cannot be read: Is a directory \[file.unreadable\]"):
        check(".")
