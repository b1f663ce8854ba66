"""Whether two runs in virtual time are the same to the octet, and what differs first.

``airloom run --verify`` compares two runs of one scenario with one seed. Frames of the captures tell
the time and the node of a difference; lines of logs and rows of samples come after them, since they
follow from frames where there are any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from airloom.errors import RunError
from airloom.host import files, pcap
from airloom.nodes.virtual_time import TIME_OF_DAY
from airloom.results import details

OF_WALL_TIME = ("started", "wall_seconds")
"""Keys of ``result.json`` that state wall time, which no two runs have in common."""
_RESULT, _SWEEP, _DETAILS = "result.json", "sweep.json", "details.json"
_CAPTURE = ".pcapng"
_SHOWN = 120
"""Characters of a line that are shown."""
_LARGEST = 4 << 30
"""Octets of a file that is compared: both are in memory."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which two runs differ."""

    file: str
    """Path in both folders."""
    what: str
    """The difference, in words."""
    at: int | None = None
    """Time of the frame in ns of the run; None without one."""
    node: str = ""
    """The node, if the file tells."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two folders have in common."""

    files: int
    """Number of files of both."""
    frames: int
    """Number of captured frames of the first."""
    differences: tuple[Difference, ...]
    """One for each file that differs, the earliest first; empty if the runs are identical."""


def compare(one: Path, other: Path) -> Comparison:
    """Compares all files of two folders of runs or sweeps."""
    names = [_files(folder) for folder in (one, other)]
    frames = 0
    found: list[Difference] = []
    for name in sorted(names[0] | names[1]):
        if name not in names[0] or name not in names[1]:
            which = "first" if name in names[0] else "second"
            found.append(Difference(name, f"only the {which} run has this file", node=_node(name)))
            continue
        paths = [folder / name for folder in (one, other)]
        contents = [files.content(path, _LARGEST) for path in paths]
        if name.endswith(_CAPTURE):
            frames += sum(1 for _ in pcap.frames(paths[0]))
        if (difference := _difference(name, paths, contents)) is not None:
            found.append(difference)
    return Comparison(len(names[0] | names[1]), frames, tuple(sorted(found, key=_order)))


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _order(one: Difference) -> tuple[bool, int, bool, str]:
    """Frames in the order of time, then what programs wrote, then what was computed from it."""
    return one.at is None, one.at or 0, not one.node, one.file


def _difference(name: str, paths: list[Path], contents: list[bytes]) -> Difference | None:
    if contents[0] == contents[1]:
        return None
    if name.endswith(_CAPTURE):
        return _in_captures(name, paths)
    if Path(name).name in (_RESULT, _SWEEP):
        return _in_results(name, contents)
    if name.endswith(".parquet"):
        return _in_samples(name, paths)
    return Difference(name, _in_text(contents), node=_node(name))


def _in_captures(name: str, paths: list[Path]) -> Difference:
    zero = _zero(paths[0])
    for number, (one, other) in enumerate(zip_longest(*map(pcap.frames, paths)), 1):
        if one == other:
            continue
        missing = one is None or other is None
        first = min((frame for frame in (one, other) if frame is not None), key=lambda frame: frame.at)
        node = first.port.partition(":")[0]
        if missing:
            which = "first" if other is None else "second"
            words = f"frame {number} of {first.port}, {first.length} octets, is in the {which} run only"
        elif one.at != other.at:
            when = "later" if other.at > one.at else "earlier"
            words = (
                f"frame {number} of {first.port}, {one.length} and {other.length} octets, passes "
                f"{abs(other.at - one.at):,} ns {when} in the second run"
            )
        else:
            words = f"frame {number} of {first.port}: {_octets(one.octets, other.octets)}"
        return Difference(name, words, first.at - zero, node)
    return Difference(name, "the captures have the same frames, and differ in what they say of them")


def _zero(capture: Path) -> int:
    """Time zero of the run with a capture, in ns since 1970."""
    folders = (folder for folder in capture.parents if (folder / _DETAILS).exists())
    return TIME_OF_DAY + details.read(next(folders) / _DETAILS).calendar_ns


def _octets(one: bytes, other: bytes) -> str:
    at = _first(one, other)
    if at >= min(len(one), len(other)):
        return f"{len(one)} octets in the first run and {len(other)} in the second"
    return f"octet {at} of {len(one)} is {one[at]:02x} in the first run and {other[at]:02x} in the second"


def _first(one: bytes, other: bytes) -> int:
    """Index of the first octet that differs."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _in_results(name: str, contents: list[bytes]) -> Difference | None:
    read = [json.loads(content) for content in contents]
    for one in read:
        for key in OF_WALL_TIME:
            one.pop(key, None)
        for point in one.get("points", ()):  # where a run was made changes nothing in it
            point.pop("machine", None)
    found = next(_in_values(*read), None)
    return None if found is None else Difference(name, found)


def _in_values(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Places at which two values of JSON differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _in_values(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, values in enumerate(zip(one, other, strict=True)):
            yield from _in_values(*values, f"{path}[{number}]")
    elif one != other:
        yield _both(path, json.dumps(one), json.dumps(other))


def _in_samples(name: str, paths: list[Path]) -> Difference:
    import pyarrow.parquet

    tables = [pyarrow.parquet.read_table(path) for path in paths]
    if tables[0].schema != tables[1].schema:
        return Difference(name, "the samples have other columns")
    for number in range(min(table.num_rows for table in tables)):
        one, other = (table.slice(number, 1).to_pylist()[0] for table in tables)
        if one != other:
            return Difference(name, _both(f"row {number}", str(one), str(other)))
    rows = [table.num_rows for table in tables]
    return Difference(name, f"{rows[0]} rows in the first run and {rows[1]} in the second")


def _in_text(contents: list[bytes]) -> str:
    lines = [content.split(b"\n") for content in contents]
    for number, (one, other) in enumerate(zip_longest(*lines, fillvalue=b""), 1):
        if one != other:
            texts = (repr(line.decode(errors="replace")) for line in (one, other))
            return _both(f"line {number}", *texts)
    return "the files end differently"


def _both(what: str, one: str, other: str) -> str:
    """Both texts, each from a little before the first difference."""
    at = max(0, next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0) - 20)
    shown = [("..." if at else "") + text[at : at + _SHOWN] for text in (one, other)]
    return f"{what} is {shown[0]} in the first run and {shown[1]} in the second"


def _node(name: str) -> str:
    parts = Path(name).parts
    return parts[parts.index("nodes") + 1] if "nodes" in parts[:-2] else ""


class DifferentError(RunError):
    """Two runs that should be identical are not."""

    def __init__(self, found: Comparison, folders: tuple[Path, Path]) -> None:
        """``found`` has differences."""
        first = found.differences[0]
        at = "" if first.at is None else f" at {first.at / 1e9:.9f} s"
        node = f" on node {first.node}" if first.node else ""
        more = len(found.differences) - 1
        others = f"; {more} other{'s' * (more > 1)} of {found.files} files differ" if more else ""
        super().__init__(
            "virtual.different",
            f"the two runs differ first{at}{node}: {first.what}, in {first.file}{others}",
            where=f"{folders[0]} and {folders[1]}",
            cure="find what a program takes from this machine: its files, devices or processor",
        )
