"""The folder in which Airloom keeps what is long to make and may be deleted while nothing runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from airloom.errors import HostError
from airloom.host.files import remove


def folder(*parts: str) -> Path:
    """A folder below ``airloom`` in ``$XDG_CACHE_HOME`` (by default ``~/.cache``), which may not be there."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "airloom", *parts)


def made(place: Path, make: Callable[[Path], None], what: str) -> Path:
    """The folder ``place``, filled now by ``make`` if it is not there yet.

    One process at a time fills a folder beside it, which then takes its name: what is there is whole.
    :class:`HostError` that says ``what`` cannot be kept if the disk has no room or no folder for it.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(place.with_name(f"{place.name}.lock")):
            if not place.is_dir():
                _fill(place, make)
    except OSError as error:
        raise HostError(
            "host.cache",
            f"{what} cannot be kept: {error}",
            cure=f"make room in {place.parent}, or set XDG_CACHE_HOME to a folder that can be written",
        ) from None
    return place


def _fill(place: Path, make: Callable[[Path], None]) -> None:
    part = place.with_name(f"{place.name}.part")
    remove(part)  # of a process that was killed
    part.mkdir(mode=0o755)
    try:
        make(part)
        part.rename(place)
    finally:
        remove(part)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lets one process at a time in; the lock goes with whoever held it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
