"""Kernel modules of a guest: files, dependencies and content.

Dependencies are read from the module itself (``depends=`` in its section ``.modinfo``), so that a
kernel that was only unpacked, without the index that its installation creates, can be used too.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_ENDINGS = (".ko", ".ko.xz", ".ko.zst")


@lru_cache
def _known(folder: Path) -> dict[str, Path]:
    """Maps module names to files."""
    found = {}
    for path in folder.joinpath("kernel").rglob("*.ko*"):
        if path.name.endswith(_ENDINGS):
            found[_name(path.name)] = path
    return found


@lru_cache
def _built_in(folder: Path) -> frozenset[str]:
    listed = folder / "modules.builtin"
    lines = listed.read_text().splitlines() if listed.is_file() else []
    return frozenset(_name(Path(line).name) for line in lines)


def lacking(folder: Path, names: Sequence[str]) -> list[str]:
    """The modules of ``names`` that are neither available nor built into a kernel."""
    known = _known(folder)
    return [name for name in names if name not in known and name not in _built_in(folder)]


def in_order(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The files of modules and their dependencies, in the order of loading."""
    known = _known(folder)
    ordered: dict[str, None] = {}

    def take(name: str) -> None:
        path = known.get(name)
        if path is None or str(path) in ordered:
            return
        said = _DEPENDS.search(content_of(path))
        for needed in said.group(1).decode().split(",") if said else ():
            take(_name(needed))
        ordered[str(path)] = None

    for name in names:
        take(name)
    return tuple(ordered)


@lru_cache(maxsize=128)
def content_of(path: Path) -> bytes:
    """Content of a module, decompressed."""
    octets = path.read_bytes()
    if path.name.endswith(".xz"):
        return lzma.decompress(octets)
    if path.name.endswith(".zst"):
        import pyarrow

        with pyarrow.CompressedInputStream(pyarrow.BufferReader(octets), "zstd") as stream:
            plain: bytes = stream.read()
        return plain
    return octets


def module_name(path: str) -> str:
    """Name of the module in a file."""
    return _name(Path(path).name)


def _name(file: str) -> str:
    return file.partition(".")[0].replace("-", "_")
