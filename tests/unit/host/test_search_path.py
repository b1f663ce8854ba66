"""One search path of programs for doctor, check and nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.host import programs


def test_folders_of_administrators_are_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    folders = programs.search_path().split(":")
    assert folders[:2] == [str(tmp_path), "/usr/bin"]
    assert {"/usr/sbin", "/sbin", "/usr/lib/frr"} <= set(folders)
    assert len(folders) == len(set(folders))
    assert programs.find("own") == own
    assert "own" in programs.installed()
