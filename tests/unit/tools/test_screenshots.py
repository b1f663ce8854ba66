"""When tools/screenshots/make replaces the pictures of reports, and when it does not."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from airloom.errors import RunError
from helpers import REPOSITORY

NAMES = ("sweep", "drop-tail", "fq-codel", "single", "radio")
VALID = {"verdict": {"status": "valid", "reasons": []}}


class FakeBrowser:
    """In place of Chromium: a picture is the name of its page."""

    def __init__(self, *, dark: bool) -> None:
        self.dark = dark

    def __enter__(self) -> FakeBrowser:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def picture(self, page: Path, heading: str, *, size: tuple[int, int]) -> bytes:
        if "no " + heading in page.read_text():
            raise RunError("bench.browser", f"{page.name} has no heading that begins with {heading}")
        return page.parent.name.encode()


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(
        "screenshots_make", str(REPOSITORY / "tools/screenshots/make")
    )
    spec = importlib.util.spec_from_loader("screenshots_make", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "screenshots_make", module)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "Browser", FakeBrowser)

    def airloom(*words: object) -> None:
        if words[0] == "report":
            assert isinstance(words[-1], Path)
            words[-1].write_text("a page")

    def live_picture(shot: Any, folder: Path, place: Path, *, every: bool) -> Path:
        path = place / f"{shot.name}.webp"
        path.write_text(folder.name)
        return path

    monkeypatch.setattr(module, "airloom", airloom)
    monkeypatch.setattr(module, "live_picture", live_picture)
    monkeypatch.setattr(module, "terminal", lambda folder, *words: " ".join(words))
    return module


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Results of all runs, and older pictures."""
    folder, target = tmp_path / "runs", tmp_path / "pictures"
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "result.json").write_text(json.dumps(VALID))
    target.mkdir()
    (target / "report-single.webp").write_text("older")
    return folder, target


def make(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, places: tuple[Path, Path], *words: str) -> None:
    folder, target = places
    monkeypatch.setattr(sys, "argv", ["make", "--keep", *words, "--to", str(target), str(folder)])
    tool.main()


def test_all_pictures_are_made_of_valid_runs(tool, monkeypatch, places) -> None:
    make(tool, monkeypatch, places)
    made = {one.name: one.read_text() for one in places[1].iterdir()}
    assert made["report-single.webp"] == "single"
    assert made["report-side-by-side.webp"] == "runs"
    assert made["live.webp"] == "live"
    assert {one.name for one in (REPOSITORY / "docs/pictures").iterdir()} == set(made)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"verdict": {"status": "degraded", "reasons": ["it was late"]}}, "radio is degraded: it was late"),
        (
            {**VALID, "claims": [{"id": "asked", "outcome": "fails", "why": "1 is below 2"}]},
            "radio: the claim asked fails: 1 is below 2",
        ),
    ],
)
def test_a_doubtful_run_is_shown_only_if_that_is_wanted(
    tool, monkeypatch, places, capsys, result, said
) -> None:
    folder, target = places
    (folder / "radio" / "result.json").write_text(json.dumps(result))
    with pytest.raises(SystemExit, match="no pictures were made"):
        make(tool, monkeypatch, places)
    assert said in capsys.readouterr().err
    assert (target / "report-single.webp").read_text() == "older"
    make(tool, monkeypatch, places, "--any-verdict")
    assert (target / "report-radio.webp").read_text() == "radio"
    assert said in capsys.readouterr().err


def test_without_one_of_the_pictures_all_stay_as_they_were(tool, monkeypatch, places) -> None:
    def airloom(*words: object) -> None:
        if words[0] == "report":
            assert isinstance(words[-1], Path)
            words[-1].write_text("no Radio" if "radio" in str(words[1]) else "a page")

    monkeypatch.setattr(tool, "airloom", airloom)
    with pytest.raises(RunError, match="no heading"):
        make(tool, monkeypatch, places)
    assert [one.read_text() for one in places[1].iterdir()] == ["older"]


def test_a_page_that_was_not_written_is_no_picture(tool, monkeypatch, places) -> None:
    (places[0] / "single" / "report.html").write_text("of an earlier run")
    monkeypatch.setattr(tool, "airloom", lambda *words: None)
    with pytest.raises(FileNotFoundError):
        make(tool, monkeypatch, places, "--only", "single")
    assert (places[1] / "report-single.webp").read_text() == "older"
