"""The verdict of each network as a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom.errors import RunError
from airloom.mininet import verdict_files
from airloom.verdict import Verdict


def test_each_network_has_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(verdict_files.FOLDER, str(tmp_path / "new" / "verdicts"))
    verdicts = [Verdict(), Verdict(status="degraded", reasons=("late",), codes=("delivery.p99",))]
    for verdict in verdicts:
        verdict_files.write(verdict)
    folder = tmp_path / "new" / "verdicts"
    files = sorted(folder.iterdir(), key=lambda path: int(path.stem.rpartition("-")[2]))
    assert [Verdict.model_validate_json(path.read_text()) for path in files] == verdicts
    assert all(path.match(f"verdict-{os.getpid()}-*.json") for path in files)


def test_without_the_variable_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(verdict_files.FOLDER, raising=False)
    monkeypatch.chdir(tmp_path)
    verdict_files.write(Verdict())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(verdict_files.FOLDER, str(tmp_path / "file"))
    with pytest.raises(RunError, match=r"the verdict cannot be written: .* AIRLOOM_VERDICTS") as caught:
        verdict_files.write(Verdict())
    assert caught.value.code == "mininet.verdicts"
