"""Files of nodes for the folder of results: what the keys ``collect`` of the nodes ask for.

The node's init writes them as a stream of records (``init/src/collect.rs``). A guest may be hostile, so
nothing in the stream is trusted: this side decides where a file goes, creates only plain files and folders
without following links, and keeps its own limits.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from airloom.errors import LabError
from airloom.nodes.kind import NodeHandle
from airloom.planning.plan import Plan

FOLDER = "collected"
"""Name of the folder below that of a node."""
MOST_OCTETS = 256 << 20
"""Octets of all files of a node."""
MOST_FILES = 10_000
"""Files of a node."""
_SECONDS = 60.0
"""Time for the files of a node."""
_RECORD = 1 << 16
"""Octets of the longest record."""
_LONGEST = 4096 - 1024
"""Octets of the longest path; the folder of results comes before it."""
_NOTES = 10
"""Notes on one node."""
_NOTE = 300
"""Characters of a note."""
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


class _Flaw(Exception):
    """The stream is not as it should be."""


def collect(plan: Plan, handles: Callable[[str], NodeHandle], results: Path) -> list[str]:
    """Copies the files of all nodes into the folder of results; returns notes on what is missing."""
    notes = []
    for node in plan.nodes.values():
        if node.collect:
            found = list(_of_node(handles(node.name), node.collect, results / "nodes" / node.name))
            notes += [f"collect of {node.name}: {note}" for note in found[:_NOTES]]
            if len(found) > _NOTES:
                notes.append(f"collect of {node.name}: {len(found) - _NOTES} more notes")
    return notes


def _of_node(node: NodeHandle, patterns: Sequence[str], folder: Path) -> Iterator[str]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, reader)
        argv = ("collect", str(MOST_OCTETS), str(MOST_FILES), *patterns)
        try:
            program = node.start(argv, stdout=writer, stderr=Path(os.devnull), own=True)
        except LabError as error:
            yield str(error)
            return
        finally:
            os.close(writer)
        # It may be in the middle of a stream that nobody reads any more.
        stack.callback(program.signal, 9)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            base = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
            stack.callback(os.close, base)
            yield from _store(_records(reader), patterns, base)
        except _Flaw as flaw:
            yield f"not complete: {flaw}"
        except OSError as error:
            yield f"not complete: {error.strerror} (in {folder / FOLDER})"


def _records(reader: int) -> Iterator[tuple[bytes, bytes]]:
    """The records of a stream: letter and content."""
    until = time.monotonic() + _SECONDS
    waiting = bytearray()

    def take(octets: int) -> bytes:
        while len(waiting) < octets:
            left = until - time.monotonic()
            if left <= 0 or not select.select([reader], [], [], left)[0]:
                raise _Flaw(f"it took more than {_SECONDS:.0f} s")
            found = os.read(reader, _RECORD)
            if not found:
                raise _Flaw("the node ended its answer")
            waiting.extend(found)
        taken = bytes(waiting[:octets])
        del waiting[:octets]
        return taken

    while True:
        kind, length = struct.unpack("<cI", take(5))
        if length > _RECORD:
            raise _Flaw("the node sent what is no answer")
        content = take(length)
        if kind == b"Z":
            return
        yield kind, content


def _store(records: Iterator[tuple[bytes, bytes]], patterns: Sequence[str], base: int) -> Iterator[str]:
    """Writes the files of a stream below a folder; yields notes."""
    octets = files = 0
    with contextlib.ExitStack() as last:
        file: int | None = None
        for kind, content in records:
            match kind:
                case b"F":
                    last.close()
                    file, files = None, files + 1
                    if files > MOST_FILES:
                        raise _Flaw(f"more than {MOST_FILES:,} files")
                    parts = parts_of(content, patterns)
                    if parts is None:
                        yield f"{_plain(content)} is no path that was asked for"
                        continue
                    try:
                        file = _created(base, (FOLDER, *parts))
                    except OSError as error:
                        yield f"{_plain(content)}: {error.strerror}"
                        continue
                    if file is not None:
                        last.callback(os.close, file)
                case b"D":
                    octets += len(content)
                    if octets > MOST_OCTETS:
                        raise _Flaw(f"more than {MOST_OCTETS >> 20} MiB")
                    if file is not None:
                        _written(file, content)
                case b"N":
                    yield _plain(content)
                case _:
                    raise _Flaw("the node sent what is no answer")


def parts_of(path: bytes, patterns: Sequence[str]) -> tuple[str, ...] | None:
    """The parts of an absolute path that matches one of the patterns, or is below such a path; None for
    any other.
    """
    text = os.fsdecode(path)
    parts = tuple(text.split("/")[1:])
    sane = text.startswith("/") and len(path) <= _LONGEST and "\0" not in text
    if not sane or any(part in ("", ".", "..") or len(os.fsencode(part)) > 255 for part in parts):
        return None
    for pattern in patterns:
        wanted = [part for part in pattern.split("/") if part]
        if len(wanted) <= len(parts) and all(map(fnmatchcase, parts, wanted)):
            return parts
    return None


def _created(base: int, parts: Sequence[str]) -> int | None:
    """Creates a file below a folder, which holds only what this function made; None if it is there."""
    with contextlib.ExitStack() as stack:
        folder = base
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=folder)
            stack.callback(os.close, folder)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
            return os.open(parts[-1], flags, 0o644, dir_fd=folder)
        except FileExistsError:
            # Two patterns match it.
            return None


def _written(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _plain(text: bytes) -> str:
    """Text of a node as one line of printable characters."""
    shown = "".join(char if char.isprintable() else "?" for char in text.decode(errors="replace"))
    return shown if len(shown) <= _NOTE else shown[:_NOTE] + "..."
