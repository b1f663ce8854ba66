"""Folders of results whose files are damaged: an error that names the file, or a note, and no traceback."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom import report
from airloom.compare.runs import compare
from airloom.errors import LabError
from airloom.packs.contents import pack
from airloom.results import RunReader, stored
from helpers import fake_results

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and a sweep."""
    place = tmp_path_factory.mktemp("good")
    fake_results.run(place / "run")
    fake_results.sweep(place / "sweep", values=(2, 3), repetitions=1)
    return place


VALUES: list[Any] = [None, True, -1, 0, 2**63, 1.5, 1e308, "", "x", "../..", [], {}, [None], {"x": None}]
"""What a value of a file is replaced by."""
TEXTS = [
    b"", b"null", b"[]", b"{", b"\xff\xfe", b"[" * 50_000, b'{"a":' * 500 + b"1" + b"}" * 500, b"1e999",
    b"NaN", b'{"schema": ' + b"9" * 5000 + b"}", b"\x00" * 100,
]  # fmt: skip


def _read(folder: Path, _: Path) -> None:
    run = RunReader(folder)
    run.samples()
    used = (run.notes, run.details, run.figures, run.measurements, run.logs())
    assert None not in used[:3]


def _page(folder: Path, place: Path) -> None:
    report.write([folder], place / "page.html", lambda *_: None)


USES: list[Callable[[Path, Path], Any]] = [
    _read,
    _page,
    lambda folder, _: report.on_terminal(folder),
    lambda folder, _: compare(folder, folder),
    lambda folder, place: pack(folder, place / "pack.zip"),
]


def survives(folder: Path, place: Path, what: str, use: Callable[[Path, Path], Any]) -> None:
    """An error of the program's own is all that may come of it."""
    try:
        use(folder, place)
    except LabError:
        return
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error


def places(raw: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of each value of a document."""
    items = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def replaced(raw: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Returns the document with another value at a path."""
    copy = json.loads(json.dumps(raw))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("of", ["run", "sweep"])
def test_a_value_of_another_kind(good: Path, tmp_path: Path, of: str) -> None:
    """A seeded choice of all values of all JSON files, each with one use of the folder."""
    dice = random.Random(7)
    folder = tmp_path / of
    shutil.copytree(good / of, folder)
    for path in [*sorted(folder.glob("*.json")), *sorted(folder.glob("points/p0000*/*.json"))]:
        text = path.read_bytes()
        raw = json.loads(text)
        for place in dice.sample(found := list(places(raw)), min(15, len(found))):
            value, use = dice.choice(VALUES), dice.choice(USES)
            path.write_text(json.dumps(replaced(raw, place, value)))
            survives(folder, tmp_path, f"{path.relative_to(folder)}: {place} = {value!r}", use)
        path.write_bytes(text)


def damage(path: Path, octets: bytes, way: int | str) -> None:
    """Makes a file something else."""
    match way:
        case int():
            path.write_bytes(TEXTS[way])
        case "cut":
            path.write_bytes(octets[: len(octets) // 2])
        case "bits":
            path.write_bytes(bytes(one ^ 0x40 for one in octets[:200]) + octets[200:])
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path.name)
        case _:
            path.symlink_to(way)


@pytest.mark.slow
@pytest.mark.parametrize("of", ["run", "sweep"])
def test_a_file_that_is_something_else(good: Path, tmp_path: Path, of: str) -> None:
    """Every file as a text that it is not, cut, a folder, a pipe, or a link to what never ends."""
    dice = random.Random(3)
    folder = tmp_path / of
    shutil.copytree(good / of, folder)
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if "points" in path.parts and "p0000-r00" not in path.parts:
            continue
        octets = path.read_bytes()
        contents = dice.sample([*range(len(TEXTS)), "cut", "bits"], 3)
        kinds = dice.sample(["folder", "pipe", "loop", "/proc/kmsg", "/dev/zero"], 2)
        for way in [*contents, *kinds]:
            path.unlink()
            damage(path, octets, way)
            survives(folder, tmp_path, f"{path.relative_to(folder)}: {way}", dice.choice(USES))
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
            path.write_bytes(octets)


@pytest.mark.parametrize("text", [*TEXTS, b'{"a": Infinity}'], ids=lambda text: repr(text[:8]))
def test_json_that_no_run_writes_is_refused_with_the_file(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "some.json").write_bytes(text)
    with pytest.raises(LabError, match=r"some\.json cannot be read: "):
        stored.json_object(tmp_path / "some.json")


def test_an_error_names_the_key(tmp_path: Path) -> None:
    folder = fake_results.run(tmp_path / "run")
    raw = json.loads((folder / "details.json").read_text())
    raw["engine"]["offered"] = "many"
    (folder / "details.json").write_text(json.dumps(raw))
    (note,) = [note for note in RunReader(folder).notes if "details" in note]
    assert note.startswith("details.json cannot be read: engine.offered: ")


def test_a_point_outside_of_its_sweep_is_refused(tmp_path: Path) -> None:
    folder = fake_results.sweep(tmp_path / "sweep")
    raw = json.loads((folder / "sweep.json").read_text())
    raw["points"][0]["folder"] = "../../etc"
    (folder / "sweep.json").write_text(json.dumps(raw))
    with pytest.raises(LabError, match=r"points\.0\.folder"):
        assert RunReader(folder).index.points
