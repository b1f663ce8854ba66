"""Files of nodes: what a hostile node may answer, and what is written."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airloom.errors import RunError
from airloom.runs import collected

Record = tuple[bytes, bytes]
END = (b"Z", b"")


class Answering:
    """A node that answers with these octets."""

    def __init__(self, stream: bytes) -> None:
        self.stream = stream
        self.signals: list[int] = []
        self.argv: Sequence[str] = ()

    def start(self, argv: Sequence[str], *, stdout: int, **more: Any) -> Answering:
        assert more["own"] is True
        self.argv = argv
        file = os.dup(stdout)

        def write() -> None:
            with os.fdopen(file, "wb") as out:
                out.write(self.stream)

        threading.Thread(target=write).start()
        return self

    def signal(self, number: int) -> None:
        self.signals.append(number)


def stream(*records: Record) -> bytes:
    return b"".join(kind + struct.pack("<I", len(content)) + content for kind, content in records)


def taken(folder: Path, octets: bytes, *patterns: str) -> tuple[list[str], dict[str, bytes]]:
    """Notes, and the files below the folder of the node."""
    node = Answering(octets)
    plan = SimpleNamespace(nodes={"n": SimpleNamespace(name="n", collect=patterns or ("/tmp/*",))})
    notes = collected.collect(plan, lambda name: node, folder)  # type: ignore[arg-type, return-value]
    assert node.signals == [9]
    base = folder / "nodes/n"
    found = {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}
    return notes, found


def test_files_are_written_at_their_paths(tmp_path: Path) -> None:
    octets = stream(
        (b"F", b"/tmp/a.log"), (b"D", b"one"), (b"D", b"two"), (b"F", b"/tmp/d/e"), (b"N", b"/x: gone"), END
    )
    notes, found = taken(tmp_path, octets)
    assert found == {"collected/tmp/a.log": b"onetwo", "collected/tmp/d/e": b""}
    assert notes == ["collect of n: /x: gone"]


@pytest.mark.parametrize(
    "path",
    [
        b"/tmp/../../../../escape",
        b"/tmp//x",
        b"/tmp/./x",
        b"/tmp/",
        b"tmp/x",
        b"/etc/passwd",
        b"/tmp/a\0b",
        b"/tmp/" + b"x" * 256,
        b"/tmp" + b"/x" * 3000,
        b"",
    ],
)
def test_a_path_that_was_not_asked_for_is_not_written(tmp_path: Path, path: bytes) -> None:
    notes, found = taken(
        tmp_path, stream((b"F", path), (b"D", b"evil"), (b"F", b"/tmp/ok"), (b"D", b"1"), END)
    )
    assert found == {"collected/tmp/ok": b"1"}
    assert len(notes) == 1
    assert "is no path that was asked for" in notes[0]
    assert not (tmp_path / "escape").exists()


def test_links_that_are_there_already_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "nodes/n/collected").mkdir(parents=True)
    (tmp_path / "nodes/n/collected/tmp").symlink_to(outside)
    notes, _ = taken(tmp_path, stream((b"F", b"/tmp/a"), (b"D", b"evil"), END))
    assert len(notes) == 1
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (stream((b"F", b"/tmp/a"), (b"D", b"x")), "the node ended its answer"),
        (b"D" + struct.pack("<I", 1 << 30), "what is no answer"),
        (stream((b"?", b"x"), END), "what is no answer"),
        (b"", "the node ended its answer"),
    ],
)
def test_a_damaged_answer_is_a_note(tmp_path: Path, octets: bytes, why: str) -> None:
    notes, _ = taken(tmp_path, octets)
    assert len(notes) == 1
    assert why in notes[0]


def test_limits_hold_for_a_node_that_ignores_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "MOST_OCTETS", 10)
    notes, found = taken(tmp_path, stream((b"F", b"/tmp/a"), *[(b"D", b"12345678")] * 3, END))
    assert (len(found["collected/tmp/a"]), len(notes)) == (8, 1)
    monkeypatch.setattr(collected, "MOST_FILES", 2)
    files = [(b"F", f"/tmp/{number}".encode()) for number in range(5)]
    notes, found = taken(tmp_path / "other", stream(*files, END))
    assert (len(found), len(notes)) == (2, 1)
    monkeypatch.setattr(collected, "_SECONDS", 0.1)
    notes, _ = taken(tmp_path / "third", stream(*[(b"N", b"x\x1b[31m" * 500)] * 50, END))
    assert len(notes) == 11
    assert all(len(note) < 400 and "\x1b" not in note for note in notes)


def test_a_silent_node_ends_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "_SECONDS", 0.1)
    held = os.pipe()

    class Silent(Answering):
        def start(self, argv: Sequence[str], *, stdout: int, **_: Any) -> Answering:
            os.dup2(stdout, held[1])
            return self

    node = Silent(b"")
    plan = SimpleNamespace(nodes={"n": SimpleNamespace(name="n", collect=("/tmp/*",))})
    notes = collected.collect(plan, lambda name: node, tmp_path)  # type: ignore[arg-type, return-value]
    assert ["more than" in note for note in notes] == [True]
    for end in held:
        os.close(end)


def test_a_node_that_is_off_is_a_note(tmp_path: Path) -> None:
    class Off(Answering):
        def start(self, argv: Sequence[str], *, stdout: int, **_: Any) -> Answering:
            raise RunError("node.off", "the node is off")

    plan = SimpleNamespace(nodes={"n": SimpleNamespace(name="n", collect=("/tmp/*",))})
    notes = collected.collect(plan, lambda name: Off(b""), tmp_path)  # type: ignore[arg-type, return-value]
    assert ["the node is off" in note for note in notes] == [True]
