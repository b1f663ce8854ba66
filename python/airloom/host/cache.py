"""The cache folder: files that take long to make and may be deleted while no laboratory runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from airloom.errors import HostError
from airloom.host.files import remove


def folder(*parts: str) -> Path:
    """Returns a folder below ``$XDG_CACHE_HOME/airloom`` (default ``~/.cache``); it may not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "airloom", *parts)


def made(place: Path, make: Callable[[Path], None], what: str) -> Path:
    """Returns the folder ``place``; if it does not exist, ``make`` fills it first.

    One process at a time fills a temporary folder and then renames it, so an existing folder is
    complete. Raises :class:`HostError` with ``what`` if the disk is full or not writable.
    """
    with _disk(place, what), _locked(place.with_name(f"{place.name}.lock")):
        if not place.is_dir():
            _fill(place, make)
    return place


def write(place: Path, text: str, what: str) -> None:
    """Writes a file of the cache as a whole. Raises :class:`HostError` as :func:`made` does."""
    with _disk(place, what), _locked(place.with_name(f"{place.name}.lock")):
        part = place.with_name(f"{place.name}.part")
        part.write_text(text)
        part.rename(place)


@contextlib.contextmanager
def _disk(place: Path, what: str) -> Iterator[None]:
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield
    except OSError as error:
        raise HostError(
            "host.cache",
            f"{what} cannot be kept: {error}",
            cure=f"free space in {place.parent}, or set XDG_CACHE_HOME to a folder that can be written",
        ) from None


def _fill(place: Path, make: Callable[[Path], None]) -> None:
    part = place.with_name(f"{place.name}.part")
    remove(part)  # left by a process that was killed
    part.mkdir(mode=0o755)
    try:
        make(part)
        part.rename(place)
    finally:
        remove(part)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds an exclusive file lock; the kernel releases it if the process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
