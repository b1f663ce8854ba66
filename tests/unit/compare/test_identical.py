"""Two runs are compared to the octet, and the first event that differs is named."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from airloom.compare.identical import DifferentError, compare
from airloom.nodes.virtual_time import TIME_OF_DAY
from airloom.results.details import Details

ZERO = 2 * 10**9


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def capture(path: Path, port: str, frames: list[tuple[int, bytes]]) -> None:
    """Writes a pcapng; times in ns of the run."""
    name = port.encode()
    options = struct.pack("<HH", 2, len(name)) + name + bytes(-len(name) % 4)
    options += struct.pack("<HHBxxx", 9, 1, 9) + struct.pack("<HH", 0, 0)
    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    content += block(1, struct.pack("<HHI", 1, 0, 0) + options)
    for at, octets in frames:
        at += TIME_OF_DAY + ZERO
        header = struct.pack("<IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(octets), len(octets))
        content += block(6, header + octets + bytes(-len(octets) % 4))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def folder(path: Path) -> Path:
    """A run of two nodes."""
    capture(path / "captures/h1.eth0.pcapng", "h1:eth0", [(10, b"abcd"), (500, b"efgh")])
    capture(path / "captures/h2.eth0.pcapng", "h2:eth0", [(1_000_010, b"abcd"), (1_000_500, b"efgh")])
    (path / "nodes/h2").mkdir(parents=True)
    (path / "nodes/h2/h2-sh.log").write_text("one\ntwo\n")
    (path / "result.json").write_text(json.dumps({"started": str(path), "seed": 1, "list": [1, {"a": 2}]}))
    (path / "details.json").write_text(Details(calendar_ns=ZERO).to_json())
    pyarrow.parquet.write_table(pyarrow.table({"t": [1, 2], "value": [3.0, 4.0]}), path / "samples.parquet")
    return path


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return folder(tmp_path / "one"), folder(tmp_path / "other")


def first(folders: tuple[Path, Path]) -> str:
    found = compare(*folders)
    assert found.differences
    return DifferentError(found, folders).message


def test_the_same_runs_are_identical_but_for_what_states_wall_time(folders: tuple[Path, Path]) -> None:
    found = compare(*folders)
    assert (found.files, found.frames, found.differences) == (6, 4, ())


def test_the_earliest_frame_is_named_with_its_time_and_node(folders: tuple[Path, Path]) -> None:
    capture(folders[1] / "captures/h2.eth0.pcapng", "h2:eth0", [(1_000_010, b"abXd"), (1_000_500, b"efgh")])
    capture(folders[1] / "captures/h1.eth0.pcapng", "h1:eth0", [(10, b"abcd"), (756, b"efgh")])
    (folders[1] / "nodes/h2/h2-sh.log").write_text("one\nthree\n")
    assert first(folders) == (
        "the two runs differ first at 0.000000500 s on node h1: frame 2 of h1:eth0, 4 and 4 octets, passes "
        "256 ns later in the second run, in captures/h1.eth0.pcapng; 2 others of 6 files differ"
    )
    second = compare(*folders).differences[1]
    assert (second.at, second.node) == (1_000_010, "h2")
    assert second.what == "frame 1 of h2:eth0: octet 2 of 4 is 63 in the first run and 58 in the second"


def test_a_frame_of_one_run_only_is_named(folders: tuple[Path, Path]) -> None:
    capture(folders[1] / "captures/h1.eth0.pcapng", "h1:eth0", [(10, b"abcd")])
    assert "at 0.000000500 s on node h1: frame 2 of h1:eth0, 4 octets, is in the first run only" in first(
        folders
    )


def test_a_line_of_a_log_is_named_with_its_node(folders: tuple[Path, Path]) -> None:
    (folders[1] / "nodes/h2/h2-sh.log").write_text("one\nthree\n")
    assert first(folders) == (
        "the two runs differ first on node h2: line 2 is 'two' in the first run and 'three' in the second, "
        "in nodes/h2/h2-sh.log"
    )


def test_a_figure_a_row_and_a_missing_file_are_named(folders: tuple[Path, Path]) -> None:
    (folders[1] / "result.json").write_text(json.dumps({"started": "", "seed": 1, "list": [1, {"a": 3}]}))
    assert "list[1].a is 2 in the first run and 3 in the second" in first(folders)
    table = pyarrow.table({"t": [1, 2], "value": [3.0, 4.5]})
    pyarrow.parquet.write_table(table, folders[1] / "samples.parquet")
    (folders[0] / "nodes/h2/more.log").write_text("")
    words = {one.file: one.what for one in compare(*folders).differences}
    assert words["samples.parquet"].startswith("row 1 is ")
    assert words["nodes/h2/more.log"] == "only the first run has this file"
