"""Files that a command writes where its user says: each replaces nothing but a file of its own kind.

A wrong name after ``--out`` or ``--json`` would otherwise cost a run's results, a scenario or any other
file. Every command that writes to such a path calls :func:`refuse_others` before it starts.
"""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import ScenarioError
from airloom.host import files

_HEAD = 1 << 16
"""Octets of a file by which its kind is told."""
_LARGEST = 256 << 20
"""Octets of a JSON file or archive that is read as a whole; a larger one is none of ours."""


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of output."""

    what: str
    """With its article: ``a report``."""
    is_own: Callable[[Path], bool]
    """Whether a regular file with content is of this kind."""


def json_of(what: str, *keys: str) -> Form:
    """Returns the form of a JSON object with these keys, or of a list of such objects."""

    def is_own(path: Path) -> bool:
        raw = json.loads(files.content(path, _LARGEST))
        several = raw if isinstance(raw, list) else [raw]
        return bool(several) and all(isinstance(one, dict) and set(keys) <= one.keys() for one in several)

    return Form(what, is_own)


def _begins(*words: bytes) -> Callable[[Path], bool]:
    return lambda path: _head(path).startswith(words)


def _has(*words: bytes) -> Callable[[Path], bool]:
    return lambda path: all(word in _head(path) for word in words)


def _head(path: Path) -> bytes:
    with files.reader(path) as file:
        return file.read(_HEAD)


def _is_pack(path: Path) -> bool:
    with zipfile.ZipFile(io.BytesIO(files.content(path, _LARGEST))) as archive:
        return any(name.rpartition("/")[2] == "manifest.json" for name in archive.namelist())


def _is_table(path: Path) -> bool:
    first, *_ = _head(path).decode("utf-8", "replace").splitlines()
    return all(character.isprintable() for character in first) and first.lstrip()[:1] not in ("{", "[", "<")


def _is_scenario(path: Path) -> bool:
    first = _head(path).split(b"\n", 1)[0]
    return first.startswith(b"# From ") and b"by `airloom " in first


REPORT = Form("a report of Airloom", _has(b"<!DOCTYPE html>", b'<meta name="generator" content="Airloom">'))
PNG = Form("a PNG image", _begins(b"\x89PNG\r\n\x1a\n"))
SVG = Form("an SVG image", _has(b"<svg"))
PDF = Form("a PDF document", _begins(b"%PDF-"))
EPS = Form("a PostScript image", _begins(b"%!PS-Adobe"))
PGF = Form("a figure for PGF", _has(b"\\begin{pgfpicture}"))
CSV = Form("a CSV table", _is_table)
GZIP = Form("a file compressed by gzip", _begins(b"\x1f\x8b"))
PACK = Form("a pack", _is_pack)
SCENARIO = Form("a scenario that Airloom wrote", _is_scenario)
RSPEC = Form("an RSpec", _has(b"<rspec"))
PCAPNG = Form("a capture", _begins(b"\n\r\r\n"))
OML = Form("an OML stream", _begins(b"protocol:"))


def refuse_others(path: Path, form: Form, cure: str) -> None:
    """Raises ``file.exists`` if a file would be replaced that is of another kind.

    An empty file is replaced, and devices and pipes are written to.
    """
    try:
        about = path.stat()
    except OSError:
        return  # it does not exist, or writing it tells why it cannot be
    if not stat.S_ISREG(about.st_mode) or about.st_size == 0:
        return
    try:
        own = form.is_own(path)
    except (OSError, ValueError, RecursionError, zipfile.BadZipFile, NotImplementedError):
        own = False
    if not own:
        raise ScenarioError(
            "file.exists",
            f"this file is there already and is not {form.what}, so it is not replaced",
            where=str(path),
            cure=cure,
        )
